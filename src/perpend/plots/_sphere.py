"""Directions on the unit sphere: where they start, which way they go, where they end.

The sphere is projected by hand onto flat axes, seen from far away. So what lies behind is known,
and drawn fainter, which matplotlib's own 3-D axes cannot do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._style import COLORS, MUTED, figure, grid

BEHIND = 0.25  # opacity of what lies on the far side


@dataclass(frozen=True)
class OnSphere:
    """What one sphere shows; everything may be left out.

    Attributes
    ----------
    circle : array (3,), optional
        Normal of a plane through the centre; its great circle is drawn.
    axis : array (3,), optional
        A line through the centre, drawn through the sphere.
    starts, limits : array (n, 3), optional
        Points on the sphere: hollow where paths start, filled where they end.
    paths : sequence of arrays (k, 3)
        The way from a start to its limit.
    """

    circle: Array | None = None
    axis: Array | None = None
    starts: Array | None = None
    limits: Array | None = None
    paths: Sequence[Array] = ()


def sphere(
    panels: Mapping[str, OnSphere],
    *,
    circle: str = "",
    axis: str = "",
    starts: str = "starts",
    limits: str = "limits",
    view: tuple[float, float] = (25.0, 35.0),
    columns: int | None = None,
) -> Any:
    """Draw unit spheres side by side.

    Parameters
    ----------
    panels : dict
        Title -> `OnSphere`.
    circle, axis, starts, limits : str
        What they are, for the legend; "" leaves one out.
    view : pair of float
        Height and turn of the eye in degrees.
    columns : int, optional
        Spheres in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = {"circle": circle, "axis": axis, "starts": starts, "limits": limits}
    eye = _eye(*view)
    with figure(*grid(len(panels), columns), panel=(3.4, 3.6)) as (drawing, axes):
        for ax in axes.flat:
            ax.axis("off")
        for ax, (title, content) in zip(axes.flat, panels.items(), strict=False):
            ax.set(title=title, aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
            _globe(ax, eye)
            _content(ax, eye, content, names)
        labelled = {
            name: handle
            for ax in axes.flat
            for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)
            if name
        }
        if labelled:
            drawing.legend(
                list(labelled.values()), list(labelled), loc="outside lower center", ncols=4
            )
    return drawing


def _eye(height: float, turn: float) -> Array:
    """Return the rotation whose rows point right, up and towards the eye."""
    h, t = np.deg2rad([height, turn])
    right = [-np.sin(t), np.cos(t), 0.0]
    towards = [np.cos(h) * np.cos(t), np.cos(h) * np.sin(t), np.sin(h)]
    return np.array([right, np.cross(towards, right), towards])


def _globe(ax: Any, eye: Array) -> None:
    """Draw the outline and a net of meridians and parallels."""
    angle = np.linspace(0, 2 * np.pi, 181)
    ax.fill(np.cos(angle), np.sin(angle), facecolor="#F7F7F7", edgecolor=MUTED, linewidth=1.0)
    for turn in np.arange(0, 180, 30):
        t = np.deg2rad(turn)
        ring = [np.cos(angle) * np.cos(t), np.cos(angle) * np.sin(t), np.sin(angle)]
        _curve(ax, eye, np.array(ring).T, color="#BBBBBB", linewidth=0.5)
    for height in (-60, -30, 0, 30, 60):
        h = np.deg2rad(height)
        ring = [np.cos(h) * np.cos(angle), np.cos(h) * np.sin(angle), np.full(181, np.sin(h))]
        _curve(ax, eye, np.array(ring).T, color="#BBBBBB", linewidth=0.5)


def _content(ax: Any, eye: Array, content: OnSphere, names: Mapping[str, str]) -> None:
    if content.axis is not None:
        _axis(ax, eye, _unit(content.axis), names["axis"])
    if content.circle is not None:
        first, second = np.linalg.svd(_unit(content.circle)[None])[2][1:]
        angle = np.linspace(0, 2 * np.pi, 361)[:, None]
        ring = np.cos(angle) * first + np.sin(angle) * second
        _curve(ax, eye, ring, color=COLORS[2], linewidth=2.2, label=names["circle"])
    for path in content.paths:
        _curve(ax, eye, _unit(np.asarray(path)), color=COLORS[0], linewidth=0.9)
    if content.starts is not None:
        _dots(ax, eye, content.starts, COLORS[0], label=names["starts"], hollow=True)
    if content.limits is not None:
        _dots(ax, eye, content.limits, COLORS[1], label=names["limits"], hollow=False)


def _axis(ax: Any, eye: Array, direction: Array, label: str) -> None:
    """Draw a line through the ball: dotted inside, faint where the ball hides its far end."""
    length = np.linspace(-1.12, 1.12, 113)
    x, y, depth = eye @ (length[:, None] * direction).T
    inside = np.abs(length) < 1
    seen = ~inside & ((depth >= 0) | (np.hypot(x, y) > 1))
    ax.plot(np.where(inside, x, np.nan), y, ":", color="black", linewidth=1.2)
    ax.plot(np.where(inside | seen, np.nan, x), y, color="black", linewidth=1.8, alpha=BEHIND)
    ax.plot(np.where(seen, x, np.nan), y, color="black", linewidth=1.8, label=label)


def _unit(vectors: Array) -> Array:
    vectors = np.asarray(vectors, dtype=float)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _curve(ax: Any, eye: Array, points: Array, *, label: str = "", **style: Any) -> None:
    """Draw the near part of a curve fully and the far part faintly, without a hole between."""
    x, y, depth = eye @ points.T
    near = depth >= 0
    grown = near | np.roll(near, 1) | np.roll(near, -1)
    ax.plot(np.where(~near, x, np.nan), y, alpha=BEHIND, solid_capstyle="butt", **style)
    ax.plot(np.where(grown, x, np.nan), y, label=label, **style)


def _dots(ax: Any, eye: Array, points: Array, color: str, *, label: str, hollow: bool) -> None:
    x, y, depth = eye @ _unit(np.atleast_2d(points)).T
    face = "white" if hollow else color
    size = 20 if hollow else 30
    for part, opacity, name in ((depth < 0, BEHIND, ""), (depth >= 0, 1.0, label)):
        ax.scatter(
            x[part], y[part], s=size, facecolors=face, edgecolors=color, linewidths=1.1,
            alpha=opacity, label=name, zorder=4 if hollow else 5,
        )  # fmt: skip
