"""``perpend inspect FILE``: what is in a file; nothing is fitted."""

from typing import TYPE_CHECKING, Any

from perpend.cli import _input
from perpend.cli import _options as options
from perpend.cli._console import count, listed, say, say_json, table
from perpend.cli._ids import remark_on_ids
from perpend.cli._memory import fit_memory, in_bytes, limit
from perpend.cli._progress import monitor
from perpend.cli._summary import Lines
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.formats import Dataset

SCHEMA = 1
NAMES_IN_LINE = 12


def inspect(
    file: options.File,
    *,
    columns: options.Columns = None,
    variable: options.Variable = None,
    format: options.Format = None,  # noqa: A002  the option's name
    json: options.Json = False,
) -> None:
    """Say what is in a file: format, size, gaps, and the memory that a fit needs.

    Nothing is fitted and nothing is written. If the file holds several arrays, they are listed.
    """
    with monitor() as watch, _input.opened(file, format, limit(None)) as source:
        watch.phase(f"reading {source.name}")
        found = _contents(source, variable, columns)
    if json:
        say_json(found)
    else:
        say(table(_lines(found, source)))


def _contents(
    source: _input.Source, variable: str | None, columns: tuple[str, ...] | None
) -> dict[str, Any]:
    """Return what is printed, in this order."""
    from perpend.formats import arrays_in

    arrays = arrays_in(source.path, format=source.format)
    listed = {
        name: {"shape": entry.shape, "kind": entry.oddity or "numbers"}
        for name, entry in arrays.items()
    }
    found: dict[str, Any] = {
        "schema_version": SCHEMA,
        "command": "inspect",
        "name": source.name if source.is_stdin else source.path.name,
        "bytes": _size(source),
        "arrays": listed,
    }
    try:
        data = _input.read(source, variable, columns)
    except InputError:
        if len(listed) > 1 and variable is None:  # one must be chosen
            return found | {"chosen": False}
        raise
    remarks = [] if columns else remark_on_ids(data)  # named columns are meant
    return found | {"chosen": True} | _described(data) | {"remarks": remarks}


def _size(source: _input.Source) -> int:
    if source.path.is_dir():
        return sum(path.stat().st_size for path in source.path.rglob("*") if path.is_file())
    return source.path.stat().st_size if source.path.exists() else 0


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


# -- in words --------------------------------------------------------------------------------------


def _lines(found: dict[str, Any], source: _input.Source) -> Lines:
    arrays = [
        ("arrays" if i == 0 else "", f'"{name}" {_extent(entry["shape"])} {entry["kind"]}')
        for i, (name, entry) in enumerate(found["arrays"].items())
    ]
    several = len(arrays) > 1
    if not found["chosen"]:
        return [
            ("file", f"{source.name}: {in_bytes(found['bytes'])}"),
            *arrays,
            ("next", f"choose an array: perpend inspect {source.name} --variable NAME"),
        ]
    record, feature = _input.RECORDS[found["kind"]], _input.FEATURES[found["kind"]]
    extent = f"{_extent(found['records'])} {record}s x {count(found['features'])} {feature}s"
    return [
        ("file", f"{source.name}: {found['format']}, {in_bytes(found['bytes'])}"),
        *(arrays if several else []),
        ("data", f"{found['kind']}, {extent}, {_dtype(found)}"),
        *_names(found, feature),
        *_gaps(found, record, feature),
        *[("remark", remark) for remark in found["remarks"]],
        ("memory", _memory(found)),
        ("next", _next(found, source)),
    ]


def _extent(shape: tuple[int, ...] | None) -> str:
    return "unreadable" if shape is None else " x ".join(map(count, shape)) or "single"


def _dtype(found: dict[str, Any]) -> str:
    stored, used = found["stored_dtype"], found["dtype"]
    return used if stored in ("", used) else f"{used} (stored as {stored})"


def _names(found: dict[str, Any], feature: str) -> Lines:
    names = found["columns"]
    if not names:
        return [(f"{feature}s", "without names; --columns counts them from 1")]
    return [(f"{feature}s", listed(names, NAMES_IN_LINE))]


def _gaps(found: dict[str, Any], record: str, feature: str) -> Lines:
    texts = [
        f"{count(found['with_missing_values'])} {record}s with NaN or infinite values",
        f"{count(found['marked_as_no_data'])} marked as no data",
        f"{count(found['all_zero'])} all zero",
    ]
    lines = [("gaps", ", ".join(texts))]
    dropped = found["dropped_columns"]
    if dropped:
        lines.append(("left out", f"{feature}s {listed(dropped, NAMES_IN_LINE)}"))
    return lines


def _memory(found: dict[str, Any]) -> str:
    room = "" if found["fit_bytes"] <= found["limit_bytes"] else ": too much for this machine"
    return (
        f"{in_bytes(found['data_bytes'])} of numbers; a fit needs about "
        f"{in_bytes(found['fit_bytes'])} more; the limit is {in_bytes(found['limit_bytes'])}{room}"
    )


def _next(found: dict[str, Any], source: _input.Source) -> str:
    gaps = found["kind"] == "table" and found["with_missing_values"]
    policy = " --nan drop-rows" if gaps else ""
    return f"perpend fit {'-' if source.is_stdin else source.name} -o RESULTS{policy}"
