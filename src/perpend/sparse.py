r"""Sister problems of DPCP: sparse vectors in a subspace, and orthogonal dictionaries.

.. math:: \min_b \sum_i |y_i \cdot b| \quad\text{subject to}\quad \|b\| = 1

is small where Y b is sparse. DPCP wants a span of such b, here they are wanted themselves: the one
with the fewest entries, or all of an orthogonal dictionary. The descents are those of `DPCP`.

Y. Bai, Q. Jiang, J. Sun. Subgradient descent learns orthogonal dictionaries. ICLR 2019.
Q. Qu, Z. Zhu, X. Li, M. C. Tsakiris, J. Wright, R. Vidal. Finding the sparsest vectors in a
subspace: theory, algorithms, and applications. arXiv 2001.06970, 2020.
"""

import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from perpend._docs import OF_ROWS, explained
from perpend._typing import Array, RandomState
from perpend._validation import Count, checked
from perpend.exceptions import InputError
from perpend.geometry import as_generator, complement, orthonormal, random_directions
from perpend.rows import as_rows
from perpend.rows.kinds import computing_on, to_numpy
from perpend.solvers import AutoStep, Dense, psgm
from perpend.solvers.dense import least_crossing
from perpend.solvers.loop import Callback

__all__ = ["OrthogonalDictionary", "SparseVector", "sparsest_vector"]

ZERO = 1e-6  # entries below this share of the largest are zero
SAME_ATOM = 0.5  # two descents with a cosine above this ended at one atom: atoms are orthogonal
# Of as many unit atoms as features: a least singular value above this says that they are orthogonal
# but for noise.
ALL_ATOMS = 0.9
RULE = AutoStep(armijo=0.01)  # longer steps than those of DPCP: single minima, not their diversity


class SparseVector(NamedTuple):
    """A sparse unit vector of a subspace."""

    vector: Array  # (n,)
    coefficients: Array  # (k,) of the given columns
    n_nonzero: int  # entries that are not zero
    objective: float  # the sum of its absolute entries


def sparsest_vector(
    A: Array,
    *,
    n_starts: int | Literal["auto"] = "auto",
    max_iter: int = 1000,
    tol: float = 1e-9,
    random_state: RandomState = None,
) -> SparseVector:
    """Find the sparsest vector in the span of some columns.

    Descents of the l1 norm on the unit sphere of the span start at random directions. A linear
    program makes the zeros of the best one exact.

    Parameters
    ----------
    A : array of shape (n, k)
        The columns, linearly independent.
    n_starts : "auto" or int, default="auto"
        Number of descents; "auto" is ``5 k log k``, at least 10.
    max_iter : int, default=1000
        Maximum number of iterations of each descent.
    tol : float, default=1e-9
        As in `DPCP`.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts.

    Returns
    -------
    SparseVector
        With fields `vector`, `coefficients`, `n_nonzero` and `objective`.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend.sparse import sparsest_vector
    >>> rng = np.random.default_rng(0)
    >>> sparse = rng.standard_normal(200) * (rng.random(200) < 0.1)
    >>> A = np.column_stack([sparse, rng.standard_normal((200, 4))]) @ rng.standard_normal((5, 5))
    >>> found = sparsest_vector(A, random_state=0)
    >>> found.n_nonzero == int(np.count_nonzero(sparse))
    True
    """
    _check_options(n_starts, max_iter, tol)
    A = np.asarray(A, dtype=float)
    if A.ndim != 2 or not np.all(np.isfinite(A)):
        raise InputError(f"A has shape {A.shape}; expected finite numbers of shape (n, k).")
    Q = orthonormal(A)
    n, k = A.shape
    if Q.shape[1] < k or k == 0:
        raise InputError(
            f"The {k} columns of A have rank {Q.shape[1]}. Leave out those that depend on others."
        )
    rng, rows = as_generator(random_state), as_rows(Q, normalize=False)
    many = max(10, _starts(k)) if isinstance(n_starts, str) else n_starts
    found = psgm(rows, random_directions(rng, k, many), rule=RULE, max_iter=max_iter, tol=tol)
    b = found.B[:, [int(np.argmin(found.objective))]]
    b = least_crossing(Dense(Q, np.ones(n)), b)
    b /= np.linalg.norm(b)
    vector = (Q @ b)[:, 0]
    vector[np.abs(vector) <= ZERO * np.abs(vector).max()] = 0
    coefficients = np.linalg.lstsq(A, vector, rcond=None)[0]
    objective = float(np.abs(vector).sum())
    return SparseVector(vector, coefficients, int(np.count_nonzero(vector)), objective)


def _check_options(n_starts: int | str, max_iter: int, tol: float) -> None:
    """Refuse values with which there is nothing to descend."""
    if n_starts != "auto" and not Count(1).is_satisfied_by(n_starts):
        raise InputError(f'n_starts={n_starts!r}; expected "auto" or a whole number from 1 on.')
    if not Count(1).is_satisfied_by(max_iter):
        raise InputError(f"max_iter={max_iter!r}; expected a whole number from 1 on.")
    if not (isinstance(tol, Real) and tol > 0):
        raise InputError(f"tol={tol!r}; expected a number above 0, such as 1e-9.")


def _starts(k: int) -> int:
    """Return 5 k log k, with which every atom is found with high probability."""
    return math.ceil(5 * k * math.log(max(k, 2)))


