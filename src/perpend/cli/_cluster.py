"""``--scheduler ADDRESS``: a fit on the workers of a Dask cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from perpend._typing import Array
from perpend.exceptions import InputError, MissingExtraError

TIMEOUT = 30  # seconds until the scheduler must have answered


@contextmanager
def on_cluster(address: str | None) -> Iterator[Callable[[Array], Any]]:
    """Yield what gives rows to the workers of a cluster; without an address, rows stay."""
    if address is None:
        yield lambda X: X
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError(
            f"--scheduler needs {error.name}, which is not installed. "
            "Run: pip install 'perpend[dask]'"
        ) from error
    from perpend.rows.dask import spread

    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--scheduler {address}: no Dask scheduler answered within {TIMEOUT} s ({error}). "
            "Expected an address such as tcp://127.0.0.1:8786."
        ) from error
    with client:
        yield lambda X: spread(X, sum(client.nthreads().values()))
