"""Arrays that stand for device memory: numpy arrays that do not mix with those of the host."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

#: Bytes before and behind each allocation that nothing may write, and what they hold; what memory
#: holds that nobody has written.
GUARD_BYTES, GUARD, UNSET = 256, 0xC3, 0xA5

_guarded: list[tuple[weakref.ref, int, int]] = []
#: The device that is used, last, and those before it.
_used = [0]


def use(index: int) -> None:
    """Take another device in place of the last one."""
    _used[-1] = index


def enter(index: int) -> None:
    """Take a device until `leave`."""
    _used.append(index)


def leave() -> None:
    """Return to the device before."""
    _used.pop()


def current() -> int:
    """The device that is used."""
    return _used[-1]


@dataclass(frozen=True)
class Pointer:
    """Address of device memory."""

    ptr: int


class ndarray(np.ndarray):  # noqa: N801, the name in CuPy
    """A device array.

    Arithmetic with arrays of the host, and functions of numpy, are errors as in CuPy.
    """

    on_device = True
    #: The device whose memory it is.
    place: int

    def __array_finalize__(self, source) -> None:
        self.place = getattr(source, "place", current())

    def __new__(cls, shape, dtype=np.float64, memptr: Pointer | None = None):
        if memptr is not None:
            return memptr.memory(shape, dtype)
        return allocate(shape, dtype)

    @property
    def data(self) -> Pointer:
        return Pointer(self.ctypes.data)

    def get(self, stream=None, out: np.ndarray | None = None) -> np.ndarray:
        if out is None:
            return on_host(self).copy()
        out[...] = on_host(self)
        return out

    def set(self, array: np.ndarray, stream=None) -> None:
        refuse_mixture((array,), on_device=True)
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError("an array of another shape or dtype is set")
        on_host(self)[...] = array

    def __getitem__(self, index):
        found = super().__getitem__(index)
        return lift(found)

    def __setitem__(self, index, value) -> None:
        refuse_mixture((value,))
        refuse_mixture((self,), on_device=False)
        super().__setitem__(index, value)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **given):
        refuse_mixture((*inputs, *(out or ())))
        if out is not None:
            given["out"] = tuple(on_host(one) for one in out)
        found = getattr(ufunc, method)(*map(on_host, inputs), **given)
        return out[0] if out is not None else lift(found)

    def __array_function__(self, function, types, arguments, given):
        raise TypeError(f"numpy's {function.__name__} of a device array")


def on_host(value):
    """The memory of a device array as an array of the host."""
    return value.view(np.ndarray) if isinstance(value, ndarray) else value


def lift(value):
    """What a function of numpy found, as device arrays."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(map(lift, value))
    return np.asarray(value).view(ndarray)


def refuse_mixture(values, on_device: bool = False) -> None:
    """Raises TypeError for arrays of the host (or of the device) among some values.

    ValueError for those of another device.
    """
    for value in values:
        if isinstance(value, ndarray) and value.place != current():
            raise ValueError(f"an array of device {value.place} on device {current()}")
        if isinstance(value, np.ndarray) and value.ndim and isinstance(value, ndarray) == on_device:
            raise TypeError("arrays of the host and of the device are mixed")


def allocate(shape, dtype) -> ndarray:
    """Memory that holds UNSET, between guards, aligned like that of CUDA."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.full(n_bytes + 3 * GUARD_BYTES, GUARD, np.uint8)
    at = GUARD_BYTES + -(raw.ctypes.data) % GUARD_BYTES
    raw[at : at + n_bytes] = UNSET
    _guarded.append((weakref.ref(raw), at, n_bytes))
    return raw[at : at + n_bytes].view(dtype).reshape(shape).view(ndarray)


def check_guards() -> None:
    """Raises MemoryError if something was written beside an array that is still in use."""
    alive = []
    for reference, at, n_bytes in _guarded:
        raw = reference()
        if raw is None:
            continue
        alive.append((reference, at, n_bytes))
        if (raw[:at] != GUARD).any() or (raw[at + n_bytes :] != GUARD).any():
            raise MemoryError(f"a kernel wrote beside an array of {n_bytes} bytes")
    _guarded[:] = alive


def forget() -> None:
    """Guard none of the arrays there are."""
    _guarded.clear()
