"""Directions on the unit sphere: starts, paths and limits.

The sphere is projected onto flat axes here, so that the far side can be drawn fainter, which
matplotlib's 3-D axes cannot do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._style import COLORS, MUTED, RIGHT, WRONG, shared_legend, small_multiples

BEHIND = 0.25  # opacity of the far side
SUBSPACE, COMPLEMENT = COLORS[-1], COLORS[2]
DOTS: dict[str, dict[str, Any]] = {  # the later ones lie on top
    "targets": {"s": 120, "facecolors": "none", "edgecolors": COMPLEMENT, "zorder": 4},
    "starts": {"s": 26, "facecolors": "white", "edgecolors": RIGHT, "zorder": 5},
    "limits": {"s": 34, "facecolors": RIGHT, "edgecolors": RIGHT, "zorder": 6},
    "strays": {"s": 70, "facecolors": WRONG, "edgecolors": "white", "zorder": 7, "marker": "X"},
}


@dataclass(frozen=True)
class OnSphere:
    """What one sphere shows; everything may be left out.

    A subspace is given by rows that span a line or a plane through the centre. It is drawn as an
    axis through the sphere or as a great circle. Points are rows, too.
    """

    subspace: Array | None = None  # (k, 3), a subspace
    complement: Array | None = None  # (k, 3), its complement, in another colour
    starts: Array | None = None  # (n, 3) starts of paths, hollow
    limits: Array | None = None  # (n, 3) their ends, filled
    strays: Array | None = None  # (n, 3) limits that are wrong, drawn as crosses
    targets: Array | None = None  # (n, 3) where limits are expected: rings around these points
    paths: Sequence[Array] = ()  # (k, 3) each, from a start to its limit


def sphere(
    panels: Mapping[str, OnSphere],
    *,
    subspace: str = "subspace",
    complement: str = "complement",
    starts: str = "starts",
    limits: str = "limits",
    strays: str = "wrong limits",
    targets: str = "expected limits",
    view: tuple[float, float] = (25.0, 35.0),
    columns: int | None = None,
) -> Any:
    """Draw unit spheres side by side.

    Parameters
    ----------
    panels : dict
        Title -> `OnSphere`.
    subspace, complement, starts, limits, strays, targets : str
        What they are, for the legend; "" leaves one out.
    view : pair of float
        Height and turn of the eye in degrees.
    """
    names = {
        "subspace": subspace,
        "complement": complement,
        "starts": starts,
        "limits": limits,
        "strays": strays,
        "targets": targets,
    }
    eye = _eye(*view)
    with small_multiples(panels, columns, panel=(3.8, 3.7)) as (drawing, axes, pairs):
        for ax, content in pairs:
            ax.axis("off")
            ax.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
            _globe(ax, eye)
            for name, color in (("complement", COMPLEMENT), ("subspace", SUBSPACE)):
                if getattr(content, name) is not None:
                    basis = np.atleast_2d(getattr(content, name))
                    _through_centre(ax, eye, basis, color=color, label=names[name])
            for path in content.paths:
                _curve(ax, eye, _arcs(_unit(path)), color=RIGHT, linewidth=1.3)
            for name, style in DOTS.items():
                points = getattr(content, name)
                if points is not None and len(points):
                    _dots(ax, eye, points, label=names[name], **style)
        shared_legend(drawing, axes, "lower", 3, list(names.values()))
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
    x, y, one = np.cos(angle), np.sin(angle), np.ones(len(angle))
    ax.fill(x, y, facecolor="#F7F7F7", edgecolor=MUTED, linewidth=1.0)
    turns, heights = np.deg2rad(np.arange(0, 180, 30)), np.deg2rad([-60, -30, 0, 30, 60])
    meridians = [[x * np.cos(t), x * np.sin(t), y] for t in turns]
    parallels = [[x * np.cos(h), y * np.cos(h), one * np.sin(h)] for h in heights]
    for ring in meridians + parallels:
        _curve(ax, eye, np.array(ring).T, color="#BBBBBB", linewidth=0.5)


def _through_centre(ax: Any, eye: Array, basis: Array, *, color: str, label: str) -> None:
    """Draw a plane as its great circle, and a line as an axis: dotted inside, faint behind."""
    if len(basis) > 1:
        first, second = np.linalg.svd(basis, full_matrices=False)[2]
        angle = np.linspace(0, 2 * np.pi, 361)[:, None]
        ring = np.cos(angle) * first + np.sin(angle) * second
        x, y, _ = eye @ ring.T
        ax.fill(x, y, color=color, alpha=0.08, linewidth=0)
        _curve(ax, eye, ring, color=color, linewidth=2.2, label=label)
        return
    length = np.linspace(-1.18, 1.18, 119)
    x, y, depth = eye @ (length[:, None] * _unit(basis[0])).T
    inside = np.abs(length) < 1
    seen = ~inside & ((depth >= 0) | (np.hypot(x, y) > 1))
    ax.plot(np.where(inside, x, np.nan), y, ":", color=color, linewidth=1.6)
    ax.plot(np.where(inside | seen, np.nan, x), y, color=color, linewidth=2.2, alpha=BEHIND)
    ax.plot(np.where(seen, x, np.nan), y, color=color, linewidth=2.2, label=label)


def _arcs(points: Array) -> Array:
    """Put points between those of a path, so that long steps follow the sphere."""
    share = np.linspace(0, 1, 12, endpoint=False)[:, None, None]
    between = (1 - share) * points[:-1] + share * points[1:]
    return _unit(np.concatenate([between.swapaxes(0, 1).reshape(-1, 3), points[-1:]]))


def _unit(vectors: Array) -> Array:
    vectors = np.asarray(vectors, dtype=float)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _curve(ax: Any, eye: Array, points: Array, *, label: str = "", **style: Any) -> None:
    """Draw the near part of a curve fully and the far part faintly, without a gap between."""
    x, y, depth = eye @ points.T
    near = depth >= 0
    grown = near | np.roll(near, 1) | np.roll(near, -1)
    ax.plot(np.where(~near, x, np.nan), y, alpha=BEHIND, solid_capstyle="butt", **style)
    ax.plot(np.where(grown, x, np.nan), y, label=label, **style)


def _dots(ax: Any, eye: Array, points: Array, *, label: str, **style: Any) -> None:
    x, y, depth = eye @ _unit(np.atleast_2d(points)).T
    for part, opacity, name in ((depth < 0, BEHIND, ""), (depth >= 0, 1.0, label)):
        ax.scatter(x[part], y[part], alpha=opacity, label=name, **style)
