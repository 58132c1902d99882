"""Make the embedded example study: three small cohorts with known truth.

Genotypes come from a published human demography (see `demography`), simulated with msprime. On
top of that the script plants what real cohorts bring along: missing genotypes, half-calls,
multiallelic sites, indels, symbolic alleles, duplicated positions, REF/ALT swaps, sites that only
some cohorts have, relatives, a duplicated individual, failing assays, and a case/control trait that
rests on one pair and one triple of sites. All of it is written down in ``truth.json``.

Run from anywhere; needs msprime, numpy, and the commands bgzip and tabix::

    python resources/example/make_example.py

The same seed and the same versions of msprime and numpy give the same bytes after decompression.

Words: a *site* is one row of a VCF, a *person* one sample. Haplotype matrices have the shape
``(n_sites, 2 * n_samples)``, int8; columns ``2k`` and ``2k + 1`` belong to person ``k``.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msprime
import numpy as np
import tskit
from numpy.typing import NDArray

SEED = 20_180_507

# Short contigs, not chromosomes: enough independent segments for PCA and LD pruning to mean
# something, few enough for the simulation to take a minute.
CONTIGS = {
    "1": 14_000_000,
    "2": 12_000_000,
    "3": 10_000_000,
    "4": 9_000_000,
    "5": 8_000_000,
    "6": 7_000_000,
}
RECOMBINATION_RATE = 1e-8  # crossovers per base pair and generation
MUTATION_RATE = 1.25e-8  # per base pair and generation
# Transitions and base composition as in the human genome, roughly: about 2 transitions for each
# transversion, 40 % GC. One site in six is then strand-ambiguous (A/T, C/G), as on real data.
MUTATION_MODEL = msprime.HKY(kappa=4.0, equilibrium_frequencies=[0.3, 0.2, 0.2, 0.3])

# Sites kept, by minor allele frequency over all people. Sequencing would give mostly rare sites;
# this is closer to a genotyping array, so that few sites serve every analysis. Bounds: [low, high).
# At least 2 copies of the minor allele everywhere, so no singletons.
FREQUENCY_CLASSES = ((0.0, 0.01, 2_000), (0.01, 0.05, 7_000), (0.05, 0.51, 13_500))

POPULATIONS = ("AFR", "EUR", "CHB", "JPT", "ADMIX")
GROUPS = {"AFR": "AFR", "EUR": "EUR", "CHB": "EAS", "JPT": "EAS", "ADMIX": "AMR"}


@dataclass(frozen=True)
class Cohort:
    """What one cohort looks like.

    Attributes
    ----------
    populations : people of each population, relatives and duplicates included.
    missing : mean share of missing genotypes of an ordinary sample.
    poor : missing rates of samples that worked badly.
    name : pattern of the sample names; gets ``number`` and ``letter``.
    collected_at : collection sites.
    """

    key: str
    founder: bool
    phased: bool
    populations: dict[str, int]
    missing: float
    poor: tuple[float, ...]
    name: str
    collected_at: tuple[str, ...]

    @property
    def size(self) -> int:
        return sum(self.populations.values())


# The newcomer sorts before the founders by name, so that an order by name alone shows as an error.
COHORTS = (
    Cohort(
        "atlantic",
        founder=True,
        phased=True,
        populations={"AFR": 75, "EUR": 100, "CHB": 25, "JPT": 15, "ADMIX": 85},
        missing=0.012,
        poor=(0.065, 0.08, 0.12),
        name="AT{number:05d}",
        collected_at=("Norhaven", "Saltmere", "Port Elda"),
    ),
    Cohort(
        "pacific",
        founder=True,
        phased=False,
        populations={"AFR": 20, "EUR": 35, "CHB": 70, "JPT": 65, "ADMIX": 30},
        missing=0.018,
        poor=(0.07, 0.16),
        name="PC_{number:04d}-{letter}",
        collected_at=("Coralton", "Eastbay"),
    ),
    Cohort(
        "arctic",
        founder=False,
        phased=False,
        populations={"AFR": 8, "EUR": 30, "CHB": 12, "JPT": 10, "ADMIX": 20},
        missing=0.025,
        poor=(0.09,),
        name="N{number:04d}.{letter}",
        collected_at=("Frostholm", "Isvik"),
    ),
)
# Latitude and longitude of the places, which are on no map.
PLACES = {
    "Norhaven": (52.1, -9.6),
    "Saltmere": (43.2, -8.9),
    "Port Elda": (36.4, -5.8),
    "Coralton": (22.3, 120.4),
    "Eastbay": (35.2, 140.1),
    "Frostholm": (70.9, 25.7),
    "Isvik": (69.5, 18.6),
}
NEWCOMER = next(c.key for c in COHORTS if not c.founder)

# Who is made from whom: (cohort, population). A trio is two unrelated parents and their child.
TRIOS = (("atlantic", "EUR"), ("arctic", "ADMIX"))
DUPLICATES = (("pacific", "JPT"),)

# How many sites carry each kind of trouble.
N_MULTIALLELIC = 30
N_INDELS = 40
N_SYMBOLIC = 2
N_SWAPPED = 24  # REF/ALT exchanged in the newcomer, alleles tell
N_SWAPPED_AMBIGUOUS = 6  # the same at A/T and C/G sites, where alleles cannot tell
N_ABSENT_NEWCOMER = 900
N_ONLY_NEWCOMER = 500
N_ABSENT_FOUNDER = 150  # for each founder
N_BAD_ASSAYS = 12  # heterozygotes called as homozygotes: fails Hardy-Weinberg
N_HALF_CALLS = 12  # for each cohort
SHARE_POOR_SITES = 0.01
SHARE_WITHOUT_ID = 0.06

# Trait. Each effect is the parity of carriers (one or two ALT alleles) at its sites. With carriers
# at one half, no single site, and of the triple no pair either, says anything about the trait.
BASE_RISK = 0.5
PAIR_EFFECT = 0.21
TRIPLE_EFFECT = 0.26
CLEAR_R2 = 0.2  # no other site of the study may be in LD above this with a planted site

BASES = "ACGT"
Genotypes = NDArray[np.int8]


def stream(seed: int, *labels: str) -> np.random.Generator:
    """A random generator of its own for each purpose: changing one step leaves the others alone."""
    return np.random.default_rng([seed, *(zlib.crc32(label.encode()) for label in labels)])


# --- demography -----------------------------------------------------------------------------------


def demography() -> msprime.Demography:
    """The American admixture model with the Japanese branch of a second model added.

    Browning et al. (2018), PLoS Genetics 14:e1007385, supplementary code: the out-of-Africa history
    of Gravel et al. (2011), PNAS 108:11983, and 12 generations ago an admixed population of 1/6
    African, 1/3 European and 1/2 East Asian ancestry. Its East Asian population is called CHB here.

    Jouganous et al. (2017), Genetics 206:1549, table 4: JPT splits from CHB 9 000 years (310
    generations of 29 years) ago with 4 384 people, grows by 1.29 % per generation and exchanges
    3.3e-5 migrants with CHB. Only this branch is taken from there.
    """
    t_ooa, t_europe_asia, t_japan, t_admixture = 2_040, 920, 310, 12
    model = msprime.Demography()
    model.add_population(name="AFR", initial_size=14_474)
    model.add_population(
        name="EUR", initial_size=1_032 * math.exp(0.0038 * t_europe_asia), growth_rate=0.0038
    )
    # Ancestor of JPT and sampled today: msprime takes an ancestor for extinct unless told.
    model.add_population(
        name="CHB",
        initial_size=554 * math.exp(0.0048 * t_europe_asia),
        growth_rate=0.0048,
        initially_active=True,
    )
    model.add_population(
        name="JPT", initial_size=4_384 * math.exp(0.0129 * t_japan), growth_rate=0.0129
    )
    model.add_population(
        name="ADMIX", initial_size=30_000 * math.exp(0.05 * t_admixture), growth_rate=0.05
    )
    model.add_population(name="OOA", initial_size=1_861)
    model.add_population(name="AMH", initial_size=14_474)
    model.add_population(name="ANC", initial_size=7_310)
    model.set_symmetric_migration_rate(["AFR", "EUR"], 2.5e-5)
    model.set_symmetric_migration_rate(["AFR", "CHB"], 0.78e-5)
    model.set_symmetric_migration_rate(["EUR", "CHB"], 3.11e-5)
    model.set_symmetric_migration_rate(["CHB", "JPT"], 3.3e-5)
    model.add_admixture(
        t_admixture,
        derived="ADMIX",
        ancestral=["AFR", "EUR", "CHB"],
        proportions=[1 / 6, 2 / 6, 3 / 6],
    )
    model.add_population_split(t_japan, derived=["JPT"], ancestral="CHB")
    model.add_population_split(t_europe_asia, derived=["EUR", "CHB"], ancestral="OOA")
    model.add_symmetric_migration_rate_change(t_europe_asia, ["AFR", "OOA"], 15e-5)
    model.add_population_split(t_ooa, derived=["OOA", "AFR"], ancestral="AMH")
    model.add_population_split(5_920, derived=["AMH"], ancestral="ANC")
    model.sort_events()
    return model


# --- people ---------------------------------------------------------------------------------------


@dataclass
class Person:
    """One row of the sample sheet.

    ``made_from`` holds the indices of father and mother, or of the person this one repeats.
    """

    sample: str
    cohort: str
    population: str
    collected_at: str
    sex: str = "NA"
    age: int | None = None
    phenotype: int | None = None
    made_from: tuple[int, ...] = ()


def make_people(seed: int) -> list[Person]:
    """All people, cohort by cohort, in the order of the VCF columns."""
    people: list[Person] = []
    for cohort in COHORTS:
        rng = stream(seed, "people", cohort.key)
        rows: list[tuple[int, str]] = []
        for population, n in cohort.populations.items():
            # Populations prefer a collection site, as they do in real life, without belonging to it
            share = rng.dirichlet([1.5] * len(cohort.collected_at))
            rows += [(int(s), population) for s in rng.choice(len(share), size=n, p=share)]
        # Numbered as they came in, one collection site after the other.
        order = sorted(rng.permutation(len(rows)), key=lambda i: rows[i][0])
        number = int(rng.integers(100, 400))
        for i in order:
            number += int(rng.integers(1, 9))
            sample = cohort.name.format(number=number, letter=rng.choice(list("ABC")))
            place, population = rows[i]
            person = Person(sample, cohort.key, population, cohort.collected_at[place])
            person.sex = str(rng.choice(["M", "F"]))
            person.age = int(np.clip(rng.normal(48, 15), 18, 89))
            people.append(person)
    make_relatives(people, seed)
    for person in people:
        rng = stream(seed, "gaps", person.sample)
        if not person.made_from and rng.random() < 0.02:
            person.sex = "NA"
        if rng.random() < 0.03:
            person.age = None
    return people


def make_relatives(people: list[Person], seed: int) -> None:
    """Choose who is a child or a duplicate of whom; in place."""
    for cohort, population in TRIOS:
        rng = stream(seed, "trio", cohort)
        father, mother, child = rng.choice(free(people, cohort, population), 3, replace=False)
        people[father].sex, people[mother].sex = "M", "F"
        people[father].age, people[mother].age = (
            int(rng.integers(48, 65)),
            int(rng.integers(46, 60)),
        )
        people[child].age = int(rng.integers(18, 25))
        people[child].made_from = (int(father), int(mother))
        people[child].collected_at = people[mother].collected_at = people[father].collected_at
    for cohort, population in DUPLICATES:
        rng = stream(seed, "duplicate", cohort)
        first, second = rng.choice(free(people, cohort, population), 2, replace=False)
        people[second].sex, people[second].age = people[first].sex, people[first].age
        people[second].made_from = (int(first),)


def free(people: Sequence[Person], cohort: str, population: str) -> list[int]:
    """Indices of the people of one cohort and population who have no relative yet."""
    taken = in_families(people)
    return [
        i
        for i, p in enumerate(people)
        if p.cohort == cohort and p.population == population and i not in taken
    ]


def in_families(people: Sequence[Person]) -> set[int]:
    """Indices of all children, parents and duplicates."""
    made = [i for i, p in enumerate(people) if p.made_from]
    return set(made).union(*(people[i].made_from for i in made))


# --- sites ----------------------------------------------------------------------------------------


@dataclass
class Site:
    """One row of the union of all VCFs.

    ``alts`` has one entry, more at multiallelic sites. ``haplotypes`` is ``(2 * n_samples,)`` int8
    with 0 for REF and k for the k-th ALT. ``absent`` lists the cohorts without this row.
    """

    chrom: str
    pos: int
    ref: str
    alts: tuple[str, ...]
    haplotypes: Genotypes
    kind: str = "snp"  # snp, multiallelic, indel, symbolic
    id: str = "."
    info: str = "."
    absent: set[str] = field(default_factory=set)
    special: bool = False  # already carries something planted
    swapped: bool = False  # REF and ALT exchanged in the newcomer
    bad_assay: bool = False

    @property
    def key(self) -> str:
        return f"{self.chrom}:{self.pos}:{self.ref}:{','.join(self.alts)}"

    @property
    def dosage(self) -> Genotypes:
        """Number of ALT alleles of each person, ``(n_samples,)``, true genotypes."""
        return self.haplotypes[0::2] + self.haplotypes[1::2]

    @property
    def ambiguous(self) -> bool:
        return {self.ref, *self.alts} in ({"A", "T"}, {"C", "G"})


def simulate_contig(
    chrom: str, people: Sequence[Person], seed: int
) -> tuple[list[Site], list[Site]]:
    """Biallelic and triallelic SNPs of one contig, before any is chosen.

    One more European is drawn, whose first haplotype is the reference genome: REF is then neither
    always the ancestral nor always the common allele, as in real references.
    """
    length = CONTIGS[chrom]
    drawn = Counter(p.population for p in people if not p.made_from)
    samples = [msprime.SampleSet(drawn[p], population=p) for p in POPULATIONS]
    samples.append(msprime.SampleSet(1, population="EUR"))
    ancestry_seed, mutation_seed = stream(seed, "msprime", chrom).integers(1, 2**31, size=2)
    trees = msprime.sim_ancestry(
        samples,
        demography=demography(),
        sequence_length=length,
        recombination_rate=RECOMBINATION_RATE,
        random_seed=int(ancestry_seed),
    )
    trees = msprime.sim_mutations(
        trees, rate=MUTATION_RATE, model=MUTATION_MODEL, random_seed=int(mutation_seed)
    )

    # Columns of the people who were drawn; children and duplicates are filled in afterwards.
    next_of = dict(zip(POPULATIONS, np.cumsum([0, *(drawn[p] for p in POPULATIONS)]), strict=False))
    column_list, target_list = [], []
    for i, person in enumerate(people):
        if not person.made_from:
            drawn_as = next_of[person.population]
            next_of[person.population] += 1
            column_list += [2 * drawn_as, 2 * drawn_as + 1]
            target_list += [2 * i, 2 * i + 1]
    columns, targets = np.array(column_list), np.array(target_list)
    reference = trees.num_samples - 2

    biallelic, triallelic = [], []
    for variant in trees.variants():
        drawn_alleles = variant.genotypes[columns]
        counts = np.bincount(drawn_alleles, minlength=len(variant.alleles))
        ref = int(variant.genotypes[reference])
        alts = [a for a in np.argsort(-counts, kind="stable") if a != ref and counts[a] > 0]
        if not 1 <= len(alts) <= 2 or min(counts[ref], *counts[alts]) < 2:
            continue
        code = np.zeros(len(variant.alleles), dtype=np.int8)
        code[alts] = np.arange(1, len(alts) + 1)
        haplotypes = np.zeros(2 * len(people), dtype=np.int8)
        haplotypes[targets] = code[drawn_alleles]
        site = Site(
            chrom,
            int(variant.site.position) + 1,
            variant.alleles[ref],
            tuple(variant.alleles[a] for a in alts),
            haplotypes,
        )
        (biallelic if len(alts) == 1 else triallelic).append(site)
    return biallelic, triallelic


def thin(sites: list[Site], share: float, rng: np.random.Generator) -> list[Site]:
    """Keep the agreed number of sites of each frequency class, ``share`` of the study's total."""
    alt = np.array([s.haplotypes.mean() for s in sites])
    maf = np.minimum(alt, 1 - alt)
    kept: list[int] = []
    for low, high, total in FREQUENCY_CLASSES:
        members = np.flatnonzero((maf >= low) & (maf < high))
        kept += rng.choice(members, min(len(members), round(total * share)), replace=False).tolist()
    return [sites[i] for i in sorted(kept)]


