"""``python -m studies NAME``: run a study, or draw it from stored results, and make the pages."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from perpend.cli import main
from perpend.cli._console import Refusal, complain, say
from perpend.cli._options import option, spread
from perpend.cli._output import check_place
from perpend.cli.reproduce import ALL, BAD_INPUT, LIST, Command, run
from perpend.exceptions import InputError
from studies import BOARDS, STUDIES

ALL_BOARDS, PAGES = "boards", "pages"
WIDTH = 88
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@dataclass(eq=False, repr=False)
class Study(Command):
    """What to do with a study."""

    only: Annotated[str | None, option("A,B", f"Of boards, only these: {', '.join(BOARDS)}.")] = (
        None
    )


@app.command()
@spread
def study(command: Study) -> None:
    """Run a study, or draw it from stored results; files as those of perpend reproduce.

    Writes page.md beside the results as well, and DIR.md, which joins all pages. NAME may be pages:
    that only makes the pages of all results in DIR, those of perpend reproduce as well. NAME may be
    boards: that runs all of them, or those that --only names; each is stored by itself.
    """
    name, out = command.name, command.out
    if command.only and name != ALL_BOARDS:
        raise typer.BadParameter("is for boards.", param_hint="--only")
    if name in (ALL, ALL_BOARDS, PAGES, *STUDIES.names):
        check_page(out)
    names = chosen_boards(command.only) if name == ALL_BOARDS else [name]
    code = 0
    for each in names if name != PAGES else []:
        try:
            code = max(code, run(STUDIES, replace(command, name=each)))
        except InputError as error:  # data that is missing stops no other board
            if name != ALL_BOARDS:
                raise
            complain(f"{each} is left out: {error}")
            code = BAD_INPUT
    if name != LIST and (code == 0 or name in (ALL, ALL_BOARDS)):
        say_pages(out, names)
    if code:
        raise typer.Exit(code)


def chosen_boards(only: str | None) -> list[str]:
    """Return the names of some boards, or of all."""
    chosen = [name.strip() for name in only.split(",")] if only else BOARDS
    unknown = [name for name in chosen if name not in BOARDS]
    if unknown:
        there = ", ".join(BOARDS)
        raise typer.BadParameter(
            f"no board is called {unknown[0]!r}. There are: {there}.", param_hint="--only"
        )
    return [f"{ALL_BOARDS}/{name}" for name in chosen]


def check_page(out: Path) -> None:
    """Refuse a folder beside which the joint page cannot stand, before any work is done."""
    from studies._pages import joint_page, may_be_replaced

    if not out.resolve().name:
        raise Refusal(f"{out}: the page would have to stand beside it. Choose a folder below.")
    page = joint_page(out)
    if page.is_dir():
        raise Refusal(f"{page}: is a folder, and the page goes there. Choose another --out.")
    check_place(page.parent)
    if not may_be_replaced(page):
        raise Refusal(
            f"{page}: is not a page that perpend wrote, and would be overwritten. Choose another "
            "--out, or move that file."
        )


def say_pages(out: Path, names: Sequence[str]) -> None:
    """Write the pages; say what the new results are, and where the pages are."""
    from perpend.experiments._store import read_results
    from studies._pages import headline, write_pages

    page, here = write_pages(out), Path.cwd().resolve()
    lines = []
    for each in (name for name in STUDIES.names if name in names):
        results = read_results(out / each)
        words = textwrap.wrap(headline(each, results), WIDTH) if results else []
        lines += [f"{'' if i else 'result':<12}{line}" for i, line in enumerate(words)]
    shown = page.relative_to(here) if page.is_relative_to(here) else page
    say("\n".join([*lines, f"page        {shown}"]))


if __name__ == "__main__":
    sys.exit(main(program=app, name=STUDIES.command))
