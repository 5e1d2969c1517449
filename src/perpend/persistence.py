"""Fitted models in a file, without pickle.

A model file is an uncompressed ``.npz`` archive. Its member ``header`` is a JSON text (as bytes):
schema, version of perpend, name of the class, parameters, learned attributes, the names of all
other members, and a sha256 over everything. The other members are plain arrays. The same model
always gives the same bytes.

A file is not trusted. The class is looked up among the methods that perpend has, never imported by
a name from the file; pickles, compressed members (which could expand without end) and members that
the header does not name are refused; sizes are compared with the file before anything is allocated.
The hash finds damage, not forgery.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from dataclasses import asdict
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

import perpend.methods  # noqa: F401  the methods enter METHODS when they are imported
from perpend import __version__
from perpend._typing import Array
from perpend.estimator import METHODS, SubspaceEstimator
from perpend.exceptions import InputError, ModelFileError
from perpend.formats._write import writing
from perpend.rows.kinds import to_numpy
from perpend.solvers import OutlierOdds
from perpend.solvers.steps import STEP_RULES

__all__ = ["load", "save", "writing"]

SCHEMA = 2  # 1: before affine subspaces; such files still load
FORMAT = "perpend model"
HEADER = "header"
PLAIN = "biuf"  # kinds of arrays that are stored
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of all members, so that equal models give equal files
NOT_STORED = {"callback", "_metadata_request"}  # functions and routing matter to a new fit only
NUMBERS = ("threshold_", "offset_", "noise_", "objective_", "confidence_")
# what zipfile, json and NumPy raise on damaged input, also on encryption and endless nesting
BAD_FILE = (
    *(zipfile.BadZipFile, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(RuntimeError, OverflowError),
)

Arrays: TypeAlias = dict[str, Array]


def save(model: SubspaceEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : a fitted method of perpend
    path : str or path
        The file, by custom ``.npz``; one that exists is replaced, but only once the new one is
        complete.

    Notes
    -----
    Tensors are stored as plain arrays: a loaded model has NumPy arrays, and can be used on tensors.
    A `callback` is not stored, and neither is the state of a Generator or RandomState: the loaded
    model has ``random_state=None`` then. Both matter only when the model is fitted again.
    """
    check_is_fitted(model)
    model._validate_params()
    name = type(model).__name__
    if METHODS.get(name) is not type(model):
        raise InputError(f"{name} is not a method of perpend; only those can be saved.")
    parameters = model.get_params(deep=False)
    skipped = NOT_STORED | set(parameters)
    learned = {key: value for key, value in vars(model).items() if key not in skipped}
    parameters = {key: value for key, value in parameters.items() if key not in NOT_STORED}
    if not isinstance(parameters.get("random_state"), Integral | None):
        parameters["random_state"] = None
    if parameters["device"] is not None:
        parameters["device"] = str(parameters["device"])
    arrays: Arrays = {}
    header: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "perpend": __version__,
        "class": name,
        "parameters": _packed("parameters", parameters, arrays),
        "attributes": _packed("attributes", learned, arrays),
        "arrays": list(arrays),
    }
    members = {key: _npy_bytes(array) for key, array in arrays.items()}
    header["sha256"] = _digest(header, members)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with writing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for key, data in {HEADER: _npy_bytes(text), **members}.items():
            archive.writestr(zipfile.ZipInfo(f"{key}.npy", EPOCH), data)


def load(path: str | os.PathLike[str]) -> SubspaceEstimator:
    """Read a model that `save` wrote; it answers bit for bit like the one that was saved.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    a fitted estimator

    Raises
    ------
    ModelFileError
        If the file is damaged, foreign, or written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from perpend import DPCP, load
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(60, 40, n_features=5, codimension=2, random_state=0).X
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DPCP(random_state=0).fit(X).save(Path(folder) / "model.npz")
    ...     model = load(Path(folder) / "model.npz")
    >>> model.codimension_
    2
    """
    path = Path(path)
    try:
        members = _members(path)
        return _model(_header(members.pop(HEADER)), members)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error.__cause__
    except OSError as error:
        reason = error.strerror or error
        raise ModelFileError(f"{path}: cannot be read ({reason}). Check permissions.") from error
    except BAD_FILE as error:
        raise ModelFileError(
            f"{path}: not a readable model file ({type(error).__name__}: {error}). "
            "Is it a cut-off copy, or another format?"
        ) from error


