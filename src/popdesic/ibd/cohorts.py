"""Segments of all pairs of a study's people: rows of tiles, and the tables that join them."""

from __future__ import annotations

import csv
import functools
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import content_key, read_json, write_json
from ..core.tables import open_text, write_rows, write_table
from ..distance.fill_rows import RowWork, update_rows
from ..distance.rows import Pair, read_tiles, tile_key
from ..distance.tiles import load_of_one_panel
from ..engine.backend import Backend
from ..engine.terms import Planes
from ..io.sites import chunks
from .definition import SegmentLimits, Segments
from .degrees import DegreeScale
from .genome import load_genome, load_limits, load_sites
from .haploid_blocks import FITS, haploid_blocks
from .segments import SearchGenome, candidate_parts, candidates_between, segments_of
from .windows import GeneticSites

#: Ending of the file of a tile, and of the fits of all its pairs, which haploids have beside it.
ENDING, FITS_ENDING = ".segments.tsv.gz", ".fits.tsv.gz"
COLUMNS = ["sample1", "sample2", "contig", "start", "end", "cM", "LOD", "ibd", "sites", "errors"]
PAIRS = ["sample1", "sample2", "cohort1", "cohort2", "segments", "total_cM", "longest_cM"]
HAPLOID_PAIRS = [*PAIRS, *FITS[2:]]
PAIRS += ["ibd2_cM", "kinship"]
#: Samples of one side of a block of pairs.
BLOCK_SAMPLES = 4096
#: Candidates whose segments are in memory at once, some 0.3 KB each.
CANDIDATES_AT_ONCE = 1 << 20
#: Rows of segments that are read at once.
READ_ROWS = 1 << 18


def measure_rows(
    rows: Mapping[Path, Sequence[Pair]],
    folders: Mapping[str, Path],
    genome: Path,
    panel: Path,
    backend: Callable[[int], Backend],
    code: str,
) -> dict[str, int]:
    """Find the segments between cohorts and others: what is missing or changed of rows of tiles.

    Parameters
    ----------
    rows : dict
        Pairs, each in sample order, of each row by its list, ``ibd/tiles/{owner}/row.json``; the
        segments of a pair of cohorts lie beside it (ENDING).
    folders : dict
        Folder of `planes.npy` of each cohort of the rows.
    genome, panel : Path
        `ibd/genome.npz`, with the limits of segments beside it, and `panel/sites.tsv`.
    backend : function
        See `distance.fill_rows.fill_rows`.
    code : str
        Digest of the code that finds segments.

    Returns
    -------
    dict
        Counts for the log.
    """
    limits = load_limits(genome)
    haploid = _of_haploids(genome)
    about = content_key(genome), content_key(panel), repr(asdict(limits)), code
    about += ("haploid",) * haploid

    def keys_of(pairs: Sequence[Pair]) -> dict[Pair, str]:
        return {pair: tile_key(pair, folders, *about) for pair in pairs}

    prepared = functools.cache(partial(load_genome, genome, panel))  # read if a tile is computed

    def compute(a, b, files, chosen, held) -> dict[str, int]:
        if haploid:
            return write_haploids(a, b, files, load_sites(genome, panel), limits, chosen.threads)
        return write_tile(a, b, files[0], prepared(), limits, chosen)

    endings = (ENDING, FITS_ENDING) if haploid else (ENDING,)
    works = [
        RowWork(out, pairs, endings, keys_of(pairs), compute, label=f"{out.parent.name}: ")
        for out, pairs in rows.items()
    ]
    return update_rows(works, folders, backend)


def _of_haploids(genome: Path) -> bool:
    """Whether a genome was prepared for haploid samples."""
    return read_json(genome.with_suffix(".json")).get("ploidy") == 1


def write_haploids(
    folder_a: Path,
    folder_b: Path,
    files: Sequence[Path],
    panel: tuple[GeneticSites, pd.DataFrame],
    limits: SegmentLimits,
    threads: int,
) -> dict[str, int]:
    """Write the segments and the fits between two cohorts of haploids, or of one with itself.

    Parameters
    ----------
    files : list of Path
        Of the segments, columns COLUMNS; of the fits of all pairs, columns FITS.
    panel : tuple
        From `genome.load_sites`.

    Returns
    -------
    dict
        Pairs fitted, segments.
    """
    (a, about_a), (b, about_b) = load_of_one_panel([folder_a, folder_b])
    sites, table = panel
    other = None if folder_a == folder_b else b
    names = about_a["samples"], about_b["samples"]
    af = table.af.to_numpy(np.float64)
    counts = {"pairs": 0, "segments": 0}
    with open_text(files[0]) as segments, open_text(files[1]) as fitted:
        segments.write("\t".join(COLUMNS) + "\n")
        fitted.write("\t".join(FITS) + "\n")
        for found, who, fits in haploid_blocks(a, other, names, sites, af, limits, threads):
            write_rows(segments, segments_table(found, *who, sites))
            write_rows(fitted, fits)
            counts["pairs"] += len(fits)
            counts["segments"] += len(found)
    return counts


