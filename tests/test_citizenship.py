"""Every method is at home in scikit-learn: frames, pipelines, searches, routing, copies, HTML."""

import copy
import pickle
import re
from io import StringIO

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

import perpend
from helpers import PUBLISHED
from perpend import DPCP, RobustStandardizer
from perpend.callbacks import ProgressBar
from perpend.datasets import make_subspace
from perpend.estimator import METHODS, SubspaceEstimator
from perpend.exceptions import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)

NAMES = ["a", "größe", "x<y>", "d e", "e", "f"]
DATA = make_subspace(120, 80, n_features=6, codimension=2, noise=0.01, random_state=0)
METHOD = pytest.mark.parametrize("name", sorted(METHODS))
CALLS = ("predict", "transform", "distance", "score_samples", "decision_function")
CALLS += ("outlier_probability", "explain")


def method(name, **options):
    return METHODS[name](**{"codimension": 2, "random_state": 1000, **options})


def frame(kind, X=DATA.X, names=NAMES):
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame}[kind](
        dict(zip(names, X.T, strict=True))
    )


@pytest.fixture(params=["pandas", "polars"])
def kind(request):
    """A library of data frames."""
    return request.param


def assert_same_results(a, b, X):
    for attribute in CALLS:
        np.testing.assert_array_equal(getattr(a, attribute)(X), getattr(b, attribute)(X))


def test_lazy_frames_are_refused_with_the_fix():
    with pytest.raises(InputError, match=r"not computed yet. Pass X.collect\(\)\.$"):
        DPCP().fit(frame("polars").lazy())


# -- data frames -----------------------------------------------------------------------------------


@METHOD
def test_frames_in(name, kind):
    X = frame(kind)
    model, plain = method(name).fit(X), method(name).fit(np.asfortranarray(DATA.X))
    assert model.feature_names_in_.tolist() == NAMES
    for attribute in CALLS:
        found = getattr(model, attribute)(X)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, getattr(plain, attribute)(DATA.X), atol=1e-6)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


@METHOD
def test_frames_out(name, kind):
    X = frame(kind)
    library = {"pandas": pd, "polars": pl}[kind]
    model = method(name).set_output(transform=kind)
    first = model.fit_transform(X)
    for found in (first, model.transform(X)):
        assert isinstance(found, library.DataFrame)
        assert list(found.columns) == [f"{name.lower()}{i}" for i in range(4)]
        assert list(found.columns) == model.get_feature_names_out().tolist()
    np.testing.assert_allclose(first.to_numpy(), model.set_output(transform="default").transform(X))


def test_the_index_of_a_pandas_frame_stays():
    X = frame("pandas").set_index(pd.Index(np.arange(200) * 3, name="id"))
    found = method("DPCP").set_output(transform="pandas").fit_transform(X)
    pd.testing.assert_index_equal(found.index, X.index)


@METHOD
def test_coordinates_in_frames_come_back(name, kind):
    X = frame(kind)
    model = method(name).set_output(transform=kind).fit(X)
    back = model.inverse_transform(model.transform(X))
    inlier = model.labels_ == 1
    assert np.max(np.linalg.norm(back - DATA.X, axis=1)[inlier]) < 0.2
    np.testing.assert_allclose(
        np.linalg.norm(back - DATA.X, axis=1), model.distance(X), rtol=1e-6, atol=1e-9
    )


