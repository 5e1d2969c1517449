"""The two-group model against rows simulated from it."""

import numpy as np
import pytest
from scipy import special, stats

from perpend.kernels import logarithmic_bins
from perpend.structure.law import distance_edges, group_model

LAWS = [(1, 1), (1, 9), (1, 200), (2, 1), (5, 25), (20, 180), (150, 50), (150, 1)]
laws = pytest.mark.parametrize(("c", "d"), LAWS)


def inlier_distances(rng, n, c, scale):
    return scale * np.sqrt(rng.chisquare(c, n))


def outlier_distances(rng, n, c, d):
    return np.sqrt(rng.beta(c / 2, d / 2, n))


def fit(J, c, d, norms=(1.0,), weight=None):
    norms = np.asarray(norms)
    edges = distance_edges(norms[-1], np.float64)
    counts = np.bincount(logarithmic_bins(J, edges), weight, minlength=len(edges)).astype(float)
    return group_model(edges, norms, c, d).fit(counts)


def assert_sane(groups):
    """No NaN anywhere; nearer rows are likelier inliers; shares and distances in their ranges."""
    for name, value in groups._asdict().items():
        assert value is None or np.all(np.isfinite(value)), name
    assert np.all(np.diff(groups.posterior) <= 0)
    assert np.all(np.diff(groups.gain) <= 0)
    assert np.all((groups.posterior >= 0) & (groups.posterior <= 1))
    assert 0 < groups.share < 1
    assert groups.edges[0] <= groups.scale <= groups.edges[-1]
    assert 0 <= groups.threshold <= groups.edges[-1]


def typical_scale(c, d):
    """Noise well below the outliers' distances: their first percentile, or so."""
    return np.quantile(outlier_distances(np.random.default_rng(0), 999, c, d), 0.01) / c**0.5 / 2


@laws
def test_share_and_scale_are_recovered(c, d, seed):
    rng = np.random.default_rng(seed)
    n_in, n_out, scale = 8000, 12_000, typical_scale(c, d)
    J = np.append(inlier_distances(rng, n_in, c, scale), outlier_distances(rng, n_out, c, d))
    groups = fit(J, c, d)
    assert_sane(groups)
    assert groups.share == pytest.approx(0.4, abs=0.02)
    # six standard deviations of a scale estimate from n_in c squares, and a little for the bins
    assert groups.scale == pytest.approx(scale, rel=6 / np.sqrt(2 * c * n_in) + 0.01)
    # the threshold is about where as many inliers are lost as outliers are let in
    lost = np.mean(J[:n_in] > groups.threshold)
    let_in = np.mean(J[n_in:] <= groups.threshold)
    assert lost < 0.05
    assert let_in < 0.05


@laws
@pytest.mark.parametrize("share", [0.003, 0.1, 0.5, 0.9, 0.997])
def test_the_share_is_the_mean_probability(c, d, share, seed):
    """Where the likelihood is greatest, its derivative by the share is zero: that says it."""
    rng, n = np.random.default_rng(seed), 4000
    n_in, scale = round(share * n), typical_scale(c, d)
    J = np.append(inlier_distances(rng, n_in, c, scale), outlier_distances(rng, n - n_in, c, d))
    groups = fit(J, c, d)
    assert_sane(groups)
    assert 2e-6 < groups.share < 1 - 2e-6  # inside what is allowed
    assert groups.counts @ groups.posterior / n == pytest.approx(groups.share, abs=1e-8)


@laws
def test_without_outliers_everything_is_an_inlier(c, d, seed):
    scale = typical_scale(c, d)
    groups = fit(inlier_distances(np.random.default_rng(seed), 5000, c, scale), c, d)
    assert_sane(groups)
    assert groups.share > 0.999
    assert groups.scale == pytest.approx(scale, rel=6 / np.sqrt(2 * c * 5000) + 0.01)
    assert groups.threshold > scale * np.sqrt(c)


@laws
def test_outliers_alone_speak_for_no_subspace(c, d, seed):
    """The likelihood can rise by chance, but hardly by a factor of exp(15)."""
    groups = fit(outlier_distances(np.random.default_rng(seed), 3000, c, d), c, d)
    assert_sane(groups)
    assert groups.counts @ groups.gain < 15


@pytest.mark.parametrize(("c", "d"), [*LAWS, (99, 1), (500, 500), (900, 100)])
def test_bins_wider_than_the_law_do_not_make_outliers_look_like_inliers(c, d):
    """With the exact probabilities of the bins, as if there were infinitely many outliers."""
    edges = distance_edges(1.0, np.float64)
    counts = np.diff(stats.beta(c / 2, d / 2).cdf(np.square(edges)), prepend=0.0)
    groups = group_model(edges, np.ones(1), c, d).fit(counts)
    assert_sane(groups)
    assert groups.share < 0.01
    assert counts @ groups.gain < 1e-4  # per row


