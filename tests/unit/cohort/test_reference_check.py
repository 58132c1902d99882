"""A cohort's alleles turned to a genome, site by site, and against the truth after merging."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from support.study import Cohort, write_raw
from test_merging import encoded

from popdesic.cohort.absent import Absent, strands_in_doubt
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.reference_check import COUNTS
from popdesic.core.errors import UserError
from popdesic.core.files import read_json
from popdesic.io.bed import open_bed, read_bim
from popdesic.io.genotypes import unpack_bed

PAIRS = {"A": "T", "C": "G", "G": "C", "T": "A", "0": "0"}
SAME, SWAP, STRAND, UNKNOWN, NEITHER, ABSENT = COUNTS


def write_genome(path, genome: dict[str, str]):
    """FASTA of contigs."""
    path.write_text("".join(f">{name}\n{bases}\n" for name, bases in genome.items()))
    return path


def turned(folder, cohort: Cohort, fasta) -> tuple[dict, list, np.ndarray, str]:
    """What ingest makes of a cohort's PLINK files: counts, sites and genotypes."""
    source = write_raw(folder / "data" / cohort.name, cohort)
    out = folder / cohort.name / "raw"
    out.parent.mkdir(exist_ok=True)
    ingest_cohort(source, out, fasta=fasta)
    about = read_json(out.with_suffix(".json"))
    bim = read_bim(out)
    sites = list(zip(bim.chrom, bim.pos, bim.ref, bim.alt, strict=True))
    return about, sites, unpack_bed(open_bed(out), len(cohort.samples))


def expected(ref: str, alt: str, base: str, strands: str) -> tuple[str, str, str, bool]:
    """Count, REF, ALT and whether genotypes are turned, of one site; by hand.

    `strands`: whether the file is on the genome's strand, the other, or both.
    """
    other = PAIRS[ref], PAIRS[alt]
    if base not in "ACGT" or not base:
        return ABSENT, ref, alt, False
    on_other = other[0] != alt and alt != "0" and base not in (ref, alt)
    if strands == "other" and (on_other or other[0] == alt or alt == "0"):
        on_other, (ref, alt) = True, other
    elif on_other:
        ref, alt = other
    palindromic = PAIRS[ref] == alt
    if palindromic and base not in (ref, alt):
        return NEITHER, "", "", False
    if strands == "both" and (palindromic or (alt == "0" and ref != base)):
        return UNKNOWN, ref, alt, False
    kind = STRAND if on_other else SAME if ref == base else SWAP
    if ref == base:
        return kind, ref, alt, False
    return kind, base, ref, True


