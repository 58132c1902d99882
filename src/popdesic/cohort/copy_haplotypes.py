"""Impute phased targets by copying from a frozen reference, window by window.

Windows are cut by the reference's map alone, and each target haplotype is imputed from the
reference and its own calls, so the columns of a sample are the same alone and among others.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..copying.copying import Haplotypes, allele_share, impute_alleles
from ..copying.copying_plan import MapWindow, cut_windows
from ..core.errors import UserError
from ..core.files import beside, require_output
from ..core.random_numbers import mix
from ..core.tables import write_table
from ..core.version import __version__
from ..io.imputed_vcf import ImputedSites, ImputedVcf
from .copy_accuracy import N_CLASSES, N_SUMS, Called, Imputed, accuracy_table, sum_up_window
from .haplotype_panel import (
    HaplotypePart,
    freeze_haplotypes,
    is_frozen,
    open_haplotypes,
    require_intact,
    site_ids,
)
from .phased_targets import Targets, TypedPart, read_targets

log = logging.getLogger("popdesic")

#: Calls are hidden in so many turns to measure the accuracy, each typed site in one of them.
TURNS = 10
#: Sites that are written at a time.
WRITTEN_SITES = 2_000


@dataclass(frozen=True)
class CopyOptions:
    """How targets are imputed: turns of hiding (0: none), seed that draws them, threads."""

    turns: int = TURNS
    seed: int = 1
    threads: int = 1


def impute_file(
    target: Path, reference: Path, out: Path, genetic_map: str, options: CopyOptions
) -> dict[str, int]:
    """Impute a file of phased targets and write VCF, index and accuracy.

    Parameters
    ----------
    target : Path
        Phased VCF, BCF or VCF-Zarr; haploid calls where males have one X.
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
        As `freeze_haplotypes` and `read_targets`; a map is given with a frozen reference; or turns
        or seed are not possible.
    """
    if not out.name.endswith(".vcf.gz"):
        raise UserError(f"the output {out} is bgzipped VCF; give it a name that ends in .vcf.gz.")
    require_output(out, target, reference)
    if options.turns == 1:
        raise UserError(
            "--turns 1 would hide all typed sites at once, and nothing would be left to impute "
            "them from; give at least 2, or 0 to measure nothing."
        )
    if not 0 < options.seed < 1 << 64:
        raise UserError(f"--seed {options.seed} is not a whole number from 1 to {(1 << 64) - 1}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    if is_frozen(reference):
        if genetic_map:
            raise UserError(
                f"{reference} is frozen with its own map; leave --map out, or freeze the reference "
                "again with this map."
            )
        return _impute(target, reference, out, options)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".frozen") as folder:
        frozen = Path(folder) / "reference.npz"
        freeze_haplotypes(reference, frozen, genetic_map, threads=options.threads)
        return _impute(target, frozen, out, options)


def accuracy_path(out: Path) -> Path:
    """The table of the accuracy by class of frequency, beside an imputed VCF."""
    return beside(str(out).removesuffix(".vcf.gz"), ".accuracy.tsv")


def _impute(target: Path, frozen: Path, out: Path, options: CopyOptions) -> dict[str, int]:
    panel = open_haplotypes(frozen)
    require_intact(panel)
    targets = read_targets(target, panel, options.threads)
    _name_uncalled(targets)
    own = _own_samples(targets.samples, panel.samples)
    used = [k for k, typed in enumerate(targets.parts) if len(typed.rows)]
    left_out = [part.contig for k, part in enumerate(panel.parts) if k not in used]
    if left_out:
        log.warning("no site of %s is typed in the targets: left out", ", ".join(left_out))
    contigs = list(dict.fromkeys(panel.parts[k].contig for k in used))
    about = [f"##source=popdesic {__version__}", f"##popdesic_reference={panel.digest}"]
    total = np.zeros((N_CLASSES, N_SUMS))
    with ImputedVcf(out, targets.samples, contigs, about) as vcf:
        for k in used:
            part = panel.parts[k]
            for window, done in _impute_part(part, targets.parts[k], own, options):
                _write(vcf, part, window, done)
                total += done.sums
    write_table(accuracy_path(out), accuracy_table(total))
    return targets.counts


def _name_uncalled(targets: Targets) -> None:
    """Warn of samples without any call."""
    called = np.zeros(len(targets.samples), bool)
    for typed in targets.parts:
        called[typed.owner[(typed.alleles >= 0).any(axis=1)]] = True
    if not called.all():
        names = [targets.samples[k] for k in np.flatnonzero(~called)]
        log.warning(
            "%d targets have no call at any site of the reference (%s%s): their doses are only the "
            "frequencies in the reference; leave them out",
            *(len(names), ", ".join(names[:5]), ", …" if len(names) > 5 else ""),
        )


def _own_samples(targets: list[str], reference: list[str]) -> dict[int, int]:
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
            "%d targets are in the reference too (%s%s): their own haplotypes are not copied",
            *(len(own), names, ", …" if len(own) > 5 else ""),
        )
    return own


def _impute_part(
    part: HaplotypePart,
    typed: TypedPart,
    own: dict[int, int],
    options: CopyOptions,
) -> Iterator[tuple[MapWindow, Imputed]]:
    """Impute a part, a window after the other."""
    windows = cut_windows(part.cm)
    masked = _masked(part, typed, own)
    model = (part.ne, part.mismatch)
    turn = mix(mix(np.uint64([options.seed])) ^ typed.rows.astype(np.uint64))
    turn = (turn % np.uint64(max(options.turns, 1))).astype(np.int64)
    started = time.perf_counter()
    for count, window in enumerate(windows, 1):
        low, high = np.searchsorted(typed.rows, [window.start, window.stop])
        rows, alleles = typed.rows[low:high] - window.start, typed.alleles[:, low:high]
        bits = np.array(part.haplotypes[window.start : window.stop])
        source = Haplotypes(bits, len(part.owner), np.array(part.cm[window.start : window.stop]))
        core = slice(window.first - window.start, window.last - window.start)
        inside = slice(*np.searchsorted(rows, [core.start, core.stop]).tolist())
        whole = MapWindow(0, len(bits), core.start, core.stop)
        copied = _copy(source, alleles, rows, masked, model, whole, options.threads)
        hidden = np.full(alleles.shape, np.nan, np.float32)
        for k in range(options.turns):
            hide = turn[low:high] == k
            if hide[inside].any():
                less = np.where(hide, np.int8(-1), alleles)
                at_typed = Haplotypes(bits[rows], source.n_haplotypes, source.cm[rows])
                few = MapWindow(0, len(rows), inside.start, inside.stop)
                found = _copy(
                    at_typed, less, np.arange(len(rows)), masked, model, few, options.threads
                )
                hidden[:, hide] = found[:, hide]
        called = Called(rows[inside] - core.start, alleles[:, inside], typed.owner)
        frequency = np.bitwise_count(bits[core]).sum(axis=1, dtype=np.int64) / len(part.owner)
        yield window, sum_up_window(copied[:, core], hidden[:, inside], called, frequency)
        seconds = time.perf_counter() - started
        log.info(
            "%s: window %d of %d, %d of %d sites typed, about %.0f s left on it",
            *(part.contig, count, len(windows), inside.stop - inside.start),
            *(core.stop - core.start, seconds / count * (len(windows) - count)),
        )


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
    model: tuple[float, float],
    window: MapWindow,
    threads: int,
) -> np.ndarray:
    """Probability of ALT, float32 (n_targets, n_sites)."""
    units = impute_alleles(
        *(source, rows, np.ascontiguousarray(alleles)),
        ne=model[0],
        mismatch=model[1],
        own=masked,
        windows=[window],
        threads=threads,
    )
    return allele_share(units)


def _write(vcf: ImputedVcf, part: HaplotypePart, window: MapWindow, done: Imputed) -> None:
    """Write a window, some sites at a time."""
    names = site_ids(part, window.first, window.last)
    for low in range(0, len(done.info), WRITTEN_SITES):
        high = min(low + WRITTEN_SITES, len(done.info))
        rows = slice(window.first + low, window.first + high)
        bases = (list(bytes(column[rows]).decode("ascii")) for column in (part.ref, part.alt))
        sites = ImputedSites(
            *(part.contig, np.array(part.pos[rows]), names[low:high], *bases, done.info[low:high])
        )
        vcf.write(sites, done.thousandths(low, high))
