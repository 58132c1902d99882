"""Effective number of independent sites of a panel, for kinship and for identity.

KING-robust kinship of two unrelated people from one population scatters around zero. With haplotype
covariances D_kl of the sites, its variance is ``3 sum D_kl^2 / (4 (sum p_k q_k)^2)``, which is
``3 / (4 n)`` for n independent sites of equal frequency: contributions of single haplotypes cancel,
and only products of a genotype's two haplotypes remain. The effective number of independent sites
is therefore ``3 / (4 variance)``. The variance is measured: the genome is cut into blocks, each of
which contributes to the kinship of many founder pairs; the covariances between contributions of
nearby blocks add up to the variance. Covariance between distant blocks is not LD but structure and
relatedness, and is subtracted.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ..cohort.panel import load_panel
from ..core.files import write_json
from ..core.threads import run_tasks
from ..distance.tiles import load_of_one_panel
from ..engine.backend import Backend
from ..engine.terms import KINSHIP, Planes
from ..io.sites import canonical_contigs
from .kinship import king_robust, mismatching, panel_parent_limit
from .missing_calls import MissingPattern, largest_shift, measure_missing
from .mixture import absent_by_chance, common_sites
from .resolution import DUPLICATE, FIRST, THIRD, Resolution, resolve

#: Most founders whose pairs are measured (evenly spaced), and approximate number of blocks.
MOST_FOUNDERS, BLOCKS = 300, 64
#: Each founder is compared with the NEAREST most similar founders, the source of false relatives
#: (other populations scatter differently), after skipping the FAMILY closest as possible relatives.
FAMILY, NEAREST = 5, 40
#: Genotyping error rate, and share of mismatches of copies, where the model of kinship is judged.
ERRORS, COPIES = 0.005, 0.02
#: Correction: pairs selected for similarity scatter less. On independent sites their variance was
#: 0.90 of the true one (8 draws of 300 people and 640 sites).
CHOSEN = 1.1
#: Distant blocks are on different contigs or at least a quarter of the longest contig apart. If
#: pairs on different contigs carry less than LEAST_FAR of the weight, LD may span that quarter: if
#: then the covariance of distant blocks exceeds MOST_SHARED of the variance within blocks, nothing
#: is subtracted.
LEAST_FAR, MOST_SHARED = 0.25, 0.5
#: Approximate Morgans per base pair, for the probability that siblings are identical.
MORGANS = 1e-8


def measure_resolution(
    folders: list[Path],
    panel: Path,
    out: Path,
    backend: Backend,
    *,
    max_mismatch: float,
) -> Resolution:
    """Measure what the panel can resolve, from its founders only, and write it.

    Parameters
    ----------
    folders : list of Path
        Folders of the founders' `planes.npy`, in sample order.
    panel : Path
        `panel/sites.tsv`.
    out : Path
        `compare/kinship.json`: the fields of `Resolution`.
    max_mismatch : float
        Share of sites up to which samples are of one person.
    """
    sites, digest = load_panel(panel, ["chrom", "pos", "af"])
    loaded = load_of_one_panel(folders)
    founders = sum(planes.n_samples for planes, _ in loaded)
    contigs = canonical_contigs(sites.chrom)
    af = sites.af.to_numpy()
    founders_planes = [planes for planes, _ in loaded]
    fault = kinship_fault(founders_planes, af, backend)
    judged = [judge_cohort(planes, af, backend) for planes in founders_planes]
    if fault is None and all(key for key, _ in judged):
        fault = FAULTS[judged[0][0]]
    variances = measure_variances(founders_planes, contigs, backend, kinship=fault is None)
    common = common_sites(af)
    found = resolve(
        *variances,
        fault=fault,
        shifts=[shift for key, shift in judged if key is None],
        panel=digest,
        sites=len(sites),
        founders=founders,
        max_mismatch=max_mismatch,
        common=int(common.sum()),
        absent=_absent_share(af, common, variances[1]),
        siblings=siblings_alike(contigs, sites.pos.to_numpy()),
    )
    write_json(out, asdict(found))
    return found


def _absent_share(af: np.ndarray, common: np.ndarray, mean_mismatch: float | None) -> float:
    """Share of common sites at which unrelated samples lack alleles of each other.

    That of the panel's frequencies, less so far as the most similar samples, whose genotypes
    mismatch at a share `mean_mismatch`, are more alike than people drawn from these.
    """
    expected = float(np.mean(1 - (af**4 + 4 * (af * (1 - af)) ** 2 + (1 - af) ** 4)))
    if mean_mismatch is None or not common.any() or not expected:
        return 0.0
    return absent_by_chance(af[common]) * min(1.0, mean_mismatch / expected)


#: Nearest strangers with a kinship below this are inbred: at an inbreeding coefficient F the
#: kinship of KING-robust is about -F / (1 - F), whatever the population.
INBRED = -0.5
#: Share of pairs like parent and child in triangles of such pairs that no pedigree explains.
TRIANGLES = 0.5
FEW_HETEROZYGOTES = (
    "The founders have too few heterozygotes, as inbred lines, selfing plants and haploid samples "
    "have. So KING-robust kinship is not used, and only duplicates are found, by their genotypes."
)
NO_PEDIGREE = (
    "Most pairs of founders that look like parent and child form triangles, which no pedigree has. "
    "They are clones, or only variants were called and missing genotypes are mostly homozygous "
    "reference. So KING-robust kinship is not used, and only duplicates are found, by their "
    "genotypes."
)

MISSING = (
    "Most samples look like relatives of many others, and by the sites' missing calls this is what "
    "missing homozygotes alone would give, as in a merge of files of variants. So KING-robust "
    "kinship is not used, and only duplicates are found, by their genotypes."
)
#: What is said of a cohort by the reason of `judge_cohort`.
FAULTS = {"heterozygotes": FEW_HETEROZYGOTES, "triangles": NO_PEDIGREE, "missing": MISSING}
#: Fewest samples of a cohort that is judged by itself, and number of nearest strangers.
LEAST_JUDGED, STRANGERS = 8, 10
#: Largest shift of kinship by missing calls with which degrees are told: half of the smallest
#: kinship of third-degree relatives. Up to it, the limit of relatives is raised by the shift.
MOST_SHIFT = THIRD / 2


def kinship_fault(cohorts: list[Planes], af: np.ndarray, backend: Backend) -> str | None:
    """Why the model of KING-robust kinship does not hold for the founders; None if it may.

    Parameters
    ----------
    cohorts : list of Planes
        The founders, over the same sites.
    af : float64 array, (n_sites,)
        ALT frequencies of the panel.
    """
    planes = _founder_subset(cohorts)
    n = planes.n_samples
    if n < 2:
        return None
    counts = dict(zip(KINSHIP.outputs, backend.bitgemm(planes, None, KINSHIP), strict=True))
    phi = king_robust(counts)
    copy = mismatching(counts) <= COPIES * counts["called"]
    phi[np.isnan(phi) | copy | np.eye(n, dtype=bool)] = -np.inf
    nearest = -np.sort(-phi, axis=1)[:, min(FAMILY, n // 5)]
    if np.median(nearest) < INBRED:
        return FEW_HETEROZYGOTES
    share = counts["ibs0"] / np.maximum(counts["called"], 1)
    parents = panel_parent_limit(af, ERRORS)
    alike = (phi > FIRST) & (phi <= DUPLICATE) & (share < parents)
    closed = alike & (alike.astype(np.int64) @ alike.astype(np.int64) > 0)
    if closed.sum() > TRIANGLES * alike.sum():
        return NO_PEDIGREE
    return None


def judge_cohort(planes: Planes, af: np.ndarray, backend: Backend) -> tuple[str | None, float]:
    """Whether KING-robust kinship holds within one cohort: a key of FAULTS or None, and a shift.

    Of cohorts of fewer than LEAST_JUDGED samples only missing calls are judged, by the sites alone.
    The shift is that of `kinship_shift`, 0 with a fault other than ``missing``.

    Parameters
    ----------
    planes : Planes
        One cohort.
    af : float64 array, (n_sites,)
        ALT frequencies of the panel.
    """
    if planes.n_samples < LEAST_JUDGED:
        pattern = _missing_of(planes, af)[0]
        surely = pattern is not None and pattern.least_shift > MOST_SHIFT
        return ("missing" if surely else None), 0.0
    fault = kinship_fault([planes], af, backend)
    if fault is not None:
        return next(key for key, text in FAULTS.items() if text == fault), 0.0
    shift = kinship_shift(planes, af, backend)
    return ("missing" if shift > MOST_SHIFT else None), shift


def kinship_shift(planes: Planes, af: np.ndarray, backend: Backend) -> float:
    """By how much missing calls raise (or lower, if negative) the kinship of unrelated samples.

    If homozygotes are missing more often than heterozygotes, KING-robust kinship of strangers lies
    above 0, as that of relatives does. So the shift is the median kinship of samples with their
    nearest strangers, but at most what the sites' missing calls explain (`missing_calls`). Nearest
    strangers are chosen on one half of the genome and measured on the other half, so that chance
    does not raise their kinship. A negative shift, of missing heterozygotes, is that of the sites.
    Sites without any call, absent from the cohort's files, do not count as missing.
    """
    pattern, seen, subset = _missing_of(planes, af)
    if pattern is None:
        return 0.0
    if pattern.lowers:
        return pattern.shift
    n, n_words = subset.n_samples, subset.words.shape[2]
    if n_words < 2 or not largest_shift(pattern.missing, af[seen]):
        return 0.0
    half = (np.arange(n_words) * min(BLOCKS, n_words) // n_words) % 2 == 0
    halves = []
    for words in (half, ~half):
        kept = np.where(words, subset.words, np.uint64(0))
        counts = backend.bitgemm(Planes(kept, subset.n_sites), None, KINSHIP)
        phi = king_robust(dict(zip(KINSHIP.outputs, counts, strict=True)))
        phi[np.isnan(phi) | np.eye(n, dtype=bool)] = -np.inf
        halves.append(phi)
    family = min(FAMILY, n // 5)
    typical = []
    for chosen, measured in (halves, halves[::-1]):
        near = np.argsort(-chosen, axis=1, kind="stable")[:, family : family + STRANGERS]
        typical.append(np.take_along_axis(measured, near, axis=1))
    median = float(np.median(typical))
    return float(np.clip(median, 0.0, pattern.possible_shift(af[seen], median)))


def _missing_of(planes: Planes, af: np.ndarray) -> tuple[MissingPattern | None, np.ndarray, Planes]:
    """Pattern of a cohort's missing calls (None without any), sites with calls, its subset."""
    subset = _founder_subset([planes])
    if planes.complete:
        return None, np.ones(len(af), bool), subset
    counted = np.zeros((3, len(af)), np.uint16)  # of at most MOST_FOUNDERS
    for row in subset.words:
        counted += np.unpackbits(row.view(np.uint8), axis=1, count=len(af), bitorder="little")
    carriers, alt, called = counted.astype(np.int64)
    seen = called > 0
    if called[seen].sum() == subset.n_samples * seen.sum():
        return None, seen, subset
    counts = np.stack([called - carriers, carriers - alt, alt])
    return measure_missing(counts, subset.n_samples, af), seen, subset


