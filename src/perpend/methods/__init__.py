"""The published methods: one file for each, with a function and a thin estimator.

``_METHODS`` and ``_LABELS_ONLY`` in ``perpend/__init__.py`` have a line for each: the class, and
the module here that defines it together with its functional form, a function of the module's name.
A file is imported when its class is first used, so that one method does not wait for the others.
"""

from importlib import import_module
from typing import Any

from perpend import _LABELS_ONLY, _METHODS
from perpend.estimator import METHODS, SubspaceEstimator

_ALL = _METHODS | _LABELS_ONLY

__all__ = ["all_methods", *_ALL]  # noqa: PLE0604  names, all of them


def all_methods() -> dict[str, type[SubspaceEstimator]]:
    """Import every method; return the registry, which has each by its class name."""
    for module in _ALL.values():
        import_module(f"perpend.methods.{module}")
    return METHODS


def __getattr__(name: str) -> Any:
    if name not in _ALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"perpend.methods.{_ALL[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
