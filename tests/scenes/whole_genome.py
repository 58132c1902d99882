"""Families over whole genomes whose pedigree is known, of one population, of two that mixed, and
with inbreeding.

Genes are dropped along the human autosomes, one crossover a Morgan and meiosis. Haplotypes of
founders are mosaics of two pools of haplotypes, one of each of two populations that separated
`APART` generations ago. So neighbouring sites are in linkage disequilibrium, and no two founders
share more than a few centimorgans.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import msprime
import numpy as np
import pandas as pd

import popdesic
from popdesic.cohort.encode import planes_in_memory
from popdesic.engine.select import cpu_backend
from popdesic.ibd.cohorts import segment_pairs, segment_sums, segments_table
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.degrees import DegreeScale
from popdesic.ibd.segments import SearchGenome, segments_between
from popdesic.ibd.verdict import KinEvidence, SearchedGenome
from popdesic.ibd.windows import genetic_sites
from popdesic.io.genotypes import pack_bed
from popdesic.relatives.independence import measure_variances
from popdesic.relatives.kinship import (
    close_pairs,
    king_robust,
    kinship_counts,
    pairs_table,
    panel_parent_limit,
    unrelated_set,
)
from popdesic.relatives.options import ERROR_RATE, MOST_SITES
from popdesic.relatives.pc_relate import ancestry_of, count_pairs, pc_relate
from popdesic.relatives.resolution import SECOND, resolve
from scenes.ibd_pedigrees import Family, Parents, drop_genes
from scenes.ibd_people import read_with_errors
from scenes.ibd_scores import human_sites

#: Populations of the scenes: one; everyone of two in part; one, with inbred parents.
WORLDS = ("panmictic", "admixed", "inbred")
#: Generations since the two populations separated (F_ST about 0.1), and since they mixed.
APART, MIXED = 2_000, 8
#: Length of the pools' haplotypes, which are repeated along the genome; their number of each pool.
POOL_CM, POOL = 40, 200
#: Names of unrelated pairs, and of further relatives that have none.
UNRELATED, FARTHER = "unrelated", "more distant"


@dataclass(frozen=True)
class Relatives:
    """A family whose members have names.

    Attributes
    ----------
    family : Family
    who : dict
        Number of each member that is sampled, by name.
    twins : dict
        Members that are sampled twice, by the name of the second sample.
    """

    family: Family
    who: dict[str, int]
    twins: dict[str, str]


#: Class of a pair of members, by their names; all others: see `class_of`.
CLASSES = {
    "identical": ("P1 T1",),
    "parent and child": (
        *("G1 P1", "G2 P1", "G1 P2", "G2 P2", "G1 H", "G3 H", "P1 C1", "P1 C2", "P2 D1", "H E1"),
        *("S1 C1", "S1 C2", "S2 D1", "S3 E1", "C1 K1", "D1 M1", "S4 K1", "S5 M1"),
    ),
    "full siblings": ("P1 P2", "C1 C2"),
    "half siblings": ("P1 H", "P2 H"),
    "uncle or aunt": ("P2 C1", "P2 C2", "P1 D1", "C2 K1"),
    "grandparent": (
        *("G1 C1", "G2 C1", "G1 C2", "G2 C2", "G1 D1", "G2 D1", "G1 E1", "G3 E1"),
        *("P1 K1", "S1 K1", "P2 M1", "S2 M1"),
    ),
    "first cousins": ("C1 D1", "C2 D1"),
    "half uncle or aunt": ("H C1", "H C2", "H D1", "P1 E1", "P2 E1"),
    "great-grandparent": ("G1 K1", "G2 K1", "G1 M1", "G2 M1"),
    "great-uncle or aunt": ("P2 K1", "P1 M1"),
    "half cousins": ("C1 E1", "C2 E1", "D1 E1"),
    "cousins once removed": ("C1 M1", "C2 M1", "D1 K1"),
    "second cousins": ("K1 M1",),
}
_CLASS = {frozenset(pair.split()): name for name, pairs in CLASSES.items() for pair in pairs}
#: Verdict that is right for each class.
RIGHT = {
    "identical": "duplicate or identical twin",
    "parent and child": "parent and child",
    "full siblings": "full siblings",
    **dict.fromkeys(("half siblings", "uncle or aunt", "grandparent"), "second degree"),
    **dict.fromkeys(
        ("first cousins", "half uncle or aunt", "great-grandparent", "great-uncle or aunt"),
        "third degree",
    ),
    **dict.fromkeys(("half cousins", "cousins once removed", "second cousins"), "distant"),
}


def grandfamily(inbreeding: str = "") -> Relatives:
    """A couple, its children, grandchildren and great-grandchildren, and a half sibling's line.

    Parameters
    ----------
    inbreeding : str
        ``cousins``: the couple are first cousins; ``parents``: the parents of either are.
    """
    parents: Parents = []

    def add(one: int | None = None, other: int | None = None) -> int:
        parents.append(None if one is None else (one, other))
        return len(parents) - 1

    def cousins() -> tuple[int, int]:
        """Two first cousins."""
        grandparents = add(), add()
        one, other = add(*grandparents), add(*grandparents)
        return add(one, add()), add(other, add())

    if inbreeding == "cousins":
        g1, g2 = cousins()
    elif inbreeding == "parents":
        g1, g2 = add(*cousins()), add(*cousins())
    else:
        g1, g2 = add(), add()
    who = {"G1": g1, "G2": g2, "P1": add(g1, g2), "P2": add(g1, g2)}
    lines = (
        *(("H", "G1", "G3"), ("C1", "P1", "S1"), ("C2", "P1", "S1"), ("D1", "P2", "S2")),
        *(("E1", "H", "S3"), ("K1", "C1", "S4"), ("M1", "D1", "S5")),
    )
    for child, parent, spouse in lines:
        if spouse not in who:
            who[spouse] = add()
        who[child] = add(who[parent], who[spouse])
    # Founders' haplotypes are counted in the order of the pedigree: parents come first.
    return Relatives(Family(parents, tuple(who.values())), who, {"T1": "P1"})


def siblings_of_siblings() -> Relatives:
    """Siblings whose parents are siblings, with these parents."""
    parents: Parents = [None, None, (0, 1), (0, 1), (2, 3), (2, 3)]
    who = {"G1": 2, "G2": 3, "P1": 4, "P2": 5}
    return Relatives(Family(parents, (2, 3, 4, 5)), who, {"T1": "P1"})


def class_of(one: str, other: str, kinship: float) -> str:
    """Class of two members of a family (CLASSES, FARTHER or UNRELATED)."""
    if kinship == 0:
        return UNRELATED
    return _CLASS.get(frozenset((one, other)), FARTHER)


@dataclass(frozen=True)
class Scene:
    """Genotypes of families.

    Attributes
    ----------
    genotypes : int8 array, (n_samples, n_sites)
        -1 where missing.
    chrom, cm : arrays, (n_sites,)
        Contig and genetic position.
    ancestry : float64 array, (n_samples,)
        Share of the second population by pedigree.
    names : list of str
        Family, kind of family and member of each sample: ``3.cousins.P1``.
    kinship : dict
        Kinship by pedigree of pairs of samples (i < j) of one family, if it is above 0.
    kind : dict
        Class of the same pairs (`class_of`).
    """

    genotypes: np.ndarray
    chrom: np.ndarray
    cm: np.ndarray
    ancestry: np.ndarray
    names: list[str]
    kinship: dict[tuple[int, int], float]
    kind: dict[tuple[int, int], str]

    @property
    def sites(self) -> pd.DataFrame:
        """`chrom` and `pos`, one centimorgan a megabase."""
        pos = np.round(1e6 * self.cm).astype(np.int64) + 1
        return pd.DataFrame({"chrom": (self.chrom + 1).astype(str), "pos": pos})


@functools.lru_cache(maxsize=1)
def pools(seed: int, per_cm: int, length: int = POOL_CM) -> np.ndarray:
    """Haplotypes of two populations at the same common sites: int8 (2, POOL, n_sites)."""
    history = msprime.Demography()
    for name in ("A", "B", "before"):
        history.add_population(name=name, initial_size=10_000)
    history.add_population_split(time=APART, derived=["A", "B"], ancestral="before")
    trees = msprime.sim_ancestry(
        {"A": POOL // 2, "B": POOL // 2}, demography=history, random_seed=seed,
        sequence_length=length * 1e6, recombination_rate=1e-8,
    )  # fmt: skip
    mutated = msprime.sim_mutations(
        trees, rate=5e-9, random_seed=seed, model=msprime.BinaryMutationModel()
    )
    alleles = (mutated.genotype_matrix() > 0).astype(np.int8)
    frequency = alleles.mean(axis=1)
    common = np.flatnonzero(np.minimum(frequency, 1 - frequency) >= 0.05)
    chosen = np.random.default_rng(seed).choice(common, min(length * per_cm, len(common)), False)
    return np.ascontiguousarray(alleles[np.sort(chosen)].T).reshape(2, POOL, -1)


def _founders(
    pool: np.ndarray, n: int, chrom: np.ndarray, cm: np.ndarray, rng: np.random.Generator, mix: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Haplotypes int8 (n, n_sites), and the share of the second population of each."""
    out, shares = np.empty((n, len(cm)), np.int8), np.zeros(n)
    site = np.arange(len(cm)) % pool.shape[2]
    step = np.maximum(np.diff(cm, prepend=cm[0]), 0)
    new = np.diff(chrom, prepend=-1) != 0
    for k, row in enumerate(out):
        if k % 2 == 0:  # both haplotypes of a person have one community's share
            share = (rng.beta(4, 2) if rng.random() < 0.5 else rng.beta(2, 6)) if mix else 0.0
        piece = np.cumsum(new | (rng.random(len(cm)) < step))
        tract = np.cumsum(new | (rng.random(len(cm)) < MIXED / 100 * step))
        home = (rng.random(tract[-1] + 1) < share).astype(np.int8)[tract]
        row[:] = pool[home, rng.integers(0, pool.shape[1], piece[-1] + 1)[piece], site]
        shares[k] = home.mean()
    return out, shares


