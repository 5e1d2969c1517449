"""The sections on the work and the time of whole fits."""

from statistics import median
from typing import Any

from _text import percent

from _page.drawing import Dots, above, beside, dot_plot, name_lines, upright_line, whole_ticks
from _page.section import Result, Section, Target, at_least, at_most, number, span
from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

OURS = "DPCP"

# -- products --------------------------------------------------------------------------------------


def targets_products(result: Result) -> list[Target]:
    """The target is on the median fit; how many fits are within stands beside it."""
    return [
        at_most(
            f"{percent(row['r'])} outliers, median of {row['seeds']} fits",
            [row["median"]],
            row["target"],
            " products",
            f"; {percent(row['within'])} of the fits within",
        )
        for row in result["results"]
        if row["way"] == OURS
    ]


def draw_products(result: Result) -> dict[str, Any]:
    """Draw median, 90 % and largest, a panel for each share of outliers."""
    shares = list(dict.fromkeys(row["r"] for row in result["results"]))
    with figure(len(shares), 1, panel=(6.8, 1.6), sharex=True) as (drawing, axes):
        for ax, r in zip(axes.flat, shares, strict=True):
            rows = [row for row in result["results"] if row["r"] == r]
            for i, row in enumerate(rows):
                color = COLORS[i]
                ax.plot([row["median"], row["ninety_percent"]], [i, i], color=color, linewidth=4,
                        alpha=0.35, solid_capstyle="butt")  # fmt: skip
                ax.plot([row["median"], row["largest"]], [i, i], color=color, linewidth=1)
                ax.plot(row["largest"], i, "|", color=color, markersize=8)
                ax.plot(row["median"], i, "o", color=color, markersize=7)
                beside(ax, row["largest"], i, f"median {number(row['median'])}", color)
            name_lines(ax, [row["way"] for row in rows])
            upright_line(ax, rows[0]["target"], f"target {rows[0]['target']}")
            ax.set(xscale="log")
            ax.set_title(f"{percent(r)} outliers", loc="left", fontsize=10, pad=15)
        low = min(row["median"] for row in result["results"])
        high = max(row["largest"] for row in result["results"])
        for ax in axes.flat:
            whole_ticks(ax.xaxis, [10, 20, 50, 100, 200, 500, 1000, 2000, 5000])
            ax.set_xlim(0.75 * low, 2.2 * high)
        drawing.supxlabel(
            "products with the data (dot: median; thick: to 90 % of the fits; tick: the largest)",
            fontsize=9,
        )
    return {"products": drawing}


# -- whole fits ------------------------------------------------------------------------------------


def _by_method(rows: list[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    return groups


def targets_fits(result: Result) -> list[Target]:
    """For every data set."""
    return [
        at_most(
            f"`{name}`, each of {len(rows)} data sets",
            [row["gram_pcas"] for row in rows],
            rows[0]["target"],
            " gram-PCAs",
        )
        for name, rows in _by_method(result["gram_pcas"]).items()
    ] + [
        at_least(
            f"time of {name}, over that of `DPCP()`",
            [row["times_dpcp"] for row in rows],
            1,
        )
        for name, rows in _by_method(result["given"]).items()
        if name == "RSGM, given c, to 1e-6"
    ]


def draw_fits(result: Result) -> dict[str, Any]:
    """Draw one dot for each data set."""
    gram, given = _by_method(result["gram_pcas"]), _by_method(result["given"])
    with figure(1, 2, panel=(5.2, 2.5)) as (drawing, axes):
        left, right = axes.flat
        seeds = range(min(len(rows) for rows in gram.values()))
        each = {f"{i}": Dots([rows[i]["gram_pcas"] for rows in gram.values()]) for i in seeds}
        dot_plot(left, list(gram), each)
        for i, rows in enumerate(gram.values()):
            edge = 1 - (i + 1) / len(gram), 1 - i / len(gram)
            upright_line(left, rows[0]["target"], f"target {rows[0]['target']}", edge)
            middle = median(row["gram_pcas"] for row in rows)
            above(left, middle, i, span(row["gram_pcas"] for row in rows), COLORS[0])
        left.set_xlim(0, 1.25 * max(row["target"] for row in result["gram_pcas"]))
        left.set(xlabel="time in gram-PCAs of the same rows")
        left.set_title("50,000 × 200, only the rows given", pad=16)
        seeds = range(min(len(rows) for rows in given.values()))
        each = {
            f"{i}": Dots([rows[i]["times_dpcp"] for rows in given.values()], COLORS[1])
            for i in seeds
        }
        dot_plot(right, list(given), each)
        for i, rows in enumerate(given.values()):
            middle = median(row["times_dpcp"] for row in rows)
            if middle != 1:
                above(right, middle, i, f"{number(middle)} ×", COLORS[1])
        right.axvline(1, color=MUTED, linewidth=1.1, zorder=1)
        largest = max(row["times_dpcp"] for row in result["given"])
        right.set(xlabel="time in fits of DPCP(), given only the rows", xlim=(0, 1.25 * largest))
        right.set_title("5,000 × 200, 70 % outliers", pad=16)
    return {"fits": drawing}


PRODUCTS = Section("products", "Fewer iterations", ("results",), draw_products, targets_products)
FITS = Section(
    "fits",
    "Whole fits",
    ("gram_pcas", "given"),
    draw_fits,
    targets_fits,
    lambda r: {
        name: _by_method(rows) for name, rows in r.items() if name in ("gram_pcas", "given")
    },
)
