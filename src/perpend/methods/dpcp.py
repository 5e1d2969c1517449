r"""Dual principal component pursuit with unknown codimension (DPCP-PSGM).

.. math::
    \min_{b_1, \dots, b_k} \sum_{j=1}^{k} \sum_{i=1}^{n} |x_i \cdot b_j|
    \quad\text{subject to}\quad \|b_j\| = 1

The columns do not interact: k descents from random starts, without orthogonality constraints. Each
lands on a normal of the inliers' subspace, on the side of its start's projection, so that together
they span the orthogonal complement, and no more: the rank of the solutions is the codimension.

P. Giampouras, B. D. Haeffele, R. Vidal. Implicit bias of projected subgradient method gives
provable robust recovery of subspaces of unknown codimension. ICLR 2022.
"""

import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from perpend._capabilities import Capabilities
from perpend._typing import Array, Auto
from perpend.estimator import (
    Count,
    StrOptions,
    SubspaceEstimator,
    _all_or_nothing,
)
from perpend.exceptions import InputError
from perpend.rows import RowSource, check_source
from perpend.solvers import Solution, StepRule, step_rule
from perpend.solvers.loop import Callback
from perpend.structure import (
    Descent,
    Estimate,
    Subsample,
    by_sample,
    find_proposed,
    find_subspace,
    sample_sizes,
    size_for_low_dimension,
    solution_of,
)

if TYPE_CHECKING:
    from perpend.structure.known import Known


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
    known: "Known | None" = None,
    callback: Callback | None = None,
) -> Solution:
    """Recover the subspace of the inliers among `rows`; the parameters are those of `DPCP`.

    `known` is the subspace of other rows. It is tried first, and kept if it is sure for these rows.
    """
    check_source(rows)
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
    if known is not None:
        size = min([rows.shape[0], *(one.size for one in subsamples[:1])])
        own = {**how, "rng": copy.deepcopy(rng)}
        begin = Subsample(size, lambda some: find_proposed(some, known.proposed_to, **own))
        sampled = by_sample(rows, begin, own["rng"], callback)
        if sampled is not None and known.is_found_in(sampled[0].decision, rows.unit):
            return solved(*sampled)
    few = size_for_low_dimension(sample_size, *rows.shape)
    if few is not None and n_starts == "auto" and init == "random":
        low = Subsample(few, lambda sample: find_proposed(sample, **how), for_all=False)
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
    outliers. You give neither the dimension nor the share of outliers.

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
        up to rounding; with noise it is as good as PCA on the true inliers. If the descents are
        unclear, the scale at which rows concentrate decides; that also finds subspaces that are
        not minimisers of the l1 objective. False is the paper's algorithm alone. There is no
        public code for the paper: ``step="mbls", refine=False, n_starts=k, max_iter=200`` runs it
        with the line search that the same group released for earlier methods.
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
        "n_starts": [StrOptions({"auto"}), Count(1)],
        "init": [StrOptions({"random", "spectral"}), "array-like"],
        "refine": [StrOptions({"auto"}), "boolean"],
        "sample_size": [StrOptions({"auto"}), Count(2), None],
    }

    def partial_fit(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Self:  # noqa: ARG002
        """Learn from one more batch of rows, and say if the subspace has drifted.

        Memory is bounded: the model keeps a random sample of all rows and the latest ones
        (`sample_size` of each; "auto" and None are at least 4096 and 24 for each feature), and
        second moments of the inliers over all rows. Each time the number of rows has doubled, the
        subspace is searched again in the sample. In between, every batch refines it: after many
        batches it is as exact as that of `fit` on all rows. After `fit`, `partial_fit` continues
        from its result; `fit` starts from scratch.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any number of rows, also one or none. Tensors and missing entries are refused.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts like w equal rows.

        Returns
        -------
        self : object
            `labels_` are those of this batch. New are `n_samples_seen_`, `n_batches_` and
            `drifts_`. The last is a list of dict, with an entry for each drift: the `batch` that
            showed it, the `row` of the stream where it began, the `reason` ("turn": the inliers'
            scores; "other": another subspace is sure in the latest rows; "lost": the old one is no
            longer supported by them; "revised": the sample shows another one), the `angle` in
            degrees, the `codimension` before and `codimension_now` (NaN and None while that is not
            sure), and the `chance` of so clear a turn without any drift (NaN for other reasons).

        Warns
        -----
        DriftWarning
            If the batch shows another subspace. Rows before the drift are forgotten.

        Notes
        -----
        Tests compare the last 1, 2, 4, ... blocks of at least ``max(4 * n_features, 64)`` rows with
        everything before them, each at a level of 1e-7, so that fewer than one in three million
        blocks gives a false report. Differences are measured in units of the scatter between
        earlier blocks. Tests begin when the subspace is sure.

        Examples
        --------
        >>> import warnings
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> before, after = (
        ...     make_subspace(3000, 3000, n_features=8, codimension=2, noise=0.02, random_state=i).X
        ...     for i in range(2)
        ... )
        >>> model = DPCP(random_state=0)
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     for batch in [*before.reshape(12, 500, 8), *after.reshape(12, 500, 8)]:
        ...         model = model.partial_fit(batch)
        >>> model.codimension_, model.n_samples_seen_, [one["batch"] for one in model.drifts_]
        (2, 12000, [13])
        """
        from perpend._streaming import partial_fit

        self._validate_params()
        with _all_or_nothing(self):
            partial_fit(self, X, sample_weight)
        return self

    @property
    def _may_follow_scales(self) -> bool:
        automatic = self.n_starts == "auto" and isinstance(self.init, str)
        return automatic and self.refine is not False
