"""One simulated joint call, and the same samples in cohorts that were called apart.

Three populations (msprime): one large, two that left it through bottlenecks. Their cohorts' files
hold variant sites alone, whole or within a mask of each cohort. Everything runs through the stages
of the package, from VCF text to planes on the panel.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import msprime
import numpy as np
import pandas as pd

import popdesic
from popdesic.cohort.absent import Absent
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.qc import summarize_cohort
from popdesic.io.bed import open_bed
from popdesic.io.genotypes import unpack_bed

NAMES = ("A", "B", "C")
#: The filters of a study by default.
FILTERS = {"exclude_contigs": [], "min_call_rate": 0.95, "min_maf": 0.01, "min_hwe_p": 1e-6}
CALLS = np.array(["0/0", "0/1", "1/1"], object)
#: Bases by covered stretch and by gap of a mask.
STRETCH = 400


@dataclass
class Truth:
    """A joint call: positions, alleles, genotypes (n_sites, n_samples), population by sample."""

    pos: np.ndarray
    ref: np.ndarray
    alt: np.ndarray
    genotypes: np.ndarray
    population: np.ndarray
    length: int


def draw(seed: int, samples: int, length: int) -> Truth:
    """Simulate three populations of as many samples."""
    history = msprime.Demography()
    for name, size in zip(NAMES, (10_000, 3_000, 2_500), strict=True):
        history.add_population(name=name, initial_size=size)
    history.add_population(name="BC", initial_size=3_000)
    history.add_population(name="root", initial_size=10_000)
    history.add_population_split(time=900, derived=["B", "C"], ancestral="BC")
    history.add_population_split(time=2_000, derived=["A", "BC"], ancestral="root")
    trees = msprime.sim_ancestry(
        dict.fromkeys(NAMES, samples),
        demography=history,
        sequence_length=length,
        recombination_rate=1e-8,
        random_seed=seed,
    )
    trees = msprime.sim_mutations(trees, rate=1.25e-8, random_seed=seed + 1)
    rows, pos, ref, alt = [], [], [], []
    for site in trees.variants():
        if len(site.alleles) == 2 and None not in site.alleles:
            rows.append(site.genotypes[::2] + site.genotypes[1::2])
            pos.append(int(site.site.position) + 1)
            ref.append(site.alleles[0])
            alt.append(site.alleles[1])
    return Truth(
        np.array(pos),
        np.array(ref, object),
        np.array(alt, object),
        np.array(rows, np.int8),
        np.repeat(NAMES, samples),
        length,
    )


def draw_masks(truth: Truth, seed: int, share: float) -> dict[str, np.ndarray]:
    """Which of the sequence's stretches each cohort covers: bool (n_stretches,)."""
    rng = np.random.default_rng(seed)
    n = -(-truth.length // STRETCH)
    return {name: rng.random(n) < share for name in NAMES}


def write_vcf(path: Path, truth: Truth, samples: np.ndarray, sites: np.ndarray) -> None:
    """A VCF file of some samples at some sites."""
    header = ["##fileformat=VCFv4.2", f"##contig=<ID=1,length={truth.length}>"]
    header += ['##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">']
    names = [f"s{k}" for k in samples]
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *names]
    lines = [
        "\t".join(["1", str(truth.pos[k]), ".", truth.ref[k], truth.alt[k], ".", "PASS", ".", "GT"])
        + "\t"
        + "\t".join(CALLS[truth.genotypes[k, samples]])
        for k in sites
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*header, "\t".join(columns), *lines, ""]))


def write_bed(path: Path, mask: np.ndarray) -> None:
    """A mask of `draw_masks` as a BED file."""
    lines = [f"1\t{k * STRETCH}\t{(k + 1) * STRETCH}\n" for k in np.flatnonzero(mask)]
    path.write_text("".join(lines))


@dataclass
class Placed:
    """Samples on a panel: genotypes (n_samples, n_sites), -1 missing, and their populations."""

    genotypes: np.ndarray
    population: np.ndarray
    positions: np.ndarray


def place(
    folder: Path,
    files: dict[str, Path],
    population: dict[str, str],
    absent: dict[str, Absent],
    founders: list[str],
) -> Placed:
    """Decode cohorts, define the panel from the founders, and encode all."""
    genotypes, tables = {}, {}
    for cohort, file in files.items():
        raw = folder / cohort / "raw"
        ingest_cohort(file, raw)
        samples = folder / f"{cohort}.samples.tsv"
        tables[cohort] = folder / f"{cohort}.sites.tsv"
        summarize_cohort(raw, population, tables[cohort], samples, min_sample_call_rate=0.0)
        genotypes[cohort] = raw, samples
    build_panel(
        {cohort: tables[cohort] for cohort in founders},
        folder / "panel.tsv",
        folder / "counts.json",
        PanelFilters(**FILTERS),
        genotypes={cohort: genotypes[cohort] for cohort in founders},
        absent=absent,
    )
    parts, names = [], []
    for cohort, (raw, samples) in genotypes.items():
        counts = encode_cohort(
            raw,
            samples,
            folder / "panel.tsv",
            folder / cohort,
            impute="none",
            cohort=cohort,
            absent=absent[cohort],
        )
        parts.append(unpack_bed(open_bed(folder / cohort / "genotypes"), counts["samples"]).T)
        names += pd.read_csv(samples, sep="\t", dtype=str)["sample"].tolist()
    panel = pd.read_csv(folder / "panel.tsv", sep="\t", skiprows=1)
    return Placed(
        np.concatenate(parts), np.array([population[name] for name in names]), panel.pos.to_numpy()
    )


