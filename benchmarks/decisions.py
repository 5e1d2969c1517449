"""Whether the decision is right on data that people have, and unsure where nothing can be known.

Each suite is fitted by `DPCP(affine=..., random_state=seed).fit(X)`, with all other parameters at
their defaults, and scored against what was put there; `_suites/` says what the problems are.

- *scans*: a road in LiDAR frames, a table in depth images (needs the data, ``PERPEND_DATA``)
- *slab*: a plane with noise in a slab 5 to 30 times as thick
- *cloud*, *gap*: smooth clouds without a subspace, and with one gap of 10 between their axes
- *stretched*: inliers whose axes fall towards the noise
- *third*: the third calibration suite

Run ``python benchmarks/decisions.py slab``; ``--first 20000`` and ``--count 300`` choose seeds,
``--show`` prints every estimate that is not right, ``--store`` writes what was counted to
benchmarks/results/decisions.json and keeps what it holds of other suites.

``--against SRC`` times fits instead, with this version and with the one in the folder SRC (the
`src` folder of a checkout, with compiled kernels if this one has them), in turn and on one thread:
*scans*, *third*, and *clear*, the settings of fits.py and products.py.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from _against import times
from _page.decision_targets import targets
from _page.decisions import times_table
from _page.section import targets_table
from _store import RESULTS, hardware, options, store
from _suites import SUITES, TIMED
from _suites.counting import stored
from _suites.suite import Problem, Row, fitted, scored
from _text import table

TIMED_DRAWS = {"scans": 2, "third": 60, "clear": 5}  # version 0.1 takes up to 30 s for a fit


def trial(name: str, seed: int, case: int) -> Row:
    """Estimate one problem."""
    return {"seed": seed, "case": case, **scored(SUITES[name], seed, case)}


def warm_up() -> None:
    """Fit once, so that no time of a fit holds that of an import."""
    X = np.random.default_rng(0).standard_normal((80, 3)) * [1, 1, 0.01]
    for affine in (False, True):
        fitted(Problem(X, 1, affine), 0)


def estimates(name: str, seeds: range, jobs: int) -> list[Row]:
    """Estimate all problems of a suite."""
    tasks = [(name, seed, case) for seed in seeds for case in range(SUITES[name].n_cases)]
    with ProcessPoolExecutor(jobs, initializer=warm_up) as pool:
        return list(pool.map(trial, *zip(*tasks, strict=True)))


def kept_before() -> dict[str, Any]:
    """Return what is stored."""
    path = RESULTS / "decisions.json"
    return json.loads(path.read_text()) if path.exists() else {"suites": {}, "times": {}}


def store_with_the_others(measured: dict[str, Any]) -> None:
    """Write what was measured, beside what is stored of other suites."""
    known = kept_before()
    parts = {
        part: {name: found[name] for name in order if name in found}
        for part, order in (("suites", SUITES), ("times", TIMED))
        for found in [{**known[part], **measured[part]}]
    }
    store("decisions", {"hardware": hardware(), **parts})


def main() -> None:
    """Print targets and tables; store the counts with --store."""
    parser = options(__doc__, first=0, jobs=2)
    parser.add_argument("suite", choices=SUITES | TIMED)
    parser.add_argument("--count", type=int, help="seeds of each setting (default: the target's)")
    parser.add_argument("--show", action="store_true", help="print estimates that are not right")
    parser.add_argument("--against", type=Path, metavar="SRC", help="time, beside another version")
    chosen = parser.parse_args()
    name, part = chosen.suite, "times" if chosen.against else "suites"
    if name not in (TIMED if chosen.against else SUITES):
        parser.error(f"{name} is measured {'without' if chosen.against else 'with'} --against")
    draws = chosen.count or (TIMED_DRAWS if chosen.against else _full())[name]
    seeds = range(chosen.first, chosen.first + draws)
    measured: dict[str, Any] = {"suites": {}, "times": {}}
    if chosen.against:
        found = times(name, seeds, chosen.against)
    else:
        rows = estimates(name, seeds, chosen.jobs)
        found = {"full": _full()[name], **stored(SUITES[name], rows)}
        if chosen.show:
            print(*(row for row in rows if not row["right"]), sep="\n")
    measured[part][name] = {"first_seed": chosen.first, "draws": draws, **found}
    print(times_table(measured) if chosen.against else _tables(found), end="\n\n")
    print(targets_table(targets(measured)))
    if chosen.store:
        store_with_the_others(measured)


def _tables(found: Row) -> str:
    """Show all counts by setting, then those of all estimates."""
    tables = [table(list(rows[0]), map(dict.values, rows)) for rows in found["by"].values()]
    return "\n\n".join([*tables, *(f"{name}: {found[name]}" for name in ("all", "seconds"))])


def _full() -> dict[str, int]:
    return {name: suite.draws for name, suite in SUITES.items()}


if __name__ == "__main__":
    main()
