"""Tiny studies for tests: cohorts with structure, written as VCF text, sheets and config."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import yaml
from oracles.reference import bed_bytes

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.qc import summarize_cohort
from popdesic.study.configuration import fill_config

COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
CALLS = ("0/0", "0/1", "1/1", "./.")

Site = tuple[str, int, str, str, str]


@dataclass
class Cohort:
    """One cohort: sites (chrom, pos, id, ref, alt) and genotypes (n_sites, n_samples)."""

    name: str
    samples: list[str]
    sites: list[Site]
    genotypes: np.ndarray
    founder: bool = True
    compressed: bool = False
    populations: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Path of the cohort's genotype file, relative to the study's folder."""
        return f"data/{self.name}.vcf" + (".gz" if self.compressed else "")

    def vcf(self) -> str:
        """The cohort as VCF text."""
        rows = [
            "\t".join([chrom, str(pos), *words, ".", "PASS", ".", "GT", *(CALLS[g] for g in row)])
            for (chrom, pos, *words), row in zip(self.sites, self.genotypes.tolist(), strict=True)
        ]
        header = ["##fileformat=VCFv4.2", "\t".join([COLUMNS, *self.samples])]
        return "\n".join([*header, *rows]) + "\n"


def make_sites(n_sites: int) -> list[Site]:
    """Sites over two contigs; every tenth is strand-ambiguous."""
    alleles = [("A", "C"), ("G", "A"), ("T", "C"), ("G", "T"), ("C", "T")] * 2
    alleles[9] = ("A", "T")
    return [
        (str(1 + 2 * k // n_sites), 1000 + 100 * k, f"rs{k}", *alleles[k % 10])
        for k in range(n_sites)
    ]


def make_cohorts(
    n_samples: tuple[int, ...] = (16, 14, 12),
    *,
    n_sites: int = 400,
    missing: float = 0.02,
    seed: int = 1,
) -> list[Cohort]:
    """Founders `north` and `south`, then newcomers `west`, `east`, of two populations."""
    rng = np.random.default_rng(seed)
    common = rng.uniform(0.15, 0.85, n_sites)
    frequency = {p: np.clip(common + rng.normal(0, 0.15, n_sites), 0.05, 0.95) for p in ("P", "Q")}
    sites = make_sites(n_sites)
    cohorts = []
    for index, (name, size) in enumerate(
        zip(("north", "south", "west", "east"), n_samples, strict=False)
    ):
        populations = ["P" if k < size // 2 else "Q" for k in range(size)]
        genotypes = np.stack([rng.binomial(2, frequency[p]) for p in populations], axis=1)
        genotypes[rng.random(genotypes.shape) < missing] = -1
        cohorts.append(
            Cohort(
                name,
                [f"{name[0].upper()}{k:02d}" for k in range(size)],
                sites,
                genotypes.astype(np.int8),
                founder=index < 2,
                compressed=index % 2 == 1,
                populations=populations,
            )
        )
    return cohorts


def swap_alleles(cohort: Cohort, sites: range | list[int]) -> Cohort:
    """The same genotypes with REF and ALT exchanged at these sites."""
    swapped, genotypes = list(cohort.sites), cohort.genotypes.copy()
    for k in sites:
        chrom, pos, name, ref, alt = swapped[k]
        swapped[k] = (chrom, pos, name, alt, ref)
        genotypes[k] = np.where(genotypes[k] < 0, -1, 2 - genotypes[k])
    return replace(cohort, sites=swapped, genotypes=genotypes)


#: Settings that make the study of a test fast; everything else has its default.
FAST = {
    "device": "cpu",
    "geodesic": {"alpha": [2], "space": ["genotypes"]},
    "embedding": {"ensemble": 0},
    "communities": {"methods": []},
    "population": {"analyses": []},
}


def write_sheets(folder: Path, cohorts: list[Cohort], config: dict | None = None) -> None:
    """Write `config/` of a study folder."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    lines = ["cohort\tgenotypes\tfounder"]
    lines += [f"{c.name}\t{c.path}\t{'yes' if c.founder else 'no'}" for c in cohorts]
    (folder / "config/cohorts.tsv").write_text("\n".join(lines) + "\n")
    lines = ["sample\tcohort\tpopulation\tphenotype"]
    for cohort in cohorts:
        populations = (cohort.populations or ["NA"] * len(cohort.samples))[: len(cohort.samples)]
        lines += [
            f"{name}\t{cohort.name}\t{population}\t{k % 2 if len(cohort.samples) > 1 else 'NA'}"
            for k, (name, population) in enumerate(zip(cohort.samples, populations, strict=True))
        ]
    (folder / "config/samples.tsv").write_text("\n".join(lines) + "\n")
    content = yaml.safe_dump(FAST if config is None else config)
    (folder / "config/config.yaml").write_text(content)


def write_study(folder: Path, cohorts: list[Cohort], config: dict | None = None) -> Path:
    """Write the genotype files and `config/` of a study; return its folder."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for cohort in cohorts:
        data = cohort.vcf().encode()
        path = folder / cohort.path
        path.write_bytes(gzip.compress(data, mtime=0) if cohort.compressed else data)
    write_sheets(folder, cohorts, config)
    return folder


def read_config(folder: Path) -> dict:
    """The study's configuration, checked, with defaults filled in."""
    return fill_config(yaml.safe_load((folder / "config/config.yaml").read_text()))


def write_raw(prefix: Path, cohort: Cohort) -> Path:
    """Write the .bed, .bim and .fam that ingest makes from a cohort; return the prefix."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{prefix}.bed").write_bytes(bed_bytes(cohort.genotypes))
    bim = [
        f"{chrom}\t{name}\t0\t{pos}\t{alt}\t{ref}\n" for chrom, pos, name, ref, alt in cohort.sites
    ]
    Path(f"{prefix}.bim").write_text("".join(bim))
    Path(f"{prefix}.fam").write_text("".join(f"0\t{s}\t0\t0\t0\t-9\n" for s in cohort.samples))
    return prefix


#: No site is left out of a panel.
NO_FILTERS = {"exclude_contigs": [], "min_call_rate": 0.0, "min_maf": 0.0, "min_hwe_p": 0.0}


def encode_cohorts(folder: Path, cohorts: list[Cohort]) -> list[Path]:
    """Cohorts on a panel of all sites of the first."""
    for cohort in cohorts:
        raw = write_raw(folder / cohort.name / "raw", cohort)
        samples = folder / cohort.name / "samples.tsv"
        sites = folder / f"{cohort.name}.sites.tsv"
        summarize_cohort(raw, {}, sites, samples, min_sample_call_rate=0.0)
    first = {cohorts[0].name: folder / f"{cohorts[0].name}.sites.tsv"}
    build_panel(first, folder / "panel.tsv", folder / "counts.json", PanelFilters(**NO_FILTERS))
    for cohort in cohorts:
        encode_cohort(
            folder / cohort.name / "raw",
            folder / cohort.name / "samples.tsv",
            folder / "panel.tsv",
            folder / cohort.name,
            impute="mode",
            cohort=cohort.name,
        )
    return [folder / cohort.name for cohort in cohorts]
