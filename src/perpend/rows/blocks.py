"""Rows that live in blocks elsewhere: what is done with a block where it is, and in which order.

A pass over the rows is a function that a `Reducer` runs over all blocks; results come back in the
order of the blocks, and sums are added up in that order. Thus a result depends neither on who
computed it nor on when. Nothing here knows Dask: another system needs a `Reducer` of its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from threading import RLock
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import numpy as np

from perpend._typing import Array, Kernel
from perpend.exceptions import InputError
from perpend.geometry import namespace
from perpend.rows.array import MEMORY_BUDGET, ArrayRows, add, rows_of
from perpend.rows.kinds import Place, is_dask, to_numpy
from perpend.rows.lazy import LARGE_SAMPLE, MEMORY_LIMIT, Computed, LazyRows
from perpend.rows.preparation import (
    N_NORMS,
    NotFinite,
    not_finite,
    power_of_two,
    row_norms,
    without_subnormal_norms,
)
from perpend.rows.source import Kept, Scan

VIEWS = 2  # of a block that are kept ready: the rows, and the rows turned into their span
KEPT_VALUES = 2  # values of each row that are kept, of the last scans; others are computed again

Result = TypeVar("Result")


class Reducer(Protocol):
    """Runs a function over blocks of rows, wherever they are."""

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""

    def run(
        self, work: Callable[[int, "Block"], Result], only: Sequence[int] | None = None
    ) -> list[Result]:
        """Return ``work(j, block)`` for all blocks, or for some, in the order of the blocks.

        `work` can be pickled, and gives the same whenever and wherever it runs.
        """

    def weighted(self, pieces: Sequence[Array]) -> "Reducer":
        """Return the same blocks with weights, of which `pieces` has those of each block."""


class View(NamedTuple):
    """How the rows of a block are prepared; it is small and travels with every pass."""

    key: str
    normalize: bool = True
    weighted: bool = False
    weight_unit: float = 1.0
    unit: float = 1.0
    norms: Array | None = None
    device: Any = None
    fused: bool = True
    steps: tuple[tuple[Callable[..., Array], tuple[Any, ...]], ...] = ()  # functions of the rows
    turn: "tuple[View, Array] | None" = None  # rows of another view, and what multiplies them


class Recipe(NamedTuple):
    """Values of each row, by what computes them: a kernel, or "weights" or "lengths"."""

    key: str
    view: View
    kernel: Kernel | str
    params: tuple[Any, ...] = ()
    using: "tuple[Recipe, ...]" = ()


def new_key() -> str:
    """Return a name that no other view or recipe has."""
    return uuid4().hex


class Block:
    """Some rows, their weights, and views of them that are ready for the next pass.

    The memory order is fixed, as sums depend on it; what is ready stays behind when a block moves.
    """

    def __init__(self, X: Array, weight: Array | None = None) -> None:
        self.X, self.weight = np.require(X, requirements=["C", "A"]), weight
        self._views: OrderedDict[str, ArrayRows] = OrderedDict()
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = RLock()  # of what is ready: a task that was given up may run beside its double

    def __reduce__(self) -> tuple[Any, ...]:
        return Block, (self.X, self.weight)

    def __sizeof__(self) -> int:
        return int(self.X.nbytes) + (0 if self.weight is None else int(self.weight.nbytes))

    def rows(self, view: View) -> ArrayRows:
        """Return the rows as kernels see them."""

        def make() -> ArrayRows:
            if view.turn is None:
                return prepared(self.X, self.weight, view)
            before, A = view.turn
            turned = self.rows(before).mapped(A)
            assert turned is not None
            return turned

        rows: ArrayRows = self._ready(self._views, view.key, VIEWS, make)
        return rows

    def kept(self, recipe: Recipe) -> Kept:
        """Return values of each row, computed again unless they are still here."""
        rows = self.rows(recipe.view)
        values: Kept
        if isinstance(recipe.kernel, str):
            values = getattr(rows, recipe.kernel)
        else:
            make = lambda: self.scan(recipe, keep=True).kept  # noqa: E731
            values = self._ready(self._kept, recipe.key, KEPT_VALUES, make)
        return values

    def scan(self, recipe: Recipe, *, keep: bool) -> Scan:
        """Run a kernel over the rows."""
        using, rows = tuple(self.kept(one) for one in recipe.using), self.rows(recipe.view)
        assert not isinstance(recipe.kernel, str)
        scan = rows.scan(recipe.kernel, *recipe.params, using=using, keep=keep)
        if keep:
            self._ready(self._kept, recipe.key, KEPT_VALUES, lambda: scan.kept)
        return scan

    def _ready(
        self, cache: OrderedDict[str, Any], key: str, most: int, make: Callable[[], Any]
    ) -> Any:
        """Return what is in the cache, or make it; the least recently used ones are dropped."""
        with self._lock:
            value = cache.get(key)
            if value is None:
                value = cache[key] = make()
            cache.move_to_end(key)
            while len(cache) > most:
                cache.popitem(last=False)
            return value


def prepared(X: Array, weight: Array | None, view: View) -> ArrayRows:
    """Return the rows of a block as `as_rows` does, with units that all blocks share."""
    X = _through(X, view)
    xp, norms = namespace(X), row_norms(X)
    takes_part = norms > 0
    if weight is not None:
        weight = xp.asarray(weight, dtype=xp.float64, device=X.device)
        takes_part = takes_part & (weight > 0)
    if view.weighted:
        weight = xp.astype(takes_part, xp.float64) * (1.0 if weight is None else weight)
        weight = xp.astype(weight / view.weight_unit, X.dtype)
    lengths = None
    if view.normalize:
        lengths = norms
        X, norms = without_subnormal_norms(X, norms)
        divisor = xp.where(norms > 0, norms, xp.ones_like(norms))
    else:
        unit = view.unit
        divisor = xp.where(takes_part | (norms < unit), xp.full_like(norms, unit), norms)
    return rows_of(
        X,
        weight=weight if view.weighted else None,
        divisor=None if xp.all(divisor == 1) else divisor,
        store_quotients=False,  # as much memory again
        lengths=lengths,
        norms=view.norms,
        unit=view.unit,
        memory_budget=2**62,  # a block's own values always fit
        fused=view.fused,
    )


def _through(X: Array, view: View) -> Array:
    """Return the rows where they are computed on, after all steps of the view."""
    if view.device is not None:
        X = Place(X, view.device).bring(X)
    for function, args in view.steps:
        X = function(X, *args)
    return X


# -- what all blocks say together ------------------------------------------------------------------


class Facts(NamedTuple):
    """What one block says about its rows before they are scanned."""

    bad: NotFinite | None
    too_long: tuple[int, float] | None  # a row whose norm is infinite, and its largest entry
    weight: float  # the largest of rows that take part
    all_take_part: bool
    norms: Array | None  # of the rows that take part, unless all are normalised


def facts(_: int, block: Block, *, view: View, finite: bool) -> Facts:
    """Survey one block."""
    if not finite and (bad := not_finite(block.X)) is not None:
        return Facts(bad, None, 0.0, all_take_part=False, norms=None)
    X, weight = _through(block.X, view), block.weight
    norms = to_numpy(row_norms(X))
    part, too_long = norms > 0 if weight is None else (norms > 0) & (weight > 0), None
    if not np.all(np.isfinite(norms)):
        row = int(np.argmin(np.isfinite(norms)))
        too_long = row, float(np.max(np.abs(to_numpy(X[row]))))
    largest = float(np.max(weight, where=part, initial=0.0)) if weight is not None else 1.0
    return Facts(None, too_long, largest, bool(part.all()), None if view.normalize else norms[part])


def surveyed(rows: "RemoteRows", reducer: Reducer, view: View, *, weighted: bool) -> View:
    """Return the view with what blocks must share: units of weights and norms, and quantiles."""
    finite = "survey" in vars(rows)  # known by now
    first, dtype = rows.first, rows.dtype
    found = reducer.run(partial(facts, view=view, finite=finite))
    bad = [(j, one.bad) for j, one in enumerate(found) if one.bad is not None]
    if bad:
        j, one = bad[0]
        n_entries, n_rows = (sum(b[i] for _, b in bad) for i in (3, 4))
        row = int(first[j]) + one.row
        raise InputError(
            f"Input X contains {'NaN' if one.is_nan else 'inf'}: {n_entries} entries in {n_rows} "
            f"rows are NaN or inf (first: row {row}{rows.place_of(row)}, column {one.column}). "
            "Drop these rows or columns, or impute them first."
        )
    for j, said in enumerate(found):
        if said.too_long is not None:
            row, size = int(first[j]) + said.too_long[0], said.too_long[1]
            raise InputError(
                f"The norm of row {row}{rows.place_of(row)} of X is too large for {dtype}. Divide "
                f"X by a constant, for example by 1e{int(np.log10(size))}."
            )
    weighted = weighted or not all(one.all_take_part for one in found)
    largest = max((one.weight for one in found), default=0.0)
    view = view._replace(weighted=weighted)
    if weighted:
        view = view._replace(weight_unit=power_of_two(largest, far=np.finfo(dtype).maxexp / 8))
    if view.normalize:
        return view
    norms = np.concatenate([one.norms for one in found])
    if not len(norms):
        return view
    unit = power_of_two(float(np.max(norms)), far=3)
    levels = np.append((np.arange(N_NORMS) + 0.5) / N_NORMS, 1.0)  # the largest comes last
    return view._replace(unit=unit, norms=np.quantile(norms / unit, levels))


# -- rows in blocks --------------------------------------------------------------------------------


class RemoteRows(LazyRows):
    """Rows in blocks that a reducer can reach, as something that takes the place of an array.

    What is computed for each row is computed where the block is (`map`); only rows that are named
    one by one are brought here.
    """

    elsewhere = True
    how_to_raise = "Raise it by dask.config.set({'perpend.memory-limit': bytes})"

    def __init__(
        self,
        reducer: Reducer,
        sizes: Sequence[int],
        n_features: int,
        dtype: Any,
        *,
        numbers: Sequence[int],
        device: Any = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        super().__init__((int(sum(sizes)), n_features), dtype, memory_limit)
        self.reducer, self.sizes, self.numbers = reducer, list(sizes), numbers
        self.first: Array = np.cumsum([0, *sizes])
        self.on = device

    @cached_property
    def windows(self) -> list[slice]:
        """The ranges of rows in the blocks."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.first)]

    def map(self, function: Callable[..., Result], *args: Any) -> list[Result]:
        """Return ``function(rows, *args)`` of every block, in their order."""
        return self.reducer.run(partial(_apply, function=function, args=args))

    def place_of(self, row: int) -> str:
        """Say where a row is: in which block."""
        j = int(np.searchsorted(self.first, row, "right")) - 1
        return f" = row {row - self.first[j]} of block {self.numbers[j]}"

    def _read(self, start: int, stop: int) -> Array:
        return self._pick(np.arange(start, stop))

    def _pick(self, indices: Array) -> Array:
        places = split(indices, self.first)
        parts = self.reducer.run(partial(_pick, places=places), list(places)) if places else []
        return np.concatenate([np.empty((0, self.shape[1]), self.dtype), *parts])


