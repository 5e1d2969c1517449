"""benchmarks/constants.py changes what it says, and benchmarks/_against.py times two versions."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from _against import times
from _suites import SUITES
from constants import SET, Change, Estimate, estimates, moves, neighbours, problems, values

import perpend
from perpend.structure import constants

FIRST = 40_000


def test_every_constant_is_changed_both_ways():
    known = values()
    assert known == {name: value for name, value in vars(constants).items() if name.isupper()}
    assert 10 < len(known) <= 45
    for name, value in known.items():
        smaller, larger = neighbours(value)
        assert smaller < value < larger, name
        assert isinstance(smaller, type(value)), name
        if 2 / 3 < value < 3 / 2 and value != 1:
            assert (value < 1) == (larger < 1) == (smaller < 1), name  # a share stays one


def test_the_set_has_problems_of_every_suite_with_few_features():
    tasks = problems(FIRST, 1)
    assert {name for name, _, _ in tasks} == set(SET)
    assert len(tasks) == len(SET) - 1 + SUITES["stretched"].n_cases
    assert all(SUITES[name].draw(seed, case).X.shape[1] <= 30 for name, seed, case in tasks)


@pytest.mark.slow
def test_a_changed_constant_reaches_the_fit():
    """No plateau is long enough to be clear, so what was sure is not."""
    tasks = [task for task in problems(FIRST, 3) if task[0] in ("slab", "gap")]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        plain, again, changed = (
            pool.submit(estimates, change, tasks).result()
            for change in (Change(), Change(), Change("LENGTH", 1000.0))
        )
    assert moves(plain, again)["moved"] == 0
    assert sum(estimate.sure for estimate in plain) > sum(estimate.sure for estimate in changed)
    assert moves(plain, changed)["sureness"] > 0
    assert any("LENGTH" in estimate.read for estimate in plain)
    assert constants.LENGTH < 1  # here nothing has changed


def test_the_constants_must_not_be_loaded_before():
    with pytest.raises(RuntimeError, match="would not follow"):
        estimates(Change(), [])


def test_moves_are_counted_by_their_kind():
    labels = np.ones(200, np.int8)
    relabelled = np.where(np.arange(200) < 3, -1, 1)
    plain = Estimate(2, sure=True, labels=labels, right=True, read=frozenset())
    others = {
        "codimension": plain._replace(codimension=3, labels=relabelled),
        "sureness": plain._replace(sure=False),
        "labels": plain._replace(labels=relabelled),
    }
    for name, other in others.items():
        counts = moves([plain, plain], [plain, other])
        assert counts["moved"] == 1
        assert {key for key in others if counts[key]} == {name}
    few = plain._replace(labels=np.where(np.arange(200) < 2, -1, 1))
    assert moves([plain], [few])["moved"] == 0  # 1 % of the rows


@pytest.mark.slow
def test_a_version_against_itself_takes_as_long(capsys):
    source = Path(perpend.__file__).parents[1]
    (row,) = times("third", range(FIRST, FIRST + 4), source)["rows"]
    assert row["fits"] == 4
    for word in ("median", "longest"):
        assert row[f"{word}_ratio"] == pytest.approx(
            row[word]["now"] / row[word]["before"], rel=0.02
        )
        assert 0.3 < row[f"{word}_ratio"] < 3  # in CPU time, so a busy machine does little
    assert capsys.readouterr().out.count(" s, ") == 4


@pytest.mark.slow
def test_a_folder_without_perpend_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no `src` folder"):
        times("third", range(1), tmp_path)
