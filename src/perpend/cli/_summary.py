"""The summary of a fitted model."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perpend.cli._console import Lines, count, listed

NOT_SURE = 4  # exit code
NAMES_IN_LINE = 6
KIND_NAMES = {"table": "table", "image": "scene", "cloud": "point cloud"}
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
    """Return 0 for a subspace that is sure."""
    return 0 if is_sure(model) and model.codimension_ > 0 else NOT_SURE


def is_sure(model: Any) -> bool:
    """Whether the confidence is high enough to be called sure."""
    from perpend.structure import SURE

    return bool(model.confidence_ >= SURE)


def unsaid_doubts(model: Any, remarks: list[str]) -> list[str]:
    """Return why the result is not sure, if no warning of the fit has said so.

    A fit with a given codimension does not warn about it.
    """
    if is_sure(model) or any("is not sure" in remark for remark in remarks):
        return []
    c, confidence = model.codimension_, f"confidence {model.confidence_:.2f}"
    doubts = "; ".join(getattr(model, "doubts_", ()))
    if model.codimension == "auto":
        return [f"codimension {c} is not sure ({confidence}){': ' if doubts else ''}{doubts}."]
    said = [f"the result is not sure ({confidence}): {doubts}."] if doubts else []
    if not doubts or model.confidence_ < IN_DOUBT:
        said.append(
            f"codimension {c} was given, but the rows do not support it ({confidence}). DPCP "
            "without --codimension estimates it, and says what is unclear."
        )
    return said


def estimate(model: Any) -> Lines:
    """Say which subspace was found, with which confidence, and how many rows are outliers."""
    D, c, d = model.n_features_in_, model.codimension_, model.n_components_
    if c == 0 and getattr(model, "codimension", "auto") != 0:
        subspace = f"none found: the rows fill all {D} dimensions (codimension 0)"
    else:
        kind = ", affine" if model.affine_ else ""
        subspace = f"dimension {d} of {D}, codimension {c}{kind}"
    first, *more = [f"{level(model)} ({model.confidence_:.2f})", *_evidence(model)]
    return [
        ("subspace", subspace),
        ("confidence", ": ".join([first, *more[:1]])),
        *[("", text) for text in more[1:]],
        ("outliers", outliers(model, model.labels_)),
    ]


def seen(model: Any, record: str = "row") -> Lines:
    """Say which other structures contain the subspace or lie inside it, if there are any."""
    from perpend._structures import HOLDS_IT, INSIDE_IT, Words, relations

    to_chosen = relations(model)
    if not {HOLDS_IT, INSIDE_IT} & set(to_chosen):
        return []
    words = Words(
        model.n_features_in_,
        affine=model.affine_,
        rows=f"{record}s",
        count=lambda n: count(round(n)),
    )
    return [("seen", words.sentence(model.structures_, to_chosen))]


def which_affine(model: Any, kind: str, given: str | None) -> str:
    """Say whether the subspace may miss the origin, and why."""
    says = "yes" if model.affine_ else "no"
    why = f"--affine {given}" if given else f"the default for a {KIND_NAMES[kind]}"
    if model.affine != "auto":
        return f"{says} ({why})"
    why = f"--affine {given}" if given else f"auto, {why}"
    return f"{says}: {_about_origin(model)} ({why})"


def _about_origin(model: Any) -> str:
    """Say what the rows show about the origin."""
    from perpend.report._words import CLEAR_ORIGIN

    evidence = model.evidence_
    distance, error = evidence["origin_distance"], evidence["origin_error"]
    if model.affine_:
        return f"it misses the origin by {distance:.2g}, by chance about {error:.2g}"
    if evidence["origin_chance"] < CLEAR_ORIGIN:
        return "a subspace through the origin explains the rows better"
    return "no subspace clearly misses the origin"


def level(model: Any) -> str:
    """Return the confidence as a word."""
    from perpend.report._words import level

    return level(model.confidence_)


def _evidence(model: Any) -> list[str]:
    """Return the main reasons for the confidence; `evidence_` has them all."""
    from perpend._verdict import computed_evidence
    from perpend.plots._words import THIN, factor

    evidence, texts = computed_evidence(model), []
    if "rows_on_subspace" in evidence:
        rows, free = evidence["rows_on_subspace"], evidence["rows_on_any_subspace"]
        texts.append(f"{count(rows)} different rows lie on it, chance would give {free}")
    if "inlier_gap" in evidence:
        times = factor(evidence["inlier_gap"]).replace(THIN, " ")
        texts.append(f"inliers vary {times} times more along it than across")
    return texts


def outliers(model: Any, labels: Any) -> str:
    """Say how many rows are outliers, and by which threshold."""
    n, n_outliers = len(labels), int((labels == -1).sum())
    origin = "auto" if model.threshold == "auto" else "given"
    if model.contamination is not None:
        origin = f"for contamination {model.contamination:g}"
    return (
        f"{count(n_outliers)} of {count(n)} rows ({100 * n_outliers / n:.1f} %), "
        f"distance threshold {model.threshold_:.2g} ({origin})"
    )


def noise(model: Any, column: str = "column") -> Lines:
    """Say how far noise moves inliers, over all columns and in each; nothing without noise.

    `noise_` is the expected length of an inlier's error, so the error of each of D columns is
    smaller by sqrt(D).
    """
    if model.noise_ == 0:
        return []
    D = model.n_features_in_
    unit = " of a row's length" if model.normalize and not model.affine_ else ""
    each = f" (over all {count(D)} {column}s; about {model.noise_ / math.sqrt(D):.2g} in each)"
    return [("noise", f"{model.noise_:.2g}{unit}{each if D > 1 else ''}")]


def left_out(data: Any) -> Lines:
    """Say which records and columns of a file were not used, if any."""
    counts, lines = data.counts, []
    records = math.prod(data.shape)
    if len(data.X) < records:
        reasons = {"missing values": counts.nan, "no data": counts.ignored}
        why = ", ".join(f"{count(n)} with {what}" for what, n in reasons.items() if n)
        lines.append(f"{count(records - len(data.X))} of {count(records)} records ({why})")
    if counts.dropped_columns:
        names = [f'"{name}"' for name in counts.dropped_columns]
        lines.append(f"columns {listed(names, NAMES_IN_LINE)}")
    return [("left out" if i == 0 else "", line) for i, line in enumerate(lines)]
