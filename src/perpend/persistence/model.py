"""The schema: from a model to a model file and back."""

import os
import struct
import zipfile
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from perpend import __version__
from perpend._files import writing
from perpend._pipelines import opened, steps
from perpend.estimator import METHODS, SubspaceEstimator
from perpend.exceptions import InputError, ModelFileError
from perpend.methods import all_methods
from perpend.persistence.archive import (
    HEADER,
    Arrays,
    Header,
    parse_arrays,
    parse_header,
    read_members,
    write_archive,
)
from perpend.persistence.checks import check_learned
from perpend.persistence.scalers import as_pipeline, described, is_learned
from perpend.persistence.values import packed, unpacked

SCHEMA = 4  # new in 2, affine subspaces; 3, `choose`; 4, `score` of affine fits, and pipelines
FORMAT = "perpend model"
# Learned attributes end with an underscore; these do not. Whatever else a model carries, such
# as metadata requests and callbacks, matters only to a new fit.
PRIVATE = {
    *("_distance_record", "_n_features_out", "_others", "_outlier_odds", "_reference"),
    *("_inlier_variances", "_law", "_normals_error", "_spread", "_stream"),
    "_sklearn_output_config",
}
# what zipfile, json and NumPy raise on damaged input, also on encryption and endless nesting
BAD_FILE = (
    *(zipfile.BadZipFile, struct.error, EOFError, LookupError, TypeError, ValueError),
    *(AttributeError, RuntimeError, OverflowError),
)


def save(model: SubspaceEstimator | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `perpend.load` reads; no pickle is involved.

    Parameters
    ----------
    model : a fitted method of perpend, or a pipeline of scalers and a method
        Scalers are those of `perpend.equations`.
    path : str or path
        The file, usually ``.npz``. An existing file is replaced once the new one is complete.

    Notes
    -----
    Tensors are stored as plain arrays: a loaded model has NumPy arrays, and can be used on tensors.
    A `callback` is not stored, and neither is the state of a Generator or RandomState: the loaded
    model has ``random_state=None`` then. Both matter only when the model is fitted again.
    """
    all_steps = steps(model) if isinstance(model, Pipeline) else []
    model = opened(model).model if all_steps else model
    check_is_fitted(model)
    model._validate_params()
    name = type(model).__name__
    if METHODS.get(name) is not type(model):
        raise InputError(f"{name} is no method of perpend with a subspace; only those are saved.")
    parameters = model.get_params(deep=False)
    del parameters["callback"]
    if not isinstance(parameters["random_state"], Integral | None):
        parameters["random_state"] = None
    if parameters["device"] is not None:
        parameters["device"] = str(parameters["device"])
    learned = {key: value for key, value in vars(model).items() if _is_learned(key)}
    arrays: Arrays = {}
    header = {
        "format": FORMAT,
        "schema": SCHEMA,
        "perpend": __version__,
        "class": name,
        "parameters": packed("parameters", parameters, arrays),
        "attributes": packed("attributes", learned, arrays),
    }
    if all_steps:
        header["pipeline"] = packed("pipeline", described(all_steps), arrays)
    with writing(path) as stream:
        write_archive(stream, header, arrays)


def load(path: str | os.PathLike[str]) -> SubspaceEstimator | Pipeline:
    """Read a model that `save` wrote; its results are bit for bit those of the saved one.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    a fitted estimator, or the pipeline that was saved
        ``perpend fit`` saves a pipeline where it has standardised columns: ``load(path)[-1]`` is
        the model behind the scaler.

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
        members = read_members(path)
        return _model(parse_header(members.pop(HEADER)), members)
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


def _is_learned(name: str) -> bool:
    """Tell whether a model file may hold an attribute of this name."""
    return name in PRIVATE or is_learned(name)


def _model(header: Header, members: dict[str, bytes]) -> SubspaceEstimator | Pipeline:
    """Check the header, then the arrays, and only then make a model of them."""
    if header.get("format") != FORMAT:
        raise ModelFileError("not a model that perpend wrote.")
    schema = header["schema"]
    if type(schema) is not int or schema < 1:
        raise ModelFileError(f"has the schema {schema!r}, which does not exist. Save it again.")
    if schema > SCHEMA:
        raise ModelFileError(
            f"was written by perpend {header.get('perpend')} in a newer form (schema {schema}); "
            f"perpend {__version__} reads up to schema {SCHEMA}. "
            "Upgrade perpend: pip install --upgrade perpend"
        )
    methods = all_methods()
    kind = methods.get(header["class"])
    if kind is None:
        raise ModelFileError(
            f"holds a model of class {header['class']!r}, which is not a method of perpend "
            f"{__version__} ({', '.join(sorted(methods))}). Upgrade perpend, or import the module "
            "that defines it first."
        )
    arrays = parse_arrays(header, members)
    model = kind(**unpacked(header["parameters"], arrays))
    model._validate_params()
    for name, value in unpacked(header["attributes"], arrays).items():
        if not _is_learned(name) or hasattr(model, name):
            raise ModelFileError(f"would overwrite {name!r} of {header['class']}. Save it again.")
        setattr(model, name, value)
    pipeline = unpacked(header.get("pipeline"), arrays)
    if arrays:
        raise ModelFileError(f"has an array {min(arrays)!r} that its header does not use.")
    if not hasattr(model, "affine_"):  # written before there were affine subspaces
        model.affine_ = False
    if not hasattr(model, "_inlier_variances"):  # before they were kept for partial_fit
        _restore_variances(model)
    check_learned(model)
    return model if pipeline is None else as_pipeline(pipeline, model)


def _restore_variances(model: Any) -> None:
    """Take the inliers' variances along normals and components from what was shown of them."""
    for table in (vars(model), *getattr(model, "_others", ())):
        if table is None:
            continue
        shown, D = table["evidence_"].get("inlier_spectrum"), model.n_features_in_
        variances = None
        if isinstance(shown, np.ndarray) and len(shown) <= D and np.all(np.isfinite(shown)):
            # Ascending; normals outside the span of the rows, which have none, are the last ones.
            c = max(table["codimension_"] - (D - len(shown)), 0)
            variances = np.concatenate([shown[:c], np.zeros(D - len(shown)), shown[c:][::-1]])
        table["_inlier_variances"] = variances
