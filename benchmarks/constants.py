"""How far estimates move when one constant of `perpend.structure.constants` is another.

A fixed set of problems is fitted by `DPCP(affine=..., random_state=seed)`, once with the
constants as they are, and then with each of them made smaller and larger, one at a time: numbers by
factors of 0.8 and 1.25, those near one by the same factors of their distance to one, small whole
numbers by one. An estimate has *moved* if its codimension is another one, if it became sure or
unsure, or if more than 1 % of the rows have another label. For comparison, the same with other
starts (another `random_state`) and no change.

Each change has a process of its own, in which the module of the constants is replaced before
anything reads it: values that others compute from it when they are imported follow, too.

Run ``python benchmarks/constants.py`` (some 40 CPU minutes); ``--only LENGTH`` changes one
constant, ``--count 1`` is a quick try, ``--first`` chooses the seeds, ``--store`` writes
benchmarks/results/constants.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import importlib.util
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from _store import options, store
from _suites import SUITES
from _suites.suite import SURE, fitted

import perpend

MODULE = "perpend.structure.constants"
FACTORS = 0.8, 1.25
NEAR_ONE = 2 / 3, 3 / 2  # between them the distance to one counts: 0.985 is not 1.23
SMALL = 10  # whole numbers below change by one
RELABELLED = 0.01  # of the rows
OTHER_STARTS = 500_000  # added to the seed
SET = {"slab": 24, "cloud": 20, "gap": 12, "stretched": 2, "third": 40}  # seeds of each setting
MOST_FEATURES = 30

Task = tuple[str, int, int]  # suite, seed, case


class Change(NamedTuple):
    """What differs from a plain run: one constant, or the starts."""

    name: str = ""
    value: float = 0
    seed: int = 0


class Estimate(NamedTuple):
    """What is compared."""

    codimension: int
    sure: bool
    labels: np.ndarray
    right: bool
    read: frozenset[str]  # names of the constants that were read


class Watched(ModuleType):
    """A module that knows which of its constants were read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name.isupper():
            Watched.read.add(name)
        return super().__getattribute__(name)


def load_constants() -> ModuleType:
    """Load the constants without the modules that use them."""
    path = Path(perpend.__file__).parent / "structure/constants.py"
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values() -> dict[str, float]:
    """Return all constants by name."""
    return {name: value for name, value in vars(load_constants()).items() if name.isupper()}


def neighbours(value: float) -> tuple[float, float]:
    """Return a smaller and a larger value.

    >>> neighbours(14.0), neighbours(3), neighbours(16), neighbours(0.9), neighbours(1.2)
    ((11.2, 17.5), (2, 4), (13, 20), (0.875, 0.92), (1.16, 1.25))
    """
    low, high = FACTORS
    if isinstance(value, int):
        small = value < SMALL
        return (value - 1, value + 1) if small else (round(low * value), round(high * value))
    one = 1 if NEAR_ONE[0] < value < NEAR_ONE[1] and value != 1 else 0
    smaller, larger = sorted(one + factor * (value - one) for factor in FACTORS)
    return float(f"{smaller:.6g}"), float(f"{larger:.6g}")


def problems(first: int, most: int | None = None) -> list[Task]:
    """Return the fixed set: seeds from the first on, those with few features alone."""
    tasks = []
    for name, count in SET.items():
        suite, seed, found = SUITES[name], first, 0
        while found < min(count, most or count):
            if suite.draw(seed, 0).X.shape[1] <= MOST_FEATURES:
                tasks += [(name, seed, case) for case in range(suite.n_cases)]
                found += 1
            seed += 1
    return tasks


def estimates(change: Change, tasks: list[Task]) -> list[Estimate]:
    """Estimate all problems with one change; in a process that has not loaded the constants yet."""
    if "perpend.structure" in sys.modules:
        raise RuntimeError("perpend.structure is loaded: values taken from it would not follow.")
    module = load_constants()
    if change.name:
        setattr(module, change.name, change.value)
    module.__class__ = Watched
    sys.modules[MODULE] = module
    found = []
    for name, seed, case in tasks:
        problem = SUITES[name].draw(seed, case)
        Watched.read = set()
        model, _ = fitted(problem, seed + change.seed)
        found.append(
            Estimate(
                int(model.codimension_),
                bool(model.confidence_ >= SURE),
                np.asarray(model.labels_, np.int8),
                SUITES[name].score(problem, model)["right"],
                frozenset(Watched.read),
            )
        )
    return found


def moves(before: list[Estimate], after: list[Estimate]) -> dict[str, int]:
    """Count the estimates that moved, in which way, and what is right now."""
    pairs = list(zip(before, after, strict=True))
    other = [a.codimension != b.codimension for a, b in pairs]
    surer = [a.sure != b.sure for a, b in pairs]
    labels = [
        bool(np.mean(a.labels != b.labels) > RELABELLED) and a.codimension == b.codimension
        for a, b in pairs
    ]
    moved = [any(ways) for ways in zip(other, surer, labels, strict=True)]
    counts = {"moved": moved, "codimension": other, "sureness": surer, "labels": labels}
    return {**{name: sum(which) for name, which in counts.items()}, **quality(after)}


def quality(found: list[Estimate]) -> dict[str, int]:
    """Count right estimates, sure ones, and sure and wrong ones."""
    return {
        "right": sum(estimate.right for estimate in found),
        "sure": sum(estimate.sure for estimate in found),
        "sure_and_wrong": sum(estimate.sure and not estimate.right for estimate in found),
    }


def study(
    names: list[str], tasks: list[Task], jobs: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Change one constant after the other."""
    known = values()
    steps = [Change(name, value) for name in names for value in neighbours(known[name])]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, max_tasks_per_child=1) as pool:
        runs = [
            pool.submit(estimates, change, tasks)
            for change in (Change(), Change(seed=OTHER_STARTS), *steps)
        ]
        plain, other_starts = (run.result() for run in runs[:2])
        about = {"default": quality(plain), "other_starts": moves(plain, other_starts)}
        tell(f"{len(tasks)} problems: {about}")
        results: dict[str, dict[str, Any]] = {}
        for change, run in zip(steps, runs[2:], strict=True):
            name = change.name
            read = sum(name in estimate.read for estimate in plain)
            row = {"name": name, "value": known[name], "read_in": read, "changes": []}
            step = {"to": change.value, **moves(plain, run.result())}
            results.setdefault(name, row)["changes"].append(step)
            tell(f"{name} {known[name]:g}, read in {read}: {step}")
    return {**about, "results": list(results.values())}


def main() -> None:
    """Print how many estimates move; store it with --store."""
    names = list(values())
    parser = options(__doc__, first=0, jobs=2)
    parser.add_argument("--only", choices=names, metavar="NAME", help="change this one alone")
    parser.add_argument("--count", type=int, help="seeds of each setting, at the most")
    chosen = parser.parse_args()
    if chosen.only and chosen.store:
        parser.error("--store is for all constants together")
    tasks = problems(chosen.first, chosen.count)
    found = study(
        [chosen.only] if chosen.only else names, tasks, chosen.jobs, lambda x: print(x, flush=True)
    )
    if chosen.store:
        counts = {name: sum(task[0] == name for task in tasks) for name in SET}
        full = sum(count * SUITES[name].n_cases for name, count in SET.items())
        about = {"first_seed": chosen.first, "full": full, "problems": counts}
        store("constants", {**about, **found})


if __name__ == "__main__":
    main()
