"""Two spectra that show the codimension: of the directions, and of the inliers."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from perpend._typing import Array
from perpend._verdict import computed_evidence
from perpend.plots._display import ModelDisplay
from perpend.plots._picture import Axis, Dots, Layer, Mark, Picture, Text, empty
from perpend.plots._words import count, factor, plural
from perpend.rows.kinds import to_numpy

# Relative to the largest value; smaller ones are rounding errors. The inliers' spread is a root of
# eigenvalues, and has half of the digits.
FLOOR, SPREAD_FLOOR = 1e-15, 1e-8
ZEROS_BELOW = 10.0  # times below the smallest other value: where zeros are drawn beside noise


@dataclass(eq=False, repr=False)
class SpectrumDisplay(ModelDisplay):
    """Singular values of the directions, with the gap at the codimension.

    A descent that ends at a normal adds only to the first few singular values: their number is the
    codimension according to the descents.

    Notes
    -----
    If the rows do not span the space, the normals orthogonal to all of them need no descent and are
    not among these. The descents stop as soon as the codimension is clear, so the values behind the
    gap are small but not zero.

    Examples
    --------
    >>> from perpend import DPCP, datasets, plots
    >>> X = datasets.make_subspace(300, 300, n_features=12, codimension=3, random_state=0).X
    >>> display = plots.SpectrumDisplay.from_estimator(DPCP(random_state=1).fit(X))
    >>> display.n_normals, display.gap > 2
    (3, True)
    """

    singular_values: Array  # (k,) falling
    _: KW_ONLY
    n_normals: int | None  # how many of them belong to normals of the model; None if not known
    n_starts: int | None = None  # how many directions there are
    n_others: int = 0  # normals that are orthogonal to all rows, and need no descent

    def __post_init__(self) -> None:
        self.singular_values = np.asarray(self.singular_values, dtype=float)

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:  # noqa: ARG003
        """Make the display of a fitted model, without drawing it."""
        values = to_numpy(model.singular_values_)
        inside, starts = _n_inside(model), int(model.n_starts_)
        others = 0 if inside is None else int(model.codimension_) - inside
        if inside is not None:  # more directions than dimensions of the span have no more values
            values = values[: inside + model.n_components_]
        return cls(values, n_normals=inside, n_starts=starts, n_others=others)

    @property
    def gap(self) -> float | None:
        """The ratio of the singular values across the codimension; None if there is none."""
        return _ratio(self.singular_values, self.n_normals, FLOOR)

    @property
    def description(self) -> str:
        """The picture in words."""
        s, c = self.singular_values, self.n_normals
        if len(s) == 0:
            return "Singular values of the directions: there are no directions."
        what = f"Singular values of {count(self.n_starts or len(s))} directions"
        if c is None:
            return f"{what}: they fall from {s[0]:.2g} to {s[-1]:.2g}."
        more = (
            f" {plural(self.n_others, 'more normal')} hold for all rows." if self.n_others else ""
        )
        if self.gap is None:
            return f"{what}: {'all' if c else 'none'} of them belong to normals.{more}"
        fall = f"behind these they fall by a factor of {factor(self.gap)}."
        return f"{what}, {c} of normals: {fall}{more}"

    def _picture(self) -> Picture:
        """Describe the values as dots, the normals' filled, with the fall behind these."""
        s, c = self.singular_values, self.n_normals
        if len(s) == 0:
            return empty("Directions", "there are no directions", self.description)
        first = 0 if c is None else min(c, len(s))
        rank = f"rank {first}"
        if c is None:
            rank = "rank not known"
        elif self.gap is None:
            rank = "all of them normals" if c else "no normals among them"
        return _spectrum(
            f"{plural(self.n_starts or len(s), 'direction')}, {rank}",
            self.description,
            ("number of the singular value", "singular value"),
            (s, first, FLOOR),
            names=(
                f"{first} of normals"
                + (f", {self.n_others} hold for all" if self.n_others else ""),
                f"{len(s) - first} others",
            ),
            behind="muted",
        )


