import numpy as np
import pytest

from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.theory import (
    Schedule,
    Values,
    average_height,
    discrete_psgm,
    lemma6,
    outlier_error_bound,
    projected_starts,
    spans_complement,
    statistics,
)


def problem(sizes, k, seed):
    N, M, D, c = sizes
    data = make_subspace(N, M, n_features=D, codimension=c, random_state=seed)
    B0 = random_directions(np.random.default_rng(seed + 1000), D, k)
    return data.X[data.y == 1], data.X[data.y == -1], B0, data.normals.T


SCHEDULES = {
    "constant": lambda top: np.full(60, 0.3 * top),
    "geometric": lambda top: Schedule(0.9 * top, 0.7, 20, 5).steps(150),
    "diminishing": lambda top: 0.5 * top / np.sqrt(1 + np.arange(100)),
    "one for each start": lambda top: np.random.default_rng(0).uniform(0, 0.8 * top, (50, 7)),
    "none": lambda top: np.zeros(0),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("sizes", [(300, 200, 8, 3), (20, 200, 8, 3), (100, 80, 5, 1)])
def test_the_identity_holds_at_every_length(name, sizes, seed):
    X_in, X_out, B0, normals = problem(sizes, 7, seed)
    steps = SCHEDULES[name](1 / (len(X_out) * average_height(B0.shape[0])))
    run = discrete_psgm(X_in, X_out, B0, normals, steps=steps)
    reached = projected_starts(run.B, normals)
    implied = projected_starts(B0, normals, run.delta)
    # rounding grows with the size of delta, of which the identity takes a difference
    scale = 1 + np.max(np.linalg.norm(run.delta, axis=0))
    np.testing.assert_allclose(reached, implied, atol=1e-12 * scale)
    if len(steps) and normals.shape[1] > 1:  # on a line there is nowhere to turn
        assert np.max(np.abs(reached - projected_starts(B0, normals))) > 1e-3  # delta is felt


def test_the_recursion_is_the_sum_of_the_paper(seed):
    X_in, X_out, B0, normals = problem((40, 30, 4, 2), 1, seed)
    steps = Schedule(0.02, 0.6, 5, 3).steps(25)
    b, norms, terms = B0[:, 0], [1.0], []
    M, c_D = 30, average_height(4)
    for k, mu in enumerate(steps):
        e = X_out.T @ np.sign(X_out @ b) / M - c_D * b
        factors = [norms[j] / (1 - steps[j] * M * c_D) for j in range(k + 1)]
        terms.append(np.prod(factors) * mu * M * e)
        b = b - mu * (X_in.T @ np.sign(X_in @ b) + X_out.T @ np.sign(X_out @ b))
        norms.append(np.linalg.norm(b))
        b = b / norms[-1]
    run = discrete_psgm(X_in, X_out, B0, normals, steps=steps)
    np.testing.assert_allclose(run.B[:, 0], b, atol=1e-12)
    np.testing.assert_allclose(run.delta[:, 0], np.sum(terms, axis=0), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("M", [3, 20, 300])
def test_the_outliers_error_stays_below_its_bound(M, seed):
    for more in range(10):
        X_in, X_out, B0, normals = problem((100, M, 5, 2), 20, 100 * seed + more)
        components = np.linalg.qr(normals, mode="complete")[0][:, 2:]
        found = statistics(X_in, X_out, components, n_starts=5, n_samples=50, random_state=0)
        bound = outlier_error_bound(found.certified)
        steps = Schedule(0.5 / (M * average_height(5)), 0.7, 10, 5).steps(40)
        run = discrete_psgm(X_in, X_out, B0, normals, steps=steps)
        assert np.max(run.error) <= bound
        assert np.max(run.error) > 0.02 * bound


def test_a_mean_height_below_the_average_is_an_error_too():
    c_D = average_height(10)
    values = Values(10, 10, 5, 10, 0.3, 0.4, c_o_min=0.1, c_o_max=0.26, eta_x=0.1, eta_o=0.01)
    assert outlier_error_bound(values) == pytest.approx(0.01 + c_D - 0.1)
    higher = values._replace(c_o_max=0.5)
    assert outlier_error_bound(higher) == pytest.approx(0.01 + 0.5 - c_D)
    # outliers on one line: a start orthogonal to it never sees them, and misses c_D
    X_out = np.array([[1.0, 0, 0], [-1, 0, 0]])
    X_in, B0, normals = np.eye(3)[1:2], np.eye(3)[:, 2:], np.eye(3)[:, ::2]
    run = discrete_psgm(X_in, X_out, B0, normals, steps=np.full(3, 1e-3))
    assert run.error[0] == pytest.approx(average_height(3))


def test_without_outliers_the_projection_never_turns():
    X_in, _, B0, normals = problem((100, 0, 6, 2), 4, 0)
    run = discrete_psgm(X_in, np.zeros((0, 6)), B0, normals, steps=np.full(50, 1e-3))
    assert np.all(run.delta == 0)
    reached = projected_starts(run.B, normals)
    np.testing.assert_allclose(reached, projected_starts(B0, normals), atol=1e-12)
    assert np.all(run.tangents[-1] < run.tangents[0])


def test_too_long_steps_are_refused():
    X_in, X_out, B0, normals = problem((10, 10, 4, 2), 2, 0)
    with pytest.raises(InputError, match="M c_D"):
        discrete_psgm(X_in, X_out, B0, normals, steps=np.array([1.01 / (10 * average_height(4))]))


def test_lemma_6(seed):
    rng = np.random.default_rng(seed)
    B0 = random_directions(rng, 8, 5)
    least = np.linalg.svd(B0, compute_uv=False)[-1]
    delta = rng.standard_normal((8, 5))
    delta *= 0.999 * least / np.linalg.norm(delta, 2)
    result = lemma6(B0, delta)
    assert result.holds
    assert np.linalg.matrix_rank(B0 - delta) == 5
    assert result.singular_value == pytest.approx(least)
    # the bound is sharp: a perturbation of exactly that size can take the rank away
    U, s, Vt = np.linalg.svd(B0, full_matrices=False)
    worst = s[-1] * np.outer(U[:, -1], Vt[-1])
    assert np.linalg.matrix_rank(B0 - worst) == 4
    assert not lemma6(B0, 1.0001 * worst).holds


def test_full_rank_is_not_enough_for_the_span():
    # two independent starts in S: Lemma 6 is content, but nothing is left in the complement
    B0, delta, normals = np.eye(4)[:, :2], np.zeros((4, 2)), np.eye(4)[:, 2:]
    assert lemma6(B0, delta).holds
    assert np.linalg.matrix_rank(projected_starts(B0, normals)) == 0
    assert not spans_complement(B0, delta, normals).holds


def test_where_the_corrected_condition_holds_the_limits_span_the_complement(seed):
    held = 0
    for more in range(10):
        X_in, X_out, B0, normals = problem((600, 200, 6, 2), 10, 100 * seed + more)
        run = discrete_psgm(X_in, X_out, B0, normals, steps=np.full(40, 1e-4))
        result = spans_complement(B0, run.delta, normals)
        if result.holds:
            held += 1
            assert np.linalg.matrix_rank(projected_starts(run.B, normals), tol=1e-6) == 2
    assert held >= 5
    assert not lemma6(B0, run.delta).holds  # ten starts in six dimensions: never
