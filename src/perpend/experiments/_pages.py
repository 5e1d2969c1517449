"""The Markdown pages: one for each experiment, and one that joins them.

Pages say how they were made, but neither when nor where, so equal results give equal pages.
"""

import re
import shlex
from pathlib import Path

from perpend.experiments import NAMES
from perpend.experiments._experiment import Experiment, Results
from perpend.experiments._text import TEMPLATES, filled

PAGE = "page.md"
TEMPLATE_FOLDER = Path(__file__).parent / TEMPLATES
MARK = "<!-- Written by perpend reproduce: changes by hand are lost. -->"
LABELS = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s]+)\)")  # a relative link or image


def write_page(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write page.md of one experiment."""
    text = filled(
        TEMPLATE_FOLDER / "page.md",
        mark=MARK,
        title=experiment.title,
        command=_command(experiment, results),
        results=results,
        duration=duration(results.seconds),
        versions=[f"{LABELS.get(name, name)} {v}" for name, v in results.versions.items()],
        description=experiment.describe(results).strip(),
    )
    _write(folder / PAGE, text)


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
    """Join all pages of experiments and studies in a folder, those of the paper first."""
    folder = folder.resolve()
    there = sorted(path.parent.name for path in folder.glob(f"*/{PAGE}") if may_be_replaced(path))
    names = [name for name in NAMES if name in there]
    names += [name for name in there if name not in NAMES]
    texts = {name: (folder / name / PAGE).read_text(encoding="utf-8") for name in names}
    text = filled(
        TEMPLATE_FOLDER / "joint.md",
        mark=MARK,
        titles={title: anchor(title) for title in map(_title, texts.values())},
        parts=[_one_deeper(text, f"{folder.name}/{name}") for name, text in texts.items()],
    )
    page = joint_page(folder)
    _write(page, text)
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


def _command(experiment: Experiment, results: Results) -> str:
    """Return the command that makes a page."""
    options = {f"--{name}": results.settings.get(name) for name in ("seeds", "scene", "variable")}
    words = [*experiment.command.split(), experiment.name, *(["--quick"] if results.quick else [])]
    for option, value in options.items():
        words += [] if value is None else [option, str(value)]
    return shlex.join(words)


def _title(text: str) -> str:
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))


def anchor(title: str) -> str:
    """Return the anchor that Markdown viewers give a heading.

    >>> anchor("Codimension: found, not told")
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


def _write(path: Path, text: str) -> None:
    from perpend._files import writing

    with writing(path) as stream:
        stream.write(text.encode())
