"""People of populations that separated some generations ago, over whole genomes.

The last generations are those of the discrete Wright-Fisher model (msprime); the haplotypes of its
founders are mosaics of a pool, which share nothing that is longer than a few centimorgans.
"""

from __future__ import annotations

from collections.abc import Sequence

import msprime
import numpy as np
import pandas as pd

from scenes.ibd_people import HUMAN_CM, People, draw_people, grown, read_with_errors

#: Generations that are followed; sharing that is older leaves nothing of 5 cM.
GENERATIONS = 60
#: Founders' haplotypes change from one of the pool to another at each of these steps, in cM.
STEP_CM = 1


def separated(populations: int, generations: float, size: int, before: int) -> msprime.Demography:
    """Populations P0, P1, … of `size` people, of one of `before` people until so long ago."""
    history = msprime.Demography()
    names = [f"P{k}" for k in range(populations)]
    for name in names:
        history.add_population(name=name, initial_size=size)
    if populations > 1:
        history.add_population(name="before", initial_size=before)
        history.add_population_split(time=generations, derived=names, ancestral="before")
    return history


def draw_populations(
    history: msprime.Demography,
    each: int,
    *,
    seed: int,
    lengths: Sequence[float] = HUMAN_CM,
    sites_per_cm: int = 50,
    error_rate: float = 0.001,
    missing: float = 0.01,
    pool_cm: float = 40.0,
) -> tuple[People, np.ndarray]:
    """`each` people of every population P0, P1, …, and the number of each one's population.

    pool_cm: length of the pool's haplotypes, which are repeated along the genome; 40 cM take 8 s.
    """
    names = [population.name for population in history.populations]
    sampled = {name: each for name in names if name.startswith("P")}
    n = each * len(sampled)
    rng = np.random.default_rng(seed)
    drawn = draw_people(
        *(50, (pool_cm,)), seed=seed, history=grown(), sites_per_cm=sites_per_cm,
        error_rate=0.0, missing=0.0, generations=0, rate=2e-9, truth=False,
    )  # fmt: skip
    pool = drawn.haplotypes
    parts, tables = [], []
    for contig, length in enumerate(lengths):
        trees = msprime.sim_ancestry(
            sampled,
            demography=history,
            sequence_length=length * 1e6,
            recombination_rate=1e-8,
            random_seed=1000 * seed + contig + 1,
            model=msprime.DiscreteTimeWrightFisher(),
            end_time=GENERATIONS,
        )
        cm = np.arange(int(sites_per_cm * length)) / sites_per_cm
        parts.append(_haplotypes(trees, pool, cm, rng))
        pos = np.round(1e6 * cm).astype(np.int64) + 1
        tables.append(pd.DataFrame({"chrom": str(contig + 1), "pos": pos}))
    haplotypes = np.concatenate(parts, axis=1)
    del parts
    genotypes = haplotypes[::2] + haplotypes[1::2]
    alt = haplotypes.mean(axis=0)
    people = People(
        read_with_errors(genotypes, rng, error_rate, missing),
        pd.concat(tables, ignore_index=True),
        *(alt, tuple(lengths), haplotypes),
    )
    return people, np.repeat(np.arange(len(sampled)), n // len(sampled))


def _haplotypes(trees, pool: np.ndarray, cm: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Haplotypes of the samples, int8 (n, n_sites), each a mosaic of its founders' haplotypes."""
    founders = np.setdiff1d(trees.edges_parent, trees.edges_child).astype(np.int32)
    samples = trees.samples()
    pieces = trees.tables.link_ancestors(samples, founders)
    block = (cm / STEP_CM).astype(np.int64)
    rows = rng.integers(0, len(pool), (len(founders), block[-1] + 1 if len(block) else 0))
    owner = np.searchsorted(founders, pieces.parent)
    first, last = (np.searchsorted(1e6 * cm, side) for side in (pieces.left, pieces.right))
    column = np.arange(len(cm)) % pool.shape[1]
    out = np.zeros((len(samples), len(cm)), np.int8)
    for a, b, own, child in zip(first, last, owner, pieces.child, strict=True):
        out[child, a:b] = pool[rows[own, block[a:b]], column[a:b]]
    return out