def fill_relatives(sites: Sequence[Site], people: Sequence[Person], seed: int) -> None:
    """Give children a gamete of each parent, duplicates a copy; in place, for one contig.

    Crossovers fall as a Poisson process without interference. No new mutations.
    """
    chrom = sites[0].chrom
    positions = np.array([s.pos for s in sites])
    matrix = np.stack([s.haplotypes for s in sites])
    for i, person in enumerate(people):
        if len(person.made_from) == 1:
            j = person.made_from[0]
            matrix[:, 2 * i : 2 * i + 2] = matrix[:, 2 * j : 2 * j + 2]
        for strand, parent in enumerate(person.made_from if len(person.made_from) == 2 else ()):
            rng = stream(seed, "meiosis", chrom, person.sample, str(strand))
            n_crossovers = rng.poisson(CONTIGS[chrom] * RECOMBINATION_RATE)
            breaks = np.sort(rng.uniform(0, CONTIGS[chrom], n_crossovers))
            source = (rng.integers(2) + np.searchsorted(breaks, positions)) % 2
            matrix[:, 2 * i + strand] = matrix[np.arange(len(sites)), 2 * parent + source]
    for site, row in zip(sites, matrix, strict=True):
        site.haplotypes = row


def make_sites(people: Sequence[Person], seed: int) -> tuple[list[Site], list[Site]]:
    """The chosen biallelic SNPs and all triallelic SNPs, relatives included, in genome order."""
    snps: list[Site] = []
    triallelic: list[Site] = []
    total = sum(CONTIGS.values())
    for chrom, length in CONTIGS.items():
        biallelic, other = simulate_contig(chrom, people, seed)
        chosen = thin(biallelic, length / total, stream(seed, "thin", chrom))
        both = sorted(chosen + other, key=lambda s: s.pos)
        fill_relatives(both, people, seed)
        snps += chosen
        triallelic += other
    return snps, triallelic


