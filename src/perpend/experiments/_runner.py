"""Runs an experiment: cases that are missing are computed, then everything is drawn from the store.

A run that was interrupted goes on where it stopped, more seeds compute only the new ones, and a run
whose results are stored already only draws.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from perpend.exceptions import InputError, PerpendError
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._pages import write_page
from perpend.experiments._store import (
    Checkpoint,
    Finished,
    cpu,
    digest,
    key,
    read_results,
    versions,
    write_csv,
    write_results,
)
from perpend.experiments._workers import Outcome, compute
from perpend.plots import require_matplotlib, save


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Cases, with those from earlier runs.
    share : float
        The part of the work that is done, by the cost of the cases.
    seconds_left : float, optional
        None before the first case is done.
    """

    done: int
    total: int
    share: float
    seconds_left: float | None


class CasesFailedError(PerpendError):
    """Some cases could not be computed; the others are kept."""


def reproduce(
    experiment: Experiment,
    settings: Settings,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[Progress], None] = lambda _: None,
    force: bool = False,
) -> Results:
    """Compute what is missing of an experiment, store the results, and draw.

    Parameters
    ----------
    experiment : Experiment
        The ``EXPERIMENT`` of the module that its `run` is in, as workers load it from there.
    settings : Settings
    folder : path
        Its own folder; made if need be.
    jobs : int
        Number of processes; the results do not depend on it.
    progress : callable, optional
        Called with a `Progress` now and then.
    force : bool
        Whether to compute everything anew.

    Returns
    -------
    Results

    Raises
    ------
    CasesFailedError
        If a case raised an error; all others are computed and kept.
    """
    require_matplotlib()
    cases = {key(case): case for case in experiment.cases(settings)}
    mark = digest(cases)
    folder.mkdir(parents=True, exist_ok=True)
    stored = read_results(folder)
    checkpoint = Checkpoint(folder)
    if force:
        checkpoint.clear()
        if stored is not None:  # still good to look at, but no longer an answer
            write_results(folder, replace(stored, digest=""))
    elif stored is not None and stored.digest == mark:
        write_drawings(experiment, stored, folder)
        return stored

    began = time.perf_counter()
    finished = {name: case for name, case in checkpoint.read().items() if name in cases}
    _compute(experiment, cases, finished, checkpoint, jobs=jobs, progress=progress)
    scene = settings.scene.name if settings.scene else None
    results = Results(
        experiment=experiment.name,
        quick=settings.quick,
        tables=_joined([finished[name].tables for name in cases]),
        seconds=round(sum(case.seconds for case in finished.values()), 1),
        versions=versions(),
        wall_seconds=round(time.perf_counter() - began, 1),
        n_cases=len(cases),
        settings={"quick": settings.quick, "seeds": settings.seeds, "scene": scene},
        cpu=cpu(),
        digest=mark,
    )
    write_results(folder, results)
    return redraw(experiment, folder)  # from the file: what is drawn is what is stored


def redraw(experiment: Experiment, folder: Path) -> Results:
    """Draw from the stored results, without computing anything."""
    require_matplotlib()
    results = read_results(folder)
    if results is None:
        raise InputError(
            f"{folder}: has no stored results to draw from. Compute them first: "
            f"{experiment.command} {experiment.name}"
        )
    write_drawings(experiment, results, folder)
    return results


def write_drawings(experiment: Experiment, results: Results, folder: Path) -> None:
    """Write the tables as CSV, the figures as PNG and SVG, and the page."""
    write_csv(folder, results)
    for stem, figure in experiment.draw(results).items():
        save(figure, folder / stem)
    write_page(experiment, results, folder)


def _compute(
    experiment: Experiment,
    cases: Mapping[str, Case],
    finished: dict[str, Finished],
    checkpoint: Checkpoint,
    *,
    jobs: int,
    progress: Callable[[Progress], None],
) -> None:
    """Compute the cases that are not finished; they enter `finished` and the checkpoint."""
    costs = {name: experiment.cost(case) for name, case in cases.items()}
    missing = [name for name in cases if name not in finished]
    # Long cases first, so that at the end no worker is left alone with one. What is computed is
    # read back from the key, so that a case can say nothing that the key does not.
    missing.sort(key=lambda name: -costs[name])
    todo = [json.loads(name) for name in missing]
    failed: list[Outcome] = []
    last = time.monotonic()
    progress(_progress(costs, finished, failed, jobs=jobs, idle=0.0))
    with closing(compute(experiment.run.__module__, todo, jobs)) as outcomes:
        for outcome in outcomes:
            if outcome is not None:
                last = time.monotonic()
                if outcome.error:
                    failed.append(outcome)
                else:
                    done = Finished(outcome.tables, outcome.seconds)
                    checkpoint.add(outcome.case, done)
                    finished[key(outcome.case)] = done
            idle = time.monotonic() - last
            progress(_progress(costs, finished, failed, jobs=jobs, idle=idle))
    if failed:
        raise CasesFailedError(_failures(experiment.name, failed, len(finished)))


def _progress(
    costs: Mapping[str, float],
    finished: Mapping[str, Finished],
    failed: list[Outcome],
    *,
    jobs: int,
    idle: float,
) -> Progress:
    """Estimate the time left: by the cost of what is left, at the seconds per cost so far.

    Cases of earlier runs count for the speed, not as time of this run. `idle` is how long nothing
    has come back; the workers were busy all the same.
    """
    total = sum(costs.values()) or 1.0
    known = sum(costs[name] for name in finished)
    over = known + sum(costs[key(outcome.case)] for outcome in failed)
    left = None
    if known > 0:
        speed = sum(case.seconds for case in finished.values()) / known
        n_left = len(costs) - len(finished) - len(failed)
        left = max(speed * (total - over) / max(1, min(jobs, n_left)) - idle, 0.0)
    return Progress(len(finished) + len(failed), len(costs), over / total, left)


def _joined(parts: list[Tables]) -> Tables:
    """Put the rows of all cases together, in the order of the cases."""
    tables: Tables = {}
    for part in parts:
        for name, rows in part.items():
            tables.setdefault(name, []).extend(rows)
    return tables


def _failures(name: str, failed: list[Outcome], n_kept: int) -> str:
    shown = [f"  {key(outcome.case)}: {outcome.error}" for outcome in failed[:3]]
    more = [f"  and {len(failed) - 3} more"] if len(failed) > 3 else []
    cases = "1 case" if len(failed) == 1 else f"{len(failed)} cases"
    return "\n".join(
        [
            f"{name}: {cases} failed, {n_kept} are done and kept:",
            *shown,
            *more,
            "The same command tries only these again (with fewer --jobs, if memory ran out).",
        ]
    )
