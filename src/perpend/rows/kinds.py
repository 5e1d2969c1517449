"""Kinds of arrays, NumPy's and torch's: where data was given, where it is computed on, and back.

``device=None`` computes where the data is. A device moves the data there once, and the results come
back as the kind of array that was given, to the device where it was given. torch is imported only
when it is needed: if nobody has imported it, there is no tensor.
"""

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import DeviceMemoryError, InputError, MissingExtraError
from perpend.rows.source import Kept, RowSource

READ_AS_NUMPY = {"cpu"}
"""Devices whose tensors are read as NumPy arrays that share their memory. There our own blocks over
BLAS are several times faster than torch's products."""


def is_tensor(X: Any) -> bool:
    """Tell whether X is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def is_sparse(X: Any) -> bool:
    """Tell whether X is a sparse matrix or array of SciPy."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def is_dask(X: Any) -> bool:
    """Tell whether X is a Dask array or dataframe."""
    return type(X).__module__.startswith("dask.") and hasattr(X, "__dask_graph__")


def is_elsewhere(X: Any) -> bool:
    """Tell whether the rows are, or may be, in other processes than this one."""
    return is_dask(X) or (is_lazy(X) and X.elsewhere)


def is_lazy(X: Any) -> bool:
    """Tell whether X is a `perpend.rows.lazy.LazyRows`."""
    return getattr(X, "is_lazy", False) is True


def to_numpy(A: Any) -> Array:
    """Return A as a NumPy array, if it fits into memory: tensors, lazy and sparse rows as well."""
    if is_sparse(A):
        from perpend.rows.sparse import SparseRows

        A = SparseRows(A)
    return A.detach().cpu().resolve_neg().numpy() if is_tensor(A) else np.asarray(A)


@contextmanager
def text_named(X: Any) -> Iterator[None]:
    """In an error about text or dates in X, say where the first entry is that is no number."""
    try:
        yield
    except (ValueError, np.exceptions.DTypePromotionError) as error:
        if "could not" not in str(error):
            raise
        raise InputError(_first_text(X)) from error


def _first_text(X: Any) -> str:
    names = getattr(X, "columns", None)
    for position, entry in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(entry)
        except (TypeError, ValueError):
            row, *column = map(str, position)
            place = [row, *column] if names is None else [row, f'"{names[position[1]]}"']
            kind = "string" if isinstance(entry, str) else type(entry).__name__
            return (
                f"could not convert {kind} to float: X[{', '.join(place)}] is {str(entry)!r}. "
                "Encode text as numbers, or drop that column."
            )
    return "could not convert X to an array of numbers."


def in_memory(X: Array) -> Array:
    """Return a tensor in the computer's memory as a NumPy array that shares it; others as is."""
    return X.resolve_neg().numpy() if is_tensor(X) and X.device.type in READ_AS_NUMPY else X


def like(A: Array, X: Array) -> Array:
    """Return the small array A as an array of X's kind, device and precision."""
    if not is_tensor(X):
        A = to_numpy(A)
        return A.astype(X.dtype, copy=False) if X.dtype in (np.float32, np.float64) else A
    return A.to(device=X.device, dtype=X.dtype) if is_tensor(A) else X.new_tensor(A)


def room(X: Array, *shape: int) -> Array:
    """Return an empty array of X's kind, device and precision."""
    return X.new_empty(shape) if is_tensor(X) else np.empty(shape, X.dtype)


def numpy_dtype(X: Array) -> Any:
    """Return the type of the entries as NumPy names it."""
    return np.dtype(str(X.dtype).removeprefix("torch.")) if is_tensor(X) else X.dtype


def stand_in(X: Array) -> Array:
    """Return an array like a tensor or lazy X, of zeros without memory: shapes can be checked.

    A tensor that is no matrix is copied instead: complaints about it quote its entries.
    """
    if is_lazy(X):
        return np.broadcast_to(np.zeros((), X.dtype), X.shape)
    if X.ndim < 2:
        return to_numpy(X)
    dtype = "complex128" if X.is_complex() else str(X.dtype).removeprefix("torch.")
    return np.broadcast_to(np.zeros((), dtype), tuple(X.shape))


def per_row(rows: RowSource, kept: Kept) -> Array:
    """Return values kept with the rows as one array of the rows' kind, where the rows are."""
    collect = getattr(rows, "collect", rows.gather)
    return collect(kept)


# -- devices ---------------------------------------------------------------------------------------


def has_gpu() -> bool:
    """Whether torch is installed and sees a CUDA device."""
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


