r"""Random sample consensus (RANSAC) for subspaces, given dimension.

Draw d rows; their span is a trial. Keep the trial that most rows agree with, and fit it again to
these. A sample has no outlier with probability w^d, where w is the share of inliers, so

.. math:: T = \frac{\log(1 - p)}{\log(1 - w^d)}

trials find one with probability p. That is 17 for a plane (d = 2) among half outliers, 4,700 for
d = 10, and 5 million for d = 20: it is hopeless for dimensions near that of the space.

With a given threshold r the rows within r agree. Without one, each trial has the threshold whose
number of rows k is least likely by chance: by the number of false alarms

.. math:: \log\mathrm{NFA} = \min_k \; \log n + \log\binom nk + \log\binom kd + (k - d) \log P(r_k),

with the distance r_k of the k-th nearest row and the share P(r) of rows without preferred direction
that are as near.

M. A. Fischler, R. C. Bolles. Random sample consensus. Communications of the ACM 24(6), 1981. The
threshold: L. Moisan, B. Stival. A probabilistic criterion to detect rigid point matches between two
images and estimate the fundamental matrix. IJCV 57(3), 2004.
"""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import gammaln

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Interval, SubspaceEstimator
from perpend.geometry import complement
from perpend.kernels import trial_distances, trial_residuals
from perpend.rows import RowSource, RowSpan
from perpend.solvers import Directions, Solution, Urn, ended, iterate
from perpend.solvers.loop import Callback
from perpend.structure import solve_fixed
from perpend.structure.labels import outlier_law

BATCH = 2**22  # values of all rows and trials at a time
AT_ONCE = 64  # trials at a time, at most: few are needed where many rows agree
GRID = np.geomspace(1e-9, 1, 400)  # sines at which P is computed; between them it is a power

Score = Callable[[Array], tuple[Array, Array]]  # of distances (n, T): scores, thresholds (T,)


class _State(NamedTuple):
    U: Array  # (D', d) the basis of the best trial
    near: Array  # (n,) bool: rows that agree with it
    score: float
    n_trials: int
    objective: float  # weight of the rows that do not agree
    change: float  # trials that are still needed


