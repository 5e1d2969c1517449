"""From options to a fitted method."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

from perpend.cli._console import Refusal
from perpend.cli._options import AFFINE, Affine, Method, Search
from perpend.cli._summary import collected_warnings
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset

PARAMETER: dict[Affine, Any] = {Affine.no: False, Affine.yes: True, Affine.auto: "auto"}
ONLY_SOME_HAVE = {"n_starts": "--starts", "refine": "--no-refine"}


def check_together(how: Method) -> None:
    """Refuse two ways to say the same at once."""
    if how.contamination is not None and how.threshold != "auto":
        raise Refusal(
            "--contamination sets the threshold, and so does --threshold. Leave one of them out."
        )
    if how.n_components is not None and how.codimension != "auto":
        raise Refusal(
            "--n-components gives the codimension, and so does --codimension. Leave one out."
        )


def affine(how: Search, data: "Dataset") -> Affine:
    """Return whether the subspace may miss the origin: as given, or by the kind of data."""
    return how.affine or AFFINE[data.kind]


def needs_codimension(method: str) -> bool:
    """Whether a method cannot estimate the codimension itself."""
    return bool(_kind(method).capabilities.needs_dimension)


def build(
    how: Method, data: "Dataset", callback: Callable[..., Any] | None = None
) -> "SubspaceEstimator":
    """Return the method with its parameters, or say which option it does not have."""
    if how.codimension == "auto" and how.n_components is None and needs_codimension(how.method):
        raise Refusal(
            f"--method {how.method} needs the codimension: add --codimension C or --n-components "
            "D, or use --method DPCP, which estimates it."
        )
    given = {
        "codimension": how.codimension,
        "n_components": how.n_components,
        "n_starts": how.starts,
        "max_iter": how.max_iter,
        "outliers": how.outliers,
        "threshold": how.threshold,
        "contamination": how.contamination,
        "normalize": not how.no_normalize,
        "refine": False if how.no_refine else "auto",
        "device": how.device,
        "random_state": how.seed,
        "callback": callback,
    }
    # Without a value, each method has its own default.
    given = {name: value for name, value in given.items() if value not in (None, "auto")}
    kind = _kind(how.method)
    for name, option in ONLY_SOME_HAVE.items():
        if name in given and name not in signature(kind).parameters:
            raise Refusal(f"{option} is for --method DPCP; {how.method} has no such option.")
    return kind(affine=PARAMETER[affine(how, data)], **given)


def fit_model(model: "SubspaceEstimator", data: "Dataset") -> list[str]:
    """Fit, and return the warnings; errors name the file."""
    from numpy.linalg import LinAlgError

    try:
        with collected_warnings() as remarks:
            model.fit(data.X)
    except LinAlgError:  # a ValueError, but not a fault of the input
        raise
    except ValueError as error:
        kind = type(error) if isinstance(error, InputError) else InputError
        raise kind(f"{data.source}: {error}") from error
    return remarks


def _kind(method: str) -> type["SubspaceEstimator"]:
    import perpend

    kind: type[SubspaceEstimator] = getattr(perpend, method)
    return kind
