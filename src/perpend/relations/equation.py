"""The relations in a table as objects: coefficients, noise, text, and which rows break them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from perpend._docs import OF_ROWS, explained
from perpend._pipelines import Scaled, near_subspace, opened
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.relations.solved import (
    Relation,
    Surface,
    apart,
    fewest_digits,
    solved,
    surface_of_model,
    surface_of_rows,
)
from perpend.rows.kinds import to_numpy

__all__ = ["Broken", "Equation", "Equations", "equations"]

TERM_ROUNDING = 64 * np.finfo(float).eps  # of the terms: the noise of a relation that is exact


@dataclass(frozen=True)
class Equation:
    """One relation between columns: the sum of coefficients times columns, and a constant, is 0.

    Attributes
    ----------
    coefficients : dict of str to float
        By the names of the columns that take part. That of `column` is 1.
    constant : float
    noise : float
        By how much inliers break it, as a standard deviation, in the units of `column`; NaN if it
        is not known.
    column : str
        The column for which `text` is solved.
    text : str
        For people: ``total = 1.19 net + shipping ± 0.02``, with as few digits as the noise allows.
    """

    coefficients: dict[str, float]
    constant: float
    noise: float
    column: str
    text: str

    @property
    def single_column(self) -> bool:
        """Whether it says only that a column is (nearly) constant."""
        return len(self.coefficients) == 1

    def __str__(self) -> str:
        return self.text


class Broken(NamedTuple):
    """For each row, the relation that it breaks most."""

    equation: Array  # (n_samples,) its place among the equations
    by: Array  # (n_samples,) how far the row is from it, in units of its noise


@explained({"X": f"{OF_ROWS['X']}\nIn the data's own units, also where the model is a pipeline."})
class Equations(Sequence[Equation]):
    """The equations of a subspace: relations between columns first, then constant columns.

    A row is on the subspace if all of them hold. Iterating, indexing and ``len`` work as for a
    list, and ``print`` shows all of them. `perpend.equations` makes it.

    Parameters
    ----------
    found : iterable of Equation
    coefficients : array of shape (n_equations, n_features)
    centre : array of shape (n_features,)
        A point on the subspace.
    """

    def __init__(self, found: Iterable[Equation], coefficients: Array, centre: Array) -> None:
        self._all = list(found)
        self._coefficients, self._centre = coefficients, centre

    @overload
    def __getitem__(self, i: int) -> Equation: ...
    @overload
    def __getitem__(self, i: slice) -> list[Equation]: ...
    def __getitem__(self, i: int | slice) -> Equation | list[Equation]:
        return self._all[i]

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        lines = [one.text for one in self.relations]
        if self.constants:
            texts = ", ".join(one.text for one in self.constants)
            lines.append(f"nearly constant columns: {texts}")
        return "\n".join(lines) or "no equations: codimension 0"

    @property
    def relations(self) -> list[Equation]:
        """Those between several columns."""
        return [one for one in self._all if not one.single_column]

    @property
    def constants(self) -> list[Equation]:
        """Those of a single column: it hardly ever changes."""
        return [one for one in self._all if one.single_column]

    def residuals(self, X: Array) -> Array:
        """Return what the left side of each equation is for each row; 0 if it holds.

        Returns
        -------
        array of shape (n_samples, n_equations)
            Each in the units of the equation's `column`; NaN if an entry that it needs is missing.
        """
        X = _rows(X, len(self._centre))
        A, missing = self._coefficients, np.isnan(X)
        X = np.where(missing, self._centre, X)
        constants = np.array([one.constant for one in self._all])
        # About a point on the subspace: far from the origin large terms would cancel.
        residuals: Array = (X - self._centre) @ A.T + (A @ self._centre + constants)
        return np.where(missing @ (A != 0).T, np.nan, residuals)

    def broken(self, X: Array) -> Broken:
        """Return which equation each row breaks most, and by how much in units of its noise.

        Returns
        -------
        Broken
            With `equation` and `by`, both of shape (n_samples,). Without equations the place
            is -1, and nothing is broken. Equations with a missing entry do not count for the row.
        """
        noise = np.array([one.noise for one in self._all])
        if np.any(np.isnan(noise)):
            raise InputError(
                "The noise of these equations is not known: a linear model knows it only relative "
                "to the norms of rows. Give rows: equations(model, X=X)."
            )
        residuals = np.nan_to_num(np.abs(self.residuals(X)), nan=0.0, posinf=np.inf)
        if not len(noise):
            return Broken(np.full(len(residuals), -1), np.zeros(len(residuals)))
        sizes = np.abs(self._coefficients) @ np.maximum(np.abs(self._centre), 1e-300)
        by = residuals / np.maximum(noise, TERM_ROUNDING * sizes)
        most = np.argmax(by, axis=1)
        return Broken(most, by[np.arange(len(by)), most])


def equations(
    model: Any, names: Iterable[Any] | None = None, *, X: Array | None = None
) -> Equations:
    """Return the relations that a model has found as readable equations between columns.

    Each has as few columns as possible, in the data's own units and names, even if scalers come
    before the model in a pipeline. Terms that together change inliers by less than the noise are
    left out, so the equations describe the subspace up to the noise.

    Parameters
    ----------
    model : a fitted method of perpend, or a pipeline of scalers and a method
        Scalers are `RobustStandardizer`, and scikit-learn's ``StandardScaler``, ``RobustScaler``,
        ``MinMaxScaler`` and ``MaxAbsScaler``, also those of a ``ColumnTransformer`` that uses every
        column once.
    names : sequence of str, optional
        The names of the columns; by default those of the fit, or x0, x1 and so on.
    X : array-like of shape (n_samples, n_features), optional
        Rows in the data's own units, usually those of the fit. The inliers among them show the
        noise of each relation, and how large a term must be to matter. Without X, all relations
        have the noise of the model, and all columns count as equally wide behind the scalers.

    Returns
    -------
    Equations
        A sequence of `Equation`, the shortest first, with the methods `residuals` and `broken` for
        rows; `constants` has those that say only that a column is constant, `relations` the others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from perpend import DPCP, RobustStandardizer, equations
    >>> rng = np.random.default_rng(0)
    >>> net, shipping = rng.lognormal(5, 1, 300), rng.integers(3, 40, 300)
    >>> X = np.column_stack([net, shipping, 0.19 * net, 1.19 * net + shipping])
    >>> X[7, 3] += 50.0
    >>> model = make_pipeline(RobustStandardizer(), DPCP(affine=True, random_state=0)).fit(X)
    >>> found = equations(model, ["net", "shipping", "tax", "total"], X=X)
    >>> for one in found:
    ...     print(one.text.split(" ± ")[0])
    tax = 0.19 net
    total = 1.19 net + shipping
    >>> place = found.broken(X).equation[7]
    >>> found[place].column, round(float(found.residuals(X)[7, place]), 3)
    ('total', 50.0)
    """
    scaled = opened(model, any_order=True)
    names = _names(names, scaled)
    found = _in_order(solved(_surface(model, scaled, X)))
    coefficients = np.zeros((len(found), len(names)))
    for row, one in zip(coefficients, found, strict=True):
        row[one.columns], row[one.column] = -one.values, 1.0
    known = X is not None or scaled.model.affine_ or not scaled.model.normalize
    written = [_equation(one, names, known=known) for one in found]
    return Equations(written, coefficients, scaled.point)


def equations_apart(
    model: Any, names: Iterable[Any], X: Array
) -> tuple[list[Equation] | None, list[Equation]]:
    """Return the equations between columns and those of single columns, as pages show them.

    There are none of the former, but None, where the table is too wide to look for them.
    """
    scaled = opened(model, any_order=True)
    texts = _names(names, scaled)
    relations, constants = apart(_surface(model, scaled, X))
    written = [_equation(one, texts, known=True) for one in constants]
    if relations is None:
        return None, written
    return [_equation(one, texts, known=True) for one in relations], written


def _surface(model: Any, scaled: Scaled, X: Array | None) -> Surface:
    if X is None:
        # Noise is relative to the norm of the rows if these were normalised: about sqrt(D) where
        # all columns have a spread of one.
        relative = scaled.model.normalize and not scaled.model.affine_
        noise = float(scaled.model.noise_) / (1.0 if relative else np.sqrt(len(scaled.scale)))
        return surface_of_model(own_normals(scaled), scaled.point, scaled.units, noise)
    rows = _rows(X, len(scaled.scale))
    inliers = complete_inliers(scaled, rows, to_numpy(model.predict(X)))
    if not len(inliers):
        raise InputError(
            f"None of the {len(rows)} rows of X is a complete inlier, so the noise cannot be "
            "estimated. Give rows like those of the fit, or leave X out."
        )
    return surface_near(scaled, inliers)


def complete_inliers(scaled: Scaled, X: Array, labels: Array) -> Array:
    """Return the rows near the subspace that have no gaps: these tell the noise."""
    return np.asarray(X[near_subspace(scaled, X, labels) & ~np.isnan(X).any(axis=1)])


def own_normals(scaled: Scaled) -> Array:
    """Return the normals (c, D) in the data's own units and order; their lengths differ."""
    return scaled.back(to_numpy(scaled.model.normals_).astype(float) / scaled.scale)


