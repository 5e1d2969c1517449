"""Damage valid files at random and read them: nothing but an InputError may come of it.

    python tests/formats/fuzz.py hdf5 --runs 20000

Every file is read in a worker process with little memory to spare and an alarm, so that a crash, a
hang or a huge allocation is found, too. What goes wrong is kept in a folder, one case each.
"""

import argparse
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.io

from perpend.exceptions import InputError
from perpend.formats import read

MEMORY = 512 << 20  # bytes that a worker may take besides what its imports took
SECONDS = 20  # for one file
ODD_BYTES = (0, 1, 2, 4, 8, 15, 16, 127, 128, 254, 255)

RNG = np.random.default_rng(0)
TABLE = RNG.random((20, 4))
SCENE = RNG.integers(0, 99, (4, 5, 6)).astype("i2")


# --- valid files: name to content; the first is the one that is read ---------------------------


def _saved(save, *args, **kwargs):
    stream = io.BytesIO()
    save(stream, *args, **kwargs)
    return stream.getvalue()


def _npy():
    yield {"x.npy": _saved(np.save, TABLE)}
    yield {"x.npy": _saved(np.save, SCENE)}


def _npz():
    yield {"x.npz": _saved(np.savez, X=TABLE, y=np.ones(20))}
    yield {"x.npz": _saved(np.savez_compressed, X=TABLE, labels=SCENE[0, 0])}


def _csv():
    yield {"x.csv": b"id,a,b\n" + b"".join(b"s%d,%r,1e-3\n" % (i, i / 7) for i in range(20))}
    yield {"x.csv": b"\xef\xbb\xbf1;2\r\n3;\r\n" + b'"5";-inf\r\n' * 9}
    yield {"x.tsv": b"# remark\n" + b"1\tnan\t3\n" * 10}


def _mat():
    about = {"a": np.array([1, "b"], object)}
    for packed in (True, False):
        yield {"x.mat": _saved(scipy.io.savemat, {"X": TABLE, "s": about}, do_compression=packed)}
    yield {"x.mat": _saved(scipy.io.savemat, {"scene": SCENE, "labels": np.eye(3)})}


def _h5(data=TABLE, **kwargs):
    import h5py

    stream = io.BytesIO()
    libver = kwargs.pop("libver", None)
    with h5py.File(stream, "w", libver=libver) as file:
        file.create_dataset("group/X", data=data, **kwargs)
        file["y"] = np.ones(20)
        file["name"] = "text"
        file["soft"] = h5py.SoftLink("/group/X")
        file["group/X"].attrs["unit"] = "m"
    return stream.getvalue()


def _hdf5():
    for libver in (None, "latest"):
        yield {"x.h5": _h5(libver=libver)}
        yield {"x.h5": _h5(libver=libver, compression="gzip", shuffle=True, chunks=True)}
        yield {"x.h5": _h5(libver=libver, compression="lzf", fletcher32=True)}
        yield {"x.h5": _h5(SCENE, libver=libver, compression="gzip", maxshape=(None, 5, 6))}


def _mat73():
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.mat"
        with h5py.File(path, "w", userblock_size=512) as file:
            item = file.create_dataset("X", data=TABLE.T, compression="gzip")
            item.attrs["MATLAB_class"] = np.bytes_("double")
        content = path.read_bytes()
    yield {"x.mat": head.ljust(512, b"\0") + content[512:]}


SAMPLES = {"npy": _npy, "npz": _npz, "csv": _csv, "mat": _mat, "hdf5": _hdf5, "mat73": _mat73}


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
    samples = list(SAMPLES[name]()) if name not in _CACHE else _CACHE[name]
    _CACHE[name] = samples
    files = dict(samples[int(rng.integers(len(samples)))])
    victim = list(files)[int(rng.integers(len(files)))]
    files[victim] = damaged(files[victim], draw(rng))
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / next(iter(files)).split("/")[0]


_CACHE = {}


def attempt(path):
    """Read a file; return "" if all is well, or what happened."""
    try:
        data = read(path)
    except InputError:
        return ""
    except BaseException as error:  # noqa: BLE001  this is what we look for
        return f"{type(error).__name__}: {error}"
    good = data.X.ndim == 2 and data.X.dtype in (np.float32, np.float64) and data.X.size > 0
    return "" if good else f"shape {data.X.shape}, dtype {data.X.dtype}"


# --- the worker and its master ----------------------------------------------------------------


def limit_memory(extra):
    """Let this process take no more than `extra` bytes besides what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def work(name, first, last):
    """Read damaged files one after the other, and say on stdout how far it went."""
    with tempfile.TemporaryDirectory() as place:
        for files in SAMPLES[name]():  # imports, before the memory is limited
            for file, content in files.items():
                (Path(place) / file).parent.mkdir(parents=True, exist_ok=True)
                (Path(place) / file).write_bytes(content)
            read(Path(place) / next(iter(files)).split("/")[0])
        limit_memory(MEMORY)
        for seed in range(first, last):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                print(json.dumps([seed, None]), flush=True)
                signal.alarm(SECONDS)
                path = write_case(Path(folder), name, seed)
                problem = attempt(path)
                signal.alarm(0)
                if problem:
                    print(json.dumps([seed, problem]), flush=True)


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
