"""A phased reference, frozen: what the file holds, what it leaves out, what it refuses."""

from __future__ import annotations

import shutil
import subprocess

import cyvcf2
import numpy as np
import pytest
import zarr
from bio2zarr import vcf as vcf2zarr
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.cohort import haplotype_panel
from popdesic.cohort.haplotype_panel import freeze_haplotypes
from popdesic.copying.copying import pack_rows
from popdesic.core.errors import UserError
from popdesic.io import frozen_haplotypes
from popdesic.io.frozen_haplotypes import open_haplotypes, require_intact

SIZES = [1, 2, 31, 32, 33, 64, 65]


def unpack_haplotypes(rows: np.ndarray, n: int) -> np.ndarray:
    bits = np.ascontiguousarray(rows).view(np.uint8)
    return np.unpackbits(bits, axis=1, bitorder="little", count=n)


def drawn(n_sites: int, n_haplotypes: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n_sites, n_haplotypes))


@pytest.mark.parametrize("n", SIZES)
def test_bits_are_little_endian_and_padding_is_zero(n):
    alleles = drawn(5, n)
    rows = pack_rows(alleles)
    assert rows.dtype == np.uint64 and rows.shape == (5, -(-n // 64))
    for row, bits in zip(alleles, rows, strict=True):
        whole = sum(int(word) << (64 * k) for k, word in enumerate(bits))
        assert whole == sum(int(one) << k for k, one in enumerate(row))
    assert (unpack_haplotypes(rows, n) == alleles).all()


@pytest.mark.parametrize("n_samples", SIZES)
def test_a_reference_comes_back(tmp_path, n_samples):
    names = [f"a{k}" for k in range(n_samples)]
    first, second = drawn(7, 2 * n_samples), drawn(3, 2 * n_samples, 2)
    records = phased_records(first, 10 * np.arange(1, 8), "chr1")
    records += phased_records(second, [5, 6, 7], "chr2", "GT")
    vcf = write_vcf(tmp_path / "a.vcf", names, records)
    counts = freeze_haplotypes(vcf, tmp_path / "a.npz")
    assert counts == {"samples": n_samples, "haplotypes": 2 * n_samples, "parts": 2, "snps": 10}
    panel = open_haplotypes(tmp_path / "a.npz")
    assert panel.samples == names
    for part, alleles, contig in zip(panel.parts, (first, second), ("chr1", "chr2"), strict=True):
        assert part.contig == contig
        assert (unpack_haplotypes(part.haplotypes, 2 * n_samples) == alleles).all()
        assert part.owner.tolist() == [k // 2 for k in range(2 * n_samples)]
        assert bytes(part.ids).decode().split("\n") == [f"s{at}" for at in part.pos]
        assert np.allclose(part.cm, part.pos * 1e-6)
    assert bytes(panel.parts[1].ref) == b"GGG" and bytes(panel.parts[1].alt) == b"TTT"


def test_a_file_for_each_chromosome_is_as_one_file(tmp_path, capsys):
    names, records = ["a", "b"], {}
    for contig in ("chr2", "chr10", "chrX"):
        records[contig] = phased_records(drawn(5, 4, len(contig)), np.arange(1, 6), contig)
        write_vcf(tmp_path / f"r.{contig}.vcf", names, records[contig])
    whole = write_vcf(
        tmp_path / "whole.vcf", names, [line for lines in records.values() for line in lines]
    )
    for reference, out in ((whole, "whole.npz"), (tmp_path / "r.{contig}.vcf", "parts.npz")):
        assert main(["freeze", str(reference), "-o", str(tmp_path / out)]) == 0
    assert (tmp_path / "parts.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    write_vcf(tmp_path / "r.chr10.vcf", ["b", "a"], records["chr10"])
    out = tmp_path / "other.npz"
    assert main(["freeze", str(tmp_path / "r.{contig}.vcf"), "-o", str(out)]) == 1
    assert "r.chr10.vcf has other samples than" in capsys.readouterr().err
    assert main(["freeze", str(tmp_path / "s.{contig}.vcf"), "-o", str(out)]) == 1
    assert "matches no file" in capsys.readouterr().err and not out.exists()
    unphased = [*records["chr10"][:-1], "chr10 5 . A C 0/1 0|0"]
    write_vcf(tmp_path / "r.chr10.vcf", names, unphased)
    assert main(["freeze", str(tmp_path / "r.{contig}.vcf"), "-o", str(out)]) == 1
    assert "r.chr10.vcf, chr10:5: the call 0/1 of sample 'a'" in capsys.readouterr().err


def test_all_formats_give_the_same_bytes_on_any_number_of_threads(tmp_path):
    names = ["a", "b", "c"]
    vcf = write_vcf(
        tmp_path / "a.vcf",
        names,
        [*phased_records(drawn(40, 6), np.arange(1, 41)), "X 4 . A C 0 0|1 1", "X 5 . A C 1 1|1 0"],
    )
    reader = cyvcf2.VCF(str(vcf))
    writer = cyvcf2.Writer(str(tmp_path / "a.bcf"), reader, "wb")
    for record in reader:
        writer.write_record(record)
    writer.close()
    subprocess.run(f"bgzip -k {vcf} && tabix {vcf}.gz", shell=True, check=True)
    vcf2zarr.convert([f"{vcf}.gz"], tmp_path / "a.vcz", worker_processes=0)
    found = set()
    for name in ("a.vcf", "a.vcf.gz", "a.bcf", "a.vcz"):
        for threads in (1, 3):
            freeze_haplotypes(tmp_path / name, tmp_path / "out.npz", threads=threads)
            found.add((tmp_path / "out.npz").read_bytes())
    assert len(found) == 1


def test_the_digest_covers_phase_and_map(tmp_path):
    (tmp_path / "map.txt").write_text("chrom pos cm\n1 1 0\n1 100 3\n")
    digests = []
    for call, scale in (
        ("0|1", ""),
        ("1|0", ""),
        ("0|1", "1.5 cM/Mb"),
        ("0|1", str(tmp_path / "map.txt")),
    ):
        vcf = write_vcf(tmp_path / "a.vcf", ["a"], [f"1 10 . A C {call}"])
        freeze_haplotypes(vcf, tmp_path / "a.npz", scale)
        digests.append(open_haplotypes(tmp_path / "a.npz").digest)
        if scale.endswith("Mb"):
            assert np.isclose(open_haplotypes(tmp_path / "a.npz").parts[0].cm[0], 1.5e-5)
    assert len(set(digests)) == 4
    assert np.isclose(open_haplotypes(tmp_path / "a.npz").parts[0].cm[0], 3 * 9 / 99)


def test_haploid_males_have_one_haplotype_outside_the_pseudoautosomal_regions(tmp_path):
    records = [
        "X 1 . A C 0|1 1|0",
        "X 2 . A C 0 1|0",
        "X 3 . A C 1 0|0",
        "X 4 . A C 0|0 1|1",
    ]
    vcf = write_vcf(tmp_path / "a.vcf", ["man", "woman"], records)
    freeze_haplotypes(vcf, tmp_path / "a.npz")
    parts = open_haplotypes(tmp_path / "a.npz").parts
    assert [part.owner.tolist() for part in parts] == [[0, 0, 1, 1], [0, 1, 1], [0, 0, 1, 1]]
    assert unpack_haplotypes(parts[1].haplotypes, 3).tolist() == [[0, 1, 0], [1, 0, 0]]
    vcf = write_vcf(tmp_path / "a.vcf", ["man", "woman"], [*records, "X 5 . A C 1 0|0"])
    with pytest.raises(UserError, match="X:5: the number of alleles of sample 'man' changes"):
        freeze_haplotypes(vcf, tmp_path / "a.npz")


def test_a_repeated_site_begins_no_part(tmp_path):
    records = ["X 1 . A C 0|1 1|0", "X 1 . A C 0 1|0", "X 2 . A C 0|0 1|1"]
    vcf = write_vcf(tmp_path / "a.vcf", ["man", "woman"], records)
    counts = freeze_haplotypes(vcf, tmp_path / "a.npz")
    assert counts["parts"] == 1 and counts["same_site"] == 1 and counts["snps"] == 2
    assert open_haplotypes(tmp_path / "a.npz").parts[0].pos.tolist() == [1, 2]


def test_a_call_of_a_store_without_any_allele_is_missing(tmp_path):
    vcf = write_vcf(tmp_path / "a.vcf", ["a", "b"], ["1 1 . A C 0|1 1|0", "1 2 . A C 0|0 0|1"])
    vcf2zarr.convert([str(vcf)], str(tmp_path / "a.vcz"))
    zarr.open(str(tmp_path / "a.vcz"))["call_genotype"][1, 0] = -2  # the mark of no allele
    with pytest.raises(UserError, match="1:2: the call of sample 'a' is missing"):
        freeze_haplotypes(tmp_path / "a.vcz", tmp_path / "a.npz")


def test_what_is_left_out_is_counted(tmp_path):
    records = [
        "1 1 . A C 0|1",
        "1 1 . C A 1|1",  # the same site again
        "1 1 . A G 0|0",  # another one
        "1 2 . A C,G 0|2",
        "1 3 . AC A 0|1",
        "1 4 . A <DEL> 0|1",
        "1 5 . A . 0|0",
        "1 6 . a c 1/1",  # homozygous: no phase is needed
    ]
    counts = freeze_haplotypes(write_vcf(tmp_path / "a.vcf", ["a"], records), tmp_path / "a.npz")
    assert counts.pop("haplotypes") == 2 and counts.pop("samples") == counts.pop("parts") == 1
    assert counts.pop("snps") == 3 and counts.pop("same_site") == 1
    assert counts.pop("multiallelic") == counts.pop("indel") == counts.pop("symbolic") == 1
    assert sum(counts.values()) == 1
    part = open_haplotypes(tmp_path / "a.npz").parts[0]
    assert unpack_haplotypes(part.haplotypes, 2).tolist() == [[0, 1], [0, 0], [1, 1]]
    assert bytes(part.ref) == b"AAA" and bytes(part.alt) == b"CGC"


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (["1 1 . A C 0|0 0|1", "1 2 . A C 0|1 0/1"], "1:2: the call 0/1 of sample 'b' is not"),
        (["1 1 . A C 0|0 0|1", "1 2 . A C .|1 0|1"], "1:2: the call of sample 'a' is missing"),
        (["1 1 . A C 0|0 ."], "1:1: the call of sample 'b' is missing"),
        (["1 2 . A C 0|0 0|1", "1 1 . A C 0|0 0|1"], "1:1: the record is not in order"),
        (["1 2 . A C 0|0 0|1", "2 1 . A C 0|0 0|1", "1 3 . A C 0|0 0|1"], "contig has come"),
        (["1 2 . A AC 0|0 0|1"], "has no biallelic SNP"),
        (["1 2 . A C 0|254 0|1"], "1:2: a call has an allele that the record does not list"),
        (["1 2 . A C 0|256 0|1"], "1:2: a call has an allele that the record does not list"),
        (["1 2 . A C 0|0|1 0|1"], "sample number 1 has more than two alleles"),
    ],
)
def test_a_bad_reference_is_refused_in_one_sentence(tmp_path, records, said, capsys):
    vcf = write_vcf(tmp_path / "a.vcf", ["a", "b"], records)
    with pytest.raises(UserError, match=said):
        freeze_haplotypes(vcf, tmp_path / "a.npz")
    assert main(["freeze", str(vcf), "-o", str(tmp_path / "a.npz")]) == 1
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.vcf"]  # nothing is left


def test_a_map_without_a_contig_is_refused(tmp_path):
    vcf = write_vcf(tmp_path / "a.vcf", ["a"], ["1 1 . A C 0|0", "2 1 . A C 0|0"])
    (tmp_path / "map.txt").write_text("chrom pos cm\n1 1 0\n1 100 3\n")
    with pytest.raises(UserError, match=r"contig '2' of .*a\.vcf is not in the genetic map"):
        freeze_haplotypes(vcf, tmp_path / "a.npz", str(tmp_path / "map.txt"))
    with pytest.raises(UserError, match="there is no genetic map"):
        freeze_haplotypes(vcf, tmp_path / "a.npz", str(tmp_path / "other.txt"))


def test_a_map_of_each_contig(tmp_path):
    vcf = write_vcf(tmp_path / "a.vcf", ["a"], ["chr1 5 . A C 0|0", "chr2 5 . A C 0|0"])
    for contig, cm in (("chr1", 10), ("chr2", 20)):
        (tmp_path / f"{contig}.map").write_text(f"{contig} . 0 0\n{contig} . {cm} 10\n")
    freeze_haplotypes(vcf, tmp_path / "a.npz", str(tmp_path / "{contig}.map"))
    assert [part.cm[0] for part in open_haplotypes(tmp_path / "a.npz").parts] == [5, 10]


def test_too_many_haplotypes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(haplotype_panel, "MOST_HAPLOTYPES", 3)
    vcf = write_vcf(tmp_path / "a.vcf", ["a", "b"], ["1 1 . A C 0|0 0|1"])
    with pytest.raises(UserError, match="4 haplotypes or more, and at most 3"):
        freeze_haplotypes(vcf, tmp_path / "a.npz")


def test_a_damaged_file_is_refused(tmp_path):
    rows = phased_records(drawn(3000, 20), np.arange(1, 3001))
    vcf = write_vcf(tmp_path / "a.vcf", [f"a{k}" for k in range(10)], rows)
    subprocess.run(["bgzip", vcf], check=True)
    whole = (tmp_path / "a.vcf.gz").read_bytes()
    (tmp_path / "cut.vcf.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"cut\.vcf\.gz"):
        freeze_haplotypes(tmp_path / "cut.vcf.gz", tmp_path / "a.npz")
    with pytest.raises(UserError, match="files of PLINK, EIGENSTRAT, BGEN and tskit are not read"):
        freeze_haplotypes(tmp_path / "a.bed", tmp_path / "a.npz")
    freeze_haplotypes(tmp_path / "a.vcf.gz", tmp_path / "a.npz")
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content[:-100])
    for path in (tmp_path / "a.npz", tmp_path / "a.vcf.gz"):
        with pytest.raises(UserError, match="is not a frozen reference"):
            open_haplotypes(path)


def test_a_reference_with_another_bit_is_told(tmp_path):
    vcf = write_vcf(tmp_path / "a.vcf", ["a", "b"], phased_records(drawn(9, 4), np.arange(1, 10)))
    freeze_haplotypes(vcf, tmp_path / "a.npz")
    panel = open_haplotypes(tmp_path / "a.npz")
    require_intact(panel)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    bits = panel.parts[0].haplotypes
    at = bytes(content).rindex(bits.tobytes())
    for place in (at, at + bits.nbytes - 8):
        content[place] ^= 1
        (tmp_path / "b.npz").write_bytes(content)
        content[place] ^= 1
        with pytest.raises(UserError, match="has other bytes than were frozen"):
            require_intact(open_haplotypes(tmp_path / "b.npz"))


def test_another_version_is_refused(tmp_path, monkeypatch):
    vcf = write_vcf(tmp_path / "a.vcf", ["a"], ["1 1 . A C 0|0"])
    freeze_haplotypes(vcf, tmp_path / "a.npz")
    monkeypatch.setattr(frozen_haplotypes, "VERSION", 2)
    with pytest.raises(UserError, match="is frozen already"):
        freeze_haplotypes(tmp_path / "a.npz", tmp_path / "b.npz")
    with pytest.raises(UserError, match="of version 1; this program reads version 2"):
        open_haplotypes(tmp_path / "a.npz")


def test_batches_join(tmp_path, monkeypatch):
    """Parts do not depend on where the reader cuts the file."""
    from popdesic.io import phased

    vcf = write_vcf(tmp_path / "a.vcf", ["a"], phased_records(drawn(11, 2), np.arange(1, 12)))
    freeze_haplotypes(vcf, tmp_path / "a.npz")
    shutil.copy(tmp_path / "a.npz", tmp_path / "whole.npz")
    monkeypatch.setattr(phased, "BATCH_SITES", 4)
    freeze_haplotypes(vcf, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
