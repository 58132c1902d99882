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

from ...io.errors import UserError
from ..base import (
    PANEL,
    Bounds,
    Hits,
    OnBlock,
    ScanData,
    SharedScan,
    TraitData,
    closure_panel,
    infinity,
)
from ..comparisons import (
    exact_pairs,
    is_narrow,
    r2_pairs_by_blocks,
    search_by_blocks,
    show_sampled_blocks,
)
from ..expected import ExpectedKinship
from ..genotype_products import Calls, GenotypeProducts
from ..group_counts import GroupCounts, Grouping
from ..ibd import Candidates, Probes, Windows, check_operands
from ..layouts import Layout
from ..matches import TopMatches
from ..nearest import MOST_NEIGHBORS, Measure, Nearest, PlaneParts
from ..needs import CONTEXT_BYTES, closing_devices
from ..relatives import Closeness, ClosePairs
from ..screen import Screen, Screened
from ..terms import Planes, Terms
from . import minplus as minplus_gpu
from . import minplus_plans, tune
from .compile import current_device
from .devices import named_kernel, require_scans, scan_kernels, supported_kernels
from .layout import BOUND_RUN, BOUND_TILE
from .lease import SHARES, is_granted, lease_device, lease_devices, shares_of
from .rare_sites import RareSites, site_costs
from .rare_sites_plans import SiteCosts, pays
from .spread_plans import SpreadPlan
from .stream import BitgemmStream, device_errors
from .stream_plans import COPY_THREADS, DEVICE_SHARE, HOST_BYTES, RESULT_BYTES, largest_block
from .tiles import BlockSums, TileSums, upload
from .tune_plans import ShapeClass
from .variants import Variant

