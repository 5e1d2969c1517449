"""How much memory a reader may use."""

import os
from pathlib import Path

USABLE = 0.8  # of what is available; the rest is for the work that follows
MEMINFO = Path("/proc/meminfo")
CONTAINER = Path("/sys/fs/cgroup")


def memory_limit() -> int:
    """Bytes that one file may take: 80 % of the available memory, also in a container."""
    return int(USABLE * min(_of_machine(), _of_container()))


def _of_machine() -> float:
    try:
        for line in MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:  # not Linux: all of the memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float(1 << 34)  # not POSIX either: 16 GiB


def _of_container() -> float:
    """Return what the control group of this process leaves, if it has a limit."""
    try:
        limit = int((CONTAINER / "memory.max").read_text(encoding="ascii"))
        return max(0, limit - int((CONTAINER / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):  # none, or "max"
        return float("inf")
