"""Tiles of segments between cohorts: the same from blocks and parts of any size, and a limit."""

from __future__ import annotations

import gzip
import itertools
from dataclasses import replace

import numpy as np
import pytest
from support.study import Cohort, encode_cohorts

from popdesic.cohort.planes import load_planes
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.engine.select import cpu_backend
from popdesic.ibd import cohorts as ibd_cohorts
from popdesic.ibd.cohorts import cut_parts, join_tiles, measure_rows, read_segments, write_tile
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.genome import load_genome, prepare_genome
from popdesic.ibd.segments import candidate_parts, candidates_between, segments_between

LIMITS = SegmentLimits(min_cm=4.0, min_ibd2_cm=1.0)
N_SITES, PER_CM = 1200, 60


def isolate(name: str, n: int, pool: np.ndarray, rng) -> Cohort:
    """People of an isolate: mosaics of few haplotypes, with a change every 6 cM."""
    turns = (rng.random((2 * n, N_SITES)) < 1 / (6 * PER_CM)).cumsum(axis=1)
    turns += 100 * np.arange(2 * n)[:, None]
    which = rng.integers(0, len(pool), turns.max() + 1)[turns]
    genotypes = pool[which, np.arange(N_SITES)].reshape(n, 2, N_SITES).sum(axis=1).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.01] = -1
    sites = [
        ("1", 1 + k * 1_000_000 // PER_CM, f"s{k}", *(("A", "C"), ("G", "T"))[k % 2])
        for k in range(N_SITES)
    ]
    return Cohort(name, [f"{name}{k}" for k in range(n)], sites, genotypes.T)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("ibd"), np.random.default_rng(4)
    pool = (rng.random((6, N_SITES)) < 0.5).astype(np.int8)
    drawn = [isolate("north", 25, pool, rng), isolate("south", 18, pool, rng)]
    folders = encode_cohorts(folder, drawn)
    panel, genome = folder / "panel.tsv", folder / "genome.npz"
    prepare_genome(
        *(folders[:1], panel, genome, folder / "genome.json", cpu_backend(1)),
        **{"limits": LIMITS, "genetic_map": None, "x_contigs": [], "regions": []},
        max_sharing=0,
    )
    return folder, folders, panel, genome


def tiles(study, out, **sizes) -> list[bytes]:
    """Segments within and between the two cohorts, uncompressed."""
    _, (north, south), panel, genome = study
    loaded = load_genome(genome, panel)
    texts = []
    for a, b in ((north, north), (north, south)):
        write_tile(a, b, out / "tile.segments.tsv.gz", loaded, LIMITS, cpu_backend(2))
        texts.append(gzip.decompress((out / "tile.segments.tsv.gz").read_bytes()))
    return texts


def test_tiles_do_not_depend_on_the_size_of_parts(study, tmp_path, monkeypatch):
    whole = tiles(study, tmp_path)
    assert all(text.count(b"\n") > 100 for text in whole)
    monkeypatch.setattr(ibd_cohorts, "CANDIDATES_AT_ONCE", 7)
    assert tiles(study, tmp_path) == whole
    monkeypatch.setattr(ibd_cohorts, "BLOCK_SAMPLES", 8)
    assert [sorted(text.splitlines()) for text in tiles(study, tmp_path)] == [
        sorted(text.splitlines()) for text in whole
    ]


@pytest.mark.parametrize("block", [4096, 8])
def test_an_isolate_is_refused_whatever_the_blocks(study, tmp_path, monkeypatch, block):
    """All blocks of two cohorts count together; nothing is left behind."""
    _, (north, south), panel, genome = study
    monkeypatch.setattr(ibd_cohorts, "BLOCK_SAMPLES", block)
    loaded, out = load_genome(genome, panel), tmp_path / "tile.segments.tsv.gz"
    n = write_tile(north, south, out, loaded, LIMITS, cpu_backend(1))["candidates"]
    out.unlink()
    for most, fits in ((n, True), (n - 1, False)):
        few = SegmentLimits(min_cm=4.0, min_ibd2_cm=1.0, most=most)
        if fits:
            write_tile(north, south, out, loaded, few, cpu_backend(1))
            out.unlink()
            continue
        with pytest.raises(UserError, match=rf"more than the {n - 1} that"):
            write_tile(north, south, out, loaded, few, cpu_backend(1))
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_parts_hold_whole_pairs(study, size):
    _, (north, _), panel, genome = study
    planes, loaded = load_planes(north)[0], load_genome(genome, panel)
    found = candidates_between(planes, None, loaded, LIMITS, cpu_backend(1))
    parts = list(candidate_parts(found, size))
    assert np.array_equal(np.concatenate([np.stack(part) for part in parts], axis=1), found)
    pairs = [set(zip(part.i.tolist(), part.j.tolist(), strict=True)) for part in parts]
    assert sum(map(len, pairs)) == len(set.union(*pairs))
    assert (len(parts) > 1) == (size < 1000)
    assert len(segments_between(planes, None, loaded, LIMITS, cpu_backend(1))) > 100


@pytest.mark.parametrize("rows", [1, 3])
def test_pairs_are_summed_in_parts(study, tmp_path, monkeypatch, rows):
    _, folders, panel, genome = study
    named = dict(zip(("north", "south"), folders, strict=True))
    lists = [tmp_path / name / "row.json" for name in named]
    rows_of_pairs = [("north", "north")], [("north", "south"), ("south", "south")]
    for out, pairs in zip(lists, rows_of_pairs, strict=True):
        measure_rows({out: pairs}, named, genome, panel, lambda _: cpu_backend(1), "code")
    cohorts = {f"{name}{k}": name for name in named for k in range(25)}
    out = [tmp_path / name for name in ("all.tsv.gz", "pairs.tsv", "summary.json")]
    tables = []
    for size in (1 << 18, rows):
        monkeypatch.setattr(ibd_cohorts, "READ_ROWS", size)
        join_tiles(lists, genome, panel, cohorts, *out, LIMITS.min_cm)
        tables.append((gzip.decompress(out[0].read_bytes()), out[1].read_bytes()))
    assert tables[0] == tables[1] and len(read_table(out[1])) > 100


def test_parts_begin_where_they_may(study, tmp_path):
    _, (north, south), panel, genome = study
    tile = tmp_path / "tile.segments.tsv.gz"
    write_tile(north, south, tile, load_genome(genome, panel), LIMITS, cpu_backend(1))
    (whole,) = read_segments(tile)
    pieces = (whole.iloc[k : k + 4] for k in range(0, len(whole), 4))
    parts = list(
        cut_parts(pieces, lambda table: (table.sample1 != table.sample1.shift()).to_numpy())
    )
    assert len(parts) > 3 and sum(map(len, parts)) == len(whole)
    for one, other in itertools.pairwise(parts):
        assert one.sample1.iloc[-1] != other.sample1.iloc[0]


@pytest.mark.parametrize("n", [7, 8])
def test_few_founders_are_warned_of(tmp_path, caplog, n):
    rng = np.random.default_rng(5)
    pool = (rng.random((6, N_SITES)) < 0.5).astype(np.int8)
    folders = encode_cohorts(tmp_path, [isolate("north", n, pool, rng)])
    about = prepare_genome(
        *(folders, tmp_path / "panel.tsv", tmp_path / "genome.npz", tmp_path / "genome.json"),
        cpu_backend(1),
        **{"limits": LIMITS, "genetic_map": None, "x_contigs": [], "regions": []},
        max_sharing=0,
    )
    assert about["founders"] == n
    said = [line.getMessage() for line in caplog.records if "founders" in line.getMessage()]
    assert len(said) == (n < 8) and all(f"come from {n} founders" in line for line in said)


@pytest.mark.parametrize("kind", ["sparse", "haploid"])
def test_a_panel_that_allows_no_segment_gives_empty_tables(tmp_path, caplog, kind):
    """Copies share no segment where none is sought; summary and log say why."""
    rng = np.random.default_rng(5)
    pool = (rng.random((6, N_SITES)) < 0.5).astype(np.int8)
    folders = encode_cohorts(tmp_path, [isolate("north", 9, pool, rng)])
    panel, genome = tmp_path / "panel.tsv", tmp_path / "genome.npz"
    limits = replace(LIMITS, min_cm=1e6) if kind == "sparse" else LIMITS
    about = prepare_genome(
        *(folders, panel, genome, tmp_path / "genome.json", cpu_backend(1)),
        **{"limits": limits, "genetic_map": None, "regions": [], "max_sharing": 10},
        x_contigs=["1"] if kind == "haploid" else [],
    )
    why = {"sparse": "less than ibd.min_cm", "haploid": "all contigs of the panel are sex"}[kind]
    assert why in about["not_searched"] and why in caplog.text and about["used"] == 0
    row = tmp_path / "north/row.json"
    pairs = [("north", "north")]
    measure_rows(
        *({row: pairs}, {"north": folders[0]}, genome, panel, lambda _: cpu_backend(1)), "x"
    )
    out = [tmp_path / name for name in ("all.tsv.gz", "pairs.tsv", "summary.json")]
    cohorts = {f"north{k}": "north" for k in range(9)}
    found = join_tiles([row], genome, panel, cohorts, *out, limits.min_cm)
    assert found["pairs_with_segments"] == len(read_table(out[1])) == 0
    assert "kinship" in read_table(out[1])
