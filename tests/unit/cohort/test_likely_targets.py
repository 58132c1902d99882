"""`popdesic impute --likelihoods`: PL, GL and GP of VCF and BCF, and what is refused."""

from __future__ import annotations

from pathlib import Path

import cyvcf2
import numpy as np
import pandas as pd
import pytest
from support.phased_files import phased_records, write_vcf

from popdesic.__main__ import main
from popdesic.api.haplotypes import impute_likelihoods
from popdesic.cohort import copy_haplotypes, phased_targets
from popdesic.cohort.copy_haplotypes import accuracy_path
from popdesic.copying import copying_plan
from popdesic.core.phreds import likelihoods_of_phreds, phreds_of
from popdesic.io.frozen_haplotypes import open_haplotypes

N_SITES, N_REFERENCE = 300, 40
POS = 20_000 * np.arange(1, N_SITES + 1)
LISTED = np.flatnonzero(np.arange(N_SITES) % 4)
NUMBERS = {"PL": "Integer", "GL": "Float", "GP": "Float"}


@pytest.fixture(autouse=True)
def few_sites(monkeypatch):
    monkeypatch.setattr(phased_targets, "MIN_SHARED_SITES", 1)
    monkeypatch.setattr(copying_plan, "WINDOW_CM", 3.0)
    monkeypatch.setattr(copying_plan, "MARGIN_CM", 1.0)


def mosaics(n: int, seed: int) -> np.ndarray:
    """Haplotypes (n_sites, n) that copy eight ancestors."""
    rng = np.random.default_rng(9)
    ancestors = rng.random((N_SITES, 8)) < rng.beta(0.8, 0.8, (N_SITES, 1))
    rng = np.random.default_rng(seed)
    copied = np.cumsum(rng.random((N_SITES, n)) < 0.005, axis=0)
    copied = np.take_along_axis(rng.integers(0, 8, (N_SITES, n)), copied, axis=0)
    return np.take_along_axis(ancestors, copied, axis=1).astype(int)


def sequenced(genotypes: np.ndarray, depth: float, seed: int) -> np.ndarray:
    """Phreds (n_sites, n, 3) of reads of genotypes (n_sites, n)."""
    rng = np.random.default_rng(seed)
    chance = np.array([0.01, 0.5, 0.99])
    reads = rng.poisson(depth, genotypes.shape)
    alt = rng.binomial(reads, chance[genotypes])
    logs = alt[..., None] * np.log10(chance) + (reads - alt)[..., None] * np.log10(1 - chance)
    return phreds_of(-10 * logs)


def text_of(values) -> str:
    return ",".join(f"{value:g}" for value in values)


def likely_vcf(path: Path, names, calls, pos, bases="AC", field="PL", chrom="1") -> Path:
    """A VCF whose calls (n_sites, n_samples) are texts of a field."""
    lines = ["##fileformat=VCFv4.2", f"##contig=<ID={chrom}>"]
    lines += [
        f'##FORMAT=<ID={name},Number=G,Type={kind},Description="{name}">'
        for name, kind in NUMBERS.items()
    ]
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join([*columns, *names]))
    for at, row in zip(pos, calls, strict=True):
        lines.append("\t".join([chrom, str(at), ".", *bases, ".", ".", ".", field, *row]))
    path.write_text("\n".join([*lines, ""]))
    return path


def texts(phreds: np.ndarray) -> list[list[str]]:
    return [[text_of(call) for call in row] for row in phreds.tolist()]


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    names = [f"r{k}" for k in range(N_REFERENCE)]
    vcf = write_vcf(folder / "r.vcf", names, phased_records(mosaics(2 * N_REFERENCE, 1), POS))
    assert main(["freeze", str(vcf), "-o", str(folder / "r.npz")]) == 0
    return folder / "r.npz"


@pytest.fixture(scope="module")
def scene():
    """Genotypes (n_sites, n) of six samples, and phreds of their reads."""
    genotypes = mosaics(12, 2).reshape(N_SITES, 6, 2).sum(axis=2)
    return genotypes, sequenced(genotypes, 1.5, 3)


def impute(vcf: Path, reference: Path, *more: str) -> Path:
    out = vcf.parent / f"{vcf.stem}.out.vcf.gz"
    command = ["impute", str(vcf), "--reference", str(reference), "-o", str(out), "--likelihoods"]
    assert main([*command, *more]) == 0
    return out


