"""Samples that define axes, their relatives and strangers, over demographies of known ancestry.

Haplotypes are drawn from the frequencies of populations, which drifted apart, and passed on by gene
dropping on 22 chromosomes of 1.6 Morgan. Populations have uneven sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from support.operands import planes_of

from popdesic.components.define_axes import define_axes
from popdesic.components.relationship import alt_frequency
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.io.genotypes import BED_MAGIC, pack_bed
from popdesic.relatives.kinship import king_robust, kinship_counts, unrelated_set
from popdesic.relatives.resolution import SECOND

CHROMOSOMES, MORGANS = 22, 1.6
#: Number of populations and the drift of each, from a common one or from that before it.
WORLDS = {"admixed": (2, 0.12), "island": (4, 0.03), "panmictic": (1, 0.02), "chain": (6, 0.006)}
DEMOGRAPHIES = tuple(WORLDS)
#: Kinds of relatives of the samples that define the axes.
KINDS = ("child", "child of one", "full sibling", "half sibling", "grandchild", "duplicate")
ERRORS = 0.002


@dataclass
class Family:
    """Samples of a scene as they are drawn.

    Attributes
    ----------
    genotypes : list of int8 array, (n_sites,)
    ancestry : list of float64 array, (n_populations,)
        Expected by pedigree: shares of the genome from each population.
    axis : list of bool
        Whether the sample defines the axes.
    kind : list of str
        One of KINDS, ``axis``, ``stranger`` or a name that a scene gives.
    weights : list of dict
        Of each sample: twice the pedigree's kinship with those that define the axes.
    """

    genotypes: list = field(default_factory=list)
    ancestry: list = field(default_factory=list)
    axis: list = field(default_factory=list)
    kind: list = field(default_factory=list)
    weights: list = field(default_factory=list)


@dataclass(frozen=True)
class Scene:
    """Genotypes int8 (n, n_sites), sites (`chrom`, `pos`) and the arrays of `Family`."""

    genotypes: np.ndarray
    sites: pd.DataFrame
    ancestry: np.ndarray
    axis: np.ndarray
    kind: np.ndarray
    weights: np.ndarray

    def places(self, scores: np.ndarray) -> np.ndarray:
        """Where each sample belongs on axes, float64 (n, k), by `scores` of those that define them.

        A duplicate belongs to its double, a child to the mean of its parents. In general: the place
        of its ancestry, by regression of the scores on ancestry, and of what its relatives lie
        beyond the places of theirs, the shares that it has from them (twice the kinship).
        """
        design = self.ancestry
        fitted = np.linalg.lstsq(design[self.axis], scores[self.axis], rcond=None)[0]
        expected = design @ fitted
        beyond = np.where(self.axis[:, None], scores - expected, 0.0)
        return expected + self.weights @ beyond


class Drawing:
    """Draws samples and their children."""

    def __init__(self, demography: str, seed: int, sites: int) -> None:
        self.rng = rng = np.random.default_rng([seed, DEMOGRAPHIES.index(demography)])
        self.demography, self.n_sites = demography, sites
        self.chromosome = CHROMOSOMES * np.arange(sites) // sites
        step = MORGANS * CHROMOSOMES / sites
        self.step = step
        self.odd = np.full(sites, (1 - np.exp(-2 * step)) / 2)
        self.odd[np.diff(self.chromosome, prepend=-1) != 0] = 0.5
        common = rng.beta(0.8, 0.8, sites) * 0.9 + 0.05
        count, drift = WORLDS[demography]
        self.af = np.empty((count, sites))
        for k in range(count):
            origin = self.af[k - 1] if demography == "chain" and k else common
            scale = (1 - drift) / drift
            self.af[k] = np.clip(rng.beta(scale * origin, scale * (1 - origin)), 0.003, 0.997)
        self.family = Family()
        self.haplotypes: list[np.ndarray] = []
        self.shares = rng.dirichlet(np.full(count, 3.0))

    def founder(self, home: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Haplotypes int8 (2, n_sites) and ancestry of an unrelated sample."""
        rng, count = self.rng, len(self.af)
        if self.demography == "admixed":
            # Two communities, which differ in their shares of two ancestries.
            share = rng.beta(4, 2) if rng.random() < self.shares[0] else rng.beta(2, 6)
            tracts = [self.tracts(share) for _ in range(2)]
            both = rng.random((2, self.n_sites)) < self.af[tracts, np.arange(self.n_sites)]
            first = float(np.mean(np.array(tracts) == 0))
            return both.astype(np.int8), np.array([first, 1 - first])
        home = rng.choice(count, p=self.shares) if home is None else home
        return (rng.random((2, self.n_sites)) < self.af[home]).astype(np.int8), np.eye(count)[home]

    def tracts(self, share: float) -> np.ndarray:
        """Ancestry along a haplotype, eight generations after admixture."""
        new = self.rng.random(self.n_sites) < 8 * self.step
        new |= np.diff(self.chromosome, prepend=-1) != 0
        drawn = (self.rng.random(int(new.sum())) >= share).astype(int)
        return drawn[np.cumsum(new) - 1]

    def gamete(self, parent: np.ndarray) -> np.ndarray:
        which = np.cumsum(self.rng.random(self.n_sites) < self.odd) % 2
        return parent[which, np.arange(self.n_sites)]

    def child(self, one: tuple, other: tuple) -> tuple[np.ndarray, np.ndarray]:
        return np.stack([self.gamete(one[0]), self.gamete(other[0])]), (one[1] + other[1]) / 2

    def keep(self, person: tuple, kind: str, weights: dict[int, float] | None = None) -> int:
        family, here = self.family, len(self.family.kind)
        family.genotypes.append(person[0].sum(axis=0, dtype=np.int8))
        family.ancestry.append(person[1])
        family.axis.append(kind == "axis")
        family.kind.append(kind)
        family.weights.append(weights or {})
        return here

    def scene(self) -> Scene:
        family = self.family
        n = len(family.kind)
        weights = np.zeros((n, n))
        for i, own in enumerate(family.weights):
            for j, value in own.items():
                weights[i, j] = value
        genotypes = np.stack(family.genotypes)
        wrong = self.rng.random(genotypes.shape) < ERRORS
        shift = np.where(genotypes == 1, self.rng.choice([-1, 1], genotypes.shape), 1 - genotypes)
        genotypes = np.where(wrong, genotypes + shift, genotypes).astype(np.int8)
        step = 1_000_000 * 160 * CHROMOSOMES / self.n_sites
        sites = pd.DataFrame(
            {
                "chrom": (self.chromosome + 1).astype(str),
                "pos": (1 + step * np.arange(self.n_sites)).astype(np.int64),
            }
        )
        return Scene(
            genotypes,
            sites,
            np.stack(family.ancestry),
            np.array(family.axis),
            np.array(family.kind),
            weights,
        )


