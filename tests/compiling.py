"""Compile CUDA sources in tests: by NVRTC through CuPy, else by nvcc; no GPU is needed."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from popdesic.engine.gpu.layout import compiler_options
from popdesic.engine.gpu.sources import read_source

MISSING = "no CUDA compiler: install CuPy (pip install -r requirements-gpu.txt) or put nvcc on PATH"


@dataclass(frozen=True)
class Usage:
    """What one kernel takes: registers of a thread, static shared memory and spills in bytes."""

    registers: int
    shared: int
    spilled: int


@functools.cache
def find_compiler() -> str:
    """nvrtc, nvcc or nothing."""
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
    return compile_source(read_source(name), capability, compiler_options(name, defines))


def _compile(text: str, capability: str, options: tuple[str, ...]) -> tuple[list[str], str]:
    """Lines of errors, and the log with what each kernel takes."""
    options = (f"-arch=sm_{capability}", *options, "--ptxas-options=-v")
    failed, log = (
        _by_nvrtc(text, options) if find_compiler() == "nvrtc" else _by_nvcc(text, options)
    )
    errors = [line for line in log.splitlines() if "error" in line]
    return (errors or [log]) if failed else [], log


def _by_nvrtc(text: str, options: tuple[str, ...]) -> tuple[bool, str]:
    from cupy.cuda import nvrtc

    program, failed = nvrtc.createProgram(text, "kernel.cu", [], []), False
    try:
        nvrtc.compileProgram(program, options)
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
