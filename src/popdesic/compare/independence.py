"""How many independent sites a panel amounts to, for kinship and for identity.

KING-robust kinship of two unrelated people of one population scatters about zero. With haplotype
covariances D_kl of the sites its variance is ``3 sum D_kl^2 / (4 (sum p_k q_k)^2)``, which is
``3 / (4 n)`` for n independent sites of one frequency: what a single genotype adds cancels, up to
products of its two haplotypes. The effective number of independent sites is therefore
``3 / (4 variance)``. The variance is measured: the genome is cut into blocks, and the covariances
of what near blocks add to the kinship of many pairs of founders sum to it. What blocks far apart
have in common is no LD but structure and relatedness, and is taken out.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..cohort.encode import load_planes
from ..cohort.panel import load_panel
from ..distance.tiles import require_one_panel
from ..engine.base import Backend
from ..engine.terms import KINSHIP, Planes
from ..io.files import write_json
from ..io.sites import canonical_contig
from .resolution import Resolution, resolve

#: Founders whose pairs are measured, evenly spread over all, and blocks of the genome, about.
MOST_FOUNDERS, BLOCKS = 300, 64
#: Every founder is measured against the NEAREST that are most alike, from whom false relatives
#: would come (people of other populations scatter otherwise), after FAMILY that may be relatives.
FAMILY, NEAREST = 5, 40
#: Pairs that were chosen for being alike scatter less: on independent sites the variance came out
#: at nine tenths (0.90, 8 draws of 300 people and 640 sites), which is put right.
CHOSEN = 1.1
#: Far apart are blocks of different contigs, or a quarter of the longest contig from each other.
#: Where pairs of different contigs are few (less than LEAST_FAR of the weight), LD may reach across
#: that quarter: if what far blocks share is more than MOST_SHARED of what a block shares with
#: itself, all of it counts as chance.
LEAST_FAR, MOST_SHARED = 0.25, 0.5
#: Morgans a base pair, about, for the chance that siblings are identical.
MORGANS = 1e-8


def measure_resolution(
    folders: list[Path], panel: Path, out: Path, backend: Backend, *, max_mismatch: float
) -> Resolution:
    """Measure what the panel resolves, from its founders alone, and write it.

    Parameters
    ----------
    folders : list of Path
        Folders of the founders' `planes.npy`, in sample order.
    panel : Path
        `panel/sites.tsv`.
    out : Path
        `compare/kinship.json`: the fields of `Resolution`.
    """
    sites, digest = load_panel(panel)
    loaded = [load_planes(folder) for folder in folders]
    for folder, (_, about) in zip(folders, loaded, strict=True):
        require_one_panel(folders[0], loaded[0][1], folder, about)
    founders = sum(planes.n_samples for planes, _ in loaded)
    contigs = sites.chrom.map(canonical_contig).to_numpy()
    found = resolve(
        *measure_variances([planes for planes, _ in loaded], contigs, backend),
        panel=digest,
        sites=len(sites),
        founders=founders,
        max_mismatch=max_mismatch,
        siblings=siblings_alike(contigs, sites.pos.to_numpy()),
    )
    write_json(out, asdict(found))
    return found


def siblings_alike(contigs: np.ndarray, pos: np.ndarray) -> float:
    """Share of full siblings who have inherited the same haplotypes over all contigs' spans.

    A quarter of them at one place; along a contig it ends four times a Morgan.
    """
    names = dict.fromkeys(contigs.tolist())
    spans = [np.ptp(pos[contigs == name]) * MORGANS for name in names]
    return 0.25 ** len(spans) * math.exp(-4 * sum(spans))


def _spread(cohorts: list[Planes]) -> Planes:
    """At most MOST_FOUNDERS samples of all cohorts, evenly spread, with planes u, v and c."""
    starts = np.cumsum([0, *(planes.n_samples for planes in cohorts)])
    n = min(int(starts[-1]), MOST_FOUNDERS)
    chosen = (np.arange(n) * int(starts[-1])) // n
    n_words = max(planes.words.shape[2] for planes in cohorts)
    words = np.zeros((n, 3, n_words), np.uint64)
    all_called = _bits(0, cohorts[0].n_sites, n_words)
    for planes, first, last in zip(cohorts, starts, starts[1:], strict=False):
        rows = np.flatnonzero((chosen >= first) & (chosen < last))
        part = np.asarray(planes.words[chosen[rows] - first])
        words[rows, : part.shape[1], : part.shape[2]] = part
        if planes.complete:
            words[rows, 2] = all_called
    return Planes(words, cohorts[0].n_sites)


def _bits(first: int, last: int, n_words: int) -> np.ndarray:
    """uint64 (n_words,), bits `first` to `last` - 1 set."""
    bits = np.zeros(n_words * 64, np.uint8)
    bits[first:last] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


def cut_genome(contigs: np.ndarray, n_blocks: int = BLOCKS) -> list[tuple[int, int, int]]:
    """Blocks of consecutive sites, about `n_blocks` of them and about equally long.

    A large contig is cut, small ones are joined.

    Returns
    -------
    list of (first, last, contig)
        `contig` is a number that blocks of the same contig share; joined ones have their own.
    """
    size = max(1, -(-len(contigs) // n_blocks))
    starts = np.flatnonzero(contigs[1:] != contigs[:-1]) + 1
    blocks: list[tuple[int, int, int]] = []
    waiting = None
    for first, last in zip([0, *starts.tolist()], [*starts.tolist(), len(contigs)], strict=True):
        if last - first < size:
            waiting = first if waiting is None else waiting
            if last - waiting >= size:
                blocks.append((waiting, last, len(blocks)))
                waiting = None
            continue
        if waiting is not None:
            blocks.append((waiting, first, len(blocks)))
            waiting = None
        parts = max(1, round((last - first) / size))
        bounds = [first + (last - first) * k // parts for k in range(parts + 1)]
        number = len(blocks)
        blocks += [(a, b, number) for a, b in itertools.pairwise(bounds)]
    if waiting is not None:
        blocks.append((waiting, len(contigs), len(blocks)))
    return blocks


def measure_variances(
    cohorts: list[Planes], contigs: np.ndarray, backend: Backend
) -> tuple[float | None, float | None, float | None]:
    """How kinship and mismatches of unrelated people scatter by chance.

    Parameters
    ----------
    cohorts : list of Planes
        The founders, all over the same sites.
    contigs : array of str, (n_sites,)
        Contigs in runs, positions rising.

    Returns
    -------
    variance, mean_mismatch, mismatch_variance : float or None
        Variance of kinship, mean and variance of the share of mismatching genotypes, of pairs that
        are called everywhere. None where no pair of founders has a heterozygote.
    """
    planes = _spread(cohorts)
    blocks = cut_genome(contigs)
    shared, hets, called, mismatches = (0.0 for _ in range(4))
    for first, last, _ in blocks:
        counts = _block_counts(planes, first, last, backend)
        shared, hets = shared + counts[0], hets + counts[1]
        called, mismatches = called + counts[2], mismatches + counts[3]
    n = planes.n_samples
    known = (hets > 0) & (called > 0) & ~np.eye(n, dtype=bool)
    kinship = np.where(known, shared / np.maximum(hets, 1), -np.inf)
    family = min(FAMILY, n // 5)
    near = np.argsort(-kinship, axis=1, kind="stable")[:, family : family + NEAREST]
    i, j = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    i, j = i[known[i, j]], j[known[i, j]]
    if not len(i):
        return None, None, None
    mean = float(np.mean(mismatches[i, j] / called[i, j]))
    parts = np.empty((4, len(blocks), len(i)))
    for k, (first, last, _) in enumerate(blocks):
        found = _block_counts(planes, first, last, backend)
        parts[:, k] = [values[i, j] for values in found]
    shared, hets = parts[0] / hets[i, j], parts[1] / hets[i, j]
    sites = parts[2] / called[i, j]
    wrong = parts[3] / called[i, j] - mean * sites
    share = float(np.mean(called[i, j])) / planes.n_sites  # of all sites: none missing, less error
    number = np.array([contig for _, _, contig in blocks])
    return (
        chance_variance(shared, hets, number) * share,
        mean,
        chance_variance(wrong, sites, number) * share,
    )


def _block_counts(planes: Planes, first: int, last: int, backend: Backend) -> tuple:
    """float64 (n, n) of a block: half of (heterozygotes - squared distance); heterozygotes of both;
    jointly called sites; mismatching genotypes.

    The sum of the first over that of the second is kinship with the mean of both heterozygosities
    in place of the smaller one, which KING's is never above.
    """
    word0, word1 = first // 64, -(-last // 64)
    mask = _bits(first - 64 * word0, last - 64 * word0, word1 - word0)
    block = Planes(np.ascontiguousarray(planes.words[:, :, word0:word1] & mask), last - 64 * word0)
    values = backend.bitgemm(block, None, KINSHIP)
    counts = dict(zip(KINSHIP.outputs, (value.astype(np.float64) for value in values), strict=True))
    hets = counts["het_a"] + counts["het_b"]
    apart = hets - 2 * counts["both_het"]
    squared = 4 * counts["ibs0"] + apart
    return (hets - squared) / 2, hets, counts["called"], apart + counts["ibs0"]


def chance_variance(parts: np.ndarray, weights: np.ndarray, contig: np.ndarray) -> float:
    """Variance by LD alone of a statistic that blocks of the genome add up to.

    Parameters
    ----------
    parts, weights : float64 arrays, (n_blocks, n_pairs)
        What each block adds to the statistic of a pair of people, and its share of the genome.
    contig : int array, (n_blocks,)
        Contig of each block.
    """
    n = parts.shape[1]
    # No BLAS: its threads would end the sums otherwise.
    products = np.einsum("ip,jp->ij", parts, parts) / n
    weight = np.einsum("ip,jp->ij", weights, weights) / n
    place = np.arange(len(contig))
    other = contig[:, None] != contig[None]
    quarter = max(1, -(-int(np.unique(contig, return_counts=True)[1].max()) // 4))
    far = other | (np.abs(place[:, None] - place[None]) >= quarter)
    shared = 0.0
    if far.any() and weight[far].sum() > 0:
        shared = max(0.0, products[far].sum() / weight[far].sum())
        own = np.trace(products) / max(np.trace(weight), np.finfo(float).tiny)
        if weight[other].sum() < LEAST_FAR * weight.sum() and shared > MOST_SHARED * own:
            shared = 0.0
    return CHOSEN * float(products[~far].sum() - shared * weight[~far].sum())
