"""The best pairs, triples and quads of sites, on the device of a backend."""

from __future__ import annotations

from functools import partial

from ..engine.backend import Backend, on_cpu
from .scan_data import Hits, ResidualData, ScanData


def scan_pairs(
    backend: Backend, data: ScanData, first: range, top: int, cutoff: int | None = None
) -> Hits:
    """The best `top` pairs x < y with x in `first`, that `partners` permits.

    Parameters
    ----------
    data : ScanData
    first : range
        The smallest site index of the pairs: a unit of work.
    top : int
        How many to keep, at least 1.
    cutoff : int, optional
        Pairs that cost more may be left out; pairs that cost as much may not.
    """
    if backend.name == "gpu":
        return _on_gpu(backend, data, 2, first, top, cutoff)
    from . import scan_cpu

    return scan_cpu.scan_pairs(data, first, top, cutoff, threads=backend.threads)


def scan_triples(
    backend: Backend, data: ScanData, first: range, top: int, cutoff: int | None = None
) -> Hits:
    """The best `top` triples x < y < z, x in `first`, all three pairs permitted.

    Parameters as in `scan_pairs`.
    """
    if backend.name == "gpu":
        return _on_gpu(backend, data, 3, first, top, cutoff)
    from . import scan_cpu

    return scan_cpu.scan_triples(data, first, top, cutoff, threads=backend.threads)


def scan_quads(
    backend: Backend, data: ScanData, first: range, top: int, cutoff: int | None = None
) -> Hits:
    """The best `top` quads w < x < y < z, w in `first`, all six pairs permitted.

    Parameters as in `scan_pairs`. By interaction on a CPU, also where the backend is a GPU.
    """
    if backend.name == "gpu" and data.lr_bits is None:
        from ..engine.stream_gpu import device_errors
        from .scan_gpu import scan_quads as on_gpu

        given = top, cutoff, backend.device, backend.kernel, backend.threads
        with device_errors(f"the scan of {data.n_sites} sites"):
            return on_gpu(data, first, *given)
    from . import scan_cpu

    if backend.name == "gpu":
        what = f"the scan of quads of {data.n_sites} sites"
        on_cpu(what, "no kernel of a GPU scans quads by interaction")
    return scan_cpu.scan_quads(data, first, top, cutoff, threads=backend.threads)


def scan_residual_pairs(
    backend: Backend, data: ResidualData, first: range, top: int, cutoff: int | None = None
) -> Hits:
    """The best `top` pairs x < y by `residual_cpu`, x in `first`, that `partners` permits.

    Costs are -T / 2 in units of 2**-20. Other parameters as in `scan_pairs`.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .residual_scan_gpu import scan_residual_pairs as on_gpu

        given = backend.device, backend.kernel, backend.threads
        with device_errors(f"the scan of {data.n_sites} sites"):
            return on_gpu(data, first, top, cutoff, *given)
    from . import residual_scan_cpu

    return residual_scan_cpu.scan_residual_pairs(data, first, top, cutoff, threads=backend.threads)


def _on_gpu(
    backend: Backend, data: ScanData, order: int, first: range, top: int, cutoff: int | None
) -> Hits:
    from ..engine.stream_gpu import device_errors
    from .blocks_gpu import choose_block, scan_blocks
    from .scan_gpu import scan_parts, scan_step

    given = (top, cutoff, backend.device, backend.kernel, backend.threads)
    with device_errors(f"the scan of {data.n_sites} sites"):
        limited = backend.device_bytes is not None
        block = choose_block(data, order, first, backend.free_bytes, limited)
        if block is None:
            return scan_parts(data, order, [first], *given)
        return scan_blocks(scan_step, data, order, [first], *given, block)


def scanner(backend: Backend, order: int, *, residuals: bool = False):
    """The scan of this order; of pairs also by residuals."""
    if residuals:
        return partial(scan_residual_pairs, backend)
    return partial({2: scan_pairs, 3: scan_triples, 4: scan_quads}[order], backend)
