"""REF alleles compared with a genome, counted site by site."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from study import Cohort, write_raw

from popdesic.cohort.reference_check import COUNTS, check_reference
from popdesic.io.errors import UserError
from popdesic.io.files import read_json

PAIRS = {"A": "T", "C": "G", "G": "C", "T": "A"}


@pytest.mark.parametrize("packed", [False, True])
def test_every_site_is_counted_once(tmp_path, packed):
    rng = np.random.default_rng(3)
    genome = {name: "".join(rng.choice(list("ACGT"), n)) for name, n in (("chr1", 143), ("2", 60))}
    fasta = [">chr1 some words"]
    fasta += [genome["chr1"][k : k + 50].lower() for k in range(0, 143, 50)]
    text = "\n".join([*fasta, ">2", genome["2"], ""]).encode()
    path = tmp_path / "genome.fa"
    path.write_bytes(gzip.compress(text) if packed else text)
    sites, expected = [], dict.fromkeys(COUNTS, 0)
    for k in range(300):
        chrom = str(rng.choice(["1", "chr2", "3"]))
        pos = int(rng.integers(1, 200))
        ref, alt = rng.choice(list("ACGT"), 2, replace=False)
        sites.append((chrom, pos, f"s{k}", str(ref), str(alt)))
        sequence = {"1": genome["chr1"], "chr2": genome["2"]}.get(chrom, "")
        base = sequence[pos - 1] if pos <= len(sequence) else None
        kind = (
            "not_in_reference"
            if base is None
            else "ref_is_reference"
            if base == ref
            else "alt_is_reference"
            if base == alt
            else "on_other_strand"
            if PAIRS[base] in (ref, alt)
            else "neither"
        )
        expected[kind] += 1
    assert min(expected.values()) > 0
    raw = write_raw(tmp_path / "raw", Cohort("c", ["A"], sites, np.zeros((300, 1), np.int8)))
    assert check_reference(raw, path, tmp_path / "out.json") == expected
    assert read_json(tmp_path / "out.json") == {"fasta": "genome.fa", "counts": expected}


def test_no_fasta_gives_a_one_sentence_error(tmp_path):
    (tmp_path / "genome.fa").write_text("ACGT\n")
    sites = [("1", 1, ".", "A", "C")]
    raw = write_raw(tmp_path / "raw", Cohort("c", ["A"], sites, np.zeros((1, 1), np.int8)))
    with pytest.raises(UserError, match="line 1: a FASTA file starts with '>'"):
        check_reference(raw, tmp_path / "genome.fa", tmp_path / "out.json")


@pytest.mark.parametrize("fault", ["", "swapped", "build", "strand", "half strand", "contig"])
def test_the_warning_names_the_cause(tmp_path, caplog, fault):
    rng = np.random.default_rng(5)
    n, bases = 2_000, np.array(list("ACGT"))
    genome = "".join(rng.choice(bases, n + 100))
    (tmp_path / "genome.fa").write_text(f">1\n{genome}\n")
    sites = []
    for k in range(n):
        ref = genome[k]
        alt = str(rng.choice([one for one in "ACGT" if one != ref]))
        if fault == "strand" or (fault == "half strand" and k % 2):
            ref, alt = PAIRS[ref], PAIRS[alt]
        if fault == "swapped" and k % 3:
            ref, alt = alt, ref
        shift = 50 if fault == "build" else 0
        sites.append(("2" if fault == "contig" and k % 2 else "1", k + 1 + shift, ".", ref, alt))
    raw = write_raw(tmp_path / "raw", Cohort("c", ["A"], sites, np.zeros((n, 1), np.int8)))
    check_reference(raw, tmp_path / "genome.fa", tmp_path / "out.json")
    says = {
        "build": "it is of another genome build",
        "strand": "are on the other strand",
        "half strand": "are on the other strand",
        "contig": "it lacks the contig or position of 1000",
    }
    if fault in says:
        assert says[fault] in caplog.text
    else:
        assert caplog.text == ""