def draw_scene(
    world: str,
    seed: int,
    *,
    families: int = 12,
    per_cm: int = 45,
    errors: float = 0.001,
    missing: float = 0.01,
    pool_cm: int = POOL_CM,
) -> Scene:
    """Families of a world (WORLDS); all are sampled but the ancestors of inbred couples.

    Of inbred families every third has a couple of first cousins, every third a couple whose parents
    are, and every third siblings whose parents are siblings.
    """
    rng = np.random.default_rng([seed, WORLDS.index(world)])
    chrom, cm = human_sites(per_cm)
    pool = pools(seed, per_cm, pool_cm)
    kinds = ("",) if world != "inbred" else ("cousins", "parents", "siblings")
    parts, ancestry, names = [], [], []
    kinship: dict[tuple[int, int], float] = {}
    kind: dict[tuple[int, int], str] = {}
    for number in range(families):
        what = kinds[number % len(kinds)]
        drawn = siblings_of_siblings() if what == "siblings" else grandfamily(what)
        family, first = drawn.family, len(names)
        n_founders = sum(both is None for both in family.parents)
        haplotypes, shares = _founders(pool, 2 * n_founders, chrom, cm, rng, world == "admixed")
        origin = drop_genes(family, chrom, cm, rng)
        members = {**drawn.who, **{twin: drawn.who[name] for twin, name in drawn.twins.items()}}
        everyone = np.array(list(members.values()))
        own = haplotypes[origin[everyone], np.arange(len(cm))].sum(axis=1, dtype=np.int8)
        parts.append(read_with_errors(own, rng, errors, missing))
        ancestry.append(shares[origin[everyone]].mean(axis=(1, 2)))
        names += [f"{number}.{what or 'plain'}.{name}" for name in members]
        for (i, a), (j, b) in itertools.combinations(enumerate(members), 2):
            one, other = members[a], members[b]
            phi = family.kinship(one, other)
            a, b = (drawn.twins.get(name, name) for name in (a, b))
            of_pair = "identical" if one == other else class_of(a, b, phi)
            if phi > 0:
                kinship[first + i, first + j] = phi
                kind[first + i, first + j] = of_pair
    return Scene(
        *(np.concatenate(parts), chrom, cm, np.concatenate(ancestry), names, kinship, kind)
    )


