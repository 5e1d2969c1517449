"""The page of the experiment `implicit-bias`: every number of ours comes from the stored rows."""

from collections.abc import Sequence

import numpy as np

from perpend.experiments._experiment import Results, Row
from perpend.experiments._implicit_bias import (
    FREE,
    LONG,
    NORMAL,
    ORTHOGONAL,
    PUBLISHED,
    RSGM,
    SHORT,
    TOLD,
)
from perpend.experiments._text import table

KINDS = (FREE, LONG, ORTHOGONAL)


def describe(results: Results) -> str:
    """Return the page."""
    size = results.rows("ablation")[0]
    parts = (_headline(results, size), _three_dimensions(results), _ablation(results, size))
    return "\n\n".join((*parts, _why(results, size), _published(results, size)))


def _headline(results: Results, size: Row) -> str:
    ours, frames = _limits(results, 2, SHORT), _limits(results, 2, RSGM)
    free = results.rows("ablation", kind=FREE, start="random")
    spectral = results.rows("ablation", kind=FREE, start="spectral")
    return (
        f"In three dimensions {ours['normals']} random starts without constraints end at normals, "
        f"and their rank is the codimension 2 in {ours['right']} trials; RSGM, told 3, has rank "
        f"{frames['ranks']}. With D = {size['D']}, c = {size['c']} and c' = {size['k']}, free "
        f"random starts find the codimension in {_n_right(free, size)} fits; free spectral ones "
        f"say {_span(spectral, 'codimension')}; orthogonal columns have rank "
        f"{_span(results.rows('ablation', kind=ORTHOGONAL), 'rank_1e2')} from either start."
    )


def _three_dimensions(results: Results) -> str:
    lines = []
    for c in TOLD:
        for method in (SHORT, PUBLISHED, RSGM):
            found = _limits(results, c, method)
            name = f"RSGM, told {TOLD[c]}" if method == RSGM else f"{method}, 3 starts"
            angles = "-" if method == RSGM else found["angles"]
            lines.append([c, name, found["right"], found["normals"], angles, found["least"]])
    header = ["c", "method", "rank is c", "limits that are normals"]
    header += ["from the start's projection: median, 90 % within", "nearest to S: median"]
    return f"""## In three dimensions

![Starts, paths and limits on the unit sphere: DPCP-PSGM beside RSGM](spheres.png)

500 inliers, 60 % outliers. Top, as in the paper's first figure: the inliers lie on a line, c = 2.
Bottom: they lie in a plane, c = 1. Of b and -b, which are the same normal, the one that ends on the
near side is drawn. RSGM begins at the spectral start, as published.

{table(header, lines)}

A free descent ends near the projection of its start onto the complement (Lemma 4 of the paper,
exact only for infinitely many rows), so the limits are as diverse as the starts, and their rank is
c. The columns of RSGM must stay orthogonal, which leaves no other place for the last one than the
subspace S. Told 3 in three dimensions, its frame is the whole space, every frame has the same
objective, and it stays at its start. "Short steps" are perpend's own rule with steps of at most 3
degrees, so that the paths can be seen; the published line search leaps.{_stuck(results)}"""


def _stuck(results: Results) -> str:
    rows = results.rows("limits", method=PUBLISHED)
    stuck = [row["start_off_subspace"] for row in rows if row["off_complement"] > NORMAL]
    if not stuck:
        return ""
    return (
        f" It leaves {len(stuck)} of {len(rows)} starts behind, all of them within "
        f"{np.rad2deg(np.arcsin(max(stuck))):.1f}° of S. There the gradient points nearly along b, "
        "and its test asks for a decrease in proportion to the whole gradient."
    )


