"""The CPU time of the tests that `make test` runs, over that of another version's.

Both suites run in this Python, one after the other, each in its own checkout and against its own
package, in one process with one BLAS thread: ``python -m pytest -n 0``. CPU time is that of pytest
and of all processes that tests start, user and system. Of what `make test` does, lint is left out,
and with version 0.1 the second run of scikit-learn's checks.

Run ``python benchmarks/suite.py CHECKOUT``, with the folder of the other version; that of 0.1 comes
from ``git worktree add CHECKOUT 5dc0126``. Both need the compiled kernels, which ``make -C CHECKOUT
demo`` builds, or neither. Tests on real data run if ``PERPEND_DATA`` is set. It takes as long as
both suites, some 20 minutes. ``--only`` names tests to run in both instead, ``--store`` writes
benchmarks/results/suite.json.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from _store import hardware, options, store

HERE = Path(__file__).parents[1]
LIMIT = 0.5  # of the other suite's CPU time
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


def environment(root: Path) -> dict[str, str]:
    """Return the environment in which `perpend` is that of a checkout."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": str(root / "src")}


def python(root: Path, *arguments: str) -> str:
    """Run Python in a checkout, and return what it prints; a failed test is no error here."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=root, env=environment(root), capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{root}: {' '.join(command)} failed.\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_seconds() -> float:
    """Return what the processes that have ended took, and those that they started."""
    times = os.times()
    return times.children_user + times.children_system


def measured(root: Path, only: list[str]) -> dict[str, Any]:
    """Run the suite of a checkout."""
    home = Path(python(root, "-c", "import perpend; print(perpend.__file__)").strip())
    if not home.is_relative_to(root):
        raise SystemExit(f"{root}: no checkout of perpend, as {home} is what is imported there.")
    start = cpu_seconds()
    last = python(root, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *only)
    taken = cpu_seconds() - start
    counts = {word.rstrip("s"): int(n) for n, word in COUNTS.findall(last.splitlines()[-1])}
    return {
        "cpu_seconds": round(taken, 1),
        **{word: counts.get(word, 0) for word in ("passed", "failed", "error", "skipped")},
        "compiled": any(home.parent.glob("kernels/compiled/*.so")),
    }


def main() -> None:
    """Print both, and their ratio; store them with --store."""
    parser = options(__doc__)
    parser.add_argument("checkout", type=Path, help="the folder of the other version")
    parser.add_argument("--only", nargs="+", default=[], help="tests to run, instead of all")
    chosen = parser.parse_args()
    if chosen.store and chosen.only:
        parser.error("only whole suites are stored: --store and --only exclude each other.")
    folders = {"before": chosen.checkout.resolve(), "now": HERE}
    suites = {name: measured(root, chosen.only) for name, root in folders.items()}
    for name, suite in suites.items():
        print(f"{name:7} " + ", ".join(f"{word} {value}" for word, value in suite.items()))
    now, before = suites["now"], suites["before"]
    ratio = float(f"{now['cpu_seconds'] / before['cpu_seconds']:.3g}")
    print(f"ratio   {ratio}, at most {LIMIT}")
    if now["compiled"] != before["compiled"]:
        raise SystemExit("only one of the versions has compiled kernels: build both, or none.")
    if chosen.store:
        if now["failed"] or now["error"]:
            raise SystemExit("tests fail, so nothing is stored.")
        store("suite", {"hardware": hardware(), "limit": LIMIT, "ratio": ratio, "suites": suites})


if __name__ == "__main__":
    main()
