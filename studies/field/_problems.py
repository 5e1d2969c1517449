"""The field's experiments: what is drawn in each cell of their grids, and the known transitions.

Sizes are smaller than published, in about the same proportions, so that every method can take part
in every cell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments._trials import n_outliers

Lines = dict[str, tuple[Array, Array]]
DS_SNR, SPECTRAL = "DS-SNR = 1", "limit of spectral starts"


class Problem(NamedTuple):
    """Rows, and what is to be found in them."""

    X: Array  # (n, D)
    y: Array  # (n,) +1 or -1; of a dictionary all +1, as rows have no label there
    normals: Array  # (c, D) the true ones, or all atoms (D, D) of a dictionary
    share: float  # of outliers
    dictionary: bool = False

    @property
    def codimension(self) -> int:
        """The codimension that methods are given; of a dictionary one atom is sought."""
        return 1 if self.dictionary else len(self.normals)

    def error(self, normals: Array) -> float:
        """Return the sine of the largest angle to the truth; in a dictionary to the nearest atoms.

        There the span of any atoms is right, of as many as there are normals.
        """
        from perpend.metrics import subspace_error

        k, truth = len(normals), self.normals
        if self.dictionary:
            if not 0 < k < len(truth):  # nothing, or everything, is no atom
                return 1.0
            near = np.linalg.norm(truth @ normals.T, axis=1)
            truth = truth[np.argsort(near)[-k:]]
        return subspace_error(normals, truth)


@dataclass(frozen=True)
class Grid:
    """An experiment: two axes, sizes, and how a cell is drawn."""

    title: str
    words: str  # what is drawn, for the page
    x: str  # label of the axis
    y: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    sizes: dict[str, int]
    quick: dict[str, int]
    draw: Callable[[float, float, dict[str, Any], np.random.Generator], Problem]
    lines: Callable[[Array, dict[str, Any]], Lines] = lambda *_: {}

    def sizes_of(self, *, quick: bool) -> dict[str, int]:
        """Return the sizes of a quick or a full run."""
        return self.quick if quick else self.sizes

    def axes(self, *, quick: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return both axes; of a quick run only their ends."""
        x, y = (len(self.xs) - 1, len(self.ys) - 1) if quick else (1, 1)
        return self.xs[::x], self.ys[::y]


def _mixed(rng: np.random.Generator, inliers: Array, outliers: Array, normals: Array) -> Problem:
    """Return inliers and outliers in random order."""
    n, m = len(inliers), len(outliers)
    order = rng.permutation(n + m)
    X, y = np.concatenate([inliers, outliers]), np.repeat([1, -1], [n, m])
    return Problem(X[order], y[order], normals, m / (n + m))


def _bases(rng: np.random.Generator, D: int, d: int) -> tuple[Array, Array]:
    """Return orthonormal rows of a random subspace (d, D) and of its complement (D - d, D)."""
    Q, _ = np.linalg.qr(rng.standard_normal((D, D)))
    return Q[:d], Q[d:]


def _gaussian(rng: np.random.Generator, n: int, m: int, D: int, d: int) -> Problem:
    """REAPER's haystack: N(0, P / d) among N(0, I / D)."""
    U, normals = _bases(rng, D, d)
    inliers = rng.standard_normal((n, d)) @ U / np.sqrt(d)
    return _mixed(rng, inliers, rng.standard_normal((m, D)) / np.sqrt(D), normals)


