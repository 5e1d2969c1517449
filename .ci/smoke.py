"""Install the files of a folder into an empty environment, and try each: `smoke.py dist`."""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

CODE = """
from perpend import DPCP
from perpend.datasets import make_subspace

model = DPCP(random_state=1).fit(make_subspace(random_state=0).X)
assert (model.codimension_, model.confidence_ >= 0.95) == (5, True), model
"""
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


def smoke(package: Path, python: Path) -> None:
    """Install one file in place of the one before, fit, and ask the program how it is."""

    def run(*arguments: str) -> str:
        command = [str(python), *arguments]
        return subprocess.run(
            command,
            check=True,
            cwd=python.parent,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    run("-m", "pip", "uninstall", "--quiet", "--yes", "perpend")
    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(package))
    run("-m", "pip", "check")
    run("-c", CODE)
    found = json.loads(run("-m", "perpend", "doctor", "--json"))
    assert found["self_test"]["passed"], found["self_test"]
    compiled = found["compiled_kernel"]["used"]
    if package.suffix == ".whl":  # a wheel says by its name whether it has a compiled kernel
        assert compiled == (not package.name.endswith("-none-any.whl")), found["compiled_kernel"]
    print(f"{package.name}: works, {'with' if compiled else 'without'} a compiled kernel")


def main() -> None:
    """Try them all."""
    packages = sorted(path.resolve() for path in Path(sys.argv[1]).glob("perpend-*"))
    if not packages:
        sys.exit(f"{sys.argv[1]}: has no package. Build first: make build")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = "Scripts/python.exe" if os.name == "nt" else "bin/python"
        for package in packages:
            smoke(package, Path(folder, programs))


main()
