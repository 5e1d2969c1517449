"""The published methods: one file for each, with a function and a thin estimator.

``_METHODS`` and ``_LABELS_ONLY`` in ``perpend/__init__.py`` have a line for each: the class, and
the module here that defines it together with its functional form, a function of the module's name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perpend import _LABELS_ONLY, _METHODS

_ALL = _METHODS | _LABELS_ONLY

__all__ = [*_ALL, *_ALL.values()]  # noqa: PLE0604  names, all of them

for _name, _module in _ALL.items():
    _home = import_module(f"perpend.methods.{_module}")
    globals().update({_name: getattr(_home, _name), _module: getattr(_home, _module)})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
