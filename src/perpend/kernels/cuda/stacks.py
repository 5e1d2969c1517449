"""Descents of stacks of problems on a CUDA device: which kernels serve, captured or not."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from perpend._typing import Array
from perpend.kernels.cuda import graph

PAIR_FLOOR = 2.0**-18
"""Steps below this are lost in pairs of bfloat16 numbers, which hold 16 bits of each entry: the
objective can't tell the trial from where it came."""

SMALL_STACK = 2**26
"""Bytes of rows up to which launches are captured and the memory they work in is kept: beyond, one
pass takes longer than its launch."""

WORKSPACES = 4  # workspaces


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
    return Plan("double" if X.nbytes <= SMALL_STACK else "torch", 0.0)


class Workspace:
    """Memory and captured launches for problems of one shape, kept from call to call."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = graph.Replayed()
        self.engines: dict[Any, Fused | Captured] = {}


_kept: OrderedDict[Any, Workspace] = OrderedDict()


@contextmanager
def workspace(X: Array, k: int) -> Iterator[Workspace | None]:
    """Lend the workspace for X (p, n, D) and k starts; there is none for large problems.

    It is taken off the shelf while it is used: another thread makes its own.
    """
    if X.nbytes > SMALL_STACK:
        yield None
        return
    key = (tuple(X.shape), k, X.dtype, X.device)
    with torch.cuda.device(X.device):
        space = _kept.pop(key, None) or Workspace()
        yield space
        torch.cuda.current_stream().synchronize()  # before anyone else may take it
    _kept[key] = space
    while len(_kept) > WORKSPACES:
        _kept.popitem(last=False)


class Fused:
    """The fused kernels at work on a stack of problems; a round of its loop is so many `times`."""

    def __init__(
        self, X: Array, B: Array, *, pair: bool, mbls: bool, times: int, capture: bool
    ) -> None:
        from perpend.kernels.cuda import batched

        self.kernels, self.mbls = batched, mbls
        (p, k, D), n = B.shape, X.shape[1]
        shape = batched.shape(p, n, D, k, pair=pair, device=X.device)
        assert shape is not None  # `plan` has looked
        self.shape, self.buffers = shape, batched.Buffers(shape, X.device)
        # From Hopper on, a kernel may be launched while the one before it still runs.
        self.early = torch.cuda.get_device_capability(X.device)[0] >= 9
        self.loop = graph.Rounds(self.advance, self.buffers.converged, times=times, capture=capture)

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

    def end(self) -> tuple[Array, ...]:
        """Return a copy of the state: its fields as the buffers have them, from `B` on."""
        now = self.buffers
        numbers = (now.B, now.f, now.v, now.slope, now.mu)
        counts = (now.streak.long(), now.n_iter.long())
        return (*(A.clone() for A in numbers), *counts, now.chord.clone(), now.converged != 0)


class Captured:
    """The same without Triton: ``start(X, B)`` and ``step(state)`` in torch, captured."""

    def __init__(
        self,
        X: Array,
        B: Array,
        start: Callable[[Array, Array], Any],
        step: Callable[[Array, Any], Any],
        *,
        times: int,
    ) -> None:
        self.X, self.start, self.step = X, start, step
        self.state = start(X, B)
        converged = self.state.converged.view(torch.uint8)
        self.loop = graph.Rounds(self.advance, converged, times=times, capture=True)

    def begin(self, X: Array, B: Array, _: Array) -> None:
        """Evaluate the starts; the constants are part of what is captured."""
        self._set(self.start(X, B))

    def advance(self) -> None:
        """Take one step with every start."""
        self._set(self.step(self.X, self.state))

    def end(self) -> tuple[Array, ...]:
        """Return a copy of the state."""
        return tuple(values.clone() for values in self.state)

    def _set(self, state: tuple[Array, ...]) -> None:
        for new, old in zip(state, self.state, strict=True):
            old.copy_(new)
