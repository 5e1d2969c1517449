"""How often a grid search without `scoring` picks the true codimension.

``python benchmarks/grid_search.py [DRAWS]`` prints the share of draws in which the mean held-out
`score` of DPCP is best at the true codimension, of all from 0 to D - 1, and how far it leads.
"""

import sys
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning

D, C, N, NOISE = 15, 4, 500, 0.05  # as many outliers as inliers
DRAWS = 100
STARTS = 1_000_000  # keeps the seeds of starts apart from those of data


def main() -> None:
    """Run the draws, and print what was picked."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else DRAWS
    picked, leads = [], []
    for seed in range(draws):
        X = make_subspace(N, N, n_features=D, codimension=C, noise=NOISE, random_state=seed).X
        search = GridSearchCV(DPCP(random_state=STARTS + seed), {"codimension": range(D)}, cv=3)
        search.fit(X)
        scores = search.cv_results_["mean_test_score"]
        picked.append(search.best_params_["codimension"])
        leads.append(scores[C] - np.max(np.delete(scores, C)))
    right = picked.count(C)
    print(f"D={D} c={C} r=.5 noise={NOISE}: codimension {C} picked in {right} of {draws} draws")
    print(f"lead over the next codimension, nats a row: least {min(leads):.3f}, "
          f"median {np.median(leads):.3f}")  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore", CodimensionWarning)
    main()
