"""``perpend inspect FILE``: what is in a file; nothing is fitted."""

from typing import TYPE_CHECKING, Any

from perpend.cli import _input
from perpend.cli import _options as options
from perpend.cli._console import Lines, count, finish, listed
from perpend.cli._ids import remark_on_ids
from perpend.cli._memory import fit_memory, in_bytes, limit
from perpend.cli._progress import monitor
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.formats import Dataset

SCHEMA = 1
NAMES_IN_LINE = 12


def inspect(given: options.Input, *, json: options.Json = False) -> None:
    """Say what is in a file: format, size, gaps, and the memory that a fit needs.

    Nothing is fitted and nothing is written. If the file holds several arrays, they are listed.
    """
    with monitor() as watch, _input.opened(given, limit(None)) as source:
        watch.phase(f"reading {source.name}")
        found = _contents(source, given)
    finish(found, _lines(found, source), json=json)


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
    try:
        data = _input.read(source, given)
    except InputError:
        if len(arrays) > 1 and given.variable is None:  # one must be chosen
            return found | {"chosen": False}
        raise
    remarks = [] if given.columns else remark_on_ids(data)  # named columns are meant
    return found | {"chosen": True} | _described(data) | {"remarks": remarks}


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
        "data_bytes": n * D * data.X.itemsize,
        "fit_bytes": fit_memory(n, D, data.X.itemsize, affine=True),  # the default may be affine
        "limit_bytes": limit(None),
    }


def _lines(found: dict[str, Any], source: _input.Source) -> Lines:
    """Return the same in words."""
    arrays = [
        ("arrays" if i == 0 else "", f'"{name}" {_extent(entry["shape"])} {entry["kind"]}')
        for i, (name, entry) in enumerate(found["arrays"].items())
    ]
    if not found["chosen"]:
        return [
            ("file", f"{source.name}: {in_bytes(found['bytes'])}"),
            *arrays,
            ("next", f"choose an array: perpend inspect {source.name} --variable NAME"),
        ]
    record, feature = _input.RECORDS[found["kind"]], _input.FEATURES[found["kind"]]
    extent = f"{_extent(found['records'])} {record}s x {count(found['features'])} {feature}s"
    stored, dtype, names = found["stored_dtype"], found["dtype"], found["columns"]
    if stored not in ("", dtype):
        dtype += f" (stored as {stored})"
    gaps = (
        f"{count(found['with_missing_values'])} {record}s with NaN or infinite values, "
        f"{count(found['marked_as_no_data'])} marked as no data, {count(found['all_zero'])} all "
        "zero"
    )
    dropped = listed(found["dropped_columns"], NAMES_IN_LINE)
    too_much = found["fit_bytes"] > found["limit_bytes"]
    memory = (
        f"{in_bytes(found['data_bytes'])} of numbers; a fit needs about "
        f"{in_bytes(found['fit_bytes'])} more; the limit is {in_bytes(found['limit_bytes'])}"
        + (": too much for this machine" if too_much else "")
    )
    unnamed = "without names; --columns counts them from 1"
    policy = found["kind"] == "table" and found["with_missing_values"]
    return [
        ("file", f"{source.name}: {found['format']}, {in_bytes(found['bytes'])}"),
        *(arrays if len(arrays) > 1 else []),
        ("data", f"{found['kind']}, {extent}, {dtype}"),
        (f"{feature}s", listed(names, NAMES_IN_LINE) if names else unnamed),
        ("gaps", gaps),
        *([("left out", f"{feature}s {dropped}")] if dropped else []),
        *[("remark", remark) for remark in found["remarks"]],
        ("memory", memory),
        (
            "next",
            f"perpend fit {source.argument} -o RESULTS{' --nan drop-rows' if policy else ''}",
        ),
    ]


def _extent(shape: tuple[int, ...] | None) -> str:
    return "unreadable" if shape is None else " x ".join(map(count, shape)) or "single"