def columns(vcf: Path) -> dict[str, list]:
    reader = cyvcf2.VCF(str(vcf))
    lines = [str(record).rstrip("\n").split("\t")[9:] for record in reader]
    return dict(zip(reader.samples, map(list, zip(*lines, strict=True)), strict=True))


def doses(vcf: Path) -> np.ndarray:
    return np.array([record.format("DS")[:, 0] for record in cyvcf2.VCF(str(vcf))])


NAMES = ["a", "b", "r3", "d", "e", "f"]


def test_doses_are_nearly_right_and_those_of_the_api(tmp_path, reference, scene):
    genotypes, phreds = scene
    vcf = likely_vcf(tmp_path / "t.vcf", NAMES, texts(phreds[LISTED]), POS[LISTED])
    out = impute(vcf, reference)
    records = list(cyvcf2.VCF(str(out)))
    assert [record.POS for record in records] == POS.tolist()
    found = doses(out)
    assert np.corrcoef(found.ravel(), genotypes.ravel())[0, 1] ** 2 > 0.93
    listed = np.isin(np.arange(N_SITES), LISTED)
    assert [record.INFO.get("IMP") is None for record in records] == listed.tolist()
    assert all(record.INFO.get("R2") is not None for record in records)
    assert all(record.INFO.get("ER2") is None for record in records)
    calls = np.array([record.genotypes for record in records])
    assert calls[..., 2].all()  # phased
    rounded = np.abs(found - calls[..., :2].sum(axis=2))
    assert (rounded <= 1).all() and (rounded < 0.5).mean() > 0.9
    table = pd.read_csv(accuracy_path(out), sep="\t")
    assert table.imputed.sum() == N_SITES and table.typed.sum() == 0
    panel = open_haplotypes(reference)
    (part,) = panel.parts
    bits = np.array(part.haplotypes).view(np.uint8)
    alleles = np.unpackbits(bits, axis=1, bitorder="little")[:, : 2 * N_REFERENCE].T
    own = [k for k, name in enumerate(NAMES) if not name.startswith("r")]
    direct = impute_likelihoods(
        *(alleles, np.array(part.cm), phreds[LISTED].transpose(1, 0, 2)[own], LISTED),
        names=[f"1 {NAMES[k]}" for k in own],
        ne=part.ne,
        mismatch=part.mismatch,
    )
    np.testing.assert_allclose(direct.sum(axis=1).T, found[:, own], atol=0.0011)


def test_a_sample_alone_has_the_bytes_that_it_has_among_others(
    tmp_path, reference, scene, monkeypatch
):
    _, phreds = scene
    calls = np.array(texts(phreds[LISTED]))
    calls[::7, 2] = "."
    together = columns(
        impute(likely_vcf(tmp_path / "all.vcf", NAMES, calls, POS[LISTED]), reference)
    )
    monkeypatch.setattr(copy_haplotypes, "BATCH_BYTES", 4 * 2 * 100)
    monkeypatch.setattr(copy_haplotypes, "HELD_BYTES", 0)
    order = [5, 2, 0, 4]
    names = [NAMES[k] for k in order]
    vcf = likely_vcf(tmp_path / "some.vcf", names, calls[:, order], POS[LISTED])
    some = columns(impute(vcf, reference, "--threads", "2"))
    alone = likely_vcf(tmp_path / "one.vcf", ["r3"], calls[:, 2:3], POS[LISTED])
    assert columns(impute(alone, reference))["r3"] == together["r3"]
    assert all(some[name] == together[name] for name in names)
    seeded = columns(impute(vcf, reference, "--seed", "2"))
    assert seeded["a"] != together["a"]


def test_fields_formats_and_sides_give_the_same(tmp_path, reference, scene):
    """GL and GP of the phreds, BCF, REF and ALT swapped, the other strand."""
    _, phreds = scene
    phreds, pos = np.minimum(phreds[LISTED, :2], 60), POS[LISTED]
    names = NAMES[:2]
    plain = likely_vcf(tmp_path / "PL.vcf", names, texts(phreds), pos)
    expected = columns(impute(plain, reference))
    bcf = cyvcf2.Writer(str(tmp_path / "b.bcf"), cyvcf2.VCF(str(plain)), mode="wb")
    for record in cyvcf2.VCF(str(plain)):
        bcf.write_record(record)
    bcf.close()
    shares = likelihoods_of_phreds()[phreds]
    shares /= shares.sum(axis=2, keepdims=True)
    shares = [[",".join(f"{p:.9f}" for p in call) for call in row] for row in shares.tolist()]
    shifted = texts(-0.1 * phreds.astype(float) - 0.5)
    files = [
        tmp_path / "b.bcf",
        likely_vcf(tmp_path / "GL.vcf", names, shifted, pos, field="GL"),
        likely_vcf(tmp_path / "GP.vcf", names, shares, pos, field="GP"),
        likely_vcf(tmp_path / "s.vcf", names, texts(phreds[..., ::-1]), pos, bases="CA"),
        likely_vcf(tmp_path / "turned.vcf", names, texts(phreds), pos, bases="TG"),
    ]
    for file in files:
        assert columns(impute(file, reference)) == expected, file


