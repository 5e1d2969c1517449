"""The Markdown pages: one for each experiment and study, and one that joins them.

They are made of stored results, and say neither when nor where these were computed, so equal
results give equal pages. ``templates/NAME.md`` is the text; the numbers in it come from ``numbers``
in ``paper/NAME.py`` for the paper's experiments, in the study's own module for the others.
"""

import re
import shlex
from importlib import import_module
from pathlib import Path

from perpend._files import write
from perpend.exceptions import InputError
from perpend.experiments import PAPER, Results
from perpend.experiments._store import RESULTS, read_results
from studies import STUDIES
from studies._text import anchor, duration, filled

PAGE = "page.md"
TEMPLATES = Path(__file__).parent / "templates"
MARK = "<!-- Written by python -m studies: changes by hand are lost. -->"
OUR_MARK = re.compile(r"<!-- Written by .*: changes by hand are lost\. -->")  # older ones as well
LABELS = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s]+)\)")  # a relative link or image
BOOKS = {name: book for book in (PAPER, STUDIES) for name in book.names}
BOARDS, BOARDS_TITLE = "boards", "Beside other methods"
FIRST = next(name for name in BOOKS if name.startswith(f"{BOARDS}/"))
TITLED = [n for name in BOOKS for n in ([BOARDS, name] if name == FIRST else [name])]


def write_pages(folder: Path) -> Path:
    """Write the page of everything that has results in a folder, and the one that joins them."""
    stored = [name for name in BOOKS if (folder / name / RESULTS).exists()]
    if not stored:
        raise InputError(f"{folder}: has no stored results. Compute them first.")
    boards = {}
    for name in stored:
        results = read_results(folder / name)
        if results is not None:
            write(folder / name / PAGE, page(name, results))
            if name.startswith(f"{BOARDS}/"):
                boards[name] = results
    if boards:
        write(folder / BOARDS / PAGE, boards_page(boards))
    return write_joint_page(folder)


def page(name: str, results: Results) -> str:
    """Return the page of one experiment or study."""
    return filled(
        TEMPLATES / "page.md",
        mark=MARK,
        title=BOOKS[name].load(name).title,
        command=_command(name, results),
        results=results,
        duration=duration(results.seconds),
        versions=[f"{LABELS.get(name, name)} {v}" for name, v in results.versions.items()],
        description=description(name, results),
    )


def description(name: str, results: Results) -> str:
    """Return what stands below the heading of a page; its first paragraph is the headline."""
    stem = name.replace("-", "_")
    module = import_module(STUDIES.names.get(name, f"studies.paper.{stem}"))
    return filled(TEMPLATES / f"{stem}.md", results=results, **module.numbers(results)).strip()


def boards_page(stored: dict[str, Results]) -> str:
    """Return the page before those of the boards: targets and places of all of them."""
    lines = []
    for name, results in stored.items():
        board = import_module(STUDIES.names[name]).BOARD
        targets = board.targets(board, results)
        lines.append(
            {
                "title": board.title,
                "anchor": anchor(board.title),
                "measure": board.measures[0].label,
                "targets": targets,
                "missed": sum("missed" in target.met for target in targets),
                "groups": [board.standing(results, group) for group in board.groups(results)],
            }
        )
    names = [name.partition("/")[2] for name in stored]
    text = filled(TEMPLATES / "boards.md", boards=lines, names=names).strip()
    return f"{MARK}\n\n# {BOARDS_TITLE}\n\n{text}\n"


def headline(name: str, results: Results) -> str:
    """Return the first paragraph of the description, as one line of plain text."""
    first = description(name, results).split("\n\n")[0]
    return re.sub(r"[*`]", "", " ".join(first.split()))


def joint_page(folder: Path) -> Path:
    """Return where the page goes that joins all others in a folder: beside it."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.md")


def may_be_replaced(page: Path) -> bool:
    """Whether the joint page may be written: it is not there, or it is one of ours."""
    if not page.exists():
        return True
    with page.open(encoding="utf-8", errors="replace") as stream:
        return bool(OUR_MARK.fullmatch(stream.readline().strip()))


def write_joint_page(folder: Path) -> Path:
    """Join all pages in a folder, those of the paper first."""
    folder = folder.resolve()
    paths = {name: folder / name / PAGE for name in TITLED}
    texts = {name: path.read_text("utf-8") for name, path in paths.items() if path.exists()}
    titles = [BOOKS[name].load(name).title if name in BOOKS else BOARDS_TITLE for name in texts]
    text = filled(
        TEMPLATES / "joint.md",
        mark=MARK,
        titles={title: anchor(title) for title in titles},
        parts=[one_deeper(text, f"{folder.name}/{name}") for name, text in texts.items()],
    )
    write(joint_page(folder), text)
    return joint_page(folder)


def _command(name: str, results: Results) -> str:
    """Return the command that computes the results."""
    words = [*BOOKS[name].command.split(), name, *(["--quick"] if results.quick else [])]
    for option in ("seeds", "scene"):
        value = results.settings.get(option)
        words += [] if value is None else [f"--{option}", str(value)]
    return shlex.join(words)


def one_deeper(text: str, path: str) -> str:
    """Return a page as a part of another: headings one level down, links from one folder up."""
    lines, in_code = [], False
    for line in text.replace(MARK, "").strip().splitlines():
        in_code ^= line.startswith("```")
        deeper = f"#{line}" if line.startswith("#") and not in_code else line
        lines.append(deeper if in_code else LINK.sub(rf"]({path}/\1)", deeper))
    return "\n".join(lines)