# -- from a model to the header and arrays ---------------------------------------------------------


def _packed(name: str, value: Any, arrays: Arrays) -> Any:  # noqa: PLR0911
    """Return `value` as JSON; arrays go to `arrays` and leave their name behind."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is dict and all(type(key) is str for key in value):
        return {"dict": {k: _packed(f"{name}.{k}", item, arrays) for k, item in value.items()}}
    if type(value) in (list, tuple):
        items = [_packed(f"{name}.{i}", item, arrays) for i, item in enumerate(value)]
        return {type(value).__name__: items}
    for rule, kind in STEP_RULES.items():
        if type(value) is kind:
            return {"rule": rule, "constants": _packed(name, asdict(value), arrays)}
    if hasattr(value, "__array__"):
        array = to_numpy(value)
        if array.dtype.kind in PLAIN:
            arrays[name] = array
            return {"scalar" if isinstance(value, np.generic) else "array": name}
        if array.ndim == 1 and all(isinstance(item, str) for item in array):
            dtype = "object" if array.dtype == object else "str"
            return {"strings": [str(item) for item in array], "dtype": dtype}
    raise InputError(
        f"{name} is of type {type(value).__name__}, which a model file cannot hold. "
        "If it is a parameter, set it back to its default by set_params: a fitted model answers "
        "the same without it."
    )


def _npy_bytes(array: Array) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _digest(header: dict[str, Any], members: dict[str, bytes]) -> str:
    """Return the sha256 over the header, as far as it is without it, and all members."""
    rest = {key: value for key, value in header.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(rest).encode())
    for key in header["arrays"]:
        digest.update(members[key])
    return digest.hexdigest()


# -- and back --------------------------------------------------------------------------------------


def _members(path: Path) -> dict[str, bytes]:
    """Read all members, after a look at the archive's directory."""
    if not path.is_file():
        raise ModelFileError("no such file. Check the name and the folder.")
    with zipfile.ZipFile(path) as archive:
        directory = archive.infolist()
        names = [info.filename for info in directory]
        if f"{HEADER}.npy" not in names:
            raise ModelFileError("not a model that perpend wrote: it has no header.")
        if len(set(names)) < len(names) or not all(name.endswith(".npy") for name in names):
            raise ModelFileError("has members that perpend does not write. Save the model anew.")
        for info in directory:
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ModelFileError(
                    f"the member {info.filename!r} is compressed. A compressed file can expand "
                    "without end, so perpend neither writes nor reads it. Save the model anew."
                )
        if sum(info.file_size for info in directory) > path.stat().st_size:
            raise ModelFileError("declares more data than the file holds. Is it a cut-off copy?")
        return {info.filename.removesuffix(".npy"): archive.read(info) for info in directory}


