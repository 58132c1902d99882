"""Compile CUDA sources in tests: by NVRTC through CuPy, else by nvcc; no GPU is needed.

`POPDESIC_NVRTC`, the path of a libnvrtc, compiles by that one, such as that of CUDA 12.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from popdesic.engine.sources import read_source
from support.sources import SOURCES

#: Names a library that compiles instead of the installed compiler.
LIBRARY_VARIABLE = "POPDESIC_NVRTC"
#: Options that CuPy adds. Without the first, NVRTC 12 refuses lambdas whose parameters are `auto`.
AS_CUPY = ("--device-as-default-execution-space", "-ftz=true")
MISSING = "no CUDA compiler: install CuPy (pip install -r requirements-gpu.txt) or put nvcc on PATH"


@dataclass(frozen=True)
class Usage:
    """What one kernel takes: registers of a thread, static shared memory and spills in bytes."""

    registers: int
    shared: int
    spilled: int


@functools.cache
def find_compiler() -> str:
    """library (of LIBRARY_VARIABLE), nvrtc, nvcc or nothing."""
    if os.environ.get(LIBRARY_VARIABLE):
        return "library"
    try:
        from cupy.cuda import nvrtc

        nvrtc.getVersion()
    except Exception:  # no CuPy, or no library
        return "nvcc" if shutil.which("nvcc") else ""
    return "nvrtc"


def require_compiler(capability: str = "75") -> None:
    """Skip the test if no compiler is installed, or it is too old for a compute capability."""
    if not find_compiler():
        pytest.skip(MISSING)
    if not _knows(capability):
        pytest.skip(f"{find_compiler()} is too old for compute capability {capability}")


@functools.cache
def _knows(capability: str) -> bool:
    return not _compile("", capability, ())[0]


def compile_source(text: str, capability: str, options: tuple[str, ...] = ()) -> dict[str, Usage]:
    """Compile for one compute capability, such as 90a; fails with the compiler's words."""
    errors, log = _compile(text, capability, options)
    if errors:
        pytest.fail("\n".join(errors[:10]))
    return _usages(log)


def compile_kernel(
    name: str, capability: str, defines: tuple[tuple[str, int], ...]
) -> dict[str, Usage]:
    """Compile a file of `kernels/` as a launch would."""
    return compile_source(read_source(name), capability, SOURCES[name].options(defines))


def _compile(text: str, capability: str, options: tuple[str, ...]) -> tuple[list[str], str]:
    """Lines of errors, and the log with what each kernel takes."""
    options = (f"-arch=sm_{capability}", *options, "--ptxas-options=-v")
    by = {"library": _by_library, "nvrtc": _by_nvrtc, "nvcc": _by_nvcc}[find_compiler()]
    failed, log = by(text, options)
    errors = [line for line in log.splitlines() if "error" in line]
    return (errors or [log]) if failed else [], log


@functools.cache
def given_library() -> ctypes.CDLL:
    """That of LIBRARY_VARIABLE."""
    return ctypes.CDLL(os.environ[LIBRARY_VARIABLE])


def library_version() -> tuple[int, int]:
    """Major and minor version of CUDA that it is of."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _checked(given_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def _checked(status: int) -> None:
    assert status == 0, f"NVRTC: status {status}"


def _by_library(text: str, options: tuple[str, ...]) -> tuple[bool, str]:
    library, program, size = given_library(), ctypes.c_void_p(), ctypes.c_size_t()
    source = text.encode(), b"kernel.cu"
    _checked(library.nvrtcCreateProgram(ctypes.byref(program), *source, 0, None, None))
    given = [option.encode() for option in (*options, *AS_CUPY)]
    array = (ctypes.c_char_p * len(given))(*given)
    status = library.nvrtcCompileProgram(program, len(given), array)
    _checked(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    _checked(library.nvrtcGetProgramLog(program, log))
    _checked(library.nvrtcDestroyProgram(ctypes.byref(program)))
    return status != 0, log.value.decode()


def _by_nvrtc(text: str, options: tuple[str, ...]) -> tuple[bool, str]:
    from cupy.cuda import nvrtc

    program, failed = nvrtc.createProgram(text, "kernel.cu", [], []), False
    try:
        nvrtc.compileProgram(program, (*options, *AS_CUPY))
    except nvrtc.NVRTCError:
        failed = True
    log = nvrtc.getProgramLog(program)
    nvrtc.destroyProgram(program)
    return failed, log


def _by_nvcc(text: str, options: tuple[str, ...]) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text(text)
        command = ["nvcc", "-cubin", *options, "-o", f"{folder}/kernel.cubin", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode != 0, done.stdout + done.stderr


def _usages(log: str) -> dict[str, Usage]:
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        shared = re.search(r"(\d+) bytes smem", part)
        spilled = re.search(r"(\d+) bytes spill stores", part)
        name = part[: part.index("'")]
        found[name] = Usage(registers, *(int(m[1]) if m else 0 for m in (shared, spilled)))
    return found
