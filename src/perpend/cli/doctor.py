"""``perpend doctor``: what is installed, what computes, and what is missing for which files."""

import platform
import re
import time
from typing import Any

from perpend import __version__
from perpend.cli import _options as options
from perpend.cli._console import Lines, finish
from perpend.cli._memory import in_bytes, limit
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
    finish(found, _lines(found), json=json)


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


# -- in words --------------------------------------------------------------------------------------


def _lines(found: dict[str, Any]) -> Lines:
    core = ", ".join(f"{name} {number or 'missing'}" for name, number in found["versions"].items())
    test = found["self_test"]
    passed = f"passed in {test.get('seconds', 0):.1f} s"
    failed = f"FAILED: {test['problem']}. Please report it with this output."
    return [
        ("perpend", f"{found['perpend']}, Python {found['python']}, {found['platform']}"),
        ("packages", core),
        ("BLAS", "; ".join(map(_pool, found["blas"])) or "unknown"),
        ("machine", f"{found['processors']} processors; {in_bytes(found['memory'])} may be used"),
        ("kernel", _kernel(found["compiled_kernel"])),
        ("torch", _torch_line(found["torch"])),
        *_extra_lines(found["extras"]),
        ("self-test", passed if test["passed"] else failed),
    ]


def _pool(pool: dict[str, Any]) -> str:
    parts = [pool["internal_api"], pool["version"], pool["architecture"]]
    return f"{' '.join(part for part in parts if part)}, {pool['num_threads']} thread(s)"


def _kernel(compiled: dict[str, Any]) -> str:
    if compiled["used"]:
        return f"compiled, in use ({compiled['variants'][-1]})"
    if compiled["there"]:
        return "compiled, but turned off (PERPEND_COMPILED=0) or not for this machine"
    return "not compiled, NumPy is used (slower): install a C compiler, then reinstall perpend"


def _torch_line(torch: dict[str, Any] | None) -> str:
    if torch is None:
        return 'not installed; for tensors and GPUs: pip install "perpend[torch]"'
    if torch["problem"]:
        return f"{torch['version']}, but it does not load: {torch['problem']}"
    return f"{torch['version']}, {', '.join(torch['gpus']) or 'no GPU that it can use'}"


def _extra_lines(extras: dict[str, dict[str, str | None]]) -> Lines:
    texts = []
    for extra, packages in extras.items():
        missing = [name for name, number in packages.items() if number is None]
        there = ", ".join(f"{name} {number}" for name, number in packages.items() if number)
        if missing:
            lacks = f'{", ".join(missing)} missing: pip install "perpend[{extra}]"'
            texts.append(f"{extra}: {lacks}" + (f" ({there} is there)" if there else ""))
        else:
            texts.append(f"{extra}: {there}")
    if not texts:
        texts = ["unknown: perpend runs from a checkout that is not installed"]
    return [("extras" if i == 0 else "", text) for i, text in enumerate(texts)]
