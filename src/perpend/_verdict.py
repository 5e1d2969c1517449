"""A fitted model in words: in a few lines, in one, and in scikit-learn's HTML."""

import math
from typing import TYPE_CHECKING, Any

from perpend._structures import Words, relations
from perpend.structure import SURE

if TYPE_CHECKING:
    from perpend._uncertainty import Uncertainty


def confidence(value: float) -> str:
    """Return a confidence as text; one that is not sure never reads like one that is.

    >>> confidence(0.9999), confidence(0.9499), confidence(0.42)
    ('1.00', '0.94', '0.42')
    """
    return f"{value if value >= SURE else min(value, SURE - 0.01):.2f}"


def summary(model: Any) -> str:
    """Return the result in a few lines of text."""
    affine, doubts = ", affine" if model.affine_ else "", getattr(model, "doubts_", ())
    lines = [
        ("subspace", f"dimension {model.n_components_}, codimension {model.codimension_}{affine}"),
        ("confidence", f"{confidence(model.confidence_)} ({_sureness(model)})"),
        *(("" if i else "because", text) for i, text in enumerate(doubts)),
        ("outliers", _outliers(model)),
        ("threshold", f"{model.threshold_:.3g}"),
        ("noise", _noise(model)),
    ]
    if missing := getattr(model, "n_missing_", 0):
        text = f"{missing} entries; {len(model.undecided_)} rows have too few left to be compared"
        lines += [("missing", text)]
    if seen_rows := getattr(model, "n_samples_seen_", 0):
        text = f"{seen_rows} rows in {model.n_batches_} batches; outliers are those of the last one"
        lines += [("stream", text), *(("drift", drift(one)) for one in model.drifts_[-1:])]
    if (off := plane_uncertainty(model)) is not None:
        lines += [("uncertainty", f"{off.angle:.2g} degrees, {off.offset:.2g} (95 %)")]
    seen = getattr(model, "structures_", [])  # files of earlier versions have none
    if len(seen) > 1:
        # what the subspace is inside of, as a plane in a slab, and how to get the others
        words = Words(model.n_features_in_, affine=model.affine_)
        lines += [("structures", words.sentence(seen, relations(model)))]
        others = [(i, one) for i, one in enumerate(seen) if not one["chosen"]]
        texts = [f"model.choose({i}): {words.structure(one)}" for i, one in others]
        lines += [("" if i else "others", text) for i, text in enumerate(texts)]
    return "\n".join(f"{key:<12}{text}" for key, text in lines)


def _noise(model: Any) -> str:
    """Return the length of an inlier's error over all columns, and its deviation in each."""
    text, D = f"{model.noise_:.3g}", model.n_features_in_
    in_each = f" over all {D} columns, {model.noise_ / math.sqrt(D):.2g} in each"
    return text + in_each if model.noise_ > 0 and D > 1 else text


def drift(report: dict[str, Any]) -> str:
    """Say what `partial_fit` has reported."""
    before, now = report["codimension"], report["codimension_now"]
    what = f"the subspace turned by about {report['angle']:.2g} degrees"
    if now is None:
        what = "the subspace changed, and the new one is not sure yet"
    elif before != now:
        what = f"the codimension was {before} and is {now} now"
    chance = f" (by chance in {report['chance']:.1g} of cases)" if report["chance"] >= 0 else ""
    return f"{what}: seen in batch {report['batch']}, since row {report['row']}{chance}"


def verdict(model: Any) -> str:
    """Return the result in one line: codimension, confidence, outliers."""
    return (
        f"codimension {model.codimension_} of {model.n_features_in_} features"
        f"{', affine' if model.affine_ else ''}; {_sureness(model)} "
        f"(confidence {confidence(model.confidence_)}); outliers: {_outliers(model)}"
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