@METHOD
def test_columns_that_are_missing_or_in_another_order(name, kind):
    X = frame(kind)
    model = method(name).fit(X)
    for attribute in CALLS:
        call = getattr(model, attribute)
        with pytest.raises(ValueError, match=r"(?s)missing.*größe|feature names.*größe"):
            call(X[[n for n in NAMES if n != "größe"]])
        with pytest.raises(ValueError, match="same order"):
            call(X[NAMES[::-1]])
        with pytest.raises(ValueError, match=r"unseen at fit time"):
            call(frame(kind, names=[*NAMES[:-1], "other"]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(DATA.X)


TEXTS = [
    ("text", frame("pandas").assign(größe="text")),
    ("text", frame("polars").with_columns(größe=pl.lit("text"))),
    ("2026-02-03 00:00:00", frame("pandas").assign(größe=pd.Timestamp("2026-02-03"))),
]


@pytest.mark.parametrize(("entry", "X"), TEXTS)
def test_a_column_of_text_or_dates_is_named(entry, X):
    for model in (DPCP(), make_pipeline(RobustStandardizer(), DPCP())):
        place = re.escape(f"X[0, \"größe\"] is '{entry}'. Encode text as numbers, or drop")
        with pytest.raises(InputError, match=f"could not convert .* to float: {place}"):
            model.fit(X)


def test_weights_may_be_a_series(kind):
    X, weight = frame(kind), np.where(DATA.y == 1, 2.0, 1.0)
    series = {"pandas": pd.Series, "polars": pl.Series}[kind](weight)
    a = DPCP(random_state=1000).fit(X, sample_weight=series)
    b = DPCP(random_state=1000).fit(X, sample_weight=weight)
    assert_same_results(a, b, X)


def test_missing_values_in_a_frame_are_named(kind):
    X = DATA.X.copy()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match=r'NaN.*row 7, column "größe"'):
        DPCP().fit(frame(kind, X))


# -- pipelines -------------------------------------------------------------------------------------


@METHOD
def test_as_a_step_before_a_classifier(name, kind):
    X = frame(kind)
    y = (DATA.X @ DATA.components[0] > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(with_mean=False), method(name), LogisticRegression())
    pipeline.set_output(transform=kind).fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == [f"{name.lower()}{i}" for i in range(4)]
    assert pipeline[:-1].get_feature_names_out().tolist() == [
        f"{name.lower()}{i}" for i in range(4)
    ]
    assert pipeline.score(X, y) > 0.8
    assert len(cross_val_score(pipeline, X, y, cv=3)) == 3


@METHOD
def test_as_the_last_step(name, kind):
    X = frame(kind)
    pipeline = make_pipeline(MaxAbsScaler(), method(name)).fit(X)
    scaled = MaxAbsScaler().fit_transform(X)
    alone = method(name).fit(scaled)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    np.testing.assert_array_equal(pipeline.score_samples(X), alone.score_samples(scaled))
    np.testing.assert_array_equal(pipeline.fit_predict(X), alone.labels_)


def test_on_some_columns():
    X = frame("pandas").assign(group="g")
    some = make_column_transformer(
        (DPCP(2, random_state=1000), NAMES), verbose_feature_names_out=False
    ).set_output(transform="pandas")
    assert isinstance(some, ColumnTransformer)
    assert list(some.fit_transform(X).columns) == ["dpcp0", "dpcp1", "dpcp2", "dpcp3"]


def test_homogeneous_coordinates_before_it():
    ones = FunctionTransformer(lambda X: np.column_stack([X, np.ones(len(X))]))
    X = DATA.X + 3 * DATA.normals[0]
    pipeline = make_pipeline(ones, DPCP(random_state=1000)).fit(X)
    assert pipeline[-1].codimension_ == 2


# -- searches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scoring"),
    [*((name, "f1") for name in PUBLISHED), ("DPCP", "roc_auc"), ("DPCP", "accuracy")],
)
def test_a_grid_search_with_known_labels(name, scoring):
    grid = {"threshold": [0.05, 0.9]}
    search = GridSearchCV(method(name), grid, scoring=scoring, cv=2, error_score="raise")
    search.fit(DATA.X, DATA.y)
    if scoring != "roc_auc":  # which knows no threshold
        assert search.best_params_ == {"threshold": 0.05}
    assert search.best_score_ > 0.95
    np.testing.assert_array_equal(search.predict(DATA.X), search.best_estimator_.labels_)


def test_a_search_over_the_number_of_starts_without_labels():
    """A search may use the confidence, too."""

    def confidence(model, X, y=None):
        return model.confidence_

    grid = {"n_starts": [4, 8], "max_iter": [1, 1000]}
    search = GridSearchCV(DPCP(random_state=1000), grid, scoring=confidence, cv=2)
    search.fit(DATA.X)
    assert search.best_estimator_.codimension_ == 2
    assert search.best_score_ > 0.95


def test_steps_of_a_pipeline_can_be_searched(kind):
    pipeline = make_pipeline(MaxAbsScaler(), DPCP(random_state=1000))
    grid = {"dpcp__threshold": [0.05, 0.9], "maxabsscaler": ["passthrough", MaxAbsScaler()]}
    search = GridSearchCV(pipeline, grid, scoring="f1", cv=3, error_score="raise")
    search.fit(frame(kind), DATA.y)
    assert search.best_params_["dpcp__threshold"] == 0.05


def test_cross_validated_labels():
    found = cross_val_predict(DPCP(random_state=1000), DATA.X, DATA.y, cv=3)
    assert np.mean(found == DATA.y) > 0.97


