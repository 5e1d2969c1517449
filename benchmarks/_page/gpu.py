"""The section on the fused GPU kernels."""

from typing import Any

from _page.drawing import level, whole_ticks
from _page.section import Result, Section, Target, at_least, span
from perpend.plots import COLORS, figure
from perpend.plots._style import MARKERS

PRECISIONS = {  # name in the results -> name on the page
    "bf16x2": "bf16 high + low",
    "bf16": "bf16",
    "float64": "float64",
    "float32": "float32",
}


def _groups(cases: list[Result]) -> dict[tuple[str, int, bool], list[Result]]:
    """Put cases together that differ in the features alone, in the order of their features."""
    groups: dict[tuple[str, int, bool], list[Result]] = {}
    for case in sorted(cases, key=lambda case: case["shape"][1]):
        groups.setdefault((case["precision"], case["shape"][2], case["weighted"]), []).append(case)
    names = list(PRECISIONS)
    return dict(sorted(groups.items(), key=lambda g: (g[0][2], names.index(g[0][0]), g[0][1])))


def targets(result: Result) -> list[Target]:
    """One line for each precision and number of starts; the features that miss it are named."""
    made = []
    for (precision, starts, _), cases in _groups(result["results"]).items():
        for limit in dict.fromkeys(case["target"] for case in cases if case["target"] is not None):
            required = [case for case in cases if case["target"] == limit]
            features = [case["shape"][1] for case in required]
            rows = f"{required[0]['shape'][0]:,} rows, " if len(required) == 1 else ""
            low = [c["shape"][1] for c in required if not c["share_of_copy_bandwidth"] >= limit]
            made.append(
                at_least(
                    f"{PRECISIONS[precision]}, {rows}{span(features)} features, {starts} starts",
                    [case["share_of_copy_bandwidth"] for case in required],
                    limit,
                    " of copy bandwidth",
                    f"; too low with {', '.join(map(str, low))} features" if low else "",
                )
            )
    return made


def draw(result: Result) -> dict[str, Any]:
    """Draw shares and ratios over the features, many and few starts apart."""
    groups = {key: cases for key, cases in _groups(result["results"]).items() if not key[2]}
    return {
        "cuda": _panels(groups, "share_of_copy_bandwidth", "share of the copy bandwidth"),
        "cuda-ratio": _panels(groups, "faster_than_plain_torch", "times faster than eager torch"),
    }


def _panels(groups: dict[Any, list[Result]], value: str, label: str) -> Any:
    shares = value == "share_of_copy_bandwidth"
    few = {key: cases for key, cases in groups.items() if key[1] <= 16}
    many = {key: cases for key, cases in groups.items() if key[1] > 16}
    titles = {"up to 16 starts": few, "32 starts": many}
    with figure(1, 2, panel=(4.9, 3.3), sharey=True, width_ratios=(1.6, 1)) as (drawing, axes):
        for ax, (title, shown) in zip(axes.flat, titles.items(), strict=True):
            for precision, cases in _lines(shown).items():
                i = list(PRECISIONS).index(precision)
                x = [case["shape"][1] for case in cases]
                y = [case[value] for case in cases]
                style = {"marker": MARKERS[i], "color": COLORS[i], "label": PRECISIONS[precision]}
                line = "none" if precision == "float32" else "-"  # its starts differ
                ax.plot(x, y, linestyle=line, **style)
            cases = [case for group in shown.values() for case in group]
            if shares:
                _draw_bars(ax, cases)
            ax.set(title=title, xscale="log", xlabel="features")
            features = {case["shape"][1] for case in cases}
            whole_ticks(ax.xaxis, features, 1.4 if len(features) > 6 else 1.2)
        axes[0, 0].set_ylabel(label)
        values = [case[value] for cases in groups.values() for case in cases]
        if shares:
            axes[0, 0].set_ylim(0, 1.15 * max(1, *values))
        else:
            axes[0, 0].set_yscale("log")
            whole_ticks(axes[0, 0].yaxis, [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100])
            axes[0, 0].set_ylim(min(1, *values), 1.3 * max(values))
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside upper center", ncols=4)
    return drawing


def _lines(groups: dict[Any, list[Result]]) -> dict[str, list[Result]]:
    lines: dict[str, list[Result]] = {}
    for (precision, _, _), cases in groups.items():
        lines.setdefault(precision, []).extend(cases)
    return {name: sorted(cases, key=lambda c: c["shape"][1]) for name, cases in lines.items()}


def _draw_bars(ax: Any, cases: list[Result]) -> None:
    """Draw each target over the features that it is for."""
    for limit in dict.fromkeys(case["target"] for case in cases if case["target"] is not None):
        x = [case["shape"][1] for case in cases if case["target"] == limit]
        wide = (min(x), max(x)) if len(x) > 1 else (x[0] / 1.4, x[0] * 1.4)
        whose = {PRECISIONS[case["precision"]] for case in cases if case["target"] == limit}
        only = f", {whose.pop()}" if len(whose) == 1 else ""
        level(ax, limit, f"target {limit:.2f}{only}", wide)


SECTION = Section(
    "cuda",
    "GPU kernels",
    ("results", "copy_bytes_per_second"),
    draw,
    targets,
    lambda r: {"groups": _groups(r["results"]), "precisions": PRECISIONS},
    "cuda_kernels.py",
)
