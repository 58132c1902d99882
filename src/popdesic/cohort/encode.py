"""Encode a cohort on the panel: PLINK files of its called genotypes, and its bit-planes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..engine.terms import Planes, aligned_zeros
from ..engine.threads import run_tasks
from ..io.bed import open_cohort, read_bim, write_fam
from ..io.errors import UserError
from ..io.files import atomic_path, read_json, write_json
from ..io.genotypes import BED_MAGIC, bed_row_bytes, take_samples
from ..io.tables import open_lines, read_table, write_rows
from .impute import fill_words
from .match import _no_overlap, match_sites
from .panel import load_panel

#: Sites per chunk; a multiple of 64, so that chunks end on whole words.
CHUNK_SITES = 16_384
#: Words of a sample's plane are padded to whole 512-bit vectors.
WORDS_MULTIPLE = 8
_MISSING_BYTE = 0x55
#: Every .bed byte with its homozygotes swapped: pairs of equal bits are inverted.
_SWAPPED = np.array(
    [
        sum((code ^ 3 if (code := (b >> s) & 3) in (0, 3) else code) << s for s in (0, 2, 4, 6))
        for b in range(256)
    ],
    np.uint8,
)


def encode_cohort(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    out: Path,
    *,
    impute: str,
    cohort: str,
    threads: int = 1,
    imputed: Sequence[Path] = (),
) -> dict[str, int]:
    """Match a cohort to the panel and write `{out}/genotypes.*` and `{out}/planes.*`.

    Parameters
    ----------
    raw : Path
        Stem of the cohort's decoded .bed, .bim and .fam.
    qc_samples : Path
        Sample table; samples with ``keep`` = no, or without a row, are left out.
    out : Path
        Folder of `genotypes.bed .bim .fam` (called genotypes only, REF and ALT as in the panel)
        and `planes.npy` with `planes.json` (DESIGN section 4).
    impute : str
        ``mode``, ``none`` or ``beagle``.
    imputed : paths
        With ``beagle`` the imputed rows of all windows, in panel order (`popdesic.cohort.beagle`).

    Returns
    -------
    dict
        Counts: panel sites found, absent, found with REF and ALT swapped, dropped as swapped and
        strand-ambiguous; cohort sites not on the panel; missing genotypes.

    Raises
    ------
    UserError
        No site of the cohort is on the panel, or a kept sample has no called genotype there.
    """
    panel, digest = load_panel(panel_path)
    bim, table = read_bim(raw), read_table(qc_samples)
    rows, fam = open_cohort(raw, table["sample"])
    kept = np.flatnonzero(table.keep.to_numpy() == "yes")
    row_of_site, swapped, counts = match_sites(bim, panel)
    if counts["panel_sites_found"] == 0:
        raise UserError(_no_overlap(cohort, raw, bim, panel))
    bed = _write_genotypes(rows, len(fam), kept, row_of_site, swapped, out)
    write_fam(out / "genotypes", fam.iloc[kept])
    mode = panel["mode"].to_numpy()
    filled = np.concatenate([np.load(path) for path in imputed]) if imputed else None
    if filled is not None and filled.shape != bed.shape:
        raise UserError(
            f"{Path(imputed[0]).parent} holds imputed genotypes of another panel or other samples "
            f"({filled.shape}, not {bed.shape}); delete the folder and rerun."
        )

    def planes() -> np.ndarray:
        return write_planes(bed, len(kept), mode, impute, out / "planes.npy", threads, filled)

    # Packing does not hold the lock of Python, as writing the sites as text does.
    tasks = [(planes,), (lambda: _write_sites(panel, out / "genotypes.bim"),)]
    missing = run_tasks(lambda task: task(), tasks, threads)[0]
    names = fam["sample"].iloc[kept].tolist()
    _refuse_uncalled(raw, cohort, names, missing == len(panel), len(panel))
    counts |= {"samples": len(kept), "missing_genotypes": int(missing.sum())}
    write_json(
        out / "planes.json",
        {
            "cohort": cohort,
            "panel": digest,
            "n_sites": len(panel),
            "impute": impute,
            "samples": names,
            "counts": counts,
        },
    )
    return counts


def require_called(raw: Path, qc_samples: Path, panel: pd.DataFrame, *, cohort: str) -> None:
    """Raise the UserError of `encode_cohort` for a sample without calls on the panel.

    One quick pass over the cohort's rows, for long computations that precede encoding.
    """
    from ..engine.host.genotypes import add_by_sample

    table = read_table(qc_samples)
    kept = (table.keep == "yes").to_numpy()
    rows = np.sort(match_sites(read_bim(raw), panel)[0])
    rows = rows[rows >= 0]
    bed, fam = open_cohort(raw, table["sample"])
    counts = np.zeros((len(kept), 4), np.int64)
    for first in range(0, len(rows), CHUNK_SITES):
        add_by_sample(bed[rows[first : first + CHUNK_SITES]], counts)
    unknown = kept & (counts[:, :3].sum(axis=1) == 0)
    _refuse_uncalled(raw, cohort, list(fam["sample"]), unknown, len(panel))


def _write_sites(panel: pd.DataFrame, path: Path) -> None:
    with atomic_path(path) as temporary, open_lines(temporary) as file:
        write_rows(file, panel.assign(cm="0")[["chrom", "id", "cm", "pos", "alt", "ref"]])


def _refuse_uncalled(raw: Path, cohort: str, names: list[str], unknown: np.ndarray, n_sites: int):
    for index in np.flatnonzero(unknown)[:1]:
        raise UserError(
            f"{raw}.bed: sample '{names[index]}' of cohort '{cohort}' has no called genotype at "
            f"any of the panel's {n_sites} sites; remove it from the file and the sample sheet."
        )


def _write_genotypes(rows, n_samples, kept, row_of_site, swapped, out: Path) -> np.ndarray:
    """Write `genotypes.bed` in panel order and return its rows, memory-mapped."""
    path = out / "genotypes.bed"
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(BED_MAGIC)
        for first in range(0, len(row_of_site), CHUNK_SITES):
            part = slice(first, first + CHUNK_SITES)
            chunk = place_rows(rows, n_samples, kept, row_of_site[part], swapped[part])
            file.write(chunk.tobytes())
    return np.memmap(
        path, np.uint8, "r", offset=3, shape=(len(row_of_site), bed_row_bytes(len(kept)))
    )


def place_rows(
    rows: np.ndarray, n_samples: int, kept: np.ndarray, source: np.ndarray, turned: np.ndarray
) -> np.ndarray:
    """Rearrange rows of a cohort's .bed to panel sites and alleles.

    Parameters
    ----------
    rows : uint8 array, (n_rows, row_bytes)
        The cohort's .bed, with `n_samples` samples.
    kept : int array
        Samples to keep.
    source : int array, (n_sites,)
        Row of each site, or -1 for an absent site (all missing).
    turned : bool array, (n_sites,)
        Whether REF and ALT are swapped.

    Returns
    -------
    uint8 array, (n_sites, ceil(len(kept) / 4)); padding bits are zero
    """
    here = source >= 0
    chunk = np.full((len(source), rows.shape[1]), _MISSING_BYTE, np.uint8)
    chunk[here] = rows[source[here]]
    chunk[turned] = _SWAPPED[chunk[turned]]
    if len(kept) != n_samples:
        return take_samples(chunk, np.asarray(kept, np.int64))
    if n_samples % 4:
        chunk[:, -1] &= (1 << (2 * (n_samples % 4))) - 1
    return chunk


def write_planes(
    bed: np.ndarray,
    n_samples: int,
    mode: np.ndarray,
    impute: str,
    out: Path,
    threads: int = 1,
    filled: np.ndarray | None = None,
) -> np.ndarray:
    """Write `planes.npy` from .bed rows in panel order; the called plane only if calls are missing.

    If a program has imputed, `filled` has its .bed rows of the same sites.

    Returns
    -------
    int64 array, (n_samples,)
        Missing genotypes of each sample.
    """
    with atomic_path(out) as temporary:
        shape = _planes_shape(bed, n_samples)
        words = np.lib.format.open_memmap(temporary, "w+", np.dtype("<u8"), shape)
        # Allocate first: a full disk then raises OSError, not a bus error in the memory map.
        with open(temporary, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, temporary.stat().st_size)
        missing = _fill_planes(bed, *fill_words(mode, impute), words, threads, filled)
        words.flush()
        del words
    return missing


def planes_in_memory(
    bed: np.ndarray, n_samples: int, threads: int = 1, mode: np.ndarray | None = None
) -> Planes:
    """Pack .bed rows (n_sites, row_bytes) into planes in memory.

    `mode`, int (n_sites,), fills missing genotypes; None fills nothing.
    """
    words = aligned_zeros(_planes_shape(bed, n_samples))
    fills = fill_words(np.zeros(len(bed), np.int64), "none")
    if mode is not None:
        fills = fill_words(mode, "mode")
    _fill_planes(bed, *fills, words, threads)
    return Planes(words, len(bed))


def _planes_shape(bed: np.ndarray, n_samples: int) -> tuple[int, int, int]:
    n_words = -(-len(bed) // (64 * WORDS_MULTIPLE)) * WORDS_MULTIPLE
    return n_samples, 3 if _any_missing(bed) else 2, n_words


def _fill_planes(
    bed, fill_carrier, fill_hom, words: np.ndarray, threads: int, filled=None
) -> np.ndarray:
    """Pack .bed rows into zeroed `words`; return int64 (n_samples,) missing genotypes."""
    from ..engine.host.genotypes import pack_planes

    n_samples, n_planes, _ = words.shape
    missing = np.zeros(n_samples, np.int64)
    for first in range(0, len(bed), CHUNK_SITES):
        chunk = np.ascontiguousarray(bed[first : first + CHUNK_SITES])
        word0, word1 = first // 64, -(-(first + len(chunk)) // 64)
        run = words[:, :, word0:word1]
        fills = fill_carrier[word0:word1], fill_hom[word0:word1]
        pack_planes(chunk, *fills, run, threads)
        if filled is not None:
            imputed = np.ascontiguousarray(filled[first : first + CHUNK_SITES])
            pack_planes(imputed, *fills, run[:, :2], threads)
        if n_planes == 3:
            missing += len(chunk) - np.bitwise_count(run[:, 2]).sum(axis=1, dtype=np.int64)
    return missing


def _any_missing(bed: np.ndarray) -> bool:
    """Whether any two-bit code is 01, missing (padding is 00)."""
    for first in range(0, len(bed), CHUNK_SITES):
        chunk = bed[first : first + CHUNK_SITES]
        if (chunk & ~(chunk >> 1) & 0x55).any():
            return True
    return False


def load_planes(folder: Path) -> tuple[Planes, dict]:
    """Return the planes of one cohort, memory-mapped, and their metadata (`planes.json`)."""
    about = read_json(folder / "planes.json")
    try:
        words = np.load(folder / "planes.npy", mmap_mode="r")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}/planes.npy cannot be read ({error}); delete it and rerun."
        ) from None
    if (
        words.ndim != 3
        or len(words) != len(about["samples"])
        or words.shape[2] * 64 < about["n_sites"]
    ):
        raise UserError(
            f"{folder}/planes.npy has shape {words.shape}, which does not fit planes.json "
            f"({len(about['samples'])} samples, {about['n_sites']} sites); delete both and rerun."
        )
    return Planes(words, about["n_sites"]), about
