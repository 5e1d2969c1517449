"""Carry out the whole catalogue with little memory and little time, each case in its own process.

The baseline is this process with NumPy and scikit-learn loaded; a case may take 512 MiB more.
Prints one line of JSON for each case.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from cli.bad_inputs import CASES
from cli.bad_inputs._run import carry_out, make_models

MEMORY = 512 << 20
SECONDS = 10


def main() -> None:
    """Fork for each case; the child is stopped when its time is over."""
    with tempfile.TemporaryDirectory() as name:
        make_models(Path(name))  # loads all that a fit needs
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        for number, case in enumerate(CASES):
            began = time.monotonic()
            child = os.fork()
            if child == 0:
                _run(number, Path(name), limit)
            _, status, usage = os.wait4(child, 0)
            report = {
                "case": number,
                "name": case.name,
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                "seconds": time.monotonic() - began,
                "peak_kib": usage.ru_maxrss,
            }
            print(json.dumps(report), flush=True)  # noqa: T201


def _run(number: int, models: Path, limit: int) -> None:
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        done = carry_out(CASES[number], models)
        print(json.dumps({"case": number, "done": done}), flush=True)  # noqa: T201
    except BaseException as error:  # noqa: BLE001
        print(json.dumps({"case": number, "crash": repr(error)}), flush=True)  # noqa: T201
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