# -- metadata routing ------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@METHOD
def test_weights_are_routed(name, routing):
    weight = np.where(DATA.y == 1, 1.0, 0.25)
    model = method(name).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(MaxAbsScaler(), model).fit(DATA.X, sample_weight=weight)
    scaled = MaxAbsScaler().fit_transform(DATA.X)
    expected = method(name).fit(scaled, sample_weight=weight)
    np.testing.assert_array_equal(pipeline[-1].normals_, expected.normals_)
    other = method(name).fit(scaled)
    assert not np.array_equal(other.normals_, expected.normals_)


def test_weights_are_routed_through_a_search(routing):
    model = DPCP(random_state=1000).set_fit_request(sample_weight=True)
    plain = make_scorer(f1_score).set_score_request(sample_weight=False)
    search = GridSearchCV(model, {"threshold": [0.05, 0.9]}, scoring=plain, cv=3)
    search.fit(DATA.X, DATA.y, sample_weight=np.ones(200))
    assert search.best_params_ == {"threshold": 0.05}


def test_weights_that_nobody_asked_for_are_refused(routing):
    pipeline = make_pipeline(MaxAbsScaler(), DPCP(random_state=1000))
    with pytest.raises(ValueError, match="sample_weight"):
        pipeline.fit(DATA.X, sample_weight=np.ones(200))


def test_a_threshold_is_routed_to_predict(routing):
    model = DPCP(random_state=1000).set_predict_request(threshold=True)
    pipeline = make_pipeline(MaxAbsScaler(), model).fit(DATA.X)
    assert np.all(pipeline.predict(DATA.X, threshold=2.0) == 1)


# -- copies ----------------------------------------------------------------------------------------


@METHOD
@pytest.mark.parametrize("affine", [False, True])
def test_copies_of_fitted_models_give_the_same_results(name, affine, kind, tmp_path):
    X = frame(kind)
    model = method(name, affine=affine).set_output(transform=kind).fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [
        copy.copy(model),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
    ]
    for other in copies:
        assert other.summary() == model.summary()
        assert_same_results(other, model, X)


@METHOD
def test_clones_are_not_fitted_and_fit_the_same(name):
    model = method(name).fit(DATA.X)
    fresh = clone(model)
    assert not hasattr(fresh, "labels_")
    assert fresh.get_params() == model.get_params()
    assert_same_results(fresh.fit(DATA.X), model, DATA.X)


# -- repr ------------------------------------------------------------------------------------------


@METHOD
def test_the_html_has_the_verdict_once_it_is_fitted(name):
    model = method(name)
    before = model._repr_html_()
    assert "confidence" not in before
    assert repr(model) == f"{name}(codimension=2, random_state=1000)"
    model.fit(DATA.X)
    html = model._repr_html_()
    n_outliers = int(np.sum(model.labels_ == -1))
    assert "codimension 2 of 6 features; " in html
    assert f"(confidence {model.confidence_:.2f})" in html
    assert f"outliers: {n_outliers} of 200 rows" in html
    assert repr(model) == f"{name}(codimension=2, random_state=1000)"
    bundle = model._repr_mimebundle_()
    assert "codimension 2 of 6 features" in bundle["text/html"]
    assert bundle["text/plain"] == repr(model)


def test_the_html_of_a_pipeline_has_the_verdict_too():
    pipeline = make_pipeline(MaxAbsScaler(), DPCP(random_state=1000)).fit(DATA.X)
    assert "codimension 2 of 6 features; sure" in pipeline._repr_html_()


def test_the_html_says_what_is_affine_and_what_is_not_sure():
    model = DPCP(affine=True, random_state=1000).fit(DATA.X + 3 * DATA.normals[0])
    assert "codimension 2 of 6 features, affine; sure" in model._repr_html_()
    model.confidence_ = 0.5
    assert "not sure (confidence 0.50)" in model._repr_html_()


def test_display_as_text():
    model = DPCP(random_state=1000).fit(DATA.X)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert model._repr_mimebundle_() == {"text/plain": "DPCP(random_state=1000)"}


def test_text_from_data_never_becomes_markup():
    evil = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><b>', "&", "e", "f"]
    model = DPCP(random_state=1000).fit(frame("pandas", names=evil))
    pipeline = make_pipeline(FunctionTransformer(), DPCP(random_state=1000))
    pipeline.fit(frame("pandas", names=evil))
    for html in (model._repr_html_(), pipeline._repr_html_()):
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert '"><b>' not in html