def _header(data: bytes) -> dict[str, Any]:
    header = json.loads(_array(HEADER, data).tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("not a model that perpend wrote.")
    if not isinstance(header["schema"], int) or header["schema"] > SCHEMA:
        raise ModelFileError(
            f"was written by perpend {header.get('perpend')} in a newer form (schema "
            f"{header['schema']}); perpend {__version__} reads up to schema {SCHEMA}. "
            "Upgrade perpend: pip install --upgrade perpend"
        )
    return header


def _model(header: dict[str, Any], members: dict[str, bytes]) -> SubspaceEstimator:
    kind = METHODS.get(header["class"])
    if kind is None:
        raise ModelFileError(
            f"holds a model of class {header['class']!r}, which is not a method of perpend "
            f"{__version__} ({', '.join(sorted(METHODS))}). Upgrade perpend, or import the module "
            "that defines it first."
        )
    if sorted(header["arrays"]) != sorted(members):
        raise ModelFileError("its members are not those that the header names. Save it anew.")
    if header["sha256"] != _digest(header, members):
        raise ModelFileError("is damaged (the checksum differs). Copy it again, or save it anew.")
    arrays = {name: _array(name, data) for name, data in members.items()}
    parameters = _unpacked(header["parameters"], arrays)
    model: SubspaceEstimator = kind(**parameters)
    model._validate_params()
    for name, value in _unpacked(header["attributes"], arrays).items():
        if not name.isidentifier() or name.startswith("__") or hasattr(model, name):
            raise ModelFileError(f"would overwrite {name!r} of {header['class']}. Save it anew.")
        setattr(model, name, value)
    if not hasattr(model, "affine_"):  # written before there were affine subspaces
        model.affine_ = False
    _check_learned(model)
    return model


def _array(name: str, data: bytes) -> Array:
    """Parse the .npy format; NumPy itself allocates whatever the header declares."""
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError(f"the array {name!r} is in a form that perpend does not write.")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in PLAIN:
        raise ModelFileError(
            f"the array {name!r} holds {dtype} instead of numbers; perpend never loads a pickle."
        )
    if math.prod(shape) * dtype.itemsize != len(data) - stream.tell() or min(shape, default=0) < 0:
        raise ModelFileError(f"the array {name!r} has not the size that it declares.")
    values: Array = np.frombuffer(bytearray(data[stream.tell() :]), dtype)
    return values.reshape(shape, order="F" if fortran_order else "C")


def _unpacked(value: Any, arrays: Arrays) -> Any:  # noqa: PLR0911
    """Undo `_packed`."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"float": str(text)}:
            return float(text)
        case {"dict": dict(items)}:
            return {key: _unpacked(item, arrays) for key, item in items.items()}
        case {"list": list(items)}:
            return [_unpacked(item, arrays) for item in items]
        case {"tuple": list(items)}:
            return tuple(_unpacked(item, arrays) for item in items)
        case {"rule": str(rule), "constants": constants}:
            return STEP_RULES[rule](**_unpacked(constants, arrays))
        case {"scalar": str(name)}:
            return arrays[name][()]
        case {"array": str(name)}:
            return arrays[name]
        case {"strings": list(items), "dtype": "object" | "str" as kind}:
            return np.array(items, dtype=kind)
        case _:
            raise ModelFileError("the header holds something that perpend does not write.")


def _check_learned(model: SubspaceEstimator) -> None:
    """Refuse attributes that do not fit together, before they fail somewhere else."""
    c, d, D = model.codimension_, model.n_components_, model.n_features_in_
    shapes = {"normals_": (c, D), "components_": (d, D), "location_": (D,), "intercept_": (c,)}
    if hasattr(model, "feature_names_in_"):
        shapes["feature_names_in_"] = (D,)
    sizes_fit = c + d == D == model.directions_.shape[1] and model._n_features_out == d
    for name, shape in shapes.items():
        array = getattr(model, name)
        if not sizes_fit or array.shape != shape:
            raise ModelFileError(f"{name} of shape {array.shape} does not fit the model's sizes.")
        if array.dtype.kind in PLAIN and not np.all(np.isfinite(array)):
            raise ModelFileError(f"{name} is not finite.")
    if not isinstance(model.affine_, bool):
        raise ModelFileError(f"affine_ is {model.affine_!r}, not true or false.")
    for name in NUMBERS:
        value = getattr(model, name)
        if not isinstance(value, Real) or math.isnan(value):
            raise ModelFileError(f"{name} is {value!r}, not a number.")
    odds = getattr(model, "_outlier_odds", None)  # files of earlier versions have none
    if odds is not None:
        _check_odds(odds)


def _check_odds(odds: Any) -> None:
    """Refuse a table of odds that would answer with nonsense."""
    numbers = isinstance(odds, dict) and set(odds) == set(OutlierOdds._fields)
    if numbers:
        distance, log_odds = odds["distance"], odds["log_odds"]
        numbers = (
            distance.shape == log_odds.shape == (len(distance),)
            and distance[0] > 0
            and bool(np.all(np.isfinite(distance) & np.isfinite(log_odds)))
            and bool(np.all(np.diff(distance) > 0) and np.all(np.diff(log_odds) >= 0))
            and odds["threshold"] >= 0
            and 0 <= odds["fall"] < math.inf
        )
    if not numbers:
        raise ModelFileError("the odds of outliers are no table of growing numbers.")
