"""The time left of a fit, with a clock that the tests set."""

from itertools import pairwise

import pytest

from perpend import _progress
from perpend.cli._progress import monitor
from perpend.solvers import Progress


@pytest.fixture
def now(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    return clock


def advance(left, now, steps, *, seconds=1.0, stage="finish", change=0.5, max_steps=100):
    """Return what is shown after each of some steps of so many seconds."""
    said = []
    for step in steps:
        now[0] += seconds
        said.append(left(Progress(stage, step, 1.0, change, 0.0, max_steps=max_steps)))
    return said


def test_steps_left_times_their_time_is_a_bound(now):
    said = advance(_progress.TimeLeft(), now, range(1, 61))
    assert said[:3] == ["", "", ""]
    for step in (10, 30, 60):
        (minutes, seconds) = said[step - 1].split()[2].split(":")
        # One step takes a second, and what is said stays for two.
        assert 0 <= 60 * int(minutes) + int(seconds) - (100 - step) <= 2
    assert said[39].startswith("at most 1:0")
    assert said[39].endswith(" left in this stage")


def test_only_the_last_steps_count(now):
    left = _progress.TimeLeft()
    advance(left, now, range(1, 41), seconds=5.0)
    assert advance(left, now, range(41, 71), seconds=1.0)[-1] == "at most 0:30 left in this stage"


def test_what_is_said_does_not_flicker(now):
    said = advance(_progress.TimeLeft(), now, range(1, 1001), seconds=0.01, max_steps=10_000)
    changes = sum(a != b for a, b in pairwise(said))
    assert said[-1].startswith("at most 1:3")
    assert changes == 4  # after 3, 5, 7 and 9 of the 10 seconds


def test_a_new_stage_begins_anew(now):
    left = _progress.TimeLeft()
    assert advance(left, now, range(1, 20))[-1]
    assert advance(left, now, [1, 2, 3], stage="polish") == ["", "", ""]
    assert advance(left, now, range(1, 20), stage="polish")[-1]
    assert advance(left, now, [5], stage="polish") == [""]  # another loop of the same name


def test_converged_descents_say_more_than_the_bound(now):
    left = _progress.TimeLeft()
    assert advance(left, now, range(1, 12), stage="descent", change=1.0)[-1].startswith(
        "at most 1:"
    )
    said = advance(left, now, range(12, 32), stage="descent", change=0.25)[-1]
    assert said == "about 0:10 left in this stage"  # a quarter of the work, three took 30 s
    late = advance(left, now, range(32, 100), stage="descent", change=0.9)[-1]
    assert late in {"about 0:01 left in this stage", "about 0:02 left in this stage"}


def test_without_a_largest_number_of_steps_nothing_is_promised(now):
    assert set(advance(_progress.TimeLeft(), now, range(1, 30), max_steps=None)) == {""}


def test_lines_have_the_bound(now, capsys):
    with monitor() as watch:
        advance(watch, now, range(1, 13))
    assert capsys.readouterr().err == "polishing, step 12: at most 1:28 left in this stage\n"


def test_the_bar_has_the_bound_beside_it_in_80_columns(now, monkeypatch):
    shown = []
    monkeypatch.setattr("rich.progress.Progress.update", lambda *_, **new: shown.append(new))
    with _progress.ProgressBar() as watch:
        advance(watch, now, range(1, 1013), max_steps=4000)
        watch.phase("writing")
    assert shown[-2]["description"] == "polishing, step 1012"
    assert shown[-2]["words"].startswith("at most 49:")
    assert shown[-1]["words"] == ""
    spinner, bar, percent, elapsed, spaces = 1, 8, 4, 7, 5
    text = max(21, len(shown[-2]["description"])) + len(shown[-2]["words"])
    assert spinner + bar + percent + elapsed + spaces + text <= 80