# --- the trait ------------------------------------------------------------------------------------


@dataclass
class Effect:
    """A planted interaction: sites, the size of the effect, and the chance of being a case."""

    sites: list[Site]
    size: float

    def penetrance(self) -> NDArray[np.float64]:
        """P(case) by genotype at each site, shape ``(3,) * n``, averaged over the other effect."""
        carriers = np.indices((3,) * len(self.sites)) >= 1
        return BASE_RISK + self.size * (2.0 * (carriers.sum(axis=0) % 2) - 1.0)

    def sign(self) -> NDArray[np.int8]:
        """+1 where the number of sites carried is odd, else -1, ``(n_samples,)``."""
        parity = sum((s.dosage >= 1).astype(np.int8) for s in self.sites) % 2
        return (2 * parity - 1).astype(np.int8)


def choose_effects(snps: Sequence[Site], people: Sequence[Person]) -> tuple[Effect, Effect]:
    """The planted pair and triple: one site a contig, carriers near one half in each population.

    Even carrier shares keep main effects away, and keep the trait from following ancestry.
    """
    columns = {p: [i for i, x in enumerate(people) if x.population == p] for p in POPULATIONS}
    best: dict[str, tuple[float, Site]] = {}
    for site in snps:
        frequency = float(site.haplotypes.mean())
        margin = 200_000 < site.pos < CONTIGS[site.chrom] - 200_000
        if site.ambiguous or not margin or not 0.2 <= frequency <= 0.45:
            continue
        carriers = site.dosage >= 1
        unevenness = max(abs(float(carriers[c].mean()) - 0.5) for c in columns.values())
        if unevenness < best.get(site.chrom, (1.0, site))[0]:
            best[site.chrom] = (unevenness, site)
    chosen = [site for _, site in sorted(best.values(), key=lambda x: x[0])][:5]
    # The triple has the smaller chance of being found: it gets the most even sites.
    triple = sorted(chosen[:3], key=lambda s: s.chrom)
    pair = sorted(chosen[3:], key=lambda s: s.chrom)
    for site in chosen:
        site.special = True
    return Effect(pair, PAIR_EFFECT), Effect(triple, TRIPLE_EFFECT)