def test_haploid_samples_have_one_allele(tmp_path, reference, scene):
    genotypes, phreds = scene
    haploid = np.where(genotypes[:, :1] > 0, 1, 0)
    one = sequenced(2 * haploid, 1.5, 4)[..., ::2]
    calls = [[*a, *b] for a, b in zip(texts(phreds[:, :1]), texts(one), strict=True)]
    out = columns(impute(likely_vcf(tmp_path / "x.vcf", ["a", "b"], calls, POS), reference))
    both = columns(
        impute(likely_vcf(tmp_path / "y.vcf", ["a"], [row[:1] for row in calls], POS), reference)
    )
    assert out["a"] == both["a"]
    assert {call.split(":")[0] for call in out["b"]} == {"0", "1"}
    found = np.array([float(call.split(":")[1]) for call in out["b"]])
    assert np.corrcoef(found, haploid[:, 0])[0, 1] ** 2 > 0.8


@pytest.mark.parametrize(
    ("field", "call", "said"),
    [
        ("PL", "0,-3,30", "the PL of sample 'b' are 0, -3, 30; PL are phred-scaled"),
        ("PL", "0,3,30,3,3,3", "the PL of sample 'b' has 6 values, where a record of two"),
        ("PL", "7", "the PL of sample 'b' has 1 value,"),
        ("PL", "0,.,30", "some values of the PL of sample 'b' are missing"),
        ("GL", "-1,0.5,-3", "the GL of sample 'b' are -1, 0.5, -3; GL are log10"),
        ("GL", "0,nan,-3", "the GL of sample 'b' are 0, nan, -3"),
        ("GP", "0.5,0.1,0.1", "the GP of sample 'b' are 0.5, 0.1, 0.1; GP are probabilities"),
        ("GP", "1.4,-0.4,0", "the GP of sample 'b' are 1.4, -0.4, 0"),
        ("XX", "0,1,2", "the record has none of PL, GL and GP"),
    ],
)
def test_bad_likelihoods_are_refused(tmp_path, reference, capsys, field, call, said):
    fair = {"PL": "0,3,30", "GL": "0,-1,-3", "GP": "0.9,0.1,0"}.get(field, "0,1,2")
    calls = [[fair, fair]] * 5 + [[fair, call]]
    vcf = likely_vcf(tmp_path / "t.vcf", ["a", "b"], calls, POS[:6], field=field)
    command = ["impute", str(vcf), "--reference", str(reference), "-o", str(tmp_path / "o.vcf.gz")]
    assert main([*command, "--likelihoods"]) == 1
    error = capsys.readouterr().err
    assert said in error and (f"t.vcf, 1:{POS[5]}: " in error or field == "XX")
    assert not (tmp_path / "o.vcf.gz").exists()


def test_without_the_option_a_file_without_genotypes_is_refused_with_it(
    tmp_path, reference, capsys, caplog
):
    calls = [["0,3,30", "."]] * 6
    vcf = likely_vcf(tmp_path / "t.vcf", ["a", "b"], calls, POS[:6])
    command = ["impute", str(vcf), "--reference", str(reference), "-o", str(tmp_path / "o.vcf.gz")]
    assert main(command) == 1
    assert "--likelihoods" in capsys.readouterr().err
    assert main([*command, "--likelihoods"]) == 0
    assert "1 target has no likelihood at any site of the reference (b)" in caplog.text
    calls[3] = ["0,3", "."]
    likely_vcf(vcf, ["a", "b"], calls, POS[:6])
    assert main([*command, "--likelihoods"]) == 1
    assert "sample 'a' has two likelihoods at 1 sites" in capsys.readouterr().err
