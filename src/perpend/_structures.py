"""What is inside what, in words: a plane with noise 0.05 (40,000 rows), inside a slab of 1.1.

A structure holds another one if it is wider, has more rows, and has nearly all rows of that one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NEARLY_ALL = 0.9  # share of the rows of a structure that another one must have to hold it
CHOSEN, HOLDS_IT, INSIDE_IT, BESIDE_IT = "chosen", "holds it", "inside it", "beside it"


def relations(model: Any) -> list[str]:
    """Return how each of a model's structures relates to the chosen one."""
    seen = getattr(model, "structures_", [])  # files of earlier versions have none
    others = getattr(model, "_others", None) or [None] * len(seen)
    own: Mapping[str, Any] = next((one for one in seen if one["chosen"]), {})
    return [
        CHOSEN if one["chosen"] else _relation(one, own, other, model.labels_ == 1)
        for one, other in zip(seen, others, strict=True)
    ]


def _relation(one: Mapping[str, Any], own: Mapping[str, Any], kept: Any, own_rows: Any) -> str:
    if kept is None:  # by a version in between, which kept nothing
        return BESIDE_IT
    rows = kept["labels_"]
    both = int((rows & own_rows).sum())
    wider = one["noise"] >= own["noise"] and one["members"] >= own["members"]
    thinner = one["noise"] <= own["noise"] and one["members"] <= own["members"]
    if wider and one["codimension"] <= own["codimension"] and both >= NEARLY_ALL * own_rows.sum():
        return HOLDS_IT
    if thinner and one["codimension"] >= own["codimension"] and both >= NEARLY_ALL * rows.sum():
        return INSIDE_IT
    return BESIDE_IT


def plain_count(n: float) -> str:
    """Return a whole number with commas between thousands.

    >>> plain_count(40000)
    '40,000'
    """
    return f"{round(n):,}"


def plain_number(value: float) -> str:
    """Return a number with two significant digits.

    >>> plain_number(0.0473), plain_number(1.1), plain_number(738.0), plain_number(1.5e-9)
    ('0.047', '1.1', '740', '1.5e-09')
    """
    text = f"{value:.2g}"
    return plain_count(float(text)) if 100 <= value < 1e6 else text


@dataclass(frozen=True)
class Words:
    """Structures in words, with the reader's way to write numbers and rows."""

    n_features: int
    affine: bool
    rows: str = "rows"
    count: Callable[[float], str] = plain_count
    number: Callable[[float], str] = plain_number

    def named(self, codimension: int) -> str:
        """Return what a subspace is called.

        >>> Words(3, affine=True).named(1), Words(3, affine=False).named(1)
        ('a plane', 'a subspace of dimension 2')
        """
        d = self.n_features - codimension
        if self.affine and self.n_features <= 3:
            return ("a point", "a line", "a plane")[d]
        return f"a subspace of dimension {d}"

    def noise(self, one: Mapping[str, Any]) -> str:
        """Return a structure and how thick it is."""
        exact = one["noise"] == 0
        noise = "without noise" if exact else f"with noise {self.number(one['noise'])}"
        return f"{self.named(one['codimension'])} {noise}"

    def structure(self, one: Mapping[str, Any]) -> str:
        """Return a structure with its noise and its rows."""
        return f"{self.noise(one)} ({self.count(one['members'])} {self.rows})"

    def sentence(self, seen: Sequence[Mapping[str, Any]], to_chosen: Sequence[str]) -> str:
        """Return what the chosen structure is inside of, and what is inside of it.

        >>> road = {"codimension": 1, "noise": 0.05, "members": 40000}
        >>> street = {"codimension": 1, "noise": 1.1, "members": 120000}
        >>> Words(3, affine=True).sentence([road, street], [CHOSEN, HOLDS_IT])
        'a plane with noise 0.05 (40,000 rows), inside a slab of 1.1'
        """
        pairs = list(zip(seen, to_chosen, strict=True))
        own = next(one for one, relation in pairs if relation == CHOSEN)
        text = self.structure(own)
        for one, relation in pairs:
            if relation == HOLDS_IT:
                same = one["codimension"] == own["codimension"]
                holder = f"a slab of {self.number(one['noise'])}" if same else self.noise(one)
                text += f", inside {holder}"
        inside = [self.structure(one) for one, relation in pairs if relation == INSIDE_IT]
        return text + (f"; inside it {' and '.join(inside)}" if inside else "")
