"""Runs an experiment: cases that are missing are computed, then everything is drawn from the store.

A run that was interrupted goes on where it stopped, more seeds compute only the new ones, and a run
whose results are stored already only draws.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from perpend.exceptions import InputError, PerpendError
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._store import (
    CHECKPOINT,
    Outcome,
    add_case,
    cpu,
    digest,
    key,
    read_cases,
    read_results,
    versions,
    write_csv,
    write_results,
)
from perpend.experiments._workers import compute
from perpend.plots import require_matplotlib, save


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    done: int  # cases, with those from earlier runs
    total: int
    share: float  # of the work that is done, by the cost of the cases
    seconds_left: float | None  # unknown before the first case is done


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
    """Compute what is missing of an experiment, store the results in its own folder, and draw.

    The experiment is the ``EXPERIMENT`` of the module that its `run` is in, as workers load it from
    there. Results do not depend on the number of processes, `jobs`; `force` computes everything
    anew. Raises CasesFailedError if a case raised an error; all others are computed and kept.
    """
    require_matplotlib()
    cases = {key(case): case for case in experiment.cases(settings)}
    mark = digest(cases)
    folder.mkdir(parents=True, exist_ok=True)
    stored = read_results(folder)
    if force:
        (folder / CHECKPOINT).unlink(missing_ok=True)
        if stored is not None:  # still good to look at, but out of date
            write_results(folder, replace(stored, digest=""))
    elif stored is not None and stored.digest == mark:
        return redraw(experiment, folder)

    began = time.perf_counter()
    done = _compute(experiment, cases, folder, jobs=jobs, progress=progress)
    tables: Tables = {}
    for name in cases:
        for table, rows in done[name].tables.items():
            tables.setdefault(table, []).extend(rows)
    results = Results(
        experiment=experiment.name,
        quick=settings.quick,
        tables=tables,
        seconds=round(sum(outcome.seconds for outcome in done.values()), 1),
        versions=versions(),
        wall_seconds=round(time.perf_counter() - began, 1),
        n_cases=len(cases),
        settings={
            "quick": settings.quick,
            "seeds": settings.seeds,
            "scene": settings.scene.name if settings.scene else None,
        },
        cpu=cpu(),
        digest=mark,
    )
    write_results(folder, results)
    return redraw(experiment, folder)  # from the file: what is drawn is what is stored


def redraw(experiment: Experiment, folder: Path) -> Results:
    """Write tables (CSV) and figures (PNG, SVG) from the stored results; nothing is computed."""
    require_matplotlib()
    results = read_results(folder)
    if results is None:
        raise InputError(
            f"{folder}: has no stored results to draw from. Compute them first: the same command "
            "without --redraw."
        )
    write_csv(folder, results)
    for stem, figure in experiment.draw(results).items():
        save(figure, folder / stem)
    return results


def _compute(
    experiment: Experiment,
    cases: Mapping[str, Case],
    folder: Path,
    *,
    jobs: int,
    progress: Callable[[Progress], None],
) -> dict[str, Outcome]:
    """Compute the cases that no earlier run has finished, and return all."""
    done = {name: outcome for name, outcome in read_cases(folder).items() if name in cases}
    costs = {name: experiment.cost(case) for name, case in cases.items()}
    # Long cases first, so that at the end no worker is left alone with one. What is computed is
    # read back from the key, so that a case can say nothing that the key does not.
    missing = sorted((name for name in cases if name not in done), key=lambda name: -costs[name])
    todo = [json.loads(name) for name in missing]
    last = time.monotonic()
    with closing(compute(experiment.run.__module__, todo, jobs)) as outcomes:
        for outcome in chain([None], outcomes):  # first: how far earlier runs came
            if outcome is not None:
                last = time.monotonic()
                done[key(outcome.case)] = outcome
                if not outcome.error:
                    add_case(folder, outcome)
            progress(_progress(costs, done, jobs=jobs, idle=time.monotonic() - last))
    failed = [outcome for outcome in done.values() if outcome.error]
    if failed:
        raise CasesFailedError(_failures(experiment.name, failed, len(done) - len(failed)))
    return done


def _progress(
    costs: Mapping[str, float], done: Mapping[str, Outcome], *, jobs: int, idle: float
) -> Progress:
    """Estimate the time left: by the cost of what is left, at the seconds per cost so far.

    Cases of earlier runs count for the speed, not as time of this run. `idle` is how long nothing
    has come back; the workers were busy all the same.
    """
    total = sum(costs.values()) or 1.0
    over = sum(costs[name] for name in done)
    seconds = {name: outcome.seconds for name, outcome in done.items() if not outcome.error}
    left = None
    if seconds:
        speed = sum(seconds.values()) / sum(costs[name] for name in seconds)
        busy = max(1, min(jobs, len(costs) - len(done)))
        left = max(speed * (total - over) / busy - idle, 0.0)
    return Progress(len(done), len(costs), over / total, left)


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
