"""How a fitted model is shown and kept: in words, as a page, in pictures, in a file.

The rooms that do so are above this one; each method here is a single lazy import.
"""

from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from perpend._fitted import FittedSubspace
from perpend._learned import choose
from perpend._typing import Array
from perpend._verdict import summary, verdict, visual_block

if TYPE_CHECKING:
    from perpend.plots import SummaryDisplay


class ShownModel(FittedSubspace):
    """What every method can show of its result."""

    def choose(self, i: int) -> Self:
        """Return another one of `structures_` as a fitted model.

        The fit has kept the attributes of each of them, so this needs no data and no time. It also
        works after `perpend.load`. This model does not change.

        Parameters
        ----------
        i : int
            The index in `structures_`; negative numbers count from its end.

        Returns
        -------
        self : object
            A new model with the same parameters, whose learned attributes are those of
            ``structures_[i]``. Unless the fit chose that one itself, the new model is never sure,
            and its `doubts_` say that it was chosen by hand.

        Examples
        --------
        >>> import numpy as np
        >>> from perpend import DPCP
        >>> rng = np.random.default_rng(0)
        >>> street = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
        >>> street[:1200, 2] = rng.normal(0, 0.05, 1200)  # the road
        >>> road = DPCP(affine=True, random_state=1000).fit(street)
        >>> slab = road.choose(1)
        >>> bool(slab.threshold_ > 5 * road.threshold_)
        True
        """
        check_is_fitted(self)
        return choose(self, i)

    def summary(self) -> str:
        """Return the result in a few lines of text.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return summary(self)

    def _sk_visual_block_(self) -> Any:
        """Return the block in scikit-learn's HTML; after a fit the verdict is its caption."""
        return visual_block(self, verdict(self) if hasattr(self, "labels_") else None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that `perpend.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path
            The file, usually ``.npz``. An existing file is replaced once the new one is complete.
        """
        from perpend.persistence import save

        check_is_fitted(self)
        save(self, path)

    def report(
        self,
        path: str | PathLike[str],
        X: Array | None = None,
        *,
        title: str | None = None,
        groups: Any = None,
    ) -> None:
        """Write one HTML page about the result: verdict, evidence, pictures, outliers, equation.

        Parameters
        ----------
        path : str or path
            The file. It holds the whole page and needs no network.
        X : array-like of shape (n_samples, n_features), optional
            The rows of the fit, or others. Without them the page shows no distances and no rows.
            Columns without names are counted from 1 on the page: "column 1" is ``X[:, 0]``.
        title : str, optional
            The heading of the page.
        groups : array-like of shape (n_samples,), optional
            Ids of rows that are inliers or outliers together, as in `fit`.
        """
        from perpend.report import write_report

        check_is_fitted(self)
        write_report(path, self, X, title=title, groups=groups)

    def plot(self) -> "SummaryDisplay":
        """Draw four pictures that show whether the result can be trusted.

        They show what decided the codimension (the profile of scales or, if that was clear, the
        gap in the singular values of the directions); the rows' distances with the threshold and
        the two groups; how the loops converged; and how the inliers spread along and across the
        subspace. ``plt.show()`` and notebooks show the figure. It needs matplotlib:
        ``pip install 'perpend[plots]'``.

        Returns
        -------
        perpend.plots.SummaryDisplay
            With `figure_`, the four panels in `ax_`, and a `description` in words.

        Examples
        --------
        >>> from perpend import DPCP
        >>> from perpend.datasets import make_subspace
        >>> X = make_subspace(300, 100, n_features=8, codimension=4, random_state=0).X
        >>> display = DPCP(random_state=1).fit(X).plot()
        >>> print(display.verdict)
        Sure (confidence 1.00): a subspace of dimension 4 in 8 features, codimension 4;
        100 of 400 rows (25.0 %) are outliers.
        """
        from perpend.plots import SummaryDisplay

        return SummaryDisplay.from_estimator(self)
