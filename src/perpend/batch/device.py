"""Descents on a CUDA device: which kernels serve, in which precision, captured or not."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.batch.arrays import Run, directly, library, like, on_cuda
from perpend.batch.descent import LOOK, Limits, Rule, Starts, descend, evaluate, first, step
from perpend.solvers import MBLSStep

PAIR_FLOOR = 2.0**-18
"""Steps below this are lost in pairs of bfloat16 numbers, which hold 16 bits of each entry: the
objective can't tell the trial from where it came."""

SMALL = 2**26
"""Bytes of rows up to which launches are captured and the memory they work in is kept: beyond, one
pass takes longer than its launch."""

KEPT = 4  # workspaces


class Plan(NamedTuple):
    """How the descents of a stack of problems are run."""

    kernels: str  # "pair" and "double": fused; "torch": two products and elementwise functions
    low: float  # the floor of the precision


def plan(X: Array, k: int, *, low_precision: bool) -> Plan:
    """Choose the kernels for unit rows X (p, n, D) and k starts."""
    if find_spec("triton") is None:
        return Plan("torch", 0.0)
    from perpend.kernels.cuda import batched

    p, n, D = X.shape
    if batched.shape(p, n, D, k, pair=low_precision, device=X.device) is None:
        return Plan("torch", 0.0)
    if low_precision:
        return Plan("pair", PAIR_FLOOR)
    # Two products of the library's own are faster in float64 once they fill the device.
    return Plan("double" if X.nbytes <= SMALL else "torch", 0.0)


def descend_on_device(
    X: Array,
    B: Array,
    rule: Rule,
    limits: Limits,
    *,
    kernels: str,
    space: "Workspace | None" = None,
) -> Starts:
    """Descend from B (p, k, D) over the unit rows X (p, n, D) until every start is at rest.

    With a workspace, X must be the same tensor in every call, and what is returned is overwritten
    by the next one.
    """
    if kernels == "torch" and space is None:
        return descend(X, B, rule, limits)
    mbls, engines = isinstance(rule, MBLSStep), {} if space is None else space.engines
    key = (kernels, rule, limits) if kernels == "torch" else (kernels, mbls)
    if key not in engines:
        engines[key] = (
            Plain(X, B, rule, limits)
            if kernels == "torch"
            else Fused(X, B, pair=kernels == "pair", mbls=mbls, capture=space is not None)
        )
    engine, run = engines[key], directly if space is None else space.run
    run(engine.begin, X, B, like(X, _constants(rule, limits)))
    engine.loop.run(-(-limits.budget // LOOK))
    end: Starts = run(engine.end)
    return end


class Workspace:
    """Memory and captured launches for problems of one shape, kept from call to call."""

    def __init__(self) -> None:
        from perpend.kernels.cuda.graph import Replayed

        self.run: Run = Replayed()
        self.engines: dict[Any, Fused | Plain] = {}


_kept: OrderedDict[Any, Workspace] = OrderedDict()


@contextmanager
def workspace(X: Array, k: int) -> Iterator[Workspace | None]:
    """Lend the workspace for X (p, n, D) and k starts; there is none for large problems.

    It is taken off the shelf while it is used: another thread makes its own.
    """
    if not on_cuda(X) or X.nbytes > SMALL:
        yield None
        return
    key = (tuple(X.shape), k, X.dtype, X.device)
    with library(X).cuda.device(X.device):
        space = _kept.pop(key, None) or Workspace()
        yield space
        library(X).cuda.current_stream().synchronize()  # before anyone else may take it
    _kept[key] = space
    while len(_kept) > KEPT:
        _kept.popitem(last=False)


class Fused:
    """The fused kernels at work on a stack of problems."""

    def __init__(self, X: Array, B: Array, *, pair: bool, mbls: bool, capture: bool) -> None:
        from perpend.kernels.cuda import batched
        from perpend.kernels.cuda.graph import Rounds

        self.kernels, self.mbls = batched, mbls
        p, n, D = X.shape
        shape = batched.shape(p, n, D, B.shape[1], pair=pair, device=X.device)
        assert shape is not None  # `plan` has looked
        self.shape, self.buffers = shape, batched.buffers(shape, X.device)
        # From Hopper on, a kernel may be launched while the one before it still runs.
        self.early = library(X).cuda.get_device_capability(X.device)[0] >= 9
        self.loop = Rounds(self.advance, self.buffers.resting, times=LOOK, capture=capture)

    def begin(self, X: Array, B: Array, constants: Array) -> None:
        """Load rows, starts and constants, and evaluate the starts."""
        self.kernels.load(self.shape, self.buffers, X, B, constants)
        self.kernels.launch_pass(self.shape, self.buffers)
        self.kernels.launch_step(self.shape, self.buffers, mbls=self.mbls, first=True)

    def advance(self) -> None:
        """Take one step with every start."""
        early = self.early
        self.kernels.launch_pass(self.shape, self.buffers, early=early)
        self.kernels.launch_step(self.shape, self.buffers, mbls=self.mbls, first=False, early=early)

    def end(self) -> Starts:
        """Return a copy of the state."""
        state = Starts(*(values.clone() for values in self.buffers[-len(Starts._fields) :]))
        return state._replace(
            n_iter=state.n_iter.long(), streak=state.streak.long(), resting=state.resting != 0
        )


class Plain:
    """The same without Triton: `perpend.batch.descent`, captured."""

    def __init__(self, X: Array, B: Array, rule: Rule, limits: Limits) -> None:
        from perpend.kernels.cuda.graph import Rounds

        self.X, self.rule, self.limits = X, rule, limits
        self.state = first(B, *evaluate(X, B), rule)
        resting = self.state.resting.view(library(X).uint8)
        self.loop = Rounds(self.advance, resting, times=LOOK, capture=True)

    def begin(self, X: Array, B: Array, _: Array) -> None:
        """Evaluate the starts; the constants are part of what is captured."""
        self._set(first(B, *evaluate(X, B), self.rule))

    def advance(self) -> None:
        """Take one step with every start."""
        self._set(step(self.state, lambda T: evaluate(self.X, T), self.rule, self.limits))

    def end(self) -> Starts:
        """Return a copy of the state."""
        return Starts(*(values.clone() for values in self.state))

    def _set(self, state: Starts) -> None:
        for new, old in zip(state, self.state, strict=True):
            old.copy_(new)


def _constants(rule: Rule, limits: Limits) -> Array:
    """Return the numbers that the step kernel asks for, in its order; on the host."""
    names = ("mu0", "armijo", "shrink", "grow", "patience", "back", "floor")
    values = [getattr(rule, name, 0.0) for name in names]
    return np.array([*values, limits.max_iter, limits.tol, limits.unseen, limits.low])