def _ablation(results: Results, size: Row) -> str:
    counts = ("codimension", "rank_1e6", "rank_1e2", "n_normals")
    medians = ("largest_sine", "missed", "distance")
    lines = []
    for r in results.values("ablation", "r"):
        for kind, start, cap in _combinations(results):
            rows = results.rows("ablation", r=r, kind=kind, max_iter=cap, start=start)
            numbers = [_span(rows, name) for name in counts]
            numbers.insert(1, f"{_median(rows, 'confidence'):.2f}")
            numbers += [f"{_median(rows, name):.2g}" for name in medians]
            angle = _median(rows, "degrees_to_projection")
            shown = "-" if kind == ORTHOGONAL or np.isnan(angle) else f"{angle:.0f}°"
            lines.append([r, start, kind, cap, *numbers, shown, f"{_median(rows, 'n_iter'):.0f}"])
    header = ["r", "start", "columns", "cap", "codimension", "confidence", "rank, 1e-6"]
    header += [
        "rank, 1e-2",
        "normals",
        "largest sine",
        "missed",
        "distance",
        "from projection",
        "iterations",
    ]
    n_trials = len(results.values("ablation", "seed"))
    n_long = len({row["seed"] for row in results.rows("ablation", kind=LONG)})
    return f"""## Start times constraint

The paper argues that both matter, the random start and the missing constraint; here is each without
the other. D = {size["D"]}, c = {size["c"]}, c' = {size["k"]}, {size["N"]} inliers, outlier ratio r,
{n_trials} trials ({n_long} of the long schedule): medians, and the range where trials differ.

{table(header, lines)}

"free" is DPCP-PSGM with the published line search, "orthogonal" is RSGM with its own; "long
schedule" is the paper's piecewise geometric rule, which asks for no decrease. The cap is on the
iterations, 200 as published. The codimension is perpend's, by the largest gap and without its
finish (RSGM answers what it was told), with the confidence that perpend has in it; ranks count singular values of the {size["k"]} directions above that
share of the largest; normals are directions within a sine of {NORMAL:g} of the complement, and the
largest sine is that of the worst one. Missed: sine of the largest angle between a true normal and
the span of all directions. Distance: the answer's from the true complement. From projection: median
angle between a limit and the projection of its start, over those that reached a normal.

![Singular values of the directions, median over the trials](ablation.png)"""


def _why(results: Results, size: Row) -> str:
    c, k = size["c"], size["k"]
    random, spectral, frames, long = (
        results.rows("ablation", **where)
        for where in (
            {"kind": FREE, "start": "random", "max_iter": 1000},
            {"kind": FREE, "start": "spectral", "max_iter": 1000},
            {"kind": ORTHOGONAL, "max_iter": 1000},
            {"kind": LONG},
        )
    )
    early = results.rows("ablation", kind=FREE, start="random", max_iter=200)
    drifted = [row for row in long if row["start"] == "random"]
    jammed = [row for row in spectral if row["lp_decrease"] is not None]
    decrease = [100 * row["lp_decrease"] for row in jammed]
    parts = [
        f"**The constraint decides.** Orthogonal columns have rank {k} whatever the start, and "
        f"with five times the iterations too. They do not even contain the complement: the missed "
        f"angle has a sine of {_range(frames, 'missed')}. Told more than c, every inlier keeps a "
        "distance from zero to the frame, so the kink of the objective that makes the true answer "
        "exact is gone.",
        f"**The spectral start fails by the line search.** Its first {c} directions are nearly "
        f"normals, the others are valleys inside S: their objective is "
        f"{_median(spectral, 'start_height'):.2f} of that of random directions, though they lie no "
        f"better than those (cosine to the complement {_median(spectral, 'start_cosine'):.2f}, "
        f"random ones {_median(random, 'start_cosine'):.2f}). From there the published line search "
        f"brings {_range(spectral, 'n_normals', '.0f')} of {k} to normals and jams with the rest, "
        "also with 1000 iterations, so the rank is too large.",
    ]
    if jammed:
        parts[-1] += (
            f" They are no minima: in {sum(d > 1e-2 for d in decrease)} of {len(jammed)} trials "
            "that were looked at, a linear programme finds a descent from one of them that lowers "
            f"the objective by {min(decrease):.2f} to {max(decrease):.2f} %."
        )
    parts += [
        f"**So it is not the start as such.** Constant steps that ask for no decrease bring "
        f"{_n_normals(long)} directions to normals, from spectral starts "
        f"{_n_normals([row for row in long if row['start'] == 'spectral'])}, and the codimension "
        f"is right in {_n_right(long, size)} fits. They pay with diversity: from random starts, "
        f"limits lie {_median(drifted, 'degrees_to_projection'):.0f}° from the projections of "
        f"their starts (line search: {_median(random, 'degrees_to_projection'):.0f}°), and the "
        f"c-th singular value is {_weakest(results, LONG, c)} of the largest (line search: "
        f"{_weakest(results, FREE, c)}).",
        f"**To the rank, the cap matters only at a fixed tolerance.** With 200 iterations the rank at 1e-6 of "
        f"free random starts is right in {_n_right(early, size, 'rank_1e6')} fits, with 1000 in "
        f"{_n_right(random, size, 'rank_1e6')}; by the largest gap it is right in "
        f"{_n_right(early, size)} and {_n_right(random, size)}.",
    ]
    return "## Why\n\n" + "\n\n".join(parts)


