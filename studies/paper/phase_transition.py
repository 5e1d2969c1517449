"""The numbers on the page of the experiment `phase-transition`, from the stored rows alone."""

from typing import Any

from perpend._typing import Array
from perpend.experiments._experiment import Results
from perpend.experiments._trials import RECOVERED
from perpend.experiments.phase_transition import GIVEN, METHODS, OFTEN, OURS, PSGM, cells
from studies._cells import TEST, falls_behind


def numbers(results: Results) -> dict[str, Any]:
    """Return how many cells each method recovers, and where it falls behind RSGM."""
    shares = {name: cells(results, name, "recovered") for name in METHODS}
    return {
        "often": {name: int((share >= OFTEN).sum()) for name, share in shares.items()},
        "n_cells": shares[OURS].size,
        "limit": RECOVERED,
        "behind": {name: behind(results, name) for name in (PSGM, OURS)},
        **TEST,
    }


def recovered(results: Results, method: str, N: int, M: int) -> Array:
    """Return for each trial of a cell whether the subspace was recovered."""
    return results.column("trials", "error", method=method, N=N, M=M) < RECOVERED


def behind(results: Results, method: str) -> list[tuple[int, int]]:
    """Return the cells (N, M) where RSGM, given c, recovers often and `method` clearly less."""
    return [
        (N, M)
        for N in results.values("trials", "N")
        for M in results.values("trials", "M")
        if falls_behind(recovered(results, method, N, M), recovered(results, GIVEN, N, M))
    ]
