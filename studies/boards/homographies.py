"""Two views: homographies and fundamental matrices from matches, many of them wrong.

HOMOGR has one homography a pair, true by hand-marked points. In AdelaideRMF many scenes have
several; the one with most matches is sought, and those of the others are outliers with a structure
of their own. A seed is an order of the matches.
"""

from functools import partial
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import starts_rng
from perpend.metrics import outlier_f1
from studies.boards import _board as base
from studies.boards._files import array_names, files, read_arrays
from studies.boards._peers import row_of, two_views
from studies.boards._references import transfer_errors

OWN = "perpend"  # homography(first, second) or fundamental_matrix(first, second)
MAGSAC = "OpenCV USAC_MAGSAC"
PIXELS = 3.0  # given to all others
HOMOGR = "homographies, HOMOGR"
GROUPS = {"H": "homographies, AdelaideRMF", "F": "fundamental matrices, AdelaideRMF"}
FEW = {"adam", "boat", "bonython", "sene", "cube", "book"}  # of the quick size


def items(settings: Settings) -> list[Case]:
    """Return every pair of images."""
    found = []
    for file in files("homogr", "adelaide"):
        for group, name in scenes(file):
            if not settings.quick or name in FEW:
                seeds = 10 if group == HOMOGR else 3
                found.append({**file, "group": group, "scene": name, "seeds": seeds})
    return found


def scenes(file: Case) -> list[tuple[str, str]]:
    """Return groups and names of the scenes in a file; one under two names is taken once."""
    names = array_names(file["path"])
    if file["kind"] == "homogr":
        ends = [name for name in names if name.endswith("_inlier")]
        return [(HOMOGR, name.removesuffix("_inlier")) for name in sorted(ends)]
    seen: dict[bytes, tuple[str, str]] = {}
    for name in sorted((name for name in names if name.endswith("_pts")), key=_homographies_first):
        (points,) = read_arrays(file["path"], name)
        seen.setdefault(name[:1].encode() + points.tobytes(), (GROUPS[name[0]], name[2:-4]))
    return list(seen.values())


def _homographies_first(name: str) -> tuple[bool, str]:
    return name[0] != "H", name.removesuffix("_pts")


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """At least as good as MAGSAC++."""
    if HOMOGR not in board.groups(results):
        return []

    def both(column: str) -> tuple[float, float]:
        ours, theirs = (board.value(results, column, name, HOMOGR) for name in (OWN, MAGSAC))
        return ours, theirs

    return [
        base.Target(f"HOMOGR: mean F1 of the mask at least that of {MAGSAC}", *both("f1")),
        base.Target(
            f"HOMOGR: median error at the marked points, in pixels, at most that of {MAGSAC}",
            *both("error"),
            sign=-1,
        ),
    ]


BOARD = base.Board(
    name="boards/homographies",
    title="Two views",
    about="homographies and fundamental matrices, beside OpenCV and PoseLib",
    own=OWN,
    item="pair",
    measures=(
        base.Measure("f1", "F1 of the mask"),
        base.Measure("error", "median error at marked points (pixels)", -1, 2, np.median),
    ),
    targets=targets,
    items=items,
    sources=("homogr", "adelaide"),
)


def run(case: Case) -> Tables:
    """Estimate one matrix by every method."""
    import perpend

    group, seed = case["group"], case["seed"]
    first, second, truth, check = read_pair(case)
    order = np.random.default_rng([seed, 11]).permutation(len(first))
    first, second, truth = first[order], second[order], truth[order]
    y = np.where(truth, 1, -1)

    def measured(found: Any) -> Row:
        matrix, mask = found
        row: Row = {"f1": outlier_f1(y, np.where(mask, 1, -1), positive=1)}
        if check is not None:
            row["error"] = float(np.median(transfer_errors(np.asarray(matrix), *check)))
        return row

    homography = group != GROUPS["F"]
    find = perpend.homography if homography else perpend.fundamental_matrix
    own = partial(find, first, second, random_state=starts_rng(seed))
    rows = [row_of(OWN, own, measured, may_fail=False)]
    for name, estimate in two_views(first, second, PIXELS, seed, homography=homography).items():
        rows.append(row_of(name, estimate, measured))
    given = {"group": group, "item": case["scene"], "seed": seed}
    given |= {"n": len(y), "share": float(truth.mean())}
    return {base.SCORES: BOARD.rows(given, rows)}


def read_pair(case: Case) -> tuple[Array, Array, Array, tuple[Array, Array] | None]:
    """Return the matches, which of them are right, and the marked points, if there are some."""
    path, name = case["path"], case["scene"]
    if case["group"] == HOMOGR:
        ends = ("first", "second", "inlier", "check_first", "check_second")
        first, second, inlier, *check = read_arrays(path, *(f"{name}_{end}" for end in ends))
        a, b = (points.astype(float) for points in check)
        return first.astype(float), second.astype(float), inlier == 1, (a, b)
    kind = next(kind for kind, group in GROUPS.items() if group == case["group"])
    points, label = read_arrays(path, f"{kind}_{name}_pts", f"{kind}_{name}_label")
    points = points.astype(float)
    largest = np.argmax(np.bincount(label)[1:]) + 1
    return points[:, :2], points[:, 3:5], label == largest, None


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    return {**base.facts(BOARD, results), "pixels": PIXELS, "HOMOGR": HOMOGR}


EXPERIMENT = BOARD.experiment(run)
