"""Road planes in LiDAR frames and table planes in depth images.

A plane in space is a subspace of codimension 1 of the homogeneous rows [x y z 1]. Most points may
lie elsewhere: 63 to 67 % in the road frames.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Tables
from perpend.experiments._trials import dpcp_psgm, fitted, starts_rng
from perpend.metrics import outlier_auc, outlier_f1
from studies import _real_page as page
from studies._real_files import read_arrays
from studies._real_references import pca_plane, ransac_plane, unit_rows

TRUTH = {"roads": "is_road", "tables": "is_table"}
THRESHOLD = {"roads": 0.1, "tables": 0.01}  # metres, for RANSAC: what the sensors can do
DRAWS = 1000
RSGM_GIVEN, RANSAC = "RSGM, given c", "RANSAC, given c"
FROM_ABOVE = "kitti_0929_0071_0221"  # the frame that is drawn
REACH, CELL = 40.0, 1.0  # metres: the picture, and a pixel of it
FAR = 0.05  # relative distance that is drawn as the darkest
TO_PEEL = "test55"  # where the largest plane of an l1 method is not the table
N_PEEL, MOST = 20_000, 5  # points that are peeled, and subspaces at most


def run(case: Case) -> Tables:
    """Fit all methods to one frame; those without chance only once."""
    kind, frame, seed = case["kind"], Path(case["path"]).stem, case["seed"]
    points, truth = read_arrays(case["path"], "points", TRUTH[kind])
    rng = np.random.default_rng([seed, 7])
    if case["rows"] is not None and case["rows"] < len(points):
        chosen = np.sort(rng.choice(len(points), case["rows"], replace=False))
        points, truth = points[chosen], truth[chosen]
    points = points.astype(float)
    X = np.column_stack([points, np.ones(len(points))])
    y = np.where(truth == 1, 1, -1)

    rows, distances = _ours(X, y, seed)
    more, ransac = _references(X, y, THRESHOLD[kind], rng, once=seed == 0)
    rows += more
    given = {"frame": frame, "seed": seed}
    tables: Tables = {kind: [{**given, **row} for row in rows]}
    if frame == FROM_ABOVE and seed == 0:
        shown = {name: distances[name] for name in (page.OURS, RSGM_GIVEN)}
        tables["from_above"] = _from_above(points, truth, {**shown, RANSAC: ransac})
    if frame == TO_PEEL:
        tables["peeled"] = [{**given, **row} for row in _peeled(X, y, seed)]
    return tables


def _ours(X: Array, y: Array, seed: int) -> tuple[list[Row], dict[str, Array]]:
    """Return the rows of the library's methods, and the distances that they give."""
    from perpend import DPCP, DPCPIRLS, RSGM

    models: dict[str, Any] = {
        page.OURS: DPCP(random_state=starts_rng(seed)),
        "DPCP-PSGM, c' = 2": dpcp_psgm(2, seed),
    }
    if seed == 0:  # they start from the spectrum, so chance plays no part
        models |= {RSGM_GIVEN: RSGM(1), "DPCP-IRLS, given c": DPCPIRLS(1)}
    rows, distances = [], {}
    for name, model in models.items():
        model, seconds = fitted(model, X)  # noqa: PLW2901
        scores = model.score_samples(X)
        distances[name] = -scores
        rows.append(
            {
                "method": name,
                "codimension": int(model.codimension_),
                "confidence": float(model.confidence_),
                "auc": outlier_auc(y, scores),
                "f1": outlier_f1(y, model.labels_, positive=1),
                "seconds": seconds,
            }
        )
    return rows, distances


def _references(
    X: Array, y: Array, threshold: float, rng: np.random.Generator, *, once: bool
) -> tuple[list[Row], Array]:
    """Return the rows of RANSAC and PCA, and RANSAC's distances: relative, like those of ours."""
    began = time.process_time()
    planes = {RANSAC: ransac_plane(X[:, :3], threshold, DRAWS, rng)}
    seconds = time.process_time() - began
    if once:
        planes["PCA, given c"] = pca_plane(X[:, :3])
    rows, distances = [], {}
    for name, plane in planes.items():
        relative = np.abs(unit_rows(X) @ plane) / np.linalg.norm(plane)
        distances[name] = relative
        metres = np.abs(X @ plane) / np.linalg.norm(plane[:3])
        labels = np.where(metres < threshold, 1, -1)
        rows.append(
            {
                "method": name,
                "codimension": 1,
                "confidence": None,
                "auc": outlier_auc(y, -relative),
                "f1": outlier_f1(y, labels, positive=1) if name == RANSAC else None,
                "seconds": seconds if name == RANSAC else None,
            }
        )
    return rows, distances[RANSAC]


