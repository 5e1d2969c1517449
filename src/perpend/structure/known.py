"""A search that begins at a known subspace, as that of the last frame of a scanner.

It is refined on the new rows, from a few times its noise down, and weighed like any other proposal.
Where it is sure, and still is what it was, nothing else is searched; otherwise it has no part in
the result. It counts as two starts, as two have agreed on it when it was found.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.structure import constants as k
from perpend.structure.cloud import Axes
from perpend.structure.decide import Decision
from perpend.structure.ground import Ground
from perpend.structure.profile import Profile
from perpend.structure.settle import settle

LEFT = 0.5  # of its share of the rows: with less of them, another one may hold more
WIDER = (8.0, 4.0, 2.0)  # times the noise, from which it is refined: it has moved since


class Known(NamedTuple):
    """A subspace of other rows, in the units of the data."""

    normals: Array  # (D, c)
    components: Array  # (D, d)
    location: Array  # (D,)
    noise: float  # along one normal; 0 where it is exact
    share: float  # of the rows that are members

    def axes(self, point: Array | float = 0.0) -> Axes:
        """Return its axes about a point."""
        A = np.hstack([self.normals, self.components[:, ::-1]])
        return Axes(self.location - point, A, np.zeros(len(A)))

    def proposed(self, profile: Profile, axes: Axes, unit: float = 1.0) -> Iterator[int]:
        """Propose it to a profile, whose distances times `unit` are in the units of the data."""
        cloud, c = profile.cloud, self.normals.shape[1]
        noise = max(self.noise / unit, k.EXACT * cloud.floor)
        for times in WIDER:
            wide = settle(cloud, axes, c, times * noise)
            profile.add(settle(cloud, wide.axes, c, noise).axes)
        yield 2

    def proposed_to(self, ground: Ground) -> Iterator[int]:
        """Propose it to the rows of a linear search, by the law of the outliers as well."""
        span, axes = ground.span, self.axes()
        if span.n_outside == 0:
            A = span.inside(axes.A)
            ground.add(ground.fitted(A[:, : self.normals.shape[1]]))
            yield from self.proposed(ground.profile, axes._replace(A=A), ground.rows.unit)

    def is_found_in(self, decision: Decision | None, unit: float = 1.0) -> bool:
        """Say whether it is sure, as thin as it was, and has nearly as many of the rows."""
        if decision is None or decision.confidence < k.SURE:
            return False
        own, n_rows = decision.candidate, decision.cloud.n
        same = own.is_exact == (self.noise == 0)
        if same and self.noise > 0:
            same = abs(math.log(own.sigma * unit / self.noise)) <= math.log(k.SAME_NOISE)
        enough = own.n_members >= LEFT * self.share * n_rows
        return same and enough and own.c == self.normals.shape[1]
