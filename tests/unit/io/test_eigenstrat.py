"""EIGENSTRAT and PACKEDANCESTRYMAP files: the bytes of the equal VCF and PLINK files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.eigenstrat_files import KINDS, write_eigenstrat
from support.plink_files import write_plink

from popdesic.__main__ import main
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.sources import expand_sources, read_names, source_files
from popdesic.core.errors import UserError
from popdesic.io.batches import DecodeCounts
from popdesic.io.eigenstrat import stream_eigenstrat
from popdesic.io.eigenstrat_tables import hash_names
from popdesic.io.formats import EIGENSTRAT, count_sites, find_format
from popdesic.io.genotypes import pack_bed
from popdesic.study.init import init_study

N_SITES = 150
CALLS = np.array(["0/0", "0/1", "1/1", "./."])


def draw(n_samples: int, n_sites: int = N_SITES, seed: int = 1) -> np.ndarray:
    """ALT counts (n_sites, n_samples), -1 missing."""
    rng = np.random.default_rng(seed)
    genotypes = rng.binomial(2, rng.uniform(0, 1, n_sites)[:, None], (n_sites, n_samples))
    genotypes[rng.random(genotypes.shape) < 0.1] = -1
    return genotypes.astype(np.int8)


def names_of(n_samples: int) -> list[str]:
    return [f"I{k:04d}.AG" for k in range(n_samples)]


def results(source: Path, out: Path) -> tuple[list[bytes], dict]:
    """The bytes of raw.bed, .bim and .fam, and the counts, after decoding."""
    ingest_cohort(source, out)
    counts = json.loads(Path(f"{out}.json").read_text())["counts"]
    return [Path(f"{out}{end}").read_bytes() for end in (".bed", ".bim", ".fam")], counts


@pytest.mark.parametrize("n_samples", [1, 3, 4, 5, 191, 192, 193, 200])
def test_same_bytes_as_from_plink_and_vcf(tmp_path, n_samples):
    """Of all kinds; 192 samples are as many as the shortest record holds."""
    genotypes, names = draw(n_samples), names_of(n_samples)
    write_plink(tmp_path / "plink", genotypes, names)
    bed, bim, _ = results(tmp_path / "plink", tmp_path / "p/raw")[0]
    lines = ["##fileformat=VCFv4.2"]
    columns = "#CHROM POS ID REF ALT QUAL FILTER INFO FORMAT"
    lines.append("\t".join([*columns.split(), *names]))
    for k, row in enumerate(genotypes):
        start = f"1\t{100_000 * (k + 1)}\tsite{k}\tG\tA\t.\t.\t.\tGT"
        lines.append("\t".join([start, *CALLS[row]]))
    (tmp_path / "in.vcf").write_text("\n".join(lines) + "\n")
    assert results(tmp_path / "in.vcf", tmp_path / "v/raw")[0][:2] == [bed, bim]
    for kind in KINDS:
        write_eigenstrat(tmp_path / kind, genotypes, names, kind=kind)
        found, counts = results(tmp_path / kind, tmp_path / f"{kind}-out/raw")
        assert found[:2] == [bed, bim]
        assert found[2].decode().split("\n")[0].split() == ["0", names[0], "0", "0", "1", "-9"]
        assert counts["missing"] == int((genotypes < 0).sum())
        assert counts["unphased"] == int((genotypes >= 0).sum())
        assert count_sites(tmp_path / kind) == N_SITES


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_any_size(tmp_path, kind):
    genotypes = draw(37)
    write_eigenstrat(tmp_path / "in", genotypes, names_of(37), kind=kind)
    for chunk in (1, 10, 90, 333, 1 << 20):
        batches = list(stream_eigenstrat(tmp_path / "in", DecodeCounts(), _chunk_bytes=chunk))
        assert (
            np.concatenate([one.rows for one in batches]).tobytes() == pack_bed(genotypes).tobytes()
        )
        assert np.concatenate([one.line for one in batches]).tolist() == list(range(1, N_SITES + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_sites_that_are_not_kept_and_unknown_alleles(tmp_path, kind):
    """Unplaced sites, indels and unknown alleles (X) as in PLINK files; chromosomes 90 and 91."""
    genotypes = draw(9, 8)
    chrom = ["0", "1", "1", "1", "23", "24", "90", "91"]
    alleles = [("G", "A"), ("G", "GA"), ("G", "X"), ("X", "A"), *[("G", "A")] * 4]
    write_eigenstrat(
        tmp_path / "in", genotypes, names_of(9), chrom=chrom, alleles=alleles, kind=kind
    )
    (batch,) = stream_eigenstrat(tmp_path / "in", counts := DecodeCounts())
    assert batch.chrom == ["1", "1", "23", "24", "MT", "XY"]
    assert (batch.ref[:3], batch.alt[:3]) == (["G", "A", "G"], [".", ".", "A"])
    assert (counts.unplaced, counts.indel, counts.one_allele) == (1, 1, 2)
    assert np.array_equal(batch.genotypes[2:], genotypes[4:])
    # A call with the unknown allele is missing; a site knows one allele alone.
    assert np.array_equal(batch.genotypes[0], np.where(genotypes[2] == 0, 0, -1))
    assert np.array_equal(batch.genotypes[1], np.where(genotypes[3] == 2, 0, -1))


def test_hash_is_that_of_the_definition():
    """Signed bytes, 32 bits, in order."""
    names = ["I0001", "Žofie", "x" * 40, "rs12"]
    expected = 0
    for name in names:
        one = 0
        for byte in np.frombuffer(name.encode(), np.int8).tolist():
            one = (one * 23 + byte) % 2**32
        expected = (expected * 17 % 2**32) ^ one
    assert hash_names(names) == expected == hash_names(names[2:], hash_names(names[:2]))
    assert hash_names(names[::-1]) != expected


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("convertf") is None, reason="apt-get install eigensoft")
def test_files_of_convertf(tmp_path):
    """Text to PACKEDANCESTRYMAP and PLINK by EIGENSOFT, which accepts the tests' packed files."""
    genotypes, names = draw(21), names_of(21)
    write_eigenstrat(tmp_path / "text", genotypes, names, kind="text")
    write_eigenstrat(tmp_path / "own", genotypes, names, kind="GENO")
    for source, form, out, ends in (
        ("text", "PACKEDANCESTRYMAP", "packed", ("geno", "snp", "ind")),
        ("text", "PACKEDPED", "plink", ("bed", "bim", "fam")),
        ("own", "EIGENSTRAT", "back", ("geno", "snp", "ind")),
    ):
        text = f"outputformat: {form}\nfamilynames: NO\noutputall: YES\n"
        for key, end in zip(("genotype", "snp", "indiv"), ("geno", "snp", "ind"), strict=True):
            text += f"{key}name: {source}.{end}\n"
        for key, end in zip(("genotype", "snp", "indiv"), ends, strict=True):
            text += f"{key}outname: {out}.{end}\n"
        (tmp_path / "par").write_text(text)
        subprocess.run(["convertf", "-p", "par"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "packed.geno").read_bytes() == (tmp_path / "own.geno").read_bytes()
    assert (tmp_path / "back.geno").read_bytes() == (tmp_path / "text.geno").read_bytes()
    expected = results(tmp_path / "text", tmp_path / "t/raw")[0]
    assert results(tmp_path / "packed", tmp_path / "a/raw")[0] == expected
    # .bim: A1 of convertf is the first allele of the .snp, which A1 = ALT makes ALT.
    turned = results(tmp_path / "plink", tmp_path / "b/raw")[0]
    assert turned[2] == expected[2]
    rows = np.frombuffer(turned[0][3:], np.uint8).reshape(N_SITES, -1)
    swapped = pack_bed(np.where(genotypes < 0, -1, 2 - genotypes).astype(np.int8))
    assert np.array_equal(rows, swapped)


def rewrite(path: Path, change) -> None:
    path.write_bytes(change(path.read_bytes()))


BROKEN = {
    "fewer samples": ("GENO", "ind", lambda b: b[: b.rindex(b"\n", 0, -1) + 1], "7 samples where"),
    "fewer sites": ("GENO", "snp", lambda b: b[: b.rindex(b"\n", 0, -1) + 1], "30 sites where"),
    "fewer lines": ("text", "snp", lambda b: b[: b.rindex(b"\n", 0, -1) + 1], "30 sites where"),
    "cut": ("GENO", "geno", lambda b: b[:-1], "cut short"),
    "cut by samples": ("TGENO", "geno", lambda b: b[:-1], "cut short"),
    "cut text": ("text", "geno", lambda b: b[:-4], "in.geno, line 30: 4 genotypes where"),
    "another name": ("GENO", "ind", lambda b: b.replace(b"I0003", b"I9003"), "other names, or in"),
    "other order": ("TGENO", "ind", lambda b: b"".join(sorted(b.splitlines(True))[::-1]), "order"),
    "another site": ("TGENO", "snp", lambda b: b.replace(b"site4 ", b"site0 "), r"in.snp has \(ha"),
    "no hash": ("GENO", "geno", lambda b: b"GENO 7 30 zz" + b[12:], "two hashes follow"),
    "no format": ("text", "geno", lambda b: b"\x1f\x8b" + b[2:], "line 1: neither digits"),
    "long line": ("text", "geno", lambda b: b[:8] + b"0" + b[8:], "line 2: 8 genotypes where"),
    "short and long": (
        "text", "geno", lambda b: b[:9] + b[10:16] + b"00" + b[17:], "line 2: 6 genotypes where",
    ),
    "joined lines": ("text", "geno", lambda b: b[:15] + b"0" + b[16:], "line 2: 15 genotypes"),
    "bad digit": ("text", "geno", lambda b: b[:26] + b"3" + b[27:], "line 4: .*sample 3 is '3'"),
    "no alleles": (
        "text", "snp", lambda b: b.replace(b" G A\n", b"\n"), "in.snp, line 1: 6 columns",
    ),
    "bad position": ("text", "snp", lambda b: b.replace(b" 300000 ", b" 3e-1 "), "in.snp, line 3"),
    "repeated name": ("text", "ind", lambda b: b.replace(b"I0003", b"I0002"), "occurs 2 times"),
    "two columns": ("text", "ind", lambda b: b.replace(b" P1\n", b"\n"), "in.ind, line 1: 3 col"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_faults_are_one_sentence_with_file_and_row(tmp_path, fault):
    kind, end, change, said = BROKEN[fault]
    write_eigenstrat(tmp_path / "in", draw(7, 30), names_of(7), kind=kind)
    rewrite(tmp_path / f"in.{end}", change)
    with pytest.raises(UserError, match=said) as caught:
        ingest_cohort(tmp_path / "in", tmp_path / "out/raw")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out/raw.bed").exists()


@pytest.mark.parametrize("end", ["geno", "snp", "ind"])
def test_missing_file(tmp_path, end):
    write_eigenstrat(tmp_path / "in", draw(7, 30), names_of(7), kind="GENO")
    (tmp_path / f"in.{end}").unlink()
    with pytest.raises(UserError, match=rf"in\.{end} does not exist"):
        read_names([str(tmp_path / "in.geno")])


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_decoded_or_refused(tmp_path, kind):
    """Changed bytes anywhere raise no other error."""
    write_eigenstrat(tmp_path / "in", draw(7, 30), names_of(7), kind=kind)
    rng = np.random.default_rng(3)
    whole = {end: (tmp_path / f"in.{end}").read_bytes() for end in ("geno", "snp", "ind")}
    refused = 0
    for _ in range(60):
        end = rng.choice(list(whole))
        data = bytearray(whole[end])
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            data[at] = rng.choice(list(b"\n\r \t09AX\xff\x00G"))
        (tmp_path / f"in.{end}").write_bytes(data)
        try:
            ingest_cohort(tmp_path / "in", tmp_path / "out/raw")
        except UserError:
            refused += 1
        (tmp_path / f"in.{end}").write_bytes(whole[end])
    assert 10 < refused < 60


def test_line_ends(tmp_path):
    """CRLF, and a last line without an end, give the same genotypes."""
    genotypes = draw(7, 30)
    write_eigenstrat(tmp_path / "in", genotypes, names_of(7), kind="text")
    plain = (tmp_path / "in.geno").read_bytes()
    for text in (plain[:-1], plain.replace(b"\n", b"\r\n"), plain.replace(b"\n", b"\r\n")[:-2]):
        (tmp_path / "in.geno").write_bytes(text)
        (batch,) = stream_eigenstrat(tmp_path / "in", DecodeCounts())
        assert np.array_equal(batch.genotypes, genotypes)


def test_patterns_and_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("v1.chr1", "v1.chr2"):
        write_eigenstrat(Path(name), draw(7, 30), names_of(7), kind="GENO")
    assert expand_sources("v1.chr*") == ["v1.chr1.geno", "v1.chr2.geno"]
    assert find_format("v1.chr1") == (EIGENSTRAT, Path("v1.chr1"))
    assert source_files("v1.chr1.geno") == ["v1.chr1.geno", "v1.chr1.snp", "v1.chr1.ind"]


def test_init_takes_sex_and_population(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_eigenstrat(Path("aadr"), draw(7, 300), names_of(7), kind="TGENO")
    said = init_study(["study", "aadr.ind"])
    assert "from aadr's .ind: sex of 5, population of 7" in said
    lines = Path("study/config/samples.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["sample", "cohort", "population", "sex", "phenotype"]
    assert [line.split("\t")[2:4] for line in lines[1:4]] == [
        ["P1", "M"],
        ["P2", "F"],
        ["P3", "NA"],
    ]
    assert Path("study/config/cohorts.tsv").read_text().split("\n")[1] == "aadr\t../aadr.geno\tyes"
    text = Path("aadr.ind").read_text()
    for k in range(1, 8):
        text = text.replace(f" P{k}\n", " Case\n" if k % 2 else " Control\n")
    Path("aadr.ind").write_text(text)
    init_study(["cases", "aadr"])
    lines = Path("cases/config/samples.tsv").read_text().splitlines()
    assert [line.split("\t")[4] for line in lines[1:4]] == ["1", "0", "1"]


def test_pseudo_haploids_are_declared_haploid(tmp_path, monkeypatch, capsys):
    """With ploidy 1 homozygous genotypes are single alleles, and another one is refused."""
    monkeypatch.chdir(tmp_path)
    genotypes = 2 * np.random.default_rng(1).integers(0, 2, (400, 12))
    names = [f"old{k}" for k in range(12)]
    sheet = "sample\tploidy\tpopulation\n" + "".join(f"{name}\t1\tA\n" for name in names)
    Path("sheet.tsv").write_text(sheet)
    write_eigenstrat(Path("old"), genotypes, names)
    assert main(["init", "study", "old.geno", "--samples", "sheet.tsv"]) == 0
    assert main(["check", "study"]) == 0
    assert "All samples are haploid" in "".join(capsys.readouterr())
    genotypes[7, 3] = 1
    write_eigenstrat(Path("old"), genotypes, names)
    assert main(["check", "study"]) == 1
    assert "'old3'" in capsys.readouterr().err
