"""The Markdown pages: one for each experiment, and one that joins them.

Pages say how they were made, but neither when nor where, so equal results give equal pages.
"""

import re
import shlex
from pathlib import Path

from perpend.experiments import NAMES
from perpend.experiments._experiment import Experiment, Results

PAGE = "page.md"
MARK = "<!-- Written by perpend reproduce: changes by hand are lost. -->"
LABELS = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s]+)\)")  # a relative link or image


def write_page(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write page.md of one experiment."""
    tables = ", ".join(f"[{name}.csv]({name}.csv)" for name in results.tables)
    parts = [
        MARK,
        f"# {experiment.title}",
        _how_made(results),
        experiment.describe(results).strip(),
        f"All numbers: [results.json](results.json), {tables}",
    ]
    _write(folder / PAGE, parts)


def headline(experiment: Experiment, results: Results) -> str:
    """Return the first paragraph of the description, as one line of plain text."""
    first = experiment.describe(results).strip().split("\n\n")[0]
    return re.sub(r"[*`]", "", " ".join(first.split()))


def joint_page(folder: Path) -> Path:
    """Return where the page goes that joins all experiments in a folder: beside it."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.md")


def may_be_replaced(page: Path) -> bool:
    """Whether the joint page may be written: it is not there, or it is one of ours."""
    if not page.exists():
        return True
    with page.open(encoding="utf-8", errors="replace") as stream:
        return stream.readline().strip() == MARK


def write_joint_page(folder: Path) -> Path:
    """Join the pages of all experiments that have stored results in a folder."""
    folder = folder.resolve()
    pages = {name: folder / name / PAGE for name in NAMES if (folder / name / PAGE).exists()}
    texts = {name: page.read_text(encoding="utf-8") for name, page in pages.items()}
    contents = "\n".join(f"- [{_title(text)}](#{_anchor(_title(text))})" for text in texts.values())
    parts = [
        MARK,
        "# Reproduction",
        "The figures and tables of the paper, the published numbers beside ours, and why they "
        "differ where they do. `perpend reproduce list` names the experiments; each part below "
        "says which command makes it.",
        contents,
        *(_one_deeper(text, f"{folder.name}/{name}") for name, text in texts.items()),
    ]
    page = joint_page(folder)
    _write(page, parts)
    return page


def duration(seconds: float) -> str:
    """Say a time in the units one would.

    >>> duration(0.4), duration(42), duration(754), duration(12000)
    ('1 s', '42 s', '13 min', '3 h 20 min')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _how_made(results: Results) -> str:
    options = {f"--{name}": results.settings.get(name) for name in ("seeds", "scene", "variable")}
    words = ["perpend", "reproduce", results.experiment, *(["--quick"] if results.quick else [])]
    for option, value in options.items():
        words += [] if value is None else [option, str(value)]
    size = "quick size, smaller than published" if results.quick else "full size"
    cases = f"{results.n_cases} case{'' if results.n_cases == 1 else 's'}"
    stack = ", ".join(f"{LABELS.get(name, name)} {v}" for name, v in results.versions.items())
    return (
        f"Made by `{shlex.join(words)}` ({size}): {cases}, {duration(results.seconds)} of "
        f"computing on one core. {stack}."
    )


def _title(text: str) -> str:
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def _anchor(title: str) -> str:
    """Return the anchor that Markdown viewers give a heading.

    >>> _anchor("Codimension: found, not told")
    'codimension-found-not-told'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _one_deeper(text: str, path: str) -> str:
    """Return a page as a part of another: headings one level down, links from one folder up."""
    lines, in_code = [], False
    for line in text.replace(MARK, "").strip().splitlines():
        in_code ^= line.startswith("```")
        deeper = f"#{line}" if line.startswith("#") and not in_code else line
        lines.append(deeper if in_code else LINK.sub(rf"]({path}/\1)", deeper))
    return "\n".join(lines)


def _write(path: Path, parts: list[str]) -> None:
    from perpend._files import writing

    with writing(path) as stream:
        stream.write(("\n\n".join(part for part in parts if part) + "\n").encode())
