"""Damage valid files at random and read them: nothing but an InputError may come of it.

    python tests/formats/fuzz.py hdf5 --runs 20000

Every file is read in a worker process that watches its memory and has an alarm, so that a crash, a
hang or a huge allocation is found, too. What goes wrong is kept in a folder, one case each.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import array_samples
import numpy as np
import scene_samples

from perpend.exceptions import InputError, MissingExtraError
from perpend.formats import read

MEMORY = 512 << 20  # bytes that reading a file may take
FAR_TOO_MUCH = 8 << 30  # bytes at which a worker ends, for the sake of the machine
SECONDS = 20  # for one file
ODD_BYTES = (0, 1, 2, 4, 8, 15, 16, 127, 128, 254, 255)

SAMPLES = array_samples.SAMPLES | scene_samples.SAMPLES


# --- damage -----------------------------------------------------------------------------------


def damaged(content, edits):
    """Apply edits: (what, place, value), with places relative to the length."""
    content = bytearray(content)
    for what, place, value in edits:
        if not content:
            break
        i = int(place * len(content))
        if what == "byte":
            content[i] = value % 256
        elif what == "bit":
            content[i] ^= 1 << value % 8
        elif what == "word":  # a number of 4 bytes
            content[i : i + 4] = int(value).to_bytes(8, "little")[:4]
        elif what == "cut":
            del content[i:]
        elif what == "remove":
            del content[i : i + value % 64]
        else:  # repeat
            content[i:i] = content[i : i + value % 64]
    return bytes(content)


KINDS = ("byte", "bit", "word", "cut", "remove", "repeat")


def draw(rng):
    """Edits at random, most of them a few changed bytes."""
    n = int(rng.integers(1, 6))
    whats = rng.choice(KINDS, n, p=[0.5, 0.25, 0.1, 0.05, 0.05, 0.05])
    # the places of most formats that matter are at the beginning or the end
    places = rng.choice([rng.random(n), rng.random(n) ** 4, 1 - rng.random(n) ** 4])
    odd = rng.choice(ODD_BYTES, n)
    values = np.where(rng.random(n) < 0.5, odd, rng.integers(0, 2**32, n))
    return [
        (str(w), min(float(p), 0.999999), int(v))
        for w, p, v in zip(whats, places, values, strict=True)
    ]


def write_case(folder, name, seed):
    """Write the damaged file number `seed` of a format, and return the path to read."""
    rng = np.random.default_rng([seed, 5])
    samples = valid_files(name)
    files = dict(samples[int(rng.integers(len(samples)))])
    victim = list(files)[int(rng.integers(len(files)))]
    files[victim] = damaged(files[victim], draw(rng))
    return write_files(folder, files)


@cache
def valid_files(name):
    """All valid files of a format."""
    return list(SAMPLES[name]())


def write_files(folder, files):
    """Write the files of a case, and return the path to read."""
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / next(iter(files)).split("/")[0]


def outcome(path):
    """Read a file; return "rows", "InputError", or what happened otherwise."""
    try:
        X = read(path).X
    except (InputError, MissingExtraError):  # damage may name a rare compression
        return "InputError"
    except BaseException as error:  # noqa: BLE001  this is what we look for
        return f"{type(error).__name__}: {error}"
    good = X.ndim == 2 and X.dtype in (np.float32, np.float64) and X.size > 0
    return "rows" if good else f"shape {X.shape}, dtype {X.dtype}"


FINE = ("rows", "InputError")


# --- the worker and its master ----------------------------------------------------------------


def limit_memory():
    """Let this process take no more than is far too much."""
    import resource  # not on Windows

    resource.setrlimit(resource.RLIMIT_AS, (FAR_TOO_MUCH, FAR_TOO_MUCH))


def memory(key):
    """Bytes of this process, now ("VmRSS") or at most ("VmHWM")."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])


def outcome_and_memory(path):
    """Read a file; return what came of it, and the bytes of memory that it took at most."""
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest value so far
    return outcome(path), memory("VmHWM") - before


def work(name, first, last):
    """Read damaged files one after the other, and say on stdout how far it went."""
    with tempfile.TemporaryDirectory() as place:
        for i, files in enumerate(valid_files(name)):  # imports whatever is needed
            read(write_files(Path(place) / str(i), files))
        limit_memory()
        for seed in range(first, last):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                print(json.dumps([seed, None]), flush=True)
                signal.alarm(SECONDS)
                result, taken = outcome_and_memory(write_case(Path(folder), name, seed))
                signal.alarm(0)
                if result not in FINE or taken > MEMORY:
                    print(json.dumps([seed, f"{result}, {taken >> 20} MiB"]), flush=True)


def fuzz(name, runs, first=0):
    """Run all cases; return the seeds that went wrong, with the reason."""
    problems, last = {}, first + runs
    while first < last:
        command = [sys.executable, __file__, name, "--work", str(first), str(last)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        problems.update({seed: problem for seed, problem in lines if problem})
        if done.returncode == 0:
            break
        if not lines:
            raise RuntimeError("the worker cannot read the valid files")
        crashed = lines[-1][0]
        problems[crashed] = f"worker ended with {done.returncode}"
        first = crashed + 1
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=SAMPLES)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--keep", type=Path, default=Path("fuzz"), help="folder for bad cases")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.format, *options.work)
        return
    problems = fuzz(options.format, options.runs, options.first)
    for seed, problem in problems.items():
        print(f"{options.format} {seed}: {problem}")
        write_case(options.keep / f"{options.format}-{seed}", options.format, seed)
    print(f"{options.format}: {options.runs} damaged files, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
