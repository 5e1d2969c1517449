"""Which of several arrays in one file is meant."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from perpend.exceptions import InputError
from perpend.formats._table import Layout, quoted

LISTED = 20  # arrays named in a message
FAR_MORE = 4  # times as many bands: a scene beside maps that were made of it


class Entry(NamedTuple):
    """What is known of an array before its values are read."""

    shape: tuple[int, ...] | None  # None if even that is unreadable
    oddity: str = ""  # what it holds, where these are no real numbers


def choose(path: Path, variable: str | None, entries: Mapping[str, Entry], layout: Layout) -> str:
    """Name of the one array that is meant.

    Parameters
    ----------
    path : Path
        The file, for messages.
    variable : str or None
        The name that the caller asked for.
    entries : mapping
        All arrays of the file, by name.
    layout : Layout
        What the caller needs; if it is `picked`, the only array that fits is taken, and of a scene
        and maps over its pixels, the scene.

    Returns
    -------
    str
        A key of `entries`.

    Raises
    ------
    InputError
        If there is a choice to be made; the message lists the names and shapes.
    """
    if variable is None and len(entries) == 1:
        return next(iter(entries))
    if variable is not None and variable in entries:
        return variable
    fitting = [name for name, entry in entries.items() if layout.picked and _fits(entry, layout)]
    main = _main(fitting, entries)
    unreadable = any(entry.shape is None for entry in entries.values())
    if variable is not None:
        problem = f"has no array {quoted(variable)}"
    elif not layout.picked:
        problem = "holds several arrays"
    elif main is not None and not unreadable:
        return main
    elif not fitting and not unreadable:
        raise InputError(
            f"{path}: none of its arrays holds real numbers in {layout.ndim} dimensions: "
            f"{_listing(entries, fitting)}. {layout.advice}"
        )
    else:
        also = ", some of them unreadable" if unreadable else ""
        problem = f"holds several arrays, {len(fitting)} with {layout.ndim} dimensions{also}"
    raise InputError(
        f"{path}: {problem}. Choose one by variable=...: {_listing(entries, fitting)}."
    )


def _main(fitting: list[str], entries: Mapping[str, Entry]) -> str | None:
    """Return the only array that fits, or the one that the others were computed from.

    A scene may come with maps over the same pixels, such as abundances: it has by far more bands.
    """
    if not fitting:
        return None
    shapes = {name: entries[name].shape or () for name in fitting}
    largest, *others = sorted(fitting, key=lambda name: shapes[name][-1], reverse=True)
    maps = all(
        shapes[name][:-1] == shapes[largest][:-1]
        and FAR_MORE * shapes[name][-1] <= shapes[largest][-1]
        for name in others
    )
    return largest if maps else None


def _fits(entry: Entry, layout: Layout) -> bool:
    return entry.shape is not None and len(entry.shape) == layout.ndim and not entry.oddity


def _listing(entries: Mapping[str, Entry], first: list[str]) -> str:
    """Names and shapes of all, beginning with the `first`."""
    names = list(dict.fromkeys([*first, *entries]))
    shown = ", ".join(f"{quoted(name)} {_described(entries[name])}" for name in names[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def _described(entry: Entry) -> str:
    return f"{'(unreadable)' if entry.shape is None else entry.shape} {entry.oddity}".rstrip()
