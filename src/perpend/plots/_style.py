"""The house style: sizes, colours, and how a figure is made and saved.

`figure` makes plain `matplotlib.figure.Figure` objects with the Agg canvas, for files. It does not
use pyplot, so it changes none of the user's figures or settings and needs no screen.
"""

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from perpend._files import write
from perpend._typing import Array
from perpend.exceptions import MissingExtraError

# Okabe and Ito's palette, for any colour vision, without the yellow, which is invisible on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # the same order, for print in grey
RIGHT, WRONG, MUTED = COLORS[0], COLORS[1], "#8A8A8A"
COLOR_MAP = "cividis"  # even steps of brightness, the same with any colour vision
MISSING_COLOR = "#DDDDDD"
DPI = 150
SCREEN_DPI = 100
MOST_COLUMNS = 4  # panels side by side by default

Content = TypeVar("Content")

STYLE: Any = {  # matplotlib has a type for its keys, another one in each version
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.dpi": DPI,
    "figure.facecolor": "white",
    "figure.titlesize": 12,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same picture everywhere
    "font.size": 10,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "perpend",  # equal figures give equal files
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def require_matplotlib() -> None:
    """Raise MissingExtraError if there is no matplotlib; loads nothing."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "drawing needs matplotlib, which is not installed. Run: pip install 'perpend[plots]'"
        )


@contextmanager
def house_style() -> Iterator[None]:
    """Start from matplotlib's defaults: the user's matplotlibrc must not change our figures."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def without_axes(ax: Any) -> None:
    """Leave nothing around an image or a note."""
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)


@contextmanager
def figure(
    rows: int = 1, columns: int = 1, *, panel: tuple[float, float] = (4.2, 3.4), **subplots: Any
) -> Iterator[tuple[Any, Array]]:
    """Make a figure with a grid of axes; the house style holds inside the ``with`` block.

    Parameters
    ----------
    rows, columns : int
        The grid of panels.
    panel : pair of float
        Width and height of one panel in inches.
    **subplots
        For ``Figure.subplots``, such as ``sharey=True``.

    Yields
    ------
    figure : matplotlib.figure.Figure
    axes : array of shape (rows, columns)
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with house_style():
        made = Figure(figsize=(columns * panel[0], rows * panel[1]), layout="constrained")
        FigureCanvasAgg(made)
        yield made, made.subplots(rows, columns, squeeze=False, **subplots)


@contextmanager
def small_multiples(
    contents: Mapping[str, Content],
    columns: int | None = None,
    *,
    xlabel: str = "",
    ylabel: str = "",
    **options: Any,
) -> Iterator[tuple[Any, Array, list[tuple[Any, Content]]]]:
    """Make a figure with a titled panel for each content, and common names of the axes.

    Unused panels are hidden; those above them show the numbers of the axis instead.
    """
    rows = -(-len(contents) // (columns or MOST_COLUMNS))
    columns = columns or -(-len(contents) // rows)
    with figure(rows, columns, **options) as (drawing, axes):
        used = axes.flat[: len(contents)]
        for ax, title in zip(used, contents, strict=True):
            ax.set_title(title)
        yield drawing, axes, list(zip(used, contents.values(), strict=True))
        for i in range(len(contents), axes.size):
            axes.flat[i].set_visible(False)
            axes.flat[i - columns].tick_params(labelbottom=True)
        drawing.supxlabel(xlabel, fontsize=10)
        drawing.supylabel(ylabel, fontsize=10)


def shared_legend(drawing: Any, axes: Array, place: str, ncols: int, order: Sequence[str]) -> None:
    """Write one legend for all panels, with their names in this order."""
    handle_of = {
        name: handle
        for ax in axes.flat
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    names = [name for name in order if name in handle_of] or list(handle_of)
    if names:
        handles = [handle_of[name] for name in names]
        drawing.legend(handles, names, loc=f"outside {place} center", ncols=ncols)


def save(figure: Any, stem: str | os.PathLike[str]) -> list[Path]:
    """Write a figure as PNG and SVG and return the two paths.

    Equal figures give equal bytes: no dates, fixed identifiers, no version of matplotlib.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    stem : path
        The file's name without ``.png`` and ``.svg``.

    Returns
    -------
    list of Path
    """
    paths = [Path(f"{os.fspath(stem)}.{kind}") for kind in ("png", "svg")]
    left_out = {".png": ["Software"], ".svg": ["Date", "Creator"]}
    with house_style():
        for path in paths:
            stream = io.BytesIO()
            metadata = dict.fromkeys(left_out[path.suffix])
            figure.savefig(stream, format=path.suffix[1:], metadata=metadata)
            write(path, stream.getvalue())
    return paths