def surface_near(scaled: Scaled, inliers: Array) -> Surface:
    """Return the subspace in the data's own units, with what its inliers (n, D) tell."""
    units = scaled.units if scaled.is_pipeline else None
    return surface_of_rows(own_normals(scaled), scaled.point, inliers, units)


def _in_order(found: list[Relation]) -> list[Relation]:
    """Put relations before single columns, and leave them in their order otherwise."""
    return sorted(found, key=lambda one: not len(one.columns))


def _rows(X: Any, n_columns: int) -> Array:
    X = np.asarray(to_numpy(X), dtype=float)
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise InputError(f"X has shape {X.shape}; the model was fitted to {n_columns} columns.")
    return X


def _names(names: Iterable[Any] | None, scaled: Scaled) -> list[str]:
    D = len(scaled.scale)
    if names is None:
        names = [f"x{j}" for j in range(D)] if scaled.names is None else scaled.names
    texts = [str(name) for name in names]
    if len(texts) != D or len(set(texts)) != D:
        raise InputError(
            f"names has {len(texts)} names, {len(set(texts))} of them different; expected {D} "
            "different names, one for each column."
        )
    return texts


def _equation(one: Relation, names: list[str], *, known: bool) -> Equation:
    values = {int(j): -float(a) for j, a in zip(one.columns, one.values, strict=True)}
    values[one.column] = 1.0
    return Equation(
        coefficients={names[j]: values[j] for j in sorted(values)},
        constant=-one.constant,
        noise=one.noise if known else np.nan,
        column=names[one.column],
        text=_text(one, names, known=known),
    )


