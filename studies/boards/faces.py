"""One person's face among other people's.

Images of a face under all kinds of light lie near a subspace of about nine dimensions. The rows are
64 images of one person and a share of images of others: far fewer rows than pixels.
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from perpend import FMS, SphericalPCA
from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import fitted, percent, starts_rng
from perpend.metrics import outlier_auc, principal_angles
from studies.boards import _board as base
from studies.boards._files import files, read_arrays
from studies.boards._references import principal_axes, residuals, unit_rows

OPTIONS: dict[str, Any] = {"affine": True, "outliers": "both"}  # as the README has it for outliers
OWN, PLAIN = 'DPCP(affine=True, outliers="both")', "DPCP()"
SHARES = (0.3, 0.5, 0.7)  # of other people's images
GIVEN = 9  # dimensions of a face, for methods that need them
SUBJECTS = (1, 6, 11, 16, 21, 26)
REWEIGHTED = f"reweighted PCA, given d = {GIVEN}"
PEERS: dict[str, Any] = {  # methods of perpend: Locantore et al. 1999, Lerman and Maunu 2018
    f"spherical PCA, given d = {GIVEN}": SphericalPCA(n_components=GIVEN),
    # The smoothing is a thousandth of the rows' norm, and fixed, as in earlier runs of the board.
    REWEIGHTED: FMS(n_components=GIVEN, smoothing=1e-3, max_iter=50),
}


def items(settings: Settings) -> list[Case]:
    """Return every person, among a few or many others."""
    return [
        {**file, "subject": who, "share": share}
        for file in files("faces")
        for who in SUBJECTS[: 1 if settings.quick else None]
        for share in SHARES
    ]


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """As quick as the method that is given the dimension."""
    return [
        base.Target(
            f"faces, {group}: median CPU seconds of {PLAIN} at most those of {REWEIGHTED}",
            board.seconds(results, PLAIN, group),
            board.seconds(results, REWEIGHTED, group),
            sign=-1,
        )
        for group in board.groups(results)
    ]


BOARD = base.Board(
    name="boards/faces",
    title="One person among others",
    about="faces under all kinds of light, beside PCA that is given the dimension",
    own=OWN,
    item="person",
    measures=(
        base.Measure("auc", "AUC"),
        base.Measure("angle", "largest angle (degrees)", 0, 1),
        base.Measure("dimension", "dimension", 0, 1),
    ),
    targets=targets,
    items=items,
    sources=("faces",),
    seeds=1,
)


def run(case: Case) -> Tables:
    """Fit all methods to one person's images among others'."""
    from perpend import DPCP

    subject, share, seed = case["subject"], case["share"], case["seed"]
    images, who = read_arrays(case["path"], "images", "subject")
    X, y = _mixed(images.astype(float), who == subject, share, [seed, subject, round(100 * share)])
    truth = principal_axes(unit_rows(X[y == 1]), GIVEN)

    def measured(basis: Array, score: Array) -> Row:
        """Of two subspaces of different dimension, the smaller one has all the angles."""
        angle = principal_angles(basis, truth)[0] if len(basis) else np.pi / 2
        auc = outlier_auc(y, score)
        return {"auc": auc, "angle": float(np.rad2deg(angle)), "dimension": len(basis)}

    model, seconds = fitted(DPCP(**OPTIONS, random_state=starts_rng(seed)), X)
    scores = model.score_samples(X)
    rows = [{"method": OWN, "seconds": seconds, **measured(model.components_, scores)}]
    for name, method in {PLAIN: DPCP(random_state=starts_rng(seed)), **PEERS}.items():
        model, seconds = fitted(clone(method), X)
        basis = model.components_
        scores = -residuals(unit_rows(X), basis)
        rows.append({"method": name, "seconds": seconds, **measured(basis, scores)})
    group = f"{percent(share)} of others"
    return {base.SCORES: BOARD.rows({"group": group, "item": subject, "seed": seed}, rows)}


def _mixed(images: Array, own: Array, share: float, seed: list[int]) -> tuple[Array, Array]:
    """Return one person's images and as many of others' as make the share; +1 and -1."""
    n_own = int(own.sum())
    n_others = round(share / (1 - share) * n_own)
    others = np.random.default_rng(seed).choice(np.flatnonzero(~own), n_others, replace=False)
    X = np.vstack([images[own], images[others]])
    return X, np.repeat([1, -1], [n_own, n_others])


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    people = len(results.values(base.SCORES, "item"))
    return {**base.facts(BOARD, results), "plain": PLAIN, "people": people, "given": GIVEN}


EXPERIMENT = BOARD.experiment(run, cost=lambda _: 8.0)
