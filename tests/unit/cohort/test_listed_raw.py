"""Cohorts decoded into lists of carriers have the genotypes of those decoded into rows.

`test_readers_of_lists.py` compares the results.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles.lists import read_lists
from support.study import Cohort, make_sites

from popdesic.cohort.absent import Absent
from popdesic.cohort.batch import ingest_batch
from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.files import beside, bytes_meant, has_lists, read_json
from popdesic.io import listed_rows
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import unpack_bed
from popdesic.study.forget import rewrite_without

N_SITES, N_SAMPLES = 300, 70


def draw(name: str, seed: int, n: int = N_SAMPLES) -> Cohort:
    rng = np.random.default_rng(seed)
    frequency = np.exp(np.random.default_rng(9).uniform(np.log(0.01), np.log(0.5), N_SITES))
    frequency[:40] = 0.01
    genotypes = rng.binomial(2, frequency[:, None], (N_SITES, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < 0.01] = -1
    return Cohort(name, [f"{name}{k}" for k in range(n)], make_sites(N_SITES), genotypes)


@pytest.fixture(params=["rows", "lists"])
def kind(request, monkeypatch):
    """Both kinds of raw.bed, whatever the size."""
    least = 1 << 9 if request.param == "lists" else 1 << 30
    monkeypatch.setattr(listed_rows, "LEAST_LISTED", least)
    monkeypatch.setattr("popdesic.cohort.ingest.LEAST_LISTED", least)
    return request.param


def decode(folder: Path, cohort: Cohort, kind: str, text: str = "", **more) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "in.vcf").write_text(text or cohort.vcf())
    ingest_cohort(folder / "in.vcf", folder / "raw", **more)
    assert has_lists(folder / "raw.bed") == (kind == "lists")
    return folder / "raw"


def genotypes_of(raw: Path) -> np.ndarray:
    return unpack_bed(np.ascontiguousarray(open_bed(raw)[:]), len(read_fam(raw)))


def test_repeated_sites_are_dropped_from_either(tmp_path, kind):
    """A site far away that repeats an earlier one."""
    cohort = draw("a", 1)
    again = [*range(N_SITES), 5, 7]
    text = replace(
        cohort, sites=[cohort.sites[k] for k in again], genotypes=cohort.genotypes[again]
    ).vcf()
    raw = decode(tmp_path, cohort, kind, text)
    np.testing.assert_array_equal(genotypes_of(raw), cohort.genotypes)
    assert bytes_meant(tmp_path / "raw.bed") == 3 + N_SITES * -(-N_SAMPLES // 4)
    if kind == "lists":
        np.testing.assert_array_equal(read_lists(tmp_path / "raw.bed")[0], cohort.genotypes)
    assert read_json(tmp_path / "raw.json")["counts"]["duplicates"] == 2


def test_sites_turned_to_a_genome_are_listed_too(tmp_path, kind):
    rng = np.random.default_rng(2)
    genome = np.array(list("ACGT"))[rng.integers(0, 4, 1000 + 100 * N_SITES)]
    cohort = draw("a", 2)
    for k, (_, pos, name, ref, alt) in enumerate(cohort.sites):
        genome[pos - 1] = alt if k % 3 == 0 and {ref, alt} != {"A", "T"} else ref
        cohort.sites[k] = ("1", pos, name, ref, alt)
    fasta = tmp_path / "genome.fa"
    fasta.write_text(">1\n" + "".join(genome) + "\n")
    raw = decode(tmp_path, cohort, kind, fasta=fasta)
    expected = cohort.genotypes.copy()
    swapped = [k for k, s in enumerate(cohort.sites) if k % 3 == 0 and {s[3], s[4]} != {"A", "T"}]
    expected[swapped] = np.where(expected[swapped] < 0, -1, 2 - expected[swapped])
    np.testing.assert_array_equal(genotypes_of(raw), expected)


def test_small_cohorts_that_are_read_together_are_listed(tmp_path, kind):
    cohorts = [draw(name, seed, 35) for seed, name in enumerate("ab")]
    for cohort in cohorts:
        (tmp_path / f"{cohort.name}.vcf").write_text(cohort.vcf())

    def decode_one(name: str, prefix: Path):
        return ingest_cohort(tmp_path / f"{name}.vcf", prefix)

    ingest_batch(["a", "b"], decode_one, tmp_path / "out/raw", founders=True, absent=Absent())
    assert has_lists(tmp_path / "out/raw.bed") == (kind == "lists")
    everyone = np.concatenate([cohort.genotypes for cohort in cohorts], axis=1)
    np.testing.assert_array_equal(genotypes_of(tmp_path / "out/raw"), everyone)


def test_a_forgotten_sample_leaves_the_lists(tmp_path, kind):
    cohort = draw("a", 4)
    raw = decode(tmp_path, cohort, kind)
    rewrite_without(raw, "a11")
    assert has_lists(beside(raw, ".bed")) == (kind == "lists")
    np.testing.assert_array_equal(genotypes_of(raw), np.delete(cohort.genotypes, 11, axis=1))


def test_decoded_files_of_either_kind_are_a_source(tmp_path, monkeypatch, kind):
    """Rows of lists are not named: they lie nowhere."""
    cohort = draw("a", 5)
    raw = decode(tmp_path / "first", cohort, kind)
    monkeypatch.setattr("popdesic.cohort.raw_sites.LEAST_NAMED", 1)
    for source, out in ((raw, "second"), (tmp_path / "second/raw", "third")):
        (tmp_path / out).mkdir()
        ingest_cohort(source, tmp_path / out / "raw")
        np.testing.assert_array_equal(genotypes_of(tmp_path / out / "raw"), cohort.genotypes)
