"""Homographies: y ~ H x for two views of a plane, or from one place."""

import numpy as np

from perpend._typing import Array
from perpend.correspondences.pairs import AT_INFINITY, Pairs


class Homographies(Pairs):
    r"""The relation y ~ H x; its error is the mean transfer error.

    .. math:: e^2 = (\|H x - y\|^2 + \|H^{-1} y - x\|^2) / 2
    """

    n_free, n_parameters, error_size = 4, 8, 2
    open_doubt = (
        "nearly all pairs that agree may lie along a line or in a few places, which does not "
        "determine a homography; pairs off the line, and spread over the image, would help"
    )
    most_samples = 20_000  # which finds 10 % of correct pairs in 6 of 7 cases

    def __init__(self, first: Array, second: Array) -> None:
        super().__init__(first, second)
        self.flat = self.extent**-2

    def rows(self, rng: np.random.Generator) -> Array:
        """Return two rows for each pair, turned by a random angle.

        They have zeros at fixed places, which would be a subspace of its own. Turning changes
        neither their span nor their equation.
        """
        zero = np.zeros_like(self.x)
        one = np.hstack([self.x, zero, -self.y[:, :1] * self.x])
        two = np.hstack([zero, self.x, -self.y[:, 1:2] * self.x])
        t = rng.uniform(0, 2 * np.pi, (len(self), 1))
        return np.vstack([np.cos(t) * one + np.sin(t) * two, np.cos(t) * two - np.sin(t) * one])

    def through(self, samples: Array) -> Array:
        r"""Return the homographies of four pairs each.

        With a = (x1 x2 x3)^{-1} x4 and b likewise of y, H = (y1 y2 y3) diag(b / a) (x1 x2 x3)^{-1}.
        Then H x_i = (b_i / a_i) y_i. Points in front of both cameras have positive factors, which
        few wrong samples have.
        """
        X, Y = self.x[samples], self.y[samples]  # (s, 4, 3)
        into, a = _coordinates(X)
        _, b = _coordinates(Y)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = b / a
            good = np.all((factor > 0) & np.isfinite(factor), axis=1)
        M = np.swapaxes(Y[good, :3] * factor[good, :, None], 1, 2) @ into[good]
        return M[np.isfinite(M).all(axis=(1, 2))]

    def valid(self, M: Array) -> Array:
        """Return the matrices, of norm 1."""
        return M / np.linalg.norm(M, axis=(1, 2), keepdims=True)

    def errors(self, M: Array) -> Array:
        """Return the squared transfer errors (m, n)."""
        there, back = self._transferred(M)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            e2 = sum(
                pixels**2 * ((q[0] / q[2] - z[:, 0]) ** 2 + (q[1] / q[2] - z[:, 1]) ** 2)
                for q, z, pixels in self._both(there, back)
            )
        return np.nan_to_num(e2 / 2, nan=AT_INFINITY, posinf=AT_INFINITY)

    def linearised(self, M: Array) -> tuple[Array, Array]:
        """Return both transfer errors, and their derivatives by the nine entries."""
        there, back = self._transferred(M)
        residuals, derivatives = [], []
        G = adjugate(M)
        G = G / np.sum(M[:, 0] * G[:, :, 0], axis=1)[:, None, None]  # the inverse
        p = self.y @ np.swapaxes(G, 1, 2)  # (m, n, 3)
        # dq = dH x there, and dp = -G dH p back; each coordinate i is (q_i - u_i q_3) / q_3
        for q, z, pixels in self._both(there, back):
            for i in (0, 1):
                u = q[i] / q[2]
                residuals.append(pixels * (u - z[:, i]) / np.sqrt(2))
                if q is there:
                    left = np.zeros((*u.shape, 3))
                    left[..., i], left[..., 2] = 1 / q[2], -u / q[2]
                    right = np.broadcast_to(self.x, left.shape)
                else:
                    left = (u[..., None] * G[:, None, 2] - G[:, None, i]) / p[..., 2:]
                    right = p
                change = left[..., :, None] * right[..., None, :]  # (m, n, 3, 3)
                derivatives.append(pixels / np.sqrt(2) * change.reshape(*u.shape, 9))
        return np.stack(residuals, 1), np.stack(derivatives, 1)

    def between(self, M: Array, G: Array) -> Array:
        """Return the equations of H x ~ y over the root mean square of both third coordinates."""
        zero, depth = np.zeros_like(self.x), np.hypot(self.x @ M[2], self.x @ G[2])
        one = np.hstack([self.x, zero, -self.y[:, :1] * self.x])
        two = np.hstack([zero, self.x, -self.y[:, 1:2] * self.x])
        depth = np.maximum(depth, 1e-12 * np.max(depth))
        return np.stack([one, two], axis=1) * (self.pixels[1] / depth)[:, None, None]

    def moved(self, M: Array, move: Array) -> Array:
        """Return the matrices after moves (m, 9) of their entries."""
        return self.valid(M + move.reshape(-1, 3, 3))

    def in_pixels(self, M: Array) -> Array:
        """Return one matrix as it relates the points given, with last entry 1 as usual."""
        H = np.linalg.solve(self.to_y, M @ self.to_x)
        return H / H[2, 2] if abs(H[2, 2]) > 1e-12 * np.abs(H).max() else H

    def _transferred(self, M: Array) -> tuple[Array, Array]:
        """Return H x and H^{-1} y up to scale, coordinates first (3, m, n)."""
        return np.moveaxis(M @ self.x.T, 1, 0), np.moveaxis(adjugate(M) @ self.y.T, 1, 0)

    def _both(self, there: Array, back: Array) -> tuple[tuple[Array, Array, float], ...]:
        return (there, self.y, self.pixels[1]), (back, self.x, self.pixels[0])


def adjugate(M: Array) -> Array:
    """Return det(M) times the inverses of M (m, 3, 3); singular matrices have one, too."""
    a, b, c = M[:, 0], M[:, 1], M[:, 2]
    return np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=2)


def _coordinates(points: Array) -> tuple[Array, Array]:
    """Return the inverse of the first three points (s, 3, 3), up to scale, and the fourth in it."""
    into = adjugate(np.swapaxes(points[:, :3], 1, 2))
    return into, (into @ points[:, 3, :, None])[..., 0]
