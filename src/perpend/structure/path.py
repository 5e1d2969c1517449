"""A path: weighted PCA at k normals along shrinking scales, from the width of the cloud down.

The weights are 1 - J^2 / R^2 within R = s (sqrt(k) + 2): linear in J^2, as the likelihood is where
the signal is weak, and zero beyond (a Gaussian or a Cauchy weight loses planes inside slabs). Each
row is seen from the subspace of the others: J (1 + a w), with a the mean leverage.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers.loop import Callback, iterate
from perpend.structure import constants as k
from perpend.structure import effort
from perpend.structure.cloud import Axes
from perpend.structure.profile import Plateau, Profile

MAX_STEPS = 3000  # more than the slowest path has from the width of the cloud to rounding


class _State(NamedTuple):
    axes: Axes
    J2: Array  # (n,)
    w: Array  # (n,)
    leverage: float
    scale: float
    significant: float  # the last scale at which something was seen
    n_steps: int
    done: bool

    @property
    def objective(self) -> float:
        """The scale."""
        return self.scale

    @property
    def change(self) -> float:
        """Not 0 as long as the path goes on."""
        return 0.0 if self.done else self.scale


def follow(
    profile: Profile,
    axes: Axes,
    c: int,
    shrink: float,
    *,
    known: Plateau | None = None,
    callback: Callback | None = None,
) -> None:
    """Follow a path from these axes at c normals and show its axes to the profile now and then.

    It ends early where it sees a structure that is `known`.
    """
    cloud = profile.cloud
    J2 = cloud.squares(axes, c)
    # From the width of the cloud down, or from twice that of the rows around a single one.
    width2 = min(float(np.median(J2)), 4 * float(np.sum(axes.variances[:c])))
    scale = math.sqrt(max(width2, 0.0) / c)
    start = _State(
        axes, J2, np.ones(len(J2)), (cloud.D - c) / cloud.n, scale, scale, 0, scale <= cloud.floor
    )
    iterate(
        lambda state: _step(profile, state, c, shrink, known),
        start,
        max_steps=MAX_STEPS,
        stage="path",
        callback=callback,
    )


def _step(profile: Profile, state: _State, c: int, shrink: float, known: Plateau | None) -> _State:
    cloud, s = profile.cloud, state.scale
    axes, J2, w, leverage = state.axes, state.J2, state.w, state.leverage
    for _ in range(2 if cloud.D <= effort.FEW_COLUMNS else 1):
        reach2 = (s * (math.sqrt(c) + k.REACH)) ** 2
        w = np.maximum(1 - J2 * np.square(1 + leverage * w) / reach2, 0)
        if np.count_nonzero(w) < cloud.D + 2:
            return state._replace(done=True)  # so few rows lie on anything
        axes = cloud.pca(w)
        J2 = cloud.squares(axes, c)
        leverage = _mean_leverage(axes, c, float(w.sum()))
    spread = math.sqrt(float(w @ J2) / (c * float(w.sum())))
    n_steps, significant, done = state.n_steps + 1, state.significant, False
    if n_steps % effort.TABLE_EVERY == 0:
        best = profile.add(axes)
        if np.any(best[cloud.scales <= 2 * s] > 0):
            significant = s
        done = known is not None and profile.table[known.c - 1, known.peak] > k.AS_GOOD * known.T
    s = min(shrink * s, 3 * spread)
    done = done or s <= cloud.floor or s <= significant / effort.GIVE_UP
    return _State(axes, J2, w, leverage, s, significant, n_steps, done)


def _mean_leverage(axes: Axes, c: int, n: float) -> float:
    inside, outside = axes.variances[c:], float(np.mean(axes.variances[:c]))
    least = 1e-12 * float(axes.variances[-1]) + np.finfo(float).tiny
    return min(float(np.sum(inside / np.maximum(inside - outside, least))) / n, 1.0)
