"""Numbers and models as text, for titles and descriptions."""

import math
from typing import Any

from perpend._verdict import confidence
from perpend.structure import SURE

THIN = "\u202f"  # a narrow space that does not break a line
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(n: float) -> str:
    """Return a whole number with its digits in groups of three.

    >>> count(1234567).split()
    ['1', '234', '567']
    """
    return f"{round(n):,}".replace(",", THIN)


def number(value: float, digits: int = 3) -> str:
    """Return a number with a few significant digits.

    >>> number(0.0231999), number(-12.0), number(1.5e-9), number(4.25e13, 2), number(111, 2)
    ('0.0232', '−12', '1.5 × 10⁻⁹', '4.2 × 10¹³', '110')
    """
    value = float(value)
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("−∞" if value < 0 else "∞")
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    if "e" in text and 1 <= abs(value) < 1e6:
        text = count(float(text))
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.replace("-", "−")
    return f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}" if exponent else mantissa


def plural(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun.

    >>> plural(1, "row"), plural(3, "row"), plural(2, "axis", "axes")
    ('1 row', '3 rows', '2 axes')
    """
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def factor(x: float) -> str:
    """Return a ratio with two digits.

    >>> factor(1.234), factor(271.3), factor(3.92e13), factor(math.inf)
    ('1.2', '270', '3.9e+13', 'infinity')
    """
    if not math.isfinite(x):
        return "infinity"
    if x >= 1e5:
        return f"{x:.2g}"
    return f"{x:.1f}" if x < 10 else count(float(f"{x:.2g}"))


def percent(part: float, whole: float) -> str:
    """Return a share in percent.

    >>> percent(1, 8), percent(0, 0)
    ('12.5 %', '0.0 %')
    """
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def unit(model: Any) -> str:
    """Return the label of an axis of distances, with their unit."""
    if model.affine_ or not model.normalize:
        return "distance (data units)"
    return "relative distance (sine of the angle)"


def verdict(model: Any) -> str:
    """Describe a fitted model in one sentence: subspace, confidence and outliers.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(300, 600, n_features=9, codimension=2, random_state=0).X
    >>> print(verdict(DPCP(random_state=1).fit(X)))
    Sure (confidence 1.00): a subspace of dimension 7 in 9 features, codimension 2;
    600 of 900 rows (66.7 %) are outliers.
    """
    c, d, D = model.codimension_, model.n_components_, model.n_features_in_
    n, n_outliers = len(model.labels_), int((model.labels_ == -1).sum())
    sure = "Sure" if model.confidence_ >= SURE else "Not sure"
    if c == 0 and getattr(model, "codimension", "auto") == "auto":
        subspace = f"no subspace was found, the rows fill all {D} dimensions"
    else:
        kind = "an affine subspace" if model.affine_ else "a subspace"
        subspace = f"{kind} of dimension {d} in {D} features, codimension {c}"
    return (
        f"{sure} (confidence {confidence(model.confidence_)}): {subspace}; "
        f"{count(n_outliers)} of {count(n)} rows ({percent(n_outliers, n)}) are outliers."
    )
