"""Imputation of a cohort by copying from a frozen reference, at the panel's sites that it has.

A sample is phased and imputed from the reference and its own called genotypes, and its random
numbers depend on its name. So a result is that of the sample alone, and a newcomer changes no
byte of others. The reference is reduced to the sites that it shares with the panel, all of which
are typed but where a call is missing. Missing genotypes of other sites are filled with the panel's
most frequent genotype and counted. Called genotypes never change.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..copying.copying import pack_rows
from ..copying.copying_plan import DOSE_UNITS
from ..core.files import write_json
from ..core.tables import write_npy, write_npz
from ..io.frozen_haplotypes import open_haplotypes, require_intact
from ..io.genotypes import MISSING, bed_row_bytes, pack_bed, unpack_bed
from .absent import UNSTATED, Absent
from .accuracy import Imputer
from .accuracy_sums import squared_correlation
from .copy_accuracy import estimated_r2
from .copy_haplotypes import CopiedWindow, CopyOptions, impute_part, own_samples, phase_part
from .encode import OnPanel
from .impute import Window, plan_windows
from .panel import load_panel
from .phased_targets import TypedPart
from .shared_sites import SharedPart, share_sites

log = logging.getLogger("popdesic")


class CopiedSites(NamedTuple):
    """Sites of the panel, imputed in all samples, with the panel's REF and ALT.

    Attributes
    ----------
    sites : int64 array, (n_sites,)
        Rows of the panel.
    alleles : uint8 array, (n_sites, n_samples, 2)
        Phased: the call where there is one, else the most probable genotype.
    dosage : float32 array, (n_sites, n_samples)
        Expected ALT alleles.
    left_out : int8 array, (n_sites, n_samples)
        Genotypes by all other calls of a sample; of no meaning where its call is missing.
    r2 : float64 array, (n_sites,)
        Estimated r2 of alleles: variance of the probabilities over p (1 - p).
    """

    sites: np.ndarray
    alleles: np.ndarray
    dosage: np.ndarray
    left_out: np.ndarray
    r2: np.ndarray


def copy_sites(
    shared: list[SharedPart],
    genotypes: np.ndarray,
    start: int,
    names: list[str],
    own: dict[int, int],
    options: CopyOptions,
    folder: Path,
) -> Iterator[CopiedSites]:
    """Phase and impute consecutive sites of the panel, window by window of the reference's map.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        0, 1, 2 or MISSING.
    start : int
        The panel's row of the first site.
    own : dict
        Numbers in the reference of samples that it has too (`copy_haplotypes.own_samples`).
    folder : Path
        Folder for what does not fit into memory.
    """
    for one in shared:
        inside = (one.sites >= start) & (one.sites < start + len(genotypes))
        if not inside.any():
            continue
        sites, swapped, rows = one.sites[inside], one.swapped[inside], one.rows[inside]
        part = replace(
            one.part,
            pos=np.array(one.part.pos[rows]),
            cm=np.array(one.part.cm[rows]),
            haplotypes=np.array(one.part.haplotypes[rows]),
        )
        calls = _turned(genotypes[sites - start], swapped)
        alleles = np.stack([calls == 2, calls > 0], axis=2).astype(np.int8)
        alleles[calls == MISSING] = -1
        typed = TypedPart(
            np.arange(len(rows)),
            np.ascontiguousarray(alleles.reshape(len(rows), -1).T),
            np.repeat(np.arange(len(names)), 2).astype(np.int32),
            (calls == 1).any(axis=0),
        )
        typed = phase_part(part, typed, names, own, options)
        for copied in impute_part(part, typed, own, options, folder):
            window = slice(copied.window.first, copied.window.last)
            yield _oriented(copied, sites[window], swapped[window])


def _turned(genotypes: np.ndarray, swapped: np.ndarray) -> np.ndarray:
    """Genotypes (n_sites, n_samples) with REF and ALT exchanged at some sites."""
    return np.where(swapped[:, None] & (genotypes != MISSING), 2 - genotypes, genotypes)


def _oriented(copied: CopiedWindow, sites: np.ndarray, swapped: np.ndarray) -> CopiedSites:
    """What was imputed of a window, with the panel's REF and ALT."""
    units = np.array(copied.units)
    _, r2 = estimated_r2(units)
    alleles = likely_alleles(units[::2].T, units[1::2].T)
    alleles = np.where(swapped[:, None, None], 1 - alleles, alleles)
    dosage = (units[::2].astype(np.float32) + units[1::2]).T / np.float32(DOSE_UNITS)
    hidden = (np.nan_to_num(copied.hidden) * np.float32(DOSE_UNITS)).astype(np.int64)
    left_out = likely_alleles(hidden[::2].T, hidden[1::2].T).sum(axis=2, dtype=np.int8)
    return CopiedSites(
        sites,
        alleles,
        np.where(swapped[:, None], 2 - dosage, dosage).astype(np.float32),
        _turned(left_out, swapped),
        r2,
    )


