"""The scalers before a model in a pipeline: what a model file keeps of them, and how it is read."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from perpend._pipelines import SCALERS, affine_map
from perpend.exceptions import InputError, ModelFileError

KINDS = {kind.__name__: kind for kind in SCALERS}


def described(steps: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return what is kept of a pipeline beside its model: the scalers, and the names of steps."""
    for _, step in steps[:-1]:
        if KINDS.get(type(step).__name__) is not type(step):
            raise InputError(f"{type(step).__name__} is not a scaler that a model file can hold.")
    names = [name for name, _ in steps]
    if len(set(names)) < len(names):  # of pipelines inside one another
        names = [f"{name}-{i}" for i, name in enumerate(names)]
    scalers = [
        {
            "class": type(step).__name__,
            "parameters": step.get_params(deep=False),
            "attributes": {key: value for key, value in vars(step).items() if is_learned(key)},
        }
        for _, step in steps[:-1]
    ]
    return {"names": names, "scalers": scalers}


def as_pipeline(content: dict[str, Any], model: Any) -> Pipeline:
    """Return the pipeline of a model and its scalers, each of a known class and sound."""
    names = content["names"]
    scalers = [_scaler(one, model.n_features_in_) for one in content["scalers"]]
    sound = all(isinstance(name, str) and name and "__" not in name for name in names)
    if not sound or len(set(names)) != len(names) or len(names) != len(scalers) + 1:
        raise ModelFileError("the names of its steps are not those of a pipeline.")
    return Pipeline(list(zip(names, [*scalers, model], strict=True)))


def _scaler(content: dict[str, Any], D: int) -> Any:
    name = content["class"]
    if name not in KINDS:
        raise ModelFileError(f"scales columns by {name!r}, which perpend does not know.")
    scaler = KINDS[name](**content["parameters"])
    scaler._validate_params()
    for key, value in content["attributes"].items():
        fits = value == D if key == "n_features_in_" else np.shape(value) in ((), (D,))
        if not fits or not is_learned(key) or hasattr(scaler, key):
            raise ModelFileError(f"{key} of {name} does not fit the {D} columns of the model.")
        setattr(scaler, key, value)
    centre, scale = affine_map(name, scaler)
    if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(scale)) and np.all(scale > 0)):
        raise ModelFileError(f"{name} has a centre or a scale that is not a number.")
    return scaler


def is_learned(name: str) -> bool:
    """Tell whether a learned attribute may have this name."""
    return name.isidentifier() and name[0] != "_" and name[-1] == "_"
