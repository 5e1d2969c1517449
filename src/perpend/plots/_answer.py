"""The four pictures that answer "can I trust this?"."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._convergence import ConvergenceDisplay
from perpend.plots._display import Display, ModelDisplay
from perpend.plots._distances import DistanceDisplay
from perpend.plots._profile import ProfileDisplay, scales_matter
from perpend.plots._spectrum import SpectrumDisplay, SpreadDisplay
from perpend.plots._style import pyplot_figure, require_matplotlib
from perpend.plots._words import verdict

PANEL = (4.7, 3.5)  # inches


class AnswerDisplay(ModelDisplay):
    """A verdict and four panels: what decided, distances, convergence and the inliers' spread.

    This is what ``model.plot()`` draws. The first panel is the profile where scales have decided,
    and otherwise the spectrum of the directions, which then are what the codimension rests on.

    Parameters
    ----------
    panels : sequence of four displays
        In reading order.
    verdict : str
        The title.

    Attributes
    ----------
    panels, verdict :
        As they were given; the panels hold the arrays.
    figure_ : matplotlib.figure.Figure
    ax_ : array of four matplotlib.axes.Axes
        In reading order.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
    >>> display = DPCP(random_state=1).fit(X).plot()
    >>> [type(panel).__name__ for panel in display.panels]
    ['SpectrumDisplay', 'DistanceDisplay', 'ConvergenceDisplay', 'SpreadDisplay']
    """

    def __init__(self, panels: Sequence[Display], verdict: str) -> None:
        self.panels, self.verdict = tuple(panels), verdict

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:
        """Take what is drawn from a fitted model, and do not draw it yet."""
        decided: type[ModelDisplay] = ProfileDisplay if scales_matter(model) else SpectrumDisplay
        kinds = (decided, DistanceDisplay, ConvergenceDisplay, SpreadDisplay)
        return cls([kind.of(model, X) for kind in kinds], verdict(model))

    def plot(self, ax: Any = None) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : four matplotlib.axes.Axes, optional
            Where to draw, in any shape; by default a new figure with the verdict as its title,
            which ``plt.show()`` shows.

        Returns
        -------
        the display itself
        """
        require_matplotlib()
        if ax is not None:
            self._draw(ax)
        else:
            with pyplot_figure(2, 2, panel=PANEL) as (made, axes):
                self._draw(axes)
                made.suptitle(self.verdict.replace("; ", ";\n"))
        return self

    @property
    def description(self) -> str:
        """The pictures in words."""
        return " ".join([self.verdict, *(panel.description for panel in self.panels)])

    def _draw(self, ax: Any) -> None:
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != len(self.panels):
            raise InputError(
                f"ax has {len(axes)} axes; expected {len(self.panels)}, one for each panel, such "
                "as figure.subplots(2, 2)."
            )
        for place, panel in zip(axes, self.panels, strict=True):
            panel.plot(place)
        self.ax_, self.figure_ = axes, axes[0].figure
