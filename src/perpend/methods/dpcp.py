r"""Dual principal component pursuit with unknown codimension (DPCP-PSGM).

.. math::
    \min_{b_1, \dots, b_k} \sum_{j=1}^{k} \sum_{i=1}^{n} |x_i \cdot b_j|
    \quad\text{subject to}\quad \|b_j\| = 1

The columns do not interact: k descents from random starts, without orthogonality constraints. Each
lands on a normal of the inliers' subspace, near the projection of its start, so that together they
span the orthogonal complement, and no more: the rank of the solutions is the codimension.

P. Giampouras, B. D. Haeffele, R. Vidal. Implicit bias of projected subgradient method gives
provable robust recovery of subspaces of unknown codimension. ICLR 2022.
"""

from dataclasses import field
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.estimator import HasMethods, Interval, StrOptions, SubspaceEstimator
from perpend.exceptions import InputError
from perpend.rows import RowSource
from perpend.solvers import Solution, StepRule, step_rule
from perpend.solvers.loop import Callback
from perpend.solvers.steps import STEP_METHODS, STEP_RULES
from perpend.structure import (
    Descent,
    Estimate,
    Subsample,
    by_sample,
    find_low_dimension,
    find_subspace,
    sample_sizes,
    size_for_low_dimension,
    solution_of,
)

Auto: TypeAlias = Literal["auto"]


