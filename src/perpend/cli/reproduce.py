"""``perpend reproduce NAME``: run an experiment of the paper, or draw it from stored results."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend._grid import grid
from perpend._progress import Monitor, clock
from perpend.cli._console import Refusal, complain, count, page, say
from perpend.cli._options import option
from perpend.cli._output import check_place
from perpend.cli._progress import monitor
from perpend.exceptions import InputError
from perpend.experiments import PAPER, Catalogue, Settings

if TYPE_CHECKING:
    from perpend.experiments import Experiment, Results
    from perpend.experiments._runner import Progress

ALL, LIST = "all", "list"
WITH_SCENE = ("hyperspectral", ALL)
FAILED, BAD_INPUT = 1, 3  # exit codes
SHOWN = {".csv", ".json", ".png", ".svg"}  # files to name at the end
PAGES = ("python", "-m", "studies", "pages", "--out")


@dataclass(eq=False, repr=False)
class Command:
    """What to do with experiments of a catalogue; also of the studies beside `src`."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Which one; list names them, all runs one after another."
        ),
    ]
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, under a minute each; by the same code.")
    ] = False
    seeds: Annotated[
        int | None, option("N", "Trials at each point; more add to those done.", min=1)
    ] = None
    jobs: Annotated[int | None, option("N", "Processes; by default all cores.", min=1)] = None
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the results.")
    ] = Path("reproduction")
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Only draw, from the stored results.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Compute everything anew.")] = False

    @property
    def of_scene(self) -> dict[str, Any]:
        """Options that are for a scene only."""
        return {}

    def again(self, command: str) -> str:
        """Return the command that goes on with this one."""
        words = [*command.split(), self.name, *(["--quick"] if self.quick else [])]
        for word, value in {"seeds": self.seeds, **self.of_scene}.items():
            words += [] if value is None else [f"--{word}", str(value)]
        return shlex.join([*words, "--out", str(self.out)])


@dataclass(eq=False, repr=False)
class Reproduction(Command):
    """The same for the paper's experiments, one of which takes a scene."""

    scene: Annotated[
        Path | None, option("FILE", "A scene of your own, for hyperspectral only.")
    ] = None
    variable: Annotated[str | None, option("NAME", "Which array of the scene's file to take.")] = (
        None
    )

    @property
    def of_scene(self) -> dict[str, Any]:
        """Options that are for a scene only."""
        return {"scene": self.scene, "variable": self.variable}


def reproduce(command: Reproduction) -> None:
    """Run an experiment of the paper, or draw it from stored results.

    Writes to DIR/NAME: results.json, a CSV for each table, and figures as PNG and SVG. An
    interrupted run goes on where it stopped. A run whose results are stored already only draws.
    From a checkout of perpend, python -m studies pages --out DIR makes pages of the results, with
    the published numbers beside them.
    """
    code = run(PAPER, command)
    if code:
        raise typer.Exit(code)
    if command.name != LIST:
        say(f"pages       from a checkout of perpend: {shlex.join([*PAGES, str(command.out)])}")


def run(catalogue: Catalogue, command: Command) -> int:
    """Run, draw or list experiments of a catalogue, and return the exit code."""
    name = command.name
    if name == LIST:
        width = max(map(len, catalogue.names)) + 2
        lines = [f"{name:<{width}}{catalogue.load(name).about}" for name in catalogue.names]
        say("\n".join([*lines, f"{ALL:<{width}}all of them, one after another"]))
        return 0
    if name != ALL:
        try:
            catalogue.check_name(name)
        except InputError as error:  # a usage error, before anything is loaded
            message = str(error)
            raise typer.BadParameter(message[0].upper() + message[1:], param_hint="NAME") from error
    for word, value in command.of_scene.items():
        if value is not None and name not in WITH_SCENE:
            raise typer.BadParameter(
                f"{name} takes no scene; hyperspectral does.", param_hint=f"--{word}"
            )
    if command.redraw and command.force:
        raise typer.BadParameter(
            "draws without computing, --force computes.", param_hint="--redraw"
        )
    names = list(catalogue.names) if name == ALL else [name]
    for each in names:
        check_place(command.out / each)
    if command.redraw:
        _redraw(catalogue, names, command.out)
        return 0
    return max(_run(catalogue, each, command) for each in names)


def _run(catalogue: Catalogue, name: str, command: Command) -> int:
    """Run one experiment and return the exit code; among all of them, none stops the others."""
    from joblib import cpu_count

    from perpend.experiments import _runner
    from perpend.plots import require_matplotlib

    require_matplotlib()
    folder = command.out / name
    experiment = catalogue.load(name)
    of_scene = command.of_scene if name in WITH_SCENE else {}
    settings = Settings(command.quick, command.seeds, **of_scene)
    try:
        if not command.force:
            _keep_larger_results(folder, experiment, settings)
        with monitor() as watch:
            results = _runner.reproduce(
                *(experiment, settings, folder),
                jobs=command.jobs or cpu_count(),
                progress=show_cases(watch, name),
                force=command.force,
            )
    except _runner.CasesFailedError as error:
        complain(str(error), as_list=True)
        return FAILED
    except InputError as error:
        if command.name != ALL:
            raise
        complain(f"{name} is left out: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        again = command.again(catalogue.command)
        complain(f"finished cases are kept in {folder}. Go on with: {again}", label="")
        raise
    _finish(experiment, results, command.out)
    return 0


def show_cases(watch: Monitor, name: str) -> Callable[["Progress"], None]:
    """Let a monitor say how many cases of an experiment are done."""

    def show(progress: "Progress") -> None:
        words = f"{progress.done} of {progress.total} cases"
        if progress.done == progress.total:
            words += ", drawing"
        elif progress.seconds_left is not None:
            words += f", about {clock(progress.seconds_left)} left"
        watch.show(name, progress.share, words)

    return show


def _redraw(catalogue: Catalogue, names: list[str], out: Path) -> None:
    """Draw one experiment, or all that have stored results."""
    from perpend.experiments import _runner
    from perpend.experiments._store import RESULTS

    if len(names) > 1:
        names = [name for name in names if (out / name / RESULTS).exists()]
        if not names:
            raise InputError(f"{out}: has no stored results to draw from. Compute them first.")
    for name in names:
        experiment = catalogue.load(name)
        _finish(experiment, _runner.redraw(experiment, out / name), out)


def _keep_larger_results(folder: Path, experiment: "Experiment", settings: Settings) -> None:
    """Refuse to replace full-size results by quick ones, or by fewer trials."""
    from perpend.experiments._store import read_results

    stored = read_results(folder)
    if stored is None or stored.quick:
        return
    if settings.quick or len(experiment.cases(settings)) < stored.n_cases:
        raise Refusal(
            f"{folder}: holds results of full size with {count(stored.n_cases)} cases, which fewer "
            "would replace. Choose another --out, or use --force."
        )


def _finish(experiment: "Experiment", results: "Results", out: Path) -> None:
    """Say what the results are, and what was written."""
    folder, rows = out / experiment.name, experiment.summary(results)
    facts = {
        "experiment": experiment,
        "results": results,
        "duration": clock(results.seconds),
        "summary": grid(list(rows[0]), [list(row.values()) for row in rows]) if rows else "",
        "folder": folder,
        "files": sorted(path.name for path in folder.iterdir() if path.suffix in SHOWN),
    }
    say(page("reproduce", facts))
