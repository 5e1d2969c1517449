"""``perpend inspect FILE``: what is in a file; nothing is fitted."""

from typing import TYPE_CHECKING, Any

from perpend.cli import _input, _streaming
from perpend.cli import _options as options
from perpend.cli._columns import idle_columns, remarks
from perpend.cli._console import finish, page
from perpend.cli._memory import fit_memory, limit, working_set
from perpend.cli._progress import monitor
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.formats import Dataset

SCHEMA = 1
MODEL = {"header", "attributes.normals_"}  # arrays that only the file of a model has


def inspect(given: options.Input, *, json: options.Json = False) -> None:
    """Say what is in a file: format, size, gaps, and the memory that a fit needs.

    Nothing is fitted and nothing is written. If the file holds several arrays, they are listed.
    """
    with monitor() as watch, _input.opened(given, limit(None)) as source:
        watch.phase(f"reading {source.name}")
        found = _contents(source, given)
    kind = found.get("kind", "table")
    words = {"record": _input.RECORDS[kind], "feature": _input.FEATURES[kind], "source": source}
    finish(found, lambda: page("inspect", found | words), json=json)


def _contents(source: _input.Source, given: options.Input) -> dict[str, Any]:
    """Return what is printed, in this order."""
    from perpend.formats import arrays_in

    path, arrays = source.path, arrays_in(source.path, format=source.format)
    files = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
    found: dict[str, Any] = {
        "schema_version": SCHEMA,
        "command": "inspect",
        "name": source.short_name,
        "bytes": sum(one.stat().st_size for one in files if one.exists()),
        "arrays": {
            name: {"shape": entry.shape, "kind": entry.oddity or "numbers"}
            for name, entry in arrays.items()
        },
    }
    if set(arrays) >= MODEL and given.variable is None:
        from perpend._pipelines import opened
        from perpend.persistence import load

        scaled = opened(load(path))
        return found | {"chosen": False, "scalers": scaled.scalers, "model": scaled.model.summary()}
    try:
        blocks = _input.blocks(source, given)
        if large := _streaming.COPIES * blocks.nbytes > working_set(None):
            blocks = blocks.ready()
            _, idle = _streaming.inspected(blocks)
        data = blocks.about if large else blocks.dataset()
    except InputError:
        if len(arrays) > 1 and given.variable is None:  # one must be chosen
            return found | {"chosen": False}
        raise
    idle = idle if large else idle_columns(data)
    said = [] if given.columns else remarks(data, idle)  # named columns are meant
    return found | {"chosen": True} | _described(data) | {"large": large, "remarks": said}


def _described(data: "Dataset") -> dict[str, Any]:
    n, D = data.X.shape
    return {
        "format": data.format,
        "kind": data.kind,
        "records": data.shape,
        "rows": n,
        "features": D,
        "columns": data.columns,
        "dtype": str(data.X.dtype),
        "stored_dtype": data.stored_dtype,
        "with_missing_values": data.counts.nan,
        "marked_as_no_data": data.counts.ignored,
        "all_zero": data.counts.zero,
        "dropped_columns": data.counts.dropped_columns,
        "data_bytes": data.X.nbytes,
        "fit_bytes": fit_memory(n, D, data.X.dtype.itemsize, affine=True),  # it may be the default
        "limit_bytes": limit(None),
    }
