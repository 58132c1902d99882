"""What scans of pairs and triples read, and what they find."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

#: Bits of the levels of residuals, and the level that stands for a residual of zero.
LEVEL_BITS, ZERO_LEVEL = 8, 128
#: Most sites of a scan on a CPU, whose keys of combinations have 21 bits for a site.
MOST_SITES = (1 << 21) - 1
#: The same of quads, 15 bits for a site.
MOST_QUAD_SITES = (1 << 15) - 1
NAMES = {2: "pairs", 3: "triples", 4: "quads"}
#: Scores of association, which permutations test: they need cases and controls.
ASSOCIATION = ("k2", "k2_excess", "mutual_information", "gini")


@dataclass(frozen=True)
class OneHot:
    """Stored genotypes of all scanned sites in one phenotype class, one bit a sample.

    Attributes
    ----------
    words : uint64 array, (n_sites, n_states, n_words)
        Variant-major, little-endian bits, zero from bit `n_samples` on. State 0 holds the samples
        with the site's rarest genotype, state 1 those with the second rarest, both ranked over
        all classes together; state 2, present for every site if any genotype of the scan is
        missing, those whose genotype is missing. Carriers of the third genotype are not stored:
        their counts follow from margins (kernels/epistasis/cells.cuh).
    n_samples : int
        Samples of this class; ``n_words >= ceil(n_samples / 64)``.
    """

    words: np.ndarray
    n_samples: int


@dataclass(frozen=True)
class Partners:
    """Which sites may be combined. A pair or triple is scanned if every two of its sites

    1. are on different chromosomes, or at least `min_distance_bp` apart, and
    2. have a squared correlation r2 of their allele counts of at most `max_r2`.

    r2 is that of the combination's own table: over the people who are called at all its sites,
    controls and cases together. So a scan needs no matrix of all pairs of sites: rule 1 is two
    look-ups, rule 2 is tested only for combinations that pass the scan's filter. Where a site does
    not vary in the table, r2 is undefined and the partner is permitted.

    Rule 2 is the same decision on every device. Allele counts are -1, 0 and 1 (0 the heterozygote:
    r2 does not change with the sign); with n people, covariance n Sxy - Sx Sy and variances
    n Sxx - Sx^2 are integers below 2**49. Forbidden is, in float64 with each product rounded once,

        covariance * covariance > max_r2 * (variance_x * variance_y).

    Attributes
    ----------
    chrom : int32 array, (n_sites,)
        A number for each chromosome.
    pos : int32 array, (n_sites,)
        In base pairs.
    middle : int8 array, (n_sites,)
        The state that is the heterozygote: 0 or 1 (stored, see `OneHot`), or 2, the third.
    min_distance_bp : int
    max_r2 : float
        1 or more sets no limit.
    """

    chrom: np.ndarray
    pos: np.ndarray
    middle: np.ndarray
    min_distance_bp: int = 0
    max_r2: float = 1.0


@dataclass(frozen=True)
class ScanData:
    """What a scan of pairs or triples reads.

    The cost of a contingency table is an exact integer, the lower the better:
    ``sum over cells (total[n0 + n1] - part[n0] - part[n1])`` minus the same expression of the one
    cell that holds all samples called at every site of the pair or triple. n0 and n1 count the
    controls and cases of a cell. K2: part = lnGamma(n + 1), total = lnGamma(n + 2). K2 excess:
    total is the mean of the sum of both parts over random cases, up to a multiple of n
    (`epistasis.k2_null`). Mutual information: total = part = n ln n, which gives -N times the
    information in nats. The subtraction makes pairs with different missingness comparable; without
    missing genotypes it is a constant. Gini: a cell costs n0 n1 / (n0 + n1) instead, in units of
    `total[0]`, rounded; `part` is empty.

    Attributes
    ----------
    classes : tuple of two OneHot
        Controls, then cases; the same sites, the same number of states.
    total, part : int64 arrays, (n_samples + 1,)
        Natural logarithms scaled by a power of two (`epistasis.scores.score_tables`); n_samples
        counts both classes.
    rank : int32 array, (n_sites,)
        Index of each site in panel order. Sites are ordered by the number of samples in their
        stored states, fewest first, so the smallest index of a triple has the least to compact;
        sites with missing genotypes may come before all others (`epistasis.reorder`). Any order
        gives the same hits.
    partners : Partners or None
        Which sites may be combined; None permits all.
    lr_bits : int or None
        If given, the cost is that of the interaction instead, -LR / 2 in nats with so many bits
        after the point (`interaction_cpu`), and `total` and `part` are those of the mutual
        information, which bounds it.
    complete_from : int or None
        No site from this one on has missing genotypes (`epistasis.reorder` puts such sites last);
        None: unknown. Scans refuse planes that disagree
        (`scan_work.require_complete`).
    """

    classes: tuple[OneHot, OneHot]
    total: np.ndarray
    part: np.ndarray
    rank: np.ndarray
    partners: Partners | None = None
    lr_bits: int | None = None
    complete_from: int | None = None

    @property
    def n_sites(self) -> int:
        return len(self.rank)

    @property
    def n_samples(self) -> int:
        return self.classes[0].n_samples + self.classes[1].n_samples

    def of_sites(
        self, rows: np.ndarray | slice, classes: tuple[OneHot, OneHot] | None = None
    ) -> ScanData:
        """The same of some sites, in rising order.

        `classes`: their planes, if they lie elsewhere.
        """
        if classes is None:
            parts = [OneHot(one.words[rows], one.n_samples) for one in self.classes]
            classes = (parts[0], parts[1])
        partners, complete = self.partners, self.complete_from
        if partners is not None:
            columns = {name: getattr(partners, name)[rows] for name in ("chrom", "pos", "middle")}
            partners = replace(partners, **columns)
        if complete is not None:
            complete = int((np.arange(self.n_sites)[rows] < complete).sum())
        return replace(
            self,
            classes=classes,
            rank=self.rank[rows],
            partners=partners,
            complete_from=complete,
        )


def cell_cost(n0: np.ndarray, n1: np.ndarray, total: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Costs of cells of n0 controls and n1 cases, int64, by the tables of `ScanData`.

    Those of Gini are products and quotients of float64, rounded once: the same on every device.
    """
    n0, n1 = np.asarray(n0), np.asarray(n1)
    if len(part):
        return total[n0 + n1] - part[n0] - part[n1]
    share = n0.astype(np.float64) * n1 / np.maximum(n0 + n1, 1)
    return np.rint(share * float(total[0])).astype(np.int64)


