"""How a fit converged."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from perpend._typing import Array
from perpend.plots._display import ModelDisplay
from perpend.plots._picture import Axis, Band, Layer, Line, Mark, Picture, empty, ends
from perpend.plots._words import count

DESCENT = "descent"
LOG_FROM = 30.0  # times smaller than at the start: the axis is logarithmic


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(ModelDisplay):
    """The objective over the steps: the mean of all starts, and the range from least to largest.

    The descents of a fit may come in several runs, with more starts or more rows each time. They
    are drawn one after the other, each relative to its own first step. If a fit needed no descent,
    its other steps are drawn.

    Notes
    -----
    The objective of a descent is the mean of ``|x @ b|`` over the rows, and the inliers' noise for
    a finish or a polish. Descents stop as soon as the codimension is clear, often before they have
    converged.

    Examples
    --------
    >>> from perpend import RSGM, datasets, plots
    >>> X = datasets.make_subspace(300, 200, n_features=12, codimension=3, random_state=0).X
    >>> model = RSGM(3).fit(X)
    >>> display = plots.ConvergenceDisplay.from_estimator(model)
    >>> display.stages, len(display.objective) == len(model.history_["objective"])
    (('descent',), True)
    """

    stages: Sequence[str]  # the stage of each run, such as "descent"
    n_steps: Array  # (n_runs,); the arrays below have a value for every step of all runs
    _: KW_ONLY
    objective: Array  # the mean over the starts
    least: Array  # the least of them
    largest: Array  # the largest of them
    change: Array  # what stops a run: for descents, the share of starts that have not converged
    converged: bool | None = None  # whether the whole fit converged

    def __post_init__(self) -> None:
        self.stages, self.n_steps = tuple(self.stages), np.asarray(self.n_steps, dtype=int)
        for name in ("objective", "least", "largest", "change"):
            setattr(self, name, np.asarray(getattr(self, name), dtype=float))

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:  # noqa: ARG003
        """Make the display of a fitted model, without drawing it."""
        history = getattr(model, "history_", None)
        if history is None:
            return cls((), [], objective=[], least=[], largest=[], change=[])
        return cls(**history, converged=bool(model.converged_))

    @property
    def description(self) -> str:
        """The picture in words."""
        if not self.stages:
            return f"How the fit converged: {self._nothing}."
        runs = self._runs()
        steps = sum(len(run) for run in runs)
        fall = self.objective[runs[-1][-1]] / max(self.objective[runs[-1][0]], 1e-300)
        end = self._end(runs[-1])
        return (
            f"Objective over {count(steps)} steps of {self._stage}: in the last run its mean fell "
            f"to {fall:.2g} of its value after the first step{end and f'; {end}'}."
        )

    @property
    def _nothing(self) -> str:
        return "not recorded" if self.converged is None else "no step was needed"

    @property
    def _stage(self) -> str:
        return DESCENT if DESCENT in self.stages else self.stages[0]

    def _runs(self) -> list[Array]:
        """Return the numbers of the steps of each run that is drawn."""
        ends = np.cumsum(self.n_steps)
        return [
            np.arange(end - n, end)
            for stage, n, end in zip(self.stages, self.n_steps, ends, strict=True)
            if stage == self._stage
        ]

    def _end(self, run: Array) -> str:
        if self.converged is False:
            return "did not converge"
        if self._stage != DESCENT:
            return ""
        share = 1 - self.change[run[-1]]
        return "all converged" if share == 1 else f"{100 * share:.0f} % converged when stopped"

    def _picture(self) -> Picture:
        """Describe the runs one after the other, each relative to its own first step."""
        if not self.stages:
            return empty("Convergence", self._nothing, self.description)
        runs, x, layers, spans = self._runs(), 0, list[Layer](), list[Array]()
        for run in runs:
            first = self.objective[run[0]] or 1.0
            mean, low, high = (v[run] / first for v in (self.objective, self.least, self.largest))
            steps = np.arange(x + 1, x + len(run) + 1)
            if x:
                layers.append(Mark(x + 0.5))
            if np.any(high > low):
                named = any(isinstance(layer, Band) for layer in layers)
                layers.append(Band(steps, low, high, name="" if named else "from least to largest"))
            layers.append(Line(steps, mean, dots=len(run) < 3))
            x, spans = x + len(run), [*spans, low, high]
        if any(isinstance(layer, Band) for layer in layers):
            layers[-1] = layers[-1]._replace(name="mean")
        log = 0 < np.min(np.concatenate(spans)) < 1 / LOG_FROM
        return Picture(
            self._title(runs),
            self.description,
            Axis("step", 0.5, x + 0.5, whole=True),
            Axis("objective (relative)", *ends(*spans, log=log), log=log),
            layers,
            room=0.17,
        )

    def _title(self, runs: list[Array]) -> str:
        n = sum(len(run) for run in runs)
        what = {DESCENT: "Descents"}.get(self._stage, self._stage.capitalize())
        text = f"{what}: {count(n)} step{'s' * (n != 1)}"
        if len(runs) > 1:
            text += f" in {len(runs)} runs"
        others = sum(self.n_steps) - n
        more = f"{count(others)} steps of finish" if others else ""
        details = "; ".join(part for part in (self._end(runs[-1]), more) if part)
        return f"{text}\n{details}" if details else text
