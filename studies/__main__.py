"""``python -m studies NAME``: run a study, or draw it from stored results."""

import sys

import typer

from perpend.cli import main
from perpend.cli._options import spread
from perpend.cli.reproduce import Command, run
from studies import STUDIES

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@spread
def study(command: Command) -> None:
    """Run a study, or draw it from stored results; files as those of perpend reproduce."""
    run(STUDIES, command)


if __name__ == "__main__":
    sys.exit(main(program=app, name=STUDIES.command))