class Place:
    """Where X was given (`given`) and where it is computed on (`device`); None is NumPy."""

    def __init__(self, X: Any, device: Any) -> None:
        self.given = X.device if is_tensor(X) else None
        wanted = self.given if device is None else device
        self.device = None if wanted is None else _usable(wanted)

    @staticmethod
    def checked(name: str, X: Array) -> Array:
        """Return a dense tensor in single or double precision, or say why X can't be used.

        Shorter floats become single and integers double; complex tensors stay as they are.
        """
        import torch

        if X.requires_grad:
            raise InputError(
                f"{name} requires grad, and perpend computes no derivatives. Pass {name}.detach()."
            )
        if X.device.type == "meta":
            raise InputError(f"{name} is on the meta device, which holds shapes without numbers.")
        if X.layout != torch.strided:
            raise InputError(
                f"{name} is a sparse tensor ({X.layout}); expected a dense one. "
                f"Pass {name}.to_dense()."
            )
        if X.dtype in (torch.float32, torch.float64) or X.dtype.is_complex:
            return X
        return X.to(torch.float32 if X.dtype.is_floating_point else torch.float64)

    def bring(self, X: Array) -> Array:
        """Move a checked array or tensor to the device; in memory it becomes or stays NumPy."""
        if self.device is None:
            return X
        if is_lazy(X):
            raise InputError(
                f"device={str(self.device)!r} needs an array or a tensor, and X is read in blocks. "
                "Leave device at its default, or pass an array."
            )
        tensor = X if is_tensor(X) else _shared(X)
        return in_memory(self.checked("X", tensor.to(self.device)))

    def back(self, A: Array) -> Array:
        """Return a result as the kind of array that X was given as, on the same device."""
        if self.given is None:
            return to_numpy(A)
        return (A if is_tensor(A) else _shared(A)).to(self.given)

    def to_numpy(self, name: str, A: Any) -> Any:
        """Bring a small tensor on the device of X to memory; other values stay as they are."""
        if not is_tensor(A):
            return A
        home = "cpu" if self.given is None else str(self.given)
        if str(A.device) not in {home, str(self.device)}:
            raise InputError(
                f"{name} is on {A.device} and X is on {home}. Move one of them, for example by "
                f'{name}.to("{home}").'
            )
        return to_numpy(self.checked(name, A))


@contextmanager
def computing_on(X: Any, device: Any) -> Iterator[Place]:
    """Find the place for X, compute there in full precision, and say it clearly if it is full."""
    if (device is None and not is_tensor(X)) or is_elsewhere(X):  # workers have their own devices
        yield Place(X, None)
        return
    torch = _torch("a tensor" if device is None else f"device={str(device)!r}")
    from perpend.rows.torch import full_precision

    try:
        with full_precision():
            yield Place(X, device)
    except torch.cuda.OutOfMemoryError as error:
        traceback.clear_frames(error.__traceback__)  # what they hold would stay on the device
        where = torch.device(X.device if device is None else device)
        raise DeviceMemoryError(_what_is_needed(X, where)) from error


def _what_is_needed(X: Any, device: Any) -> str:
    import torch

    from perpend.rows.torch import SCRATCH_GPU

    n, D = np.shape(X)[0], np.shape(X)[-1]
    size = 4 if str(getattr(X, "dtype", "")).endswith(("16", "32")) else 8
    needed = n * D * size + 6 * n * size + SCRATCH_GPU  # X, a few values for each row, scratch
    there = ""
    if device.type == "cuda" and torch.cuda.is_available():
        free, total = (f"{n_bytes / 2**30:.2f} GiB" for n_bytes in torch.cuda.mem_get_info(device))
        there = f" ({free} of {total} are free)"
    return (
        f"{device} is out of memory{there}. {n} rows of {D} features need about "
        f"{needed / 2**30:.2f} GiB there, X itself included, and run faster with twice as much. "
        "Free some of it, pass float32, let sample_size choose some of the rows, take fewer starts "
        '(n_starts), or compute with device="cpu".'
    )


def _usable(device: Any) -> Any:
    """Return the torch device of that name, or say why it can't be used."""
    torch = _torch(f"device={str(device)!r}")
    advice = "Use device=None to compute where the data is."
    try:
        wanted = torch.device(device)
    except RuntimeError as error:
        raise InputError(
            f'device={device!r} is not known to torch; expected "cpu", "cuda", "cuda:1" or '
            f"another of its devices. {advice}"
        ) from error
    if wanted.type == "meta":
        raise InputError(f"device={str(device)!r} holds shapes without numbers. {advice}")
    if wanted.type == "cuda":
        _check_cuda(torch, wanted, advice)
    try:  # sums are formed in double precision, which not every device has
        return torch.zeros(1, dtype=torch.float64, device=wanted).device
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise InputError(f"device={str(device)!r} can't be used: {reason}. {advice}") from error


def _check_cuda(torch: Any, wanted: Any, advice: str) -> None:
    if not torch.backends.cuda.is_built():
        raise InputError(
            f"device={str(wanted)!r}, but this torch ({torch.__version__}) was built without CUDA. "
            f"Install one with CUDA (https://pytorch.org/get-started). {advice}"
        )
    n_devices = torch.cuda.device_count()
    if n_devices == 0:
        raise InputError(
            f"device={str(wanted)!r}, but torch sees no GPU here. Does nvidia-smi list one, and "
            f"is CUDA_VISIBLE_DEVICES right? {advice}"
        )
    if (wanted.index or 0) >= n_devices:
        raise InputError(
            f"device={str(wanted)!r}, but the last of {n_devices} GPUs is cuda:{n_devices - 1}. "
            f"{advice}"
        )


def _torch(what: str) -> Any:
    try:
        import array_api_compat  # noqa: F401  the kernels need it for tensors
        import torch
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {error.name or 'torch'}, which is not installed. "
            "Run: pip install 'perpend[torch]'"
        ) from error
    return torch


def _shared(A: Array) -> Array:
    """Return a NumPy array as a tensor that shares its memory where torch can."""
    import torch

    if min(A.strides, default=0) < 0:
        A = A.copy()  # torch knows no backward views
    with warnings.catch_warnings():  # about read-only arrays; nobody writes to this one
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return torch.from_numpy(A)
