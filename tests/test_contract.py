"""What every method promises: one size in two words, one table of evidence, shared words."""

import ast
import inspect
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import perpend
from perpend import DPCP
from perpend._capabilities import NEEDS
from perpend._docs import ATTRIBUTES, EVIDENCE, PARAMETERS
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)
DATA = make_subspace(120, 80, n_features=6, codimension=2, noise=0.01, random_state=0)
WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef)
METHOD = pytest.mark.parametrize("name", sorted(METHODS))


# -- the size of the subspace ----------------------------------------------------------------------


@METHOD
@pytest.mark.parametrize("affine", [False, True])
def test_the_dimension_says_the_same_as_the_codimension(name, affine):
    a = METHODS[name](2, affine=affine, random_state=0).fit(DATA.X)
    b = METHODS[name](n_components=4, affine=affine, random_state=0).fit(DATA.X)
    np.testing.assert_array_equal(a.normals_, b.normals_)
    assert b.n_components_ == 4
    assert b.doubts_ == a.doubts_


@METHOD
def test_the_functional_form_takes_rows_and_says_so(name):
    function = getattr(perpend, METHODS[name]._function.__name__)
    with pytest.raises(InputError, match=r"rows is of type ndarray; .* Give as_rows\(X\), or use"):
        function(DATA.X, rng=np.random.default_rng(0))


@METHOD
def test_one_of_the_two_at_most(name):
    for codimension in (1, 2):
        model = METHODS[name](codimension, n_components=4)
        with pytest.raises(InputError, match=r"codimension=\d and n_components=4.*one of them"):
            model.fit(DATA.X)


@METHOD
def test_sizes_that_do_not_fit(name):
    with pytest.raises(InputError, match=r"n_components=7 is larger than .* \(6\)"):
        METHODS[name](n_components=7).fit(DATA.X)
    with pytest.raises(InputError, match=r"codimension=7 is larger than .* \(6\)"):
        METHODS[name](7).fit(DATA.X)
    with pytest.raises(ValueError, match="n_components"):
        METHODS[name](n_components=-1).fit(DATA.X)
    assert METHODS[name](n_components=6, random_state=0).fit(DATA.X).codimension_ == 0


@METHOD
@pytest.mark.parametrize("size", ["codimension", "n_components", "n_jobs"])
def test_a_boolean_is_no_number(name, size):
    with pytest.raises(ValueError, match=f"'{size}' parameter .* must be .*Got True"):
        METHODS[name](**{size: True}).fit(DATA.X)


@METHOD
def test_no_thread_at_all_is_refused(name):
    with pytest.raises(ValueError, match=r"'n_jobs' parameter .* an int other than 0\. Got 0"):
        METHODS[name](n_jobs=0).fit(DATA.X)


@pytest.mark.parametrize("name", ["n_starts", "max_iter", "sample_size"])
def test_a_boolean_is_no_number_of_starts_or_steps_or_rows(name):
    with pytest.raises(ValueError, match=f"'{name}' parameter .* must be .*Got True"):
        DPCP(**{name: True}).fit(DATA.X)


def test_a_grid_search_over_the_other_size_says_what_to_do():
    search = GridSearchCV(DPCP(codimension=2), {"n_components": [1, 2]}, cv=2)
    with pytest.raises(ValueError, match="grid search over one needs an estimator without the ot"):
        search.fit(DATA.X)


def test_several_subspaces_by_their_dimension():
    a = perpend.peel(DATA.X, estimator=DPCP(2), random_state=0)
    b = perpend.peel(DATA.X, estimator=DPCP(n_components=4), random_state=0)
    np.testing.assert_array_equal(a.labels, b.labels)


# -- capabilities ----------------------------------------------------------------------------------


@METHOD
def test_capabilities_say_what_is_so(name):
    can = METHODS[name].capabilities
    if can.needs_dimension:
        with pytest.raises(ValueError, match="codimension"):
            METHODS[name]("auto").fit(DATA.X)
    else:
        assert METHODS[name]("auto", random_state=0).fit(DATA.X).codimension_ >= 0
    moved = METHODS[name](2, affine=True, random_state=0).fit(DATA.X + 3)
    assert moved.affine_ == (can.affine != "none")
    assert hasattr(moved, "predict") == can.out_of_sample
    assert hasattr(moved, "normals_") == can.subspace
    assert {*can.needs} <= {*NEEDS}


# -- evidence --------------------------------------------------------------------------------------

