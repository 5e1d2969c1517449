"""Rows larger than memory: time, memory and passes of a fit from disk.

Two files of float32 rows, 100 columns, codimension 5, 50 % outliers:

- 4 million rows under ``memory_limit="256MiB"``, beside the fit of the same rows in memory and a
  plain reading of the file as often as the fit passes over it, in turn in the same run. Memory is
  the largest anonymous resident set; pages of the file that the system keeps do not count, it takes
  them back when it likes. The labels must be the same.
- 5 GiB in a control group whose memory the system limits to 512 MiB (with everything, Python
  included), fitted and labelled: in Python, and by ``perpend fit``, which also writes all labels.

Run ``python benchmarks/disk.py`` (some minutes, 20 GB of disk in ``--folder``); ``--quick`` takes a
tenth of the rows, ``--store`` writes benchmarks/results/disk.json. The second part needs the right
to make a control group; where that is missing, RLIMIT_DATA takes its place.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from _store import hardware, options, store

from perpend import DPCP, open_rows
from perpend.cli import main as perpend_command
from perpend.geometry import complement, orthonormal
from perpend.metrics import subspace_error

D, C, NOISE, BLOCK, SEED = 100, 5, 0.01, 50_000, 219_020
LIMIT, SYSTEM_LIMIT, LIMIT_INSIDE = "256MiB", 512 * 2**20, "128MiB"
ROWS, LARGE, ROUNDS = 4_000_000, 5 * 2**30 // (4 * D) + 1, 3
COMMAND = "command"  # instead of a limit: by ``perpend fit``
GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


def normals(seed: int) -> Any:
    """Return the true normals (D, C)."""
    return orthonormal(np.random.default_rng(seed).standard_normal((D, C)))


def write_file(path: Path, n: int, seed: int) -> None:
    """Write rows in blocks."""
    U, rng = complement(normals(seed)).astype(np.float32), np.random.default_rng(seed + 1)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n, D))
    for start in range(0, n, BLOCK):
        X = rng.standard_normal((min(BLOCK, n - start), D), dtype=np.float32)
        inlier = rng.random(len(X)) < 0.5
        noise = rng.standard_normal((int(inlier.sum()), D), dtype=np.float32)
        X[inlier] = X[inlier] @ U @ U.T + np.float32(NOISE) * noise
        out[start : start + len(X)] = X
    out.flush()


def anonymous() -> int:
    """Return the anonymous part of the resident set in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(x.split()[1]) for x in lines if x.startswith("RssAnon"))


