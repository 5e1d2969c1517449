"""Each method where its own theory says that it recovers, and where it says that it fails.

One line for every released method, over many seeds, so that no test can pass on a stub.
"""

from typing import NamedTuple

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import perpend
from helpers import CARDS, assert_sure
from perpend import subspace_error
from perpend.datasets import make_subspace

SEEDS, FEWER = range(10), range(3)  # for recovery, and for failures, which are no matter of luck

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)


class Sizes(NamedTuple):
    """Rows of a haystack: inliers of dimension d among outliers that are uniform on the sphere."""

    n_inliers: int
    n_outliers: int
    D: int
    d: int

    def fitted(self, name, seed, **options):
        """A fitted method, and its sine of the largest angle to the truth; 1 if sizes differ."""
        data = make_subspace(
            self.n_inliers, self.n_outliers, n_features=self.D, codimension=self.D - self.d,
            random_state=seed,
        )  # fmt: skip
        kind = getattr(perpend, name)
        if kind.capabilities.needs_dimension:
            options = {"n_components": self.d, **options}
        model = kind(random_state=seed + 1000, **options).fit(data.X)
        return model, subspace_error(model.normals_, data.normals)

    def error(self, name, seed, **options):
        return self.fitted(name, seed, **options)[1]


MOST = Sizes(150, 300, 12, 9)  # two thirds are outliers
FEW = Sizes(10, 300, 8, 7)  # more than N² outliers, beyond what the sum of distances can bear
HIGH = Sizes(300, 450, 20, 16)  # d > D/2: the relaxations are not tight
NEAR = Sizes(150, 600, 20, 18)  # coherences, ranks and row norms of inliers are those of outliers
CLAIMS = {  # where it recovers, the accuracy, and where it fails
    "DPCP": (MOST, 1e-9, FEW),
    "RSGM": (MOST, 1e-6, FEW),
    "DPCPIRLS": (MOST, 1e-5, FEW),  # it stops where the sum falls by less than 1e-6 of it
    "RecursiveDPCP": (MOST, 1e-6, FEW),
    "DPCPLP": (MOST, 1e-10, FEW),
    "DPCPd": (Sizes(2400, 2400, 12, 11), 0.03, FEW),  # not exact: the better, the more rows
    "FMS": (Sizes(100, 100, 100, 5), 1e-8, FEW),
    "GGD": (Sizes(200, 200, 100, 5), 1e-8, FEW),
    "REAPER": (Sizes(100, 150, 50, 5), 1e-8, HIGH),
    "GMS": (Sizes(150, 250, 20, 5), 1e-8, HIGH),
    "TME": (Sizes(112, 288, 20, 5), 1e-7, Sizes(80, 320, 20, 5)),  # d/D is the limit
    "STE": (Sizes(92, 308, 20, 5), 1e-7, Sizes(20, 180, 20, 5)),
    "CoherencePursuit": (Sizes(150, 600, 60, 4), 1e-10, NEAR),
    "RANSAC": (Sizes(100, 200, 30, 3), 1e-10, Sizes(300, 300, 30, 28)),
    "OutlierPursuit": (Sizes(294, 6, 30, 2), 1e-8, NEAR),
    "LLD": (Sizes(300, 300, 50, 5), 1e-8, NEAR),
}
OWN = {  # of other models than a haystack: below, and in the files named
    "SphericalPCA", "MDR", "RANSACPlus", "PCP", "DoubleOverparameterization", "RGraph",
}  # fmt: skip


def test_every_released_method_is_here():
    assert {*CLAIMS, *OWN} == CARDS


@pytest.mark.parametrize("name", CLAIMS)
def test_it_recovers(name):
    sizes, accuracy, _ = CLAIMS[name]
    share = sizes.n_outliers / (sizes.n_inliers + sizes.n_outliers)
    options = {"contamination": share} if name == "OutlierPursuit" else {}  # its weight needs it
    fits = [sizes.fitted(name, seed, **options) for seed in SEEDS]
    assert max(error for _, error in fits) < accuracy
    for model, _ in fits:
        assert_sure(model)


@pytest.mark.parametrize("name", CLAIMS)
def test_it_fails(name):
    errors = [CLAIMS[name][2].error(name, seed) for seed in FEWER]
    assert min(errors) > 0.03