def evidence_of(
    scene: Scene, components: int, threads: int = 1, listed: float = SECOND
) -> tuple[KinEvidence, SearchedGenome, np.ndarray, np.ndarray]:
    """What a study would know of a scene, by the package's functions.

    Parameters
    ----------
    components : int
        Axes of ancestry of PC-Relate.
    listed : float
        Kinship from which PC-Relate and KING-robust kinship list pairs.

    Returns
    -------
    evidence, genome
        Of `ibd.verdict.judge_pairs`.
    king, k0 : float64 arrays, (n_samples, n_samples)
        KING-robust kinship, and opposite homozygotes as a share of those of strangers.
    """
    genotypes, names, n = scene.genotypes, np.array(scene.names, object), len(scene.genotypes)
    backend = cpu_backend(threads)
    planes = planes_in_memory(pack_bed(np.ascontiguousarray(genotypes.T)), n)
    af = np.ma.masked_less(genotypes, 0).mean(axis=0).filled(0) / 2
    who = dict.fromkeys(scene.names, "scene")
    # Segments.
    limits, sites = SegmentLimits(), genetic_sites(scene.sites, None)
    genome = SearchGenome.of(sites, af, limits)
    segments = segments_between(planes, None, genome, limits, backend)
    scale = DegreeScale(sites.lengths(), limits.min_cm)
    sums = segment_sums(segments_table(segments, scene.names, scene.names, sites))
    shared = segment_pairs([sums], who, scale)
    # KING-robust kinship.
    counts = kinship_counts(planes, None, backend)
    king = king_robust(counts)
    rows, columns, phi = close_pairs(counts, min_kinship=listed, min_called=1, upper=True)
    resolution = resolve(
        *measure_variances([planes], scene.chrom.astype(str), backend),
        panel="scene", sites=len(af), founders=n, max_mismatch=0.02,
    )  # fmt: skip
    people = [(name, "scene") for name in scene.names]
    chosen = {name: values[rows, columns] for name, values in counts.items()}
    by_king = pairs_table(
        [people[i] for i in rows], [people[j] for j in columns], chosen, phi, resolution=resolution
    )
    # PC-Relate on every so many sites, of a largest unrelated set.
    edges = [tuple(pair) for pair in np.column_stack([rows, columns]).tolist()]
    training = np.isin(np.arange(n), unrelated_set(n, edges))
    used = np.arange(MOST_SITES) * len(af) // MOST_SITES if len(af) > MOST_SITES else slice(None)
    kept = np.ascontiguousarray(genotypes[:, used])
    scores = popdesic.pca(kept[:, ::5], n_components=max(components, 1), founders=training).scores
    ancestry = ancestry_of(scores, training, components)

    def read(first: int, last: int, people=slice(None)) -> np.ndarray:
        return kept[people, first:last].T

    related = pc_relate(read, kept.shape[1], ancestry, backend)
    i, j, value = related.close(listed)
    count = count_pairs(read, ancestry, related.coefficients, i, j, threads)
    by_ancestry = pd.DataFrame(
        {
            **{"sample_a": names[i], "sample_b": names[j], "cohort_a": "scene"},
            **{"cohort_b": "scene", "sites": count.sites, "kinship": value, "k0": count.k0},
        }
    )
    opposite = float(np.mean(2 * (af * (1 - af)) ** 2))
    evidence = KinEvidence(
        segments=shared,
        pc_relate=by_ancestry,
        king=by_king,
        inbreeding=dict(zip(scene.names, (2 * related.own - 1).tolist(), strict=True)),
        resolution=resolution,
        listed=listed,
        parents=panel_parent_limit(af, ERROR_RATE) / opposite,
        opposite=opposite,
    )
    k0 = counts["ibs0"] / np.maximum(counts["called"], 1) / opposite
    return evidence, SearchedGenome(DegreeScale(sites.lengths(), 0.0), scale), king, k0
