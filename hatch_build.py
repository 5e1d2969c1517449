"""The build hook: compile the kernels' C file into the package, if there is a C compiler.

Without a compiler, or when compiling fails, the wheel is a pure one and everything runs on NumPy.
``CC`` names the compiler, ``PERPEND_COMPILED=0`` leaves it out.

On Linux the wheel is tagged for this machine only, which PyPI refuses; ``make build`` lets
auditwheel find out which systems it runs on, and tag it for those (manylinux).
"""

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "perpend", "kernels", "compiled")
LIBRARY = "_l1.so"
FLAGS = ["-std=gnu11", "-O3", "-ffp-contract=fast", "-fPIC"]

VARIANTS = {"baseline": ["-DBASELINE"]}
if platform.machine().lower() in ("x86_64", "amd64"):
    VARIANTS["avx2"] = ["-mavx2", "-mfma"]
    VARIANTS["avx512"] = [
        *VARIANTS["avx2"],
        *(f"-mavx512{part}" for part in ("f", "vl", "dq", "bw")),
        "-mprefer-vector-width=512",
    ]


class CompiledKernels(BuildHookInterface):
    """Compiles the kernels for every processor family and marks the wheel accordingly."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build the library beside its source, also for an editable install."""
        folder = Path(self.root) / FOLDER
        (folder / LIBRARY).unlink(missing_ok=True)  # an old one must not get into the wheel
        try:
            build(folder)
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"perpend is built without compiled kernels: {reason(error)}")
            return
        build_data["pure_python"] = False
        # The library is called by ctypes: it depends on the platform, not on the Python.
        build_data["tag"] = f"py3-none-{platform_tag()}"


def platform_tag() -> str:
    """Return the platform that the library is for."""
    if platform.system() == "Darwin":
        # A universal Python names two processors, but the compiler makes code for this one.
        return f"macosx_{macos_target().replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def macos_target() -> str:
    """Return the oldest macOS that the library is for; from 11 on, tags know only x.0."""
    asked = os.environ.get("MACOSX_DEPLOYMENT_TARGET") or sysconfig.get_config_var(
        "MACOSX_DEPLOYMENT_TARGET"
    )
    major, minor = [*map(int, str(asked or "11.0").split(".")), 0][:2]
    if platform.machine() == "arm64" and major < 11:  # there was none before
        return "11.0"
    return f"{major}.{0 if major >= 11 else minor}"


def build(folder: Path) -> None:
    """Compile every variant, then link them together."""
    cc = compiler()
    if platform.system() == "Darwin":
        cc.append(f"-mmacosx-version-min={macos_target()}")
    with tempfile.TemporaryDirectory() as temporary:
        objects = {name: str(Path(temporary, f"{name}.o")) for name in VARIANTS}

        def compile_one(name: str) -> None:
            names = [f"-DVARIANT={name}", *VARIANTS[name], "-c", "l1.c", "-o", objects[name]]
            run([*cc, *FLAGS, *names], folder)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_one, VARIANTS))
        linked = Path(temporary, LIBRARY)
        run([*cc, "-shared", *objects.values(), "-o", str(linked)], folder)
        # In one step: a process that loads half a library dies.
        shutil.copy(linked, folder / f"{LIBRARY}.new")
        (folder / f"{LIBRARY}.new").replace(folder / LIBRARY)


def compiler() -> list[str]:
    """Return the command of the C compiler, or raise FileNotFoundError."""
    if os.environ.get("PERPEND_COMPILED") == "0":
        raise FileNotFoundError("PERPEND_COMPILED is 0")
    if os.name == "nt":
        raise FileNotFoundError("there is no build for Windows")
    given = shlex.split(os.environ.get("CC", ""))
    if given:
        return given
    found = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if found is None:
        raise FileNotFoundError("there is no C compiler (cc, gcc or clang)")
    return [found]


def run(command: list[str], folder: Path) -> None:
    """Run a command in a folder, and keep what it says for the error."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)


def reason(error: Exception) -> str:
    """Say in one line why there is no library."""
    if isinstance(error, subprocess.CalledProcessError):
        said = (error.stderr or "").strip().splitlines()
        return f"{error.cmd[0]} failed: {said[0] if said else 'without a word'}"
    return str(error)