@explained(OF_ROWS)
@dataclass(eq=False, repr=False, kw_only=True)
class OrthogonalDictionary(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """All directions of an orthogonal dictionary, along which rows have sparse coordinates.

    Rows are ``codes @ components_`` with sparse codes and an orthogonal matrix of atoms. Each atom
    minimises the sum of ``|x @ b|`` locally; descents from 5 D log D random starts find all of
    them with high probability, for codes without preferred places. Rows are whitened first, so that
    no atom attracts more starts than the others.

    Parameters
    ----------
    n_starts : "auto" or int, default="auto"
        The most descents; they end when there are as many atoms as features. "auto" is
        ``5 n_features log(n_features)``.
    max_iter : int, default=1000
        Maximum number of iterations of each descent.
    tol : float, default=1e-7
        As in `DPCP`.
    random_state : int, Generator, RandomState or None, default=None
        Seeds the starts.
    callback : callable or None, default=None
        Called after every step with a `perpend.solvers.Progress`.

    Attributes
    ----------
    components_ : array of shape (n_features, n_features)
        The atoms, orthogonal rows, in the order in which they were found.
    objective_ : array of shape (n_features,)
        Mean of ``|x @ b|`` of each atom.
    n_starts_ : int
        The number of descents.
    n_iter_ : int
        Iterations of the longest descent.
    converged_ : bool
        Whether all atoms were found: as many as features, orthogonal but for noise.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if X has column names.

    References
    ----------
    Y. Bai, Q. Jiang, J. Sun. Subgradient descent learns orthogonal dictionaries. ICLR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend.sparse import OrthogonalDictionary
    >>> rng = np.random.default_rng(0)
    >>> atoms = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    >>> codes = rng.standard_normal((500, 10)) * (rng.random((500, 10)) < 0.3)
    >>> model = OrthogonalDictionary(random_state=0).fit(codes @ atoms)
    >>> same = np.abs(model.components_ @ atoms.T)
    >>> bool(np.all(same.max(axis=0) > 0.999))
    True
    """

    n_starts: int | Literal["auto"] = "auto"
    max_iter: int = 1000
    tol: float = 1e-7
    random_state: RandomState = None
    callback: Callback | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_starts": [StrOptions({"auto"}), Count(1)],
        "max_iter": [Count(1)],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state", np.random.Generator],
        "callback": [None, callable],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Array, y: Any = None) -> Self:  # noqa: ARG002
        """Find the atoms of the rows of X."""
        with computing_on(X, None) as place:
            X = to_numpy(checked(self, X, place, reset=True)).astype(float)
        D = X.shape[1]
        if np.linalg.matrix_rank(X) < D:
            raise InputError(
                f"The {len(X)} rows of X span less than its {D} features, so a dictionary is not "
                "determined. Pass more rows, or coordinates of their span (PCA)."
            )
        variances, axes = np.linalg.eigh(X.T @ X / len(X))
        W = (axes / np.sqrt(variances)) @ axes.T
        rows, rng = as_rows(X @ W, normalize=False), as_generator(self.random_state)
        most = _starts(D) if isinstance(self.n_starts, str) else self.n_starts
        how: dict[str, Any] = {"rule": RULE, "max_iter": self.max_iter, "tol": self.tol}
        found, self.converged_ = None, False
        while not self.converged_ and (found is None or found.B.shape[1] < most):
            before = 0 if found is None else found.B.shape[1]
            B = random_directions(rng, D, min(2 * D, most - before))
            more = psgm(rows, B, callback=self.callback, **how)
            found = more if found is None else found.join(more)
            atoms = _distinct(W @ found.B, found.objective)
            least = np.linalg.svd(atoms, compute_uv=False)[-1]
            self.converged_ = bool(atoms.shape[1] == D and least > ALL_ATOMS)
        assert found is not None
        if not self.converged_:
            text = (
                f"OrthogonalDictionary found {atoms.shape[1]} directions from {found.B.shape[1]} "
                f"starts, but not {D} orthogonal atoms. The codes may not be sparse; or raise "
                "n_starts."
            )
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
            atoms = np.hstack([atoms, complement(orthonormal(atoms))[:, : D - atoms.shape[1]]])
        U, _, V = np.linalg.svd(atoms)  # the nearest orthogonal matrix
        self.components_ = (U @ V).T
        self.objective_ = np.abs(X @ self.components_.T).mean(axis=0)
        self.n_starts_, self.n_iter_ = found.B.shape[1], int(found.n_iter.max())
        self._n_features_out = D
        return self

    def transform(self, X: Array) -> Array:
        """Return the codes of the rows, ``X @ components_.T``.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        with computing_on(X, None) as place:
            X = to_numpy(checked(self, X, place, reset=False))
            return place.back(X @ self.components_.T)

    def inverse_transform(self, X: Array) -> Array:
        """Return the rows that have these codes.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return np.asarray(X) @ self.components_


def _distinct(ends: Array, objective: Array) -> Array:
    """Return those of the ends (D, k) of descents that differ, as unit vectors, best first."""
    ends = ends / np.linalg.norm(ends, axis=0)
    atoms = np.zeros((len(ends), 0))
    for j in np.argsort(objective, kind="stable"):
        if atoms.shape[1] < len(atoms) and np.all(np.abs(atoms.T @ ends[:, j]) < SAME_ATOM):
            atoms = np.column_stack([atoms, ends[:, j]])
    return atoms