def split(indices: Array, first: Array) -> dict[int, Array]:
    """Return the places inside of each block, for sorted row numbers."""
    ends: Array = np.searchsorted(indices, first)
    return {j: indices[a:b] - first[j] for j, (a, b) in enumerate(pairwise(ends)) if b > a}


def rows_elsewhere(
    X: Any, *, weight: Array | None, mask: Array | None, normalize: bool, fused: bool
) -> "BlockRows":
    """Return Dask's rows, or rows computed from them, as a source; as `as_rows` does."""
    if is_dask(X):
        from perpend.rows.dask import dask_rows

        X = dask_rows(X)
    D, steps = X.shape[1], list[Any]()
    while isinstance(X, Computed):
        assert not X.beside
        steps.insert(0, (X.function, X.args))
        X = X.source
    assert isinstance(X, RemoteRows)
    reducer = X.reducer
    if mask is not None and not np.all(mask):
        weight = np.asarray(mask) * (1.0 if weight is None else np.asarray(weight, dtype=float))
    if weight is not None:
        reducer = reducer.weighted(np.split(np.asarray(weight, dtype=float), X.first[1:-1]))
    view = View(new_key(), normalize=normalize, device=X.on, fused=fused, steps=tuple(steps))
    view = surveyed(X, reducer, view, weighted=weight is not None)
    return BlockRows(X, reducer, view, D)


