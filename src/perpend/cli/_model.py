"""From options to a fitted method."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perpend.cli._cluster import on_cluster
from perpend.cli._columns import feature_name
from perpend.cli._console import Refusal
from perpend.cli._options import AFFINE, OUTLIERS, Affine, Method, Search
from perpend.cli._scaling import wanted
from perpend.cli._summary import collected_warnings
from perpend.exceptions import CheckpointError, InputError

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
    return how.affine or (Affine.yes if wanted(how, data) else AFFINE[data.kind])


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
        "outliers": how.outliers or OUTLIERS[data.kind],
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


def fit_model(
    model: "SubspaceEstimator",
    data: "Dataset",
    checkpoint: Path | None = None,
    scheduler: str | None = None,
) -> list[str]:
    """Fit, on a cluster if there is one, and return the warnings; errors name the file."""
    given = {} if checkpoint is None else {"checkpoint": checkpoint}
    with on_cluster(scheduler) as placed, named_errors(data), collected_warnings() as remarks:
        model.fit(placed(data.X), **given)
    return [with_names(remark, data) for remark in remarks]


@contextmanager
def named_errors(data: "Dataset") -> Iterator[None]:
    """Let errors about the input name the file."""
    from numpy.linalg import LinAlgError

    try:
        yield
    except (LinAlgError, CheckpointError):  # ValueErrors, but not a fault of the input
        raise
    except ValueError as error:
        if str(error).startswith((f"{data.source}:", f"{Path(data.source).absolute()}:")):
            raise  # by a reader, maybe on a worker
        kind = type(error) if isinstance(error, InputError) else InputError
        raise kind(f"{data.source}: {error}") from error


def with_names(remark: str, data: "Dataset") -> str:
    """Say a remark in the words of the command: names of columns, which it counts from 0."""
    remark = remark.replace("listed in undecided_", 'listed as "undecided" in result.json')
    pair = r"(?<=spreads of columns )(\d+) and (\d+)"
    return re.sub(
        pair, lambda m: " and ".join(feature_name(data, int(j)) for j in m.groups()), remark
    )


def _kind(method: str) -> type["SubspaceEstimator"]:
    import perpend

    kind: type[SubspaceEstimator] = getattr(perpend, method)
    return kind