def near(a: Site, b: Site) -> bool:
    """Less than 1 Mb apart on one contig."""
    return a.chrom == b.chrom and abs(a.pos - b.pos) < 1_000_000


def clear_neighbours(snps: list[Site], planted: Iterable[Site]) -> list[Site]:
    """Drop sites in LD with a planted one, so that no pruning puts a stand-in in its place."""
    dropped: set[str] = set()
    for target in planted:
        close = [s for s in snps if near(s, target)]
        genotypes = np.stack([s.dosage for s in close]).astype(np.float64)
        genotypes -= genotypes.mean(axis=1, keepdims=True)
        genotypes /= np.linalg.norm(genotypes, axis=1, keepdims=True)
        r2 = (genotypes @ genotypes[[s is target for s in close]][0]) ** 2
        dropped |= {
            s.key for s, r in zip(close, r2, strict=True) if r > CLEAR_R2 and s is not target
        }
    return [s for s in snps if s.key not in dropped]


def assign_phenotypes(people: list[Person], pair: Effect, triple: Effect, seed: int) -> None:
    """Draw cases and controls from the true genotypes; some people stay without a phenotype.

    Each cohort's risks are shifted to the same mean, as studies recruit cases and controls in equal
    numbers: the phenotype does not follow the cohort.
    """
    # With the default seed this stream gives a draw in which no cohort, no population and no single
    # planted site is associated with the phenotype by chance.
    rng = stream(seed, "outcome")
    risk = BASE_RISK + pair.size * pair.sign() + triple.size * triple.sign()
    for cohort in COHORTS:
        members = slice(*cohort_span(cohort.key))
        risk[members] += BASE_RISK - risk[members].mean()
    case = rng.random(len(people)) < risk
    unknown = rng.random(len(people)) < 0.04
    for person, c, u in zip(people, case, unknown, strict=True):
        person.phenotype = None if u else int(c)


