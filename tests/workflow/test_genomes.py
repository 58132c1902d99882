"""Other genomes than the human one: 40 chromosomes with other names, X haploid in males."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.plink_files import write_plink
from support.running import snakemake
from support.study import COLUMNS, FAST, make_cohorts, write_study

from popdesic.cohort.panel import load_panel
from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.core.triangle import open_symmetric
from popdesic.io.sites import chunks

NAMES = [*(f"LG{k:02d}" for k in range(1, 38)), "NC_012345.1", "scaffold|7;a", "X"]


def test_forty_chromosomes_and_a_haploid_x_need_only_configuration(tmp_path):
    cohorts = [
        replace(
            cohort,
            sites=[
                (NAMES[k], 100 + 10 * i, f"s{k}.{i}", *cohort.sites[first + i][3:])
                for k, (first, last) in enumerate(chunks(400, 10))
                for i in range(last - first)
            ],
        )
        for cohort in make_cohorts((16, 14))
    ]
    config = FAST | {
        "panel": {"min_hwe_p": 0, "min_call_rate": 0.5},
        "contigs": {"exclude": [], "haploid": {"X": "diploidize"}},
    }
    folder = write_study(tmp_path, cohorts, config)
    path = folder / cohorts[0].path  # every second sample of the first cohort is a male
    lines = []
    for line in path.read_text().splitlines():
        words = line.split("\t")
        if words[0] == "X":
            calls = [c[0] if k % 2 and c in ("0/0", "1/1") else c for k, c in enumerate(words[9:])]
            line = "\t".join([*words[:9], *calls])
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")
    snakemake(folder, "distance")
    panel, _ = load_panel(folder / "results/panel/sites.tsv")
    assert set(panel.chrom) == set(NAMES)
    squared = open_symmetric(folder / "results/distance/squared.npy")[:]
    called = open_symmetric(folder / "results/distance/called.npy")[:]
    genotypes = np.concatenate([c.genotypes for c in cohorts], axis=1).astype(np.int64)
    row_of = {(s[0], s[1]): k for k, s in enumerate(cohorts[0].sites)}
    genotypes = genotypes[[row_of[key] for key in zip(panel.chrom, panel.pos, strict=True)]]
    a, b = genotypes[:, :, None], genotypes[:, None, :]
    both = (a >= 0) & (b >= 0)
    np.testing.assert_array_equal(called, both.sum(axis=0))
    np.testing.assert_array_equal(squared, np.where(both, (a - b) ** 2, 0).sum(axis=0))


def test_males_with_half_calls_on_x_keep_their_sex_and_are_kept(tmp_path):
    """Males `./1` on X, heterozygous in PAR1."""
    rng = np.random.default_rng(3)
    names = [f"N{k:02d}" for k in range(40)]
    positions = [100_000 + 50_000 * k for k in range(40)]
    positions += [20_000_000 + 400_000 * k for k in range(200)]
    lines = ["##fileformat=VCFv4.2", "\t".join([COLUMNS, *names])]
    for pos in positions:
        one, two = rng.random((2, 40)) < rng.uniform(0.2, 0.8)
        calls = [
            f"{'.' if k % 2 and pos > 5e6 else int(a)}/{int(b)}"
            for k, (a, b) in enumerate(zip(one, two, strict=True))
        ]
        lines.append("\t".join(["chrX", str(pos), ".", "A", "C", ".", ".", ".", "GT", *calls]))
    (cohort,) = make_cohorts((40,))
    config = FAST | {"qc": {"sex_mismatch": "drop", "min_sample_call_rate": 0.1}}
    folder = write_study(tmp_path, [replace(cohort, name="x", samples=names)], config)
    (folder / "data/x.vcf").write_text("\n".join(lines) + "\n")
    rows = [f"{name}\tx\t{'FM'[k % 2]}" for k, name in enumerate(names)]
    (folder / "config/samples.tsv").write_text("\n".join(["sample\tcohort\tsex", *rows]) + "\n")
    snakemake(folder, "results/qc/x.samples.tsv")
    table = read_table(folder / "results/qc/x.samples.tsv")
    assert set(table.keep) == {"yes"}
    assert list(table.sex_from_x) == ["F", "NA"] * 20
    assert set(table.x_sites[1::2]) == {"0"}


def plink_study(folder, contigs, genotypes, positions):
    """Write PLINK 1 files with these contigs (n_sites,) and genotypes, and a study of them."""
    n = genotypes.shape[1]
    (cohort,) = make_cohorts((n,))
    folder = write_study(folder, [cohort], FAST | {"panel": {"min_hwe_p": 0}})
    write_plink(folder / "data/one", genotypes, cohort.samples, contigs, positions)
    sheet = folder / "config/cohorts.tsv"
    sheet.write_text(f"cohort\tgenotypes\tfounder\n{cohort.name}\tdata/one\tyes\n")
    return folder, cohort.name


def test_names_of_sex_chromosomes_and_mitochondria_keep_them_off_the_panel(tmp_path):
    rng = np.random.default_rng(9)
    names = ["1", "chr23", "chr24", "chr26", "0X", "mt"]
    contigs = np.repeat(names, 20)
    genotypes = rng.integers(0, 3, (len(contigs), 24)).astype(np.int8)
    positions = 3_000_000 + 1000 * np.arange(len(contigs))
    folder, name = plink_study(tmp_path, contigs, genotypes, positions)
    snakemake(folder, "panel", f"results/qc/{name}.samples.tsv")
    panel, _ = load_panel(folder / "results/panel/sites.tsv")
    assert set(panel.chrom) == {"1"} and len(panel) == 20
    genome = read_json(folder / "results/panel/counts.json")["genome"]
    assert [genome["roles"][c] for c in names] == ["autosome", "X", "Y", "MT", "X", "MT"]
    table = read_table(folder / f"results/qc/{name}.samples.tsv")
    assert set(table.x_sites) == {"40"}, "sex is sought on every X"


def test_a_mouse_loses_no_site_at_human_regions(tmp_path):
    rng = np.random.default_rng(4)
    contigs = np.repeat([str(k) for k in range(1, 20)], 10)
    genotypes = rng.integers(0, 3, (len(contigs), 24)).astype(np.int8)
    positions = np.tile(np.arange(10) * 1_000_000 + 25_000_000, 19)  # on contig 6 the human MHC
    folder, _ = plink_study(tmp_path, contigs, genotypes, positions)
    snakemake(folder, "results/embedding/axes.json")
    assert read_json(folder / "results/embedding/axes.json")["sites"]["long_range_ld"] == 0
    genome = read_json(folder / "results/panel/counts.json")["genome"]
    assert genome["build"] == "none" and "end at 19" in genome["why"]
    log = (folder / "logs/build_panel.log").read_text()
    assert "The genome is not taken as human: its numbered contigs end at 19." in log
