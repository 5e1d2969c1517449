"""Several planes: rooms with known ones, and depth images where another search says which.

A room has three to six of its floor, ceiling, walls, a table and a tilted board, as points with
noise, and clutter. Found means: as many planes as there are, each with an F1 of its points of at
least 0.9.
"""

from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import percent, starts_rng
from studies.boards import _board as base
from studies.boards._files import files, read_arrays
from studies.boards._peers import distances, open3d_planes, row_of
from studies.boards._references import pca_plane

OWN = "peel(X, affine=True)"  # as docs/domains/point_cloud.md has it
OPEN3D = "Open3D, one plane after another"
ROOMS, SCANS = "rooms", "Kinect scans"
N, NOISE, CLUTTER = 20_000, 0.005, 0.15  # points of a room; metres; share of the points
SHARES = (0.05, 0.40)  # of all points that a plane has, at least and at most
PLANES = (3, 6)
FOUND, RIGHT = 0.9, 0.9  # F1 of a plane's points; share of rooms
SHARE, DRAWS = 0.05, 1000  # of the points, the smallest plane of Open3D's search; its draws
THRESHOLD = {ROOMS: 3 * NOISE, SCANS: 0.01}  # metres, given to Open3D
SAME = 0.5  # F1 of the points near two planes that are the same one


def items(settings: Settings) -> list[Case]:
    """Return a room for each seed, and the scans if there are some."""
    rooms = [{"group": ROOMS, "n": 2000 if settings.quick else N, "seeds": 100}]
    rows = 4000 if settings.quick else None
    scans = files("tabletops", needed=False)
    return rooms + [{"group": SCANS, **file, "rows": rows, "seeds": 3} for file in scans]


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """Nearly all rooms, and every plane of the scans that Open3D finds."""
    there = board.groups(results)
    found = []
    if ROOMS in there:
        share = board.value(results, "right", group=ROOMS)
        found.append(base.Target("rooms: share with all planes found and no other", share, RIGHT))
    if SCANS in there:
        share = board.value(results, "found", group=SCANS)
        found.append(base.Target("Kinect scans: share of Open3D's planes found", share, 1.0))
    return found


BOARD = base.Board(
    name="boards/rooms",
    title="Several planes",
    about="100 synthetic rooms and Kinect scans, beside Open3D's search",
    own=OWN,
    item="room or scan",
    measures=(
        base.Measure("f1", "mean F1 of the planes' points"),
        base.Measure("right", "all found and no other"),
        base.Measure("found", "of Open3D's planes"),
        base.Measure("split", "or split into finer ones"),
        base.Measure("planes", "mean number of planes", 0, 1),
    ),
    targets=targets,
    items=items,
    sources=("tabletops",),
)


def run(case: Case) -> Tables:
    """Take one room or scan apart."""
    return _run_room(case) if case["group"] == ROOMS else _run_scan(case)


def _run_room(case: Case) -> Tables:
    seed = case["seed"]
    points, label = room(seed, case["n"])

    def measured(found: Array) -> Row:
        best = matched(label, found)
        number = int(found.max(initial=-1)) + 1
        right = number == label.max() + 1 and bool(np.all(best >= FOUND))
        return {"f1": float(best.mean()), "right": float(right), "planes": number}

    rows = [
        row_of(
            OWN,
            lambda: _peeled(points, seed),
            lambda found: measured(found.labels),
            may_fail=False,
        ),
        row_of(OPEN3D, open3d_planes(points, THRESHOLD[ROOMS], SHARE, DRAWS, seed), measured),
    ]
    given = {"group": ROOMS, "item": seed, "seed": 0, "truth": int(label.max()) + 1}
    return {base.SCORES: BOARD.rows(given, rows)}


def _run_scan(case: Case) -> Tables:
    scan, seed = Path(case["path"]).stem, case["seed"]
    (points,) = read_arrays(case["path"], "points")
    order = np.random.default_rng([seed, 7]).permutation(len(points))[: case["rows"]]
    points = points[order].astype(float)
    threshold = THRESHOLD[SCANS]
    theirs = np.full(len(points), -1)

    def counted(labels: Array) -> Row:
        theirs[:] = labels
        return {"planes": int(labels.max(initial=-1)) + 1}

    def ours(found: Any) -> Row:
        mine = [part for part in found.subspaces if part.codimension == 1]
        large = sum(len(part.members) >= SHARE * len(points) for part in mine)
        each = [
            (best_overlap(points, theirs == k, mine, threshold), split(theirs == k, mine))
            for k in range(theirs.max() + 1)
        ]
        if not each:
            return {"planes": large}
        same, parts = np.array(each).T
        return {
            "planes": large,
            "f1": float(same.mean()),
            "found": float(np.mean(same >= SAME)),
            "split": float(np.mean((same >= SAME) | (parts >= SAME))),
        }

    search = open3d_planes(points, threshold, SHARE, DRAWS, seed)
    other = row_of(OPEN3D, search, counted)  # first: it says which planes there are
    own = row_of(OWN, lambda: _peeled(points, seed), ours, may_fail=False)
    given = {"group": SCANS, "item": scan, "seed": seed, "truth": None}
    return {base.SCORES: BOARD.rows(given, [own, other])}


