"""The profile: at which scales the rows concentrate, and around how many normals."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._display import ModelDisplay
from perpend.plots._maps import cell_edges
from perpend.plots._picture import SHADES, Axis, Cells, Dots, Label, Layer, Line, Picture
from perpend.plots._words import count, factor, number, unit

SHORTEST_PLATEAU = 0.26  # in log scale: shorter ones are not drawn, as they make nothing clear
MOST_TICKS = 12  # codimensions: beyond, not each of them has a tick


class Bar(NamedTuple):
    """A range of scales at which one codimension has the largest contrast."""

    codimension: int
    first: float  # finest scale
    last: float  # coarsest scale


@dataclass(eq=False, repr=False)
class ProfileDisplay(ModelDisplay):
    """Scale against codimension, shaded by the contrast; plateaus are bars.

    At each scale, one number of normals concentrates the rows most. A range of scales with the same
    number is a *plateau*: it begins at the noise of a structure and ends at the structure's own
    extent. A long plateau makes a codimension clear.

    Notes
    -----
    The contrast is the logarithm of how much likelier the rows are with such a subspace than by
    accident; 0 if that is no more than chance. The shade is its root, which weights the plateaus. A
    fit has a profile if scales mattered: with ``affine=True``, if the descents were not clear, or
    if a thinner structure may have been inside.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import DPCP
    >>> from perpend.plots import ProfileDisplay
    >>> rng = np.random.default_rng(0)
    >>> street = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    >>> street[:1200, 2] = rng.normal(0, 0.05, 1200)  # the road
    >>> model = DPCP(affine=True, random_state=1000).fit(street)
    >>> display = ProfileDisplay.from_estimator(model)
    >>> display.bars[0].codimension, display.bars[0].last > 50 * display.bars[0].first
    (1, True)
    """

    scales: Array  # (S,) rising; a scale is the deviation of noise along one normal
    codimensions: Array  # (C,) rising
    contrast: Array  # (C, S), see the notes
    _: KW_ONLY
    structures: Sequence[Mapping[str, Any]] = ()  # as `structures_` of a model
    xlabel: str = "scale"  # of the horizontal axis

    size = (6.4, 3.7)

    def __post_init__(self) -> None:
        self.scales, self.contrast = (
            np.asarray(values, dtype=float) for values in (self.scales, self.contrast)
        )
        self.codimensions = np.asarray(self.codimensions)
        self.structures = [dict(one) for one in self.structures]

    @classmethod
    def of(cls, model: Any, X: Array | None = None) -> Self:  # noqa: ARG003
        """Make the display of a fitted model, without drawing it."""
        if not hasattr(model, "profile_"):
            raise InputError(
                "This model was saved by an earlier version, which stored no profile. Fit it again."
            )
        if model.profile_ is None:
            raise InputError(
                "This model has no profile: all rows lie on the subspace, or the codimension was "
                "given, so no scales were compared. SpectrumDisplay shows what decided."
            )
        measure = unit(model)[unit(model).index("(") :]
        return cls(**model.profile_, structures=model.structures_, xlabel=f"scale {measure}")

    @property
    def bars(self) -> list[Bar]:
        """The plateaus, finest first."""
        best = np.argmax(self.contrast, axis=0)
        seen = np.max(self.contrast, axis=0) > 0
        ends = np.flatnonzero((np.diff(best) != 0) | (np.diff(seen.astype(int)) != 0))
        first, last = np.append(0, ends + 1), np.append(ends, len(best) - 1)
        return [
            Bar(int(self.codimensions[best[a]]), float(self.scales[a]), float(self.scales[b]))
            for a, b in zip(first, last, strict=True)
            if seen[a] and np.log(self.scales[b] / self.scales[a]) >= SHORTEST_PLATEAU
        ]

    @property
    def chosen(self) -> Mapping[str, Any] | None:
        """The structure that the model describes."""
        return next((one for one in self.structures if one["chosen"]), None)

    @property
    def length(self) -> float | None:
        """The factor in scale over which the chosen codimension has the largest contrast."""
        if self.chosen is None:
            return None
        c, noise = self.chosen["codimension"], float(self.chosen["noise"])
        own = [bar for bar in self.bars if bar.codimension == c]
        # Rounding errors and single rows may make another plateau far below the noise.
        spans = [bar for bar in own if bar.first <= noise <= bar.last] or own
        return max((bar.last / bar.first for bar in spans), default=None)

    @property
    def description(self) -> str:
        """The picture in words."""
        parts = [
            f"codimension {bar.codimension} from {number(bar.first, 2)} to {number(bar.last, 2)}"
            for bar in self.bars
        ]
        text = "Contrast by scale and codimension. Plateaus: " + ("; ".join(parts) or "none") + "."
        if self.chosen is not None:
            text += (
                f" The model has codimension {self.chosen['codimension']} and noise "
                f"{number(self.chosen['noise'], 2)}, with {count(self.chosen['members'])} "
                f"{self._word}."
            )
        others = ", ".join(
            f"codimension {one['codimension']} at {number(one['noise'], 2)} "
            f"({count(one['members'])} {self._word})"
            for one in self.structures
            if not one["chosen"]
        )
        return f"{text} Others: {others}." if others else text

    def _picture(self) -> Picture:
        """Describe shades, plateaus as bars, and the structures at their noise with their sizes."""
        seen = self.codimensions[np.any(self.contrast > 0, axis=1)]
        known = [*seen, *(one["codimension"] for one in self.structures)] or self.codimensions
        low, high = int(min(known)), int(max(known))
        scales = [*self.scales[[0, -1]], *(one["noise"] for one in self.structures)]
        positive = [scale for scale in scales if scale > 0]
        first, last = min(positive), max(positive)
        kept = (self.codimensions >= low) & (self.codimensions <= high)
        borders = np.exp(cell_edges(np.log(self.scales))).clip(first, last)
        # The root of the contrast weights the plateaus.
        shade = np.sqrt(self.contrast[kept])
        levels = np.ceil(SHADES * shade / max(float(shade.max(initial=0.0)), 1e-9)).astype(int)
        own = None if self.chosen is None else self.chosen["codimension"]
        best = self.codimensions[np.argmax(self.contrast, axis=0)].astype(float)
        best[np.max(self.contrast, axis=0) <= 0] = np.nan
        layers: list[Layer] = [
            Cells(borders, cell_edges(self.codimensions[kept]), levels),
            # a staircase: the codimension with the largest contrast at each scale
            Line(np.repeat(borders, 2)[1:-1], np.repeat(best, 2), "muted", width=1.0),
        ]
        for bar in self.bars:
            color, width = ("in", 5.0) if bar.codimension == own else ("muted", 3.5)
            layers.append(Line([bar.first, bar.last], [bar.codimension] * 2, color, width=width))
        for one in sorted(self.structures, key=lambda one: not one["chosen"]):
            chosen = bool(one["chosen"])
            x, y = max(float(one["noise"]), first), float(one["codimension"])
            color, text = ("in" if chosen else "muted"), f"{count(one['members'])} {self._word}"
            text = f"noise {number(one['noise'], 2)}, {text}" if chosen else text
            layers.append(Dots([x], [y], color, hollow=not chosen, size=10 if chosen else 7))
            layers.append(Label(x, y, text, color, strong=chosen))
        ticks = [int(c) for c in self.codimensions[kept]] if high - low < MOST_TICKS else None
        return Picture(
            self._title(),
            self.description,
            Axis(self.xlabel, first, last, log=True),
            # Above and below there is room for words.
            Axis(
                "codimension",
                low - max(0.6, 0.1 * (high - low)),
                high + max(0.75, 0.12 * (high - low)),
                whole=True,
                ticks=ticks,
            ),
            layers,
        )

    def _title(self) -> str:
        if self.chosen is None:
            return "Scale and codimension"
        c = self.chosen["codimension"]
        if self.length is None:
            return f"Codimension {c}"
        return f"Codimension {c} over a factor of {factor(self.length)} in scale"


def scales_matter(model: Any) -> bool:
    """Say whether the profile shows more than the directions of the descents.

    It does for affine fits, which have no descents, and if there are several structures. Files of
    earlier versions have no profile.
    """
    if getattr(model, "profile_", None) is None:
        return False
    return bool(model.affine_ or len(model.structures_) > 1)