class BlockRows:
    """Rows in blocks that a reducer can reach, prepared for kernels: a `RowSource`."""

    lifted_by: float | None = None

    def __init__(self, home: RemoteRows, reducer: Reducer, view: View, n_features: int) -> None:
        self._home, self._reducer, self._view = home, reducer, view
        self._first, self.dtype = home.first, home.dtype
        self.shape: tuple[int, int] = (home.shape[0], n_features)
        self.norms = np.ones(1) if view.norms is None else view.norms
        self.unit = view.unit
        self.weights, self.lengths = (
            self._kept(Recipe(new_key(), view, name)) for name in ("weights", "lengths")
        )

    @cached_property
    def precision(self) -> float:
        """The relative rounding error of the products in a descent."""
        return max(self._reducer.run(partial(_precision, view=self._view), [0]))

    @cached_property
    def total_weight(self) -> float:
        """The sum of the weights of all rows that take part."""
        return sum(self._reducer.run(partial(_total_weight, view=self._view)))

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        """Run `kernel` over all blocks and add up what it gives, in the order of the blocks."""
        recipes = tuple(self._recipe(one) for one in using)
        recipe = Recipe(new_key(), self._view, kernel, params, recipes)
        total = product = None
        for part in self._reducer.run(partial(_sums, recipe=recipe, keep=keep)):
            total, product = add(total, part[0]), add(product, part[1])
        return Scan(total, product, self._kept(recipe) if keep else None)

    def gather(self, kept: Kept) -> Array:
        """Bring per-row values to memory, in the order of the rows."""
        return kept.piece(slice(0, self.shape[0]))

    def take(self, indices: Array) -> Array:
        """Bring a few rows to memory, as the kernels see them."""
        return self._some(indices)[0]

    def subset(self, indices: Array) -> ArrayRows:
        """Return some rows in memory, with their weights."""
        self._home.check_room(len(indices), LARGE_SAMPLE)
        X, weight, lengths = self._some(indices)
        rows = rows_of(
            X,
            weight=weight if self._view.weighted else None,
            lengths=lengths if self._view.normalize else None,
            norms=self.norms,
            unit=self.unit,
        )
        rows.lifted_by = self.lifted_by
        return rows

    def mapped(self, A: Array) -> "BlockRows | None":
        """Return the rows times A (D, R), formed where they are; None if a block is too large."""
        R = A.shape[1]
        if max(self._home.sizes) * R * self.dtype.itemsize > MEMORY_BUDGET:
            return None
        view = self._view._replace(key=new_key(), turn=(self._view, A))
        rows = BlockRows(self._home, self._reducer, view, R)
        rows.lifted_by = self.lifted_by
        return rows

    # -- inner workings ----------------------------------------------------------------------------

    def _kept(self, recipe: Recipe) -> Kept:
        return Kept(_Values(self._reducer, self._first, recipe))

    @staticmethod
    def _recipe(kept: Kept) -> Recipe:
        assert isinstance(kept.piece, _Values)
        return kept.piece.recipe

    def _some(self, indices: Array) -> list[Array]:
        """Return some rows as kernels see them, their weights and their lengths."""
        indices = np.arange(self.shape[0])[indices]
        at, back = np.unique(indices, return_inverse=True)
        self._home.check_room(len(at))
        places = split(at, self._first)
        if not places:
            empty = np.empty((0, self.shape[1]), self.dtype)
            return [empty, empty[:, :0].sum(axis=1), empty[:, :0].sum(axis=1)]
        parts = self._reducer.run(partial(_rows, view=self._view, places=places), list(places))
        return [np.concatenate(column)[back] for column in zip(*parts, strict=True)]


