"""`compare`: the methods in their order, and how each two agree."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perpend import metrics
from perpend._json import plain
from perpend._typing import Array, RandomState
from perpend.comparison.given import (
    FIRST,
    NOT_RUN,
    checked_limits,
    checked_truth,
    chosen_methods,
    entry_of,
    given_size,
    has_parameter,
    known_methods,
    left_out,
    needs_dimension,
)
from perpend.comparison.pca import PCABaseline
from perpend.comparison.result import ComparedMethod, Comparison
from perpend.comparison.run import Run
from perpend.exceptions import InputError
from perpend.formats._memory import memory_limit as free_memory
from perpend.geometry import as_generator

Progress = Callable[[str, int, int], None]


def compare(
    X: Array,
    y: Array | None = None,
    methods: Iterable[Any] | Mapping[str, Any] | None = None,
    *,
    codimension: int | None = None,
    n_components: int | None = None,
    true_normals: Array | None = None,
    true_components: Array | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    random_state: RandomState = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Comparison:
    """Run methods on the same rows, and say how they agree, how long they take, and what is wrong.

    If a method fails, its record has the reason, and the others go on. If all of them fail, the
    error of the first is raised.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), optional
        True labels: +1 for inliers, -1 for outliers. They are used for F1 and AUC alone; no method
        sees them.
    methods : list of str or estimators, or dict, optional
        Names of methods, classes or estimators. The keys of a dict are the names in the result.
        Any outlier detector of scikit-learn can be compared. By default all published methods and
        PCA, except those that need more memory than there is, or a minute or more for rows of this
        size by a rough formula; their records say so. A method that you name is run in any case.
    codimension, n_components : int, optional
        The size of the subspace, for all methods. By default, methods that can estimate it do so.
        Those that must be given it get the estimate of `DPCP`, and whether it is affine; if it has
        none, as when its time was up, that of the first other method that is sure of its own.
    true_normals, true_components : array of shape (k, n_features), optional
        Rows that span the complement of the true subspace, or the subspace itself; one of the two.
    time_limit : float, optional
        Seconds for one method, not negative. It is stopped at the next step of its loop, and its
        record says so.
    memory_limit : float, optional
        Bytes for one method in addition to the rows, not negative; by default 80 % of the free
        memory.
    random_state : int, Generator, RandomState or None
        The same for each method.
    progress : callable, optional
        Called as ``progress(name, done, total)`` before each method.
    **parameters
        Given to every method that has a parameter of this name, such as ``affine=True`` or
        ``contamination=0.1``. Estimators keep the parameters that they were made with.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import perpend
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(300, 200, n_features=8, codimension=2, random_state=0)
    >>> found = perpend.compare(data.X, data.y, ["DPCP", "RSGM", "PCA"], random_state=0)
    >>> [(row.method, row.codimension, row.given, row.f1 > 0.99) for row in found.rows]
    [('DPCP', 2, False, True), ('RSGM', 2, True, True), ('PCA', 2, True, False)]
    """
    shape = np.shape(X)
    n, D = shape if len(shape) == 2 else (0, 0)
    chosen, named = chosen_methods(methods), methods is not None
    size = given_size(codimension, n_components, D)
    if not isinstance(random_state, int | np.integer | None):
        random_state = int(as_generator(random_state).integers(2**31))
    every = [*chosen.values(), *(entry_of(name)[1] for name in known_methods())]
    for name in parameters:
        if not any(has_parameter(one.model, name) for one in every):
            raise InputError(f"no method has a parameter {name!r}.")
    truth = checked_truth(y, true_normals, true_components, n)
    time_limit, limit = checked_limits(time_limit=time_limit, memory_limit=memory_limit)
    run = Run(X, truth, parameters | {"random_state": random_state}, time_limit, size)
    if limit is None:
        limit = free_memory()
    needy = [name for name, entry in chosen.items() if needs_dimension(entry.model)]
    first = {} if size is not None or not needy else {FIRST: entry_of(FIRST)[1]}

    def turn(name: str) -> int:
        """DPCP is first, as others get its dimension, and PCA last: it gets a share of outliers."""
        last = isinstance(all_[name].model, PCABaseline)
        return 3 if last else 2 if name in needy else int(name != FIRST)

    all_, records = first | chosen, {}  # with DPCP, if only for its dimension
    for done, name in enumerate(sorted(all_, key=turn)):
        if progress is not None:
            progress(name, done, len(all_))
        out = "" if named or name == FIRST else left_out(all_[name].model, limit, n, D, run.size)
        record = ComparedMethod(method=name, problem=f"{NOT_RUN}{out}")
        records[name] = record if out else run.record(name, all_[name])
        run.learn(records[name])
    rows = [records[name] for name in chosen]
    if all(row.problem is not None for row in rows):
        said = InputError("; ".join(f"{row.method} {row.problem}" for row in rows))
        raise next((row.error for row in records.values() if row.error is not None), said)
    return in_pairs(rows, run.size, run.given_by)


def in_pairs(rows: list[ComparedMethod], size: int | None, given_by: str | None) -> Comparison:
    """Compare methods in pairs, and each with the first."""
    m = len(rows)
    same, angle, distance = (np.full((m, m), np.nan) for _ in range(3))
    for i in range(m):
        for j in range(i, m):
            a, b = rows[i], rows[j]
            if a.labels is not None and b.labels is not None:
                same[i, j] = same[j, i] = np.mean(a.labels == b.labels)
            if a.normals is not None and b.normals is not None:
                distance[i, j] = distance[j, i] = metrics.subspace_distance(a.normals, b.normals)
                if len(a.normals) == len(b.normals) > 0:
                    largest = float(metrics.principal_angles(a.normals, b.normals)[0])
                    angle[i, j] = angle[j, i] = math.degrees(largest)
    for j, row in enumerate(rows[1:], 1):
        with_first = {"label_agreement": same[0, j], "largest_angle_degrees": angle[0, j]}
        rows[j] = replace(row, **plain(with_first))
    return Comparison(tuple(rows), same, angle, distance, size, given_by)
