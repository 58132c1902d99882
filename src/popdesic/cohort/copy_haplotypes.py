"""Impute targets by copying from a frozen reference, window by window; unphased ones are phased.

Windows are cut by the reference's map alone, and each target haplotype is imputed from the
reference and its own calls, so the columns of a sample are the same alone and among others.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..copying.copying import Haplotypes, allele_share, impute_alleles, leave_out_alleles
from ..copying.copying_plan import MapWindow, cut_windows
from ..copying.likelihoods import Likely, impute_likely_window, no_links
from ..copying.phasing import phase_alleles
from ..core.errors import UserError
from ..core.files import beside, require_output
from ..core.random_numbers import lots_of
from ..core.tables import write_table
from ..core.version import __version__
from ..engine.backend import Backend, on_cpu
from ..io.frozen_haplotypes import HaplotypePanel, HaplotypePart, site_ids
from ..io.imputed_vcf import ImputedSites, ImputedVcf
from .copy_accuracy import N_CLASSES, N_SUMS, Called, accuracy_table, sum_up_sites
from .haplotype_panel import frozen_for, reference_files
from .phased_targets import (
    LikelyPart,
    LikelyTargets,
    Targets,
    TypedPart,
    read_likely,
    read_targets,
)

log = logging.getLogger("popdesic")

#: Sites that are written at a time.
WRITTEN_SITES = 2_000
#: Bytes of doses that the engine makes at a time, and of a window's that are held in memory.
BATCH_BYTES, HELD_BYTES = 1 << 28, 1 << 30


class CopiedWindow(NamedTuple):
    """What was imputed of a window.

    Attributes
    ----------
    window : MapWindow
    units : uint16 array, (n_haplotypes, n_sites)
        Doses from the window's first to its last site, in 1 / DOSE_UNITS.
    hidden : float32 array, (n_haplotypes, n_typed)
        Those of the typed sites among them without their own call; NaN where there is none.
    called : Called
        The typed sites among them; none of samples with likelihoods.
    listed : int64 array, (n_listed,)
        Those among them that are in the file of the targets, counted from `window.first`.
    """

    window: MapWindow
    units: np.ndarray
    hidden: np.ndarray
    called: Called
    listed: np.ndarray


@dataclass(frozen=True)
class CopyOptions:
    """The seed that draws phases, threads, the device that imputes, and whether by likelihoods."""

    seed: int = 1
    threads: int = 1
    backend: Backend | None = None
    likelihoods: bool = False


def impute_file(
    target: Path, reference: Path, out: Path, genetic_map: str, options: CopyOptions
) -> dict[str, int]:
    """Impute a file of targets and write VCF, index and accuracy.

    Parameters
    ----------
    target : Path
        VCF, BCF or VCF-Zarr, phased or not; haploid calls where males have one X. With
        likelihoods, VCF or BCF with PL, GL or GP.
    reference : Path
        A file of `freeze_haplotypes`, or what that reads, which is frozen for this run.
    out : Path
        VCF, bgzipped, with `{out}.csi`; the accuracy is written beside it (`accuracy_path`).
    genetic_map : str
        As in `freeze_haplotypes`; '' if the reference is frozen.

    Returns
    -------
    dict
        Counts of the match of targets and reference.

    Raises
    ------
    UserError
        As `freeze_haplotypes`, `read_targets` and `read_likely`; or a map is given with a frozen
        reference.
    """
    if not out.name.endswith(".vcf.gz"):
        raise UserError(f"the output {out} is bgzipped VCF; give it a name that ends in .vcf.gz.")
    files = reference_files(reference)
    require_output(out, target, *files, others=[accuracy_path(out)])
    with frozen_for(reference, genetic_map, out.parent, options.threads) as panel:
        return _impute(target, panel, out, options)


def accuracy_path(out: Path) -> Path:
    """The table of the accuracy by class of frequency, beside an imputed VCF."""
    return beside(str(out).removesuffix(".vcf.gz"), ".accuracy.tsv")


def _impute(target: Path, panel: HaplotypePanel, out: Path, options: CopyOptions) -> dict[str, int]:
    read = read_likely if options.likelihoods else read_targets
    targets = read(target, panel, options.threads)
    _name_uncalled(targets)
    own = own_samples(targets.samples, panel.samples)
    used = [k for k, typed in enumerate(targets.parts) if len(typed.rows)]
    left_out = [part.contig for k, part in enumerate(panel.parts) if k not in used]
    if left_out:
        log.warning("no site of %s is typed in the targets: left out", ", ".join(left_out))
    contigs = list(dict.fromkeys(panel.parts[k].contig for k in used))
    about = [f"##source=popdesic {__version__}", f"##popdesic_reference={panel.digest}"]
    about.append(f"##popdesic_seed={options.seed}")
    total = np.zeros((N_CLASSES, N_SUMS))
    if options.backend is not None and options.backend.name == "gpu":
        on_cpu("phases, and ER2 of typed sites", "a GPU only computes doses of called alleles")
    with ImputedVcf(out, targets.samples, contigs, about) as vcf:
        for k in used:
            part, typed = panel.parts[k], targets.parts[k]
            if isinstance(typed, LikelyPart):
                windows = _impute_likely(part, typed, targets.samples, own, options, out.parent)
            else:
                typed = phase_part(part, typed, targets.samples, own, options)
                windows = impute_part(part, typed, own, options, out.parent)
            for copied in windows:
                total += _write(vcf, part, copied)
    write_table(accuracy_path(out), accuracy_table(total))
    return targets.counts


def _name_uncalled(targets: Targets | LikelyTargets) -> None:
    """Warn of samples without any call, or any likelihoods that tell genotypes apart."""
    called, what = np.zeros(len(targets.samples), bool), "call"
    for typed in targets.parts:
        if isinstance(typed, LikelyPart):
            called |= typed.told()
            what = "likelihood"
        else:
            called[typed.owner[(typed.alleles >= 0).any(axis=1)]] = True
    if not called.all():
        names = [targets.samples[k] for k in np.flatnonzero(~called)]
        log.warning(
            "%d %s no %s at any site of the reference (%s%s): doses are only the frequencies in "
            "the reference; leave out such samples",
            *(len(names), "target has" if len(names) == 1 else "targets have", what),
            *(", ".join(names[:5]), ", …" if len(names) > 5 else ""),
        )


def own_samples(targets: list[str], reference: list[str]) -> dict[int, int]:
    """Numbers in the reference of targets that are in it too; their haplotypes are not copied."""
    number = {name: k for k, name in enumerate(reference)}
    own = {k: number[name] for k, name in enumerate(targets) if name in number}
    if own and len(reference) == 1:
        raise UserError(
            f"the reference has no sample but '{reference[0]}', which is a target; give another."
        )
    if own:
        names = ", ".join(targets[k] for k in [*own][:5])
        log.warning(
            "%d %s in the reference too (%s%s): their own haplotypes are not copied",
            *(len(own), "target is" if len(own) == 1 else "targets are"),
            *(names, ", …" if len(own) > 5 else ""),
        )
    return own


def phase_part(
    part: HaplotypePart,
    typed: TypedPart,
    samples: list[str],
    own: dict[int, int],
    options: CopyOptions,
) -> TypedPart:
    """The part with all samples phased; those with an unphased call are phased from anew."""
    chosen = np.flatnonzero(typed.unphased)
    if not len(chosen):
        return typed
    started = time.perf_counter()
    first = np.searchsorted(typed.owner, chosen)
    both = np.stack([typed.alleles[first], typed.alleles[first + 1]], axis=1)
    masked = _masked(part, typed, own)
    found = phase_alleles(
        Haplotypes(part.haplotypes, len(part.owner), np.asarray(part.cm)),
        typed.rows,
        np.where((both >= 0).all(axis=1), both.sum(axis=1, dtype=np.int8), np.int8(-1)),
        lots_of([f"{options.seed} {part.contig} {samples[k]}" for k in chosen]),
        ne=part.ne,
        mismatch=part.mismatch,
        own=None if masked is None else masked[first],
        threads=options.threads,
    )
    alleles = typed.alleles.copy()
    alleles[first], alleles[first + 1] = found[:, 0], found[:, 1]
    seconds = time.perf_counter() - started
    log.info("%s: %d samples phased in %.0f s", part.contig, len(chosen), seconds)
    return replace(typed, alleles=alleles)


def impute_part(
    part: HaplotypePart,
    typed: TypedPart,
    own: dict[int, int],
    options: CopyOptions,
    folder: Path,
) -> Iterator[CopiedWindow]:
    """Impute a part, a window after the other; what is large waits in a folder."""
    windows = cut_windows(part.cm)
    masked = _masked(part, typed, own)
    started = time.perf_counter()
    for count, window in enumerate(windows, 1):
        low, high = np.searchsorted(typed.rows, [window.start, window.stop])
        rows, alleles = typed.rows[low:high] - window.start, typed.alleles[:, low:high]
        bits = np.array(part.haplotypes[window.start : window.stop])
        cm = np.array(part.cm[window.start : window.stop])
        core = slice(window.first - window.start, window.last - window.start)
        inside = slice(*np.searchsorted(rows, [core.start, core.stop]).tolist())
        model = (part.ne, part.mismatch)
        few = Haplotypes(bits[rows], len(part.owner), cm[rows])
        left_out = leave_out_alleles(
            few,
            np.ascontiguousarray(alleles),
            inside,
            ne=part.ne,
            mismatch=part.mismatch,
            own=masked,
            threads=options.threads,
        )
        hidden = np.where(alleles >= 0, allele_share(left_out), np.float32(np.nan))
        called = Called(rows[inside] - core.start, alleles[:, inside], typed.owner)
        source = Haplotypes(bits, len(part.owner), cm)
        at_once = max(1, BATCH_BYTES // (2 * len(bits)))
        with _held((len(alleles), core.stop - core.start), folder) as units:
            for begin in range(0, len(alleles), at_once):
                some = slice(begin, begin + at_once)
                theirs = None if masked is None else masked[some]
                given = source, alleles[some], rows, theirs, core
                units[some] = _copy(*given, model, options)[:, core]
            yield CopiedWindow(window, units, hidden[:, inside], called, called.rows)
        _tell_progress(part, windows, count, inside.stop - inside.start, started)


def _tell_progress(
    part: HaplotypePart, windows: list[MapWindow], count: int, n_typed: int, started: float
) -> None:
    seconds, window = time.perf_counter() - started, windows[count - 1]
    log.info(
        "%s: window %d of %d, %d of %d sites typed, about %.0f s left on it",
        *(part.contig, count, len(windows), n_typed, window.last - window.first),
        seconds / count * (len(windows) - count),
    )


def _impute_likely(
    part: HaplotypePart,
    typed: LikelyPart,
    samples: list[str],
    own: dict[int, int],
    options: CopyOptions,
    folder: Path,
) -> Iterator[CopiedWindow]:
    """`impute_part` of samples with likelihoods, which are phased, too."""
    windows, started = cut_windows(part.cm), time.perf_counter()
    lots = lots_of([f"{options.seed} {part.contig} {name}" for name in samples])
    masked = [
        np.flatnonzero(part.owner == own[k]) if k in own else np.empty(0, np.int64)
        for k in range(len(samples))
    ]
    links = no_links(len(samples))
    owner = np.repeat(np.arange(len(samples)), 2 - typed.haploid).astype(np.int32)
    there = np.stack([np.ones_like(typed.haploid), ~typed.haploid], axis=1)
    for count, window in enumerate(windows, 1):
        here = slice(window.start, window.stop)
        source = Haplotypes(
            np.array(part.haplotypes[here]), len(part.owner), np.array(part.cm[here])
        )
        n_sites = window.last - window.first
        at_once = max(1, BATCH_BYTES // (4 * max(n_sites, 1)))
        listed = typed.rows[slice(*np.searchsorted(typed.rows, [window.first, window.last]))]
        nothing = np.empty((len(owner), 0))
        called = Called(np.empty(0, np.int64), nothing.astype(np.int8), owner)
        with _held((len(owner), n_sites), folder) as units:
            for begin in range(0, len(samples), at_once):
                some = slice(begin, begin + at_once)
                given = Likely(typed.rows, typed.phreds[some], typed.haploid[some], lots[some])
                found = impute_likely_window(
                    *(source, window, given, links[some]),
                    ne=part.ne,
                    mismatch=part.mismatch,
                    own=masked[some],
                    threads=options.threads,
                )
                rows = slice(*np.searchsorted(owner, [begin, begin + at_once]))
                units[rows] = found[there[some]]
            yield CopiedWindow(
                window, units, nothing.astype(np.float32), called, listed - window.first
            )
        _tell_progress(part, windows, count, len(listed), started)


@contextmanager
def _held(shape: tuple[int, int], folder: Path) -> Iterator[np.ndarray]:
    """An array of uint16, above HELD_BYTES in a file that nobody else sees."""
    if 2 * shape[0] * shape[1] <= HELD_BYTES:
        yield np.empty(shape, np.uint16)
        return
    with tempfile.TemporaryFile(dir=folder) as file:
        # Allocate first: a full disk then raises OSError, not a bus error in the memory map.
        os.posix_fallocate(file.fileno(), 0, 2 * shape[0] * shape[1])
        yield np.memmap(file, np.uint16, "w+", shape=shape)


def _masked(part: HaplotypePart, typed: TypedPart, own: dict[int, int]) -> np.ndarray | None:
    """Haplotypes of the part that each target does not copy, int64 (n_targets, 2); -1 for none."""
    if not own:
        return None
    found = np.full((len(typed.owner), 2), -1, np.int64)
    for target, sample in own.items():
        here = np.flatnonzero(part.owner == sample)
        found[typed.owner == target, : len(here)] = here
    return found


def _copy(
    source: Haplotypes,
    alleles: np.ndarray,
    rows: np.ndarray,
    masked: np.ndarray | None,
    core: slice,
    model: tuple[float, float],
    options: CopyOptions,
) -> np.ndarray:
    """Doses in 1 / DOSE_UNITS, uint16 (n_targets, n_sites), of the sites of the core."""
    errors = nullcontext()
    if options.backend is not None and options.backend.name == "gpu":
        from ..engine.stream_gpu import device_errors

        errors = device_errors(f"the imputation of {len(alleles)} haplotypes")
    with errors:
        return impute_alleles(
            *(source, rows, np.ascontiguousarray(alleles)),
            ne=model[0],
            mismatch=model[1],
            own=masked,
            windows=[MapWindow(0, len(source.cm), core.start, core.stop)],
            threads=options.threads,
            backend=options.backend,
        )


def _write(vcf: ImputedVcf, part: HaplotypePart, copied: CopiedWindow) -> np.ndarray:
    """Write a window, some sites at a time; returns its sums."""
    window, units, hidden, called, listed = copied
    names = site_ids(part, window.first, window.last)
    total = np.zeros((N_CLASSES, N_SUMS))
    for low in range(0, len(names), WRITTEN_SITES):
        high = min(low + WRITTEN_SITES, len(names))
        rows = slice(window.first + low, window.first + high)
        typed = slice(*np.searchsorted(called.rows, [low, high]))
        here = Called(called.rows[typed] - low, called.alleles[:, typed], called.owner)
        carriers = np.bitwise_count(part.haplotypes[rows]).sum(axis=1, dtype=np.int64)
        frequency = carriers / len(part.owner)
        given = listed[slice(*np.searchsorted(listed, [low, high]))] - low
        done = sum_up_sites(np.array(units[:, low:high]), hidden[:, typed], here, frequency, given)
        bases = (list(bytes(column[rows]).decode("ascii")) for column in (part.ref, part.alt))
        sites = ImputedSites(
            part.contig, np.array(part.pos[rows]), names[low:high], *bases, done.info
        )
        vcf.write(sites, done.thousandths())
        total += done.sums
    return total
