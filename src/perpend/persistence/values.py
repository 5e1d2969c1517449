"""Parameters and learned values as JSON and back; arrays are stored apart, by name."""

import math
from dataclasses import asdict
from numbers import Real
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError, ModelFileError
from perpend.persistence.archive import STORED_KINDS, Arrays
from perpend.rows.kinds import to_numpy
from perpend.solvers.steps import STEP_RULES, StepRule


def packed(name: str, value: Any, arrays: Arrays) -> Any:  # noqa: PLR0911
    """Return `value` as JSON; arrays go to `arrays` and leave their name behind."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {k: packed(f"{name}.{k}", item, arrays) for k, item in value.items()}}
    if type(value) in (list, tuple):
        items = [packed(f"{name}.{i}", item, arrays) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    for rule, kind in STEP_RULES.items():
        if type(value) is kind:
            return {"rule": rule, "constants": packed(name, asdict(value), arrays)}
    if hasattr(value, "__array__"):
        array = to_numpy(value)
        if array.dtype.kind in STORED_KINDS:
            arrays[name] = array
            return {"scalar" if isinstance(value, np.generic) else "array": name}
        if array.ndim == 1 and all(isinstance(item, str) for item in array):
            dtype = "object" if array.dtype == object else "str"
            return {"strings": [str(item) for item in array], "dtype": dtype}
    raise InputError(
        f"{name} is of type {type(value).__name__}, which a model file cannot hold. "
        "If it is a parameter, set it back to its default by set_params: the results of "
        "a fitted model do not depend on it."
    )


def unpacked(value: Any, arrays: Arrays) -> Any:  # noqa: PLR0911
    """Undo `packed`; each array is taken out of `arrays`, so that it is used once."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"float": "inf" | "-inf" | "nan" as text}:
            return float(text)
        case {"dict": dict(items)}:
            return {key: unpacked(item, arrays) for key, item in items.items()}
        case {"list": list(items)}:
            return [unpacked(item, arrays) for item in items]
        case {"tuple": list(items)}:
            return tuple(unpacked(item, arrays) for item in items)
        case {"rule": str(rule), "constants": constants}:
            return _rule(rule, unpacked(constants, arrays))
        case {"scalar": str(name)}:
            return arrays.pop(name)[()]
        case {"array": str(name)}:
            return arrays.pop(name)
        case {"strings": list(items), "dtype": "object" | "str" as kind}:
            return _names(items, kind)
        case _:
            raise ModelFileError("the header holds something that perpend does not write.")


def _rule(name: str, constants: Any) -> StepRule:
    """Return the step rule of that name; its constants are numbers."""
    if not all(isinstance(c, Real) and math.isfinite(c) for c in constants.values()):
        raise ModelFileError(f"the constants of the step rule {name!r} are not all numbers.")
    rule: StepRule = STEP_RULES[name](**constants)
    return rule


def _names(items: list[Any], kind: str) -> Array:
    if not all(isinstance(item, str) for item in items):
        raise ModelFileError("a list of names in the header holds something else.")
    return np.array(items, dtype=kind)
