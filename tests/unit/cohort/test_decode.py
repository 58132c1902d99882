"""Files are decoded again where what decides them has changed, and only there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.study import make_cohorts, write_raw

from popdesic.cohort import raw_sites
from popdesic.cohort.decode import KEPT, decode_unit
from popdesic.cohort.sources import names_key
from popdesic.core.files import read_json, write_json
from popdesic.io.bed import lost_files, read_fam


@pytest.fixture
def unit(tmp_path) -> dict:
    """Arguments of `decode_unit`; a result, so that checksums are kept."""
    (cohort,) = make_cohorts((6,), n_sites=50)
    vcf = tmp_path / "north.vcf"
    vcf.write_text(cohort.vcf())
    return {
        "prefix": tmp_path / "results/cohorts/north/raw",
        "cohorts": {"north": ([str(vcf)], names_key(cohort.samples))},
        "key": "first",
        "listed": cohort.samples,
        "excluded": (),
        "founders": True,
        "absent": [],
        "haploid": "error",
        "excluded_contigs": [],
        "filters": {},
        "fasta": "",
    }


def is_kept(unit: dict, **changed) -> bool:
    before = {p.name: p.read_bytes() for p in unit["prefix"].parent.glob("raw.*")}
    counts, remarks = decode_unit(**unit | changed)
    assert counts["sites"] == 50
    after = {p.name: p.read_bytes() for p in unit["prefix"].parent.glob("raw.*")}
    assert KEPT not in remarks or after == before
    return KEPT in remarks


def test_the_same_files_are_decoded_once(unit):
    assert not is_kept(unit)
    assert is_kept(unit)
    assert is_kept(unit, excluded=unit["listed"][:1], listed=unit["listed"][1:])
    assert not is_kept(unit, key="second")
    assert is_kept(unit, key="second")


@pytest.mark.parametrize("end", [".bed", ".bim", ".fam", ".json"])
def test_damaged_or_lost_files_are_decoded_again(unit, end):
    decode_unit(**unit)
    path = Path(f"{unit['prefix']}{end}")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert not is_kept(unit)
    assert path.read_bytes() == whole
    path.unlink()
    assert not is_kept(unit)
    assert path.read_bytes() == whole
    assert is_kept(unit)


def test_a_sample_that_comes_back_is_decoded_again(unit):
    first, *others = unit["listed"]
    decode_unit(**unit | {"excluded": [first], "listed": others})
    assert list(read_fam(unit["prefix"])["sample"]) == others
    assert is_kept(unit, listed=others, excluded=[first])
    assert not is_kept(unit)
    assert list(read_fam(unit["prefix"])["sample"]) == unit["listed"]


def test_a_failed_attempt_leaves_no_key(unit):
    decode_unit(**unit)
    with pytest.raises(Exception, match="the sheet lists"):
        decode_unit(
            **unit | {"key": "second", "cohorts": {"north": (unit["cohorts"]["north"][0], "x")}}
        )
    assert not is_kept(unit)


def test_the_list_has_the_checksums(unit):
    decode_unit(**unit)
    files = read_json(f"{unit['prefix']}.json")["files"]
    assert {".bed", ".bim", ".fam"} <= set(files)


def test_a_source_that_is_named_and_was_edited_at_its_date_is_decoded_again(unit, monkeypatch):
    monkeypatch.setattr(raw_sites, "LEAST_NAMED", 0)
    (cohort,) = make_cohorts((6,), n_sites=50)
    source = write_raw(unit["prefix"].parents[3] / "data/north", cohort)
    unit["cohorts"] = {"north": ([str(source)], names_key(cohort.samples))}
    decode_unit(**unit)
    bed = source.with_suffix(".bed")
    content, date = bytearray(bed.read_bytes()), bed.stat().st_mtime_ns
    assert is_kept(unit)
    content[-1] ^= 1
    bed.write_bytes(content)
    os.utime(bed, ns=(date, date))
    assert not is_kept(unit)
    assert is_kept(unit)


def test_a_lost_file_is_seen_by_the_list(tmp_path):
    """Of the reference blocks of a gVCF, too: without, all else would read as missing."""
    raw = tmp_path / "raw"
    assert not lost_files(raw)  # nothing was decoded
    ends = [".bed", ".bim", ".fam", ".callable.npz"]
    for end in ends:
        Path(f"{raw}{end}").touch()
    for about, seen in (({"files": dict.fromkeys(ends, "")}, ends), ({}, ends[:3])):
        write_json(f"{raw}.json", about)
        assert not lost_files(raw)
        for end in ends:
            Path(f"{raw}{end}").unlink()
            assert lost_files(raw) == (end in seen)
            Path(f"{raw}{end}").touch()