def _peeled(points: Array, seed: int) -> Any:
    from perpend import peel

    return peel(points, affine=True, random_state=starts_rng(seed))


def room(seed: int, n: int = N) -> tuple[Array, Array]:
    """Return the points (n, 3) of a room, and the plane of each: 0, 1, ... or -1 for clutter."""
    rng = np.random.default_rng([seed, 17])
    k = int(rng.integers(PLANES[0], PLANES[1] + 1))
    while True:  # shares as they come, until all are as large as a plane should be
        share = rng.uniform(*SHARES, k)
        share *= (1 - CLUTTER) / share.sum()
        if SHARES[0] <= share.min() and share.max() <= SHARES[1]:
            break
    sizes = np.round(share * n).astype(int)
    size = rng.uniform([3, 3, 2.2], [8, 8, 3.5])
    x, y, z = np.diag(size)
    table = np.array([*rng.uniform(0.1, 0.5, 2), 0]) * size + [0, 0, rng.uniform(0.6, 1.1)]
    turned = np.linalg.qr(rng.standard_normal((3, 3)))[0] * rng.uniform(0.8, 2, 3)
    zero = np.zeros(3)
    surfaces = [  # a corner, and two edges
        *((zero, x, y), (z, x, y)),  # floor and ceiling
        *((zero, x, z), (y, x, z), (zero, y, z), (x, y, z)),  # walls
        (table, rng.uniform(0.8, 2) * x / size[0], rng.uniform(0.6, 1.5) * y / size[1]),
        (rng.uniform(0.3, 0.6, 3) * size, turned[0], turned[1]),  # a tilted board
    ]
    parts = [rng.uniform(0, size, (n - sizes.sum(), 3))]
    for i, m in zip(rng.choice(len(surfaces), k, replace=False), sizes, strict=True):
        corner, first, second = surfaces[i]
        normal = np.cross(first, second) / np.linalg.norm(np.cross(first, second))
        on = corner + rng.uniform(size=(m, 1)) * first + rng.uniform(size=(m, 1)) * second
        parts.append(on + rng.normal(0, NOISE, (m, 1)) * normal)
    label = np.repeat(np.arange(-1, k), [len(part) for part in parts])
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    order = rng.permutation(n)
    return (np.vstack(parts) @ rotation + rng.normal(0, 3, 3))[order], label[order]


def matched(truth: Array, found: Array) -> Array:
    """Return, for each true plane, the best F1 of its points among the planes found."""
    k, m = truth.max() + 1, found.max(initial=-1) + 1
    both = np.zeros((k + 1, m + 1))
    np.add.at(both, (truth, found), 1)  # -1 counts in the last row and column
    total = both.sum(axis=1)[:k, None] + both.sum(axis=0)[None, :m]
    return np.asarray((2 * both[:k, :m] / total).max(axis=1, initial=0.0))


def best_overlap(points: Array, on: Array, planes: list[Any], threshold: float) -> float:
    """Return the best F1 of the points near some points' plane against those near one of ours."""
    near = distances(points, pca_plane(points[on])) < threshold
    others = [distances(points, np.asarray(part.plane)) < threshold for part in planes]
    both = [2 * np.sum(near & other) / (near.sum() + other.sum()) for other in others]
    return float(max(both, default=0.0))


def split(on: Array, planes: list[Any]) -> float:
    """Return the share of some points on those of our planes that mostly consist of them."""
    return float(sum(on[p.members].sum() for p in planes if on[p.members].mean() > 0.5) / on.sum())


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    rooms = results.rows(base.SCORES, group=ROOMS, method=OWN)
    share = BOARD.value(results, "found", group=SCANS) if SCANS in BOARD.groups(results) else np.nan
    return {
        **base.facts(BOARD, results),
        "share": "-" if np.isnan(share) else percent(share),
        "ROOMS": ROOMS,
        "SCANS": SCANS,
        "SAME": SAME,
        "FOUND": FOUND,
        "n_right": sum(row["right"] == 1 for row in rooms),
        "n_rooms": len(rooms),
        "wrong": [row["item"] for row in rooms if row["right"] != 1],
    }


EXPERIMENT = BOARD.experiment(run, cost=lambda case: 4.0 if case["group"] == ROOMS else 12.0)
