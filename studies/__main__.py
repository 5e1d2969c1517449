"""``python -m studies NAME``: run a study, or draw it from stored results."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from perpend.cli import main
from perpend.cli.reproduce import Command, Force, Jobs, Out, Quick, Redraw, Seeds, run
from studies import STUDIES

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which study; list names them, all runs one after another."
        ),
    ],
    *,
    quick: Quick = False,
    seeds: Seeds = None,
    jobs: Jobs = None,
    out: Out = Path("reproduction"),
    redraw: Redraw = False,
    force: Force = False,
) -> None:
    """Run a study, or draw it from stored results; files as those of perpend reproduce."""
    run(STUDIES, Command(name, quick, seeds, jobs, out, redraw=redraw, force=force))


if __name__ == "__main__":
    sys.exit(main(program=app, name=STUDIES.command))
