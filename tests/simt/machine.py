"""Compiles kernel sources as C++ and launches them on the CPU (execution.hpp)."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from popdesic.core.places import KERNEL_FOLDER
from popdesic.engine.devices import Device

from .memory import check_guards, current

FOLDER = Path(__file__).parent
HEADERS = ("ptx.hpp", "intrinsics.hpp", "execution.hpp")
COMPILER = shutil.which("g++")
#: Kernels index arrays of arrays as one array and count on wrapping integers, as nvcc lets them;
#: products and sums are not fused, so that floats do not depend on the CPU.
OPTIONS = (
    *("-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fwrapv", "-fno-strict-aliasing"),
    *("-fno-aggressive-loop-optimizations", "-ffp-contract=off", "-U_FORTIFY_SOURCE"),
    *("-mpopcnt",) * (os.uname().machine == "x86_64"),
)
#: Most bytes of shared memory of a launch that has not asked for more.
PLAIN_SHARED = 48 << 10

_KERNEL = re.compile(
    r'extern "C" __global__ void(?:\s+__launch_bounds__\((?P<most>(?:[^()]|\([^()]*\))*)\))?'
    r"\s+(?P<name>\w+)(?P<parameters>\([^{]*\))\s*\{"
)
_DYNAMIC = re.compile(r"extern __shared__ ([^;]*?)(\w+)\[\];")


class LaunchError(Exception):
    """A launch that CUDA would refuse, or that breaks a rule of its execution model."""


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_ulonglong),
        ("backward", ctypes.c_int),
    ]


@dataclass
class Machine:
    """A GPU that does not exist.

    Attributes
    ----------
    device : Device
    backward : bool
        Threads and blocks run in falling order and asynchronous copies are made at once; otherwise
        in rising order, with copies as late as their waits allow.
    folder : Path
        Where compiled sources are kept.
    launched : list of str
        The kernels that ran.
    devices : int
        How many there are, all alike.
    """

    device: Device
    folder: Path
    backward: bool = False
    launched: list[str] = field(default_factory=list)
    devices: int = 1

    def load(self, code: str, options: tuple[str, ...]) -> ctypes.PyDLL:
        """The library of a kernel file's text, compiled with the options of a launch."""
        return _library(translate(code), options, self.device.capability, self.folder)


def translate(code: str) -> str:
    """CUDA to C++: the text of ptx.cuh is left out, dynamic shared memory becomes a pointer."""
    ptx = (KERNEL_FOLDER / "ptx.cuh").read_text().replace("#pragma once\n", "")
    code = code.replace(ptx[ptx.index("__device__") :], "")
    if "asm" in re.sub(r"//.*", "", code):
        raise LaunchError("the source has inline assembly that is not in kernels/ptx.cuh")
    code = _DYNAMIC.sub(
        lambda found: (
            f"{_type(found[1])}* {found[2]} = ({_type(found[1])}*)simt::dynamic_shared();"
        ),
        code,
    )
    return f'#include "ptx.hpp"\n#line 1 "kernel.cu"\n{_KERNEL.sub(_export, code)}'


def _export(found: re.Match) -> str:
    """A kernel after its declaration and its entry, in the same lines."""
    parameters, most = " ".join(found["parameters"].split()), found["most"] or "1024"
    declared = f'extern "C" void {found["name"]}{parameters};'
    return f"{declared} SIMT_KERNEL({found['name']}, ({most.split(',')[0]})) {found[0]}"


def _type(declared: str) -> str:
    return re.sub(r"__align__\(\d+\)", "", declared).strip()


