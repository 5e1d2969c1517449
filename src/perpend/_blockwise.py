"""Methods of a fitted model on the blocks of a Dask array, where they are."""

import copy
from collections.abc import Callable
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

from sklearn.utils.validation import _check_feature_names, check_is_fitted

from perpend.rows.kinds import is_dask

Method = TypeVar("Method", bound=Callable[..., Any])


def by_blocks(method: Method) -> Method:
    """Let a method that gives something for each row return a lazy Dask array of a Dask array.

    Rows of a group may be in several blocks: with groups, the values are computed at once.
    """

    @wraps(method)
    def of_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        if signature(method).bind(self, X, *args, **kwargs).arguments.get("groups") is not None:
            return method(self, X, *args, **kwargs)
        from perpend.rows.dask import mapped

        check_is_fitted(self)
        named = X._meta
        if X.shape[1] == self.n_features_in_:
            _check_feature_names(self, named, reset=False)
        unused = {"feature_names_in_", "callback", "history_", "_others"}
        unused |= {"labels_"} if self.missing == "error" else set()
        small = copy.copy(self)
        small.__dict__ = {k: v for k, v in vars(self).items() if k not in unused}
        small.__dict__["callback"] = None
        return mapped(partial(method, small), X, *args, **kwargs)

    return of_any  # type: ignore[return-value]
