"""The l1 objective on a plane instead of the sphere: a linear program."""

import numpy as np
from scipy.optimize import linprog

from perpend._typing import Array
from perpend.exceptions import NumericalError
from perpend.solvers.dense import Dense


def least_crossing(rows: Dense, n: Array) -> Array:
    """Return the b (D, 1) with b.n = 1 that has the least weighted sum of |x.b|."""
    X, weight = rows
    bounds = [*zip(-weight, weight, strict=True), (None, None)]  # of y, and of lambda
    program = linprog(
        np.append(np.zeros(len(X)), -1.0),
        A_eq=np.hstack([X.T, -n]),
        b_eq=np.zeros(len(n)),
        bounds=bounds,
        method="highs-ds",  # the simplex method ends at a vertex
    )
    if program.status != 0:
        raise NumericalError(f"A linear program was not solved: {program.message}")
    b: Array = program.eqlin.marginals[:, None]
    return b
