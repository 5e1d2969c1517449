"""A process that fits what it is given by the perpend it finds, and returns CPU seconds.

benchmarks/_against.py starts one for each version. A line on standard input is a JSON object with
the file of the rows, `affine` and the seed; so is the reply. The first reply says which perpend
it is.
"""

import json
import sys
import time
import warnings

import numpy as np

from perpend import DPCP, __file__
from perpend.kernels import compiled


def fit(X: np.ndarray, *, affine: bool, seed: int) -> float:
    """Return the CPU seconds of one fit."""
    model = DPCP(affine=affine, random_state=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return time.process_time() - start


def main() -> None:
    """Load what fits need, say what was loaded, and reply until the input ends."""
    X = np.random.default_rng(0).standard_normal((80, 3)) * [1, 1, 0.01]
    for affine in (False, True):
        fit(X, affine=affine, seed=0)
    print(json.dumps({"file": __file__, "compiled": compiled.available()}), flush=True)
    for line in sys.stdin:
        task = json.loads(line)
        seconds = fit(np.load(task["rows"]), affine=task["affine"], seed=task["seed"])
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
