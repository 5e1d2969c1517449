"""The choice among several arrays in one file."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend.exceptions import InputError
from perpend.formats._checks import DIMENSIONS, REAL, RESHAPE, listed, quoted

FAR_MORE = 4  # times as many bands: a scene beside maps that were computed from it


class Entry(NamedTuple):
    """What is known of an array before its values are read."""

    shape: tuple[int, ...] | None  # None if unreadable
    oddity: str = ""  # what it holds instead of real numbers

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: np.dtype[Any]) -> "Entry":
        """Return what is known of an array of NumPy."""
        return cls(shape, "" if dtype.kind in REAL else dtype.name)


class ChoiceError(InputError):
    """An array must be chosen, or the chosen one does not exist."""

    def __init__(self, message: str, entries: Mapping[str, Entry]) -> None:
        super().__init__(message)
        self.entries = dict(entries)


def choose(
    path: Path, variable: str | None, entries: Mapping[str, Entry], container: str = "file"
) -> tuple[str, str]:
    """Return the name of the array to read, and a text for messages that says where it is.

    Without a `variable`, it is the only array, or the only table or image, or a scene if the others
    are maps of its pixels. If the caller must choose, the message lists the names and shapes.
    """
    if not entries:
        raise InputError(f"{path}: there is no array in this {container}.")
    name = _choose(path, variable, entries)
    return name, f"{path}, array {quoted(name)}"


def _choose(path: Path, variable: str | None, entries: Mapping[str, Entry]) -> str:
    if variable is None and len(entries) == 1:
        return next(iter(entries))
    if variable is not None and variable in entries:
        return variable
    fitting = [
        name
        for name, (shape, oddity) in entries.items()
        if shape is not None and len(shape) in DIMENSIONS and not oddity
    ]
    fitting.sort(key=lambda name: -len(entries[name].shape or ()))  # images before tables
    main = _main({name: entries[name].shape or () for name in fitting})
    unreadable = any(entry.shape is None for entry in entries.values())
    if variable is not None:
        problem = f"has no array {quoted(variable)}"
    elif main is not None and not unreadable:
        return main
    elif not fitting and not unreadable:
        raise InputError(
            f"{path}: none of its arrays holds real numbers in 2 or 3 dimensions: "
            f"{_listing(entries, fitting)}. {RESHAPE}"
        )
    else:
        also = ", some of them unreadable" if unreadable else ""
        problem = f"holds several arrays, {len(fitting)} with 2 or 3 dimensions{also}"
    raise ChoiceError(
        f"{path}: {problem}. Choose one by variable=...: {_listing(entries, fitting)}.", entries
    )


def _main(shapes: dict[str, tuple[int, ...]]) -> str | None:
    """Return the only array that fits, or the one that the others accompany.

    Among images, or among tables if there is no image, it is the one with by far the most columns,
    over the same pixels or rows: others, such as abundances or labels, were computed from it.
    Beside an image there may be tables: masks of its pixels, or small ones. Rows or columns alone
    do not count, as MATLAB has no other vectors.
    """
    no_vectors = {name: s for name, s in shapes.items() if len(s) > 2 or min(s) > 1}
    shapes = no_vectors or shapes
    if not shapes:
        return None
    ndim = max(map(len, shapes.values()))
    alike = [name for name in shapes if len(shapes[name]) == ndim]
    largest, *others = sorted(alike, key=lambda name: shapes[name][-1], reverse=True)
    main = shapes[largest]
    maps = all(
        shapes[name][:-1] == main[:-1] and FAR_MORE * shapes[name][-1] <= main[-1]
        for name in others
    )
    beside = all(
        shape == main[:-1] or FAR_MORE * math.prod(shape) <= math.prod(main)
        for shape in shapes.values()
        if len(shape) < ndim
    )
    return largest if maps and beside else None


def _listing(entries: Mapping[str, Entry], first: list[str]) -> str:
    """Names and shapes of all, beginning with the `first`."""
    texts = {
        name: f"{quoted(name)} {'(unreadable)' if shape is None else shape} {oddity}".rstrip()
        for name, (shape, oddity) in entries.items()
    }
    return listed([texts[name] for name in dict.fromkeys([*first, *entries])])
