"""A fitted model in words: in a few lines, in one, and in scikit-learn's HTML."""

import math
from typing import TYPE_CHECKING, Any

from perpend._structures import Words, relations
from perpend.structure import SURE

if TYPE_CHECKING:
    from perpend._uncertainty import Uncertainty


def summary(model: Any) -> str:
    """Return the result in a few lines of text."""
    affine, doubts = ", affine" if model.affine_ else "", getattr(model, "doubts_", ())
    lines = [
        ("subspace", f"dimension {model.n_components_}, codimension {model.codimension_}{affine}"),
        ("confidence", f"{model.confidence_:.2f} ({_sureness(model)})"),
        *(("" if i else "because", text) for i, text in enumerate(doubts)),
        ("outliers", _outliers(model)),
        ("threshold", f"{model.threshold_:.3g}"),
        ("noise", f"{model.noise_:.3g}"),
    ]
    if missing := getattr(model, "n_missing_", 0):
        text = f"{missing} entries; {len(model.undecided_)} rows have too few others to be compared"
        lines += [("missing", text)]
    if (off := plane_uncertainty(model)) is not None:
        lines += [("uncertainty", f"{off.angle:.2g} degrees, {off.offset:.2g} (95 %)")]
    seen = getattr(model, "structures_", [])  # files of earlier versions have none
    if len(seen) > 1:
        # what the subspace is inside of, as a plane in a slab, and how to get the others
        words = Words(model.n_features_in_, affine=model.affine_)
        lines += [("seen", words.sentence(seen, relations(model)))]
        others = [(i, one) for i, one in enumerate(seen) if not one["chosen"]]
        texts = [f"model.choose({i}): {words.structure(one)}" for i, one in others]
        lines += [("" if i else "others", text) for i, text in enumerate(texts)]
    return "\n".join(f"{key:<12}{text}" for key, text in lines)


def verdict(model: Any) -> str:
    """Return the result in one line: codimension, confidence, outliers."""
    return (
        f"codimension {model.codimension_} of {model.n_features_in_} features"
        f"{', affine' if model.affine_ else ''}; {_sureness(model)} "
        f"(confidence {model.confidence_:.2f}); outliers: {_outliers(model)}"
    )


def plane_uncertainty(model: Any) -> "Uncertainty | None":
    """Return how far a plane may be off in 95 % of cases; None if it is no plane, or not known."""
    known = getattr(model, "_normals_error", None) is not None
    if not (known and model.affine_ and model.codimension_ == 1 and model.noise_ > 0):
        return None
    return model.uncertainty()  # type: ignore[no-any-return]


def computed_evidence(model: Any) -> dict[str, Any]:
    """Return the evidence without what was not computed."""
    return {
        key: value
        for key, value in model.evidence_.items()
        if not (isinstance(value, float) and math.isnan(value))
    }


def visual_block(model: Any, caption: str | None) -> Any:
    """Return how scikit-learn draws the model, with a caption under its name.

    scikit-learn escapes the text, and shows the same block inside a pipeline. Should it move the
    class, its diagrams do without ours.
    """
    try:
        from sklearn.utils._repr_html.estimator import _VisualBlock
    except ImportError:  # scikit-learn 1.6
        from sklearn.utils._estimator_html_repr import _VisualBlock
    name = type(model).__name__
    return _VisualBlock("single", model, names=name, name_details=str(model), name_caption=caption)


def _sureness(model: Any) -> str:
    return "sure" if model.confidence_ >= SURE else "not sure"


def _outliers(model: Any) -> str:
    n, outliers = len(model.labels_), int((model.labels_ == -1).sum())
    return f"{outliers} of {n} rows ({outliers / n:.1%})"
