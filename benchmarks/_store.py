"""What benchmarks are asked, where their results go, and what they ran on."""

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
ABOUT = {
    "seeds": "seeds of each setting, or at most so many",
    "first": "the first seed",
    "jobs": "processes",
}


def options(doc: str | None, **defaults: int | None) -> argparse.ArgumentParser:
    """Return a parser with --store, and with --seeds, --first and --jobs if they have a default.

    None stands for the number that each setting has of its own.
    """
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=form)
    parser.add_argument("--store", action="store_true", help="write results/NAME.json")
    for name, default in defaults.items():
        usual = "its own" if default is None else default
        about = f"{ABOUT[name]} (default: {usual})"
        parser.add_argument(f"--{name}", type=int, default=default, help=about)
    return parser


def hardware() -> dict[str, Any]:
    """Return what matters for a timing, without naming the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), cpu)
    return {"cpu": cpu, "python": platform.python_version(), "numpy": np.__version__}


def store(name: str, content: dict[str, Any]) -> None:
    """Write results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