def draw_relatives(
    demography: str,
    seed: int,
    *,
    axis: int = 170,
    each: int = 8,
    strangers: int = 60,
    sites: int = 12_000,
) -> Scene:
    """Samples that define axes, `each` relatives of every kind, and strangers.

    Parameters
    ----------
    demography : str
        One of DEMOGRAPHIES.
    """
    draw = Drawing(demography, seed, sites)
    people = [draw.founder() for _ in range(axis)]
    for person in people:
        draw.keep(person, "axis")
    lots = iter(draw.rng.permutation(axis).tolist() * 3)

    def home(person: tuple) -> int | None:
        """Where partners come from; `Drawing.founder` ignores it where everyone is admixed."""
        return int(np.argmax(person[1]))

    for k in range(each):
        a = next(lots)
        # A partner of the same population, in one of three families of any.
        others = [b for b in range(axis) if b != a]
        near = [b for b in others if home(people[b]) == home(people[a])]
        b = int(draw.rng.choice(near if k % 3 else others))
        for _ in range(2):
            draw.keep(draw.child(people[a], people[b]), "child", {a: 0.5, b: 0.5})
        a = next(lots)
        mother = draw.founder(home(people[a]))
        draw.keep(draw.child(people[a], mother), "child of one", {a: 0.5})
        a = next(lots)
        mother, wife = draw.founder(home(people[a])), draw.founder(home(people[a]))
        draw.keep(draw.child(draw.child(people[a], mother), wife), "grandchild", {a: 0.25})
        a = next(lots)
        draw.keep(people[a], "duplicate", {a: 1.0})
    # Sibships of which one is on the axes: their parents are nowhere.
    for _ in range(each):
        father = draw.founder()
        mother, other = draw.founder(home(father)), draw.founder(home(father))
        one = draw.keep(draw.child(father, mother), "axis")
        draw.keep(draw.child(father, mother), "full sibling", {one: 0.5})
        draw.keep(draw.child(father, other), "half sibling", {one: 0.25})
    for _ in range(strangers):
        draw.keep(draw.founder(), "stranger")
    return draw.scene()


