"""How often a grid search without `scoring` picks the true codimension.

Counts the draws in which the mean held-out `score` of DPCP is best at the true codimension, of all
from 0 to D - 1, and by how much it leads. Run ``python benchmarks/grid_search.py`` (about ten
minutes on one core). ``--draws 5`` is a quick try, ``--store`` writes
benchmarks/results/grid_search.json.
"""

import warnings

import numpy as np
from _store import options, store
from sklearn.model_selection import GridSearchCV

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning

D, C, N, NOISE = 15, 4, 500, 0.05  # as many outliers as inliers
DRAWS, TARGET = 100, 0.95
STARTS = 1_000_000  # keeps the seeds of starts apart from those of data


def main() -> None:
    """Run the draws, and print what was picked; store it with --store."""
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    chosen = parser.parse_args()
    picked, leads = [], []
    for seed in range(chosen.draws):
        X = make_subspace(N, N, n_features=D, codimension=C, noise=NOISE, random_state=seed).X
        search = GridSearchCV(DPCP(random_state=STARTS + seed), {"codimension": range(D)}, cv=3)
        search.fit(X)
        scores = search.cv_results_["mean_test_score"]
        picked.append(search.best_params_["codimension"])
        leads.append(float(scores[C] - np.max(np.delete(scores, C))))
    right = picked.count(C)
    lead = {"least": round(min(leads), 4), "median": round(float(np.median(leads)), 4)}
    print(f"D={D} c={C} r=.5 noise={NOISE}: codimension {C} picked in {right} of {len(picked)}")
    print(f"lead over the next codimension, nats a row: {lead}")
    if chosen.store:
        setting = {"D": D, "codimension": C, "inliers": N, "outliers": N, "noise": NOISE}
        found = {"draws": len(picked), "right": right, "lead": lead}
        store("grid_search", {"target": TARGET, **setting, **found})


if __name__ == "__main__":
    warnings.simplefilter("ignore", CodimensionWarning)
    main()
