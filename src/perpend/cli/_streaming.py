"""Files larger than the memory limit: rows are read block by block, and labels written so."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perpend.cli import _output
from perpend.cli._columns import (
    GAPS,
    ID_NAMES,
    LEAST_ROWS,
    NO_NAME,
    are_dates,
    idle_of,
    may_be_dates,
    without_columns,
)
from perpend.cli._console import complain, count
from perpend.cli._input import FEATURES, RECORDS, WAYS, gaps_error, without_gaps
from perpend.cli._input import read_for_fit as read_in_memory
from perpend.cli._memory import check_blocks, check_fit, fits, in_bytes, working_set
from perpend.cli._model import affine
from perpend.cli._options import STANDARDIZED, Affine, Nan, Rows, Search
from perpend.cli._scaling import wanted
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend._progress import Monitor
    from perpend._typing import Array
    from perpend.formats import Dataset, Labelled
    from perpend.formats._stream import Blocks

IDS = 10_000  # rows, about, in which ids are compared
COPIES = 2  # of rows in memory: as they are, and with norm one
LEAST_BYTES = 1 << 22  # bytes of blocks
SURVEYED = 1 << 24  # bytes of rows that are surveyed together
WRITTEN_AT_ONCE = 1 << 20  # records whose labels are written together
SHOWN = 20_000  # rows, about: what a report shows of a file that is read block by block
SCALE_PASSES = 2  # a sample, and the quartiles
SURVEYS = 1  # before the fit
OWN_PASSES = SURVEYS + 1  # and one for the labels


class Watched:
    """A reader that says how far it is."""

    def __init__(self, blocks: "Blocks", watch: "Monitor") -> None:
        self.blocks, self._watch, self._pass = blocks, watch, 0
        self.shape, self.dtype, self.name = blocks.shape, blocks.dtype, blocks.name
        if blocks.pick is not None:
            self.pick = blocks.pick

    def read(self, start: int, stop: int) -> "Array":
        """Return rows."""
        self._pass += start == 0
        self._watch.show(f"reading, pass {self._pass}", start / self.shape[0])
        return self.blocks.read(start, stop)

    def __reduce__(self) -> Any:
        """On a worker of a cluster they are the blocks alone: nobody watches there."""
        return _blocks_of, (self.blocks,)


def _blocks_of(blocks: "Blocks") -> "Blocks":
    return blocks


def is_streamed(data: "Dataset") -> bool:
    """Whether the rows are read block by block."""
    from perpend.rows.kinds import is_lazy

    return is_lazy(data.X)


def stored(blocks: "Blocks", limit: int, watch: "Monitor") -> "Dataset":
    """Return what is known of a file, with rows that are read when they are used."""
    from perpend.rows.stored import StoredRows

    return replace(blocks.about, X=StoredRows(Watched(blocks, watch), limit))


def announce(data: "Dataset", limit: int, often: str) -> None:
    """Say before the work begins how large the data is, and how often it will be read."""
    n, D = data.X.shape
    complain(
        f"{data.source}: {count(n)} {RECORDS[data.kind]}s x {count(D)} {FEATURES[data.kind]}s, "
        f"{in_bytes(data.X.nbytes)} of numbers. The memory limit is {in_bytes(limit)}, so they are "
        f"read block by block, {often}.",
        label="",
    )


def _possible(model: Any, given: Rows) -> bool:
    """Whether a method can read rows block by block."""
    from sklearn.utils import get_tags

    return (
        bool(get_tags(model).input_tags.sparse) and not model.device and given.nan is not Nan.mask
    )


def in_memory_or_not(
    blocks: "Blocks", given: Rows, how: Search, model: Any, watch: "Monitor", *, quiet: bool
) -> "Dataset":
    """Read the rows for a fit: if they are larger than the memory limit, block by block."""
    may_miss, scaled = affine(how, blocks.about) is not Affine.no, wanted(how, blocks.about)
    allowed, possible = working_set(given.memory_limit), _possible(model, given)
    if given.memory_limit is None and blocks.held > allowed:  # it can only be read as a whole
        possible = False
    if not possible or (COPIES + scaled) * blocks.nbytes <= allowed:
        data = read_in_memory(blocks.dataset(), given)
        if not possible or fits(data, given.memory_limit, affine=may_miss, scaled=scaled):
            check_fit(data, given.memory_limit, affine=may_miss, scaled=scaled)
            return data
    check_blocks(blocks.about, given.memory_limit, model)
    blocks = blocks.ready(allowed)
    check_blocks(blocks.about, given.memory_limit, model)
    often = _how_often(model, blocks, scaled=scaled, limit=allowed)
    None if quiet else announce(blocks.about, allowed, often)
    return read_for_fit(blocks, given, allowed, watch)


def _how_often(model: Any, blocks: "Blocks", *, scaled: bool, limit: int) -> str:
    """Say how often a fit will read the rows."""
    from perpend.rows.plan import PASSES, Fit, is_held

    own = OWN_PASSES + scaled * SCALE_PASSES
    if is_held(blocks.shape, blocks.dtype.itemsize, limit):
        return "twice, and then held"
    if not hasattr(model, "sample_size"):
        return f"about {own + PASSES} times, and once per iteration of {type(model).__name__}"
    return Fit.of(model).often(blocks.shape, own)


def rows_to_label(
    blocks: "Blocks",
    given: Rows,
    model: Any,
    matching: Callable[["Dataset"], list[int] | None],
    watch: "Monitor",
    *,
    quiet: bool,
) -> "Dataset":
    """Likewise for rows that a model labels; `matching` returns the columns to take."""
    allowed = working_set(given.memory_limit)
    if not _possible(model, given) or COPIES * blocks.nbytes <= allowed:
        data = blocks.dataset()
        places = matching(data)
        if places is not None:
            names = data.columns or tuple(str(j + 1) for j in range(data.X.shape[1]))
            data = replace(data, X=data.X[:, places], columns=tuple(names[j] for j in places))
        return without_gaps(data, given.nan, (Nan.drop_rows,))
    blocks = blocks.ready(allowed)
    places = matching(blocks.about)
    blocks = blocks if places is None else blocks.only(places)
    None if quiet else announce(blocks.about, allowed, f"{OWN_PASSES} times")
    if given.nan is Nan.drop_rows:
        blocks = blocks.without_gaps()
    elif (bad := survey(blocks).bad) is not None:
        raise gaps_error(blocks.about, bad, given.nan, (Nan.drop_rows,))
    return stored(blocks, max(allowed, LEAST_BYTES), watch)


# -- before the work -------------------------------------------------------------------------------


class Surveyed(NamedTuple):
    """What one pass over all rows shows."""

    bad: Any  # a NotFinite of the rows, or None
    counts: Any  # of the records with NaN, and of those that are zero
    low: "Array"  # (D,) without NaN
    high: "Array"
    finite: "Array"  # (D,) how many are
    dates: "Array"  # (D,) which columns are
    numbers: list[bool]  # columns that number the rows


def survey(blocks: "Blocks") -> Surveyed:
    """Read all rows once."""
    import numpy as np

    from perpend.formats._records import Census
    from perpend.rows.preparation import NotFinite, not_finite

    n, D = blocks.shape
    low, high, finite = np.full(D, np.nan), np.full(D, np.nan), np.zeros(D, int)
    bad: list[Any] = []
    census, sample = Census(None, blocks.dtype), []
    last: Array = np.empty((0, D))
    step: Array | None = None
    even = whole = np.ones(D, bool)
    dates = np.ones(D, bool)
    size = max(2, SURVEYED // max(1, D * blocks.dtype.itemsize))
    for begin in range(0, n, size):
        X = blocks.read(begin, min(begin + size, n))
        census.usable(X)
        low = np.fmin(low, np.fmin.reduce(X, axis=0))
        high = np.fmax(high, np.fmax.reduce(X, axis=0))
        finite += np.isfinite(X).sum(axis=0)
        dates &= may_be_dates(low, high)
        dates[dates] = are_dates(X[:, dates]).all(axis=0)
        found = not_finite(X)
        bad += [found._replace(row=begin + found.row)] if found else []
        with np.errstate(invalid="ignore"):
            whole = whole & (np.floor(X) == X).all(axis=0)
            steps = np.diff(np.vstack([last, X]), axis=0)
        step = steps[0] if step is None and len(steps) else step
        even = even & (steps == step).all(axis=0)
        last = X[-1:].copy()
        sample.append(X[:: max(1, n // IDS)].copy())  # a view would keep all rows
    some, names = np.vstack(sample), blocks.columns or (NO_NAME,) * D
    counted = even & (step is not None and step >= 1) & (n >= LEAST_ROWS)
    numbers = [
        bool(whole[j])
        and (bool(counted[j]) or bool(ID_NAMES.fullmatch(names[j]) and _differ(some[:, j])))
        for j in range(D)
    ]
    total = [sum(part) for part in zip(*(one[3:] for one in bad), strict=True)]
    first = NotFinite(*bad[0][:3], *total) if bad else None
    return Surveyed(first, census.counts(()), low, high, finite, dates, numbers)


def _differ(values: "Array") -> bool:
    import numpy as np

    return len(np.unique(values)) == len(values)


def inspected(blocks: "Blocks") -> tuple[Surveyed, dict[str, list[int]]]:
    """Survey the rows, count gaps, and return the columns that a fit leaves out as well."""
    seen = survey(blocks)
    if blocks.kind == "table":  # others were counted before their gaps were left out
        dropped = blocks.counts.dropped_columns
        blocks.counts = seen.counts._replace(dropped_columns=dropped)
    if blocks.options.columns is not None or blocks.options.format not in STANDARDIZED:
        return seen, {}  # named columns are meant
    return seen, idle_of(
        seen.low, seen.high, seen.finite, seen.dates.__getitem__, seen.numbers.__getitem__
    )


def read_for_fit(blocks: "Blocks", given: Rows, limit: int, watch: "Monitor") -> "Dataset":
    """Do in one pass what `_input.read_for_fit` does in memory."""
    (seen, gone), n = inspected(blocks), blocks.shape[0]
    if not ((seen.low != 0) | (seen.high != 0)).any():
        raise InputError(f"{blocks.name}: every value is zero, so there is nothing to find.")
    if given.nan is Nan.drop_cols:
        known = [j for columns in gone.values() for j in columns]
        gaps = [j for j, m in enumerate(seen.finite) if m < n and j not in known]
        gone |= {GAPS: gaps} if gaps else {}
    about, left = without_columns(blocks.about, gone)
    blocks = blocks.only(left) if gone else blocks
    if (seen.finite[left] < n).any():
        if given.nan is Nan.error:
            bad = survey(blocks).bad if gone else seen.bad
            raise gaps_error(replace(about, X=blocks), bad, given.nan, WAYS[1:])
        blocks = blocks.without_gaps()
    return replace(about, X=stored(blocks, limit, watch).X)


# -- after it --------------------------------------------------------------------------------------


class Written(NamedTuple):
    """What is known once the labels are written."""

    shown: "Dataset"  # all rows, or some for the report
    labelled: "Labelled"  # theirs
    note: list[str]  # about rows that are not shown
    outliers: int = 0  # in all


def write_rows(
    folder: Path, model: Any, data: "Dataset", seen: "Array", *, fitted: bool
) -> Written:
    """Label the rows, as `seen` by the model, and write the labels; `fitted` if it knows them."""
    from perpend.formats import write_labelled

    if not is_streamed(data):
        labelled = _output.label_rows(model, seen, model.labels_ if fitted else None)
        _output.write_rows(folder, data, labelled)
        return Written(data, labelled, [], int((labelled.labels == -1).sum()))
    labels = Labels(model, data, seen, folder, fitted=fitted)
    _output.write_labels(folder / _output.LABELS, labels)
    write_labelled(labels.records, labels.labelled, folder)
    labels.clear()
    shown, labelled = labels.sample
    note = (
        f"The file was read block by block. This page shows {count(len(shown.X))} of its "
        f"{count(len(seen))} {RECORDS[data.kind]}s, evenly spaced, and counts these; "
        f"{_output.LABELS} has all."
    )
    return Written(shown, labelled, [note], labels.outliers)


class Labels:
    """Labels, distances and probabilities, computed and written block by block.

    The values of all records are kept in files in `folder`; `labelled` maps them. `sample` has some
    rows with theirs, for pictures.
    """

    def __init__(
        self, model: Any, data: "Dataset", seen: Any, folder: Path, *, fitted: bool
    ) -> None:
        self._model, self._data, self._seen, self._fitted = model, data, seen, fitted
        self._folder, self.outliers = folder, 0
        self._shown: list[tuple[Array, Array, Labelled]] = []
        self._every = max(1, -(-len(seen) // SHOWN))

    def __iter__(self) -> Iterator[tuple["Array", "Labelled"]]:
        """Yield the places of rows and their labels, and keep them."""
        import numpy as np

        from perpend.formats import Labelled

        blocks, model, end = self._data.X.reader.blocks, self._model, 0
        with ExitStack() as stack:
            files = [stack.enter_context(file.open("wb")) for file in self._files()]
            for window in self._seen.windows:
                known = model.labels_[window] if self._fitted else None
                labelled = _output.label_rows(model, self._seen[window], known)
                self.outliers += int((labelled.labels == -1).sum())
                places = np.concatenate([p for _, p in blocks.places(window.start, window.stop)])
                begin, end = end, int(places[-1]) + 1
                self._keep(files, labelled, places - begin, end - begin)
                self._show(window, places, labelled)
                yield places, labelled
            rest = blocks.n_records - end
            self._keep(files, Labelled(*np.empty((3, 0))), np.empty(0, int), rest)

    def _files(self) -> list[Path]:
        return [self._folder / f"{name}.raw" for name in ("labels", "distance", "probability")]

    def _keep(self, files: list[Any], labelled: "Labelled", places: "Array", n: int) -> None:
        import numpy as np

        from perpend.formats._records import NO_DATA

        columns: list[tuple[Array, float]] = [((labelled.labels == 1).astype(np.uint8), NO_DATA)]
        columns += [(np.asarray(values, float), np.nan) for values in labelled[1:]]
        for begin in range(0, n, WRITTEN_AT_ONCE):  # there may be many records without data
            first, last = np.searchsorted(places, [begin, begin + WRITTEN_AT_ONCE])
            for file, (values, missing) in zip(files, columns, strict=True):
                full = np.full(min(WRITTEN_AT_ONCE, n - begin), missing, values.dtype)
                full[places[first:last] - begin] = values[first:last]
                file.write(full.tobytes())

    def _show(self, window: slice, places: "Array", labelled: "Labelled") -> None:
        """Keep every k-th row, or the pixels of every k-th line and column, for the report."""
        import numpy as np

        from perpend.formats import Labelled

        k, shape = self._every, self._data.shape
        if len(shape) == 2:
            k = self._every = max(1, round(k**0.5)) if not self._shown else self._every
            line, sample = np.divmod(places, shape[1])
            some = np.flatnonzero((line % k == 0) & (sample % k == 0))
            own = line[some] // k * -(-shape[1] // k) + sample[some] // k
        else:
            some = np.flatnonzero(np.arange(window.start, window.stop) % k == 0)
            own = places[some]
        rows = self._data.X[window][some]
        self._shown.append((own, rows, Labelled(*(values[some] for values in labelled))))

    @property
    def labelled(self) -> "Labelled":
        """The values of all records, in files."""
        import numpy as np

        from perpend.formats import Labelled

        kinds = (np.uint8, float, float)
        maps = [np.memmap(f, k, "r") for f, k in zip(self._files(), kinds, strict=True)]
        return Labelled(*map(np.asarray, maps))

    @property
    def records(self) -> "Dataset":
        """The file with all of its records, as the writers of labels take it."""
        from perpend.rows.stored import StoredRows

        rows = self._data.X
        return replace(self._data, X=StoredRows(rows.reader.blocks.unfiltered(), rows.memory_limit))

    @property
    def sample(self) -> tuple["Dataset", "Labelled"]:
        """Some rows and their labels, for pictures."""
        import numpy as np

        from perpend.formats import Labelled

        places, rows, values = zip(*self._shown, strict=True)
        k, shape = self._every, self._data.shape
        shape = tuple(-(-side // k) for side in shape) if len(shape) == 2 else shape
        data = replace(
            self._data, X=np.concatenate(rows), positions=np.concatenate(places), shape=shape
        )
        return data, Labelled(*(np.concatenate(part) for part in zip(*values, strict=True)))

    def clear(self) -> None:
        """Remove the files."""
        for file in self._files():
            file.unlink(missing_ok=True)
