"""``perpend doctor``: what is installed, what computes, and what is missing for which files."""

import platform
import re
import time
from typing import Any

from perpend import __version__
from perpend.cli import _options as options
from perpend.cli._console import finish, page
from perpend.cli._memory import limit
from perpend.cli._summary import collected_warnings

CORE = ("numpy", "scipy", "scikit-learn", "typer", "rich", "jinja2")
FOR_DEVELOPERS = {"dev", "docs"}
REQUIREMENT = re.compile(r"""^([\w.-]+).*;\s*.*extra\s*==\s*["']([\w-]+)["']""")


def doctor(*, json: options.Json = False) -> None:
    """Say what is installed, what computes, and what is missing.

    Put the output into a bug report. The exit code is always 0.
    """
    from joblib import cpu_count

    from perpend.kernels.compiled.l1 import LIBRARY, available, variants

    found = {
        "perpend": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: _version(name) for name in CORE},
        "blas": _blas(),
        "processors": cpu_count(),
        "memory": limit(None),
        "compiled_kernel": {"there": LIBRARY.exists(), "used": available(), "variants": variants()},
        "torch": _torch(),
        "extras": _extras(),
        "self_test": _self_test(),
    }
    finish(found, lambda: page("doctor", found), json=json)


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _blas() -> list[dict[str, Any]]:
    """The libraries for matrix products, once NumPy and SciPy have loaded them."""
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    keys = ("internal_api", "version", "architecture", "num_threads")
    pools = [{key: pool.get(key) for key in keys} for pool in threadpool_info()]
    return [pool for i, pool in enumerate(pools) if pool not in pools[:i]]


def _torch() -> dict[str, Any] | None:
    """What torch can compute on; None without it."""
    if _version("torch") is None:
        return None
    try:
        import torch

        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except (ImportError, OSError, RuntimeError) as error:  # an installation that does not load
        return {"version": _version("torch"), "problem": str(error), "gpus": []}
    return {"version": torch.__version__, "problem": None, "gpus": names}


def _extras() -> dict[str, dict[str, str | None]]:
    """Packages of each extra, with their versions, or None for those that are missing."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("perpend") or []
    except PackageNotFoundError:  # run from a checkout that is not installed
        return {}
    extras: dict[str, dict[str, str | None]] = {}
    for line in lines:
        match = REQUIREMENT.match(line)
        if match and match[2] not in FOR_DEVELOPERS and match[1] != "perpend":
            extras.setdefault(match[2], {})[match[1]] = _version(match[1])
    return extras


def _self_test() -> dict[str, Any]:
    """Fit a small problem with a known subspace."""
    began = time.perf_counter()
    try:
        with collected_warnings():
            from perpend import DPCP
            from perpend.datasets import make_subspace

            X = make_subspace(120, 80, n_features=6, codimension=2, random_state=0).X
            model = DPCP(random_state=1).fit(X)
    except Exception as error:  # noqa: BLE001  the output shows it
        return {"passed": False, "problem": f"{type(error).__name__}: {error}"}
    right = model.codimension_ == 2
    problem = None if right else f"found codimension {model.codimension_} instead of 2"
    return {"passed": right, "problem": problem, "seconds": time.perf_counter() - began}