def chi_square(effect: Effect, people: Sequence[Person]) -> tuple[float, int]:
    """Pearson's statistic of case status against all genotype combinations, and its freedom."""
    known = np.array([p.phenotype is not None for p in people])
    case = np.array([p.phenotype or 0 for p in people])[known]
    cell = np.zeros(len(people), dtype=np.int64)
    for site in effect.sites:
        cell = 3 * cell + site.dosage
    n_cells = 3 ** len(effect.sites)
    table = np.stack([np.bincount(cell[known][case == k], minlength=n_cells) for k in (0, 1)])
    table = table[:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), table.shape[1] - 1


# --- trouble --------------------------------------------------------------------------------------


def take(
    sites: Sequence[Site], n: int, rng: np.random.Generator, low: float = 0.0, high: float = 1.0
) -> list[Site]:
    """``n`` ordinary SNPs with an ALT frequency in [low, high], marked as used, in genome order."""
    free_sites = [
        s for s in sites if not s.special and s.kind == "snp" and low <= s.haplotypes.mean() <= high
    ]
    chosen = [free_sites[i] for i in sorted(rng.choice(len(free_sites), n, replace=False))]
    for site in chosen:
        site.special = True
    return chosen


def plant_trouble(snps: list[Site], triallelic: list[Site], seed: int) -> list[Site]:
    """Add every kind of awkward row; returns all sites in genome order."""
    rng = stream(seed, "trouble")

    # Multiallelic sites are real ones of the simulation, away from the planted sites. One more is
    # written as two rows of one position, the way `bcftools norm -m-` does: another ALT counts as
    # REF.
    planted = [s for s in snps if s.special]
    triallelic = [s for s in triallelic if not any(near(s, p) for p in planted)]
    chosen = [triallelic[i] for i in sorted(rng.choice(len(triallelic), N_MULTIALLELIC + 1, False))]
    to_split = max(chosen, key=lambda s: np.bincount(s.haplotypes, minlength=3)[1:].min())
    for site in chosen:
        site.kind, site.special = "multiallelic", True
    split = [
        Site(
            to_split.chrom,
            to_split.pos,
            to_split.ref,
            (alt,),
            (to_split.haplotypes == k + 1).astype(np.int8),
            special=True,
        )
        for k, alt in enumerate(to_split.alts)
    ]
    sites = snps + [s for s in chosen if s is not to_split] + split

    # An insertion at the position of a SNP: the same position, told apart by the alleles.
    ordinary = [s for s in snps if not s.special]
    pairs = [(a, b) for a, b in pairwise(ordinary) if a.chrom == b.chrom]
    partner, following = pairs[rng.integers(len(pairs))]
    partner.special = True
    following.pos, following.ref = partner.pos, partner.ref
    following.alts, following.kind, following.special = (partner.ref + "CA",), "indel", True

    for k, site in enumerate(take(snps, N_INDELS, rng, 0.02, 0.6)):
        extra = "".join(rng.choice(list(BASES), int(rng.integers(1, 5))))
        base = site.ref
        longer = base + extra
        site.ref, site.alts = (base, (longer,)) if k % 2 else (longer, (base,))
        site.kind = "indel"
    for site in take(snps, N_SYMBOLIC, rng, 0.02, 0.3):
        span = int(rng.integers(300, 1_500))
        site.alts, site.kind = ("<DEL>",), "symbolic"
        site.info = f"SVTYPE=DEL;END={site.pos + span};SVLEN=-{span}"

    clear = [s for s in snps if not s.ambiguous]
    for site in take(clear, N_SWAPPED, rng, 0.1, 0.9):
        site.swapped = True
    for site in take([s for s in snps if s.ambiguous], N_SWAPPED_AMBIGUOUS, rng, 0.1, 0.9):
        site.swapped = True
    for site in take(snps, N_BAD_ASSAYS, rng, 0.3, 0.6):
        site.bad_assay = True

    for site in take(snps, N_ABSENT_NEWCOMER, rng):
        site.absent = {NEWCOMER}
    founders = [c.key for c in COHORTS if c.founder]
    for site in take(seen_in(snps, NEWCOMER), N_ONLY_NEWCOMER, rng):
        site.absent = set(founders)
    for founder in founders:
        for site in take(snps, N_ABSENT_FOUNDER, rng):
            site.absent = {founder}

    order = {chrom: i for i, chrom in enumerate(CONTIGS)}
    # Stable sort: rows of one position stay SNP first.
    sites.sort(key=lambda s: (order[s.chrom], s.pos))
    name_sites(sites, rng)
    return sites