def _peeled(X: Array, y: Array, seed: int) -> list[Row]:
    """Return the subspaces that peeling finds, in their order; none where there is no peeling."""
    import perpend

    peel = getattr(perpend, "peel", None)
    if peel is None:
        return []
    chosen = np.random.default_rng([seed, 8]).permutation(len(X))[:N_PEEL]
    X, y = X[chosen], y[chosen]
    rows = []
    for order, part in enumerate(peel(X, max_subspaces=MOST, random_state=seed).subspaces):
        distance = np.linalg.norm(unit_rows(X) @ np.asarray(part.normals).T, axis=1)
        rows.append(
            {
                "order": order + 1,
                "codimension": int(part.codimension),
                "confidence": float(part.confidence),
                "members": len(part.members),
                "table_share": float(np.mean(y[part.members] == 1)),
                "auc": outlier_auc(y, -distance),
            }
        )
    return rows


def _from_above(points: Array, truth: Array, distances: dict[str, Array]) -> list[Row]:
    """Return pictures, line by line: the share of road points, and median distances, in a cell."""
    n = round(2 * REACH / CELL)
    cells = np.floor((points[:, :2] + REACH) / CELL).astype(int)
    inside = np.all((cells >= 0) & (cells < n), axis=1)
    flat = cells[inside, 0] * n + cells[inside, 1]
    order = np.argsort(flat, kind="stable")
    places, starts = np.unique(flat[order], return_index=True)
    images = {"truth": truth.astype(float)}
    images |= {name: distance / FAR for name, distance in distances.items()}
    rows = []
    for name, values in images.items():
        image = np.full(n * n, np.nan)
        for place, part in zip(places, np.split(values[inside][order], starts[1:]), strict=True):
            image[place] = part.mean() if name == "truth" else np.median(part)
        lines = image.reshape(n, n)[::-1, ::-1]  # x is ahead and goes up, y is left
        rows += [
            {"panel": name, "line": i, "pixels": page.hex_line(line)}
            for i, line in enumerate(lines)
        ]
    return rows


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results, kind: str) -> dict[str, Any]:
    """Draw AUC for each frame, and the road from above."""
    from perpend import plots

    panels = {
        frame: {
            method: page.numbers(results, kind, "auc", frame=frame, method=method)
            for method in results.values(kind, "method")
        }
        for frame in results.values(kind, "frame")
    }
    figures = {kind: plots.dots(panels, xlabel="AUC", highlight=page.OURS, xlim=(0, 1.02))}
    if kind == "roads" and results.rows("from_above"):
        titles = {"truth": "share of road points", page.OURS: "DPCP(): distance"}
        images = {
            titles.get(name, f"{name}: distance"): page.image(results, "from_above", name)
            for name in results.values("from_above", "panel")
        }
        figures["road"] = plots.images(images, limits=(0.0, 1.0), cmap="viridis", columns=4)
    return figures


def numbers(results: Results, kind: str) -> dict[str, Any]:
    """Return how well the planes are found, and what peeling finds."""
    peeled = results.rows("peeled") if kind == "tables" else []
    best = [
        max(row["auc"] for row in peeled if row["seed"] == seed)
        for seed in dict.fromkeys(row["seed"] for row in peeled)
    ]
    return {
        "kind": kind,
        "what": "road" if kind == "roads" else "table",
        "draws": DRAWS,
        "threshold": THRESHOLD[kind],
        "RANSAC": RANSAC,
        "from_above": FROM_ABOVE if kind == "roads" and results.rows("from_above") else "",
        "width": 2 * REACH,
        "far": FAR,
        "peeled": peeled,
        "scene": TO_PEEL,
        "n_peel": N_PEEL,
        "best": page.spread(np.array(best)),
    }