def dpcp(
    rows: RowSource,
    *,
    codimension: int | Auto = "auto",
    n_starts: int | Auto = "auto",
    init: str | Array = "random",
    step: str | StepRule = "auto",
    refine: bool | Auto = "auto",
    max_iter: int = 1000,
    tol: float = 1e-9,
    sample_size: int | Auto | None = "auto",
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the inliers among `rows`; the parameters are those of `DPCP`."""
    _check_sizes(codimension, n_starts, init, rows.shape[1])
    finish = refine is not False
    descent = Descent(n_starts, init, step_rule(step), max_iter, tol)
    how: dict[str, Any] = {"codimension": codimension, "rng": rng, "callback": callback}

    def among(seen: RowSource) -> Estimate:
        return find_subspace(seen, descent, finish=finish, **how)

    def solved(estimate: Estimate, seen: RowSource) -> Solution:
        return solution_of(estimate, seen, fixed=codimension != "auto")

    if not finish or not isinstance(init, str):  # a sample may be orthogonal to given starts
        sample_size = None
    subsamples = [Subsample(size, among) for size in sample_sizes(sample_size, *rows.shape)]
    few = size_for_low_dimension(sample_size, *rows.shape)
    if few is not None and n_starts == "auto" and init == "random":
        low = Subsample(few, lambda sample: find_low_dimension(sample, **how), for_all=False)
        subsamples = [low, *subsamples]
    for subsample in subsamples:
        sampled = by_sample(rows, subsample, rng, callback)
        if sampled is not None:
            return solved(*sampled)
    return solved(among(rows), rows)


def _check_sizes(
    codimension: int | Auto, n_starts: int | Auto, init: str | Array, n_features: int
) -> None:
    if not isinstance(init, str):
        if n_starts not in ("auto", len(init)):
            raise InputError(
                f"n_starts={n_starts}, but init has {len(init)} directions. Leave n_starts at "
                "its default, or give as many directions."
            )
        n_starts = len(init)
    if codimension == "auto":
        return
    if codimension > n_features:
        raise InputError(
            f"codimension={codimension} is larger than the number of features ({n_features})."
        )
    if n_starts != "auto" and n_starts < codimension:
        raise InputError(
            f"There are {n_starts} starts (n_starts, or the rows of init) for "
            f"codimension={codimension}. Each start gives one normal, so there must be at least as "
            "many; 1.5 times as many is better."
        )


class DPCP(SubspaceEstimator):
    r"""Robust subspace recovery by dual principal component pursuit, codimension unknown.

    Finds the linear subspace of the inliers, its dimension, and the outliers, even if most rows are
    outliers. Neither the dimension nor the share of outliers need be given.

    Parameters
    ----------
    codimension : "auto" or int, default="auto"
        Number of normals: features minus dimension of the subspace. "auto" finds it, unless
        `n_components` is given.
    n_starts : "auto" or int, default="auto"
        Number of descents, the paper's c'. "auto" raises it until the codimension is clearly
        smaller. It may exceed the number of features.
    init : {"random", "spectral"} or array of shape (n_starts, n_features), default="random"
        Where the descents begin: uniformly on the sphere, at the axes along which the rows vary
        least, or at the given directions.
    refine : "auto" or bool, default="auto"
        "auto" finishes with joint reweighted least squares. Without noise the result is then exact
        to rounding; with noise it is as good as PCA on the true inliers. If the descents are
        unclear, the scale at which rows concentrate decides; that also shows subspaces that no
        minimiser of the l1 objective shows. False is the paper's algorithm alone:
        ``step="mbls", refine=False, n_starts=k, max_iter=200`` is what its authors' releases run.
    max_iter : int, default=1000
        Maximum number of iterations of each descent.
    tol : float, default=1e-9
        A descent has converged when its next step would turn it by less than this angle (radians).
        "geometric" uses its last step, and "mbls" only the lower limit of its step size.
    sample_size : "auto", int or None, default="auto"
        Size of the random subsample in which the subspace is searched first. If the result of the
        subsample is sure, all rows confirm, refine and label it in three passes. Otherwise a
        subsample four times as large follows, and in the end all rows. "auto" subsamples more than
        four times ``max(4096, 24 * n_features)`` rows; with at least 512 rows and features it first
        searches 256 rows for a subspace of low dimension. None always uses all rows, and so do
        ``refine=False`` and an array as `init`.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts. The same seed gives the same result.

    Attributes
    ----------
    directions_ : array of shape (n_starts_, n_features)
        Where the descents ended, without their offsets if `affine_`. They stop as soon as the
        codimension is sure; with ``refine=False`` they run until they converge. A low dimension
        may be clear before any descent. Then these are the projections of random starts onto the
        normals, where descents would end.
    objective_ : float
        Mean of ``|x @ b|`` over `directions_` and the rows that were searched.

    References
    ----------
    P. Giampouras, B. D. Haeffele, R. Vidal. Implicit bias of projected subgradient method gives
    provable robust recovery of subspaces of unknown codimension. ICLR 2022.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 600, n_features=20, codimension=3, random_state=0)
    >>> model = DPCP(random_state=0).fit(data.X)
    >>> model.codimension_, model.n_components_
    (3, 17)
    >>> bool(model.confidence_ > 0.95)
    True
    >>> int((model.labels_ == data.y).sum())
    900

    A plane that misses the origin:

    >>> data = make_subspace(300, 300, n_features=3, codimension=1, offset=5.0, random_state=0)
    >>> model = DPCP(affine=True, random_state=0).fit(data.X)
    >>> model.n_components_, bool(abs(model.normals_ @ data.location - model.intercept_) < 1e-12)
    (2, True)
    """

    codimension: int | Auto = field(default="auto", kw_only=False)
    n_starts: int | Auto = "auto"
    init: str | Array = "random"
    step: str | StepRule = "auto"
    refine: bool | Auto = "auto"
    max_iter: int = 1000
    tol: float = 1e-9
    sample_size: int | Auto | None = "auto"

    capabilities = Capabilities(
        solves="subspace, codimension and outliers, all unknown",
        needs=(),
        family="dual",
        cost="n D k; at the end n D² + D³",
        regime="always first",
        guarantee="Random starts span the complement if they are few enough for the geometry of "
        "the rows (Theorem 7).",
        reference="Giampouras, Haeffele, Vidal 2022",
        affine="own",
        memory="D k + D²",
        tolerates_most=True,
    )
    _function = staticmethod(dpcp)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceEstimator._parameter_constraints,
        "codimension": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_starts": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "spectral"}), "array-like"],
        "step": [StrOptions(set(STEP_RULES)), HasMethods(STEP_METHODS)],
        "refine": [StrOptions({"auto"}), "boolean"],
        "sample_size": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left"), None],
    }

    @property
    def _may_follow_scales(self) -> bool:
        automatic = self.n_starts == "auto" and isinstance(self.init, str)
        return automatic and self.refine is not False