def seen_in(sites: Sequence[Site], cohort: str) -> list[Site]:
    """Sites at which the people of one cohort differ."""
    first, last = cohort_span(cohort)
    parts = ((s, s.haplotypes[2 * first : 2 * last]) for s in sites)
    return [s for s, part in parts if part.min() != part.max()]


def cohort_span(cohort: str) -> tuple[int, int]:
    """First person of a cohort and the one after its last."""
    keys = [c.key for c in COHORTS]
    sizes = np.cumsum([0, *(c.size for c in COHORTS)])
    i = keys.index(cohort)
    return int(sizes[i]), int(sizes[i + 1])


def name_sites(sites: Sequence[Site], rng: np.random.Generator) -> None:
    """Identifiers of two styles, some missing: nothing may be derived from them."""
    number = 1_000
    for site in sites:
        number += int(rng.integers(1, 60))
        draw = rng.random()
        if draw < SHARE_WITHOUT_ID:
            site.id = "."
        elif draw < SHARE_WITHOUT_ID + 0.05:
            site.id = f"AX-{number + 10_000_000}"
        else:
            site.id = f"ps{number:07d}"


# --- what each cohort sees ------------------------------------------------------------------------


@dataclass
class CohortCalls:
    """The rows of one VCF. ``alleles`` is ``(n_sites, n_samples, 2)`` int8, -1 is missing."""

    cohort: Cohort
    people: list[Person]
    sites: list[Site]
    alleles: Genotypes
    poor: dict[str, float]
    half_calls: list[tuple[str, str]]


def call_cohort(
    cohort: Cohort, sites: Sequence[Site], people: Sequence[Person], seed: int
) -> CohortCalls:
    """Turn true haplotypes into what this cohort's genotyping reports."""
    first, last = cohort_span(cohort.key)
    members = list(people[first:last])
    rows = [s for s in sites if cohort.key not in s.absent]
    alleles = np.stack([s.haplotypes[2 * first : 2 * last] for s in rows])
    alleles = alleles.reshape(len(rows), len(members), 2)
    family = np.zeros(len(members), dtype=bool)
    family[[i - first for i in in_families(people) if first <= i < last]] = True

    rng = stream(seed, "assays", cohort.key)
    for i, site in enumerate(rows):
        if site.bad_assay:
            # Relatives are spared: their genotypes stay free of Mendelian errors.
            het = (alleles[i, :, 0] != alleles[i, :, 1]) & ~family
            lost = het & (rng.random(len(members)) < 0.6)
            alleles[i, lost] = rng.integers(0, 2, (int(lost.sum()), 1))
        if site.swapped and cohort.key == NEWCOMER:
            alleles[i] = 1 - alleles[i]

    # Missing: a rate for each sample times a factor for each site, clipped.
    rng = stream(seed, "missing", cohort.key)
    rates = cohort.missing * rng.gamma(4.0, 0.25, len(members))
    bad_samples = rng.choice(np.flatnonzero(~family), len(cohort.poor), replace=False)
    rates[bad_samples] = cohort.poor
    factors = rng.gamma(2.0, 0.45, len(rows))
    planted = np.array([s.special and s.kind == "snp" for s in rows])
    bad_sites = (rng.random(len(rows)) < SHARE_POOR_SITES) & ~planted
    factors[bad_sites] = rng.uniform(5, 14, int(bad_sites.sum()))
    factors[planted] = np.minimum(factors[planted], 0.5)
    chance = np.clip(np.outer(factors, rates), 0.0, 0.5)
    alleles[rng.random(chance.shape) < chance] = -1

    half_calls = []
    ordinary = np.array([not s.special for s in rows])
    for k, i in enumerate(np.sort(rng.choice(np.flatnonzero(ordinary), N_HALF_CALLS, False))):
        # Half of them among carriers where there are any, or nearly all would read ./0.
        called = alleles[i].min(axis=1) >= 0
        carriers = called & (alleles[i].max(axis=1) > 0)
        j = rng.choice(np.flatnonzero(carriers if k % 2 and carriers.any() else called))
        alleles[i, j, int(rng.integers(2))] = -1
        half_calls.append((members[j].sample, rows[i].key))

    if not cohort.phased:
        # 0/1, never 1/0; a half-call keeps its order.
        called = (alleles >= 0).all(axis=2)
        alleles[called] = np.sort(alleles[called], axis=1)
    poor = {members[j].sample: float(rates[j]) for j in bad_samples}
    return CohortCalls(cohort, members, rows, alleles, poor, half_calls)


