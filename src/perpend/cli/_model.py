"""From options to a method."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from perpend.cli._console import Refusal
from perpend.cli._options import AFFINE, Affine
from perpend.cli._summary import collected_warnings
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset


class Wanted(NamedTuple):
    """The method and its settings, as the user gave them."""

    method: str
    codimension: int | str = "auto"
    starts: int | str = "auto"
    threshold: float | str = "auto"
    contamination: float | None = None
    affine: Affine | None = None  # None: by the kind of data
    normalize: bool = True
    refine: bool = True
    device: str | None = None
    seed: int = 0
    max_iter: int | str = "auto"  # auto: the method's default
    n_components: int | None = None

    def about(self, data: "Dataset") -> "Wanted":
        """Fill in the default for this kind of data."""
        return self._replace(affine=self.affine or AFFINE[data.kind])


def check_threshold(wanted: Wanted) -> None:
    """Refuse two ways to set the threshold at once."""
    if wanted.contamination is not None and wanted.threshold != "auto":
        raise Refusal(
            "--contamination sets the threshold, and so does --threshold. Leave one of them out."
        )


def check_codimension(wanted: Wanted) -> None:
    """Refuse two ways to give the size of the subspace at once."""
    if wanted.n_components is not None and wanted.codimension != "auto":
        raise Refusal(
            "--n-components gives the codimension, and so does --codimension. Leave one out."
        )


def needs_codimension(method: str) -> bool:
    """Whether a method cannot estimate the codimension itself."""
    return bool(signature(_kind(method)).parameters["codimension"].default != "auto")


def build(wanted: Wanted, callback: Callable[..., Any] | None) -> "SubspaceEstimator":
    """Return the method with its parameters, or say which option it does not have."""
    kind = _kind(wanted.method)
    known = signature(kind).parameters
    assert wanted.affine is not None
    given = wanted.codimension != "auto" or wanted.n_components is not None
    if not given and needs_codimension(wanted.method):
        raise Refusal(
            f"--method {wanted.method} needs the codimension: add --codimension C, or use "
            "--method DPCP, which estimates it."
        )
    parameters: dict[str, Any] = {
        "threshold": wanted.threshold,
        "contamination": wanted.contamination,
        "affine": wanted.affine.value_for_methods,
        "normalize": wanted.normalize,
        "device": wanted.device,
        "random_state": wanted.seed,
        "callback": callback,
    }
    if wanted.codimension != "auto":
        parameters["codimension"] = wanted.codimension
    if wanted.n_components is not None:
        parameters["n_components"] = wanted.n_components
    if wanted.max_iter != "auto":
        parameters["max_iter"] = wanted.max_iter
    special = {
        "--starts": ("n_starts", wanted.starts, "auto"),
        "--no-refine": ("refine", "auto" if wanted.refine else False, "auto"),
    }
    for option, (name, value, default) in special.items():
        if name in known:
            parameters[name] = value
        elif value != default:
            raise Refusal(f"{option} is for --method DPCP; {wanted.method} has no such option.")
    return kind(**parameters)


def fit_model(model: "SubspaceEstimator", data: "Dataset") -> list[str]:
    """Fit, and return the warnings; errors name the file."""
    from numpy.linalg import LinAlgError

    try:
        with collected_warnings() as remarks:
            model.fit(data.X)
    except (LinAlgError, InputError) as error:
        if isinstance(error, LinAlgError):  # a ValueError, but not a fault of the input
            raise
        raise type(error)(f"{data.source}: {error}") from error
    except ValueError as error:
        raise InputError(f"{data.source}: {error}") from error
    return remarks


def _kind(method: str) -> Callable[..., "SubspaceEstimator"]:
    import perpend

    kind: Callable[..., SubspaceEstimator] = getattr(perpend, method)
    return kind
