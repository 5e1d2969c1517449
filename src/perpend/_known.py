"""The model that `fit(X, init=model)` begins at: whether it fits, and what is taken from it."""

from typing import Any

import numpy as np

from perpend._fitted import FittedSubspace
from perpend.exceptions import InputError
from perpend.rows.kinds import to_numpy
from perpend.structure.known import Known


def known_subspace(model: Any, init: Any) -> Known | None:
    """Return the subspace of `init` for a fit of `model`, or say why it can't be used.

    None where it has nothing to begin at.
    """
    name = type(model).__name__
    if not (isinstance(init, FittedSubspace) and hasattr(init, "normals_")):
        raise InputError(
            f"init of fit is {type(init).__name__!s}; expected a fitted model of perpend, such as "
            "that of the last frame. For start directions use DPCP(init=directions)."
        )
    if not model._may_follow_scales:
        raise InputError(
            f"fit of this {name} takes no init: only DPCP does, with n_starts, init and refine at "
            "their defaults."
        )
    if init.n_features_in_ != model.n_features_in_:
        raise InputError(
            f"init was fitted to {init.n_features_in_} columns, and X has {model.n_features_in_}."
        )
    kinds = {False: "a linear", True: "an affine"}
    if model.affine not in ("auto", init.affine_):
        raise InputError(
            f"init has {kinds[init.affine_]} subspace, and this {name} fits {kinds[model.affine]} "
            "one."
        )
    if not init.affine_ and init.normalize != model.normalize:
        raise InputError(
            f"init has normalize={init.normalize}, and this {name} has {model.normalize}."
        )
    codimension = model._given_codimension()
    if codimension not in ("auto", init.codimension_):
        raise InputError(
            f"init has codimension {init.codimension_}, and this {name} was given {codimension}."
        )
    chosen = [one for one in getattr(init, "structures_", ()) if one["chosen"]]
    if not chosen or not 0 < init.codimension_ < init.n_features_in_:
        return None
    names = ("normals_", "components_", "location_")
    normals, components, location = (to_numpy(getattr(init, one)).astype(float) for one in names)
    share = float(chosen[0]["members"]) / len(init.labels_)
    return Known(np.ascontiguousarray(normals.T), components.T, location, chosen[0]["noise"], share)
