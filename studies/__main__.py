"""``python -m studies NAME``: run a study, or draw it from stored results, and make the pages."""

import sys
import textwrap
from pathlib import Path

import typer

from perpend.cli import main
from perpend.cli._console import Refusal, say
from perpend.cli._options import spread
from perpend.cli._output import check_place
from perpend.cli.reproduce import ALL, LIST, Command, run
from studies import STUDIES

PAGES = "pages"
WIDTH = 88
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@spread
def study(command: Command) -> None:
    """Run a study, or draw it from stored results; files as those of perpend reproduce.

    Writes page.md beside the results as well, and DIR.md, which joins all pages. NAME may be pages:
    that only makes the pages of all results in DIR, those of perpend reproduce as well.
    """
    name, out = command.name, command.out
    if name in (ALL, PAGES, *STUDIES.names):
        check_page(out)
    code = 0 if name == PAGES else run(STUDIES, command)
    if name != LIST and (code == 0 or name == ALL):
        say_pages(out, name)
    if code:
        raise typer.Exit(code)


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


def say_pages(out: Path, name: str) -> None:
    """Write the pages; say what the new results are, and where the pages are."""
    from perpend.experiments._store import read_results
    from studies._pages import headline, write_pages

    page, here = write_pages(out), Path.cwd().resolve()
    results = read_results(out / name) if name in STUDIES.names else None
    words = textwrap.wrap(headline(name, results), WIDTH) if results else []
    lines = [f"{'' if i else 'result':<12}{line}" for i, line in enumerate(words)]
    shown = page.relative_to(here) if page.is_relative_to(here) else page
    say("\n".join([*lines, f"page        {shown}"]))


if __name__ == "__main__":
    sys.exit(main(program=app, name=STUDIES.command))
