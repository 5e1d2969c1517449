"""Orthogonal dictionaries and the sparsest vector in a subspace."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from perpend import OrthogonalDictionary, sparsest_vector
from perpend.exceptions import InputError

SEEDS = pytest.mark.parametrize("seed", range(3))


def problem(seed, n=20, share=0.3, power=1.5):
    """Bernoulli-Gaussian codes and a random orthogonal dictionary, as the field tries them."""
    rng = np.random.default_rng(seed)
    m = round(10 * n**power)
    atoms = np.linalg.qr(rng.standard_normal((n, n)))[0]
    codes = rng.standard_normal((m, n)) * (rng.random((m, n)) < share)
    return codes @ atoms, atoms


@SEEDS
def test_all_atoms_are_found(seed):
    X, atoms = problem(seed)
    model = OrthogonalDictionary(random_state=seed + 1000).fit(X)
    same = np.abs(model.components_ @ atoms.T)
    np.testing.assert_allclose(same.max(axis=0), 1, atol=1e-6)
    assert sorted(same.argmax(axis=1)) == list(range(20))
    assert model.converged_
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(20), atol=1e-12)
    codes = model.transform(X)
    assert np.mean(np.abs(codes) < 1e-6) == pytest.approx(0.7, abs=0.02)
    np.testing.assert_allclose(model.inverse_transform(codes), X, atol=1e-12)


def test_codes_that_are_not_sparse_have_no_dictionary():
    X, atoms = problem(0, n=10, share=1.0)
    with pytest.warns(Warning, match="The codes may not be sparse"):
        model = OrthogonalDictionary(random_state=0).fit(X)
    assert not model.converged_
    assert np.abs(model.components_ @ atoms.T).max(axis=0).min() < 0.9


def test_rows_must_span_the_space():
    with pytest.raises(InputError, match="3 rows of X span less than its 5 features"):
        OrthogonalDictionary().fit(np.eye(5)[:3])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([OrthogonalDictionary(random_state=0)])
def test_scikit_learn(estimator, check):
    check(estimator)


# -- the sparsest vector ---------------------------------------------------------------------------


@SEEDS
@pytest.mark.parametrize("n_nonzero", [10, 40])
def test_a_planted_vector_is_found_exactly(seed, n_nonzero):
    rng = np.random.default_rng(seed)
    sparse = np.zeros(300)
    sparse[rng.choice(300, n_nonzero, replace=False)] = rng.standard_normal(n_nonzero)
    A = np.column_stack([sparse, rng.standard_normal((300, 7))]) @ rng.standard_normal((8, 8))
    found = sparsest_vector(A, random_state=seed + 1000)
    assert found.n_nonzero == n_nonzero
    assert abs(found.vector @ sparse) == pytest.approx(np.linalg.norm(sparse), rel=1e-10)
    np.testing.assert_allclose(A @ found.coefficients, found.vector, atol=1e-8)
    assert found.objective == pytest.approx(np.abs(sparse).sum() / np.linalg.norm(sparse))


@SEEDS
def test_a_vector_with_few_zeros_is_not_found(seed):
    """The l1 norm tells vectors with many zeros from others, not one with a few."""
    rng = np.random.default_rng(seed)
    sparse = rng.standard_normal(60) * (rng.random(60) < 0.9)
    A = np.column_stack([sparse, rng.standard_normal((60, 14))])
    found = sparsest_vector(A, random_state=seed)
    assert abs(found.vector @ sparse) < 0.9 * np.linalg.norm(sparse)


@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        *[({"n_starts": n}, '"auto" or a whole number from 1 on') for n in (0, -3, 2.5, "many")],
        *[({"max_iter": n}, "a whole number from 1 on") for n in (0, -1, 2.5)],
        *[({"tol": tol}, "a number above 0") for tol in (0, -1e-9, np.nan, "small")],
    ],
    ids=str,
)
def test_options_with_which_there_is_nothing_to_descend(option, allowed):
    A = np.random.default_rng(0).standard_normal((30, 4))
    ((name, value),) = option.items()
    with pytest.raises(InputError) as caught:
        sparsest_vector(A, **option)
    assert f"{name}={value!r}; expected {allowed}" in str(caught.value)
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OrthogonalDictionary"):
        OrthogonalDictionary(**option).fit(A)


def test_one_start_and_one_step_are_enough_to_end():
    A = np.random.default_rng(0).standard_normal((30, 4))
    found = sparsest_vector(A, n_starts=1, max_iter=1, tol=1, random_state=0)
    assert np.linalg.norm(found.vector) == pytest.approx(1)
    assert found.n_nonzero <= 30


def test_columns_that_depend_on_one_another():
    with pytest.raises(InputError, match="3 columns of A have rank 2"):
        sparsest_vector(np.ones((9, 3)) * np.arange(9)[:, None] ** np.array([0, 1, 1]))
    with pytest.raises(InputError, match="finite numbers of shape"):
        sparsest_vector(np.full((3, 2), np.nan))
    one = sparsest_vector(np.array([[0.0], [3.0], [4.0]]))  # nothing to choose
    np.testing.assert_allclose(np.abs(one.vector), [0, 0.6, 0.8])
