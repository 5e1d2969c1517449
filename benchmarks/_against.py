"""CPU times of two versions in one run: two processes are given the same fits in turn."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _suites import TIMED
from _suites.counting import grouped
from _suites.suite import Problem, Row

import perpend

WORKER = Path(__file__).with_name("_fit_worker.py")
NOW, BEFORE = "now", "before"


class Version:
    """The perpend of one `src` folder, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], source: Path) -> None:
        self.process = process
        self.about = self._reply()
        if not Path(self.about["file"]).is_relative_to(source):
            raise SystemExit(f"{source}: is no `src` folder of perpend.")

    def seconds(self, rows: Path, problem: Problem, seed: int) -> float:
        """Return the CPU seconds of a fit to the rows in a file."""
        task = {"rows": str(rows), "affine": problem.affine, "seed": seed}
        print(json.dumps(task), file=self.process.stdin, flush=True)
        return float(self._reply()["seconds"])

    def _reply(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the process that fits has ended; its error is above.")
        reply: dict[str, Any] = json.loads(line)
        return reply


@contextmanager
def started(source: Path) -> Iterator[Version]:
    """Start the process, with one thread; it ends with the block."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    with subprocess.Popen(
        [sys.executable, "-P", str(WORKER)],  # -P: the folder of benchmarks is not searched
        env={**os.environ, **threads, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Version(process, source)


def times(name: str, seeds: range, before: Path) -> Row:
    """Time all problems of a suite with this version and with the one in the folder `before`."""
    suite, rows = TIMED[name], []
    folders = {NOW: Path(perpend.__file__).parents[1], BEFORE: before.resolve()}
    with ExitStack() as stack:
        versions = {w: stack.enter_context(started(folder)) for w, folder in folders.items()}
        if versions[NOW].about["compiled"] != versions[BEFORE].about["compiled"]:
            raise SystemExit("only one of the versions has compiled kernels: build both, or none.")
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rows.npy"
        for seed in seeds:
            for case in range(suite.n_cases):
                problem = suite.draw(seed, case)
                np.save(file, problem.X)
                turns = list(versions) if len(rows) % 2 else list(reversed(versions))
                taken = {w: versions[w].seconds(file, problem, seed) for w in turns}
                rows.append({"settings": problem.settings, **taken})
                print(f"{problem.settings}: {taken[NOW]:.3f} s, {taken[BEFORE]:.3f} s", flush=True)
    names = suite.by[0] if suite.n_cases > 1 else ()
    return {
        "compiled": versions[NOW].about["compiled"],
        "rows": [
            {**settings, **_summary(some)} for settings, some in grouped(rows, names, in_order=True)
        ],
    }


def _summary(rows: list[Row]) -> Row:
    """Return medians and longest fits of both, with their ratios."""
    summary: Row = {"fits": len(rows)}
    for word, function in (("median", np.median), ("longest", np.max)):
        taken = {w: float(function([row[w] for row in rows])) for w in (NOW, BEFORE)}
        summary[word] = {w: round(value, 4) for w, value in taken.items()}
        summary[f"{word}_ratio"] = float(f"{taken[NOW] / taken[BEFORE]:.3g}")
    return summary