# -- other models ----------------------------------------------------------------------------------


def test_spherical_pca_has_the_axes_of_a_cloud_without_moments_and_none_exactly():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2000, 6)) * [4, 3, 1, 1, 1, 1] * rng.standard_cauchy((2000, 1))
        model = perpend.SphericalPCA(n_components=2).fit(X)
        assert subspace_error(model.components_, np.eye(6)[:2]) < 0.15
        assert Sizes(150, 150, 20, 5).error("SphericalPCA", seed) > 1e-3


def test_mdr_bears_what_pca_does_not_and_no_outlier_that_is_far_enough():
    better = 0
    for seed in SEEDS:
        data = make_subspace(100, 5, n_features=10, codimension=8, random_state=seed)
        of_pca, of_mdr, of_far = (
            subspace_error(
                kind(n_components=2, normalize=False).fit(
                    data.X * np.where(data.y == 1, 1, far)[:, None]
                ).normals_,
                data.normals,
            )
            for kind, far in [
                (perpend.comparison.PCABaseline, 6), (perpend.MDR, 6), (perpend.MDR, 1e6)
            ]
        )  # fmt: skip
        better += of_mdr < of_pca / 1.5
        assert of_far > 0.5
    assert better >= 8


def test_ransac_plus_recovers_among_adversarial_outliers_and_not_among_most():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.standard_normal((40, 40)))[0]
        X = rng.standard_normal((300, 4)) @ Q[:, :4].T
        X[:60] = 3 * rng.standard_normal((60, 2)) @ Q[:, 4:6].T  # their own plane, and stronger
        # Not sure: rows of either plane are zero across the other.
        model = perpend.RANSACPlus(outlier_share=0.2, random_state=seed).fit(X)
        assert subspace_error(model.normals_, Q[:, 4:].T) < 1e-10
        if seed in FEWER:
            assert Sizes(100, 200, 15, 10).error("RANSACPlus", seed, outlier_share=0.49) > 0.03


@pytest.mark.parametrize("name", ["PCP", "DoubleOverparameterization"])
def test_wrong_entries_are_told_from_a_table_and_wrong_rows_are_not(name):
    kind = getattr(perpend, name)
    options = {"start": 1e-4} if name == "DoubleOverparameterization" else {}
    for seed in SEEDS if name == "PCP" else FEWER:  # gradient descent takes its time
        rng = np.random.default_rng(seed)
        L = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 50))
        wrong = rng.random(L.shape) < 0.05
        model = kind(**options).fit(np.where(wrong, rng.uniform(-10, 10, L.shape), L))
        assert np.linalg.norm(model.low_rank_ - L) < 0.05 * np.linalg.norm(L)
        if seed not in FEWER:
            continue
        rows = L.copy()
        rows[60:] = rng.choice([-1.0, 1.0], (20, 50))
        model = kind(**options).fit(rows)
        assert np.linalg.norm(model.low_rank_[60:]) > 0.25 * np.linalg.norm(rows[60:])


def test_rgraph_tells_a_union_from_outliers_and_not_at_high_dimension():
    for seed in range(4):  # an elastic net for each row
        for D, d, least, most in ((30, 3, 0.999, 1.0), (10, 8, 0.0, 0.9)):
            parts = [
                make_subspace(40, 20, n_features=D, codimension=D - d, random_state=2 * seed + i)
                for i in (0, 1)
            ]
            X, y = np.vstack([p.X for p in parts]), np.concatenate([p.y for p in parts])
            assert least <= roc_auc_score(y, perpend.RGraph().fit(X).scores_) <= most


@pytest.mark.parametrize("method", ["SphericalPCA", "MDR"])
def test_a_subspace_beside_that_of_its_own_members_is_not_sure(method):
    """Methods that outliers pull along have the right number of normals and a wrong subspace."""
    off = 0
    for seed in range(6):
        data = make_subspace(300, 200, n_features=8, codimension=2, noise=0.02, random_state=seed)
        model = getattr(perpend, method)(codimension=2, random_state=0).fit(data.X)
        if subspace_error(model.normals_, data.normals) > 0.11:
            off += 1
            assert model.confidence_ < 0.95
    assert off