def write_tile(
    folder_a: Path,
    folder_b: Path,
    out: Path,
    genome: SearchGenome,
    limits: SegmentLimits,
    backend: Backend,
) -> dict[str, int]:
    """Write the segments between two cohorts, or of one with itself (the same folder twice).

    Returns
    -------
    dict
        Pairs compared, candidates, segments with one and with two shared alleles.

    Raises
    ------
    UserError
        More candidates than `limits.most`.
    """
    (a, about_a), (b, about_b) = load_of_one_panel([folder_a, folder_b])
    same = folder_a == folder_b
    counts = dict.fromkeys(("pairs", "candidates", "segments"), 0)
    counts["stretches with two shared alleles"] = 0
    with open_text(out) as file:
        file.write("\t".join(COLUMNS) + "\n")
        for row0, row1 in chunks(a.n_samples, BLOCK_SAMPLES):
            for column0, column1 in chunks(b.n_samples, BLOCK_SAMPLES):
                if same and column0 < row0:
                    continue
                diagonal = same and row0 == column0
                block_a = Planes(a.words[row0:row1], a.n_sites)
                block_b = None if diagonal else Planes(b.words[column0:column1], b.n_sites)
                runs = candidates_between(block_a, block_b, genome, limits, backend)
                n, m = row1 - row0, column1 - column0
                counts["pairs"] += n * (n - 1) // 2 if diagonal else n * m
                counts["candidates"] += len(runs.i)
                _require_few(counts, limits, about_a["cohort"], about_b["cohort"])
                names = about_a["samples"][row0:row1], about_b["samples"][column0:column1]
                blocks = block_a, block_a if block_b is None else block_b
                for some in candidate_parts(runs, CANDIDATES_AT_ONCE):
                    found = segments_of(some, *blocks, genome, limits, backend.threads)
                    write_rows(file, segments_table(found, *names, genome.sites))
                    two = int(np.sum(found.shared == 2))
                    counts["segments"] += len(found) - two
                    counts["stretches with two shared alleles"] += two
    return counts


def _require_few(counts: dict[str, int], limits: SegmentLimits, one: str, other: str) -> None:
    """Raise a `UserError` if two cohorts have more candidates than may be kept."""
    if counts["candidates"] > limits.most:
        who = f"within {one}" if one == other else f"between {one} and {other}"
        raise UserError(
            f"ibd: {counts['candidates']} candidates of segments were found in {counts['pairs']} "
            f"pairs {who}, more than the {limits.most} that can be judged: these samples share "
            "very much. Raise ibd.min_cm."
        )


def segments_table(
    found: Segments, names_a: Sequence[str], names_b: Sequence[str], sites: GeneticSites
) -> pd.DataFrame:
    """Segments as they are written, columns COLUMNS."""
    one, two = np.array(names_a, object), np.array(names_b, object)
    values = (
        *(one[found.a], two[found.b], sites.chrom[found.first]),
        *(sites.pos[found.first], sites.pos[found.last]),
        *(found.cm, found.lod, found.shared, found.called, found.errors),
    )
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))


def join_tiles(
    rows: Sequence[Path],
    genome: Path,
    panel: Path,
    cohorts: Mapping[str, str],
    segments: Path,
    pairs: Path,
    summary: Path,
    min_cm: float,
) -> dict[str, Any]:
    """Join the tiles of all rows to tables of segments and of pairs.

    Parameters
    ----------
    rows : list of Path
        `row.json` of each row.
    cohorts : dict
        Cohort of each sample.
    segments, pairs, summary : Path
        `ibd/segments.tsv.gz`, `ibd/pairs.tsv` (closest first), `ibd/summary.json`. Of haploids
        the pairs are all that were fitted, and the summary has their mean fraction, and sites of
        segments at which both are called and `differ`.

    Returns
    -------
    dict
        Content of `summary`: what was searched (`genome.json`), numbers of pairs and segments.
    """
    tiles = list(read_tiles(rows, ENDING).values())
    parts, sites_called, sites_differ = [], 0, 0
    with open_text(segments) as file:
        file.write("\t".join(COLUMNS) + "\n")
        for tile in tiles:
            for part in cut_parts(read_segments(tile), _first_of_pairs):
                write_rows(file, part)
                parts.append(segment_sums(part))
                sites_called += int(part.sites.sum())
                sites_differ += int(part.errors.sum())
    sites, _ = load_sites(genome, panel)
    scale = DegreeScale(sites.lengths(), min_cm)
    table, about = segment_pairs(parts, cohorts, scale), read_json(genome.with_suffix(".json"))
    about |= {
        "samples": len(cohorts),
        "pairs_with_segments": len(table),
        "segments": int(table.segments.sum()),
        "searched_cm": round(scale.searched_cm, 6),
    }
    if _of_haploids(genome):
        table = _fitted_pairs(table, read_tiles(rows, FITS_ENDING).values(), cohorts)
        about |= {"pairs_fitted": len(table), "called": sites_called, "differ": sites_differ}
        about["mean_fraction"] = round(float(table.fraction.mean()), 6) if len(table) else None
    write_table(pairs, table)
    write_json(summary, about)
    return about


