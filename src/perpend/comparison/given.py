"""What a comparison is given, checked: methods, the size of the subspace, and what is true."""

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

import perpend
from perpend import metrics
from perpend._capabilities import Capabilities
from perpend._typing import Array
from perpend.comparison.pca import PCABaseline
from perpend.exceptions import InputError
from perpend.formats._checks import in_bytes
from perpend.geometry import complement, orthonormal

FIRST = "DPCP"  # whose estimate is the dimension of methods that must be given it
PCA_NAME = "PCA"
COPIES = 8  # of what a method keeps, at its peak: parts, their sum, and buffers of LAPACK
STARTS = 64  # k of DPCP; an upper estimate
LONG = 60.0  # seconds, beyond which a method is run only if it is named
NOT_RUN = "not run: "


class Entry(NamedTuple):
    """A method to run."""

    model: Any  # not fitted
    named: bool  # whether the user has not made it, so that it gets the common parameters


def chosen_methods(methods: Any) -> dict[str, Entry]:
    """Return the methods by name."""
    if methods is None:
        methods = known_methods()
    if isinstance(methods, Mapping):
        pairs = [(name, entry_of(one)[1]) for name, one in methods.items()]
    else:
        pairs = [entry_of(one) for one in ([methods] if isinstance(methods, str) else methods)]
    found = dict(pairs)
    if len(found) < len(pairs) or not pairs:
        raise InputError(
            "methods must be one or more, each of them once. Use a dict of name and estimator for "
            "several of one kind."
        )
    return found


def known_methods() -> tuple[str, ...]:
    """Return the names of all methods that take part by default."""
    return (*perpend._METHODS, *perpend._LABELS_ONLY, PCA_NAME)


def entry_of(one: Any) -> tuple[str, Entry]:
    """Return the name of a method that is named, a class or an estimator, and what to run."""
    if isinstance(one, str):
        for name in known_methods():
            if name.casefold() == one.casefold().replace("-", "").replace("_", ""):
                kind = PCABaseline if name == PCA_NAME else getattr(perpend, name)
                return name, Entry(kind(), named=True)
        raise InputError(
            f"there is no method {one!r}. Known methods: {', '.join(known_methods())}."
        )
    named = isinstance(one, type)
    model = one() if named else one
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise InputError(f"{one!r} is neither the name of a method nor an estimator.")
    name = PCA_NAME if isinstance(model, PCABaseline) else type(model).__name__
    return name, Entry(model, named=named)


def _can(model: Any) -> Capabilities:
    """Return what a method can; nothing is known of those that are not perpend's."""
    can: Capabilities = getattr(model, "capabilities", Capabilities(needs=(), memory="n D"))
    return can


def has_parameter(model: Any, name: str) -> bool:
    """Whether a method has a parameter of this name."""
    return name in model.get_params(deep=False)


def needs_dimension(model: Any) -> bool:
    """Whether a method must be given the dimension, and has not been."""
    free = all(getattr(model, name, None) is None for name in ("codimension", "n_components"))
    return _can(model).needs_dimension and free


def given_size(codimension: int | None, n_components: int | None, D: int) -> int | None:
    """Return the codimension that was given."""
    if codimension is not None and n_components is not None:
        raise InputError("Both codimension and n_components are given. Leave one of them out.")
    for name, value in {"codimension": codimension, "n_components": n_components}.items():
        if value is not None and not 0 <= value <= D:
            raise InputError(f"{name}={value}; expected a number from 0 to {D}, the features.")
    return codimension if n_components is None else D - n_components


def checked_limits(**limits: Any) -> list[float | None]:
    """Return the limits, each of them None or a number that is not negative."""
    for name, value in limits.items():
        number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (number and value >= 0):  # NaN is not
            raise InputError(f"{name}={value!r}; expected a number from 0 on, or None: no limit.")
    return list(limits.values())


class Truth(NamedTuple):
    """What is known about the rows; no method sees it."""

    y: Array | None
    normals: Array | None


def checked_truth(y: Any, normals: Any, components: Any, n: int) -> Truth:
    """Return what is known about the rows, checked."""
    if normals is not None and components is not None:
        raise InputError("Both true_normals and true_components are given. Leave one of them out.")
    if components is not None:
        normals = complement(orthonormal(np.asarray(components, dtype=float).T)).T
    if y is not None:
        y = np.asarray(y)
        metrics.outlier_f1(y, y)  # raises if these are no labels
        if n and len(y) != n:
            raise InputError(f"y has {len(y)} labels, and X has {n} rows.")
    return Truth(y, normals)


def left_out(model: Any, limit: float, n: int, D: int, c: int | None) -> str:
    """Return why a method that nobody has named is not run, or nothing if it is."""
    can = _can(model)
    # Before a codimension is known both it and the dimension may be anything.
    c, d = (D, D) if c is None else (c, D - c)
    sizes = {"n": n, "D": D, "k": STARTS, "c": c, "d": d, "min(c,d)": min(c, d)}
    seconds, needed = can.seconds(**sizes), 8 * COPIES * can.numbers(**sizes)
    if seconds > LONG:
        about = f"{seconds / 60:.0f} minutes" if seconds > 90 else "a minute"
        return f"it would take about {about} (a step: {can.cost}); it runs if it is named"
    if needed > limit:
        return f"it needs about {in_bytes(round(needed))}; it runs if it is named"
    return ""
