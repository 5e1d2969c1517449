"""What a fit remembers of its loops: a few numbers for each step, however many starts there are."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers.loop import Callback, Progress


class History(NamedTuple):
    """All loops of a fit, one after the other; the steps of all of them stand in one row."""

    stages: tuple[str, ...]  # (loops,) what each loop was for
    n_steps: Array  # (loops,)
    objective: Array  # (steps,) the mean over the starts
    least: Array  # (steps,) the smallest objective of any start
    largest: Array  # (steps,) and the largest
    change: Array  # (steps,) what the loop stops by; of descents, the share that is not at rest


class Recorder:
    """A callback that writes down every step and passes it on."""

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self._stages: list[str] = []
        self._n_steps: list[int] = []
        self._values: list[tuple[float, float, float, float]] = []

    def __call__(self, progress: Progress) -> bool | None:
        """Be the `callback` of a loop."""
        if progress.step == 1:  # steps are counted from one: a new loop
            self._stages.append(progress.stage)
            self._n_steps.append(0)
        self._n_steps[-1] += 1
        each = progress.objectives
        ends = (progress.objective,) * 2 if each is None else (np.min(each), np.max(each))
        self._values.append((progress.objective, float(ends[0]), float(ends[1]), progress.change))
        return None if self.callback is None else self.callback(progress)

    @property
    def history(self) -> History:
        """What has happened so far."""
        values = np.array(self._values, dtype=float).reshape(-1, 4)
        columns = np.ascontiguousarray(values.T)
        return History(tuple(self._stages), np.array(self._n_steps, dtype=np.int64), *columns)