def _published(results: Results, size: Row) -> str:
    smaller = f"smaller size: c = {size['c']} of c' = {size['k']}" if results.quick else ""
    frames = _limits(results, 2, RSGM)
    shares = {
        r: _n_right(results.rows("ablation", r=r, kind=FREE, start="random", max_iter=200), size)
        for r in (0.6, 0.7)
    }
    lines = [
        (
            "c = 2, c' = 3 in three dimensions, DPCP-PSGM: rank",
            "2 (Figure 1, an illustration)",
            _limits(results, 2, PUBLISHED)["ranks"],
            "",
        ),
        (
            "the same, RSGM: rank",
            "3, one of them in S (Figure 1)",
            f"{frames['ranks']}, one of them {frames['least']} from S",
            "it is an eigenvector of the rows, which outliers turn away from S",
        ),
        (
            "c = 10, c' = 30, r = 0.6, DPCP-PSGM: codimension right",
            "100 % (Figure 3, 10 trials)",
            f"{shares[0.6]} trials",
            smaller,
        ),
        (
            "the same, r = 0.7",
            "mostly, else close; no number is given (Figure 3)",
            f"{shares[0.7]} trials",
            smaller or "the paper does not say how it counts the rank, nor its cap",
        ),
        ("free from a spectral start", "argued, not run", "the table above", ""),
        ("orthogonal from a random start", "argued, not run", "the table above", ""),
    ]
    return "## Published and ours\n\n" + table(["", "published", "ours", "why they differ"], lines)


# -- numbers ---------------------------------------------------------------------------------------


def _limits(results: Results, c: int, method: str) -> dict[str, str]:
    """Say what became of the starts in three dimensions."""
    rows = results.rows("limits", c=c, method=method)
    firsts = [row for row in rows if row["start"] == 0]
    sine = np.array([row["off_subspace"] for row in rows]).reshape(len(firsts), -1)
    least = np.rad2deg(np.arcsin(np.minimum(np.min(sine, axis=1), 1.0)))
    middle, most = np.quantile([row["degrees_to_projection"] for row in rows], [0.5, 0.9])
    n_normals = sum(row["off_complement"] <= NORMAL for row in rows)
    return {
        "normals": f"{n_normals} of {len(rows)}",
        "right": f"{sum(row['rank'] == c for row in firsts)} of {len(firsts)}",
        "ranks": _span(firsts, "rank"),
        "angles": f"{middle:.1f}°, {most:.1f}°",
        "least": f"{np.median(least):.1f}°",
    }


def _combinations(results: Results) -> list[tuple[str, str, int]]:
    names = ("kind", "start", "max_iter")
    found = dict.fromkeys(tuple(row[name] for name in names) for row in results.rows("ablation"))
    return sorted(found, key=lambda key: (KINDS.index(key[0]), *key[1:]))


def _median(rows: Sequence[Row], name: str) -> float:
    values = [row[name] for row in rows if row[name] is not None]
    return float(np.median(values)) if values else float("nan")


def _range(rows: Sequence[Row], name: str, form: str = ".2f") -> str:
    values = [row[name] for row in rows]
    return f"{min(values):{form}} to {max(values):{form}}"


def _span(rows: Sequence[Row], name: str) -> str:
    """Say a whole number: the median, and the range if there is one."""
    values = [row[name] for row in rows]
    spread = "" if min(values) == max(values) else f" ({min(values)} to {max(values)})"
    return f"{np.median(values):.0f}{spread}"


def _weakest(results: Results, kind: str, c: int) -> str:
    """Say the median of the c-th singular value, the last one that counts, from random starts."""
    rows = results.rows("singular_values", kind=kind, start="random", index=c)
    return f"{_median(rows, 'value'):.2g}"


def _n_right(rows: Sequence[Row], size: Row, name: str = "codimension") -> str:
    return f"{sum(row[name] == size['c'] for row in rows)} of {len(rows)}"


def _n_normals(rows: Sequence[Row]) -> str:
    return f"{sum(row['n_normals'] for row in rows)} of {sum(row['k'] for row in rows)}"
