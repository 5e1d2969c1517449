"""Names that have changed: the old ones still work, and say what to write instead.

The warning is a FutureWarning, as in scikit-learn: Python hides a DeprecationWarning from most
users. `until` is the version without the old name.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def renamed_names(module: str, names: Mapping[str, str], *, until: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module in which public names have changed.

    `names` has the new name for each old one; with a dot it is in another module. In a module:
    ``__getattr__ = renamed_names(__name__, {"old": "new"}, until="0.4")``.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name] if "." in names[name] else f"{module}.{names[name]}"
        _warn(f"{module}.{name}", new, until)
        home, _, last = new.rpartition(".")
        return getattr(import_module(home), last)

    return find


def renamed_parameters(*, until: str, **names: str) -> Callable[[F], F]:
    """Let a function, or ``__init__``, take parameters by their old names, too.

    `names` has the new name for each old one. The signature, and so scikit-learn's ``get_params``,
    has only the new names.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise TypeError(
                        f"{new} is given twice: {old} is its old name. Leave {old} out."
                    )
                _warn(f"The parameter {old}", new, until)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        accepting: F = _accepts(call, names)
        return accepting

    return decorate


def renamed_attribute(owner: str, old: str, new: str, *, until: str) -> Any:
    """Return a property of the class `owner` that is the old name of another one.

    In a class: ``old = renamed_attribute("Thing", "old", "new", until="0.4")``.
    """

    def find(self: Any) -> Any:
        _warn(f"{owner}.{old}", new, until)
        return getattr(self, new)

    return property(find, doc=f"The old name of `{new}`.")


def removed_parameters(
    *names: str, until: str, instead: str, former: Callable[..., Any] | None = None
) -> Callable[[F], F]:
    """Let a function take parameters that it no longer has, and say what to do `instead`.

    They are ignored. Where the result depended on them, `former` is the function as it was.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            old = [name for name in names if name in kwargs]
            if not old:
                return function(*args, **kwargs)
            message = f"{function.__name__} has no parameter {' or '.join(old)} any more: {instead}"
            warnings.warn(f"{message} It works until perpend {until}.", FutureWarning, stacklevel=2)
            if former is not None:
                return former(*args, **kwargs)
            return function(*args, **{k: v for k, v in kwargs.items() if k not in old})

        accepting: F = _accepts(call, names)
        return accepting

    return decorate


def _accepts(call: Any, names: Iterable[str]) -> Any:
    """Note the names that the signature of `call` does not show."""
    call.old_parameters = {*names, *getattr(call, "old_parameters", ())}
    return call


def _warn(old: str, new: str, until: str) -> None:
    message = f"{old} is now called {new}. The old name works until perpend {until}."
    warnings.warn(message, FutureWarning, stacklevel=3)