def _text(one: Relation, names: list[str], *, known: bool) -> str:
    """Write it solved for its column, each coefficient as round as the noise allows."""
    terms = []
    for j, a, size in zip(one.columns, one.values, one.sizes, strict=True):
        factor = _number(abs(float(a)), fewest_digits(float(a), float(size), one.error))
        name = names[j]
        if name[:1].isdigit():  # "0.5 400 nm" would read as one number
            name = f"{factor} * {name}"
        elif factor != "1":
            name = f"{factor} {name}"
        terms.append(("-" if a < 0 else "+", name))
    constant = one.shown_constant
    if constant or not terms:
        digits = fewest_digits(constant, 1.0, one.error)
        terms.append(("-" if constant < 0 else "+", _number(abs(constant), digits)))
    (sign, first), *rest = terms
    right = ("-" if sign == "-" else "") + first + "".join(f" {s} {term}" for s, term in rest)
    noise = f" ± {_number(one.noise, 2)}" if known else ""
    return f"{names[one.column]} = {right}{noise}"


def _number(value: float, digits: int) -> str:
    """Return a number with a few digits, without an exponent where it can be read.

    >>> _number(1190.0, 3), _number(0.19, 2), _number(2.5e-7, 2), _number(123456.7, 2)
    ('1190', '0.19', '2.5e-07', '120000')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and float(text) <= 1e6 else text
