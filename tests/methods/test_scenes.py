"""Anomalies in scenes by the documented call: better than RX, and labels that one can use."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_auc_score

from perpend import DPCP
from perpend._scatter import limit_of, mean_precisions, sampled_spread, spread_of


def rx(X):
    """Return the squared Mahalanobis distances from the mean."""
    centred = X - X.mean(axis=0)
    return np.sum(centred * np.linalg.solve(np.cov(centred.T), centred.T).T, axis=1)


def best_f1(truth, score):
    precision, recall, _ = precision_recall_curve(truth, score)
    return np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))


def f1(truth, found):
    return 2 * np.sum(truth & found) / (np.sum(truth) + np.sum(found))


def background(rng, n=3000, D=40):
    """Draw Student rows whose standard deviations decay like 1 / j^1.5, down to the noise."""
    deviations = 100 * np.arange(1.0, D + 1) ** -1.5
    heavy = rng.standard_normal((n, D)) / np.sqrt(rng.chisquare(6, (n, 1)) / 6)
    return heavy * deviations + 0.1 * rng.standard_normal((n, D))


def planted(rng, X, share, size, places):
    """Add one of some fixed vectors to a share of the rows; return which."""
    truth = np.zeros(len(X), bool)
    truth[rng.choice(len(X), int(share * len(X)), replace=False)] = True
    targets = rng.standard_normal((places, X.shape[1])) * np.arange(1.0, X.shape[1] + 1) ** -0.75
    X[truth] += size * targets[rng.integers(places, size=truth.sum())]
    return truth


def test_labels_of_planted_anomalies_and_of_none():
    shares, flagged = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = background(rng)
        clean = spread_of(X)
        flagged.append(np.mean(clean.squares(X) > clean.limit))
        truth = planted(rng, X, 0.005, 200.0, 3)
        spread = spread_of(X)
        q = spread.squares(X)
        assert np.all((spread.probability(q) > 0.5) == (q > spread.limit))
        assert roc_auc_score(truth, q) > 0.999
        shares.append(f1(truth, q > spread.limit) / best_f1(truth, q))
    assert np.mean(shares) >= 0.8
    assert np.mean(flagged) < 0.01  # long tails are no anomalies


def test_more_alike_than_a_student_scatter_can_bear():
    """4 % of one material are more than 1 / (D + 1), and drown in a scatter with D variances."""
    shares = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = background(rng)
        truth = planted(rng, X, 0.04, 100.0, 1)
        spread = spread_of(X)
        q = spread.squares(X)
        assert roc_auc_score(truth, q) > roc_auc_score(truth, rx(X)) + 0.1
        shares.append(f1(truth, q > spread.limit) / best_f1(truth, q))
    assert np.mean(shares) >= 0.8


def test_precisions_are_the_mean_over_the_number_of_axes():
    """Each number of axes by hand; the mean of q is the number of directions, however many."""
    rng = np.random.default_rng(0)
    values, noise2, n_rest = np.sort(rng.uniform(1, 9, 5))[::-1], 0.3, 4
    all_values = np.append(values, np.full(n_rest, noise2))
    by_hand, total = np.zeros(9), 0.0
    for j in range(1, 6):
        variances = np.append(all_values[:j], np.full(9 - j, all_values[j:].mean()))
        by_hand, total = by_hand + j**-0.5 / variances, total + j**-0.5
    own, common = mean_precisions(values, noise2, n_rest)
    np.testing.assert_allclose([*own, *[common] * n_rest], by_hand / total)
    np.testing.assert_allclose(own @ values + common * n_rest * noise2, 9)
    own, _ = mean_precisions(np.array([2.0]), 1.0, 0)
    np.testing.assert_allclose(own, 0.5)


def test_the_limit_is_where_both_groups_are_equally_likely(seed):
    """Log-logistic distances with outliers: the limit is that of the true two groups."""
    rng = np.random.default_rng(seed)
    n, n_out, width = 50_000, 1000, 0.25
    u = np.append(rng.logistic(0, width, n - n_out), rng.uniform(0, 9, n_out))
    limit, _, s = limit_of(np.exp(u), np.ones(n), 50)
    assert s == pytest.approx(width, rel=0.03)
    z = np.linspace(0, 4, 40_001)
    share = n_out / n
    inlying = (1 - share) / (4 * width * np.cosh(z / (2 * width)) ** 2)
    assert np.log(limit) == pytest.approx(max(z[np.argmax(inlying < share / 9)], 2.0), abs=0.06)


def test_columns_of_very_different_size(seed):
    """Ten thousand million to one, turned: q has no negative variance to divide by."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    X = rng.standard_normal((900, 60)) * np.geomspace(1e10, 1, 60) @ turn
    spread = spread_of(X)
    assert np.all(np.diag(spread.root) > 0)
    assert np.mean(spread.squares(X) > spread.limit) < 0.01


def test_equal_rows_and_weights_do_no_harm():
    X = np.vstack([np.zeros((60, 3)), np.eye(3), 2 * np.eye(3)])
    assert np.isfinite(spread_of(X).limit)
    assert np.isfinite(spread_of(np.zeros((20, 2))).limit)
    weight = np.append(np.full(60, 3.0), np.ones(6))
    repeated = np.repeat(X, weight.astype(int), axis=0)
    for field in ("root", "limit", "width"):
        weighted, plain = (getattr(s, field) for s in (spread_of(X, weight), spread_of(repeated)))
        np.testing.assert_allclose(weighted, plain, rtol=1e-3, atol=1e-12)


def scene(name):
    """Return the spectra of a scene, and which are anomalies."""
    file = Path(os.environ.get("PERPEND_DATA", "")) / f"hsi_anomaly/{name}.npz"
    if not file.is_file():
        pytest.skip(f"PERPEND_DATA does not name a folder with hsi_anomaly/{name}.npz")
    with np.load(file) as stored:
        cube, mask = stored["cube"], stored["mask"]
    return cube.reshape(-1, cube.shape[2]).astype(float), mask.ravel() == 1


def test_scenes_beside_rx():
    """AUC at least RX + .005 in the mean; F1 of the labels at least .8 of the best threshold's."""
    rows = []
    for name in ("abu-airport-4", "abu-beach-3", "abu-urban-3", "hydice"):
        X, truth = scene(name)
        spread = sampled_spread(X, None)
        q = spread.squares(X)
        aucs = roc_auc_score(truth, q), roc_auc_score(truth, rx(X))
        rows.append([*aucs, f1(truth, q > spread.limit), best_f1(truth, q)])
    auc, of_rx, reached, best = np.mean(rows, axis=0)
    assert auc >= of_rx + 0.005
    assert reached >= 0.8 * best


# Not sure: the variances of a scene decay without a step. The labels do not need the subspace.
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_the_documented_call_has_these_scores_and_labels():
    X = scene("hydice")[0][::4]
    model, spread = DPCP(affine=True, outliers="both", random_state=0), sampled_spread(X, None)
    np.testing.assert_array_equal(model.fit(X).labels_ == -1, spread.squares(X) > spread.limit)
    np.testing.assert_allclose(model.score_samples(X) ** 2, spread.squares(X))
