"""What all displays have in common: they hold plain arrays, and `plot` draws them.

A display is made from a fitted model by `from_estimator`, or from arrays by its constructor. `plot`
draws it onto given axes or into a new figure of pyplot, as in scikit-learn, so ``plt.show()`` and
notebooks show it. After the figure is closed, the display shows itself in a notebook.
"""

import html
import io
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable
from typing import Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._axes import draw
from perpend.plots._picture import Picture
from perpend.plots._style import SCREEN_DPI, house_style, require_matplotlib


class Display(ABC):
    """Base of all displays; they keep the arguments of their constructors under the same names.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes that `plot` used.
    figure_ : matplotlib.figure.Figure
        Their figure.
    """

    size: ClassVar[tuple[float, float]] = (5.2, 3.7)  # inches of a figure of its own
    _grid: ClassVar[tuple[int, int]] = (1, 1)  # panels of such a figure
    projection: ClassVar[str | None] = None
    _heading = ""  # of such a figure

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw it."""
        return self._plot(ax, self._draw)

    def _plot(self, ax: Any, draw: Callable[[Any], None]) -> Self:
        require_matplotlib()
        if ax is not None:
            self._place(ax, draw)
            return self
        from matplotlib import pyplot as plt

        # Loads the backend first: its changes to settings must outlast our style.
        plt.draw_if_interactive()  # type: ignore[no-untyped-call]
        (rows, columns), (width, height) = self._grid, self.size
        with house_style():
            made = plt.figure(
                figsize=(columns * width, rows * height), dpi=SCREEN_DPI, layout="constrained"
            )
            try:
                axes = made.subplots(rows, columns, subplot_kw={"projection": self.projection})
                self._place(axes, draw)
                if self._heading:
                    made.suptitle(self._heading)
            except BaseException:
                plt.close(made)
                raise
        return self

    def _place(self, ax: Any, draw: Callable[[Any], None]) -> None:
        """Draw it onto axes."""
        if self.projection and getattr(ax, "name", "") != self.projection:
            raise InputError(
                f"{type(self).__name__} needs axes with projection={self.projection!r}, such "
                f"as figure.add_subplot(projection={self.projection!r})."
            )
        draw(ax)
        self.ax_, self.figure_ = ax, ax.figure

    @property
    @abstractmethod
    def description(self) -> str:
        """What the picture shows, in a sentence or two with the numbers; usable as alt text."""

    def _picture(self) -> Picture:
        """Describe it in plain arrays and words, for matplotlib and for the report."""
        raise NotImplementedError

    def _draw(self, ax: Any) -> None:
        draw(ax, self._picture())

    def _repr_html_(self) -> str | None:
        """Show the picture in a notebook, with its description as alt text.

        While pyplot has it open, the notebook shows it at the end of the cell, and this does not.
        """
        if not hasattr(self, "figure_"):
            return None
        from matplotlib._pylab_helpers import Gcf  # as notebooks do; pyplot only compares numbers

        whole = self.figure_.figure  # axes may be in a part of a figure
        if any(manager.canvas.figure is whole for manager in Gcf.get_all_fig_managers()):
            return None
        stream = io.BytesIO()
        with house_style():
            whole.savefig(stream, format="png", dpi=SCREEN_DPI)
        data, alt = b64encode(stream.getvalue()).decode(), html.escape(self.description)
        return f'<img src="data:image/png;base64,{data}" alt="{alt}">'


class ModelDisplay(Display):
    """A display that needs nothing but a fitted model."""

    _word = "rows"  # what they are called; those of an image are pixels

    @classmethod
    def from_estimator(cls, model: Any, X: Array | None = None, *, ax: Any = None) -> Self:
        """Draw a fitted model."""
        check_is_fitted(model)
        return cls.of(model, X).plot(ax)

    @classmethod
    @abstractmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:
        """Make the display of a fitted model, without drawing it."""