@laws
@pytest.mark.parametrize("n_out", [0, 1, 3000])
def test_exact_inliers_give_a_scale_at_the_floor(c, d, n_out, seed):
    rng = np.random.default_rng(seed)
    J = np.append(rng.uniform(0, 1e-15, 2000), outlier_distances(rng, n_out, c, d))
    groups = fit(J, c, d)
    assert_sane(groups)
    assert groups.scale == groups.edges[0]
    assert groups.share == pytest.approx(2000 / (2000 + n_out), abs=2e-3)
    assert groups.threshold < 1e-7 * np.sqrt(c) + 2e-7
    assert groups.posterior[0] > 0.999
    assert groups.posterior[np.searchsorted(groups.edges, 1e-5)] < 1e-6


@laws
def test_rows_in_the_lowest_bin_count_as_exact(c, d):
    """At J = 0 the ratio of the densities is B(c/2, d/2) / (Gamma(c/2) (2 s^2)^(c/2))."""
    groups = fit(np.array([0.0] * 40 + [0.3] * 60), c, d)
    log_ratio = (
        special.betaln(c / 2, d / 2) - special.gammaln(c / 2) - c / 2 * np.log(2 * groups.scale**2)
    )
    p = groups.share
    assert groups.gain[0] == pytest.approx(np.logaddexp(np.log1p(-p), np.log(p) + log_ratio))


def test_few_rows_never_give_nan(seed):
    rng = np.random.default_rng(seed)
    for c, d in LAWS:
        for J in ([0.0], [1.0], [1e-12, 1.0], [0.5, 0.5], rng.uniform(size=5), [7.0]):
            assert_sane(fit(np.array(J), c, d))


def test_weights_count_like_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    J = np.append(inlier_distances(rng, 300, 3, 0.02), outlier_distances(rng, 300, 3, 9))
    times = rng.integers(0, 4, 600)
    weighted, repeated = fit(J, 3, 9, weight=times), fit(np.repeat(J, times), 3, 9)
    for name in ("posterior", "gain", "counts", "share", "scale", "threshold"):
        a, b = getattr(weighted, name), getattr(repeated, name)
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_only_the_shares_of_the_counts_matter(seed):
    rng = np.random.default_rng(seed)
    J = np.append(inlier_distances(rng, 300, 3, 0.02), outlier_distances(rng, 300, 3, 9))
    one, many = fit(J, 3, 9), fit(J, 3, 9, weight=np.full(600, 1e-3))
    assert many.share == pytest.approx(one.share)
    assert many.scale == pytest.approx(one.scale)
    np.testing.assert_allclose(many.posterior, one.posterior, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_norms_may_differ_and_have_a_unit(factor, d, seed):
    rng = np.random.default_rng(seed)
    norms = np.sort(rng.uniform(0.5, 4, 64))
    x = rng.choice(norms, 3000)
    J = np.append(inlier_distances(rng, 2000, 3, 0.02), x * outlier_distances(rng, 3000, 3, d))
    plain, scaled = fit(J, 3, d, norms), fit(factor * J, 3, d, factor * norms)
    assert_sane(plain)
    assert plain.share == pytest.approx(0.4, abs=0.02)
    assert plain.scale == pytest.approx(0.02, rel=0.06)
    alone = fit(J[2000:], 3, d, norms)
    assert alone.counts @ alone.gain < 15
    assert scaled.share == pytest.approx(plain.share, rel=1e-6)
    assert scaled.scale == pytest.approx(factor * plain.scale, rel=1e-6)
    assert scaled.threshold == pytest.approx(factor * plain.threshold, rel=1e-6)


def test_the_posterior_is_bayes_rule(seed):
    """Where rows of both groups are simulated, the share of inliers in a bin is the posterior."""
    rng, c, d, scale = np.random.default_rng(seed), 2, 8, 0.1
    inliers = inlier_distances(rng, 200_000, c, scale)
    outliers = outlier_distances(rng, 300_000, c, d)
    groups = fit(np.append(inliers, outliers), c, d)
    a, b = (
        np.bincount(logarithmic_bins(J, groups.edges), minlength=len(groups.edges))
        for J in (inliers, outliers)
    )
    often = a + b > 2000
    assert often.sum() > 20
    np.testing.assert_allclose(
        groups.posterior[often], (a / np.maximum(a + b, 1))[often], atol=0.05
    )
    j = np.searchsorted(groups.edges, groups.threshold)
    assert groups.posterior[j - 1] >= 0.5 >= groups.posterior[j + 1]


def test_the_edges_reach_from_rounding_to_the_largest_norm(dtype):
    edges = distance_edges(7.0, dtype)
    floor = {np.float64: 1.4901161e-8, np.float32: 2.3841858e-5}[dtype]
    assert edges[0] == pytest.approx(7 * floor)
    assert edges[-1] == pytest.approx(7)
    np.testing.assert_allclose(edges[1:] / edges[:-1], edges[1] / edges[0])
    assert len(edges) % 16 == 0  # what `grouped_distances` asks for
