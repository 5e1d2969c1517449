"""Many small launches as one: pieces of a computation are captured once and replayed.

A launch from the host costs 5 to 30 microseconds and a captured one costs the device one or two.
Captured launches work at fixed addresses, so whoever uses them owns the memory as well.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from perpend._typing import Array


class Rounds:
    """Repeats `advance`, `times` calls in a round, until all flags in `done` are set.

    `advance` works in place on memory that stays where it is, and must do nothing where the flags
    are set: the host checks one round later, so that the device never waits for it, and up to one
    round is run in vain.
    """

    def __init__(
        self, advance: Callable[[], None], done: Array, *, times: int, capture: bool
    ) -> None:
        self._advance, self._done, self._times = advance, done, times
        self._seen = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        self._replay = _capture(self._round)[0].replay if capture else self._round

    def run(self, rounds: int) -> int:
        """Run until done, at most so many rounds; return how many were run."""
        self._seen.zero_()
        before = None
        for number in range(rounds):
            self._replay()
            now = torch.cuda.Event()
            now.record()
            if before is not None:
                before.synchronize()
                if self._seen.item():
                    return number + 1
            before = now
        return rounds

    def _round(self) -> None:
        for _ in range(self._times):
            self._advance()
        # The flags only ever go up, so that a value from the next round is as good as this one's.
        self._seen.copy_(torch.amin(self._done).reshape(1), non_blocking=True)


class Replayed:
    """Calls functions of tensors through captured launches.

    ``run(function, *arguments)`` gives what ``function(*arguments)`` gives, until the same function
    is called again with arguments of the same shapes: results are overwritten then. Arguments are
    copied to where the launches expect them, unless they are themselves results of this object.
    The function must not need values on the host.
    """

    def __init__(self) -> None:
        self._pieces: dict[Any, tuple[torch.cuda.CUDAGraph, list[Array], Any]] = {}
        self._results: set[int] = set()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the function, capturing it if it is new."""
        leaves = _leaves(arguments)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        others = (leaf for leaf in leaves if not isinstance(leaf, torch.Tensor))
        shapes = ((tuple(tensor.shape), tensor.dtype) for tensor in tensors)
        key = (function, tuple(shapes), tuple(others))
        if key not in self._pieces:
            mine = tree_map_only(torch.Tensor, self._at_a_fixed_address, arguments)
            graph, result = _capture(lambda: function(*mine))
            self._results |= {id(tensor) for tensor in _tensors(result)}
            self._pieces[key] = graph, _tensors(mine), result
        graph, inputs, result = self._pieces[key]
        for own, given in zip(inputs, tensors, strict=True):
            if own is not given:
                own.copy_(given)
        graph.replay()
        return result

    def _at_a_fixed_address(self, tensor: Array) -> Array:
        return tensor if id(tensor) in self._results else tensor.clone()


def _capture(function: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """Return the launches of a function, and its result, in memory of their own."""
    # Compilation and the libraries' own set-up must not be captured: run it once before.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = function()
    return graph, result


def _tensors(values: Any) -> list[Array]:
    """Return the tensors in nested tuples."""
    return [leaf for leaf in _leaves(values) if isinstance(leaf, torch.Tensor)]


def _leaves(values: Any) -> list[Any]:
    """Return what nested tuples hold; torch's own function takes a quarter of a millisecond."""
    if not isinstance(values, tuple):
        return [values]
    return [leaf for value in values for leaf in _leaves(value)]
