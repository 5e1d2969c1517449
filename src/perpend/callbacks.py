"""Watching a fit: what it recorded, a progress bar, and the callbacks of scikit-learn.

Every method takes ``callback=``, a function of a `perpend.solvers.Progress` that is called after
every step; if it returns True, the stage ends. It can drive any bar, for example tqdm::

    with tqdm() as bar:

        def tell(progress):
            bar.set_description(f"{progress.stage} {progress.objective:.4g}")
            bar.update()  # do not return its value: it may be True, which ends the stage

        DPCP(callback=tell).fit(X)

scikit-learn has its own callbacks since version 1.9; its authors call them experimental. The
estimators support them: ``DPCP().set_callbacks(sklearn.callback.ProgressBar())``, also on a
pipeline or a grid search around them. Every step is a task; their number is not known beforehand.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from perpend._progress import ProgressBar
from perpend._typing import Array
from perpend.solvers import Progress
from perpend.solvers.loop import Callback

try:
    from sklearn import callback as theirs
except ImportError:  # before scikit-learn 1.9
    theirs = None

__all__ = ["ProgressBar"]


class _NoCallbacks:
    """Takes its place before scikit-learn 1.9."""


CallbackSupport: Any = getattr(theirs, "CallbackSupportMixin", _NoCallbacks)
"""Base class with `set_callbacks`, where scikit-learn has it."""


def with_callbacks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Let scikit-learn end its callbacks after `fit`, also where that fails."""
    decorated: Callable[..., Any] = getattr(theirs, "with_callbacks", lambda method: method)(fit)
    return decorated


@contextmanager
def watching(model: Any, **data: Any) -> Iterator[Callback | None]:
    """Yield what is to be called after every step: the model's callback, and scikit-learn's.

    `data` is passed to its callbacks: X, y and metadata.
    """
    own: Callback | None = getattr(model, "callback", None)
    if not getattr(model, "_skl_callbacks", None):
        yield own
        return
    context = model._init_callback_context(max_subtasks=None)
    context.call_on_fit_task_begin(estimator=model, **data)

    def tell(progress: Progress) -> bool:
        step = context.subcontext(task_name=progress.stage)
        step.call_on_fit_task_begin(estimator=model, **data)
        ended = step.call_on_fit_task_end(estimator=model, **data)
        return bool(own is not None and own(progress)) or ended

    yield tell
    # Fitted by now: a callback that needs a fitted model gets a copy.
    context.call_on_fit_task_end(estimator=model, reconstruction_attributes=dict, **data)


class History(NamedTuple):
    """All loops of a fit; their steps follow one another in one array."""

    stages: tuple[str, ...]  # (loops,) what each loop was for
    n_steps: Array  # (loops,)
    objective: Array  # (steps,) the mean over the starts
    least: Array  # (steps,) the smallest objective of any start
    largest: Array  # (steps,) and the largest
    change: Array  # (steps,) what ends the loop; of descents, the share that has not converged


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
