r"""RANSAC+: random samples in two stages; it finds the dimension itself.

Stage 1 doubles the number m of drawn rows until half of all rows are near their span, three times
in a row. That span V holds the subspace, if less than half of the rows are outliers, and a little
more. Stage 2 draws batches of rows in the coordinates of V; the i-th record is

.. math:: \rho_i = \min_{\text{batches}} \sigma_i^2(\text{batch}) / m_2

A batch without outliers has rank d, so the records fall at d. The largest fall is the dimension,
and the batch with the least record beyond it gives the basis. Its number of batches is exponential
in the dimension of V: it is made for small dimensions, with adversarial outliers and noise.

The rows left over by V, by their median, count as one more record; so the dimension of V itself
can be chosen, also where V is all that the rows span and less than the space. The authors do not
say what they do there.

G. Chen, J. Ma, S. Fattahi. RANSAC revisited: an improved algorithm for robust subspace recovery
under adversarial and noisy corruptions. arXiv 2504.09648, 2025.
"""

import math
from dataclasses import field
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import Interval, SubspaceEstimator
from perpend.geometry import complement, orthonormal
from perpend.kernels import residuals
from perpend.rows import RowSource, RowSpan
from perpend.rows.views import typical
from perpend.solvers import Directions, Solution, Urn, ended, iterate
from perpend.solvers.loop import Callback
from perpend.structure import largest_fall, solve_fixed, solve_free

PASSES = 3  # spans in a row that half of the rows must be near to
LEAST = 100  # batches, at least
BATCH = 256  # of them at a time, at most,
ENTRIES = 2**22  # with so many entries together
NOTHING = 1e-10  # records below this share of the largest are zero: rounding errors


class _Span(NamedTuple):
    V: Array  # (R, r) the rows that were drawn span it
    m: int  # how many were drawn
    passes: int
    objective: float  # the median distance
    change: float  # 0 once it has passed


class _Records(NamedTuple):
    least: Array  # (r,) the records, largest first
    drawn: Array  # (r, m) for each i, the rows of the batch with the least i-th value
    n_batches: int
    objective: float  # the sum of the records
    change: float  # batches that are still to be drawn


