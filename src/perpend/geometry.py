"""Directions, orthonormal bases and the angles between subspaces.

This is the maths layer: a basis is a matrix of shape (D, k) whose *columns* span the subspace, and
k may be 0 (the origin alone) or D (the whole space). The public face, where bases are rows like
``normals_``, is :mod:`perpend.metrics`.

Angles are computed from sines where they are small and from cosines where they are large, as
arccos loses half of the digits near 0 and arcsin near pi/2 [1]_. scipy's ``subspace_angles`` pairs
the two wrongly when small and large angles occur together, so it is not used here. Arrays may be
those of any library: `namespace` and `library` say whose.

References
----------
.. [1] Knyazev, Argentati (2002), Principal angles between subspaces in an A-based scalar product,
   SIAM J. Sci. Comput. 23, 2008-2040.
"""

import math
import numbers
import sys

import numpy as np
from scipy import linalg

from perpend._typing import Array, Namespace, RandomState

GAMMA_LIMIT = 200  # up to this dimension the gamma function neither overflows nor rounds badly


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return one NumPy Generator for whatever users pass as ``random_state``.

    None takes fresh entropy from the system. A RandomState seeds a new Generator and thereby moves
    on, so that a second call gives another one.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(2**32, size=4, dtype=np.uint32)  # 128 bits of entropy
        return np.random.default_rng(words)
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, got {random_state}.")
        return np.random.default_rng(int(random_state))
    raise TypeError(
        "random_state must be None, an int, a numpy.random.Generator or a "
        f"numpy.random.RandomState, got {type(random_state).__name__}."
    )


def random_directions(rng: np.random.Generator, n_features: int, n: int) -> Array:
    """Draw n unit vectors uniformly on the sphere, as the columns of an array (n_features, n).

    With the same seed, a larger n appends vectors and leaves the first ones as they are.
    """
    B = rng.standard_normal((n, n_features)).T  # one vector after the other: more = same + new ones
    return B / np.linalg.norm(B, axis=0)  # a Gaussian vector points in every direction alike


def average_height(dimension: int) -> float:
    r"""Return c_d, the mean of \|u_1\| for u uniform on the unit sphere of R^d.

    .. math:: c_d = \frac{\Gamma(d/2)}{\sqrt\pi\;\Gamma((d+1)/2)} \approx \sqrt{2/(\pi d)}

    It is the paper's double factorial (d-2)!!/(d-1)!!, times 2/pi where d is even; for d = 1 and 2
    this needs 0!! = (-1)!! = 1, which the paper does not say. Accurate to 1e-14 for every d.

    Parameters
    ----------
    dimension : int
        d, at least 1.

    Returns
    -------
    float

    Examples
    --------
    >>> [round(average_height(d), 5) for d in (1, 2, 3, 10, 200)]
    [1.0, 0.63662, 0.5, 0.25869, 0.05649]
    """
    x = dimension / 2
    if dimension <= GAMMA_LIMIT:
        return math.gamma(x) / (math.sqrt(math.pi) * math.gamma(x + 0.5))
    # Differences of log-gammas lose as many digits as d has. This is the asymptotic series of
    # Gamma(x + 1/2) / (sqrt(x) Gamma(x)); the first term left out is below 1e-15 here.
    u = 1 / x
    series = 1 + u * (
        -1 / 8 + u * (1 / 128 + u * (5 / 1024 + u * (-21 / 32768 + u * (-399 / 262144))))
    )
    return 1 / (math.sqrt(math.pi * x) * series)


def orthonormal(A: Array, *, rtol: float | None = None) -> Array:
    """Return an orthonormal basis (D, k) of what the columns of A (D, m) span; k is their rank.

    Singular values up to `rtol` times the largest count as zero; by default that is ``max(D, m)``
    times the rounding unit of the data, as in ``numpy.linalg.matrix_rank``.
    """
    A = _floating(A)
    if A.size == 0:
        return A[:, :0]
    U, s, _ = np.linalg.svd(A, full_matrices=False)  # A = U diag(s) V^T
    if rtol is None:
        rtol = max(A.shape) * float(np.finfo(A.dtype).eps)
    return U[:, : int(np.sum(s > rtol * s[0]))]


def complement(V: Array) -> Array:
    """Return an orthonormal basis (D, D - k) of the complement of orthonormal columns (D, k).

    >>> complement(np.eye(3)[:, :2]).shape, complement(np.zeros((3, 0))).shape
    ((3, 1), (3, 3))
    """
    V = _floating(V)
    D, k = V.shape
    # V = Q R with Q = H_1 ... H_k = I - W T W^T, a product of reflections I - tau_j w_j w_j^T. Only
    # the last D - k columns of Q are formed, and in one product.
    H, tau = np.linalg.qr(V, mode="raw")
    W = np.tril(H.T, -1) + np.eye(D, k, dtype=V.dtype)
    W, tau = W[:, tau != 0], tau[tau != 0]
    if not len(tau):
        return np.eye(D, D - k, -k, dtype=V.dtype)
    inverse_T = np.triu(W.T @ W, 1) + np.diag(1 / tau)
    rest: Array = W @ linalg.solve_triangular(inverse_T, -W[k:].T, check_finite=False)
    rest[range(k, D), range(D - k)] += 1
    return rest