class _Values:
    """Values of each row that stay with the rows, until some of them are brought here.

    It knows no `BlockRows`: blocks are given up at once when the last source of them is.
    """

    def __init__(self, reducer: Reducer, first: Array, recipe: Recipe) -> None:
        self.reducer, self.first, self.recipe = reducer, first, recipe

    def __call__(self, rows: slice) -> Array:
        first = self.first
        start, stop, _ = rows.indices(int(first[-1]))
        a, b = int(np.searchsorted(first, start, "right")) - 1, int(np.searchsorted(first, stop))
        parts = self.reducer.run(partial(_values, recipe=self.recipe), range(a, max(b, a + 1)))
        return np.concatenate(parts)[start - first[a] : stop - first[a]]


# What is run where the blocks are; `j` is the number of the block.


def _apply(_: int, block: Block, *, function: Callable[..., Result], args: Any) -> Result:
    return function(block.X, *args)


def _pick(j: int, block: Block, *, places: dict[int, Array]) -> Array:
    return block.X[places[j]]


def _sums(_: int, block: Block, *, recipe: Recipe, keep: bool) -> tuple[Any, Any]:
    return block.scan(recipe, keep=keep)[:2]


def _values(_: int, block: Block, *, recipe: Recipe) -> Array:
    kept, rows = block.kept(recipe), block.rows(recipe.view)
    return rows.gather(kept)


def _rows(j: int, block: Block, *, view: View, places: dict[int, Array]) -> tuple[Array, ...]:
    some = block.rows(view).subset(places[j])
    return (
        some.take(np.arange(some.shape[0])),
        some.gather(some.weights),
        some.gather(some.lengths),
    )


def _precision(_: int, block: Block, *, view: View) -> float:
    return block.rows(view).precision


def _total_weight(_: int, block: Block, *, view: View) -> float:
    return block.rows(view).total_weight
