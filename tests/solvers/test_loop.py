import math
from typing import NamedTuple

import pytest

from perpend.callbacks import Recorder
from perpend.exceptions import NumericalError, PerpendError
from perpend.solvers import Progress, Status, iterate


class State(NamedTuple):
    objective: float
    change: float


def halve(state):
    return State(state.objective / 2, state.change / 2)


def test_it_stops_when_the_change_falls_to_the_tolerance():
    recorder = Recorder()
    run = iterate(halve, State(8.0, 1.0), max_steps=100, tol=0.125, callback=recorder)
    assert run.status is Status.CONVERGED
    assert run.state == State(1.0, 0.125)
    assert run.n_steps == 3
    assert recorder.history.objective.tolist() == [4.0, 2.0, 1.0]


@pytest.mark.parametrize("max_steps", [0, 1, 5])
def test_it_stops_when_the_budget_is_spent(max_steps):
    run = iterate(halve, State(1.0, 1.0), max_steps=max_steps)
    assert run.status is Status.OUT_OF_ITERATIONS
    assert run.n_steps == max_steps
    assert run.state.objective == 0.5**max_steps


def test_converging_with_the_last_step_counts_as_converged():
    run = iterate(halve, State(8.0, 1.0), max_steps=3, tol=0.125)
    assert run.status is Status.CONVERGED


def test_a_state_that_needs_no_step_gets_none():
    run = iterate(halve, State(3.0, 0.0), max_steps=10)
    assert run.status is Status.CONVERGED
    assert run.state == State(3.0, 0.0)
    assert run.n_steps == 0


def test_the_callback_hears_of_every_step_and_can_stop():
    heard = []

    def callback(progress):
        heard.append(progress)
        return progress.step == 2

    run = iterate(halve, State(8.0, 1.0), max_steps=9, tol=1e-3, stage="descent", callback=callback)
    assert run.status is Status.STOPPED
    assert heard == [
        Progress("descent", 1, 4.0, 0.5, 1e-3, max_steps=9),
        Progress("descent", 2, 2.0, 0.25, 1e-3, max_steps=9),
    ]
    assert run.state == State(2.0, 0.25)
    assert run.n_steps == 2


def test_a_callback_that_returns_none_does_not_stop():
    assert iterate(halve, State(1.0, 1.0), max_steps=7, callback=lambda _: None).n_steps == 7


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("after", [0, 3])
def test_a_non_finite_objective_is_an_error(bad, after):
    def step(state):
        return State(bad if state.change == after else state.objective, state.change - 1)

    start = State(bad if after == 0 else 1.0, 5.0)
    with pytest.raises(NumericalError, match="after"):
        iterate(step, start, max_steps=100)


def test_a_numerical_error_is_also_an_arithmetic_one():
    assert issubclass(NumericalError, PerpendError)
    assert issubclass(NumericalError, ArithmeticError)


def test_an_error_in_a_step_and_an_interruption_pass_through():
    def step(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        iterate(step, State(1.0, 1.0), max_steps=1)
