"""What a fit costs beside the data, and what is left of one that fails."""

import tracemalloc

import numpy as np
import pytest

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import InputError


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    X = make_subspace(60, 40, n_features=5, codimension=2, random_state=0).X
    model, fresh = DPCP(random_state=0).fit(X), DPCP(random_state=0)
    before = dict(vars(model))
    for method in (model, fresh):
        with pytest.raises(InputError, match="Every row"):
            method.fit(np.zeros((4, 3)))
    assert dict(vars(model)) == before
    assert not hasattr(fresh, "n_features_in_")


def test_an_interrupted_fit_leaves_the_model_as_it_was() -> None:
    def interrupt(progress) -> None:
        raise KeyboardInterrupt

    X = make_subspace(60, 40, n_features=5, codimension=2, random_state=0).X
    model = DPCP(random_state=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert [name for name in vars(model) if name.endswith("_")] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_nothing_of_the_size_of_the_data_is_formed() -> None:
    X = make_subspace(40_000, 40_000, n_features=256, codimension=2, random_state=0).X
    model = DPCP(n_starts=3, max_iter=2, refine=False, random_state=0)
    tracemalloc.start()
    try:
        for use in (model.fit, model.predict, model.distance):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            use(X)  # rows of unit norm, which need no copy
            _, peak = tracemalloc.get_traced_memory()
            # a byte for each entry, as flags would take, is an eighth of X
            assert peak - before < X.nbytes / 8, use.__name__
    finally:
        tracemalloc.stop()