def worker(path: str, how: str) -> None:
    """Fit, and print what it took as JSON."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], anonymous())

    threading.Thread(target=watch, daemon=True).start()
    start = time.perf_counter()
    found = by_command(path) if how == COMMAND else by_fit(path, how)
    seconds = time.perf_counter() - start
    done.set()
    print(json.dumps({"seconds": seconds, "anonymous_mib": round(peak[0] / 2**20, 1), **found}))


def by_fit(path: str, limit: str) -> dict[str, Any]:
    """Fit in Python, in memory or under a limit."""
    X: Any = np.load(path) if limit == "memory" else open_rows(path, memory_limit=limit)
    model = DPCP(random_state=0).fit(X)
    return {
        "passes": round(getattr(X, "passes", 0.0), 2),
        "codimension": model.codimension_,
        "confidence": round(float(model.confidence_), 4),
        "error": float(subspace_error(model.normals_, normals(SEED).T)),
        "inliers": int((model.labels_ == 1).sum()),
        "labels": hashlib.sha256(model.labels_.tobytes()).hexdigest()[:16],
    }


def by_command(path: str) -> dict[str, Any]:
    """Fit by the command, which may find any affine subspace and writes a label for each row."""
    folder = Path(f"{path}-results")
    words = ["fit", path, "-o", str(folder), "--no-report", "--quiet"]
    if code := perpend_command([*words, "--memory-limit", LIMIT_INSIDE]):
        sys.exit(code)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    with (folder / "labels.csv").open("rb") as stream:
        inliers = sum(line.endswith(b",1\n") for line in stream)
    passes = round(result["blocks"]["passes"], 2)
    return {"passes": passes, "codimension": result["codimension"], "inliers": inliers}


def run(path: Path, how: str, enter: Any = None) -> dict[str, Any]:
    """Run a worker in a process of its own."""
    command = [sys.executable, __file__, "--worker", str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=enter)
    if done.returncode:
        return {"failed": done.returncode, "says": done.stderr[-300:]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def read_seconds(path: Path) -> float:
    """Return the time of one plain reading of a file."""
    start = time.perf_counter()
    with path.open("rb", buffering=0) as stream:
        buffer = bytearray(2**22)
        while stream.readinto(buffer):
            pass
    return time.perf_counter() - start


def limited() -> tuple[str, Any, Any]:
    """Return what limits a process, how it enters, and how the limit is taken away."""
    for root, name in zip(GROUPS, ("memory.limit_in_bytes", "memory.max"), strict=True):
        group = root / f"perpend-benchmark-{os.getpid()}"
        try:
            group.mkdir()
            (group / name).write_text(str(SYSTEM_LIMIT), encoding="ascii")
        except OSError:
            if group.exists():
                group.rmdir()
            continue

        def enter(group: Path = group) -> None:
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

        return "control group", enter, group.rmdir
    both = (SYSTEM_LIMIT, SYSTEM_LIMIT)
    return "RLIMIT_DATA", lambda: resource.setrlimit(resource.RLIMIT_DATA, both), lambda: None


def main() -> None:
    """Print the figures; store them with --store."""
    parser = options(__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--worker", nargs=2)
    chosen = parser.parse_args()
    if chosen.worker:
        worker(*chosen.worker)
        return
    part = 10 if chosen.quick else 1
    result: dict[str, Any] = {"hardware": hardware(), "features": D, "codimension": C}
    result |= {"limit": LIMIT, "limit_inside": LIMIT_INSIDE}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        path = Path(folder) / "rows.npy"
        write_file(path, ROWS // part, SEED)
        rounds: dict[str, list[Any]] = {"disk": [], "memory": [], "reading": []}
        for _ in range(ROUNDS):
            rounds["memory"].append(run(path, "memory"))
            rounds["disk"].append(run(path, LIMIT))
            rounds["reading"].append(read_seconds(path) * rounds["disk"][-1]["passes"])
        disk = rounds["disk"][0]
        times = {
            "disk": [one["seconds"] for one in rounds["disk"]],
            "memory": [one["seconds"] for one in rounds["memory"]],
            "reading": rounds["reading"],
        }
        ratios = [d / max(m, r) for d, m, r in zip(*times.values(), strict=True)]
        result["half"] = {
            "rows": ROWS // part,
            "gib": round(path.stat().st_size / 2**30, 2),
            "seconds": {name: round(statistics.median(t), 2) for name, t in times.items()},
            "ratio": round(statistics.median(ratios), 3),
            **{key: disk[key] for key in ("passes", "codimension", "confidence", "error")},
            "anonymous_mib": max(one["anonymous_mib"] for one in rounds["disk"]),
            "same_inliers": disk["labels"] == rounds["memory"][0]["labels"],
        }
        print(json.dumps(result["half"], indent=1), flush=True)
        path.unlink()
        write_file(path, LARGE // part, SEED)
        by, enter, leave = limited()
        found = run(path, LIMIT_INSIDE, enter)
        found["command"] = run(path, COMMAND, enter)
        leave()
        gib = round(path.stat().st_size / 2**30, 2)
        result["limited"] = {"by": by, "mib": SYSTEM_LIMIT // 2**20, "gib": gib, **found}
        print(json.dumps(result["limited"], indent=1))
    if chosen.store:
        store("disk", result)


if __name__ == "__main__":
    main()