@dataclass(eq=False, repr=False)
class SpreadDisplay(ModelDisplay):
    """How far the inliers spread along and across the subspace.

    These are the inliers' standard deviations about the origin (about their mean, if affine) along
    their principal axes, as many as there are features, relative to the largest. Along the subspace
    they are large; across it there is only noise. A larger drop makes the codimension clearer.

    Examples
    --------
    >>> from perpend import DPCP, datasets, plots
    >>> X = datasets.make_subspace(
    ...     300, 300, n_features=12, codimension=3, noise=0.01, random_state=0
    ... ).X
    >>> display = plots.SpreadDisplay.from_estimator(DPCP(random_state=1).fit(X))
    >>> len(display.spread), display.n_normals, display.gap > 30
    (12, 3, True)
    """

    spread: Array  # (k,) falling standard deviations
    _: KW_ONLY
    n_normals: int | None  # how many of the last ones are across the subspace; None if not known
    n_rows: int | None = None  # different rows that lie on the subspace
    n_rows_by_chance: int | None = None  # how many lie on any one of this dimension

    def __post_init__(self) -> None:
        self.spread = np.asarray(self.spread, dtype=float)

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:  # noqa: ARG003
        """Make the display of a fitted model, without drawing it."""
        evidence = computed_evidence(model)
        variances = np.asarray(evidence.get("inlier_spectrum", []), dtype=float)[::-1]
        D = model.n_features_in_
        if len(variances) > D:  # of lifted rows, in files of earlier versions: one of them is 1
            variances = np.delete(variances, np.argmin(np.abs(variances - 1)))
        known = len(variances) > 0 and variances[0] > 0
        if known:  # along normals of the rows' span there is nothing
            variances = np.append(variances, np.zeros(D - len(variances)))
        return cls(
            np.sqrt(variances / variances[0]) if known else [],
            n_normals=int(model.codimension_) if known else None,
            n_rows=evidence.get("rows_on_subspace"),
            n_rows_by_chance=evidence.get("rows_on_any_subspace"),
        )

    @property
    def gap(self) -> float | None:
        """The smallest spread along the subspace over the largest across it."""
        c = self.n_normals
        return None if c is None else _ratio(self.spread, len(self.spread) - c, SPREAD_FLOOR)

    @property
    def description(self) -> str:
        """The picture in words."""
        if len(self.spread) == 0:
            return "The inliers' spread along and across the subspace: not recorded."
        text = f"Inliers' spread along {len(self.spread)} principal axes"
        if self.gap is not None:
            text += (
                f": along the subspace it is at least {factor(self.gap)} times as large as "
                "across it"
            )
        return f"{text}.{self._evidence(' ')}"

    def _evidence(self, before: str) -> str:
        if self.n_rows is None or self.n_rows_by_chance is None:
            return ""
        rows, chance = count(self.n_rows), count(self.n_rows_by_chance)
        return f"{before}{rows} distinct {self._word} lie on it; {chance} always would."

    def _picture(self) -> Picture:
        """Describe the spread as dots, that along the subspace filled, with the fall behind it."""
        if len(self.spread) == 0:
            note = "not recorded: all rows lie on the subspace,\nor there is none"
            return empty("Inliers' spread", note, self.description)
        c = 0 if self.n_normals is None else self.n_normals
        d = len(self.spread) - c
        n_zero = int(np.sum(self.spread <= SPREAD_FLOOR * self.spread[0]))
        zero = f", {n_zero} of them 0" if 0 < n_zero < c else ""
        return _spectrum(
            "Inliers' spread" + self._evidence("\n").rstrip("."),
            self.description,
            ("principal axis", "standard deviation (relative)"),
            (self.spread, d, SPREAD_FLOOR),
            names=(f"{d} along the subspace", f"{c} across it{zero}"),
            behind="out",
        )


def _n_inside(model: Any) -> int | None:
    """Return how many normals are inside the span of the rows; None if that is not known.

    The evidence has one variance for each dimension of the span, or that dimension itself.
    """
    evidence = computed_evidence(model)
    if "inlier_spectrum" not in evidence and "rank" not in evidence:
        return None
    rank = evidence.get("rank", len(evidence.get("inlier_spectrum", ())))
    return min(max(int(rank - model.n_components_), 0), int(model.codimension_))


def _ratio(values: Array, first: int | None, floor: float) -> float | None:
    """Return by what factor falling values fall behind the first ones.

    >>> _ratio(np.array([4.0, 2.0, 0.5]), 2, 0.0), _ratio(np.array([4.0]), 1, 0.0)
    (4.0, None)
    """
    if first is None or not 0 < first < len(values):
        return None
    return float(values[first - 1] / max(values[first], floor * values[0]))


def _spectrum(
    title: str,
    description: str,
    axes: tuple[str, str],
    falling: tuple[Array, int, float],
    *,
    names: tuple[str, str],
    behind: str,
) -> Picture:
    """Describe falling values: the first ones filled, the others hollow, and the gap between.

    `falling` are the values, how many are first, and what is zero relative to the largest.
    """
    values, first, floor = falling
    gap = _ratio(values, first, floor)
    place = np.arange(1.0, len(values) + 1)
    least = floor * values[0]
    if 0 < first < len(values) and values[first] > least:  # zeros far below would hide the step
        least = max(least, float(np.min(values[values > least])) / ZEROS_BELOW)
    shown = np.maximum(values, least)
    size = 5.0 if len(values) <= 40 else 2.5
    decades = float(np.log10(shown[0] / shown[-1]))
    y = Axis(axes[1], 0.0, 1.11 * shown[0])
    if decades > 1:
        lowest, highest = shown[-1] / 10 ** (0.15 * decades), shown[0] * 10 ** (0.09 * decades)
        y = Axis(axes[1], lowest, highest, log=True)
    layers: list[Layer] = [
        Dots(place[part], shown[part], color, name, hollow=hollow, size=size)
        for part, color, name, hollow in (
            (slice(first), "in", names[0], False),
            (slice(first, None), behind, names[1], True),
        )
        if len(place[part])
    ]
    if gap is not None:
        # Values before the gap are high, those behind it low: the wider side has room for the text,
        # below the former or above the latter.
        right = first <= len(values) / 2
        height = max(float(y.share(shown[first if right else first - 1])), 0.0)
        middle = y.at((height + 1) / 2 if right else height / 2)
        text = f"falls by\n× {factor(gap)}"
        layers += [Mark(first + 0.5), Text(first + 0.5, middle, text, ends=not right)]
    x = Axis(axes[0], 0.4, len(values) + 0.6, whole=True)
    return Picture(title, description, x, y, layers, room=0.16)