def test_a_model_of_several_subspaces_has_a_short_repr():
    X = np.vstack([DATA.X[DATA.y == 1], make_subspace(100, 40, n_features=6, codimension=4).X])
    found = perpend.peel(X, random_state=1000)
    assert len(repr(found)) < 400
    assert repr(found).startswith(f"Peeled({len(found.subspaces)} subspaces")
    assert len(repr(found.subspaces[0])) < 120
    subspaces, labels = found  # still a tuple
    assert subspaces is found.subspaces
    assert labels is found.labels


# -- callbacks -------------------------------------------------------------------------------------


@METHOD
@pytest.mark.parametrize("affine", [False, True])
def test_a_progress_bar_follows_and_changes_nothing(name, affine):
    from rich.console import Console

    screen = Console(file=StringIO(), force_terminal=True, width=80)
    with ProgressBar(screen) as bar:
        model = method(name, affine=affine, callback=bar).fit(DATA.X)
        again = clone(model).fit(DATA.X)  # there is one screen
    assert ", step " in screen.file.getvalue() or not METHODS[name].capabilities.iterates
    plain = method(name, affine=affine).fit(DATA.X)
    assert_same_results(model, plain, DATA.X)
    assert_same_results(again.fit(DATA.X), plain, DATA.X)  # outside the block it is silent


theirs = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


class Recorder:
    """One of scikit-learn's callbacks, which records its calls."""

    max_propagation_depth = None

    def __init__(self, stop=None):
        self.events, self.stop, self.fitted = [], stop, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.estimator_name, context.task_name))

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.events.append(("end", context.estimator_name, context.task_name))
        if isinstance(fitted_estimator, SubspaceEstimator):
            self.fitted.append(fitted_estimator.predict(X))
        return context.task_name == self.stop

    def count(self, *event):
        return self.events.count(event)


@METHOD
@pytest.mark.parametrize("affine", [False, True])
def test_callbacks_of_scikit_learn(name, affine):
    recorder, steps = Recorder(), []
    model = method(name, affine=affine, callback=lambda p: steps.append(p.stage))
    model.set_callbacks(recorder).fit(DATA.X)
    assert recorder.events[0] == "setup"
    assert recorder.events[-1] == "teardown"
    assert recorder.events[1] == ("begin", name, "fit")
    assert recorder.events[-2] == ("end", name, "fit")
    for stage in set(steps):
        assert recorder.count("end", name, stage) == recorder.count("begin", name, stage)
        assert recorder.count("end", name, stage) == steps.count(stage)
    np.testing.assert_array_equal(recorder.fitted, [model.labels_])
    assert_same_results(model, method(name, affine=affine).fit(DATA.X), DATA.X)


def test_they_can_end_a_stage():
    a, b = Recorder(), Recorder(stop="descent")
    DPCP(refine=False, random_state=1000).set_callbacks(a).fit(DATA.X)
    DPCP(refine=False, random_state=1000).set_callbacks(b).fit(DATA.X)
    assert b.count("end", "DPCP", "descent") < a.count("end", "DPCP", "descent")


def test_they_end_well_where_a_fit_fails():
    recorder = Recorder()
    model = DPCP(random_state=1000).fit(DATA.X)
    with pytest.raises(ValueError, match="NaN"):
        model.set_callbacks(recorder).fit(np.full((9, 6), np.nan))
    assert recorder.events == ["setup", ("begin", "DPCP", "fit"), "teardown"]
    assert model.codimension_ == 2


def test_they_come_down_from_a_search_and_a_pipeline():
    recorder = Recorder()
    pipeline = make_pipeline(StandardScaler(with_mean=False), DPCP(random_state=1000))
    search = GridSearchCV(pipeline, {"dpcp__threshold": [0.05, 0.9]}, scoring="f1", cv=2)
    search.set_callbacks(recorder).fit(DATA.X, DATA.y)
    assert recorder.count("begin", "DPCP", "fit") == 5  # 2 folds of 2 candidates, and the refit
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1


def test_their_bar_and_a_saved_model(tmp_path, capsys):
    model = DPCP(random_state=1000).set_callbacks(theirs.ProgressBar()).fit(DATA.X)
    assert "DPCP - fit" in capsys.readouterr().out
    model.save(tmp_path / "m.npz")
    assert_same_results(perpend.load(tmp_path / "m.npz"), model, DATA.X)
