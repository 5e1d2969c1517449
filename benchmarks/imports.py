"""What it takes to import perpend, and to show its help, beside what it is built on.

Each is a fresh Python process, and the wall clock is from its start to its end. The four take
turns, so that a busy moment meets all of them; figures are medians. A first round, which does not
count, fills the caches. Run ``python benchmarks/imports.py``; add ``--store`` to write
benchmarks/results/imports.json.
"""

import os
import subprocess
import sys
import time
from statistics import median

from _store import hardware, options, store

ROUNDS = 10
COMMANDS = {
    "import sklearn.base": ["-c", "import sklearn.base"],
    "from perpend import DPCP": ["-c", "from perpend import DPCP"],
    "import typer": ["-c", "import typer"],
    "perpend --help": ["-m", "perpend", "--help"],
}
LIMITS = [  # ours, beside theirs, and how many times theirs it may take
    ("from perpend import DPCP", "import sklearn.base", 1.15),
    ("perpend --help", "import typer", 2.0),
]
# Bytecode is written, as an installed package has it.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def seconds(arguments: list[str]) -> float:
    """Return how long a fresh process takes."""
    start = time.perf_counter()
    command = [sys.executable, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return time.perf_counter() - start


def main() -> None:
    """Print the medians and the ratios; store them with --store."""
    chosen = options(__doc__).parse_args()
    rounds = [
        {name: seconds(arguments) for name, arguments in COMMANDS.items()}
        for _ in range(ROUNDS + 1)
    ][1:]
    medians = {name: round(median(each[name] for each in rounds), 4) for name in COMMANDS}
    ratios = [
        {"ours": ours, "theirs": theirs, "ratio": medians[ours] / medians[theirs], "limit": limit}
        for ours, theirs, limit in LIMITS
    ]
    for name, value in medians.items():
        print(f"{name:28} {value:.3f} s")
    for row in ratios:
        print(f"{row['ours']} / {row['theirs']}: {row['ratio']:.2f}, at most {row['limit']}")
    if chosen.store:
        store("imports", {"hardware": hardware(), "medians": medians, "results": ratios})


if __name__ == "__main__":
    main()
