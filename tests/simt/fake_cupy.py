"""A `cupy` module for a machine that does not exist: the few names that the GPU engine calls.

Whatever else is asked of it is an AttributeError; calls that CuPy or CUDA would refuse are errors.
Everything happens at once and in order, so streams and events do nothing.
"""

from __future__ import annotations

import ctypes
from types import ModuleType

import numpy as np

from . import memory
from .machine import Kernel, Machine
from .memory import ndarray, on_host

#: Memory of the device.
TOTAL_BYTES = 1 << 31


class Stream:
    """Work in order: nothing to do."""

    ptr = 0

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.place = memory.current()

    def __enter__(self) -> Stream:
        if self.place != memory.current():
            raise RuntimeError(f"a stream of device {self.place} on device {memory.current()}")
        return self

    def __exit__(self, *_) -> None:
        pass

    def record(self) -> Event:
        return Event()

    def wait_event(self, event: Event) -> None:
        assert isinstance(event, Event)

    def synchronize(self) -> None:
        pass


class Event:
    """A moment that is over."""

    done = True

    def record(self, stream: Stream | None = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Pool:
    """The memory pool."""

    def used_bytes(self) -> int:
        return 0

    def free_bytes(self) -> int:
        return 0

    def free_all_blocks(self) -> None:
        pass


class Pinned(bytearray):
    """Pinned memory of the host."""

    @property
    def ptr(self) -> int:
        return np.frombuffer(self, np.uint8).ctypes.data


class UnownedMemory:
    """Pinned memory as a kernel sees it."""

    def __init__(self, ptr: int, size: int, owner: Pinned) -> None:
        assert ptr == owner.ptr and size <= len(owner)
        self.owner = owner


class MemoryPointer:
    """A place in it."""

    def __init__(self, memory: UnownedMemory, offset: int) -> None:
        self.unowned, self.offset = memory, offset

    def memory(self, shape, dtype) -> ndarray:
        count = int(np.prod(shape))
        found = np.frombuffer(self.unowned.owner, dtype, count, self.offset)
        return found.reshape(shape).view(ndarray)


class CudaError(Exception):
    """An error of the driver."""


class Device:
    """A device by its number."""

    def __init__(self, index: int) -> None:
        self.index = index

    def use(self) -> None:
        memory.use(self.index)

    def __enter__(self) -> Device:
        memory.enter(self.index)
        return self

    def __exit__(self, *_) -> None:
        memory.leave()


def make_modules(machine: Machine) -> dict[str, ModuleType]:
    """`cupy` and `cupyx` for a machine, by name."""

    class RawModule:
        def __init__(self, code: str, options: tuple[str, ...]) -> None:
            self.library = machine.load(code, options)

        def get_function(self, name: str) -> Kernel:
            return Kernel(machine, self.library, name)

    def properties(index: int) -> dict:
        device = machine.device
        assert 0 <= index < machine.devices
        return {
            "name": device.name.encode(),
            "major": device.capability // 10,
            "minor": device.capability % 10,
            "multiProcessorCount": device.multiprocessors,
            "sharedMemPerBlockOptin": device.shared_bytes,
            "totalGlobalMem": TOTAL_BYTES,
        }

    def copy_lines(to, to_pitch, source, pitch, width, height, kind, stream) -> None:
        if width > min(to_pitch, pitch):
            raise CudaError("lines are longer than their pitch")
        for line in range(height):
            ctypes.memmove(to + line * to_pitch, source + line * pitch, width)

    connected = set()

    def connect(other: int) -> None:
        link = (memory.current(), other)
        if other == memory.current() or other >= machine.devices:
            raise CudaError("cudaErrorInvalidDevice")
        if link in connected:
            raise CudaError("cudaErrorPeerAccessAlreadyEnabled: peer access is already enabled")
        connected.add(link)

    def not_pinned(pointer: int) -> None:
        raise CudaError("not registered")

    runtime = _module(
        "cupy.cuda.runtime",
        CUDARuntimeError=CudaError,
        is_hip=False,
        getDevice=memory.current,
        getDeviceCount=lambda: machine.devices,
        deviceCanAccessPeer=lambda one, other: True,
        deviceEnablePeerAccess=connect,
        getDeviceProperties=properties,
        driverGetVersion=lambda: machine.device.driver,
        memGetInfo=lambda: (TOTAL_BYTES, TOTAL_BYTES),
        pointerGetAttributes=not_pinned,
        memcpy2DAsync=copy_lines,
        memcpyHostToDevice=1,
    )
    cuda = _module(
        "cupy.cuda",
        runtime=runtime,
        driver=_module("cupy.cuda.driver", CUDADriverError=CudaError),
        memory=_module("cupy.cuda.memory", OutOfMemoryError=type("OutOfMemory", (CudaError,), {})),
        is_available=lambda: True,
        get_current_stream=Stream,
        alloc_pinned_memory=Pinned,
        **{c.__name__: c for c in (Stream, Event, Device, UnownedMemory, MemoryPointer)},
    )
    cupy = _module(
        "cupy",
        cuda=cuda,
        ndarray=ndarray,
        RawModule=RawModule,
        RawKernel=Kernel,
        get_default_memory_pool=Pool,
        **_functions(),
    )
    pinned = {"empty_pinned": np.empty, "zeros_pinned": np.zeros}
    return {"cupy": cupy, "cupyx": _module("cupyx", **pinned)}


def _module(name: str, **names) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(names)
    return module


def _copied(array, order: str = "C") -> ndarray:
    """A new array with the values of another, of either side; order K: columns stay contiguous."""
    array = np.asarray(on_host(array))
    if order == "K" and array.flags.f_contiguous and not array.flags.c_contiguous:
        return _copied(array.T).T
    out = memory.allocate(array.shape, array.dtype)
    out[...] = memory.lift(array)
    return out


def _filled(shape, value, dtype) -> ndarray:
    out = memory.allocate(shape, dtype)
    out.fill(value)
    return out


def _functions() -> dict:
    def asarray(array, dtype=None) -> ndarray:
        if isinstance(array, ndarray) and dtype in (None, array.dtype):
            return array
        return _copied(np.asarray(on_host(array), dtype), "K")

    def ascontiguousarray(array) -> ndarray:
        return array if array.flags.c_contiguous else _copied(array)

    def lifted(function):
        def call(*arguments, **given):
            flat = [x for a in arguments for x in (a if isinstance(a, (list, tuple)) else [a])]
            memory.refuse_mixture(flat)
            plain = [
                [on_host(x) for x in a] if isinstance(a, (list, tuple)) else on_host(a)
                for a in arguments
            ]
            return memory.lift(function(*plain, **given))

        return call

    def split(array: ndarray, places: np.ndarray) -> list[ndarray]:
        return memory.lift(np.split(on_host(array), places))

    def fill_diagonal(array: ndarray, value) -> None:
        np.fill_diagonal(on_host(array), value)

    names = (
        "abs arange concatenate cumsum flatnonzero frexp full_like ldexp maximum minimum moveaxis "
        "partition rint sqrt stack where zeros_like"
    )
    return {
        "asarray": asarray,
        "array": lambda array, order="C": _copied(array),
        "asnumpy": ndarray.get,
        "ascontiguousarray": ascontiguousarray,
        "empty": memory.allocate,
        "zeros": lambda shape, dtype: _filled(shape, 0, dtype),
        "ones": lambda shape, dtype: _filled(shape, 1, dtype),
        "full": _filled,
        "split": split,
        "fill_diagonal": fill_diagonal,
        **{name: lifted(getattr(np, name)) for name in names.split()},
    }
