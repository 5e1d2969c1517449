"""Real data: what `DPCP()`, given only the rows, does beside others, and where others are better.

Road planes, table planes, anomalies in hyperspectral scenes, faces, homographies and tables with
outliers, from the folder that ``PERPEND_DATA`` names. Each kind of data has a file of its own,
``_real_KIND.py``, that runs a case, draws and describes; this one joins them.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from studies import (
    _real_anomalies,
    _real_detectors,
    _real_faces,
    _real_homographies,
    _real_planes,
)
from studies import _real_page as page
from studies._real_files import SOURCES, checksum, find_sources


class Part(NamedTuple):
    """What is done with one kind of data."""

    title: str
    value: str  # the column that is compared, of the table that is called as the kind
    template: str
    run: Callable[[Case], Tables]
    draw: Callable[[Results], dict[str, Any]]
    numbers: Callable[[Results], dict[str, Any]]
    own: str = "DPCP()"  # the documented call for such data


def _part(title: str, value: str, module: ModuleType, **kind: str) -> Part:
    template = f"{module.__name__.rpartition('._')[2]}.md"
    draw, numbers = partial(module.draw, **kind), partial(module.numbers, **kind)
    own = getattr(module, "BOTH", "DPCP()")
    return Part(title, value, template, module.run, draw, numbers, own)


PARTS = {
    "roads": _part("Road planes", "auc", _real_planes, kind="roads"),
    "tables": _part("Table planes", "auc", _real_planes, kind="tables"),
    "anomalies": _part("Anomalies in hyperspectral scenes", "auc", _real_anomalies),
    "faces": _part("One person among others", "auc", _real_faces),
    "homographies": _part("Homographies", "f1", _real_homographies),
    "detectors": _part("Tables with outliers", "auc", _real_detectors),
}
SEEDS = {"faces": 1, "anomalies": 1}  # where not 3: the spread is over people, or scenes
COSTS = {"roads": 12.0, "tables": 12.0, "anomalies": 20.0, "faces": 8.0, "detectors": 6.0}


def cases(settings: Settings) -> list[Case]:
    """Return one case for each file, or part of it, and seed."""
    found = []
    for kind, paths in find_sources().items():
        seeds = settings.seeds or (1 if settings.quick else SEEDS.get(kind, 3))
        for path in paths:
            file = {"kind": kind, "path": str(path.resolve()), "checksum": checksum(path)}
            found += [
                {**file, **item, "seed": seed}
                for seed in range(seeds)
                for item in _items(kind, path, quick=settings.quick)
            ]
    return found


def _items(kind: str, path: Path, *, quick: bool) -> list[Case]:
    """Return what is done with a file: how much of it, or which parts."""
    if kind in ("roads", "tables"):
        return [{"rows": 4000 if quick else None}]
    if kind == "anomalies":
        return [{"side": 40 if quick else None}]
    if kind == "faces":
        subjects = _real_faces.SUBJECTS[: 1 if quick else None]
        return [
            {"subject": who, "share": share} for who in subjects for share in _real_faces.SHARES
        ]
    if kind == "homographies":
        scenes = _real_homographies.scene_names(path)
        few = [name for name in scenes if name in _real_homographies.FEW] or scenes[:2]
        return [{"scene": name} for name in (few if quick else scenes)]
    return [{}]


def run(case: Case) -> Tables:
    """Run the case in the part that its kind of data belongs to."""
    return PARTS[case["kind"]].run(case)


def cost(case: Case) -> float:
    """Return the relative time."""
    return COSTS.get(case["kind"], 2.0)


# -- looking at the results --------------------------------------------------------------------


def kinds(results: Results) -> list[str]:
    """Return the kinds of data that were there."""
    return [kind for kind in PARTS if results.rows(kind)]


def draw(results: Results) -> dict[str, Any]:
    """Draw every part."""
    figures: dict[str, Any] = {}
    for kind in kinds(results):
        figures |= PARTS[kind].draw(results)
    return figures


def numbers(results: Results) -> dict[str, Any]:
    """Return the parts that are there, and what is missing."""
    there = kinds(results)
    return {
        "parts": {kind: PARTS[kind] for kind in there},
        "sources": SOURCES,
        "missing": [source.folder for kind, source in SOURCES.items() if kind not in there],
        "page": page,
    }


EXPERIMENT = Experiment(
    name="real-data",
    title="Real data",
    about="planes, scenes, faces, homographies, tables; needs the data (PERPEND_DATA)",
    cases=cases,
    run=run,
    draw=draw,
    cost=cost,
)