if TYPE_CHECKING:
    from .spread import Spread

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
    """One CUDA device (see `engine.base.Backend` for the contracts).

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
        Whether rare sites may leave the dense products (rare_sites.py): by default where that is
        faster by costs measured on the device; with costs given, always. The integers are the same.
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
        """The micro-kernel and tiles for a shape class (measured once, see tune.py)."""
        key = terms, shape
        if not self.measures:
            return tune.candidates(self.device, self.kernel)[0]
        if key not in self._chosen:
            self._chosen[key] = tune.choose(self.device, terms, shape, self.kernel)
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
        from .genotype_products import GpuProducts

        if not self.device.has(LEAST_CAPABILITY):
            from ..cpu.genotype_products import CpuProducts

            return CpuProducts(calls, self.threads)
        with device_errors(f"the genotypes at {calls.n_sites} sites"):
            return GpuProducts(calls, self.device, self.free_bytes(), self.threads)

    def expected_kinship(self, basis: np.ndarray, n_sites: int) -> ExpectedKinship:
        from .expected import GpuExpected
        from .expected_plans import fits

        if not fits(len(basis), n_sites, self.device, self.free_bytes()):
            from ..cpu.expected import CpuExpected

            return CpuExpected(basis, n_sites, self.threads)
        with device_errors(f"kinships of {len(basis)} samples"):
            return GpuExpected(basis, n_sites, self.device)

    def count_groups(
        self,
        words: np.ndarray,
        used: np.ndarray,
        values: np.ndarray,
        n_sites: int,
        grouping: Grouping,
        n_groups: int,
    ) -> GroupCounts:
        from .group_count_plans import plan_counts

        plan = plan_counts(words.shape, n_groups, self.device, self.free_bytes(), self.host_bytes)
        if plan is None:
            from ..cpu.group_counts import count_groups

            return count_groups(words, used, values, n_sites, grouping, self.threads)
        from .group_counts import GroupStream

        with device_errors(f"the genotypes of {len(words)} samples by group"):
            stream = GroupStream(plan, self.device, self.threads)
            return stream.count(words, used, values, n_sites, grouping)

    def top_matches(
        self, queries: Planes, database: Planes, k: int, min_called: int = 1
    ) -> TopMatches:
        from .compare import top_matches
        from .compare_plans import searches

        with device_errors(f"the search of {queries.n_samples} profiles"):
            found = None
            if searches(self.device, self.kernel):
                found = top_matches(queries, database, self.device, k, min_called)
        if found is None:
            return search_by_blocks(self, queries, database, k, min_called)
        return found

    def nearest_samples(self, planes: PlaneParts, measure: Measure, k: int) -> Nearest:
        from .nearest import nearest_samples

        with device_errors(f"the neighbours of {planes.n_samples} samples"):
            return nearest_samples(TileSums(self, planes), measure, k, self.device)

    def nearest_between(
        self, a: Planes, b: Planes, measure: Measure, k: int
    ) -> tuple[Nearest, Nearest]:
        from .nearest import nearest_between

        with device_errors(f"the neighbours of {a.n_samples} and {b.n_samples} samples"):
            tiles = BlockSums(self, a, b)
            of_rows, of_columns = nearest_between(tiles, measure, k, self.device)
        return (of_columns, of_rows) if tiles.turned else (of_rows, of_columns)

    def nearest_points(self, points: np.ndarray, k: int) -> Nearest:
        from .nearest import nearest_points

        with device_errors(f"the neighbours of {len(points)} points"):
            return nearest_points(points, k, self.device)

    def lay_out(self, layout: Layout) -> np.ndarray:
        from .umap import lay_out
        from .umap_plans import fits

        if not fits(layout, self.device, self.free_bytes()):
            from ..host.map_epochs import run_epochs

            return run_epochs(layout, self.threads)
        with device_errors(f"a map of {len(layout.points)} points"):
            return lay_out(layout, self.device)

    def close_pairs(self, planes: PlaneParts, closeness: Closeness) -> ClosePairs:
        from .close_pairs import close_pairs

        with device_errors(f"the close pairs of {planes.n_samples} samples"):
            tiles = TileSums(self, planes)
            return close_pairs(tiles, closeness, self.device, self.threads)

    def screen_pairs(self, a: Planes, b: Planes | None, screen: Screen, top: int) -> Screened:
        from .pair_screen import screen_between, screen_own

        if top > MOST_NEIGHBORS:
            from ..host.pair_screen import screen_blocks

            return screen_blocks(self, a, b, screen, top)
        with device_errors(f"the comparison of {a.n_samples} samples"):
            if b is None:
                return screen_own(TileSums(self, PlaneParts.of([a])), screen, top, self.device)
            return screen_between(BlockSums(self, a, b), screen, top, self.device)

    def candidates(
        self,
        a: Planes,
        b: Planes | None,
        windows: Windows,
        *,
        tolerance: int,
        min_length: float,
        most: int,
    ) -> Candidates:
        from .ibd_plans import DEPTH, searches

        check_operands(a, b, windows, tolerance)
        probes = Probes.of(windows, min_length, DEPTH)
        if not len(probes.probe):
            return Candidates.joined([], probes)
        if not searches(self.device, probes):
            from ..cpu.ibd import candidates

            return candidates(a, b, windows, tolerance, min_length, most, self.threads)
        from .ibd import candidates

        with device_errors(f"identity by descent among {a.n_samples} samples"):
            limits = tolerance, most, self.device, self.free_bytes()
            return candidates(a, b, probes, *limits)

    def r2_pairs(
        self, planes: Planes, ends: np.ndarray, least: float, on_block: OnBlock | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if is_narrow(ends):
            return r2_pairs_by_blocks(self, planes, ends, least, on_block)
        from .compare import r2_candidates

        with device_errors(f"the correlations of {planes.n_samples} sites"):
            candidates = r2_candidates(planes, ends, least, self.device)
        if candidates is None:
            return r2_pairs_by_blocks(self, planes, ends, least, on_block)
        if on_block is not None:
            show_sampled_blocks(self, planes, ends, on_block)
        return exact_pairs(planes, *candidates, least, self.threads)

    def band_r2(self, planes: Planes, ends: np.ndarray, first: int, last: int) -> np.ndarray:
        from .band import MOST_SAMPLES, band_r2

        if planes.n_sites > MOST_SAMPLES:
            from ..host.site_pairs import band_r2 as on_host

            return on_host(planes.words, planes.n_sites, ends, first, last, self.threads)
        with device_errors(f"the correlations of {last - first} sites"):
            return band_r2(planes, ends, first, last, self.device)

    def scan_pairs(self, data: ScanData, first: range, top: int, cutoff: int | None = None) -> Hits:
        return self._scan(data, 2, first, top, cutoff)

    def scan_triples(
        self, data: ScanData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        return self._scan(data, 3, first, top, cutoff)

    def _scan(self, data: ScanData, order: int, first: range, top: int, cutoff: int | None) -> Hits:
        from .epistasis import scan_parts, scan_step
        from .epistasis_blocks import choose_block, scan_blocks

        given = (top, cutoff, self.device, self.kernel, self.threads)
        with device_errors(f"the scan of {data.n_sites} sites"):
            limited = self.device_bytes is not None
            block = choose_block(data, order, first, self.free_bytes, limited)
            if block is None:
                return scan_parts(data, order, [first], *given)
            return scan_blocks(scan_step, data, order, [first], *given, block)

    def scan_trait_pairs(
        self, data: TraitData, first: range, top: int, cutoff: int | None = None
    ) -> Hits:
        from .epistasis_trait import scan_trait_pairs

        with device_errors(f"the scan of {data.n_sites} sites"):
            return scan_trait_pairs(
                data, first, top, cutoff, self.device, self.kernel, self.threads
            )

    def scan_shared(self, data: SharedScan, order: int, first: range, top: int) -> list[Hits]:
        raise UserError(
            "epistasis.count_once needs device: cpu; set epistasis.count_once to false, and a GPU "
            "scans each phenotype apart."
        )

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

    def minplus(self, c, a, b, *, symmetric: bool = False, bounds: Bounds | None = None) -> None:
        with device_errors("a min-plus product"):
            on_device = isinstance(c, cupy.ndarray)
            minplus_gpu.multiply(
                c,
                a,
                b,
                symmetric=symmetric,
                bounds=bounds,
                device=self.device,
                free_bytes=0 if on_device else self.free_bytes(),
            )

    def fits(self, n: int, dtype: np.dtype) -> bool:
        """Whether the closure of n individuals runs wholly on the device."""
        return minplus_plans.closure_bytes(n, PANEL, dtype) <= self.free_bytes()

    def spread_matrix(self, w: np.ndarray) -> Spread | None:
        devices = closing_devices(len(w), len(self.devices))
        plan = SpreadPlan.of(len(w), devices)
        if plan.devices < 2 or plan.device_bytes(w.itemsize) > self.free_bytes():
            return None
        from .spread import Spread

        with device_errors(f"the distances of {len(w)} samples"):
            return Spread(w, self.devices[: plan.devices])

    def panel(self, w) -> int:
        """Individuals that become intermediate nodes together.

        A matrix in host memory passes through the device once a panel: long ones pay.
        """
        return closure_panel(len(w)) if isinstance(w, cupy.ndarray) else self.host_panel

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

    def hold(self, w: np.ndarray) -> np.ndarray | cupy.ndarray:
        if not self.fits(len(w), w.dtype):
            return w
        with device_errors(f"the distances of {len(w)} samples"):
            side = minplus_plans.padded(len(w))
            held = cupy.full((side, side), infinity(w.dtype), w.dtype)
            held[: len(w), : len(w)] = cupy.asarray(w)
            cupy.fill_diagonal(held, 0)
            return held

    def fetch(self, held: np.ndarray | cupy.ndarray, w: np.ndarray) -> None:
        if not isinstance(held, cupy.ndarray):
            if held is not w:
                np.copyto(w, held)
            return
        with device_errors(f"the distances of {len(w)} samples"):
            np.copyto(w, held[: len(w), : len(w)].get())
