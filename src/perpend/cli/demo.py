"""``perpend demo``: hide a subspace among outliers and find it again."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perpend.cli._console import count, finish, page
from perpend.cli._options import option
from perpend.cli._output import REPORT, check_folder
from perpend.cli._progress import monitor
from perpend.cli._summary import about_model, collected_warnings, exit_code

if TYPE_CHECKING:
    from perpend._typing import Array

SIZES = N_INLIERS, N_OUTLIERS = 1000, 1500
N_FEATURES, CODIMENSION = 30, 5


def demo(
    seed: Annotated[int, option("N", "Another seed makes other data.", min=0, max=2**32 - 1)] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for a report about the result."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a report that exists.")] = False,
) -> None:
    """Hide a subspace among outliers and find it again, in a few seconds."""
    if output is not None:
        check_folder(output, None, [REPORT], force=force)
    made = f"{count(sum(SIZES))} rows x {N_FEATURES} columns, made with seed {seed}"
    with monitor() as watch, collected_warnings() as remarks:
        watch.phase("loading NumPy and scikit-learn")
        from perpend import DPCP
        from perpend.datasets import make_subspace
        from perpend.metrics import outlier_f1, subspace_error

        data = make_subspace(
            *SIZES, n_features=N_FEATURES, codimension=CODIMENSION, random_state=seed
        )
        began = time.perf_counter()
        # Not the seed of the data, or the starts would be the numbers that drew the subspace.
        model = DPCP(random_state=seed + 1, callback=watch).fit(data.X)
        seconds = time.perf_counter() - began
        error = subspace_error(model.normals_, data.normals)
        f1 = outlier_f1(data.y, model.labels_)
        needed, pca_error = _pca(data.X, data.normals)
        if output is not None:
            watch.phase("writing the report")
            output.mkdir(parents=True, exist_ok=True)
            model.report(output / REPORT, data.X, title=f"Demo: {made}")
    facts = {
        **about_model(model),
        "made": made,
        "n_inliers": N_INLIERS,
        "n_outliers": N_OUTLIERS,
        "dimension": N_FEATURES - CODIMENSION,
        "error": error,
        "f1": f1,
        "seconds": seconds,
        "needed": needed,
        "pca_error": pca_error,
        "page": output and output / REPORT,
    }
    finish(None, lambda: page("demo", facts), remarks=remarks, json=False)
    raise typer.Exit(exit_code(model))


def _pca(X: "Array", normals: "Array") -> tuple[int, float]:
    """Return how many dimensions PCA needs, and its error given the right number."""
    import numpy as np

    from perpend.metrics import subspace_error

    variances, axes = np.linalg.eigh(np.cov(X, rowvar=False))  # ascending
    shares = np.cumsum(variances[::-1]) / np.sum(variances)
    needed = int(np.searchsorted(shares, 0.99)) + 1
    return needed, subspace_error(axes[:, : len(normals)].T, normals)
