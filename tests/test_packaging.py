"""What the package says of itself in several places agrees."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml  # comes with zarr

import perpend

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
RECIPE = yaml.safe_load((ROOT / "conda/recipe.yaml").read_text(encoding="utf-8"))
CI = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_conda_recipe_needs_what_the_package_needs():
    python = f"python {PROJECT['requires-python']}"
    needed = [re.sub("(?=>=)", " ", line) for line in PROJECT["dependencies"]]
    assert RECIPE["requirements"]["run"] == [python, *needed]
    build = [re.sub("(?=>=)", " ", line) for line in PYPROJECT["build-system"]["requires"]]
    assert RECIPE["requirements"]["host"] == [python, "pip", *build]


def test_the_conda_recipe_is_of_this_version():
    assert RECIPE["context"]["version"] == perpend.__version__
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


@pytest.mark.parametrize("job", CI["jobs"])
def test_the_workflow_only_calls_make(job):
    commands = [step["run"] for step in CI["jobs"][job]["steps"] if "run" in step]
    calls = [command for command in commands if command != "choco install make --no-progress"]
    assert calls
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    for call in calls:
        make, *words = call.split()
        assert make == "make"
        assert {word for word in words if "=" not in word} <= targets


def test_every_python_that_is_promised_is_tested():
    prefix = "Programming Language :: Python :: "
    promised = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    tested = CI["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert tested == [version for version in promised if "." in version]
    assert PROJECT["requires-python"] == f">={tested[0]}"