@pytest.mark.parametrize("strands", ["genome", "both", "other"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_site_is_turned_to_the_genome_and_counted_once(tmp_path, packed, strands):
    rng = np.random.default_rng(3)
    n = 3_000
    genome = {name: "".join(rng.choice(list("ACGT"), n)) for name in ("chr1", "2")}
    fasta = [">chr1 some words"]
    fasta += [genome["chr1"][k : k + 50].lower() for k in range(0, n, 50)]
    text = "\n".join([*fasta, ">2", genome["2"][:100] + "N" + genome["2"][101:], ""]).encode()
    path = tmp_path / "genome.fa"
    path.write_bytes(gzip.compress(text) if packed else text)
    genome["2"] = genome["2"][:100] + "N" + genome["2"][101:]
    sites, wanted, counts = [], [], dict.fromkeys(COUNTS, 0)
    genotypes = rng.integers(-1, 3, (n, 3)).astype(np.int8)
    for k in range(n):
        chrom = str(rng.choice(["1", "chr2", "3"], p=[0.6, 0.39, 0.01]))
        pos = k + 1 + (n if rng.random() < 0.01 else 0)
        base = {"1": genome["chr1"], "chr2": genome["2"]}.get(chrom, "")[pos - 1 : pos]
        truth = base if base in PAIRS and base else "A"
        ref, alt = truth, str(rng.choice([one for one in "ACGT" if one != truth]))
        draw = rng.random()
        if PAIRS[ref] == alt and draw < 0.03:
            ref, alt = [one for one in "ACGT" if one not in (ref, alt)]
        elif draw < 0.4:
            ref, alt = alt, ref
        elif draw < 0.6:
            genotypes[k] = np.where(genotypes[k] > 0, 0, genotypes[k])
            ref, alt = str(rng.choice([ref, alt])), "0"
        if strands == "other" or (strands == "both" and rng.random() < 0.3):
            ref, alt = PAIRS[ref], PAIRS[alt]
        sites.append((chrom, pos, f"s{k}", ref, alt))
        kind, new_ref, new_alt, turn = expected(ref, alt, base, strands)
        counts[kind] += 1
        row = genotypes[k]
        if kind != NEITHER:
            row = np.where(turn & (row >= 0), 2 - row, row)
            wanted.append(((chrom, pos, new_ref, new_alt), row))
    seen = {"genome": {SAME, SWAP}, "both": {SAME, SWAP, STRAND, UNKNOWN}, "other": {STRAND}}
    assert {name for name in COUNTS if counts[name]} == seen[strands] | {NEITHER, ABSENT}
    about, found, rows = turned(tmp_path, Cohort("c", list("ABC"), sites, genotypes), path)
    assert about["genome"]["counts"] == counts and sum(counts.values()) == n
    assert about["genome"]["in_doubt"] == (strands == "both")
    assert about["counts"]["sites"] == len(found) == n - counts[NEITHER]
    assert about["counts"]["duplicates"] == 0
    assert found == [site for site, _ in wanted]
    assert np.array_equal(rows, [row for _, row in wanted])
    only = ((rows <= 0).all(axis=1) & (rows == 0).any(axis=1)).sum()
    assert about["reference_only"] == only


def test_sites_that_become_the_same_are_one(tmp_path):
    sites = [("1", 1, "a", "A", "C"), ("1", 1, "b", "C", "A"), ("1", 1, "c", "T", "G")]
    genotypes = np.array([[0], [2], [1]], np.int8)
    fasta = write_genome(tmp_path / "genome.fa", {"1": "A"})
    about, found, rows = turned(tmp_path, Cohort("c", ["A"], sites, genotypes), fasta)
    assert found == [("1", 1, "A", "C")] and rows.tolist() == [[0]]
    assert about["counts"]["duplicates"] == 2


def test_no_fasta_gives_a_one_sentence_error(tmp_path):
    (tmp_path / "genome.fa").write_text("ACGT\n")
    sites = [("1", 1, ".", "A", "C")]
    cohort = Cohort("c", ["A"], sites, np.zeros((1, 1), np.int8))
    with pytest.raises(UserError, match="line 1: a FASTA file starts with '>'"):
        turned(tmp_path, cohort, tmp_path / "genome.fa")


@pytest.mark.parametrize("fault", ["", "swapped", "build", "strand", "array", "contig"])
def test_the_warning_names_the_cause(tmp_path, caplog, fault):
    rng = np.random.default_rng(5)
    n, bases = 2_000, np.array(list("ACGT"))
    genome = "".join(rng.choice(bases, n + 100))
    fasta = write_genome(tmp_path / "genome.fa", {"1": genome})
    sites = []
    for k in range(n):
        ref = genome[k]
        others = [b for b in "ACGT" if b != ref and not (fault == "array" and b == PAIRS[ref])]
        alt = str(rng.choice(others))
        if fault == "strand" or (fault == "array" and k % 2):
            ref, alt = PAIRS[ref], PAIRS[alt]
        if fault == "swapped" and k % 3:
            ref, alt = alt, ref
        shift = 50 if fault == "build" else 0
        sites.append(("2" if fault == "contig" and k % 2 else "1", k + 1 + shift, ".", ref, alt))
    cohort = Cohort("c", ["A"], sites, np.zeros((n, 1), np.int8))
    if fault == "build":
        with pytest.raises(UserError, match="so it is of another genome build; give the genome"):
            turned(tmp_path, cohort, fasta)
        return
    turned(tmp_path, cohort, fasta)
    says = {
        "array": "there are too few A/T and C/G sites",
        "contig": "lacks the contig or position",
    }
    if fault in says:
        assert says[fault] in caplog.text
    else:
        assert caplog.text == ""


# --- cohorts against the truth ----------------------------------------------------------------


def make_truth(seed: int, names: str, n: int = 1_500, size: int = 30) -> tuple[str, list[Cohort]]:
    """A genome, and cohorts of one population at the same sites; REF is the genome's base."""
    rng = np.random.default_rng(seed)
    genome = "".join(rng.choice(list("ACGT"), n * 3))
    sites = [
        (
            "1",
            3 * k + 1,
            f"s{k}",
            genome[3 * k],
            str(rng.choice([b for b in "ACGT" if b != genome[3 * k]])),
        )
        for k in range(n)
    ]
    frequency = rng.beta(0.4, 0.8, n)
    return genome, [
        Cohort(
            name,
            [f"{name}{k}" for k in range(size)],
            sites,
            rng.binomial(2, frequency[:, None], (n, size)).astype(np.int8),
        )
        for name in names
    ]


def as_plink(cohort: Cohort, flips: float = 0.0, seed: int = 1) -> Cohort:
    """As PLINK writes the sites that the cohort has ALT at: A1 is the rarer allele, or unknown."""
    rng = np.random.default_rng(seed)
    sites, rows = [], []
    for (chrom, pos, name, *alleles), genotypes in zip(cohort.sites, cohort.genotypes, strict=True):
        total, (ref, alt) = genotypes.sum(), alleles
        if not total:
            continue
        if total > len(genotypes):
            ref, alt, genotypes = alt, ref, 2 - genotypes
        if not genotypes.any():
            alt = "0"
        if rng.random() < flips:
            ref, alt = PAIRS[ref], PAIRS[alt]
        sites.append((chrom, pos, name, ref, alt))
        rows.append(genotypes)
    return replace(cohort, sites=sites, genotypes=np.array(rows, np.int8))


def merged(folder, files: list[Cohort], fasta, absent: Absent):
    """Panel and genotypes of founders `a`, `b` and newcomer `c`, by way of ingest."""
    for one in files:
        turned(folder, one, fasta)
        summarize_cohort(
            folder / one.name / "raw",
            {},
            folder / f"{one.name}.sites.tsv",
            folder / f"{one.name}.samples.tsv",
            min_sample_call_rate=0.0,
        )
    said = dict.fromkeys("ab", absent)
    build_panel(
        {name: folder / f"{name}.sites.tsv" for name in "ab"},
        folder / "panel.tsv",
        folder / "counts.json",
        PanelFilters([], 0.0, 0.01, 0.0),
        genotypes={n: (folder / n / "raw", folder / f"{n}.samples.tsv") for n in "ab"},
        absent=said,
    )
    found = {one.name: encoded(folder, one, absent) for one in files}
    return load_panel(folder / "panel.tsv")[0], found


def true_panel(cohorts: list[Cohort]) -> list[int]:
    """Rows of the sites that enter the panel by the truth: MAF of both founders together."""
    both = np.concatenate([one.genotypes for one in cohorts[:2]], axis=1)
    p = both.mean(axis=1) / 2
    return np.flatnonzero(np.minimum(p, 1 - p) >= 0.01)


def test_plink_files_without_order_give_the_joint_call(tmp_path):
    """Two founders and a newcomer whose A1 is the rarer allele, absent sites read as reference."""
    genome, cohorts = make_truth(7, "abc")
    fasta = write_genome(tmp_path / "genome.fa", {"chr1": genome})
    files = [as_plink(one) for one in cohorts]
    panel, found = merged(tmp_path, files, fasta, Absent("reference"))
    rows = true_panel(cohorts)
    assert panel.id.tolist() == [f"s{k}" for k in rows]
    sites = [cohorts[0].sites[k] for k in rows]
    assert panel.ref.tolist() == [one[3] for one in sites]
    assert panel.alt.tolist() == [one[4] for one in sites]
    for cohort in cohorts:
        assert np.array_equal(found[cohort.name][0], cohort.genotypes[rows])
    with pytest.raises(UserError, match="REF and ALT swapped at"):
        merged(tmp_path / "without", files, None, Absent("reference"))


@pytest.mark.parametrize("mixed", ["a", "b", "c", "ab"])
def test_strands_of_plink_files_are_those_of_the_genome(tmp_path, mixed):
    """Half of the sites of some cohorts on the other strand: A/T and C/G as far as told."""
    genome, cohorts = make_truth(8, "abc")
    fasta = write_genome(tmp_path / "genome.fa", {"chr1": genome})
    files = [as_plink(one, 0.5 if one.name in mixed else 0) for one in cohorts]
    panel, found = merged(tmp_path, files, fasta, Absent("reference"))
    for one in files:
        assert strands_in_doubt(tmp_path / one.name / "raw") == (one.name in mixed)
    rows = true_panel(cohorts)
    ambiguous = np.array([PAIRS[one[3]] == one[4] for one in cohorts[0].sites])
    row = {f"s{k}": k for k in range(len(ambiguous))}
    here = np.array([row[name] for name in panel.id])
    assert set(here) <= set(rows) and set(here) >= set(rows[~ambiguous[rows]])
    sites = [cohorts[0].sites[k] for k in here]
    assert panel.ref.tolist() == [one[3] for one in sites]
    told = 0
    for cohort in cohorts:
        rows_found = found[cohort.name][0]
        same = rows_found == cohort.genotypes[here]
        assert same[~ambiguous[here]].all()
        assert (same | (rows_found < 0))[ambiguous[here]].all()
        if cohort.name in mixed:
            told += (rows_found[ambiguous[here]] >= 0).all(axis=1).sum()
        else:
            assert same.all()
    if mixed != "ab":
        assert told > 50