def likely_alleles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Alleles of the most probable genotype, given the probabilities of ALT on both haplotypes.

    A sample with one ALT has it on the haplotype where it is more probable, else on the second.

    Parameters
    ----------
    first, second : int arrays, (n_sites, n_samples)
        In 1 / DOSE_UNITS.

    Returns
    -------
    uint8 array, (n_sites, n_samples, 2)
    """
    a, b = first.astype(np.int64), second.astype(np.int64)
    none, both = (DOSE_UNITS - a) * (DOSE_UNITS - b), a * b
    one = DOSE_UNITS**2 - none - both
    two = (both > one) & (both > none)
    some = two | (one > none)
    return np.stack([two | (some & (a > b)), two | (some & (a <= b))], axis=2).astype(np.uint8)


def copy_cohort(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    reference: Path,
    out: dict[str, Path],
    options: CopyOptions,
    absent: Absent = UNSTATED,
) -> dict[str, int]:
    """Impute a cohort on the whole panel.

    Parameters
    ----------
    raw, qc_samples, panel_path, absent
        As in `encode.encode_cohort`.
    reference : Path
        A file of `haplotype_panel.freeze_haplotypes`.
    out : dict
        Files: ``genotypes``, .npy of .bed rows of all sites in panel order, none missing, uint8
        (n_sites, ceil(n_samples / 4)). ``quality``, .npy, float64 (n_sites,): NaN where nothing is
        missing; otherwise the squared correlation of called genotypes and those that all other
        calls of their samples give, 0 where it is negative or undefined, or where the reference
        lacks the site; where nothing is called the estimated r2. ``haplotypes``, .npz with `sites`
        (rows of the panel that the reference has) and `haplotypes`, uint64 (n, n_words): bit 2 k
        and 2 k + 1 of a row, little-endian, say that the haplotypes of sample k have ALT.
        ``about``, .json: the reference and counts.

    Returns
    -------
    dict
        Counts: sites, those in the reference, missing genotypes, those filled by copying and those
        filled with the mode.

    Raises
    ------
    UserError
        The reference is damaged, or `share_sites` refuses it; or no sample has a called genotype.
    """
    panel, digest = load_panel(panel_path)
    frozen = open_haplotypes(reference)
    require_intact(frozen)
    shared = share_sites(frozen, panel)
    placed = OnPanel.open(raw, qc_samples, panel, absent)
    # Those whom encoding leaves out.
    placed.leave_out(placed.uncalled(), raw.parent.name)
    names = placed.names
    own = own_samples(names, frozen.samples)
    rows = np.empty((len(panel), bed_row_bytes(len(names))), np.uint8)
    r2, phased = np.full(len(panel), np.nan), []
    counts = Counter(sites=len(panel), in_reference=sum(len(one.sites) for one in shared))
    for path in out.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    for window in plan_windows(panel)[0]:
        genotypes = unpack_bed(placed.rows(window.start, window.stop), len(names))
        missing = genotypes == MISSING
        mode = panel["mode"].to_numpy(np.int8)[window.start : window.stop, None]
        filled, by_mode = np.where(missing, mode, genotypes), missing.copy()
        r2[window.start : window.stop] = np.where(missing.any(axis=1), 0.0, np.nan)
        given = genotypes, window.start, names, own, options, out["genotypes"].parent
        for copied in copy_sites(shared, *given):
            here = copied.sites - window.start
            filled[here], by_mode[here] = copied.alleles.sum(axis=2), False
            r2[copied.sites] = _quality(copied, genotypes[here])
            packed = pack_rows(copied.alleles.reshape(len(here), -1))
            phased.append((copied.sites, packed))
        rows[window.start : window.stop] = pack_bed(filled)
        counts["missing"] += int(missing.sum())
        counts["filled_with_mode"] += int(by_mode.sum())
    counts["filled_by_copying"] = counts["missing"] - counts["filled_with_mode"]
    write_npy(out["genotypes"], rows)
    write_npy(out["quality"], r2)
    sites, bits = (np.concatenate(arrays) for arrays in zip(*phased, strict=True))
    order = np.argsort(sites, kind="stable")
    write_npz(out["haplotypes"], sites=sites[order], haplotypes=bits[order])
    most = max(len(one.part.owner) for one in shared)
    told = {"digest": frozen.digest, "samples": len(frozen.samples), "haplotypes": most}
    write_json(out["about"], {"panel": digest, "reference": told, "counts": dict(counts)})
    return dict(counts)


def _quality(copied: CopiedSites, genotypes: np.ndarray) -> np.ndarray:
    """r2 of the genotypes that are filled, by site; NaN where none is missing."""
    called = genotypes != MISSING
    measured = squared_correlation(genotypes, copied.left_out, called)
    found = np.where(called.any(axis=1), measured, copied.r2)
    return np.where(called.all(axis=1), np.nan, found)


def by_copying(reference: Path, panel_path: Path, options: CopyOptions) -> Imputer:
    """Imputation by copying from a frozen reference, for `accuracy.evaluate_window`."""
    frozen = open_haplotypes(reference)
    require_intact(frozen)
    shared = share_sites(frozen, load_panel(panel_path)[0])

    def impute(shown, sites, window: Window, names: list[str], folder: Path):
        mode = sites["mode"].to_numpy(np.int8)[:, None]
        called = np.where(shown == MISSING, mode, shown)
        dosage = called.astype(np.float32)
        own = own_samples(names, frozen.samples)
        for copied in copy_sites(shared, shown, window.start, names, own, options, folder):
            here = copied.sites - window.start
            called[here], dosage[here] = copied.alleles.sum(axis=2), copied.dosage
        return called, dosage

    return impute