def siblings_alike(contigs: np.ndarray, pos: np.ndarray) -> float:
    """Share of full siblings who inherited the same haplotypes over the spans of all contigs.

    A quarter share both haplotypes at one position; along a contig this ends at a rate of four per
    Morgan.
    """
    names = dict.fromkeys(contigs.tolist())
    spans = [np.ptp(pos[contigs == name]) * MORGANS for name in names]
    return 0.25 ** len(spans) * math.exp(-4 * sum(spans))


def _founder_subset(cohorts: list[Planes]) -> Planes:
    """At most MOST_FOUNDERS evenly spaced samples of all cohorts, with planes u, v and c."""
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
    """About `n_blocks` blocks of consecutive sites of about equal length.

    Large contigs are cut, small ones are merged.

    Returns
    -------
    list of (first, last, contig)
        Blocks of one contig share the number `contig`; merged contigs get their own number.
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
    cohorts: list[Planes], contigs: np.ndarray, backend: Backend, *, kinship: bool = True
) -> tuple[float | None, float | None, float | None]:
    """Chance variance of kinship and mismatches between unrelated people.

    Parameters
    ----------
    cohorts : list of Planes
        The founders, over the same sites.
    contigs : array of str, (n_sites,)
        Grouped by contig, positions ascending.
    kinship : bool
        Whether kinship tells who is similar. Otherwise mismatching genotypes do, and the variance
        of kinship is None (`kinship_fault`).

    Returns
    -------
    variance, mean_mismatch, mismatch_variance : float or None
        Variance of kinship, and mean and variance of the share of mismatching genotypes, for pairs
        called at all sites. None if no pair of founders has a heterozygote.
    """
    planes = _founder_subset(cohorts)
    blocks = cut_genome(contigs)
    counts = run_tasks(
        lambda first, last, _: _block_counts(planes, first, last, backend), blocks, backend.threads
    )
    shared, hets, called, mismatches = map(sum, zip(*counts, strict=True))
    n = planes.n_samples
    known = (called > 0) & ~np.eye(n, dtype=bool)
    if kinship:
        known &= hets > 0
        alike = np.where(known, shared / np.maximum(hets, 1), -np.inf)
    else:
        alike = np.where(known, -mismatches / np.maximum(called, 1), -np.inf)
    family = min(FAMILY, n // 5)
    near = np.argsort(-alike, axis=1, kind="stable")[:, family : family + NEAREST]
    i, j = np.repeat(np.arange(n), near.shape[1]), near.ravel()
    i, j = i[known[i, j]], j[known[i, j]]
    if not len(i):
        return None, None, None
    mean = float(np.mean(mismatches[i, j] / called[i, j]))
    parts = np.empty((4, len(blocks), len(i)))
    for k, found in enumerate(counts):
        parts[:, k] = [values[i, j] for values in found]
    sites = parts[2] / called[i, j]
    wrong = parts[3] / called[i, j] - mean * sites
    share = float(np.mean(called[i, j])) / planes.n_sites  # scales to pairs without missing calls
    number = np.array([contig for _, _, contig in blocks])
    variance = None
    if kinship:
        shared, hets = parts[0] / hets[i, j], parts[1] / hets[i, j]
        variance = chance_variance(shared, hets, number) * share
    return (
        variance,
        mean,
        chance_variance(wrong, sites, number) * share,
    )


def _block_counts(planes: Planes, first: int, last: int, backend: Backend) -> tuple:
    """Four float64 (n, n) of a block: half of (heterozygotes - squared distance); heterozygotes of
    both samples; jointly called sites; mismatching genotypes.

    Sums of the first divided by sums of the second are kinship with the mean of the two
    heterozygosities instead of the smaller one. KING's estimate is never above it.
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
    """Variance due to LD alone of a statistic that is a sum over blocks of the genome.

    Parameters
    ----------
    parts, weights : float64 arrays, (n_blocks, n_pairs)
        Contribution of each block to the statistic of a pair, and the block's share of the genome.
    contig : int array, (n_blocks,)
        Contig of each block.
    """
    n = parts.shape[1]
    # No BLAS: the order of its sums depends on the number of threads.
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
