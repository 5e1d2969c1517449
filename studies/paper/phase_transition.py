"""The numbers on the page of the experiment `phase-transition`, from the stored rows alone."""

from typing import Any

from perpend._typing import Array
from perpend.experiments._experiment import Results
from perpend.experiments._trials import RECOVERED, SCHEDULE
from perpend.experiments.phase_transition import (
    GEOMETRIC,
    GIVEN,
    METHODS,
    OFTEN,
    OURS,
    PSGM,
    cells,
)
from studies._cells import TEST, falls_behind


def numbers(results: Results) -> dict[str, Any]:
    """Return how many cells each method recovers, and where it falls behind RSGM."""
    shares = {name: cells(results, name, "recovered") for name in METHODS}
    jams = behind(results, PSGM)
    return {
        "often": {name: int((share >= OFTEN).sum()) for name, share in shares.items()},
        "n_cells": shares[OURS].size,
        "limit": RECOVERED,
        "behind": {PSGM: jams, **{name: behind(results, name) for name in (GEOMETRIC, OURS)}},
        "counts": {
            name: [int(recovered(results, name, *cell).sum()) for cell in jams] for name in METHODS
        },
        "missed": _missed(results, jams),
        "n_trials": len(results.values("trials", "seed")),
        "schedule": SCHEDULE,
        **TEST,
    }


def recovered(results: Results, method: str, N: int, M: int) -> Array:
    """Return for each trial of a cell whether the subspace was recovered."""
    return results.column("trials", "error", method=method, N=N, M=M) < RECOVERED


def _missed(results: Results, cells: list[tuple[int, int]]) -> dict[str, int]:
    """Return why geometric steps miss trials of these cells: a wrong rank, or other directions."""
    rows = [r for N, M in cells for r in results.rows("trials", method=GEOMETRIC, N=N, M=M)]
    missed = [row for row in rows if row["error"] >= RECOVERED]
    near = sum(row["codimension"] == row["c"] for row in missed)
    return {"all": len(missed), "rank": len(missed) - near, "near": near}


def behind(results: Results, method: str) -> list[tuple[int, int]]:
    """Return the cells (N, M) where RSGM, given c, recovers often and `method` clearly less."""
    return [
        (N, M)
        for N in results.values("trials", "N")
        for M in results.values("trials", "M")
        if falls_behind(recovered(results, method, N, M), recovered(results, GIVEN, N, M))
    ]
