"""Rows that belong together are inliers or outliers as one, and one piece of evidence."""

import numpy as np
import pytest
import sklearn
from scipy import special, stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from perpend import DPCP, RSGM, open_rows
from perpend._groups import Groups, factor
from perpend._scatter import spread_of
from perpend.exceptions import CodimensionWarning, InputError
from perpend.rows.stored import StoredRows, blocks_reader

D, C, NOISE = 9, 2, 0.1


def grouped(sizes, share=0.5, seed=0, shift=0.0):
    """Rows in groups that are on a subspace or anywhere, in random order; +1 for those on it."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    y = np.where(rng.random(len(sizes)) < share, 1, -1)[of]
    N = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X = rng.standard_normal((len(of), D))
    X[y == 1] -= X[y == 1] @ N[:, :C] @ N[:, :C].T
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[y == 1] += rng.normal(0, NOISE / np.sqrt(D), (np.sum(y == 1), D))
    return X + shift, y, of, N[:, :C]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_probabilities_are_those_of_the_true_laws(share):
    """The reference knows the subspace, the noise, and both densities of a row."""
    X, y, of, V = grouped(np.random.default_rng(1).integers(1, 6, 800), share)
    model = DPCP(random_state=0).fit(X, groups=of)
    p = model.outlier_probability(X, groups=of)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    J2, s2 = np.square(unit @ V).sum(axis=1), NOISE**2 / D
    ratio = stats.beta.logpdf(J2, C / 2, (D - C) / 2) - stats.chi2.logpdf(J2, C, scale=s2)
    true = special.expit(np.bincount(of, ratio)[of] - special.logit(np.mean(y == 1)))
    assert np.mean(np.abs(p - true)) < 2e-3
    assert np.mean((p > 0.5) != (true > 0.5)) < 3e-3
    brier, best = np.mean((p - (y == -1)) ** 2), np.mean((true - (y == -1)) ** 2)
    assert brier < 1.2 * best + 1e-4
    assert np.mean(model.labels_ == y) > 0.995 > np.mean(DPCP(random_state=0).fit_predict(X) == y)


@pytest.mark.parametrize("settings", [{}, {"affine": True}, {"affine": True, "outliers": "both"}])
def test_everything_agrees_about_a_group(settings):
    X, _, of, _ = grouped(np.full(300, 3), shift=3.0 if settings else 0.0)
    if "outliers" in settings:
        X[np.unique(of, return_index=True)[1][:20]] += 10  # one row each of twenty groups
    alone, model = (DPCP(random_state=0, **settings).fit(X, groups=g) for g in (None, of))
    same = alone.labels_[np.argsort(of)].reshape(-1, 3)
    assert np.any(np.ptp(same, axis=1))  # rows alone disagree within a group
    np.testing.assert_array_equal(model.normals_, alone.normals_)
    labels, p = model.predict(X, groups=of), model.outlier_probability(X, groups=of)
    scores = model.score_samples(X, groups=of)
    for values in (labels, p, scores):
        assert np.all(np.ptp(values[np.argsort(of)].reshape(-1, 3), axis=1) == 0)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.decision_function(X, groups=of) >= 0, labels == 1)
    np.testing.assert_array_equal(p > 0.5, labels == -1)
    # Groups of one size are in the order of their sums of squares, scaled by one number.
    sums = np.bincount(of, alone.score_samples(X) ** 2)[of]
    np.testing.assert_allclose(scores**2 / sums, (scores[0] ** 2 / sums[0]))
    np.testing.assert_array_equal(
        DPCP(random_state=0, **settings).fit_predict(X, groups=of), labels
    )


def read_from_blocks(X):
    return open_rows(lambda: iter(np.array_split(X, 7)), memory_limit="4MiB")


def in_dask(X):
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    return array.from_array(X, chunks=(7000, -1))


@pytest.mark.parametrize("elsewhere", [read_from_blocks, in_dask])
@pytest.mark.parametrize(
    "settings",
    [
        {"affine": True},
        {"normalize": False},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"affine": True, "outliers": "both"}, marks=pytest.mark.slow),
    ],
)
def test_groups_of_rows_that_are_not_in_memory_at_once(settings, elsewhere):
    X, _, of, _ = grouped(np.full(22_000, 3), shift=3.0 if "affine" in settings else 0.0)
    rows = elsewhere(X)
    model = DPCP(random_state=0, **settings).fit(X, groups=of)
    other = DPCP(random_state=0, **settings).fit(rows, groups=of)
    assert other.codimension_ == model.codimension_ == C
    assert other.confidence_ == pytest.approx(model.confidence_)
    assert other.evidence_["gain"] == pytest.approx(model.evidence_["gain"])
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.predict(rows, groups=of), model.labels_)
    for name in ("score_samples", "decision_function", "outlier_probability"):
        values = getattr(other, name)(rows, groups=of)
        np.testing.assert_allclose(values, getattr(model, name)(X, groups=of), atol=1e-9)


def matches(n, rng, share=2 / 3):
    """The two rows (2 n, 9) of each match of two views, most of them by one homography."""
    H = np.eye(3) + rng.normal(0, 0.2, (3, 3))
    a, b = rng.uniform(-1, 1, (2, n, 2))
    x = np.column_stack([a, np.ones(n)])
    right = np.arange(n) < round(share * n)
    exact = x @ H.T
    b[right] = (exact[:, :2] / exact[:, 2:])[right] + rng.normal(0, 0.003, (n, 2))[right]
    zero = np.zeros_like(x)
    rows = np.vstack([np.hstack([x, zero, -b[:, :1] * x]), np.hstack([zero, x, -b[:, 1:] * x])])
    return rows, right, H.ravel() / np.linalg.norm(H)


@pytest.mark.parametrize("draw", range(4))
def test_a_subspace_of_parts_of_groups_is_not_taken(draw):
    """Half of these rows vanish in the same three columns, and no match as a whole does."""
    rows, right, h = matches(150, np.random.default_rng(draw))
    both = np.tile(np.arange(150), 2)
    model = DPCP(random_state=draw).fit(rows, groups=both)
    assert model.codimension_ == 1
    assert model.confidence_ >= 0.95
    assert abs(model.normals_[0] @ h) > 0.999
    assert np.mean((model.labels_[:150] == 1) == right) > 0.95
    np.testing.assert_array_equal(model.labels_, model.predict(rows, groups=both))


@pytest.mark.parametrize("draw", range(4))
def test_rows_of_groups_are_turned_wherever_they_are(draw, monkeypatch):
    """On disk as in memory; where sums over groups do not fit, and on a cluster, there is doubt."""
    X, _, h = matches(400, np.random.default_rng([103, 104, 105, 106][draw]), 0.4)
    order, n_turned = np.random.default_rng(0).permutation(800), []
    X, both = X[order], np.tile(np.arange(400), 2)[order]
    turned = Groups.turned
    monkeypatch.setattr(Groups, "turned", lambda *a: n_turned.append(1) or turned(*a))

    def fit(rows):
        return DPCP(random_state=draw).fit(rows, groups=both)

    def stored(limit):
        return StoredRows(blocks_reader(np.array_split(X, 7)), limit)

    model, other = fit(X), fit(stored(2**17))
    assert len(stored(2**17).windows) > 1
    assert len(n_turned) == 2
    assert other.codimension_ == 1
    assert abs(other.normals_[0] @ h) > 0.999
    np.testing.assert_array_equal(other.labels_, model.labels_)
    assert other.confidence_ == pytest.approx(model.confidence_)
    for rows in (stored(2**16), in_dask(X)):
        with pytest.warns(CodimensionWarning, match=r"only \d+% of the other rows of their groups"):
            assert fit(rows).confidence_ < 0.95
    assert len(n_turned) == 2


def test_rows_turned_among_themselves_span_the_same():
    rng = np.random.default_rng(0)
    groups, X = Groups.checked([0, 0, 1, 2, 2, 2], 6), rng.standard_normal((6, 4))
    turned = groups.turned(X, rng)
    for some in ([0, 1], [2], [3, 4, 5]):
        np.testing.assert_allclose(turned[some].T @ turned[some], X[some].T @ X[some], atol=1e-14)
    np.testing.assert_array_equal(turned[2], X[2])
    assert np.abs(turned - X)[[0, 1, 3, 4, 5]].max(axis=1).min() > 0
    near = np.array([True, True, True, True, False, True])
    assert groups.whole(near) == 3 / 5
    assert groups.whole(~near) == 0
    assert groups.together(near) == (2 * 1 + 2 * 1) / (2 * 1 + 0 + 2 * 2)
    assert Groups.checked([0, 0, 1], 3).together(np.array([False, False, True])) == 1


def test_single_rows_are_no_groups():
    X, _, _, _ = grouped(np.full(200, 2))
    alone = DPCP(random_state=0).fit(X)
    model = DPCP(random_state=0).fit(X, groups=[f"row {i}" for i in range(len(X))])
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    assert model.confidence_ == alone.confidence_
    assert model.evidence_["gain"] == alone.evidence_["gain"]


def test_ids_of_any_kind():
    X, _, of, _ = grouped(np.full(100, 3))
    labels = DPCP(random_state=0).fit(X, groups=of).labels_
    kinds = ([f"pair {i}" for i in of], of * 0.5, [(i % 7, i) for i in of], of.astype(object))
    for ids in kinds:
        np.testing.assert_array_equal(DPCP(random_state=0).fit_predict(X, groups=ids), labels)


def test_one_row_off_an_exact_subspace_puts_its_group_off_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * [1, 1, 1, 1, 0, 0]
    X[::10] += rng.standard_normal((30, 6))
    of = np.arange(300) // 5
    model = DPCP(random_state=0).fit(X, groups=of)
    off = np.isin(of, of[::10])
    np.testing.assert_array_equal(model.labels_ == -1, off)
    np.testing.assert_array_equal(model.outlier_probability(X, groups=of) > 0.999, off)


def test_rows_of_a_group_are_no_evidence_of_their_own():
    X, _, of, _ = grouped(np.full(8, 100), share=0.6, seed=3)
    assert DPCP(random_state=0).fit(X).confidence_ > 0.95
    with pytest.warns(CodimensionWarning, match=r"only [1-6] groups on the subspace"):
        model = DPCP(random_state=0).fit(X, groups=of)
    assert model.confidence_ < 0.9
    assert model.evidence_["gain"] < 100
    many = np.arange(len(X)) // 2
    assert DPCP(random_state=0).fit(X, groups=many).confidence_ > 0.95


def test_pairs_that_are_alike_count_once():
    """Each row twice, in a group, is the evidence of each row once."""
    X, _, _, _ = grouped(np.full(60, 1), share=0.5, seed=1)
    rng = np.random.default_rng(0)
    twice = np.vstack([X, X + rng.normal(0, 1e-6, X.shape)])  # equal ones count once in any case
    of = np.tile(np.arange(60), 2)
    cases = ((X, None), (twice, None), (twice, of))
    once, double, pairs = (DPCP(2, random_state=0).fit(rows, groups=g) for rows, g in cases)
    gains = [model.evidence_["gain"] for model in (once, double, pairs)]
    assert abs(gains[2] / gains[0] - 1) < 0.15
    assert gains[1] > 2 * gains[0]
    assert once.confidence_ < pairs.confidence_ < 0.95 < double.confidence_


def test_nothing_found_counts_groups_too():
    X = np.random.default_rng(0).standard_normal((4000, 5))
    alone = DPCP(random_state=0).fit(X)
    with pytest.warns(CodimensionWarning, match="only 20 groups"):
        model = DPCP(random_state=0).fit(X, groups=np.arange(4000) // 200)
    assert alone.codimension_ == model.codimension_ == 0
    assert model.confidence_ < 0.8 < alone.confidence_


def test_a_weight_is_that_of_a_group():
    X, _, of, _ = grouped(np.random.default_rng(0).integers(2, 4, 200))
    heavy = np.isin(of, np.arange(50))
    model = DPCP(2, random_state=0).fit(X, groups=of, sample_weight=1.0 + heavy)
    repeated = np.vstack([X, X[heavy]])
    ids = np.concatenate([of, of[heavy] + 1000])
    other = DPCP(2, random_state=0).fit(repeated, groups=ids)
    assert np.mean(model.labels_ == other.labels_[: len(X)]) > 0.99
    weight = np.ones(len(X))
    weight[np.flatnonzero(of == of[0])[-1]] = 2.0
    with pytest.raises(InputError, match=r"Rows 0 and \d+ are of one group, but sample_weight"):
        DPCP().fit(X, groups=of, sample_weight=weight)


def test_a_single_group_says_nothing():
    X, _, of, _ = grouped(np.full(100, 3))
    with pytest.raises(
        InputError, match=r"groups gives all 300 rows the same id.*leave groups out"
    ):
        DPCP().fit(X, groups=np.zeros(300))
    model = DPCP(random_state=0).fit(X, groups=of)
    assert len(set(model.predict(X[:3], groups=np.zeros(3)))) == 1  # of a known subspace it does


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(5), "groups has 5 ids, but X has 300 rows"),
        (np.zeros((300, 2)), r"groups has shape \(300, 2\)"),
        ("frame", "groups is 'frame'"),
        (7, "groups is 7"),
        (np.r_[np.nan, np.zeros(299)], "no id for row 0"),
        ([*range(299), None], "no id for row 299"),
        ([[1]] * 300, "cannot be compared"),
    ],
)
def test_wrong_groups(groups, message):
    X, _, of, _ = grouped(np.full(100, 3))
    with pytest.raises(InputError, match=message):
        DPCP().fit(X, groups=groups)
    model = DPCP(random_state=0).fit(X, groups=of)
    with pytest.raises(InputError, match=message):
        model.predict(X, groups=groups)


@pytest.mark.parametrize("width", [0.05, 0.2])
def test_the_limit_for_several_rows_is_exceeded_as_rarely_as_that_of_one(width):
    """Sums of log-logistic numbers, drawn; their law is approximated to second order."""
    rng = np.random.default_rng(0)
    spread = spread_of(rng.standard_normal((100, 4)))
    spread = spread._replace(middle=np.e, width=width, limit=np.exp(1 + 2 * width))
    q = np.exp(rng.logistic(1.0, width, (40_000, 4)))
    for g in (1, 2, 4):
        law = spread.of_several(np.array(g))
        sums = q[:, :g].sum(axis=1)
        assert np.median(np.log(sums)) == pytest.approx(np.log(law.middle), abs=width / 5)
        assert np.mean(sums > law.limit) == pytest.approx(special.expit(-2), abs=0.025)


def test_factor_of_a_group():
    """kappa_g A_1 = logit p + g lambda, with A_1 = logit p + lambda."""
    X, _, of, _ = grouped(np.full(300, 2), share=0.7)
    model = DPCP(random_state=0).fit(X, groups=of)
    record, A1 = model._distance_record, -model._outlier_odds["log_odds"][0]
    prior = special.logit(record["n_inliers"] / (record["n_inliers"] + record["n_outliers"]))
    g = np.arange(1, 6)
    np.testing.assert_allclose(factor(model, g) * A1, prior + g * (A1 - prior))


def test_routing_and_other_methods(tmp_path):
    X, _, of, _ = grouped(np.full(150, 2))
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPCP(random_state=0).set_fit_request(groups=True).set_predict_request(groups=True)
        routed = make_pipeline(MaxAbsScaler(), model).fit(X, groups=of)
        np.testing.assert_array_equal(routed.predict(X, groups=of), routed[-1].labels_)
        DPCP(random_state=0).fit_predict(X, groups=of)
    model = RSGM(2, random_state=0).fit(X, groups=of)
    np.testing.assert_array_equal(model.labels_, model.predict(X, groups=of))
    model = DPCP(random_state=0).fit(X, groups=of)
    model.report(tmp_path / "page.html", X, groups=of)
    n = int(np.sum(model.labels_ == 1))
    assert f"{n} of 300 rows lie near" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_tensors():
    torch = pytest.importorskip("torch")
    X, _, of, _ = grouped(np.full(150, 2))
    model = DPCP(random_state=0).fit(X, groups=of)
    other = DPCP(random_state=0).fit(torch.from_numpy(X), groups=torch.from_numpy(of))
    np.testing.assert_array_equal(other.labels_.numpy(), model.labels_)
    np.testing.assert_allclose(
        other.outlier_probability(torch.from_numpy(X), groups=of).numpy(),
        model.outlier_probability(X, groups=of),
        atol=1e-6,
    )


def test_unsorted_ids_are_numbered():
    groups = Groups.checked([3, 1, 3, 2, 1, 3], 6)
    np.testing.assert_array_equal(groups.sizes(), [3, 2, 3, 1, 2, 3])
