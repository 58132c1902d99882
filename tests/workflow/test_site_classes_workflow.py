"""A study with indels, structural variants and split sites, from `init` to the report."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from support.running import snakemake
from support.study import COLUMNS, FAST

from popdesic.__main__ import main
from popdesic.cohort.panel import load_panel
from popdesic.io.call_filters import CallFilters
from popdesic.io.vcf import stream_sites

#: REF and ALT of a record, as `north` writes them and as `south` does; the sites that they are.
LONG = "A" + "CG" * 60
KINDS = [
    ("A C", "A C", ["A C"]),
    ("G GTT", "GA GTTA", ["G GTT"]),
    ("A C,G", "A G,C", ["A C", "A G"]),
    ("T G", "T G", ["T G"]),
    ("ATT A,AT,*", "ATT A,AT,*", ["ATT A", "AT A"]),
    ("C <DEL>", "C <DEL>", ["N <DEL:4000>"]),
    (f"A {LONG}", f"A {LONG}", [f"A {LONG}"]),
    ("CAT CGT", "CAT CGT", ["A G"]),
]
N_RECORDS = 240
ONE = "the most common one at each position"
ALL = ["snp", "indel", "sv", "multiallelic"]
CONFIG = FAST | {
    "sites": {"classes": ALL},
    "panel": {"min_maf": 0.05, "min_hwe_p": 0, "ld_prune": ["50 sites", 5, 0.3]},
    "distance": {"min_called": 10},
    "compare": {"analyses": ["kinship", "ld"]},
    "epistasis": {"order": [2], "permutations": 5, "min_distance_bp": 1},
    "export": {"formats": ["plink", "vcf"]},
}


def write_cohorts(folder: Path) -> dict[str, list[tuple]]:
    """Write two founders; return their sites: contig, position, REF, ALT, genotypes."""
    rng = np.random.default_rng(3)
    shared = [rng.dirichlet(np.ones(4)) for _ in range(N_RECORDS)]
    folder.mkdir(parents=True)
    cohorts = {}
    for spelling, name in enumerate(("north", "south")):
        names = [f"{name}{k}" for k in range(14)]
        lines, sites = ["##fileformat=VCFv4.2", "\t".join([COLUMNS, *names])], []
        for k, own in enumerate(shared):
            chrom, pos = str(1 + 2 * k // N_RECORDS), 1000 + 20_000 * k
            ref, alt = KINDS[k % len(KINDS)][spelling].split()
            alts = alt.split(",")
            share = own[: 1 + len(alts)] + 0.15
            calls = rng.choice(1 + len(alts), (len(names), 2), p=share / share.sum())
            fixed = [chrom, str(pos), f"v{k}", ref, alt, ".", "PASS", "SVLEN=-4000", "GT"]
            lines.append("\t".join([*fixed, *(f"{a}/{b}" for a, b in calls)]))
            for number, site in enumerate(KINDS[k % len(KINDS)][2], 1):
                one, two = site.split()
                # South lists the two ALT of a SNP in the other order.
                allele = 3 - number if alt == "G,C" else number
                start = pos + (ref == "CAT")
                sites.append((chrom, start, one, two, (calls == allele).sum(axis=1)))
        (folder / f"{name}.vcf").write_text("\n".join(lines) + "\n")
        cohorts[name] = sites
    return cohorts


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    cohorts = write_cohorts(folder / "data")
    paths = [str(folder / "data" / f"{name}.vcf") for name in cohorts]
    assert main(["init", str(folder / "study"), *paths]) == 0
    (folder / "study/config/config.yaml").write_text(yaml.safe_dump(CONFIG))
    sheet = folder / "study/config/samples.tsv"
    table = pd.read_csv(sheet, sep="\t", dtype=str)
    table["phenotype"] = [str(k % 2) for k in range(len(table))]
    table["population"] = table.cohort
    table.to_csv(sheet, sep="\t", index=False)
    snakemake(folder / "study", "report", "export")
    return folder / "study", cohorts


def test_the_panel_has_every_class_with_its_frequencies(study):
    folder, cohorts = study
    panel, _ = load_panel(folder / "results/panel/sites.tsv")
    north, south = cohorts.values()
    frequency = {
        one[:4]: np.mean([*one[4], *other[4]]) / 2 for one, other in zip(north, south, strict=True)
    }
    found = list(zip(panel.chrom, panel.pos, panel.ref, panel.alt, strict=True))
    assert set(found) <= set(frequency)
    np.testing.assert_allclose(panel.af, [frequency[site] for site in found], rtol=1e-12)
    assert {(ref, alt) for _, _, ref, alt in found} == {
        tuple(site.split()) for *_, sites in KINDS for site in sites
    }
    counts = json.loads((folder / "results/panel/counts.json").read_text())
    *_, before, single, pruned = [
        s["sites"] for s in counts["steps"] if s["what"] in ("filter", "position")
    ]
    assert len(panel) == pruned < single < before


def test_a_record_counts_once(study):
    """Each position has one site on the panel, the one of the highest minor allele frequency."""
    folder, cohorts = study
    panel, _ = load_panel(folder / "results/panel/sites.tsv")
    minor: dict[tuple, list[float]] = {}
    for north, south in zip(*cohorts.values(), strict=True):
        f = np.mean([*north[4], *south[4]]) / 2
        minor.setdefault(north[:2], []).append(min(f, 1 - f))
    found = list(zip(panel.chrom, panel.pos, strict=True))
    assert len(set(found)) == len(found)
    np.testing.assert_allclose(
        np.minimum(panel.af, 1 - panel.af), [max(minor[site]) for site in found], rtol=1e-9
    )
    assert sum(len(minor[site]) > 1 for site in found) > 10


def test_every_class_is_counted(study):
    folder, cohorts = study
    table = pd.read_csv(folder / "results/qc/summary.tsv", sep="\t", keep_default_na=False)
    each = N_RECORDS // len(KINDS)
    for name, sites in cohorts.items():
        counts = table[(table.stage == "ingest") & (table.cohort == name)]
        counts = counts.set_index("step")["count"].astype(int)
        assert counts.records == N_RECORDS and counts.snps == 2 * each
        assert counts.indels_read == 2 * each and counts.svs_read == each
        assert counts.snps_in_long_alleles == each
        assert counts.split_records == 2 * each and counts.split_sites == 4 * each
        assert counts.alt_left_out == each  # *
        assert counts.sites == len(sites)
    page = (folder / "results/report/report.html").read_text()
    for words in ("Indels that are read", "Structural variants that are read", "are split", ONE):
        assert words in page


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("bcftools") is None, reason="bcftools is not installed")
def test_sites_are_counted_as_bcftools_does(study):
    folder, cohorts = study
    for name, sites in cohorts.items():
        path = folder.parent / "data" / f"{name}.vcf"
        text = path.read_text().replace(
            "#CHROM",
            "##contig=<ID=1>\n##contig=<ID=2>\n##INFO=<ID=SVLEN,Number=1,Type=Integer,"
            'Description="x">\n##FORMAT=<ID=GT,Number=1,Type=String,Description="x">\n#CHROM',
        )
        done = subprocess.run(
            ["bcftools", "norm", "-m", "-any"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        records = [line.split("\t") for line in done.stdout.splitlines() if line[0] != "#"]
        assert len([record for record in records if record[4] != "*"]) == len(sites)


def test_exports_and_scans_have_the_long_alleles(study):
    folder, _ = study
    results = folder / "results"
    panel = pd.read_csv(results / "panel/sites.tsv", sep="\t", comment="#", dtype=str)
    expected = list(zip(panel.chrom, panel.pos, panel.ref, panel.alt, strict=True))
    path = results / "export/panel.vcf.gz"
    lines = subprocess.run(["zcat", "-f", path], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t", 5) for line in lines.splitlines() if line[0] != "#"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == expected
    # What is exported is read again as the same sites.
    again = [
        (chrom, str(pos), ref, alt)
        for batch in stream_sites(path, filters=CallFilters(classes=tuple(ALL[1:])))
        for chrom, pos, ref, alt in zip(batch.chrom, batch.pos, batch.ref, batch.alt, strict=True)
    ]
    assert again == expected
    scanned = pd.read_csv(results / "epistasis/sites.tsv", sep="\t", dtype=str)
    assert set(zip(scanned.chrom, scanned.pos, scanned.ref, scanned.alt, strict=True)) <= set(
        expected
    )
    assert (scanned.alt.str.len() > 1).any()
    pruned = (results / "compare/prune.in").read_text() + (
        results / "compare/prune.out"
    ).read_text()
    assert len(pruned.split()) >= len(set(panel.id))


def test_a_genome_is_placed_by_its_indels_too(study, tmp_path, capsys):
    folder, _ = study
    source = folder.parent / "data/north.vcf"
    command = ["place", str(source), "--sample", "north3", "--study", str(folder)]
    assert main([*command, "--out", str(tmp_path / "place")]) == 0
    about = json.loads((tmp_path / "place/place.json").read_text())
    assert about["sites"]["found"] == about["sites"]["panel_sites"]
    assert "1. north3" in capsys.readouterr().out
