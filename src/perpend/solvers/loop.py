"""The one loop: budget, callback, the check for non-finite values, and why it ended.

A solver supplies ``step(state) -> state``. A state is a NamedTuple with at least the fields
`objective` and `change`; the loop stops when `change` falls to the tolerance. A state of several
starts may have their `objectives`, too.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from perpend._typing import Array
from perpend.exceptions import NumericalError


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
