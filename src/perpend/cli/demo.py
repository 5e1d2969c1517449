"""``perpend demo``: hide a subspace among outliers and find it again."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perpend.cli._console import count, finish, table
from perpend.cli._options import option
from perpend.cli._output import REPORT, check_folder
from perpend.cli._progress import monitor
from perpend.cli._summary import collected_warnings, estimate, exit_code

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
    page = []
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
            page = [("wrote", f"{output / REPORT}: open it in a browser")]
    dimension = N_FEATURES - CODIMENSION
    lines = [
        ("data", f"{made}:"),
        ("", f"{count(N_INLIERS)} lie on a hidden subspace of dimension {dimension},"),
        ("", f"{count(N_OUTLIERS)} are outliers; perpend knows neither number"),
        *estimate(model),
        ("truth", f"subspace error {error:.1g} (0 is perfect), F1 {f1:.3f} (1 is perfect)"),
        ("PCA", f"would keep {needed} dimensions for 99 % of the variance;"),
        ("", f"with the right {dimension}, its subspace error is {pca_error:.2f}"),
        *page,
        ("time", f"{seconds:.2f} s to fit"),
        ("next", "perpend fit YOUR.csv -o RESULTS"),
    ]
    finish(None, lambda: table(lines), remarks=remarks, json=False)
    raise typer.Exit(exit_code(model))


def _pca(X: "Array", normals: "Array") -> tuple[int, float]:
    """Return how many dimensions PCA needs, and its error given the right number."""
    import numpy as np

    from perpend.metrics import subspace_error

    variances, axes = np.linalg.eigh(np.cov(X, rowvar=False))  # ascending
    shares = np.cumsum(variances[::-1]) / np.sum(variances)
    needed = int(np.searchsorted(shares, 0.99)) + 1
    return needed, subspace_error(axes[:, : len(normals)].T, normals)
