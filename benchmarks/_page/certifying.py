"""The section on what certifying costs."""

from _page.section import Bar, Result, Section, at_most, number
from perpend.experiments._text import percent, table


def describe(result: Result) -> str:
    """Say what a clear answer costs, and what happens where it is not clear."""
    header = ["features", "normals", "outliers", "noise", "right", "clear fits",
              "grams (median, 90 %, largest)", "where not clear"]  # fmt: skip
    lines = [
        [
            str(row["D"]),
            str(row["c"]),
            percent(row["r"]),
            f"{row['noise']:g}",
            f"{row['right']} of {row['seeds']}",
            str(row["clear"]),
            *(_three(row[name]) for name in ("clear_grams", "other_grams")),
        ]
        for row in result["results"]
    ]
    return "\n\n".join(
        [
            "The descents propose, joint reweighting decides: each of its steps is one weighted "
            "gram matrix. A fit is *clear* if the descents' proposal was certified on their way; "
            "where it was not, the second engine looks for itself and needs more of them.",
            table(header, lines),
        ]
    )


def _three(counts: list[float] | None) -> str:
    return "–" if counts is None else ", ".join(f"{count:g}" for count in counts)


def bars(result: Result) -> list[Bar]:
    """Ask it of nine fits in ten; the largest stands in the table."""
    return [
        at_most(
            f"{row['D']} features, {percent(row['r'])} outliers, noise {row['noise']:g}, "
            f"90 % of {row['clear']} clear fits",
            [row["clear_grams"][1]],
            result["bar"],
            " weighted grams",
            f" (median {number(row['clear_grams'][0])})",
        )
        for row in result["results"]
        if 2 * row["clear"] > row["seeds"]
    ]


SECTION = Section(
    "certifying",
    "What certifying costs",
    "python benchmarks/certifying.py",
    ("bar", "results"),
    describe,
    bars,
    lambda _: {},
)
