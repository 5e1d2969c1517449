# Everything happens in .venv, which the first command that needs it sets up.
# All you need is make and Python 3.11 or newer; `make PYTHON=python3.12 test` picks another one.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Two test workers with one BLAS thread each: two cores busy, none fought over.
WORKERS ?= 2

# What `make test-torch` installs; a build for your GPU may need pip's --index-url (PIP_INDEX_URL).
TORCH ?= torch==2.13.0

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-torch lint docs bench bench-store bench-cuda reproduction studies clean

help: ## show this list
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1	\2/p' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## find a hidden subspace among outliers, in a few seconds
	@$(BIN)/perpend demo --output perpend-demo --force

# The suite runs last, so that the last line printed is its verdict.
test: export OPENBLAS_NUM_THREADS := 1
test: lint ## all checks: lint, then every test and doctest
	@echo "== scikit-learn's common checks under SCIPY_ARRAY_API=1"
	@SCIPY_ARRAY_API=1 $(BIN)/python -m pytest -q -n $(WORKERS) tests/test_common.py
	@echo "== pytest"
	@$(BIN)/python -m pytest -n $(WORKERS)

# torch's own threads wait actively: one for each worker.
test-torch: export OPENBLAS_NUM_THREADS := 1
test-torch: export OMP_NUM_THREADS := 1
test-torch: $(VENV)/.installed-torch ## install torch as well, and run the tests on tensors
	@echo "== pytest, tests on tensors"
	@$(BIN)/python -m pytest -n $(WORKERS) tests/test_torch.py tests/test_cuda.py \
	  tests/rows/test_torch_rows.py tests/test_batch.py tests/kernels tests/test_docs_torch.py

lint: $(VENV)/.installed-dev ## style, types and who imports whom
	@echo "== ruff"
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/python -m mypy --strict
	@echo "== import-linter"
	@$(BIN)/lint-imports

# Warnings are errors. The gallery's examples are run where they have changed since the last build.
docs: export OPENBLAS_NUM_THREADS := 1
docs: export MPLBACKEND := Agg
docs: $(VENV)/.installed-docs ## the documentation, with its gallery, into docs/_build/html
	@$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench bench-store bench-cuda: export OPENBLAS_NUM_THREADS := 1
bench: $(VENV)/.installed ## time the hot loop and whole fits, and print what was measured
	@$(BIN)/python benchmarks/hotloop.py
	@$(BIN)/python benchmarks/products.py --seeds 10
	@$(BIN)/python benchmarks/fits.py
	@$(BIN)/python benchmarks/growth.py
	@$(BIN)/python benchmarks/many_rows.py --rows 1000000
	@$(BIN)/python benchmarks/low_dimension.py --seeds 2

bench-store: $(VENV)/.installed-dev ## the same at full size, stored; makes docs/benchmarks.md
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

studies: $(VENV)/.installed-dev ## our own studies, at full size (two hours; real data from PERPEND_DATA)
	@$(BIN)/python -m studies all --out docs/reproduction

clean: ## remove .venv, caches and build leftovers
	rm -f src/perpend/kernels/compiled/*.so
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/generated docs/sg_execution_times.rst .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: the environment is touched again only when one of these changes.
SETUP := pyproject.toml hatch_build.py $(wildcard src/perpend/kernels/compiled/l1*.[ch])

$(VENV)/.installed: $(SETUP) | $(BIN)/pip
	@echo "== installing perpend into $(VENV)"
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: $(SETUP) | $(BIN)/pip
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

$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "perpend needs Python 3.11 or newer, but there is no '$(PYTHON)' here."; \
	  echo "Install Python, or name the one you have: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "perpend needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	  echo "If a newer one is installed, name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; \
	  exit 1; }
	@echo "== creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu it is in the package python3-venv."; \
	  exit 1; }
