"""The table of methods and the facts on a card, without Sphinx.

Both come from the `capabilities` of the classes. A card is ``docs/methods/NAME.md`` with NAME the
class; one that has no card yet is in the table all the same.
"""

from pathlib import Path
from typing import Any

TITLES = ("method", "solves", "you must give", "cost of a step", "use it when")
AFFINE = {
    "lifted": "on rows with one more coordinate, which is 1",
    "centred": "on rows about their spatial median",
    "own": "by a search of its own",
    "none": "no",
}


SIZES = {"n": 3750, "D": 200, "c": 10, "d": 190, "k": 64, "min(c,d)": 10}  # the paper's largest


def cards(folder: Path) -> set[str]:
    """Return the names of the methods that have a card."""
    return {path.stem for path in folder.glob("*.md")} - {"index"}


def check(folder: Path) -> list[str]:
    """Return what is wrong with the cards, one sentence each."""
    from perpend import _LABELS_ONLY, _METHODS

    known, all_ = cards(folder), {*_METHODS, *_LABELS_ONLY}
    wrong = [f"{name}.md is the card of no method." for name in sorted(known - all_)]
    for name in sorted(known & all_):
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
        if f"```{{method-facts}} {name}\n" not in text:
            wrong.append(f"{name}.md does not show its facts.")
        can = _capabilities(name)[1]
        stated = ("solves", "family", "cost", "regime", "guarantee", "reference", "memory")
        wrong += [f"{name} says nothing about {f!r}." for f in stated if not getattr(can, f)]
    return wrong


def table(folder: Path) -> list[str]:
    """Return the lines of the table in Markdown: one for each method, those with a card first."""
    from perpend import _LABELS_ONLY, _METHODS

    known = cards(folder)
    lines = [_line(TITLES), _line(["---"] * len(TITLES))]
    all_ = [*_METHODS, *_LABELS_ONLY]  # in this order
    for name in sorted(all_, key=lambda name: name not in known):
        link = f"[{name}](/methods/{name}.md)" if name in known else f"`{name}`"
        solves, can = _capabilities(name)
        lines.append(_line([link, solves, can.given, can.cost, can.regime]))
    return lines


def facts(name: str) -> list[str]:
    """Return the lines of the facts on a card in Markdown."""
    from perpend._capabilities import FAMILIES

    solves, can = _capabilities(name)
    said = {
        "solves": solves,
        "family": FAMILIES[can.family],
        "you must give": can.given,
        "use it when": can.regime,
        "guarantee": can.guarantee,
        "cost of a step": can.cost,
        "memory besides the rows": can.memory,
        "time of a fit, roughly": f"{_duration(can)} for {SIZES['n']} rows with {SIZES['D']} "
        f"features and {SIZES['c']} normals, on one core",
        "affine subspaces": AFFINE[can.affine],
        "new rows": "labels and scores" if can.out_of_sample else "no: only those of the fit",
        "arrays of": ", ".join(can.backends),
    }
    return [
        _line(["", ""]),
        _line(["---", "---"]),
        *(_line([f"**{k}**", v]) for k, v in said.items()),
    ]


def _capabilities(name: str) -> tuple[str, Any]:
    """Return what a method solves, if need be by the first line of its class, and what it can."""
    import perpend

    cls = getattr(perpend, name)
    first = (cls.__doc__ or "").partition("\n")[0].rstrip(".")
    return cls.capabilities.solves or first, cls.capabilities


def _duration(can: Any) -> str:
    """Return the time of a fit in words; the formula is not better than a factor of a few."""
    seconds = can.seconds(**SIZES)
    if seconds > 100:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds:.0f} s" if seconds > 1.5 else f"{seconds:.1f} s"


def _line(cells: "list[str] | tuple[str, ...]") -> str:
    return f"| {' | '.join(cells)} |"
