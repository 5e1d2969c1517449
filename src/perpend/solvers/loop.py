"""The one loop - budget, callback, the check for non-finite values, why it ended - and its results.

A solver supplies ``step(state) -> state``. A state is a NamedTuple with at least the fields
`objective` and `change`; the loop stops when `change` falls to the tolerance. A state of several
starts may have their `objectives`, too.

What solvers return is always a structure, never a tuple that changes with a flag.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from perpend._typing import Array
from perpend.exceptions import NumericalError
from perpend.rows import Kept


class Status(Enum):
    """Why a loop ended; the value is the sentence that users read."""

    CONVERGED = "converged"
    OUT_OF_ITERATIONS = "ran out of iterations before it converged; raise max_iter or tol"
    STOPPED = "stopped by the callback"
    ENOUGH = "stopped because the estimate was clear"


class Progress(NamedTuple):
    """What a callback gets after every step. If it returns True, this loop ends."""

    stage: str  # which loop it is
    step: int  # from 1
    objective: float  # after the step
    change: float  # of what the loop watches
    tol: float  # the loop ends once `change` is at most this
    objectives: Array | None = None  # of each start, where there are several
    max_steps: int | None = None  # the loop ends after so many at the latest


Callback: TypeAlias = Callable[[Progress], bool | None]


class _State(Protocol):
    @property
    def objective(self) -> float: ...
    @property
    def change(self) -> float: ...


S = TypeVar("S", bound=_State)


class Run(NamedTuple, Generic[S]):
    """How a loop ended."""

    state: S
    status: Status
    n_steps: int


def iterate(
    step: Callable[[S], S],
    state: S,
    *,
    max_steps: int,
    tol: float = 0.0,
    stage: str = "",
    callback: Callback | None = None,
    enough: Callable[[S], bool] | None = None,
) -> Run[S]:
    """Repeat `step` until the state's `change` is at most `tol` or the budget is spent.

    `enough` looks at the state after every step and may end the loop.
    """
    n_steps = 0
    while True:
        if not math.isfinite(state.objective):
            raise NumericalError(
                f"The objective became {state.objective} after {n_steps} steps ({stage}). "
                "This is a bug or an overflow: please report it with the data's shape and scale."
            )
        if state.change <= tol:
            return Run(state, Status.CONVERGED, n_steps)
        if n_steps == max_steps:
            return Run(state, Status.OUT_OF_ITERATIONS, n_steps)
        state = step(state)
        n_steps += 1
        if callback is not None:
            now = stage, n_steps, state.objective, state.change, tol
            if callback(Progress(*now, getattr(state, "objectives", None), max_steps)):
                return Run(state, Status.STOPPED, n_steps)
        if enough is not None and enough(state):
            return Run(state, Status.ENOUGH, n_steps)


# -- what solvers return ---------------------------------------------------------------------------


class Directions(NamedTuple):
    """Where the descents are, on their way or converged, one column for each start.

    Columns that were moved together, as an orthonormal frame, count as one start.
    """

    B: Array  # (D, k) unit columns
    objective: Array  # (k,)
    n_iter: Array  # (k,)
    converged: Array  # (k,) bool: before the iterations ran out
    resolution: float  # the largest angle of a last step, 0 on the way: B is not known better
    n_evaluations: int  # scans

    def some(self, chosen: Array) -> "Directions":
        """Return the chosen starts alone."""
        return Directions._make([*(values[..., chosen] for values in self[:4]), *self[4:]])

    def join(self, other: "Directions") -> "Directions":
        """Return these starts followed by the others."""
        pairs = zip(self[:4], other[:4], strict=True)
        all_ = [np.concatenate(pair, axis=-1) for pair in pairs]
        resolution = max(self.resolution, other.resolution)
        return Directions._make([*all_, resolution, self.n_evaluations + other.n_evaluations])


def ended(run: Run[Any], B: Array, resolution: float, n_iter: int | None = None) -> Directions:
    """Return the directions that a loop ended with, as one start."""
    n = run.n_steps if n_iter is None else n_iter
    return Directions(
        B=B,
        objective=np.array([run.state.objective]),
        n_iter=np.array([n]),
        converged=np.array([run.status is Status.CONVERGED]),
        resolution=resolution,
        n_evaluations=run.n_steps + 1,
    )


class TwoGroups(NamedTuple):
    """The fitted model; distances are those that the kernels see."""

    edges: Array  # (m,) upper edges of the bins
    posterior: Array  # (m,) probability that a row in this bin is an inlier
    gain: Array  # (m,) log of mixture over outlier law: what a row in this bin says for a subspace
    counts: Array  # (m,) weight of the rows in each bin
    share: float  # of inliers
    scale: float  # s; at the floor where the inliers are exact
    threshold: float  # the distance at which a row is as likely an inlier as an outlier
    weights: Array | None = None  # (m,) of rows in the last steps, if not the posterior

    @property
    def is_exact(self) -> bool:
        """Whether the inliers are off the subspace by no more than rounding errors."""
        return bool(self.scale <= self.edges[1])


class Fit(NamedTuple):
    """A subspace, and what the rows say about it."""

    V: Array  # (D, c) orthonormal: the normals inside the span of the rows
    groups: TwoGroups  # the two groups of rows by their distance
    spectrum: Array  # (R,) ascending: second moments of the inliers along their principal axes
    axes: Array  # (D, R) these axes
    n_iter: int
    converged: bool
    kept: Kept | None = None  # the distances of all rows to it, where they are at hand


class Solution(NamedTuple):
    """What a method hands to the estimator."""

    normals: Array  # (D, c) orthonormal
    components: Array  # (D, d) orthonormal: the inliers' principal axes, largest variance first
    directions: Array  # (D, k) raw solutions
    singular_values: Array  # of `directions`
    objective: float  # mean of |x.b| over the rows and the raw solutions
    confidence: float  # in [0, 1], of the codimension
    evidence: dict[str, object]  # the numbers behind the confidence, for users
    groups: TwoGroups | None  # None where there are no normals but those of the rows' span
    doubts: tuple[str, ...]  # why the confidence is low, and what would help
    n_iter: int  # of the longest descent
    converged: bool  # whether everything converged
    rank: int  # dimension of the rows' span, in which inliers have their noise
    distances: Kept | None  # of all rows to the subspace, where they are known already
    quiet_doubts: tuple[str, ...] = ()  # about the rows, if the codimension was given: no warning
    structures: tuple[dict[str, object], ...] = ()  # every significant subspace that was seen
    others: tuple["Solution", ...] = ()  # with each that is not chosen, in the order of structures
    support: float = np.inf  # gain beyond what accidents reach; no limit where all rows are on it
    gap: float = 1.0  # largest ratio in the inliers' spectrum
    variances: Array | None = None  # (D,) of inliers along normals and components, if refined
    profile: dict[str, Array] | None = None  # `scales`, `codimensions` and `contrast`, if looked at
