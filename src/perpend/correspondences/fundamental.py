r"""Fundamental matrices: y^T F x = 0 for two views of a scene that does not move."""

import numpy as np

from perpend._typing import Array
from perpend.correspondences.pairs import AT_INFINITY, Pairs

_TURNS = np.array(  # the three infinitesimal rotations
    [
        [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]],
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)


class FundamentalMatrices(Pairs):
    r"""The relation y^T F x = 0 with F of rank 2; its error is Sampson's, in pixels.

    .. math:: e = y^T F x \,/\, \sqrt{(F x)_1^2 + (F x)_2^2 + (F^T y)_1^2 + (F^T y)_2^2}
    """

    n_free, n_parameters, error_size = 7, 7, 1
    open_doubt = (
        "nearly all pairs that agree may lie on a plane, on lines or in a few places, which does "
        "not determine the epipoles; pairs at other depths would help, or use perpend.homography"
    )
    most_samples = 5_000

    def __init__(self, first: Array, second: Array) -> None:
        super().__init__(first, second)
        # A wrong pair is anywhere up to the extent away from its line; e is that over sqrt(2).
        self.flat = np.sqrt(2) / self.extent

    def rows(self, rng: np.random.Generator) -> Array:  # noqa: ARG002
        """Return the products of the coordinates of y and x, as y^T F x is linear in F."""
        return (self.y[:, :, None] * self.x[:, None, :]).reshape(-1, 9)

    def through(self, samples: Array) -> Array:
        """Return the fundamental matrices of seven pairs each, one or three.

        All a F + (1 - a) G fit, where F and G span what is orthogonal to the seven rows; the
        determinant is a cubic in a.
        """
        rows = (self.y[samples][..., :, None] * self.x[samples][..., None, :]).reshape(-1, 7, 9)
        F, G = np.linalg.svd(rows)[2][:, -2:].reshape(-1, 2, 3, 3).swapaxes(0, 1)
        at = np.array([-1.0, 0.0, 1.0, 2.0])
        blend = at[:, None, None, None]
        values = np.linalg.det(blend * F + (1 - blend) * G)  # (4, s)
        cubic = np.linalg.solve(np.vander(at), values)  # highest power first
        usable = np.abs(cubic[0]) > 1e-12 * np.abs(cubic).max(axis=0)
        F, G, cubic = F[usable], G[usable], cubic[:, usable]
        companion = np.zeros((len(F), 3, 3))
        companion[:, 0] = -(cubic[1:] / cubic[0]).T
        companion[:, [1, 2], [0, 1]] = 1
        a = np.linalg.eigvals(companion)  # (s, 3)
        M = a.real[..., None, None] * (F - G)[:, None] + G[:, None]
        return M[np.abs(a.imag) < 1e-9 * (1 + np.abs(a))]

    def valid(self, M: Array) -> Array:
        """Return the nearest matrices of rank 2, of norm 1."""
        U, s, V = np.linalg.svd(M)
        s = s * np.array([1.0, 1.0, 0.0])
        return (U * (s / np.linalg.norm(s, axis=1, keepdims=True))[:, None]) @ V

    def errors(self, M: Array) -> Array:
        """Return the squares of Sampson's errors (m, n)."""
        product, gradient2, _, _ = self._sampson(M)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(product**2 / gradient2, nan=AT_INFINITY, posinf=AT_INFINITY)

    def linearised(self, M: Array) -> tuple[Array, Array]:
        """Return Sampson's errors, and their derivatives along the matrices of rank 2."""
        product, gradient2, line, back = self._sampson(M)
        x, y = self.x.T, self.y.T
        line, back = line / self.pixels[1] ** 2, back / self.pixels[0] ** 2
        line[:, 2], back[:, 2] = 0, 0  # points move within the image
        half = line[:, :, None] * x + y[:, None] * back[:, None]  # of gradient2 by F, (m, 3, 3, n)
        by_F = y[:, None] * x - (product / gradient2)[:, None, None] * half
        by_F = by_F.reshape(len(M), 9, -1) / np.sqrt(gradient2)[:, None]
        J = np.swapaxes(by_F, 1, 2) @ self._tangents(M)  # (m, n, 7)
        return (product / np.sqrt(gradient2))[:, None], J[:, None]

    def between(self, M: Array, G: Array) -> Array:
        """Return the products of coordinates over both gradients: Sampson's error of a mixture."""
        _, gradient2, _, _ = self._sampson(np.stack([M, G]))
        size = np.sqrt(np.maximum(gradient2.sum(axis=0), 1e-24 * gradient2.max()))
        rows = self.y[:, None, :, None] * self.x[:, None, None, :]
        return rows.reshape(-1, 1, 9) / size[:, None, None]

    def moved(self, M: Array, move: Array) -> Array:
        """Return the matrices after moves (m, 7): turns of both sides, and of the two values."""
        U, s, V = np.linalg.svd(M)
        angle = np.arctan2(s[:, 1], s[:, 0]) + move[:, 6]
        s = np.stack([np.cos(angle), np.sin(angle), np.zeros(len(M))], axis=1)
        return (
            (U @ _turned(move[:, :3]) * s[:, None]) @ np.swapaxes(_turned(move[:, 3:6]), 1, 2) @ V
        )

    def in_pixels(self, M: Array) -> Array:
        """Return one matrix as it relates the points given, with last entry 1 if it is not 0."""
        F = self.to_y.T @ M @ self.to_x
        return F / F[2, 2] if abs(F[2, 2]) > 1e-12 * np.abs(F).max() else F / np.linalg.norm(F)

    def _sampson(self, M: Array) -> tuple[Array, Array, Array, Array]:
        """Return y^T F x (m, n), its squared gradient by the pixels, F x and F^T y (m, 3, n)."""
        x, y = self.x.T, self.y.T
        line, back = M @ x, np.swapaxes(M, 1, 2) @ y
        product = line[:, 0] * y[0] + line[:, 1] * y[1] + line[:, 2]  # y has a third coordinate 1
        by_y = (line[:, 0] ** 2 + line[:, 1] ** 2) / self.pixels[1] ** 2
        by_x = (back[:, 0] ** 2 + back[:, 1] ** 2) / self.pixels[0] ** 2
        return product, by_x + by_y, line, back

    @staticmethod
    def _tangents(M: Array) -> Array:
        """Return the derivatives (m, 9, 7) of F = U diag(cos t, sin t, 0) V by the moves."""
        U, s, V = np.linalg.svd(M)
        US, SV = U * s[:, None], s[:, :, None] * V
        left = [U @ turn @ SV for turn in _TURNS]
        right = [US @ turn.T @ V for turn in _TURNS]
        turn = np.stack([-s[:, 1], s[:, 0], 0 * s[:, 0]], axis=1)
        return np.stack([*left, *right, (U * turn[:, None]) @ V], axis=-1).reshape(-1, 9, 7)


def _turned(axis: Array) -> Array:
    """Return the rotations (m, 3, 3) about axes (m, 3), by Cayley's map (exact to second order)."""
    K = np.einsum("mk,kij->mij", axis / 2, _TURNS)
    return np.linalg.solve(np.eye(3) - K, np.eye(3) + K)
