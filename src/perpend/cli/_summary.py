"""What a result is worth: warnings, doubts, exit codes, and what a summary says about a model."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perpend.cli._console import count

NOT_SURE = 4  # exit code
IN_DOUBT = 0.4  # confidence in a given codimension; doubts about noise alone leave more than this


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect what the library warns about; the list is complete after the ``with`` block."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    for warning in caught:
        text = str(warning.message)
        if issubclass(warning.category, UserWarning | RuntimeWarning) and text not in texts:
            texts.append(text)


def exit_code(model: Any) -> int:
    """Return 0 for an estimate that is sure, also for "there is no subspace"."""
    return 0 if is_sure(model) else NOT_SURE


def is_sure(model: Any) -> bool:
    """Whether the confidence is high enough to be called sure."""
    from perpend.structure import SURE

    return bool(model.confidence_ >= SURE)


def unsaid_doubts(model: Any, remarks: list[str]) -> list[str]:
    """Return why the result is not sure, if no warning of the fit has said so.

    A fit with a given codimension does not warn about it.
    """
    from perpend._verdict import confidence

    if is_sure(model) or any("is not sure" in remark for remark in remarks):
        return []
    c, known = model.codimension_, f"confidence {confidence(model.confidence_)}"
    doubts = "; ".join(getattr(model, "doubts_", ()))
    if model.codimension == "auto":
        return [f"codimension {c} is not sure ({known}){': ' if doubts else ''}{doubts}."]
    said = [f"the result is not sure ({known}): {doubts}."] if doubts else []
    if not doubts or model.confidence_ < IN_DOUBT:
        said.append(
            f"codimension {c} was given, but the rows do not support it ({known}). DPCP "
            "without --codimension estimates it, and says what is unclear."
        )
    return said


def about_model(model: Any, record: str = "row") -> dict[str, Any]:
    """Return what templates say about a model; `record` is what a row of the file is called."""
    from perpend._structures import HOLDS_IT, INSIDE_IT, Words, relations
    from perpend._verdict import computed_evidence, plane_uncertainty
    from perpend.plots._words import THIN, factor
    from perpend.report._words import CLEAR_ORIGIN, level
    from perpend.structure import SURE

    evidence, seen, to_chosen = computed_evidence(model), "", relations(model)
    if {HOLDS_IT, INSIDE_IT} & set(to_chosen):
        words = Words(
            model.n_features_in_,
            affine=model.affine_,
            rows=f"{record}s",
            count=lambda n: count(round(n)),
        )
        seen = words.sentence(model.structures_, to_chosen)
    return {
        "model": model,
        "level": level(model.confidence_),
        "evidence": evidence,
        "gap": factor(evidence.get("inlier_gap", 1.0) ** 0.5).replace(THIN, " "),
        "clear_origin": CLEAR_ORIGIN,
        "sure": SURE,
        "off": plane_uncertainty(model),
        "seen": seen,  # other structures that contain the subspace, or lie inside it
    }
