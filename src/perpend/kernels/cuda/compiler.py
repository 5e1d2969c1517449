"""CUDA C++ to callable kernels, at run time, with what a CUDA build of torch brings along.

NVRTC compiles and the driver launches, both through NVIDIA's ``cuda.bindings``. Compiled code is
kept for the life of the process; a kernel compiles in about a second.
"""

import ctypes
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cuda.bindings import driver, nvrtc

from perpend._typing import Array

FOLDER = Path(__file__).parent


class Module:
    """Compiled kernels, loaded on the current device."""

    def __init__(
        self,
        sources: tuple[str, ...],
        macros: tuple[tuple[str, int], ...],
        architecture: str,
        shared_bytes: int = 0,
    ) -> None:
        self._shared_bytes = shared_bytes
        self._functions: dict[str, Any] = {}
        self._module = _checked(driver.cuModuleLoadData(_compiled(sources, macros, architecture)))
        # not at exit: the driver may be gone before us
        weakref.finalize(self, driver.cuModuleUnload, self._module).atexit = False

    def launch(
        self,
        name: str,
        grid: int,
        block: tuple[int, int],
        arguments: Sequence[tuple[Any, Any]],
        stream: int,
    ) -> None:
        """Start a kernel; an argument is a value with its ctypes type."""
        values, types = zip(*arguments, strict=True)
        size = (grid, 1, 1, *block, 1, self._shared_bytes)
        function = self._function(name)
        _checked(driver.cuLaunchKernel(function, *size, stream, (values, types), 0))

    def fill(self, name: str, values: Array, stream: int) -> None:
        """Copy a tensor on the device into constant memory."""
        target, size = _checked(driver.cuModuleGetGlobal(self._module, name.encode()))
        if size != values.numel() * values.element_size():
            raise ValueError(f"{name} has {size} bytes")
        _checked(driver.cuMemcpyDtoDAsync(target, values.data_ptr(), size, stream))

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            function = _checked(driver.cuModuleGetFunction(self._module, name.encode()))
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            _checked(driver.cuFuncSetAttribute(function, most, self._shared_bytes))
            self._functions[name] = function
        return self._functions[name]


def pointer(tensor: Array | None) -> tuple[Any, Any]:
    """Return a tensor's address as an argument of a kernel."""
    return (0 if tensor is None else tensor.data_ptr(), ctypes.c_void_p)


def whole(number: int) -> tuple[Any, Any]:
    """Return a 32-bit argument of a kernel."""
    return (number, ctypes.c_int)


def long(number: int) -> tuple[Any, Any]:
    """Return a 64-bit argument of a kernel."""
    return (number, ctypes.c_longlong)


@cache
def _compiled(
    sources: tuple[str, ...], macros: tuple[tuple[str, int], ...], architecture: str
) -> bytes:
    """Compile the files one after another as one unit."""
    text = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in sources)
    options = [f"--gpu-architecture={architecture}", "--std=c++17"]
    options += [f"-D{name}={value}" for name, value in macros]
    encoded = [option.encode() for option in options]
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), b"perpend.cu", 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * _checked(nvrtc.nvrtcGetProgramLogSize(program))
        _checked(nvrtc.nvrtcGetProgramLog(program, log))
        raise RuntimeError(f"NVRTC could not compile {sources[-1]}: {log.decode()}")
    code: bytes = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
    _checked(nvrtc.nvrtcGetCUBIN(program, code))
    _checked(nvrtc.nvrtcDestroyProgram(program))
    return code


def _checked(result: tuple[Any, ...]) -> Any:
    """Return what a call of the bindings gave, or raise its error."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA: {status}")
    return values[0] if len(values) == 1 else tuple(values)
