"""Carry out all cases with an input, each in its own process, with little memory and little time.

The baseline is this process with NumPy, scikit-learn and the readers loaded; a case may take
512 MiB more. Prints one line of JSON for each case.
"""

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from cli.bad_inputs import CASES, Case
from cli.bad_inputs._run import carry_out, make_models

MEMORY = 512 << 20
SECONDS = 10  # of work


def main() -> None:
    """Fork for each case; the child is stopped when its time is over."""
    with tempfile.TemporaryDirectory() as name:
        make_models(Path(name))
        _load(Path(name))
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + MEMORY
        for number, case in enumerate(CASES):
            if not is_run(case):
                continue
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


def is_run(case: Case) -> bool:
    """Whether there is an input that could be large, and what reads it."""
    return bool(case.path or case.stdin) and not (case.needs and find_spec(case.needs) is None)


def _load(models: Path) -> None:
    """Load what the cases need: whatever a child imports, the next one must import again."""
    plain = [case for case in CASES if is_run(case) and not case.forbidden and not case.without]
    kinds = {(Path(case.path).suffix, case.args[0]): case for case in plain}
    for case in kinds.values():
        carry_out(case, models)
    gc.freeze()  # a collection in a child would copy this process's memory


def _run(number: int, models: Path, limit: int) -> None:
    signal.alarm(12 * SECONDS)  # the machine may be busy with something else
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
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