def _fitted_pairs(
    table: pd.DataFrame, tiles: Iterable[Path], cohorts: Mapping[str, str]
) -> pd.DataFrame:
    """All fitted pairs of haploids, columns HAPLOID_PAIRS: longest total, then fraction first."""
    fits = pd.concat([part for tile in tiles for part in read_segments(tile)], ignore_index=True)
    fits = fits[fits.fraction.notna()]
    sums = table[["sample1", "sample2", "segments", "total_cM", "longest_cM"]]
    joined = fits.merge(sums, "left", on=["sample1", "sample2"])
    absent = {"segments": 0, "total_cM": 0.0, "longest_cM": 0.0}
    joined = joined.fillna(absent).astype({"segments": np.int64})
    joined = joined.assign(
        cohort1=joined.sample1.map(cohorts), cohort2=joined.sample2.map(cohorts)
    ).sort_values(
        ["total_cM", "fraction", "sample1", "sample2"],
        ascending=[False, False, True, True],
        kind="stable",
    )
    return joined[HAPLOID_PAIRS].reset_index(drop=True)


def read_segments(path: Path) -> Iterator[pd.DataFrame]:
    """A table of segments, or of fits, in parts, numbers as numbers."""
    kinds = {"sample1": str, "sample2": str, "contig": str}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from pd.read_csv(
            file,
            sep="\t",
            dtype=kinds,
            keep_default_na=False,
            na_values={key: ["NA"] for key in FITS[4:]},  # of names it is one
            quoting=csv.QUOTE_NONE,
            chunksize=READ_ROWS,
        )


def cut_parts(
    parts: Iterable[pd.DataFrame], may_begin: Callable[[pd.DataFrame], np.ndarray]
) -> Iterator[pd.DataFrame]:
    """The same rows in parts that begin where they may: at rows that a function marks."""
    held = None
    for part in parts:
        table = part if held is None else pd.concat([held, part], ignore_index=True)
        starts = np.flatnonzero(may_begin(table))
        cut = int(starts[-1]) if len(starts) else 0
        if cut:
            yield table.iloc[:cut].reset_index(drop=True)
        held = table.iloc[cut:]
    if held is not None and len(held):
        yield held.reset_index(drop=True)


def _first_of_pairs(table: pd.DataFrame) -> np.ndarray:
    """Rows of segments at which another pair begins: bool (n_rows,)."""
    names = table[["sample1", "sample2"]]
    return (names != names.shift()).any(axis=1).to_numpy()


def segment_sums(table: pd.DataFrame) -> pd.DataFrame:
    """Number, total, longest and IBD2 length of each pair's segments."""
    one = (table.ibd == 1).to_numpy()
    cm = table.cM.to_numpy(np.float64)
    sums = table[["sample1", "sample2"]].assign(
        segments=one.astype(np.int64),
        total_cM=np.where(one, cm, 0.0),
        longest_cM=np.where(one, cm, 0.0),
        ibd2_cM=np.where(one, 0.0, cm),
    )
    how = {"segments": "sum", "total_cM": "sum", "longest_cM": "max", "ibd2_cM": "sum"}
    return sums.groupby(["sample1", "sample2"], sort=False, as_index=False).agg(how)


def segment_pairs(
    parts: Sequence[pd.DataFrame], cohorts: Mapping[str, str], scale: DegreeScale
) -> pd.DataFrame:
    """The table of pairs, columns PAIRS; longest total first, ties by name."""
    empty = pd.DataFrame(columns=["sample1", "sample2", *PAIRS[4:8]])
    table = pd.concat(parts, ignore_index=True) if parts else empty
    total, two = (table[name].to_numpy(np.float64) for name in ("total_cM", "ibd2_cM"))
    table = table.assign(
        cohort1=table.sample1.map(cohorts),
        cohort2=table.sample2.map(cohorts),
        kinship=scale.kinship(total, two),
        _order=-(total + two),
    )
    ordered = table.sort_values(["_order", "sample1", "sample2"], kind="stable")
    return ordered[PAIRS].reset_index(drop=True)
