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
    checkpoints,
    constants,
    dask_cluster,
    decisions,
    disk,
    fits,
    gpu,
    gpu_fits,
    growth,
    hotloop,
    imports,
    labels,
    low_dimension,
    missing,
    planes,
    published,
    quality,
    robustness,
    several,
    streaming,
    suite,
)
from _page.section import TEMPLATES, Result, Section, Target, targets_table
from _store import RESULTS
from _text import anchor, filled

from perpend.plots import save

DOCS = Path(__file__).parents[1] / "docs"
SECTIONS = [
    hotloop.SECTION,
    fits.PRODUCTS,
    fits.FITS,
    certifying.SECTION,
    growth.GROWTH,
    growth.MANY_ROWS,
    disk.SECTION,
    dask_cluster.SECTION,
    low_dimension.SECTION,
    published.RELEASED,
    imports.SECTION,
    checkpoints.SECTION,
    gpu.SECTION,
    gpu_fits.SECTION,
    batched.SECTION,
    robustness.SECTION,
    published.SCHEDULES,
    labels.SECTION,
    missing.SECTION,
    streaming.SECTION,
    several.SECTION,
    planes.SECTION,
    decisions.SECTION,
    constants.SECTION,
    suite.SECTION,
]
QUALITY = {
    "recovery": quality.recovery_targets,
    "grid_search": quality.grid_search_targets,
}
HARDWARE = {"cpu": "", "device": "", "python": "Python ", "numpy": "NumPy ", "torch": "torch "}
HARDWARE |= {"cuda": "CUDA ", "driver": "driver "}


def load(folder: Path) -> dict[str, Result]:
    """Return all stored results by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def usable(section: Section, results: dict[str, Result]) -> bool:
    """Whether there are results for a section, of the form that its benchmark writes today."""
    return all(key in results.get(section.name, {}) for key in section.keys)


def all_targets(results: dict[str, Result]) -> list[tuple[str, Target]]:
    """Return every target with the title of its section."""
    found = [
        (section.title, target)
        for section in SECTIONS
        if usable(section, results)
        for target in section.targets(results[section.name])
    ]
    for name, targets in QUALITY.items():
        if name in results:
            found += [("Right estimates", target) for target in targets(results[name])]
    return found


def page(results: dict[str, Result]) -> str:
    """Return the page as Markdown."""
    there = {section.name for section in SECTIONS if usable(section, results)}
    targets = all_targets(results)
    return filled(
        TEMPLATES / "benchmarks.md",
        sections=SECTIONS,
        results=results,
        there=there,
        anchor=anchor,
        targets_table=targets_table,
        hardware={name: _hardware(results[name]) for name in there},
        n_targets=len(targets),
        missed=[(title, target) for title, target in targets if not target.met],
    )


def _hardware(result: Result) -> str:
    known = result.get("hardware", {})
    words = [f"{word}{known[key]}" for key, word in HARDWARE.items() if known.get(key)]
    return ", ".join(words) or "counted, the same on every machine"


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
