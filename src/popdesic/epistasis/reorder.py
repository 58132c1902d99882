"""One-hot planes of the scanned sites, split by phenotype: the input of the epistasis scans.

Within a site, genotypes are ranked by frequency and only the two rarest (and missing) are stored.
Sites are sorted by the number of samples in their stored states, fewest first, because scans
compact these samples. Where at most half of the sites lack genotypes, these come first, in the same
order among themselves, so that the others form a block (`epistasis/parts_plan.py`). Genotype
labels and panel order are kept beside the planes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.tables import read_table, write_table, writing_npy
from ..io.bed import forget_pages, open_bed, read_bim, read_fam
from ..io.genotypes import pack_bed
from ..io.sites import canonical_contig
from .phenotype import MAX_SAMPLES
from .scan_data import OneHot
from .site_list import SiteList, read_site_list
from .stored_planes import (
    ScannedRows,
    class_masks,
    count_scanned,
    plane_blocks,
    words_of_rows,
)

logger = logging.getLogger("popdesic")

#: Largest share of sites with missing genotypes that are put before the others. Of triples with one
#: such site, it is then the one whose samples are compacted, which may not be the rarest.
MOST_INCOMPLETE = 1 / 2
#: Most entries of a list that the log names.
MOST_NAMED = 5


def read_restriction(path: Path, bim: pd.DataFrame) -> np.ndarray:
    """Sites listed in a file, bool (n_sites,); entries that match none are counted in the log.

    See `site_list.read_site_list`. `chr1` and `1` are the same contig, as in the panel.

    Raises
    ------
    UserError
        The file is invalid, or no entry matches a panel site.
    """
    listed = read_site_list(path)
    contigs = bim.chrom.map(canonical_contig)
    keep = np.zeros(len(bim), bool)
    if listed.names:
        keys = contigs + ":" + bim.pos.astype(str) + ":" + bim.ref + ":" + bim.alt
        entries = [(name, _canonical_key(name)) for name in listed.names]
        known, known_keys = set(bim.id), set(keys)
        found = [name in known or key in known_keys for name, key in entries]
        keep |= bim.id.isin({name for name, _ in entries}).to_numpy()
        keep |= keys.isin({key for _, key in entries}).to_numpy()
    else:
        rows = {contig: group.to_numpy() for contig, group in bim.groupby(contigs).groups.items()}
        pos, found = bim.pos.to_numpy(), []
        for contig, start, end in listed.ranges:
            chosen = rows.get(canonical_contig(contig), np.empty(0, np.int64))
            chosen = chosen[(pos[chosen] > start) & (pos[chosen] <= end)]
            keep[chosen] = True
            found.append(len(chosen) > 0)
    if not keep.any():
        raise UserError(
            f"{path}: none of its {len(found)} entries matches a panel site; check the names of "
            "chromosomes and sites (epistasis.restrict)."
        )
    _log_unmatched(path, listed, found, set(contigs))
    return keep


def _canonical_key(name: str) -> str:
    """chrom:pos:ref:alt with the contig's canonical name; an ID stays unchanged."""
    contig, colon, rest = name.partition(":")
    return f"{canonical_contig(contig)}{colon}{rest}" if colon else name


def _log_unmatched(path: Path, listed: SiteList, found: list[bool], contigs: set[str]) -> None:
    """Log how many entries match no panel site, and the first of them."""
    lost = [k for k, hit in enumerate(found) if not hit]
    if not lost:
        return
    entries = listed.names or [f"{c}:{start}-{end}" for c, start, end in listed.ranges]
    named = [f"row {listed.rows[k]} ({entries[k]})" for k in lost[:MOST_NAMED]]
    absent = {c for c, _, _ in listed.ranges if canonical_contig(c) not in contigs}
    logger.warning(
        "%s (epistasis.restrict): %d of %d entries match no panel site: %s%s%s",
        path,
        len(lost),
        len(found),
        ", ".join(named),
        " and others" if len(lost) > MOST_NAMED else "",
        f"; contigs not on the panel: {', '.join(sorted(absent)[:MOST_NAMED])}" if absent else "",
    )