@functools.cache
def _library(text: str, options: tuple[str, ...], capability: int, folder: Path) -> ctypes.PyDLL:
    headers = "".join((FOLDER / name).read_text() for name in HEADERS)
    given = [o for o in options if o.startswith("-D")] + [f"-D__CUDA_ARCH__={10 * capability}"]
    state = repr((text, headers, given, OPTIONS, _compiler_version()))
    stem = folder / hashlib.sha256(state.encode()).hexdigest()[:24]
    library = stem.with_suffix(".so")
    if not library.exists():
        made = stem.with_suffix(f".{os.getpid()}.tmp")
        first = ["-include", str(_parsed_once(folder))]
        command = [COMPILER, *OPTIONS, *given, f"-I{FOLDER}", *first]
        command += ["-o", str(made), "-x", "c++", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        if done.returncode:
            raise LaunchError(f"the source does not compile: {done.stderr[:3000]}")
        made.replace(library)  # at once: other processes compile the same
    return ctypes.PyDLL(str(library))


@functools.cache
def _parsed_once(folder: Path) -> Path:
    """A file that includes the standard headers, beside it what the compiler keeps of them.

    The compiler reads the headers themselves where that is of another version or other options.
    """
    lines = [line for name in HEADERS for line in (FOLDER / name).read_text().splitlines()]
    text = "\n".join(line for line in lines if line.startswith("#include <")) + "\n"
    state = repr((text, OPTIONS, _compiler_version()))
    source = folder / f"{hashlib.sha256(state.encode()).hexdigest()[:24]}.hpp"
    kept = source.with_suffix(".hpp.gch")
    if not kept.exists():
        source.write_text(text)
        made = source.with_suffix(f".{os.getpid()}.tmp")
        command = [COMPILER, *OPTIONS, "-o", str(made), "-x", "c++-header", str(source)]
        subprocess.run(command, capture_output=True, check=True)
        made.replace(kept)
    return source


@functools.cache
def _compiler_version() -> str:
    return subprocess.run([COMPILER, "--version"], capture_output=True, text=True).stdout


class Kernel:
    """One kernel of a library, called like `cupy.RawKernel`."""

    def __init__(self, machine: Machine, library: ctypes.PyDLL, name: str) -> None:
        self.machine, self.name = machine, name
        self.max_dynamic_shared_size_bytes = 0
        sizes, kinds = (ctypes.c_int * 64)(), ctypes.create_string_buffer(64)
        self.most = getattr(library, f"simt_describe_{name}")(sizes, kinds)
        self.parameters = list(zip(kinds.value.decode(), sizes, strict=False))
        self.launch = getattr(library, f"simt_launch_{name}")
        self.launch.restype = ctypes.c_char_p

    def __call__(self, grid, block, arguments, *, shared_mem: int = 0) -> None:
        self._check(grid, block, shared_mem)
        if len(arguments) != len(self.parameters):
            raise LaunchError(
                f"{self.name} has {len(self.parameters)} parameters, not {len(arguments)}"
            )
        values = [self._bytes_of(i, value) for i, value in enumerate(arguments)]
        buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
        sizes = [(ctypes.c_uint * 3)(*(*given, 1, 1)[:3]) for given in (grid, block)]
        message = self.launch(
            pointers, ctypes.byref(_Launch(*sizes, shared_mem, int(self.machine.backward)))
        )
        self.machine.launched.append(self.name)
        if message:
            raise LaunchError(f"{self.name}: {message.decode()}")
        check_guards()

    def _check(self, grid, block, shared_mem: int) -> None:
        device = self.machine.device
        limits = ((2**31 - 1, 65535, 65535), (1024, 1024, 64))
        for given, most in zip((grid, block), limits, strict=True):
            if not all(1 <= n <= limit for n, limit in zip(given, most, strict=False)):
                raise LaunchError(f"{self.name}: a launch of {grid} x {block}")
        if int(np.prod(block)) > self.most:
            raise LaunchError(f"{self.name} is compiled for {self.most} threads, not {block}")
        asked = self.max_dynamic_shared_size_bytes
        if asked > device.shared_bytes or shared_mem > max(PLAIN_SHARED, asked):
            raise LaunchError(
                f"{self.name}: {shared_mem} bytes of shared memory, {asked} asked for, of "
                f"{device.shared_bytes}"
            )

    def _bytes_of(self, index: int, value) -> bytes:
        """What a parameter holds, if the argument is of its size and kind."""
        kind, size = self.parameters[index]
        on_device = getattr(value, "on_device", False)
        if on_device and value.place != current():
            raise LaunchError(
                f"{self.name}: argument {index} is an array of device {value.place}, launched on "
                f"device {current()}"
            )
        if on_device:
            found, data = "p", np.uint64(value.data.ptr).tobytes()
        elif isinstance(value, np.generic):
            found, data = value.dtype.kind.replace("u", "i"), value.tobytes()
        elif isinstance(value, np.ndarray) and value.size == 1:
            found, data = "s", value.tobytes()
        else:
            raise LaunchError(f"{self.name}: argument {index} is a {type(value).__name__}")
        address = kind == "p" and isinstance(value, np.uint64)
        if (found != kind and not address) or len(data) != size:
            raise LaunchError(
                f"{self.name}: argument {index} is {found} of {len(data)} bytes, its parameter "
                f"{kind} of {size}"
            )
        return data
