"""The numbers on the page of the experiment `implicit-bias`, from the stored rows alone."""

from typing import Any

import numpy as np

from perpend.experiments._experiment import Results, Row, select
from perpend.experiments._implicit_bias import (
    FREE,
    GIVEN,
    LONG,
    NORMAL,
    ORTHOGONAL,
    PUBLISHED,
    RSGM,
    SHORT,
)

KINDS = (FREE, LONG, ORTHOGONAL)


def numbers(results: Results) -> dict[str, Any]:
    """Return what became of the starts, in three dimensions and in the ablation."""
    rows = results.rows("ablation")
    published = results.rows("limits", method=PUBLISHED)
    stuck = [row["start_off_subspace"] for row in published if row["off_complement"] > NORMAL]
    spectral = select(rows, kind=FREE, start="spectral", max_iter=1000)
    c = rows[0]["c"]
    return {
        "size": rows[0],
        "NORMAL": NORMAL,
        "limits": {
            (c, method): _limits(results, c, method)
            for c in GIVEN
            for method in (SHORT, PUBLISHED, RSGM)
        },
        "given": GIVEN,
        "n_published": len(published),
        "n_stuck": len(stuck),
        "stuck_within": np.rad2deg(np.arcsin(max(stuck, default=0.0))),
        "combinations": _combinations(results),
        "free": select(rows, kind=FREE, start="random"),
        "early": select(rows, kind=FREE, start="random", max_iter=200),
        "random": select(rows, kind=FREE, start="random", max_iter=1000),
        "any_spectral": select(rows, kind=FREE, start="spectral"),
        "spectral": spectral,
        "any_frames": select(rows, kind=ORTHOGONAL),
        "frames": select(rows, kind=ORTHOGONAL, max_iter=1000),
        "long": select(rows, kind=LONG),
        "decrease": [100 * r["lp_decrease"] for r in spectral if r["lp_decrease"] is not None],
        "weakest": {
            kind: results.column("singular_values", "value", kind=kind, start="random", index=c)
            for kind in (FREE, LONG)
        },
        "n_trials": len(results.values("ablation", "seed")),
        "where": select,
        "whole": whole,
    }


def whole(rows: list[Row], name: str) -> str:
    """Say a whole number: the median, and the range if there is one."""
    values = [row[name] for row in rows]
    spread = "" if min(values) == max(values) else f" ({min(values)} to {max(values)})"
    return f"{np.median(values):.0f}{spread}"


def _limits(results: Results, c: int, method: str) -> Row:
    """Return what became of the starts in three dimensions; angles in degrees."""
    rows = results.rows("limits", c=c, method=method)
    firsts = select(rows, start=0)
    sine = np.array([row["off_subspace"] for row in rows]).reshape(len(firsts), -1)
    least = np.rad2deg(np.arcsin(np.minimum(np.min(sine, axis=1), 1.0)))
    return {
        "n": len(rows),
        "normals": sum(row["off_complement"] <= NORMAL for row in rows),
        "trials": len(firsts),
        "right": len(select(firsts, rank=c)),
        "ranks": whole(firsts, "rank"),
        "angles": np.quantile([row["degrees_to_projection"] for row in rows], [0.5, 0.9]),
        "least": np.median(least),
    }


def _combinations(results: Results) -> list[tuple[Row, list[Row]]]:
    """Return every combination of the ablation, and its trials."""
    names = ("r", "kind", "start", "max_iter")
    groups = results.groups("ablation", *names)
    ratios = results.values("ablation", "r")
    keys = sorted(groups, key=lambda k: (ratios.index(k[0]), KINDS.index(k[1]), *k[2:]))
    return [(dict(zip(names, key, strict=True)), groups[key]) for key in keys]