def build_onehot(
    prefixes: list[Path],
    samples: pd.DataFrame,
    classes: np.ndarray,
    *,
    quantitative: bool = False,
    strata: str,
    restrict: Path | None,
    least: int,
    onehot_out: Path,
    sites_out: Path,
    samples_out: Path,
    threads: int = 1,
) -> dict[str, object]:
    """Write the one-hot planes of all samples with a phenotype.

    Genotypes are read twice, in pieces: to count them, and in the order of the planes.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel (.bed .bim .fam), called genotypes only.
    samples, classes
        Rows of the sample sheet and their `phenotype.scan_phenotype`.
    quantitative : bool
        The phenotype is a number: class 0 is everybody.
    strata : str
        Column of the sheet within which phenotypes may be permuted, or ``none``.
    restrict : Path, optional
        See `read_restriction`.
    least : int
        Fewest sites that the scans of this study need; with fewer, they test nothing.
    onehot_out : Path
        uint64 (n_sites, n_states, words of the controls + words of the cases), as
        `scan_data.OneHot`: rarest genotype, second rarest and, if any genotype is missing,
        missing.
    sites_out : Path
        chrom, pos, id, ref, alt, `rank` (row in the panel), `state0`, `state1`, `other` (ALT
        counts of the stored genotypes and of the third one), `n_missing`.
    samples_out : Path
        sample, cohort, stratum, class (case, control or quantitative), phenotype; controls first,
        as in the planes.

    Returns
    -------
    dict
        Numbers of samples, sites, and dropped sites by reason; shares of the scanned sites'
        genotypes by rank, and of those that are stored.
    """
    sheet = samples.set_index("sample")
    names = [read_fam(prefix)["sample"].tolist() for prefix in prefixes]
    # Keep the classes out of the table: the sheet may have a column with any name.
    place = pd.Series(np.arange(len(sheet)), sheet.index)
    rows = place.loc[[name for group in names for name in group]].to_numpy()
    kept, case = sheet.iloc[rows], np.asarray(classes)[rows]
    if strata != "none" and strata not in kept:
        raise UserError(
            f"config/config.yaml: epistasis.strata is '{strata}', which is not a column of the "
            "sample sheet; name one, or 'none'."
        )
    stratum = np.full(len(kept), "all", object)
    if strata != "none":
        stratum = kept[strata].replace("", "NA").to_numpy()
    if len(case) > MAX_SAMPLES:
        raise UserError(
            f"epistasis: {len(case)} samples are more than the {MAX_SAMPLES} that a scan can "
            "count; leave some without a phenotype."
        )
    if quantitative and not (case == 0).any():
        raise UserError(
            "epistasis: after quality control no sample has a phenotype; lower "
            "qc.min_sample_call_rate or set epistasis.order to []."
        )
    if not quantitative and not ((case == 0).any() and (case == 1).any()):
        raise UserError(
            "epistasis: after quality control only one phenotype class has samples; lower "
            "qc.min_sample_call_rate or set epistasis.order to []."
        )
    # Controls first, both in sample order.
    order = np.concatenate([np.flatnonzero(case == 0), np.flatnonzero(case == 1)])
    n_controls = int((case == 0).sum())
    bim = read_bim(prefixes[0]).reset_index(drop=True)
    chosen = np.ones(len(bim), bool) if restrict is None else read_restriction(restrict, bim)
    rows = np.flatnonzero(chosen)
    packed = _packed_cohorts(prefixes, names, case)
    sites, counts = order_sites(packed, rows, threads)
    if len(sites) < least:
        logger.warning(
            "%s; widen epistasis.restrict or the panel's filters", too_few_sites(len(sites), least)
        )
    shape = planes_shape(packed, sites)
    with writing_npy(onehot_out, shape, np.dtype(np.uint64)) as write:
        for block in planes_in_order(packed, sites, threads):
            write(block)
    panel = bim[["chrom", "pos", "id", "ref", "alt"]].iloc[sites["rank"]].reset_index(drop=True)
    write_table(sites_out, pd.concat([panel, sites], axis=1))
    listed, name_of_rest = kept.iloc[order], "quantitative" if quantitative else "control"
    write_table(
        samples_out,
        pd.DataFrame(
            {
                "sample": listed.index,
                "cohort": listed.cohort.to_numpy(),
                "stratum": stratum[order],
                "class": np.where(case[order] == 1, "case", name_of_rest),
                "phenotype": listed.phenotype.to_numpy(),
            }
        ),
    )
    of_classes = {"controls": n_controls, "cases": len(order) - n_controls}
    return {
        **({"people": len(order)} if quantitative else of_classes),
        "sites": len(sites),
        "outside_restriction": int((~chosen).sum()),
        **counts,
    }


