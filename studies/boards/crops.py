"""Random crops of scans: nothing fails, and a handful of points is no sure plane.

A crop has 2 to 3000 points around one of them. Some lie exactly on a plane, and some are there
three times.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import starts_rng
from studies.boards import _board as base
from studies.boards._files import files, read_arrays

OWN = "peel(X, affine=True)"
FORMS = ("as they are", "three times", "on a plane")
SIZES = (2, 3000)  # points of a crop, evenly by their logarithm
LEAST = math.exp(-7)  # of all points: the region that a crop is drawn from
FEW = 4  # distinct points that any plane, nearly, can be laid through
SURE = 0.95


def items(settings: Settings) -> list[Case]:  # noqa: ARG001
    """Return the scans."""
    return files("roads", "tabletops")


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """None that fails, none that is sure of so few points."""
    rows = results.rows(base.SCORES, method=board.own)
    sure = sum(row["few"] for row in rows if row["few"] is not None)
    return [
        base.Target(f"{len(rows)} crops: crashes", sum(row["crashed"] for row in rows), 0, -1),
        base.Target(f"{len(rows)} crops: sure subspaces of {FEW} points or fewer", sure, 0, -1),
    ]


BOARD = base.Board(
    name="boards/crops",
    title="Crops of scans",
    about="500 random crops of road and Kinect scans: crashes, and planes of four points",
    own=OWN,
    item="scan",
    measures=(
        base.Measure("crashed", "share that crashes", -1),
        base.Measure("few", f"share with a sure subspace of {FEW} points or fewer", -1),
        base.Measure("found", "mean number of subspaces", 0, 1),
    ),
    targets=targets,
    items=items,
    sources=("roads", "tabletops"),
    seeds=125,
)


def run(case: Case) -> Tables:
    """Take one crop apart."""
    from perpend import peel

    (points,) = read_arrays(case["path"], "points")
    # The checksum is that of the file: every scan has crops of its own.
    rng = np.random.default_rng([case["seed"], int(case["checksum"], 16), 18])
    points, form = crop(points.astype(float), rng)
    row: Row = {"method": OWN, "crashed": 0}
    try:
        found, seconds = base.timed(
            lambda: peel(points, affine=True, random_state=starts_rng(case["seed"]))
        )
    except Exception as error:  # noqa: BLE001  of whatever kind: it is what is counted
        row |= {"crashed": 1, "note": f"failed: {type(error).__name__}"}
    else:
        sure = [one.members for one in found.subspaces if one.confidence >= SURE]
        few = any(len(np.unique(points[members], axis=0)) <= FEW for members in sure)
        row |= {"few": int(few), "found": len(found.subspaces), "seconds": seconds}
    given = {"item": Path(case["path"]).stem, "seed": case["seed"], "form": form, "n": len(points)}
    return {base.SCORES: BOARD.rows(given, [row])}


def crop(points: Array, rng: np.random.Generator) -> tuple[Array, str]:
    """Return some points around one of them, and their form."""
    away = np.linalg.norm(points - points[rng.integers(len(points))], axis=1)
    near = np.flatnonzero(away <= np.quantile(away, np.exp(rng.uniform(math.log(LEAST), 0))))
    size = round(math.exp(rng.uniform(*np.log(SIZES))))
    some = points[rng.choice(near, min(len(near), size), replace=False)]
    form = FORMS[max(int(rng.integers(4)) - 1, 0)]  # half of them as they are
    if form == "three times" or len(some) < 2:  # peel needs two rows
        return np.repeat(some, 3, axis=0), "three times"
    if form == "on a plane":
        some[:, 2] = some[0, 2]
    return some, form


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    rows = results.rows(base.SCORES)
    return {
        **base.facts(BOARD, results),
        "n_crops": len(rows),
        "n_crashed": sum(row["crashed"] for row in rows),
        "n_few": sum(row["few"] or 0 for row in rows),
        "forms": {form: sum(row["form"] == form for row in rows) for form in FORMS},
        "FEW": FEW,
        "SIZES": SIZES,
    }


def draw(results: Results) -> dict[str, Any]:
    """Draw the time of every crop, by its form."""
    from perpend import plots

    times = {form: results.column(base.SCORES, "seconds", form=form) for form in FORMS}
    there = {form: seconds for form, seconds in times.items() if np.isfinite(seconds).any()}
    label = "CPU seconds, one dot a crop"
    return {base.SCORES: plots.dots({"": there}, xlabel=label, highlight=FORMS[0], width=6.4)}


EXPERIMENT = BOARD.experiment(run, draw=draw)
