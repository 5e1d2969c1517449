"""`score`: the log-evidence of the subspace in rows that were not fitted."""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import integrate
from sklearn.model_selection import GridSearchCV, cross_val_score

from helpers import mostly_slow
from perpend import DPCP, DPCPIRLS, RSGM
from perpend._score import Reference
from perpend.datasets import make_subspace
from perpend.estimator import METHODS

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)


def draw(seed, n=400, D=8, c=3, noise=0.05, **more):
    return make_subspace(n, n, n_features=D, codimension=c, noise=noise, random_state=seed, **more)


def scores(kind, X, codimensions, **options):
    fits = (kind(c, random_state=1000, **options).fit(X[::2]) for c in codimensions)
    return [model.score(X[1::2]) for model in fits]


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"affine": True}], ids=str)
@pytest.mark.parametrize("noise", mostly_slow([0.0, 0.05], 0.05))
def test_every_method_has_a_finite_score_at_every_codimension(name, options, noise):
    X = draw(0, n=60, D=4, c=1, noise=noise).X
    # The published methods lose all rows where they are given far too many affine normals.
    found = scores(METHODS[name], X, range(2 if options.get("affine") else 5), **options)
    assert all(type(score) is float for score in found)
    assert np.all(np.isfinite(found))
    assert found[0] == 0.0


@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"affine": True}], ids=str)
@pytest.mark.parametrize("noise", mostly_slow([0.0, 0.05], 0.05))
def test_it_is_best_at_the_true_codimension(options, noise, seed):
    X = draw(seed, n=150, D=6, c=2, noise=noise).X
    found = scores(DPCP, X, range(5), **options)
    assert int(np.argmax(found)) == 2


def test_rows_on_a_smaller_span(seed):
    """Two columns are copies, so that two normals are exact whatever the noise."""
    X = draw(seed, n=150, D=5, c=2).X
    found = scores(DPCP, np.hstack([X, X[:, :2]]), range(6))
    assert int(np.argmax(found)) == 4


def test_rows_that_are_fitted_to_nothing_speak_against_it():
    X = np.random.default_rng(0).standard_normal((60, 10))
    assert scores(RSGM, X, [6])[0] < 0.05


def test_a_grid_search_without_scoring_picks_the_true_codimension():
    """benchmarks/grid_search.py has more draws, with DPCP and all codimensions."""
    picked = []
    for seed in range(20):
        X = draw(seed, n=150, D=15, c=4).X
        search = GridSearchCV(DPCPIRLS(), {"codimension": [0, 3, 4, 5]}, cv=2, refit=False)
        picked.append(search.fit(X).best_params_["codimension"])
    assert picked.count(4) >= 19


def test_a_search_over_dpcp_and_by_the_dimension():
    X = draw(0).X
    search = GridSearchCV(DPCP(random_state=0), {"n_components": [5, 6]}, cv=2).fit(X)
    assert search.best_params_ == {"n_components": 5}
    assert cross_val_score(DPCP(random_state=0), X, cv=2).min() > 1


def test_both_densities_integrate_to_one():
    """A linear and an affine mixture in the plane, by quadrature."""
    X = make_subspace(200, 100, n_features=2, codimension=1, noise=0.1, random_state=0).X

    def direction(angle):
        return np.exp(model.score([[np.cos(angle), np.sin(angle)]])) / (2 * np.pi)

    model = DPCP(1, random_state=0).fit(X)
    near = np.arctan2(*model.components_[0, ::-1])
    where = {"points": [near + np.pi / 2, near + np.pi, near + 3 * np.pi / 2], "limit": 200}
    total, _ = integrate.quad(direction, near, near + 2 * np.pi, **where)
    assert total == pytest.approx(1, abs=2e-3)  # inliers have noise along the subspace as well
    model = DPCP(1, affine=True, random_state=0).fit(X)
    law, size = Reference(**model._reference), 400
    # A grid in polar coordinates about the centre, the radius over the whole half line.
    angle = (np.arange(size) + 0.5) / size * 2 * np.pi
    u = (np.arange(4000) + 0.5) / 4000
    r, dr = law.scale * u / (1 - u), law.scale / (1 - u) ** 2 / 4000
    rows = r[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1) + law.centre
    from perpend._score import log_evidence

    density = np.exp(log_evidence(model, rows.reshape(-1, 2))).reshape(4000, size)
    density *= np.exp(law.log_density(r, 2))[:, None]
    total = float(np.sum(density * (r * dr)[:, None]) * 2 * np.pi / size)
    assert total == pytest.approx(1, abs=1e-2)


def test_weights_count_like_equal_rows_and_are_routed():
    X = draw(0, D=5, c=2).X
    model, weight = DPCP(random_state=0).fit(X[::2]), np.arange(len(X) // 2) % 3
    expected = model.score(np.repeat(X[1::2], weight, axis=0))
    assert model.score(X[1::2], sample_weight=weight) == pytest.approx(expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = DPCP(random_state=0).set_fit_request(sample_weight=True)
        routed.set_score_request(sample_weight=True)
        search = GridSearchCV(routed, {"codimension": [1, 2]}, cv=2)
        search.fit(X, sample_weight=np.ones(len(X)))
    assert search.best_params_ == {"codimension": 2}


def test_it_survives_saving_and_choosing(tmp_path):
    from perpend import load

    X = draw(0, D=5, c=2, offset=1.0).X
    model = DPCP(affine=True, random_state=0).fit(X)
    model.save(tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").score(X) == model.score(X)
    assert model.choose(0).score(X) == model.score(X)


def test_huge_and_zero_rows(seed):
    model = DPCP(normalize=False, random_state=0).fit(draw(seed).X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.score(1e200 * np.eye(8)))
        assert model.score(np.zeros((2, 8))) == pytest.approx(0)
