r"""Fused CUDA kernels for the hot loop: objective and gradient in one pass over the rows.

.. math:: f_j = \sum_i w_i |x_i \cdot b_j|, \qquad G = \mathrm{sign}(X B)^T (w X)

`prepare` converts the rows once; what it returns evaluates any B. Nothing here imports torch or the
CUDA bindings before `prepare` is called, and `prepare` returns None if no kernel fits: the caller
then uses plain products.
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from perpend._typing import Array
from perpend.kernels.cuda.plan import MOST_FEATURES, MOST_PLAIN_FEATURES, SHARED_BYTES

if TYPE_CHECKING:
    from perpend.kernels.cuda.prepared import Prepared

Precision = Literal["auto", "float64", "float32", "bf16x2", "bf16"]

logger = logging.getLogger(__name__)


def prepare(X: Array, precision: Precision = "auto") -> "Prepared | None":
    """Convert rows X (n, D) on a CUDA device for the fused kernels; None where none of them fits.

    X must not change afterwards: it may be kept instead of a copy. With the `precision` "bf16x2"
    rows are stored as a high and a low part, 16 bits each: the memory of float32, a relative error
    of 2^-16. "float32" is for at most 16 features; "auto" is "float32" for these and "bf16x2" for
    more. None of them fits without torch or NVIDIA's ``cuda.bindings`` (a CUDA build of torch
    installs them), for other devices, types or shapes, and if the memory does not suffice.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {get_args(Precision)}, got {precision!r}")
    if find_spec("torch") is None or find_spec("cuda") is None or not _fits(X):
        return None
    import torch

    n, features = X.shape
    if precision == "auto":
        precision = "float32" if features <= MOST_PLAIN_FEATURES else "bf16x2"
    if features > (MOST_PLAIN_FEATURES if precision == "float32" else MOST_FEATURES):
        return None
    try:
        with torch.cuda.device(X.device):
            return _converted(X, precision)
    except (ImportError, RuntimeError) as error:  # RuntimeError: out of memory, NVRTC not found
        logger.info("No fused kernel for %d x %d rows: %s", n, features, error)
        return None


def _converted(X: Array, precision: Precision) -> "Prepared":
    from perpend.kernels.cuda.layout import bf16_tiles, float64_tiles
    from perpend.kernels.cuda.prepared import PlainRows, TiledRows

    if precision == "float32":
        plain = X.float().contiguous()
        return PlainRows(plain if plain.data_ptr() % 16 == 0 else plain.clone())
    if precision == "float64":
        return TiledRows(X, float64_tiles(X), 1)
    parts = 2 if precision == "bf16x2" else 1
    return TiledRows(X, bf16_tiles(X, parts), parts)


def _fits(X: Array) -> bool:
    """Whether X is a matrix of a type and on a device that the kernels know."""
    import torch

    if not isinstance(X, torch.Tensor) or not X.is_cuda or X.ndim != 2 or 0 in X.shape:
        return False
    if torch.version.hip is not None or X.dtype not in (torch.float32, torch.float64):
        return False
    properties = torch.cuda.get_device_properties(X.device)
    shared = getattr(properties, "shared_memory_per_block_optin", 0)
    return bool(properties.major >= 9 and shared >= SHARED_BYTES)  # some newer ones have less