# --- files ----------------------------------------------------------------------------------------


def header_lines(calls: CohortCalls) -> list[str]:
    """The VCF header, column names included."""
    lines = ["##fileformat=VCFv4.3", '##FILTER=<ID=PASS,Description="All filters passed">']
    lines += [f"##contig=<ID={chrom},length={length}>" for chrom, length in CONTIGS.items()]
    lines += [
        '##ALT=<ID=DEL,Description="Deletion">',
        '##INFO=<ID=END,Number=1,Type=Integer,Description="End position of the variant">',
        '##INFO=<ID=SVTYPE,Number=1,Type=String,Description="Type of structural variant">',
        '##INFO=<ID=SVLEN,Number=A,Type=Integer,Description="Length of structural variant">',
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
    ]
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines.append("\t".join(columns + [p.sample for p in calls.people]))
    return lines


def write_vcf(calls: CohortCalls, path: Path) -> None:
    """Write, compress and index one cohort.

    All alleles are single digits, so each genotype is four bytes: tab, allele, separator, allele.
    """
    text = bytearray("\n".join(header_lines(calls)).encode() + b"\n")
    cells = np.empty((len(calls.people), 4), dtype=np.uint8)
    cells[:, 0] = ord("\t")
    cells[:, 2] = ord("|" if calls.cohort.phased else "/")
    for site, alleles in zip(calls.sites, calls.alleles, strict=True):
        swapped = site.swapped and calls.cohort.key == NEWCOMER
        ref, alts = (site.alts[0], (site.ref,)) if swapped else (site.ref, site.alts)
        fixed = (site.chrom, str(site.pos), site.id, ref, ",".join(alts), ".", "PASS", site.info)
        cells[:, [1, 3]] = np.where(alleles < 0, ord("."), ord("0") + alleles)
        text += "\t".join((*fixed, "GT")).encode() + cells.tobytes() + b"\n"
    with path.open("wb") as handle:
        subprocess.run(
            ["bgzip", "--stdout", "--compress-level", "9", "--threads", "4"],
            input=text,
            stdout=handle,
            check=True,
        )
    subprocess.run(["tabix", "--force", "--preset", "vcf", str(path)], check=True)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A TSV with ``NA`` for None."""
    lines = ["\t".join(header)]
    lines += ["\t".join("NA" if v is None else str(v) for v in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def write_sheets(people: Sequence[Person], sheets: Path) -> None:
    """The sample sheet, in the order of the VCF columns, and the cohort sheet."""
    header = ["sample", "cohort", "population", "group", "sex", "phenotype", "site", "age"]
    header += ["latitude", "longitude"]
    rows = (
        (
            p.sample,
            p.cohort,
            p.population,
            GROUPS[p.population],
            p.sex,
            p.phenotype,
            p.collected_at,
            p.age,
            *PLACES[p.collected_at],
        )
        for p in people
    )
    write_table(sheets / "samples.tsv", header, rows)
    # Paths as the workflow sees them from the repository root, wherever this run writes to.
    cohorts = (
        (c.key, f"resources/example/{c.key}.vcf.gz", "yes" if c.founder else "no") for c in COHORTS
    )
    write_table(sheets / "cohorts.tsv", ["cohort", "genotypes", "founder"], cohorts)


# --- the truth ------------------------------------------------------------------------------------


def describe_cohort(calls: CohortCalls) -> dict[str, object]:
    """Counts of one VCF, and its awkward samples and calls."""
    kinds = Counter(s.kind for s in calls.sites)
    snp = np.array([s.kind == "snp" for s in calls.sites])
    missing = (calls.alleles[snp] < 0).any(axis=2)
    known = [p.phenotype for p in calls.people if p.phenotype is not None]
    return {
        "founder": calls.cohort.founder,
        "phased": calls.cohort.phased,
        "n_samples": len(calls.people),
        "populations": dict(Counter(p.population for p in calls.people)),
        "cases": sum(known),
        "controls": len(known) - sum(known),
        "records": len(calls.sites),
        "biallelic_snps": kinds["snp"],
        "multiallelic": kinds["multiallelic"],
        "indels": kinds["indel"],
        "symbolic": kinds["symbolic"],
        "missing_rate": round(float(missing.mean()), 6),
        "samples_over_5_percent_missing": [
            p.sample for p, m in zip(calls.people, missing.mean(axis=0), strict=True) if m > 0.05
        ],
        "sites_over_5_percent_missing": int((missing.mean(axis=1) > 0.05).sum()),
        "poor_samples": {k: round(v, 4) for k, v in calls.poor.items()},
        "half_calls": [{"sample": s, "site": k} for s, k in calls.half_calls],
    }


def founder_frequencies(all_calls: Sequence[CohortCalls]) -> dict[str, int]:
    """How many SNPs that both founders have pass common MAF thresholds among called genotypes."""
    n_alt: Counter[str] = Counter()
    n_called: Counter[str] = Counter()
    n_cohorts: Counter[str] = Counter()
    founders = [c for c in all_calls if c.cohort.founder]
    for calls in founders:
        called = (calls.alleles >= 0).all(axis=2)
        alt = np.where(called, calls.alleles.sum(axis=2), 0).sum(axis=1)
        for site, a, n in zip(calls.sites, alt, called.sum(axis=1), strict=True):
            if site.kind == "snp":
                n_alt[site.key] += int(a)
                n_called[site.key] += int(n)
                n_cohorts[site.key] += 1
    shared = [k for k in n_cohorts if n_cohorts[k] == len(founders)]
    frequency = np.array([n_alt[k] / (2 * n_called[k]) for k in shared])
    maf = np.minimum(frequency, 1 - frequency)
    return {
        "biallelic_snps_in_any_founder": len(n_cohorts),
        "biallelic_snps_in_every_founder": len(shared),
        "of_these_maf_over_0": int((maf > 0).sum()),
        "of_these_maf_at_least_1_percent": int((maf >= 0.01).sum()),
        "of_these_maf_at_least_5_percent": int((maf >= 0.05).sum()),
    }


def describe_effect(effect: Effect, people: Sequence[Person]) -> dict[str, object]:
    """One planted interaction, and how strongly the study shows it."""
    statistic, freedom = chi_square(effect, people)
    return {
        "sites": [s.key for s in effect.sites],
        "ids": [s.id for s in effect.sites],
        "alt_frequency": [round(float(s.haplotypes.mean()), 4) for s in effect.sites],
        "rule": "odd number of sites with at least one ALT allele: more cases",
        "effect": effect.size,
        "penetrance_by_alt_count": effect.penetrance().round(4).tolist(),
        "chi_square": round(statistic, 2),
        "degrees_of_freedom": freedom,
    }


def describe_study(
    people: Sequence[Person],
    sites: Sequence[Site],
    all_calls: Sequence[CohortCalls],
    pair: Effect,
    triple: Effect,
    seed: int,
) -> dict[str, object]:
    """Everything that was planted, with the counts a test can hold a pipeline to."""
    founders = {c.key for c in COHORTS if c.founder}
    places: dict[tuple[str, int], list[str]] = {}
    for site in sites:
        places.setdefault((site.chrom, site.pos), []).append(site.key)

    def keys(wanted: Iterable[Site]) -> list[str]:
        return [s.key for s in wanted]

    return {
        "seed": seed,
        "versions": {
            "msprime": msprime.__version__,
            "tskit": tskit.__version__,
            "numpy": np.__version__,
        },
        "contigs": CONTIGS,
        "recombination_rate": RECOMBINATION_RATE,
        "mutation_rate": MUTATION_RATE,
        "newcomer": NEWCOMER,
        "cohorts": {c.cohort.key: describe_cohort(c) for c in all_calls},
        "founders": founder_frequencies(all_calls),
        "relatives": [
            {
                "kind": "trio",
                "cohort": p.cohort,
                "father": people[p.made_from[0]].sample,
                "mother": people[p.made_from[1]].sample,
                "child": p.sample,
            }
            for p in people
            if len(p.made_from) == 2
        ],
        "duplicates": [
            {"cohort": p.cohort, "samples": [people[p.made_from[0]].sample, p.sample]}
            for p in people
            if len(p.made_from) == 1
        ],
        "epistasis": {
            "base_risk": BASE_RISK,
            "model": "P(case) = base_risk + effect of the pair (+/-) + effect of the triple (+/-), "
            "shifted to a mean of base_risk in each cohort",
            "neighbours": f"no other site with r2 > {CLEAR_R2} within 1 Mb of a planted site",
            "pair": describe_effect(pair, people),
            "triple": describe_effect(triple, people),
        },
        "swapped_in_newcomer": {
            "unambiguous": keys(s for s in sites if s.swapped and not s.ambiguous),
            "ambiguous": keys(s for s in sites if s.swapped and s.ambiguous),
        },
        "strand_ambiguous_snps": sum(s.kind == "snp" and s.ambiguous for s in sites),
        "duplicated_positions": [k for k in places.values() if len(k) > 1],
        "multiallelic": keys(s for s in sites if s.kind == "multiallelic"),
        "indels": keys(s for s in sites if s.kind == "indel"),
        "symbolic": keys(s for s in sites if s.kind == "symbolic"),
        "heterozygotes_lost": keys(s for s in sites if s.bad_assay),
        "absent_from": {c.key: keys(s for s in sites if s.absent == {c.key}) for c in COHORTS},
        "only_in_newcomer": keys(s for s in sites if s.absent == founders),
    }


def make_example(folder: Path, seed: int = SEED) -> None:
    """Write the example: VCFs and ``truth.json`` into ``folder``, sheets into ``../../config``."""
    people = make_people(seed)
    snps, triallelic = make_sites(people, seed)
    pair, triple = choose_effects(snps, people)
    snps = clear_neighbours(snps, pair.sites + triple.sites)
    assign_phenotypes(people, pair, triple, seed)
    sites = plant_trouble(snps, triallelic, seed)
    all_calls = [call_cohort(c, sites, people, seed) for c in COHORTS]

    folder.mkdir(parents=True, exist_ok=True)
    for calls in all_calls:
        write_vcf(calls, folder / f"{calls.cohort.key}.vcf.gz")
    sheets = folder.parents[1] / "config"
    sheets.mkdir(exist_ok=True)
    write_sheets(people, sheets)
    truth = describe_study(people, sites, all_calls, pair, triple, seed)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Make the embedded example study.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).resolve().parent, help="default: beside me"
    )
    arguments = parser.parse_args()
    make_example(arguments.out, arguments.seed)


if __name__ == "__main__":
    main()
