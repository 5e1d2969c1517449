"""The section on what is tolerated: noise, stretched inliers, outliers beyond the l1 limit."""

from typing import Any

from _text import percent

from _page.drawing import Dots, beside, dot_panels, name_lines
from _page.section import Result, Section, Target, at_least, at_most, span
from perpend.plots import COLORS, figure
from perpend.plots._style import MARKERS

PARTS = ("noise", "stretched", "beyond")


def _of(result: Result, part: str) -> list[Result]:
    return [row for row in result["results"] if row["part"] == part]


def _shape(row: Result) -> str:
    return f"{row['n_features']} features, codimension {row['codimension']}, {percent(row['r'])}"


def _name(row: Result) -> str:
    end = f", stretch {row['stretch']:g}" if row["part"] == "stretched" else ""
    return f"{_shape(row)} outliers{end}"


def targets(result: Result) -> list[Target]:
    """With noise a target for each shape, one for counts and noise; elsewhere for each setting."""
    limits, noisy = result["limits"], _of(result, "noise")
    found = []
    for shape in dict.fromkeys(map(_shape, noisy)):
        ratios = [row["ratio_of_medians"] for row in noisy if _shape(row) == shape]
        what = f"error over PCA on the inliers, {shape} outliers"
        found.append(at_most(what, ratios, limits["ratio"]))
    if noisy:
        right = [row["recovered"] / row["seeds"] for row in noisy]
        what = "share of seeds with the right codimension, each noisy setting"
        found.append(at_least(what, right, noisy[0]["least"]))
        found.append(_noise_target(noisy, limits["noise"]))
    found += [
        Target(
            _name(row),
            f"{percent(row['least'])} recovered",
            f"{row['recovered']} of {row['seeds']}",
            row["recovered"] >= row["least"] * row["seeds"],
        )
        for part in ("stretched", "beyond")
        for row in _of(result, part)
    ]
    return found


def _noise_target(noisy: list[Result], off: float) -> Target:
    values = [row["median_noise"] / row["noise"] for row in noisy]
    met = all(abs(value - 1) <= off for value in values)
    what = "`noise_` over the true noise, each noisy setting"
    return Target(what, f"{1 - off:g} to {1 + off:g}", span(values), met)


def draw(result: Result) -> dict[str, Any]:
    """Draw the parts that are stored."""
    drawings = {}
    for part in PARTS:
        rows = _of(result, part)
        if rows and part == "noise":
            drawings[f"robustness-{part}"] = _draw_ratios(rows, result["limits"]["ratio"])
        elif rows:
            drawings[f"robustness-{part}"] = _draw_shares(rows)
    return drawings


def _draw_ratios(rows: list[Result], limit: float) -> Any:
    """Draw a line for each shape, a mark for each noise."""
    shapes = list(dict.fromkeys(map(_shape, rows)))
    ratios = {(_shape(row), row["noise"]): row["ratio_of_medians"] for row in rows}
    levels = dict.fromkeys(row["noise"] for row in rows)
    series = {
        f"noise {noise:g}": Dots(
            [ratios.get((shape, noise), float("nan")) for shape in shapes],
            color, marker, filled=False,
        )
        for noise, color, marker in zip(levels, COLORS, MARKERS, strict=False)
    }  # fmt: skip
    label = "median error over that of PCA on the true inliers"
    return dot_panels({"": series}, shapes, xlabel=label, lines={f"target {limit:g}": limit})


def _draw_shares(rows: list[Result]) -> Any:
    """Draw the share of recovered seeds, each with the share that is required."""
    with figure(1, 1, panel=(6.8, 0.32 * len(rows) + 0.9)) as (drawing, axes):
        ax = axes[0, 0]
        for i, row in enumerate(rows):
            share = row["recovered"] / row["seeds"]
            ax.barh(i, share, 0.5, color=COLORS[0])
            ax.plot([row["least"]] * 2, [i - 0.4, i + 0.4], color=COLORS[1], linewidth=2)
            beside(ax, max(share, row["least"]), i, f"{row['recovered']} of {row['seeds']}")
        name_lines(ax, [_name(row) for row in rows])
        ax.set(xlabel="share of the seeds; marks: the targets")
        ax.set_xlim(0, 1.2)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    return drawing


SECTION = Section(
    "robustness",
    "Noise, stretched inliers, many outliers",
    ("results", "targets", "limits", "settings"),
    draw,
    targets,
    lambda r: {"parts": {part: _of(r, part) for part in PARTS}, "name": _name},
)
