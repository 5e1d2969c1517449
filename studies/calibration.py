"""How often are sure estimates right, and right estimates sure: two suites of 600 problems.

The first suite is there while the method is changed. The second has another seed and other shares,
and only the full size runs it: ``--quick`` never does, whatever the number of problems.
"""

import re
import time
import warnings
from dataclasses import asdict

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Row, Settings, Tables
from studies import _calibration_page
from studies._calibration_suite import (
    HELD_OUT,
    OWN_DIMENSION,
    SIZE,
    TUNING,
    Problem,
    draw,
    own_normals,
    problem,
    score,
    starts,
)

QUICK = 48  # problems; the outliers are of each kind in equal shares
REASONS = re.compile(r"\(confidence [\d.]+\): (.*)\.$", re.DOTALL)


def cases(settings: Settings) -> list[Case]:
    """Return one case for each problem."""
    size = settings.seeds or (QUICK if settings.quick else SIZE)
    suites = [TUNING] if settings.quick else [TUNING, HELD_OUT]
    return [asdict(problem(suite, index)) for suite in suites for index in range(size)]


def run(case: Case) -> Tables:
    """Fit one problem and score the estimate."""
    from perpend import DPCP
    from perpend.exceptions import CodimensionWarning
    from perpend.structure import SURE

    given = Problem(**case)
    data = draw(given)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DPCP(random_state=starts(given)).fit(data.X)
    seconds = time.process_time() - start
    codimension, labels = int(model.codimension_), model.labels_
    doubts = [str(w.message) for w in caught if issubclass(w.category, CodimensionWarning)]
    found: Row = {
        "found": codimension,
        "confidence": float(model.confidence_),
        **score(given, data.y, codimension, labels)._asdict(),
        "sure": bool(model.confidence_ >= SURE),
        "labelled": int(np.sum(labels == 1)),
        "angle_inliers": _angle(model.normals_, data.normals),
        "angle_outliers": _angle(model.normals_, own_normals(given, data.X[data.y == -1])),
        "warned": bool(doubts),
        "doubts": reasons(doubts[0]) if doubts else "",
        "seconds": seconds,
    }
    return {"estimates": [{**case, **found}]}


def _angle(normals: Array, true_normals: Array | None) -> float | None:
    """Return the sine of the largest angle; 0 where one of the subspaces holds the other."""
    from perpend.metrics import principal_angles

    if true_normals is None or len(normals) == 0:
        return None
    return float(np.sin(np.max(principal_angles(normals, true_normals))))


def reasons(warning: str) -> str:
    """Return what a CodimensionWarning says behind the confidence: why, and what would help.

    >>> reasons("codimension 3 is not sure (confidence 0.90): a few rows (add some).")
    'a few rows (add some)'
    """
    found = REASONS.search(warning)
    return found.group(1) if found else warning


def cost(case: Case) -> float:
    """Return the relative time, about the seconds: long where little stands out."""
    if case["kind"] in OWN_DIMENSION:
        return 0.4
    return float(0.3 + case["D"] / 30 * (10 * case["noise"] + 2 * (case["stretch"] < 0.3)))


numbers = _calibration_page.numbers  # on the page


EXPERIMENT = Experiment(
    name="calibration",
    title="Whether sure estimates are right",
    about="how often sure estimates are right, and right ones sure, on 1200 problems",
    cases=cases,
    run=run,
    draw=_calibration_page.draw,
    cost=cost,
)
