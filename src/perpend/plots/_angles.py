"""Principal angles between two subspaces."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.metrics import principal_angles
from perpend.plots._display import Display
from perpend.plots._picture import Axis, Dots, Line, Picture, empty
from perpend.rows.kinds import to_numpy

SMALLEST = 1e-14  # degrees; smaller angles are rounding errors


@dataclass(eq=False, repr=False)
class PrincipalAnglesDisplay(Display):
    """The principal angles between two subspaces, in degrees, the largest first.

    There are as many angles as the smaller dimension; the other directions of the larger subspace
    have no partner.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend.plots import PrincipalAnglesDisplay
    >>> display = PrincipalAnglesDisplay.from_subspaces([[1, 0, 0]], [[1, 1, 0]])
    >>> np.rad2deg(display.angles).round(6)
    array([45.])
    """

    angles: Array  # (k,) in radians
    dimensions: tuple[int, int]  # of the two subspaces
    _: KW_ONLY
    what: str = "directions"  # what was compared, for the title

    def __post_init__(self) -> None:
        self.angles = np.sort(np.asarray(self.angles, dtype=float))[::-1]
        self.dimensions = (int(self.dimensions[0]), int(self.dimensions[1]))

    @classmethod
    def from_estimator(cls, model: Any, other: Any, *, ax: Any = None) -> Self:
        """Draw the angles between the normals of a fitted model and those of another, or the truth.

        Parameters
        ----------
        other : another one, or array of shape (c, n_features)
            An array holds rows that span the complement, such as the true normals.

        Notes
        -----
        If the dimensions are equal, the largest angle between the complements is that between the
        subspaces. Offsets of affine subspaces are not compared.
        """
        check_is_fitted(model)
        return cls.from_subspaces(_normals(model), _normals(other), what="normals", ax=ax)

    @classmethod
    def from_subspaces(
        cls, a: Array, b: Array, *, what: str = "directions", ax: Any = None
    ) -> Self:
        """Draw the angles between two subspaces.

        Parameters
        ----------
        a, b : arrays of shape (k, n_features) and (m, n_features)
            Rows that span them.
        what : str
            What they are, for the title.
        """
        return cls(principal_angles(a, b), (len(a), len(b)), what=what).plot(ax)

    @property
    def description(self) -> str:
        """The picture in words."""
        k, m = self.dimensions
        if len(self.angles) == 0:
            return f"No principal angles: there are {k} and {m} {self.what}."
        low, high = np.rad2deg([self.angles[-1], self.angles[0]])
        text = (
            f"{len(self.angles)} principal angles between {k} and {m} {self.what}: "
            f"the largest is {_degrees(high)}, the smallest {_degrees(low)}."
        )
        return text if k == m else f"{text} The numbers differ: {abs(k - m)} without a partner."

    def _picture(self) -> Picture:
        """Describe the angles as dots on stems, the largest first."""
        k, m = self.dimensions
        if len(self.angles) == 0:
            note = f"none: there are {k} and {m} {self.what}"
            return empty("Principal angles", note, self.description)
        degrees = np.maximum(np.rad2deg(self.angles), SMALLEST)
        place = np.arange(1.0, len(degrees) + 1)
        log = bool(degrees[-1] < 1)
        low = max(degrees[-1] / 100, SMALLEST / 10) if log else 0.0
        stems = np.stack([0 * degrees + low, degrees, np.nan * degrees], axis=1)
        title = f"Largest angle {_degrees(float(degrees[0]))}"
        return Picture(
            title if k == m else f"{title}; {k} and {m} {self.what}",
            self.description,
            Axis("principal angle", 0.4, len(degrees) + 0.6, whole=True),
            Axis("angle (degrees)", low, max(90.0, degrees[0]) * 2 if log else 92.0, log=log),
            (
                Line(np.repeat(place, 3), stems.ravel(), "muted", width=0.8),
                Dots(place, degrees, size=5.0 if len(place) <= 40 else 2.5),
            ),
        )


def _degrees(angle: float) -> str:
    """Return an angle as text.

    >>> _degrees(12.34), _degrees(1e-9), _degrees(0.0)
    ('12.3°', '1e-09°', 'below 1e-14°')
    """
    if angle <= SMALLEST:
        return f"below {SMALLEST:.0e}°"
    return f"{angle:.3g}°" if angle >= 0.01 else f"{angle:.0e}°"


def _normals(thing: Any) -> Array:
    if hasattr(thing, "normals_"):
        return to_numpy(thing.normals_)
    rows = np.asarray(thing, dtype=float)
    if rows.ndim != 2:
        raise InputError(
            f"other has shape {rows.shape}; expected a fitted model or rows that span the "
            "complement, (c, n_features)."
        )
    return rows
