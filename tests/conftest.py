"""Fixtures that the tests share: `seed`, `dtype`, `xp` and `one_thread`.

Every test with `seed` runs with seed 0, and in ``make test-all`` with three. ``PERPEND_TEST_SEED``
chooses others: a number ("42"), a range ("0-99") or "any" for a random one, which the test's name
then shows.
"""

import os
import random

import numpy as np
import pytest

from perpend.methods import all_methods

all_methods()  # so that METHODS has all of them, also where a test runs alone


def _seeds():
    text = os.environ.get("PERPEND_TEST_SEED")
    if text is None:
        return [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
    if text == "any":
        text = str(random.SystemRandom().randrange(1000))
        os.environ["PERPEND_TEST_SEED"] = text  # parallel workers inherit it: all take the same one
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.fixture(params=_seeds(), ids=lambda seed: f"seed{seed}")
def seed(request):
    """A seed; the test must pass with each."""
    return request.param


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    """A floating-point type that users may give."""
    return request.param


class ArrayLibrary:
    """Makes arrays of one library and brings them back."""

    def array(self, values):
        """Return an array of this library with these values and their dtype."""
        return np.array(values)

    def numpy(self, array):
        """Return the values as a NumPy array; fails if they have left the library."""
        assert isinstance(array, np.ndarray), f"expected a NumPy array, got {type(array)}"
        return array


class ReadOnlyNumPy(ArrayLibrary):
    """NumPy arrays that raise when they are written to."""

    def array(self, values):
        array = np.array(values)
        array.flags.writeable = False
        return array


class Strict(ArrayLibrary):
    """array-api-strict, which has nothing but the standard, on a device that is not the default."""

    def __init__(self):
        self.library = pytest.importorskip("array_api_strict")
        self.device = self.library.Device("device1")

    def array(self, values):
        return self.library.asarray(np.array(values), device=self.device)

    def numpy(self, array):
        assert array.__array_namespace__() is self.library, f"left it as {type(array)}"
        assert array.device == self.device
        return np.from_dlpack(array.to_device(self.library.Device("CPU_DEVICE")))


class Torch(ArrayLibrary):
    """torch tensors in memory."""

    def __init__(self):
        self.library = pytest.importorskip("torch", reason="torch is not installed")

    def array(self, values):
        return self.library.tensor(np.array(values))

    def numpy(self, array):
        assert isinstance(array, self.library.Tensor), f"left it as {type(array)}"
        return array.numpy()


@pytest.fixture(
    params=[ArrayLibrary, ReadOnlyNumPy, Strict, Torch],
    ids=["numpy", "read-only", "array-api-strict", "torch"],
)
def xp(request):
    """An array library: ``xp.array(values)`` makes an array, ``xp.numpy(array)`` reads it."""
    return request.param()


@pytest.fixture
def one_thread():
    """Let BLAS use one thread, so that sums are formed in one order and equal means bitwise."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