def principal_angles(A: Array, B: Array) -> Array:
    """Return the min(k, m) angles in [0, pi/2] between spans of A (D, k) and B (D, m), descending.

    The columns of each are orthonormal. Every angle is right to within rounding, tiny ones too.

    >>> B = np.array([[1.0, 0.0], [0.0, np.cos(1e-10)], [0.0, np.sin(1e-10)]])
    >>> [f"{angle:.3g}" for angle in principal_angles(np.eye(3)[:, :2], B)]
    ['1e-10', '0']
    """
    A, B = _floating(A), _floating(B)
    if A.shape[1] < B.shape[1]:
        A, B = B, A  # the sines below belong to the smaller of the two
    if B.shape[1] == 0:
        return np.zeros(0, dtype=B.dtype)
    C = A.T @ B  # (k, m)
    cosines = np.linalg.svd(C, compute_uv=False)[::-1]  # smallest cosine = largest angle first
    sines = np.linalg.svd(B - A @ C, compute_uv=False)  # of (I - A A^T) B, largest first
    cosines, sines = np.minimum(cosines, 1), np.minimum(sines, 1)
    return np.where(cosines**2 < 0.5, np.arccos(cosines), np.arcsin(sines))


def sine_of_largest_angle(A: Array, B: Array) -> float:
    """Return the sine of the largest principal angle between the spans of A and B, both (D, k).

    It is the spectral norm ||(I - A A^T) B||_2, which keeps all digits of a tiny angle.
    """
    A, B = _floating(A), _floating(B)
    if A.shape != B.shape:
        raise ValueError(f"A and B must have the same shape, got {A.shape} and {B.shape}.")
    if B.shape[1] == 0:
        return 0.0
    return min(1.0, float(np.linalg.norm(B - A @ (A.T @ B), 2)))


def _floating(A: Array) -> Array:
    """Keep float32 and float64, turn everything else into float64."""
    A = np.asarray(A)
    return A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)


def axis_shares(heights: Array, normals: Array) -> Array:
    r"""Return the share (n, D) of each row's squared distance that moving along one axis removes.

    `normals` (c, D) are orthonormal rows N, and `heights` (n, c) are N x for rows x of norm one.
    With :math:`P = N^T N` and the residual :math:`e = P x`, moving x by t along axis j leaves
    :math:`\|e\|^2 - 2 t e_j + t^2 P_{jj}`, which is least at :math:`t = e_j / P_{jj}` and then
    smaller by :math:`e_j^2 / P_{jj}`. The share is 0 where nothing but rounding is to be removed,
    and for an axis that is so nearly parallel to the subspace that the move would be longer than
    the distance by more than :math:`1 / \sqrt\epsilon`. The only other array of this size that is
    formed is one mask.

    >>> N = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
    >>> axis_shares(np.array([[0.0, 0.1]]), N).round(3)
    array([[0., 1., 1.]])
    """
    xp = namespace(heights)
    eps = xp.finfo(heights.dtype).eps
    distance = xp.sqrt(xp.sum(heights * heights, axis=1, keepdims=True))  # (n, 1)
    some = distance > normals.shape[1] * eps
    direction = xp.where(some, heights / xp.where(some, distance, 1.0), 0.0)  # (n, c)
    P = xp.sum(normals * normals, axis=0)  # (D,) its diagonal
    useful = eps < P
    # The square root of the share is e_j / (|e| sqrt(P_jj)): one product, already scaled.
    shares = direction @ xp.where(useful, normals / xp.sqrt(xp.where(useful, P, 1.0)), 0.0)
    shares *= shares
    shares[shares > 1] = 1.0  # by rounding
    return shares


# -- arrays of any library -------------------------------------------------------------------------


def namespace(array: Array) -> Namespace:
    """Return the array library that `array` belongs to.

    >>> import numpy as np
    >>> namespace(np.ones(2)) is np
    True
    """
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    # torch's own functions differ from the standard in names and defaults; this package is thin.
    from array_api_compat import array_namespace

    return array_namespace(array)


def library(array: Array) -> Namespace:
    """Return numpy or torch, whichever the array belongs to, with functions of its own names."""
    return sys.modules[type(array).__module__.partition(".")[0]]