@dataclass(frozen=True)
class ResidualData:
    """What a scan of pairs by residuals reads (`epistasis.residual_cpu`: statistic, costs, bound).

    Attributes
    ----------
    planes : OneHot
        All samples as one class.
    levels : uint8 array, (n_samples,)
        Residual of each sample under the null model, rounded; 128 stands for zero.
    variance : float
        Of the levels under the null model, in squared levels; positive.
    rank, partners
        As in `ScanData`.
    """

    planes: OneHot
    levels: np.ndarray
    variance: float
    rank: np.ndarray
    partners: Partners | None = None

    @property
    def n_sites(self) -> int:
        return len(self.rank)

    @property
    def n_samples(self) -> int:
        return self.planes.n_samples


@dataclass(frozen=True)
class Hits:
    """The best pairs or triples of a scan, best first.

    Attributes
    ----------
    cost : int64 array, (k,)
    sites : int32 array, (k, order)
        Indices into the scanned sites, ascending in a row. Rows are ordered by cost, then by the
        row's panel ranks in ascending order: the same list from every backend.
    """

    cost: np.ndarray
    sites: np.ndarray


def merge_hits(parts: list[Hits], rank: np.ndarray, top: int) -> Hits:
    """The best `top` hits of all parts, by cost, then by panel order of their sites."""
    cost = np.concatenate([part.cost for part in parts])
    sites = np.concatenate([part.sites for part in parts])
    ranks = np.sort(rank[sites], axis=1)
    best = np.lexsort((*ranks.T[::-1], cost))[:top]
    return Hits(cost[best], np.ascontiguousarray(sites[best]))
