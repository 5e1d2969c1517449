"""The four pictures of a fit: codimension, distances, convergence and spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._convergence import ConvergenceDisplay
from perpend.plots._display import Display, ModelDisplay
from perpend.plots._distances import DistanceDisplay
from perpend.plots._profile import ProfileDisplay, scales_matter
from perpend.plots._spectrum import SpectrumDisplay, SpreadDisplay
from perpend.plots._words import verdict


@dataclass(eq=False, repr=False)
class SummaryDisplay(ModelDisplay):
    """A verdict and four panels: the codimension, distances, convergence and the inliers' spread.

    This is what ``model.plot()`` draws. The first panel shows what decided the codimension: the
    profile over scales, or the spectrum of the directions.

    `ax_` is an array of four axes, in reading order.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
    >>> display = DPCP(random_state=1).fit(X).plot()
    >>> [type(panel).__name__ for panel in display.panels]
    ['SpectrumDisplay', 'DistanceDisplay', 'ConvergenceDisplay', 'SpreadDisplay']
    """

    panels: Sequence[Display]  # four, in reading order; they hold the arrays
    verdict: str  # the title

    size, _grid = (4.7, 3.5), (2, 2)

    def __post_init__(self) -> None:
        self.panels = tuple(self.panels)

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:
        """Make the display of a fitted model, without drawing it."""
        decided: type[ModelDisplay] = ProfileDisplay if scales_matter(model) else SpectrumDisplay
        kinds = (decided, DistanceDisplay, ConvergenceDisplay, SpreadDisplay)
        return cls([kind.of(model, X) for kind in kinds], verdict(model))

    @property
    def _heading(self) -> str:  # type: ignore[override]
        """The verdict, as the title of a figure of its own."""
        return self.verdict.replace("; ", ";\n")

    @property
    def description(self) -> str:
        """The pictures in words."""
        return " ".join([self.verdict, *(panel.description for panel in self.panels)])

    def _place(self, ax: Any, draw: Callable[[Any], None]) -> None:  # noqa: ARG002
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != len(self.panels):
            raise InputError(
                f"ax has {len(axes)} axes; expected {len(self.panels)}, one for each panel, such "
                "as figure.subplots(2, 2)."
            )
        for place, panel in zip(axes, self.panels, strict=True):
            panel.plot(place)
        self.ax_, self.figure_ = axes, axes[0].figure