def draw_inbred(
    seed: int, *, n: int = 120, families: int = 2, sites: int = 8_000
) -> tuple[Scene, list[list[int]]]:
    """Strangers of one population, and families of three siblings whose parents are siblings.

    In every other family their parents' parents are siblings as well. Also the families' numbers.
    """
    draw = Drawing("panmictic", seed, sites)
    for _ in range(n):
        draw.keep(draw.founder(), "axis")
    found = []
    for family in range(families):
        father, mother = draw.founder(), draw.founder()
        for _ in range(1 + (seed + family) % 2):
            father, mother = draw.child(father, mother), draw.child(father, mother)
        found.append([draw.keep(draw.child(father, mother), "axis") for _ in range(3)])
    return draw.scene(), found


def draw_outliers(seed: int, *, n: int = 120, few: int = 4, sites: int = 8_000) -> Scene:
    """Strangers of one population and a few of each of two others."""
    draw = Drawing("island", seed, sites)
    for home, size in ((0, n), (1, few), (2, few)):
        for _ in range(size):
            draw.keep(draw.founder(home), "axis")
    return draw.scene()


def define_axes_of(scene: Scene, folder: Path) -> dict:
    """`define_axes` of all samples whom KING-robust tells no relatives, through files."""
    genotypes, n = scene.genotypes, len(scene.genotypes)
    names = [f"s{i}" for i in range(n)]
    prefix = folder / "genotypes"
    packed = pack_bed(np.ascontiguousarray(genotypes.T))
    prefix.with_suffix(".bed").write_bytes(BED_MAGIC + packed.tobytes())
    prefix.with_suffix(".fam").write_text("".join(f"0 {name} 0 0 0 -9\n" for name in names))
    places = list(zip(scene.sites.chrom, scene.sites.pos, strict=True))
    lines = [f"{c}\ts{k}\t0\t{pos}\tG\tA\n" for k, (c, pos) in enumerate(places)]
    prefix.with_suffix(".bim").write_text("".join(lines))
    af = alt_frequency(genotypes.T).tolist()
    rows = [f"{c}\t{pos}\ts{k}\tA\tG\t{af[k]:.17g}\t0\t{n}\n" for k, (c, pos) in enumerate(places)]
    header = f"# panel x, {len(af)} sites\nchrom\tpos\tid\tref\talt\taf\tmode\tn_called\n"
    (folder / "sites.tsv").write_text(header + "".join(rows))
    king = king_robust(kinship_counts(planes_of(genotypes), None, CpuBackend(1)))
    close = np.argwhere(np.triu(king >= SECOND, 1)).tolist()
    kept = set(unrelated_set(n, [tuple(pair) for pair in close]))
    listed = [f"{name}\tc\t{'yes' if i in kept else 'no'}\n" for i, name in enumerate(names)]
    (folder / "unrelated.tsv").write_text("sample\tcohort\tunrelated\n" + "".join(listed))
    return define_axes(
        [prefix],
        folder / "sites.tsv",
        unrelated=folder / "unrelated.tsv",
        components="auto",
        pcs=2,
        ld_prune=[],
        regions=[],
        out={
            "axes": folder / "axes.npz",
            "about": folder / "axes.json",
            "loadings": folder / "loadings.tsv",
        },
    )
