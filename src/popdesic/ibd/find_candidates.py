"""Candidates of identity by descent, found on the device of a backend."""

from __future__ import annotations

from ..engine.backend import Backend, on_cpu
from ..engine.terms import Planes
from .candidates import Candidates, Probes, Windows, check_operands


def find_candidates(
    backend: Backend,
    a: Planes,
    b: Planes | None,
    windows: Windows,
    *,
    tolerance: int,
    min_length: float,
    most: int,
) -> Candidates:
    """Runs of windows in which two samples may be identical by descent.

    Parameters
    ----------
    a, b : Planes
        Blocks of samples over the same sites, memory maps will do; imputed genotypes do not
        count. ``b=None``: the pairs i < j of `a`.
    windows : Windows
    tolerance : int
        Opposite homozygotes that a good window may have.
    min_length : float
        In cM.
    most : int
        More candidates than this are an error.

    Returns
    -------
    Candidates
        The same bytes from every backend.

    Raises
    ------
    UserError
        More candidates than `most`.
    """
    if backend.name == "gpu":
        from ..engine.stream_gpu import device_errors
        from .candidates_gpu import candidates as on_gpu
        from .candidates_plan import DEPTH, can_find_runs

        check_operands(a, b, windows, tolerance)
        probes = Probes.of(windows, min_length, DEPTH)
        if not len(probes.probe):
            return Candidates.joined([], probes)
        if can_find_runs(backend.device, probes):
            with device_errors(f"identity by descent among {a.n_samples} samples"):
                limits = tolerance, most, backend.device, backend.free_bytes()
                return on_gpu(a, b, probes, *limits)
        on_cpu("the search for identity by descent", "the device does not serve it")
    from .candidates_cpu import candidates as by_threads

    return by_threads(a, b, windows, tolerance, min_length, most, backend.threads)