def ransac(
    rows: RowSource,
    *,
    codimension: int = 1,
    threshold: float | Literal["auto"] = "auto",
    stop_probability: float = 0.99,
    max_iter: int = 1000,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the given codimension; the parameters are those of `RANSAC`."""

    def find(rows: RowSource, span: RowSpan, c: int) -> Directions:
        d, D = span.rank - c, len(span.basis)
        if d == 0:
            return Directions(span.axes, np.zeros(1), np.zeros(1, int), np.ones(1, bool), 0.0, 0)
        urn = Urn(rows, span, rng)
        weight, total = urn.weight, float(urn.weight.sum())
        one, lengths = np.zeros((D, 1)), np.ones(1)
        if isinstance(threshold, str):
            largest = float(rows.norms[-1])
            scored = _unlikely(weight, d, outlier_law(GRID * largest, rows.norms, c, d))
            unit = 1 / largest
        else:
            scored, unit = _within(weight, threshold), rows.unit
            if rows.lifted_by is not None:  # Euclidean distances, of rows without the last 1
                one = span.inside(np.eye(span.n_features)[:, -1:])
                lengths, unit = rows.gather(rows.lengths), unit * rows.lifted_by
        at_once = int(np.clip(BATCH // (len(weight) * min(c, d)), 1, AT_ONCE))

        def step(state: _State) -> _State:
            n = min(at_once, max_iter - state.n_trials)
            samples = rows.take(urn.draw(n * d)).astype(float).reshape(n, d, D)
            Q, r = _distances(rows, span, np.swapaxes(samples, 1, 2), one)
            r *= unit * lengths[:, None]
            scores, limits = scored(r)
            i, n_trials = int(np.argmax(scores)), state.n_trials + n
            if scores[i] > state.score:
                near = r[:, i] <= limits[i]
                away = total - float(weight[near].sum())
                state = _State(Q[i], near, float(scores[i]), n_trials, away, 0.0)
            # What chance alone explains is no consensus, whatever its share.
            share = 1 - state.objective / total if state.score > 0 else 0.0
            needed = _trials(share, d, stop_probability)
            return state._replace(n_trials=n_trials, change=max(needed - n_trials, 0.0))

        start = _State(np.zeros((D, d)), weight > 0, -np.inf, 0, total, np.inf)
        steps = -(-max_iter // at_once)
        run = iterate(step, start, max_steps=steps, stage="trials", callback=callback)
        V = _refitted(rows, span, run.state, weight * lengths**2)[:, :c]
        return ended(run, V, 0.0, run.state.n_trials)

    return solve_fixed(rows, codimension, find, rng)


def _distances(rows: RowSource, span: RowSpan, A: Array, one: Array) -> tuple[Array, Array]:
    """Return bases (T, D', d) of the spans of A, and the distances (n, T) of all rows to them."""
    (_, D, d), c = A.shape, span.rank - A.shape[2]

    def scan(kernel: Any, M: Array, *params: Any) -> Array:
        flat = np.ascontiguousarray(np.moveaxis(M, 0, 1).reshape(D, -1))
        kept = rows.scan(kernel, flat, *params, keep=True).kept
        assert kept is not None
        return rows.gather(kept).astype(float)

    if c > d or span.rank < D:
        Q, _ = np.linalg.qr(A)
        return Q, scan(trial_residuals, Q, one, d)
    all_, _ = np.linalg.qr(A, mode="complete")
    Q, N = all_[:, :, :d], all_[:, :, d:]
    # Normals of lifted rows become Euclidean ones: N (I - q q^T)^(-1/2), with q = N^T one.
    q = np.swapaxes(N, 1, 2) @ one  # (T, c, 1)
    size = np.sum(q * q, axis=1, keepdims=True)
    longer = 1 / np.sqrt(np.maximum(1 - size, np.finfo(float).eps)) - 1
    N = N + N @ q * (longer / np.where(size > 0, size, 1)) @ np.swapaxes(q, 1, 2)
    return Q, scan(trial_distances, N, c)


def _trials(share: float, d: int, p: float) -> float:
    """Return the trials that find a sample of inliers alone with probability p."""
    hit = min(share**d, 1 - 1e-12)
    return math.ceil(math.log1p(-p) / math.log1p(-hit)) if hit > 0 else np.inf


def _within(weight: Array, limit: float) -> Score:
    """Score trials by the weight of the rows within the limit."""

    def scored(r: Array) -> tuple[Array, Array]:
        return weight @ (r <= limit), np.full(r.shape[1], limit)

    return scored


def _unlikely(weight: Array, d: int, law: Array) -> Score:
    """Score trials by how unlikely their nearest rows are by chance, at the best threshold."""
    total, log_law = float(weight.sum()), np.log(np.maximum(law, np.finfo(float).tiny))
    constant = math.log(total) + gammaln(total + 1) - gammaln(d + 1)

    def scored(r: Array) -> tuple[Array, Array]:
        r = np.where(weight[:, None] > 0, np.clip(r, GRID[0], 1), 1)
        order = np.argsort(r, axis=0)
        r, k = np.take_along_axis(r, order, axis=0), np.cumsum(weight[order], axis=0)
        log_p = np.interp(np.log(r), np.log(GRID), log_law)
        some, rest = np.maximum(k, d), np.maximum(total - k, 0)
        choices = constant - gammaln(some - d + 1) - gammaln(rest + 1)  # n n!/(d! (k-d)! (n-k)!)
        false_alarms = np.where(k > d, choices + (some - d) * log_p, np.inf)
        best = np.argmin(false_alarms, axis=0), np.arange(r.shape[1])
        return -false_alarms[best], r[best]

    return scored


def _refitted(rows: RowSource, span: RowSpan, best: _State, weight: Array) -> Array:
    """Return the axes (D', R) of the rows that agree, least variance first."""
    near = np.flatnonzero(best.near & (weight > 0))
    half = np.sqrt(weight[near])[:, None] * rows.take(near).astype(float) @ span.basis
    variances, axes = np.linalg.eigh(half.T @ half)
    d = best.U.shape[1]
    if variances[-d] <= span.rounding:  # they span less than the sample: keep that
        axes = complement(span.basis.T @ best.U)
    return np.asarray(span.basis @ axes)


class RANSAC(SubspaceEstimator):
    r"""Random sample consensus: the subspace through a few rows that most rows agree with.

    The codimension or the dimension must be given. The number of trials grows exponentially with
    the dimension: it suits lines, planes and dimensions up to about ten, and is hopeless for
    dimensions near the number of features.

    Parameters
    ----------
    threshold : "auto" or float, default="auto"
        The distance up to which rows agree with a trial, and above which a row is an outlier:
        relative to its norm (the sine of its angle to the subspace) if `normalize`, otherwise, and
        for an affine subspace, in the data's own units. "auto" uses the distance at which the
        number of rows is least likely by chance in each trial, and the usual threshold for the
        labels. If the cloud as a whole is flat, all of it may agree: then give a number.
    stop_probability : float, default=0.99
        It stops when a sample without outliers has been drawn with this probability, by the largest
        share of rows that agreed so far.
    max_iter : int, default=1000
        Maximum number of trials.

    Attributes
    ----------
    objective_ : float
        Share of the rows that do not agree.
    n_iter_ : int
        Number of trials.

    Examples
    --------
    >>> from perpend import RANSAC
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 300, n_features=20, codimension=17, random_state=0)
    >>> model = RANSAC(n_components=3, random_state=0).fit(data.X)
    >>> int((model.labels_ == data.y).sum())
    600
    """

    stop_probability: float = 0.99
    max_iter: int = 1000

    capabilities = Capabilities(
        solves="most rows near the span of a few of them",
        family="samples",
        cost="n D d for a trial",
        regime="d is known and small: lines, planes",
        guarantee="A sample without outliers with the given probability, after a number of trials "
        "that is exponential in d.",
        reference="Fischler, Bolles 1981",
        time="1e-7 n D min(c,d) + 2e-7 D d²",
        memory="n min(c,d) + 32 D²",
    )
    _function = staticmethod(ransac)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "stop_probability": [Interval(Real, 0, 1, closed="neither")],
    }