PATHS = {
    "descents": lambda: DPCP(random_state=0).fit(DATA.X),
    "paper": lambda: DPCP(refine=False, random_state=0).fit(DATA.X),
    "given": lambda: DPCP(2, random_state=0).fit(DATA.X),
    "codimension 0": lambda: DPCP(0, random_state=0).fit(DATA.X),
    "affine": lambda: DPCP(affine=True, random_state=0).fit(DATA.X + 3),
    "auto": lambda: DPCP(affine="auto", random_state=0).fit(DATA.X),
    "nothing": lambda: DPCP(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 5))),
    "one column": lambda: DPCP().fit(np.arange(1.0, 9.0)[:, None]),
    **{name: lambda kind=kind: kind(2).fit(DATA.X) for name, kind in METHODS.items()},
}


@pytest.mark.parametrize("path", PATHS)
def test_the_evidence_has_the_same_keys_on_every_path(path):
    model = PATHS[path]()
    assert list(model.evidence_) == list(EVIDENCE)
    assert all(value is not None for value in model.evidence_.values())
    plain = {key for key, value in model.evidence_.items() if not isinstance(value, np.ndarray)}
    missing = {key for key in plain if math.isnan(model.evidence_[key])}
    assert missing < set(EVIDENCE)
    if path == "descents":
        of_affine = {key for key in EVIDENCE if key.startswith(("affine", "origin"))}
        assert missing == {"rank", "exact_codimension", "rows_on_smaller"} | of_affine


def test_no_key_is_made_that_the_table_does_not_have(monkeypatch):
    """A solution's evidence, before the table decides what is shown."""
    from perpend import _learned

    made, bases = set(), _learned._bases

    def listening(found, place):
        made.update(found.solution.evidence)
        return bases(found, place)

    monkeypatch.setattr(_learned, "_bases", listening)
    for fit in PATHS.values():
        fit()
    assert made <= set(EVIDENCE)
    assert len(made) > 20


# -- files -----------------------------------------------------------------------------------------


def test_the_file_of_a_method_is_short():
    """At most 200 lines outside docstrings, blank lines and comments among them."""
    for path in Path(perpend.__file__).with_name("methods").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, WITH_DOCSTRINGS)]
        documented = [node.body[0] for node in nodes if ast.get_docstring(node) is not None]
        in_docs = {i for doc in documented for i in range(doc.lineno, doc.end_lineno + 1)}
        assert len(text.splitlines()) - len(in_docs) <= 200, path.name


# -- words -----------------------------------------------------------------------------------------


@METHOD
def test_every_parameter_and_attribute_is_explained_in_full(name):
    doc = METHODS[name].__doc__
    for parameter in inspect.signature(METHODS[name]).parameters:
        assert f"\n{parameter} : " in doc
    for attribute in ATTRIBUTES:
        assert f"\n{attribute} : " in doc
    for key in EVIDENCE:
        assert f'"{key}": ' in doc
    assert doc.index("Parameters\n---") < doc.index("Attributes\n---")
    assert "{default}" not in doc


@METHOD
def test_every_name_of_a_step_rule_is_explained(name):
    for constraint in METHODS[name]._parameter_constraints.get("step", []):
        for option in getattr(constraint, "options", ()):
            assert METHODS[name].__doc__.count(f'"{option}"') >= 2  # listed, and described


def test_the_guide_has_every_key_of_the_evidence():
    page = (Path(__file__).parents[1] / "docs" / "guide" / "confidence.md").read_text("utf-8")
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {key.strip(" `") for cell in table for key in cell.split(",")} == set(EVIDENCE)


def test_what_is_shared_is_used():
    used = {name for kind in METHODS.values() for name in inspect.signature(kind).parameters}
    assert set(PARAMETERS) <= used


@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, "some", np.nan])
def test_a_contamination_that_is_no_share(value):
    with pytest.raises(ValueError, match=r"must be .*\[0, 1\).* or None|None or .*\[0, 1\)"):
        DPCP(contamination=value).fit(DATA.X)


def test_most_rows_may_be_outliers():
    model = DPCP(contamination=0.8, random_state=0).fit(DATA.X)
    assert np.mean(model.labels_ == -1) == pytest.approx(0.8, abs=0.01)


# -- classes below ---------------------------------------------------------------------------------


def test_a_class_below_adds_a_field_or_keeps_an_init_of_its_own(monkeypatch):
    monkeypatch.setattr("perpend.estimator.METHODS", {})

    class WithField(DPCP):
        """A parameter more."""

        bins: int = 8

    class WithInit(DPCP):
        """One parameter only."""

        def __init__(self, tol=1e-9):
            super().__init__(2, tol=tol)

    class Below(WithInit):
        """The same one, and something that it learns."""

        found_: int

    assert clone(WithField(3, bins=9)).get_params()["bins"] == 9
    assert WithField(3).codimension == 3
    assert list(inspect.signature(Below).parameters) == ["tol"]
    assert Below(1e-3).get_params() == {"tol": 1e-3}
    assert Below().codimension == 2