@dataclass
class Numbers:
    """What a study reports of its samples."""

    sites: int
    heterozygosity: np.ndarray
    f_st: np.ndarray
    kinship: np.ndarray
    axes: np.ndarray


def measure(placed: Placed) -> Numbers:
    """Heterozygosity by population, F_ST of pairs, KING kinship and the first two components."""
    called = placed.genotypes >= 0
    heterozygosity = [
        (placed.genotypes[placed.population == name] == 1).sum()
        / max(called[placed.population == name].sum(), 1)
        for name in NAMES
    ]
    table = popdesic.f_st(placed.genotypes, placed.population, blocks=10)
    pairs = list(itertools.combinations(NAMES, 2))
    fst = table.set_index(["population1", "population2"]).fst
    kinship = np.asarray(popdesic.kinship(placed.genotypes, device="cpu"))
    varies = np.array([len(np.unique(column[column >= 0])) > 1 for column in placed.genotypes.T])
    axes = popdesic.pca(placed.genotypes[:, varies], n_components=2).scores
    return Numbers(
        placed.genotypes.shape[1],
        np.array(heterozygosity),
        np.array([fst[pair] for pair in pairs]),
        kinship,
        np.asarray(axes),
    )


def procrustes(axes: np.ndarray, other: np.ndarray) -> float:
    """Share of the squared sizes that a rotation and scaling of one map does not explain."""
    a, b = (part - part.mean(axis=0) for part in (axes, other))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return float(1 - np.linalg.svd(a.T @ b, compute_uv=False).sum() ** 2)


@dataclass
class Difference:
    """How far numbers are from those of the joint call.

    `heterozygosity` and `f_st` are relative, those of all populations or pairs; `kinship` is the
    mean absolute difference over pairs of samples, by the mean absolute kinship; `axes` is the
    Procrustes distance of the first two components.
    """

    sites: int
    heterozygosity: np.ndarray
    f_st: np.ndarray
    kinship: float
    axes: float


def compare(found: Numbers, truth: Numbers) -> Difference:
    """Numbers of cohorts called apart against those of the joint call (pairs of NaN aside)."""
    upper = np.triu_indices(len(truth.kinship), 1)
    off, size = (
        np.nanmean(np.abs(k[upper])) for k in (found.kinship - truth.kinship, truth.kinship)
    )
    return Difference(
        found.sites,
        found.heterozygosity / truth.heterozygosity - 1,
        found.f_st / truth.f_st - 1,
        float(off / size),
        procrustes(found.axes, truth.axes),
    )


class Scene:
    """A joint call and its cohorts' files in a folder; the joint call's numbers."""

    def __init__(self, folder: Path, seed: int, samples: int, length: int, covered: float):
        self.folder = folder
        self.truth = draw(seed, samples, length)
        self.masks = draw_masks(self.truth, seed, covered)
        self.numbers = {name: np.flatnonzero(self.truth.population == name) for name in NAMES}
        self.population = {f"s{k}": p for k, p in enumerate(self.truth.population.tolist())}
        everything = np.arange(len(self.truth.pos))
        for name, samples_of in self.numbers.items():
            varies = (self.truth.genotypes[:, samples_of] > 0).any(axis=1)
            inside = self.masks[name][(self.truth.pos - 1) // STRETCH]
            for kind, which in (
                ("joint", np.ones(len(varies), bool)),
                ("variants", varies),
                ("masked", varies & inside),
            ):
                write_vcf(self.file(kind, name), self.truth, samples_of, everything[which])
            write_bed(folder / f"{name}.bed", self.masks[name])

    def file(self, kind: str, name: str) -> Path:
        """The VCF file of one cohort: `joint`, `variants` or `masked`."""
        return self.folder / f"{kind}.{name}.vcf"

    def run(self, kind: str, rule: str, founders: tuple[str, ...] = NAMES) -> Placed:
        """Place all cohorts; `rule`: missing, reference or mask."""
        absent = {
            name: Absent("auto", str(self.folder / f"{name}.bed"))
            if rule == "mask"
            else Absent(rule)
            for name in NAMES
        }
        files = {name: self.file(kind, name) for name in NAMES}
        out = self.folder / f"{kind}.{rule}.{''.join(founders)}"
        return place(out, files, self.population, absent, list(founders))

    def joint(self, founders: tuple[str, ...] = NAMES) -> Placed:
        """The joint call on a panel with the same filters."""
        return self.run("joint", "missing", founders)
