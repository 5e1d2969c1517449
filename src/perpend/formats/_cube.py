"""Image cubes, such as hyperspectral scenes: height x width x bands.

The order of the axes cannot be told from the numbers; it is the order of the file.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from perpend._typing import Array
from perpend.formats._mat import load_mat
from perpend.formats._npy import load_npy, load_npz
from perpend.formats._table import Layout, read_by_suffix

CUBE = Layout(3, "A scene needs 3: height x width x bands. Reshape it.", picked=True)

CUBE_READERS: dict[str, Callable[[Path, str | None], Array]] = {
    ".mat": partial(load_mat, layout=CUBE),
    ".npy": partial(load_npy, layout=CUBE),
    ".npz": partial(load_npz, layout=CUBE),
}


class Cube(NamedTuple):
    """A scene read from a file.

    `values` may be a read-only view of the file itself; copy it before changing it.
    """

    values: Array  # (height, width, bands) float32 or float64
    source: str  # the path as it was given, for messages


def read_cube(path: str | os.PathLike[str], *, variable: str | None = None) -> Cube:
    r"""Read an image cube: one spectrum of `bands` numbers for each pixel.

    Parameters
    ----------
    path : str or path
        A ``.npy``, ``.npz`` or MATLAB ``.mat`` file; not one of MATLAB's v7.3.
    variable : str, optional
        Which array to take from a file that holds several. Not needed if only one of them has
        three dimensions, or if the others are maps over the same pixels with far fewer bands.

    Returns
    -------
    Cube
        A named tuple with `values` of shape (height, width, bands) and the `source`. `values` are
        float32 if the file is, float64 otherwise. They may hold NaN and infinities, and they may
        be a read-only map of the file.

    Raises
    ------
    InputError
        If the file cannot be used; the message tells the reason and a way out.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scene.npz"
    ...     np.savez(path, scene=np.ones((4, 5, 3), np.uint16), labels=np.zeros((4, 5)))
    ...     cube = read_cube(path)
    >>> cube.values.shape, cube.values.dtype
    ((4, 5, 3), dtype('float64'))
    """
    return Cube(read_by_suffix(Path(path), CUBE_READERS, variable), str(path))
