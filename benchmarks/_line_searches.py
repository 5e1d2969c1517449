"""The rivals of the hot loop: two other ways to run the rule of ``step="auto"``, starts in step.

- plain NumPy: one product for each trial of the starts that still search, one for the gradient;
- free line search: ``P = X B`` and ``Q = X G`` are kept, so that a trial costs no product; also
  in row blocks.
"""

from typing import Any

import numpy as np

from perpend.solvers import AutoStep, Outcome

RULE = AutoStep()
TOL = 1e-9
BLOCK_ENTRIES = 32_768


class Plain:
    """The products of plain NumPy: one for each trial, one for the gradient."""

    def __init__(self, X: Any, B: Any) -> None:
        self.X, self.B = X, B
        self.P = X @ B

    def gradient(self) -> Any:
        """Return X.T sign(X B)."""
        return self.X.T @ np.sign(self.P)

    def visit(self, v: Any) -> None:
        """Prepare trials along v."""
        self.v: Any = v
        self.ahead: Any = None

    def objective(self, mu: Any, columns: Any) -> Any:
        """Return the objective after these steps, and remember where they lead."""
        trial = self.B[:, columns] - mu * self.v[:, columns]
        trial /= np.linalg.norm(trial, axis=0)
        P = self.X @ trial
        if len(columns) == self.B.shape[1]:
            self.ahead = P, trial
        else:
            self.ahead = self.ahead or (self.P.copy(), self.B.copy())
            self.ahead[0][:, columns], self.ahead[1][:, columns] = P, trial
        return np.abs(P).sum(axis=0)

    def move(self, mu: Any) -> None:  # noqa: ARG002
        """Take the last trial of every start."""
        self.P, self.B = self.ahead or (self.P, self.B)

    def leave(self, stay: Any) -> None:
        """Let the other starts rest."""
        self.P, self.B = self.P[:, stay], self.B[:, stay]


class Free(Plain):
    """The free line search: X v is kept too, so that a trial costs no product; in row blocks."""

    def __init__(self, X: Any, B: Any) -> None:
        rows = BLOCK_ENTRIES // X.shape[1]
        self.blocks = [slice(i, i + rows) for i in range(0, len(X), rows)]
        super().__init__(X, B)

    def gradient(self) -> Any:
        """Return X.T sign(X B)."""
        return sum(np.sign(self.P[s]).T @ self.X[s] for s in self.blocks).T

    def visit(self, v: Any) -> None:
        """Prepare trials along v."""
        self.v, self.Q = v, np.empty_like(self.P)
        for s in self.blocks:
            np.matmul(self.X[s], v, out=self.Q[s])

    def objective(self, mu: Any, columns: Any) -> Any:
        """Return the sum of |P - mu Q| / sqrt(1 + mu^2)."""
        every = slice(None) if len(columns) == self.B.shape[1] else columns
        f = sum(np.abs(self.P[s, every] - mu * self.Q[s, every]).sum(axis=0) for s in self.blocks)
        return f / np.sqrt(1 + mu**2)

    def move(self, mu: Any) -> None:
        """Take a step mu of every start; some may be zero."""
        h = np.sqrt(1 + mu**2)
        self.B = (self.B - mu * self.v) / h
        for s in self.blocks:
            self.P[s] -= mu * self.Q[s]
            self.P[s] /= h


def synchronous(products: Plain, max_iter: int) -> float:
    """Run the rule with all starts in step, as one would write it; return the mean iterations."""
    k = products.B.shape[1]
    f, mu = np.abs(products.P).sum(axis=0), np.full(k, RULE.mu0)
    n_iter, streak = np.zeros((2, k), dtype=int)
    total, before = 0, None
    while products.B.shape[1]:
        v, slope = RULE.search(products.B, products.gradient())
        if before is not None:
            taken = products.B - before
            turn = -np.sum(taken * v, axis=0) / np.linalg.norm(taken, axis=0)
            everyone = np.ones(len(mu), dtype=bool)
            mu = RULE.following(mu, Outcome(everyone, streak, n_iter, turn, turn, turn))
        before = products.B
        products.visit(v)
        searching = np.flatnonzero(mu > TOL)
        accepted = np.zeros(len(mu), dtype=bool)
        while searching.size:
            f_trial = products.objective(mu[searching], searching)
            yes = RULE.accepts(
                f_trial, f[searching], mu[searching], slope[searching], n_iter[searching]
            )
            accepted[searching[yes]] = True
            f[searching[yes]] = f_trial[yes]
            streak[searching] = np.where(yes, streak[searching] + 1, 0)
            searching = searching[~yes]
            mu[searching] *= RULE.shrink
            searching = searching[mu[searching] > TOL]
        products.move(np.where(accepted, mu, 0.0))
        n_iter += accepted
        total += int(accepted.sum())
        stay = accepted & (n_iter < max_iter)
        if not stay.all():
            products.leave(stay)
            f, mu, n_iter, streak, before = (x[..., stay] for x in (f, mu, n_iter, streak, before))
    return total / k
