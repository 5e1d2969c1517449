"""Which rows are equal, and how much each counts as evidence."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.kernels import heights
from perpend.rows.source import RowSource


class Distinct(NamedTuple):
    """Which rows are equal."""

    share: Array  # (n,) how much each row counts as evidence
    in_common: Array  # (n,) the weight of each row and of those that are equal to it
    part: Array  # (n,) of that weight which is the row's own
    first: Array  # (n,) bool: one row of each kind

    @property
    def n_different(self) -> float:
        """The number of rows that differ, whatever they weigh."""
        return float(self.part.sum())

    def of_kind(self, rows: Array) -> tuple[Array, Array]:
        """Return the weight and the evidence of these rows (m,) with all that are equal to them.

        The weights are relative to their mean.
        """
        weight = self.in_common[rows]
        return weight / np.mean(weight), self.share[rows] / self.part[rows]


def distinct_rows(rows: RowSource, rng: np.random.Generator) -> Distinct:
    """Say how much each row counts as evidence.

    Rows that are equal up to sign count like one row together, however often they stand there and
    however heavy they are; and for less than one if they weigh less than a typical distinct row. So
    data in which every row stands m times, or has weight m, are the same evidence as the data once.

    Equal rows have equal heights over a random direction; different ones almost surely do not.
    """
    b = rng.standard_normal(rows.shape[1])
    kept = rows.scan(heights, b / np.linalg.norm(b), keep=True).kept
    assert kept is not None
    height = rows.gather(kept).astype(float) * rows.gather(rows.lengths)
    weight = rows.gather(rows.weights).astype(float)
    present = np.flatnonzero(weight > 0)
    order = present[np.argsort(height[present], kind="stable")]
    tolerance = 4 * np.finfo(rows.dtype).eps * height[order]
    group = np.cumsum(np.diff(height[order], prepend=-np.inf) > tolerance) - 1
    total = np.bincount(group, weight[order])
    share, in_common, part = np.zeros((3, len(weight)))
    share[order] = weight[order] / np.maximum(total, np.median(total))[group]
    in_common[order] = total[group]
    part[order] = weight[order] / total[group]
    first = np.zeros(len(weight), dtype=bool)
    first[order[np.diff(group, prepend=-1) > 0]] = True
    return Distinct(share, in_common, part, first)
