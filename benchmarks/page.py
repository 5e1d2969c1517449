"""Make docs/benchmarks.md, with its pictures, from the stored results alone.

Nothing is measured here, and the page says neither when nor on which machine by name, so equal
results give equal pages. A section without stored results says which command makes them.

Run ``python benchmarks/page.py``; ``--results`` and ``--out`` name other folders than
benchmarks/results and docs.
"""

import argparse
import json
from pathlib import Path

from _page import (
    batched,
    certifying,
    constants,
    decisions,
    fits,
    gpu,
    gpu_fits,
    growth,
    hotloop,
    labels,
    low_dimension,
    quality,
    robustness,
    several,
)
from _page.section import Bar, Result, Section, bars_table
from _store import RESULTS

from perpend.experiments._pages import anchor
from perpend.experiments._text import table
from perpend.plots import save

DOCS = Path(__file__).parents[1] / "docs"
MARK = "<!-- Written by benchmarks/page.py: changes by hand are lost. -->"
SECTIONS = [
    hotloop.SECTION,
    fits.PRODUCTS,
    fits.FITS,
    certifying.SECTION,
    growth.GROWTH,
    growth.MANY_ROWS,
    low_dimension.SECTION,
    gpu.SECTION,
    gpu_fits.SECTION,
    batched.SECTION,
    robustness.SECTION,
    labels.SECTION,
    several.SECTION,
    decisions.SECTION,
    constants.SECTION,
]
HARDWARE = {"cpu": "", "device": "", "python": "Python ", "numpy": "NumPy ", "torch": "torch "}
HARDWARE |= {"cuda": "CUDA ", "driver": "driver "}


def load(folder: Path) -> dict[str, Result]:
    """Return all stored results by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def usable(section: Section, results: dict[str, Result]) -> bool:
    """Whether there are results for a section, of the form that its benchmark writes today."""
    return all(key in results.get(section.name, {}) for key in section.keys)


def all_bars(results: dict[str, Result]) -> list[tuple[str, Bar]]:
    """Return every bar with the title of its section."""
    found = [
        (section.title, bar)
        for section in SECTIONS
        if usable(section, results)
        for bar in section.bars(results[section.name])
    ]
    if "recovery" in results:
        found += [("Right answers", bar) for bar in quality.recovery_bars(results["recovery"])]
    return found


def page(results: dict[str, Result]) -> str:
    """Return the page as Markdown."""
    titles = [section.title for section in SECTIONS]
    parts = [
        MARK,
        "# Benchmarks",
        "What perpend costs, drawn from stored results; `python benchmarks/page.py` makes this "
        "page again and measures nothing. `make bench` measures the CPU part on your machine and "
        "prints it, `make bench-store` measures in full, stores and draws, and `make bench-cuda` "
        "does so for the GPU part. A *bar* is what we ask of ourselves; whether it is held is "
        "computed from the stored numbers.",
        _verdict(all_bars(results)),
        "\n".join(f"- [{title}](#{anchor(title)})" for title in [*titles, "Right answers"]),
        "## What was measured, on what",
        "Times are compared within one run, as ratios wherever that is possible, because they "
        "depend on the machine; milliseconds say what these machines took.",
        _hardware(results),
        *(_section(section, results) for section in SECTIONS),
        "## Right answers",
        "Speed is worth nothing without them; these benchmarks count answers instead of time.",
        _right_answers(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _verdict(bars: list[tuple[str, Bar]]) -> str:
    missed = [(title, bar) for title, bar in bars if not bar.held]
    verdict = f"{len(bars) - len(missed)} of {len(bars)} bars are held"
    if not missed:
        return f"{verdict}."
    lines = [
        f"- {bar.verdict}: {bar.what}, asked {bar.asked}, measured {bar.measured} "
        f"([{title}](#{anchor(title)}))"
        for title, bar in missed
    ]
    return "\n".join([f"{verdict}. The others:", "", *lines])


def _hardware(results: dict[str, Result]) -> str:
    rows = []
    for section in SECTIONS:
        if usable(section, results):
            told = results[section.name].get("hardware", {})
            words = [f"{word}{told[key]}" for key, word in HARDWARE.items() if told.get(key)]
            rows.append([section.title, ", ".join(words) or "counted, the same on every machine"])
    return table(["part", "measured on"], rows) if rows else ""


def _section(section: Section, results: dict[str, Result]) -> str:
    file = f"[{section.name}.json](../benchmarks/results/{section.name}.json)"
    again = f"`{section.command} --store`"
    if not usable(section, results):
        form = f" in today's form ({file} is older)" if section.name in results else ""
        text = f"Left out: no results are stored{form}. {again} makes them."
        return f"## {section.title}\n\n{text}"
    result = results[section.name]
    bars = section.bars(result)
    parts = [
        f"## {section.title}",
        section.describe(result),
        bars_table(bars) if bars else "",
        f"Measured by {again}; all numbers: {file}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _right_answers(results: dict[str, Result]) -> str:
    lines = []
    for name, line in quality.LINES.items():
        again = f"`python benchmarks/{name}.py --store`"
        if name in results:
            file = f"[{name}.json](../benchmarks/results/{name}.json)"
            lines.append(f"- {file}, by {again}: {line(results[name])}.")
        else:
            lines.append(f"- Left out: no results are stored. {again} makes them.")
    return "\n".join(lines)


def main() -> None:
    """Write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=DOCS)
    chosen = parser.parse_args()
    results = load(chosen.results)
    pictures = chosen.out / "benchmarks"
    pictures.mkdir(parents=True, exist_ok=True)
    for section in SECTIONS:
        if usable(section, results):
            for stem, drawing in section.draw(results[section.name]).items():
                save(drawing, pictures / stem)
                print(f"wrote {stem}.png and {stem}.svg")
        else:
            print(f"left out {section.name}: run {section.command} --store")
    (chosen.out / "benchmarks.md").write_text(page(results), encoding="utf-8")
    print("wrote benchmarks.md")


if __name__ == "__main__":
    main()
