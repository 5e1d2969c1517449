"""Is anything lost when ``perpend fit --resume`` is killed? Many trials, stored results.

A trial runs the command in a process of its own, ends that by ``kill -9``, and starts it again as
it was, until it ends by itself. Every other kill is at a moment drawn uniformly from the time that
an undisturbed run takes; with each kill that time becomes a quarter longer, so that a busy machine
gets through, too. The others are within a few milliseconds after the first result appears in its
folder: while results are moved there, the checkpoint is deleted, or the command says goodbye. The
state is saved every tenth of a second, not every two seconds, so that many kills hit a save. After
each kill the checkpoint is read and its checksum compared. At the end, the model and the labels are
compared byte by byte with those of the undisturbed run, and no draft may be left. Beside that: what
saving as usual costs, in a fit that nobody interrupts, and how long it takes to replay one that is
complete.

Run ``python benchmarks/checkpoints.py`` (an hour on one core). ``--trials 1`` is a quick try,
``--store`` writes benchmarks/results/checkpoints.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import hashlib
import json
import shutil
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from _store import RESULTS, hardware, options, store

import perpend
from perpend.cli import main as perpend_command
from perpend.datasets import make_subspace
from perpend.rows import journal

TRIALS, FIRST = 10, 218_000  # trials of each setting
LEAST_TRIALS, MOST_COST = 50, 1.1  # targets: of all settings, and CPU time over that without
MOST_KILLS = 100  # in a trial; with so many there is no progress
LONGER, OFTEN = 0.25, 0.1  # the growth of the time with each kill, and seconds between two saves
PLACING = 0.005  # seconds in which results are put in place, and the command ends
N, D, C, NOISE = 60_000, 20, 4, 0.01  # inliers, and as many outliers
LINEAR = ("--affine", "no")
STREAMED = "RSGM, a file of three times the limit"
SIZES = {STREAMED: 250_000}  # inliers of other settings: 80 MB
# what is fitted, the type of its rows, and how
SETTINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "RSGM": ("float64", ("--method", "RSGM", "--codimension", str(C), *LINEAR)),
    "RSGM, affine": ("float64", ("--method", "RSGM", "--codimension", str(C), "--affine", "yes")),
    "DPCP as published": ("float32", ("--no-refine", "--starts", "6", *LINEAR)),
    "DPCP-IRLS": ("float64", ("--method", "DPCPIRLS", "--codimension", str(C), *LINEAR)),
    "FMS": ("float32", ("--method", "FMS", "--codimension", str(C), *LINEAR)),
    "RSGM, read from disk": ("float32", ()),  # by Python, under a limit of 4 MiB
    STREAMED: (
        "float64",  # read block by block, and labels are written as they come
        ("--method", "RSGM", "--codimension", str(C), "--memory-limit", "27MB", *LINEAR),
    ),
}
MODELS: dict[str, dict[str, Any]] = {  # the same, in Python
    "RSGM": {"codimension": C},
    "DPCP": {"refine": False, "n_starts": 6},
    "DPCPIRLS": {"codimension": C},
}


def work(file: Path, output: Path, how: tuple[str, ...], resume: bool) -> None:
    """Be a process that fits a file: the command, or Python for rows that stay on disk."""
    journal.SECONDS = OFTEN
    checkpoint = output / "fit.checkpoint" if resume else None
    if how:
        words = ["fit", file, "-o", output, *how, "--no-report", "--quiet"]
        sys.exit(perpend_command([*map(str, words), *(["--resume"] if resume else [])]))
    output.mkdir(exist_ok=True)
    rows = perpend.open_rows(file, memory_limit="4MiB")
    model = perpend.RSGM(codimension=C, random_state=0).fit(rows, checkpoint=checkpoint)
    model.save(output / "model.npz")


def started(*args: Any) -> Any:
    """Return a process that works."""
    process = get_context("fork").Process(target=work, args=args)
    process.start()
    return process


def is_whole(checkpoint: Path) -> bool:
    """Whether the checksum at the end of the file is right."""
    content = checkpoint.read_bytes()
    return content[-72:] == b"sha256 %s\n" % hashlib.sha256(content[:-72]).hexdigest().encode()


def results_in(output: Path) -> dict[str, int]:
    """Return what is in a folder but drafts and checkpoints, by which of two equal names differ."""
    with suppress(FileNotFoundError):
        return {
            path.name: path.stat().st_ino
            for path in output.iterdir()
            if not path.name.startswith(".") and path.suffix != ".checkpoint"
        }
    return {}  # there is no folder, or one of them was moved just now


def wait_for_results(process: Any, output: Path) -> None:
    """Wait until a process puts its results in place, or ends."""
    before = results_in(output)
    while process.is_alive() and results_in(output) == before:
        pass  # a pause would miss it


def trial(file: Path, reference: Path, how: tuple[str, ...], seed: int, seconds: float) -> Any:
    """Kill the command again and again until it ends by itself; say how that went."""
    rng, output = np.random.default_rng(seed), file.parent / f"trial{seed}"
    kills = placing = corrupt = saved = 0
    names = [name for name in ("labels.csv", "model.npz") if (reference / name).exists()]
    while kills < MOST_KILLS:
        process = started(file, output, how, True)
        if kills % 2:
            wait_for_results(process, output)
            process.join(PLACING * rng.random() ** 4)  # mostly at once
        else:
            process.join(rng.uniform(0, seconds) * (1 + LONGER * kills))
        if process.exitcode is not None:
            break  # complete, or an error
        process.kill()
        process.join()
        kills += 1
        placing += bool(results_in(output))
        checkpoint = output / "fit.checkpoint"
        if checkpoint.exists():
            saved += 1
            corrupt += not is_whole(checkpoint)
    complete = all((output / name).exists() for name in names)
    equal = complete and all(
        (output / name).read_bytes() == (reference / name).read_bytes() for name in names
    )
    equal &= process.exitcode == 0 and not any(output.glob(".*"))  # nothing is left of the killed
    shutil.rmtree(output, ignore_errors=True)
    counts = {"kills": kills, "placing": placing, "found": saved, "corrupt": corrupt}
    return {**counts, "equal": int(equal)}


def run(name: str, trials: int, first: int) -> dict[str, Any]:
    """Run all trials of a setting."""
    dtype, how = SETTINGS[name]
    with tempfile.TemporaryDirectory() as folder:
        file, reference = Path(folder, "x.npy"), Path(folder, "undisturbed")
        n = SIZES.get(name, N)
        data = make_subspace(n, n, n_features=D, codimension=C, noise=NOISE, random_state=first)
        np.save(file, data.X.astype(dtype))
        begin = time.perf_counter()
        started(file, reference, how, False).join()
        seconds = time.perf_counter() - begin
        all_ = [trial(file, reference, how, first + i, seconds) for i in range(trials)]
    row: dict[str, Any] = {"dtype": dtype, "seconds": seconds, "trials": trials}
    row |= {key: sum(one[key] for one in all_) for key in all_[0]}
    kills = [one["kills"] for one in all_]
    return row | {"fewest_kills": min(kills), "most_kills": max(kills)}


def cost(name: str, first: int) -> dict[str, Any]:
    """Return the CPU time of a fit without a checkpoint and with one, the best of three each."""
    data = make_subspace(N, N, n_features=D, codimension=C, noise=NOISE, random_state=first)
    model = getattr(perpend, name)(random_state=first, **MODELS[name])

    def timed(**how: Any) -> float:
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(data.X, **how)
        return time.process_time() - begin

    plain, saving = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        for _ in range(3):
            path.unlink(missing_ok=True)
            plain.append(timed())
            saving.append(timed(checkpoint=path))
        size, replay = path.stat().st_size, timed(checkpoint=path)
    return {"plain": min(plain), "saving": min(saving), "replay": replay, "bytes": size}


def main() -> None:
    """Print the tables; store them with --store."""
    parser = options(__doc__, first=FIRST)
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of each setting")
    parser.add_argument("--only", choices=SETTINGS, help="this setting; the others stay as stored")
    chosen = parser.parse_args()
    content: dict[str, Any] = {"hardware": hardware(), "first_seed": chosen.first, "n": 2 * N}
    content |= {"D": D, "least_trials": LEAST_TRIALS, "most_cost": MOST_COST}
    content |= {"costs": {}, "settings": {}}
    if chosen.only is None:
        for name in MODELS:
            content["costs"][name] = cost(name, chosen.first)
            print(name, content["costs"][name], flush=True)
    else:
        content = json.loads((RESULTS / "checkpoints.json").read_text())
    for i, name in enumerate(SETTINGS):
        if chosen.only in (None, name):
            content["settings"][name] = run(name, chosen.trials, chosen.first + 100 * i)
            print(name, content["settings"][name], flush=True)
            if chosen.store:
                store("checkpoints", content)


if __name__ == "__main__":
    main()