def _packed_cohorts(prefixes: list[Path], names: list[list[str]], case: np.ndarray) -> ScannedRows:
    """Genotypes of all cohorts; `case`: class of each of their samples, -1 in none."""
    beds = [
        open_bed(prefix, n_samples=len(group))
        for prefix, group in zip(prefixes, names, strict=True)
    ]
    ends = np.cumsum([bed.shape[1] for bed in beds]).tolist()
    places = np.concatenate(
        [
            4 * (end - bed.shape[1]) + np.arange(len(group))
            for bed, end, group in zip(beds, ends, names, strict=True)
        ]
    )

    def read(rows: np.ndarray) -> np.ndarray:
        return words_of_rows([bed[rows] for bed in beds])

    def done() -> None:
        for bed in beds:
            forget_pages(bed)

    return ScannedRows(read, class_masks(places, case, -(-ends[-1] // 8)), len(beds), done)


def too_few_sites(n_sites: int, least: int) -> str:
    """Why a scan of `least` sites at a time tests nothing."""
    are = "site is" if n_sites == 1 else "sites are"
    return (
        f"{n_sites} usable {are} fewer than the {least} that a scan of order {least} combines, so "
        "nothing is tested"
    )


def reorder_sites(
    read: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, n_controls: int
) -> tuple[np.ndarray, pd.DataFrame, dict[str, object]]:
    """One-hot planes of the polymorphic sites, in scan order.

    Parameters
    ----------
    read : callable
        ``read(part)`` gives the genotypes of some of `rows`: int8 (len(part), n_samples), -1
        missing, controls first.
    rows : int array
        Rows of the panel to use.
    n_controls : int

    Returns
    -------
    words : uint64 array, (n_sites, n_states, words of the controls + words of the cases)
        As written by `build_onehot`.
    sites : DataFrame
        `rank`, `state0`, `state1`, `other`, `n_missing` of each row.
    counts : dict
        Dropped sites by reason, and what `order_sites` adds.
    """
    n_samples = read(rows[:0]).shape[1]
    cases = (np.arange(n_samples) >= n_controls).astype(np.int8)
    masks = class_masks(np.arange(n_samples), cases, -(-n_samples // 32))

    def packed_rows(part: np.ndarray) -> np.ndarray:
        return words_of_rows([pack_bed(np.ascontiguousarray(read(part), np.int8))])

    packed = ScannedRows(packed_rows, masks)
    sites, counts = order_sites(packed, rows)
    words, first = np.empty(planes_shape(packed, sites), np.uint64), 0
    for block in planes_in_order(packed, sites):
        words[first : first + len(block)] = block
        first += len(block)
    return words, sites, counts


def order_sites(
    packed: ScannedRows, rows: np.ndarray, threads: int = 1
) -> tuple[pd.DataFrame, dict[str, object]]:
    """The polymorphic sites in scan order, and counts for the log.

    Parameters and results as of `reorder_sites`; `counts` also has what share of the genotypes of
    these sites is the rarest, the second and the third of its site or missing, and how many of them
    planes store.
    """
    table = count_scanned(packed, rows, threads)
    called, most = table[:, :3].sum(axis=1), table[:, :3].max(axis=1)
    empty, good = called == 0, most < called
    counts = {
        "no_called_genotype": int(empty.sum()),
        "monomorphic": int((~empty & ~good).sum()),
    }
    rows, table = rows[good], table[good]
    ranked = np.argsort(table[:, :3], axis=1, kind="stable")
    n = np.take_along_axis(table[:, :3], ranked, axis=1)
    stored = n[:, 0] + n[:, 1] + table[:, 3]
    complete = table[:, 3] == 0
    if (~complete).sum() > MOST_INCOMPLETE * len(table):
        complete[:] = False  # one order of all sites
    order = np.lexsort((rows, stored, complete))
    columns = {"rank": rows, "state0": ranked[:, 0], "state1": ranked[:, 1], "other": ranked[:, 2]}
    columns["n_missing"] = table[:, 3]
    shares = np.append(n, table[:, 3:], axis=1).sum(axis=0) / max(1, int(table.sum()))
    rarest, second, third, missing = (f"{100 * share:.3g} %" for share in shares)
    counts |= {
        "genotypes": f"{rarest} rarest of their site, {second} second, {third} third, {missing} "
        "missing",
        "stored": f"{100 * (1 - shares[2] if len(rows) else 0.0):.3g} % of these genotypes",
    }
    return pd.DataFrame({name: column[order] for name, column in columns.items()}), counts


def planes_shape(packed: ScannedRows, sites: pd.DataFrame) -> tuple[int, int, int]:
    """Shape of the planes of the sites of `order_sites`."""
    n_words = sum(-(-n // 64) for n in packed.sizes)
    return len(sites), 3 if (sites["n_missing"] > 0).any() else 2, n_words


def planes_in_order(
    packed: ScannedRows, sites: pd.DataFrame, threads: int = 1
) -> Iterator[np.ndarray]:
    """`stored_planes.plane_blocks` of the sites of `order_sites`."""
    rows, stored = sites["rank"].to_numpy(), sites[["state0", "state1"]].to_numpy()
    return plane_blocks(packed, rows, stored, planes_shape(packed, sites)[1], threads)


def pack_states(states: np.ndarray, n_controls: int, n_states: int = 0) -> np.ndarray:
    """States packed as in onehot.npy; controls are the first columns.

    `n_states`: 0: three if any genotype is missing.
    """
    kinds = range(n_states or (3 if (states == 2).any() else 2))
    parts = []
    for part in (states[:, :n_controls], states[:, n_controls:]):
        n_bytes = -(-part.shape[1] // 64) * 8
        words = np.zeros((len(states), len(kinds), n_bytes), np.uint8)
        for k, kind in enumerate(kinds):
            bits = np.packbits(part == kind, axis=1, bitorder="little")
            words[:, k, : bits.shape[1]] = bits
        parts.append(words.view(np.uint64))
    return np.concatenate(parts, axis=2)


def unpack_states(words: np.ndarray, n_controls: int, n_cases: int) -> np.ndarray:
    """States int8 (n_sites, n_samples), controls first, from the array of onehot.npy."""
    split = -(-n_controls // 64)
    out = np.full((len(words), n_controls + n_cases), 3, np.int8)
    for part, columns, n in (
        (words[:, :, :split], slice(0, n_controls), n_controls),
        (words[:, :, split:], slice(n_controls, None), n_cases),
    ):
        for k in range(words.shape[1]):
            plane = np.ascontiguousarray(part[:, k]).view(np.uint8)
            bits = np.unpackbits(plane, axis=1, count=n, bitorder="little")
            out[:, columns][bits == 1] = k
    return out


def read_reordered(folder: Path) -> tuple[np.ndarray, pd.DataFrame, pd.DataFrame]:
    """onehot.npy (memory-mapped), sites.tsv and samples.tsv of results/reorder."""
    sites = read_table(folder / "sites.tsv")
    numbers = ["pos", "rank", "state0", "state1", "other", "n_missing"]
    return (
        np.load(folder / "onehot.npy", mmap_mode="r"),
        sites.astype(dict.fromkeys(numbers, np.int64)),
        read_table(folder / "samples.tsv"),
    )


def split_classes(
    words: np.ndarray, n_controls: int, n_cases: int, *, mapped: bool = False
) -> tuple[OneHot, OneHot]:
    """Split the array of onehot.npy into the two phenotype classes; `mapped`: without copies."""
    split = -(-n_controls // 64)
    parts = [words[:, :, :split], words[:, :, split:]]
    controls, cases = parts if mapped else map(np.ascontiguousarray, parts)
    return OneHot(controls, n_controls), OneHot(cases, n_cases)


def join_classes(words: np.ndarray, n_controls: int, n_cases: int) -> np.ndarray:
    """The planes of onehot.npy with controls and cases as one class, without the gap between."""
    controls, cases = (one.words for one in split_classes(words, n_controls, n_cases))
    shift, n_words = n_controls % 64, -(-(n_controls + n_cases) // 64)
    if not shift:
        return np.concatenate([controls, cases], axis=2)
    out = np.zeros((*words.shape[:2], controls.shape[2] + cases.shape[2]), np.uint64)
    out[:, :, : controls.shape[2]] = controls
    first = controls.shape[2] - 1
    out[:, :, first : first + cases.shape[2]] |= cases << np.uint64(shift)
    out[:, :, first + 1 : first + 1 + cases.shape[2]] |= cases >> np.uint64(64 - shift)
    return np.ascontiguousarray(out[:, :, :n_words])


def genotypes_of_planes(words, sites: pd.DataFrame, n_controls: int, n_cases: int) -> np.ndarray:
    """ALT counts of the planes' sites, int8 (n_sites, n_samples), -1 missing; controls first."""
    labels = sites[["state0", "state1", "other"]].to_numpy(np.int8)
    labels = np.insert(labels, 2, -1, axis=1)  # states: stored, stored, missing, other
    states = unpack_states(words, n_controls, n_cases)
    out = np.repeat(labels[:, 3:], states.shape[1], axis=1)
    for k in range(words.shape[1]):
        np.copyto(out, labels[:, k : k + 1], where=states == k)
    return out


def sites_of_hits(hits: pd.DataFrame, sites: pd.DataFrame, order: int) -> np.ndarray:
    """Rows in `sites` of the sites of each hit: int64 (n_hits, order)."""
    keys = ["chrom", "pos", "ref", "alt"]

    def names(table: pd.DataFrame, columns: list[str]) -> list[tuple[str, ...]]:
        return list(table[columns].astype(str).itertuples(index=False, name=None))

    place = {name: row for row, name in enumerate(names(sites, keys))}
    columns = [[f"{key}{k}" for key in keys] for k in range(1, order + 1)]
    found = [[place[name] for name in names(hits, chosen)] for chosen in columns]
    return np.array(found, np.int64).reshape(order, len(hits)).T