def _haystack(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    D, d = sizes["D"], sizes["d"]
    return _gaussian(rng, round(x * d), round(y * D), D, d)


def _few(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    return _gaussian(rng, round(x * y), sizes["M"], sizes["D"], int(x))


def _noisy(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    """The grid of ICML 2021: Gaussian inliers with noise of norm x beside their norm 1."""
    D, N = sizes["D"], sizes["N"]
    U, normals = _bases(rng, D, D - sizes["c"])
    inliers = rng.standard_normal((N, len(U))) @ U / np.sqrt(len(U))
    inliers += x * rng.standard_normal((N, D)) / np.sqrt(D)
    outliers = rng.standard_normal((n_outliers(N, y), D))
    return _mixed(rng, _unit(inliers), _unit(outliers), normals)


def _high(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    """The paper's own data, at every codimension x."""
    D, N = sizes["D"], sizes["N"]
    U, normals = _bases(rng, D, D - int(x))
    inliers = rng.standard_normal((N, len(U))) @ U
    outliers = rng.standard_normal((n_outliers(N, y), D))
    return _mixed(rng, _unit(inliers), _unit(outliers), normals)


def _deficient(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    """RANSAC+'s toy: strong outliers in x dimensions that are orthogonal to the subspace."""
    D, d, n = sizes["D"], sizes["d"], sizes["n"]
    U, normals = _bases(rng, D, d)
    m = round(y * n)
    outliers = np.sqrt(10) * rng.standard_normal((m, int(x))) @ normals[: int(x)]
    return _mixed(rng, rng.standard_normal((n - m, d)) @ U, outliers, normals)


def _cluster(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    """Outliers around one random direction, with a spread x beside its norm 1."""
    D, N = sizes["D"], sizes["N"]
    U, normals = _bases(rng, D, D - sizes["c"])
    centre = _unit(rng.standard_normal((1, D)))
    outliers = centre + x * rng.standard_normal((n_outliers(N, y), D)) / np.sqrt(D)
    return _mixed(rng, _unit(rng.standard_normal((N, len(U))) @ U), _unit(outliers), normals)


def _dictionary(x: float, y: float, sizes: dict[str, Any], rng: np.random.Generator) -> Problem:
    """Rows with Bernoulli-Gaussian codes, of density x, by an orthogonal dictionary.

    An atom is the normal of a hyperplane that holds all rows whose code is zero there.
    """
    D = sizes["D"]
    atoms, _ = _bases(rng, D, D)
    m = round(10 * D**y)
    codes = rng.standard_normal((m, D)) * (rng.random((m, D)) < x)
    codes = codes[np.any(codes, axis=1)]  # a row of zeros has no direction
    X = codes @ atoms
    return Problem(X, np.ones(len(X), dtype=int), atoms, x, dictionary=True)


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# -- transitions: x and y of curves over a fine axis of x ---------------------------------------


def _haystack_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    # (N/d) / (M/(D-d)) = 1
    return {DS_SNR: (x, x * (1 - sizes["d"] / sizes["D"]))}


def _few_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    return {DS_SNR: (x, sizes["M"] / (sizes["D"] - x))}


def _flat_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    """Inlier share d/D, so an outlier share of c/D."""
    return {DS_SNR: (x, np.full(len(x), sizes["c"] / sizes["D"]))}


def _noisy_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    from perpend.theory import spectral_limit

    limit = spectral_limit(sizes["N"], sizes["D"], sizes["c"])
    return _flat_lines(x, sizes) | {f"{SPECTRAL}, without noise": (x, np.full(len(x), limit))}


def _high_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    from perpend.theory import spectral_limit

    D, N, c = sizes["D"], sizes["N"], np.arange(1, min(int(x[-1]) + 1, sizes["D"]))
    limit = np.array([spectral_limit(N, D, int(k)) for k in c])
    return {DS_SNR: (x, x / D), SPECTRAL: (c, limit)}


def _deficient_lines(x: Array, sizes: dict[str, Any]) -> Lines:
    # (1 - y) n / d = y n / x
    return {"outliers as dense as inliers": (x, x / (x + sizes["d"]))}


GRIDS = {
    "haystack": Grid(
        "Haystack",
        "REAPER's (Lerman, McCoy, Tropp and Zhang 2015): Gaussian inliers N(0, P/d) among outliers "
        "N(0, I/D)",
        "inliers for each dimension, N/d", "outliers for each feature, M/D",
        (2, 4, 6, 8, 12), (1, 2, 4, 8), {"D": 30, "d": 3}, {"D": 12, "d": 2},
        _haystack, _haystack_lines,
    ),
    "few": Grid(
        "Few inliers",
        "the haystack at low dimensions, with hardly more inliers than dimensions",
        "dimension d", "inliers for each dimension, N/d",
        (1, 2, 4, 8), (2, 3, 4, 6), {"D": 30, "M": 120}, {"D": 16, "M": 40},
        _few, _few_lines,
    ),
    "noise": Grid(
        "Noise at high dimension",
        "the grid of Ding, Zhu, Vidal and Robinson (2021): unit inliers with noise of norm sigma, "
        "and unit outliers",
        "noise sigma", "outlier ratio r",
        (0.0, 0.15, 0.3, 0.5), (0.1, 0.3, 0.5, 0.7),
        {"D": 30, "c": 2, "N": 200}, {"D": 12, "c": 2, "N": 60},
        _noisy, _noisy_lines,
    ),
    "relative": Grid(
        "High relative dimension",
        "unit inliers and outliers, uniform, as in the paper; from hyperplanes down",
        "codimension c", "outlier ratio r",
        (1, 4, 8, 12), (0.3, 0.5, 0.7, 0.85), {"D": 30, "N": 120}, {"D": 16, "N": 60},
        _high, _high_lines,
    ),
    "deficient": Grid(
        "Rank-deficient outliers",
        "the adversarial toy of RANSAC+ (Chen, Ma and Fattahi 2025): strong outliers in a subspace "
        "of few dimensions, orthogonal to that of the inliers",
        "dimension of the outliers", "outlier ratio r",
        (1, 2, 4, 8), (0.1, 0.2, 0.3, 0.4),
        {"D": 40, "d": 10, "n": 200}, {"D": 16, "d": 3, "n": 60},
        _deficient, _deficient_lines,
    ),
    "cluster": Grid(
        "Clustered outliers",
        "structured outliers: unit vectors around one random direction",
        "spread of the outliers", "outlier ratio r",
        (0.1, 0.3, 0.6, 1.0), (0.2, 0.4, 0.6, 0.8),
        {"D": 20, "c": 4, "N": 120}, {"D": 12, "c": 2, "N": 40},
        _cluster, _flat_lines,
    ),
    "dictionary": Grid(
        "Orthogonal dictionary",
        "Bernoulli-Gaussian codes by a random orthogonal dictionary (Bai, Jiang and Sun 2019), "
        "10 D^p rows. An atom is the normal of a hyperplane that holds the rows whose code is zero "
        "there. Methods are given codimension 1; as many atoms as there are normals are right; "
        "OrthogonalDictionary must find all",
        "density of the codes", "p",
        (0.1, 0.2, 0.3, 0.4, 0.5), (0.5, 1.0, 1.25, 1.5), {"D": 16}, {"D": 8},
        _dictionary,
    ),
}  # fmt: skip
