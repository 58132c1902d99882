"""The GPU backend: bit-plane products on tensor cores, streamed through the device.

Samples by sites of any size go through in ranges of sites. Each range is copied from the
caller's planes (a memory-mapped file will do) into one of two pinned buffers, sent on a copy
stream while the range before it is multiplied, packed on the device into the tiles that the
kernels read, and multiplied into int32 accumulators, which are folded into int64 totals before
they can overflow. Host memory is bounded by `host_bytes`, device memory by what is free.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import cupy
import numpy as np

from ..core.errors import UserError
from . import minplus_gpu, minplus_plan, tune_gpu
from .backend import on_cpu
from .compile_gpu import current_device
from .devices import named_kernel, require_scans, scan_kernels, supported_kernels
from .genotype_products import Calls, GenotypeProducts
from .lease import SHARES, is_granted, lease_device, lease_devices, shares_of
from .matrix_copy_gpu import fetch_matrix, send_matrix
from .minplus import PANEL, Bounds, closure_panel, infinity
from .minplus_plan import BOUND_RUN, BOUND_TILE
from .needs import CONTEXT_BYTES, closing_devices
from .plane_parts import PlaneParts
from .rare_sites_gpu import RareSites, site_costs
from .rare_sites_plan import SiteCosts, pays
from .reordered import reordered
from .spread_plan import SpreadPlan
from .stream_gpu import BitgemmStream, device_errors
from .stream_plan import COPY_THREADS, DEVICE_SHARE, HOST_BYTES, RESULT_BYTES, largest_block
from .terms import Planes, Terms
from .tiles_gpu import upload
from .tune_plan import variants_to_measure
from .variants import ShapeClass, Variant

if TYPE_CHECKING:
    from .spread_gpu import Spread

#: Compute capability of `mma.sync` int8, 16 x 8 x 32: sums of genotypes; others use the CPU.
LEAST_CAPABILITY = 80
#: Panel of a closure whose matrix stays in host memory.
HOST_PANEL = 16384
#: Most of the free device memory that the planes of one block may keep.
KEPT_SHARE = 0.7
#: Unused blocks of CuPy's pool may be so large beside the free device memory that they are not
#: counted.
UNUSED_SHARE = 0.125


class GpuBackend:
    """One CUDA device (see `engine.backend.Backend` for the contracts).

    Parameters
    ----------
    kernel : str, optional
        ``wgmma``, ``mma`` or ``popc``: only this micro-kernel. By default the fastest one that
        the device has, found by measurement (`tune.choose`), or the one that
        `devices.KERNEL_VARIABLE` names. All give the same integers.
    host_bytes : int
        Most pinned host memory for staging planes.
    device_bytes : int, optional
        Most device memory to use, instead of what is free.
    rare_sites : bool or SiteCosts, optional
        Whether rare sites may leave the dense products (rare_sites_gpu.py): by default where that
        is faster by costs measured on the device; with costs given, always. The integers are the
        same.
    threads : int
        CPU threads that the job may use.
    measures : bool
        Whether the micro-kernel is found by measurement; otherwise the first one is taken.

    Raises
    ------
    UserError
        No GPU is usable, or it lacks the micro-kernel asked for.
    """

    name = "gpu"

    def __init__(
        self,
        kernel: str | None = None,
        host_bytes: int = HOST_BYTES,
        device_bytes: int | None = None,
        rare_sites: bool | SiteCosts = True,
        threads: int = COPY_THREADS,
        measures: bool = True,
    ) -> None:
        try:
            usable = cupy.cuda.is_available() and cupy.cuda.runtime.getDeviceCount() > 0
        except (cupy.cuda.runtime.CUDARuntimeError, ImportError) as reason:
            raise UserError(f"no GPU can be used: {reason}") from None
        if not usable:
            raise UserError("no GPU or no driver for it was found")
        with device_errors("its first use"):
            self.device = current_device()
        kernel = kernel or named_kernel()
        if kernel is not None and kernel not in supported_kernels(self.device):
            raise UserError(
                f"{self.device.name} does not run the micro-kernel {kernel!r}; it runs "
                f"{', '.join(supported_kernels(self.device))}"
            )
        self.kernel, self.host_bytes, self.device_bytes = kernel, host_bytes, device_bytes
        self.rare_sites, self.threads = rare_sites, max(1, threads)
        self.host_panel, self.measures = HOST_PANEL, measures
        #: Devices that the job has, this one first; only `spread_matrix` uses others.
        self.devices = [self.device.index]
        self._chosen: dict[tuple[Terms, ShapeClass], Variant] = {}

    @classmethod
    def leased(
        cls,
        threads: int = 1,
        host_bytes: int | None = None,
        device_bytes: int | None = None,
        scans: bool = False,
        gpus: int = 1,
    ) -> GpuBackend:
        """A backend on a device, or on a part of its memory, that no other job here uses.

        `threads`, `host_bytes` as in the constructor. `device_bytes` is the memory that the job
        needs, the driver's included; None takes a whole device. `scans`: for epistasis scans.
        `gpus`: how many devices, all of them whole if there are several.

        Raises
        ------
        TooFewGpusError
            There are fewer.
        UserError
            No GPU is usable, or the first one cannot scan.
        """
        first = cls()  # says in one sentence what is missing
        if scans:
            require_scans(first.device)
        properties = cupy.cuda.runtime.getDeviceProperties

        def shares(index: int) -> int:
            return shares_of(device_bytes, properties(index)["totalGlobalMem"])

        count = cupy.cuda.runtime.getDeviceCount()
        if gpus > 1:
            indices = lease_devices(count, gpus)
            cupy.cuda.Device(indices[0]).use()
            backend = cls(host_bytes=host_bytes or HOST_BYTES, threads=threads)
            backend.devices = indices
            return backend
        index = lease_device(count, shares=shares)
        cupy.cuda.Device(index).use()
        limit = None
        if shares(index) < SHARES and not is_granted():
            granted = properties(index)["totalGlobalMem"] * shares(index) // SHARES
            cupy.get_default_memory_pool().set_limit(size=granted - CONTEXT_BYTES)
            limit = int(DEVICE_SHARE * (granted - CONTEXT_BYTES)) - RESULT_BYTES
        return cls(host_bytes=host_bytes or HOST_BYTES, threads=threads, device_bytes=limit)

    @classmethod
    def unmeasured(cls, index: int) -> GpuBackend:
        """A backend without a lease, for work beside the process that has the device's."""
        cupy.cuda.Device(index).use()
        return cls(measures=False)

    @property
    def can_scan(self) -> bool:
        """Whether the device runs the epistasis scans."""
        return bool(scan_kernels(self.device))

    @functools.cached_property
    def copiers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(self.threads, COPY_THREADS))

    def describe(self) -> str:
        """One line for the log: device and micro-kernels."""
        kernels = self.kernel or ", ".join(supported_kernels(self.device))
        beside = f", with {', '.join(map(str, self.devices[1:]))}" * (len(self.devices) > 1)
        return (
            f"GPU {self.device.index}{beside}: {self.device.name} "
            f"({self.device.multiprocessors} multiprocessors, "
            f"compute capability {self.device.capability / 10:.1f}), bit-plane kernels: {kernels}"
        )

    def free_bytes(self) -> int:
        """Device memory that planes and results may still take."""
        pool = cupy.get_default_memory_pool()
        if self.device_bytes is not None:
            return max(0, self.device_bytes - pool.used_bytes())
        free, _ = cupy.cuda.runtime.memGetInfo()
        if pool.free_bytes() > UNUSED_SHARE * free:  # to free and allocate again takes milliseconds
            pool.free_all_blocks()
            free, _ = cupy.cuda.runtime.memGetInfo()
        return max(0, int(DEVICE_SHARE * free) - RESULT_BYTES)

    def choose(self, terms: Terms, shape: ShapeClass) -> Variant:
        """The micro-kernel and tiles for a shape class (measured once, see tune_gpu.py)."""
        key = terms, shape
        if not self.measures:
            return variants_to_measure(self.device, self.kernel)[0]
        if key not in self._chosen:
            self._chosen[key] = tune_gpu.choose_variant(self.device, terms, shape, self.kernel)
        return self._chosen[key]

    def rare_sites_path(self, stream: BitgemmStream, shape: ShapeClass) -> RareSites | None:
        """What adds rare sites to a stream; None where the dense products take all of them."""
        if not self.rare_sites or not stream.plan.passes:
            return None
        if isinstance(self.rare_sites, SiteCosts):
            return RareSites(stream, self.rare_sites, forced=True)
        if not pays(shape):
            return None
        costs = site_costs(self.device, stream.variant, stream.terms, shape)
        return RareSites(stream, costs)

    def stream(
        self, m: int, n: int | None, planes_a: int, planes_b: int, terms: Terms, n_sites: int
    ) -> BitgemmStream:
        """Products of m and n samples whose sites come in parts.

        Parameters
        ----------
        m, n : int
            Samples of the two blocks; ``n=None``: the first against itself.
        planes_a, planes_b : int
            2 where a block is complete, 3 where it has a mask of called genotypes.
        terms : Terms
        n_sites : int
            Roughly how many sites will come: decides the choice of kernel, not the result.
        """
        with device_errors(f"the products of {m} and {m if n is None else n} samples"):
            return BitgemmStream(self, m, n, planes_a, planes_b, terms, n_sites)

    def largest_block(self, terms: Terms, planes: int) -> int:
        """Most samples of a square tile that fits the device with its planes."""
        return largest_block(len(terms.outputs), planes, self.free_bytes())

    def bitgemm(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        """Weighted AND+popcount products between all samples of `a` and of `b`.

        Parameters
        ----------
        a, b : Planes
            Blocks of m and n samples over the same sites, of any size; `words` on the host or
            on the device. ``b=None``: `a` against itself, one triangle computed and mirrored.
        terms : Terms
            Letters are evaluated over called genotypes; a complete block's c is all ones.

        Returns
        -------
        int64 array, (n_outputs, m, n)
            Exact. Missing genotypes add nothing.

        Raises
        ------
        UserError
            The device is lost or has too little memory.
        ValueError
            The blocks have different numbers of sites.
        """
        if b is not None and a.n_sites != b.n_sites:
            raise ValueError(f"the blocks have {a.n_sites} and {b.n_sites} sites")
        if b is None and not terms.symmetric:
            b = a
        m, n = a.n_samples, a.n_samples if b is None else b.n_samples
        out = np.zeros((len(terms.outputs), m, n), np.int64)
        if not m or not n or not a.n_sites:
            return out
        side = self.largest_block(terms, 3)
        if max(m, n) <= side:
            return self._one_tile(a, b, terms)
        other = a if b is None else b
        for i in range(0, m, side):
            block_a = Planes(a.words[i : i + side], a.n_sites)
            for j in range(i if b is None else 0, n, side):
                block_b = Planes(other.words[j : j + side], other.n_sites)
                tile = self._one_tile(block_a, None if b is None and i == j else block_b, terms)
                out[:, i : i + side, j : j + side] = tile
                if b is None and i != j:
                    out[:, j : j + side, i : i + side] = tile.transpose(0, 2, 1)
        return out

    def genotype_products(self, calls: Calls) -> GenotypeProducts:
        from .genotype_products_gpu import GpuProducts

        if not self.device.has(LEAST_CAPABILITY):
            on_cpu("products of genotypes", f"{self.device.name} lacks int8 tensor cores")
            from .genotype_products_cpu import CpuProducts

            return CpuProducts(calls, self.threads)
        with device_errors(f"the genotypes at {calls.n_sites} sites"):
            return GpuProducts(calls, self.device, self.free_bytes(), self.threads)

    def _one_tile(self, a: Planes, b: Planes | None, terms: Terms) -> np.ndarray:
        stream = self.stream(
            a.n_samples,
            None if b is None else b.n_samples,
            a.words.shape[1],
            a.words.shape[1] if b is None else b.words.shape[1],
            terms,
            a.n_sites,
        )
        stream.add(a, b)
        return stream.result()

    def keep_planes(self, planes: Planes) -> Planes:
        on_device = isinstance(planes.words, cupy.ndarray)
        if on_device or planes.words.nbytes > KEPT_SHARE * self.free_bytes():
            return planes
        with device_errors(f"the planes of {planes.n_samples} samples"):
            return Planes(upload(self, PlaneParts.of([planes])), planes.n_sites)

    def minplus(self) -> GpuMinPlus:
        return GpuMinPlus(self)


class GpuMinPlus:
    """(min, +) products on the device of a backend (see `engine.minplus.MinPlus`)."""

    def __init__(self, backend: GpuBackend) -> None:
        self.backend, self.device = backend, backend.device

    def multiply(self, c, a, b, *, symmetric: bool = False, bounds: Bounds | None = None) -> None:
        with device_errors("a min-plus product"):
            on_device = isinstance(c, cupy.ndarray)
            minplus_gpu.multiply(
                c,
                a,
                b,
                symmetric=symmetric,
                bounds=bounds,
                device=self.device,
                free_bytes=0 if on_device else self.backend.free_bytes(),
            )

    def fits(self, n: int, dtype: np.dtype) -> bool:
        """Whether the closure of n samples runs wholly on the device."""
        return minplus_plan.device_closure_bytes(n, PANEL, dtype) <= self.backend.free_bytes()

    def spread_matrix(self, w: np.ndarray, order: np.ndarray) -> Spread | None:
        devices = closing_devices(len(w), len(self.backend.devices))
        plan = SpreadPlan.of(len(w), devices)
        if plan.devices < 2 or plan.device_bytes(w.itemsize) > self.backend.free_bytes():
            return None
        from .spread_gpu import Spread

        with device_errors(f"the distances of {len(w)} samples"):
            placed = reordered(w, order, self.backend.threads)
            return Spread(placed, self.backend.devices[: plan.devices])

    def panel(self, w) -> int:
        """Samples that become intermediate nodes together.

        A matrix in host memory passes through the device once a panel: long ones pay.
        """
        return closure_panel(len(w)) if isinstance(w, cupy.ndarray) else self.backend.host_panel

    def close_block(self, w) -> None:
        minplus_gpu.close_block(w, self.device)

    def mirror(self, w) -> None:
        minplus_gpu.mirror(w, self.device)

    def transpose(self, source, target) -> None:
        minplus_gpu.transpose(source, target, self.device)

    def bound_tiles(self, dtype: np.dtype) -> tuple[int, int, int]:
        return BOUND_TILE, BOUND_TILE, BOUND_RUN

    def tile_minima(self, x, height: int, width: int) -> cupy.ndarray:
        return minplus_gpu.tile_extremes(x, height, False, self.device)

    def tile_maxima(self, x, height: int, width: int) -> cupy.ndarray:
        return minplus_gpu.tile_extremes(x, height, True, self.device)

    def hold(self, w: np.ndarray, order: np.ndarray | None = None) -> np.ndarray | cupy.ndarray:
        if not self.fits(len(w), w.dtype):
            return w if order is None else reordered(w, order, self.backend.threads)
        with device_errors(f"the distances of {len(w)} samples"):
            side = minplus_plan.padded(len(w))
            held = cupy.full((side, side), infinity(w.dtype), w.dtype)
            send_matrix(w, held, order, self.backend.threads)
            cupy.fill_diagonal(held, 0)
            return held

    def fetch(
        self, held: np.ndarray | cupy.ndarray, w: np.ndarray, order: np.ndarray | None = None
    ) -> None:
        if isinstance(held, cupy.ndarray):
            with device_errors(f"the distances of {len(w)} samples"):
                fetch_matrix(held, w, order, self.backend.threads)
        elif order is not None:
            reordered(held, np.argsort(order), self.backend.threads, w)
        elif held is not w:
            np.copyto(w, held)