def ransac_plus(
    rows: RowSource,
    *,
    codimension: int | Literal["auto"] = "auto",
    residual: float = 0.1,
    outlier_share: float = 0.2,
    max_iter: int = 2000,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace and its dimension; the parameters are those of `RANSACPlus`."""

    def find(rows: RowSource, span: RowSpan, c: int | None = None) -> Directions:
        urn = Urn(rows, span, rng)
        X = rows.take(np.arange(rows.shape[0])).astype(float) @ span.basis
        wide = _wide(X, urn, residual / rows.unit, callback)
        r = wide.V.shape[1]
        m = int(2 * r / (1 - outlier_share))
        log_wanted = -m * math.log1p(-1.5 * outlier_share)  # the number itself may be no float
        enough = max(log_wanted, math.log(LEAST)) <= math.log(max_iter)
        needed = max(int(math.exp(log_wanted)), LEAST) if enough else max_iter
        inside, at_once = X @ wide.V, int(np.clip(ENTRIES // (m * r), 1, BATCH))
        start = _Records(np.full(r, np.inf), np.zeros((r, m), int), 0, float(r), float(needed))
        run = iterate(
            lambda state: _next(
                state, inside, urn.draw(min(at_once, needed - state.n_batches), m), needed
            ),
            start,
            max_steps=needed,
            stage="batches",
            callback=callback,
        )
        d = _dimension(run.state, wide, span) if c is None else min(span.rank - c, r)
        U = wide.V
        if d < r:
            U = wide.V @ _spectra(inside[run.state.drawn[[d]]])[1][0, :, :d]
        V = complement(U)[:, : span.rank - d if c is None else c]
        end = ended(run, span.basis @ V, 0.0, run.state.n_batches)
        return end._replace(converged=end.converged & enough)

    if codimension == "auto":
        return solve_free(rows, find, rng)
    return solve_fixed(rows, codimension, find, rng)


def _wide(X: Array, urn: Urn, near: float, callback: Callback | None) -> _Span:
    """Draw ever more rows until half of all are near their span."""

    def attempt(m: int, passes: int) -> _Span:
        V = orthonormal(X[urn.draw(m)].T)
        median = float(typical(residuals(X, V).kept, urn.weight))
        passes = passes + 1 if median < near else 0
        all_ = V.shape[1] == X.shape[1]  # everything is near
        return _Span(V, m, passes, median, 0.0 if all_ or passes == PASSES else 1.0)

    def step(old: _Span) -> _Span:
        return attempt(old.m if old.passes else 2 * old.m + 1, old.passes)

    # m doubles; beyond some multiple of the dimension it spans everything.
    most = PASSES * (8 + int(np.log2(sum(X.shape))))
    return iterate(step, attempt(2, 0), max_steps=most, stage="span", callback=callback).state


def _next(old: _Records, X: Array, drawn: Array, needed: int) -> _Records:
    """Keep the least of each singular value over some more batches, rows `drawn` (n, m) of X."""
    values, _ = _spectra(X[drawn])
    i = np.argmin(values, axis=0)
    least = values[i, np.arange(len(i))]
    kept = np.where((least < old.least)[:, None], drawn[i], old.drawn)
    least, n = np.minimum(least, old.least), old.n_batches + len(drawn)
    return _Records(least, kept, n, float(least.sum()), float(needed - n))


def _spectra(Z: Array) -> tuple[Array, Array]:
    """Return the mean squares (n, r) of batches Z (n, m, r) along their axes, and these (n, r, r).

    The largest is first.
    """
    values, axes = np.linalg.eigh(np.swapaxes(Z, 1, 2) @ Z / Z.shape[1])
    return np.maximum(values[:, ::-1], 0), axes[:, :, ::-1]


def _dimension(found: _Records, wide: _Span, span: RowSpan) -> int:
    """Return after how many records they fall most."""
    (r, m), whole = found.drawn.shape, wide.V.shape[1] == span.rank
    t = np.append(found.least, [] if whole else [wide.objective**2])
    t = np.maximum(t, NOTHING * t[0])
    # Of m rows of a cloud the least value is below x with a chance like x^((m - r + 1) / 2).
    luck = found.n_batches ** (2 / (m - r + 1))
    return largest_fall(t, then_zero=whole and span.is_smaller, luck=luck)


class RANSACPlus(SubspaceEstimator):
    r"""RANSAC+: two stages of random samples, which find the dimension as well.

    For small dimensions and less than half outliers, which may be adversarial. The number of
    batches grows exponentially with the dimension.

    Parameters
    ----------
    codimension : "auto" or int, default="auto"
        Number of normals: features minus dimension of the subspace. "auto" finds it, unless
        `n_components` is given.
    residual : float, default=0.1
        The distance within which half of the rows must be in the first stage, in the units of
        `threshold`: above the noise, below the distances of outliers.
    outlier_share : float, default=0.2
        The share of outliers, or a bound on it; it sets the size and number of the batches.
    max_iter : int, default=2000
        Maximum number of batches. It has converged if the formula needs no more.

    Attributes
    ----------
    objective_ : float
        Sum of the records, divided by the number of rows.
    n_iter_ : int
        Number of batches.

    Examples
    --------
    >>> from perpend import RANSACPlus
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(400, 60, n_features=50, codimension=47, random_state=0)
    >>> model = RANSACPlus(random_state=0).fit(data.X)
    >>> model.n_components_, int((model.labels_ == data.y).sum())
    (3, 460)
    """

    codimension: Any = field(default="auto", kw_only=False)
    residual: float = 0.1
    outlier_share: float = 0.2
    max_iter: int = 2000

    capabilities = Capabilities(
        solves="batches of rows whose rank is least",
        needs=("threshold", "share"),
        family="samples",
        cost="d³ for a batch",
        regime="d is small and unknown, adversarial outliers, fewer than half",
        guarantee="Recovers dimension and subspace from less than half adversarial outliers, after "
        "a number of batches that is exponential in d.",
        reference="Chen, Ma, Fattahi 2025",
        time="2e-5 d³",
        memory="n D + 4 d²",
        backends=("numpy",),
    )
    _function = staticmethod(ransac_plus)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "residual": [Interval(Real, 0, None, closed="neither")],
        "outlier_share": [Interval(Real, 0, 0.5, closed="left")],
    }
