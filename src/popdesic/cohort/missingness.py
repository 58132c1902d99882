"""Missing calls that are more common in one group of samples than in another, site by site.

Cohorts, or cases and controls, that were genotyped apart miss calls at different sites. Calls are
rarely missing at random, so such sites can look like structure or association. They are listed; no
filter acts on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import write_json
from ..core.tables import write_table
from ..io.bed import open_bed, read_fam
from ..io.sites import chunks
from .panel import load_panel

#: Sites with a smaller corrected p are listed.
MAX_P = 0.01
#: Most sites that are listed of a comparison, those with the smallest p.
MOST_LISTED = 1_000
#: Probabilities are equal if they differ by less than this share, which is rounding.
SAME = 1e-7


@dataclass(frozen=True)
class Comparison:
    """Missing calls of two groups of samples.

    Attributes
    ----------
    kind : {'cohort', 'phenotype'}
    group, other : str
        Names of the groups.
    samples, samples_other : int
        Their sizes.
    missing, missing_other : int array, (n_sites,)
        Samples of each without a call.
    """

    kind: str
    group: str
    other: str
    samples: int
    samples_other: int
    missing: np.ndarray
    missing_other: np.ndarray

    def compared(self) -> np.ndarray:
        """Sites at which groups can differ, those with calls and missing calls: bool (n_sites,)."""
        total = self.missing + self.missing_other
        return (total > 0) & (total < self.samples + self.samples_other)


def compare_missing(
    cohorts: dict[str, Path],
    founders: Sequence[str],
    phenotypes: dict[str, pd.Series],
    panel: Path,
    table_out: Path,
    counts_out: Path,
) -> list[dict]:
    """Test whether missing calls are as common in one group of samples as in another.

    Each founder cohort is compared with all other founders (two cohorts with each other), and the
    cases of each phenotype with its controls. Fisher's exact test, two-sided; p-values are
    corrected by Bonferroni for all sites of all comparisons at which some calls, but not all, are
    missing. Sites that were read as homozygous reference where a file does not list them are
    called.

    Parameters
    ----------
    cohorts : dict
        Stem of each cohort's genotypes on the panel (.bed .bim .fam), called genotypes only.
    founders : names
        Founder cohorts, in sample order.
    phenotypes : dict
        By column of the sample sheet the class of each sample (index): 0 control, 1 case.
    panel : Path
        `panel/sites.tsv`.
    table_out : Path
        Table of sites with a corrected p below `MAX_P`, at most `MOST_LISTED` of a comparison:
        chrom, pos, id, group, other, missing, missing_other (shares), p, p_corrected.
    counts_out : Path
        JSON: `limit`, `tests` (the factor of the correction), `sites`, and `comparisons`, those
        that are returned.

    Returns
    -------
    list of dict
        Of each comparison `kind`, `group`, `other`, `samples`, `samples_other`, `compared`,
        `different`, `listed` (numbers of sites), and of the site with the largest difference of
        shares among the different ones `site` (chrom:pos), `missing` and `missing_other`.
    """
    sites, _ = load_panel(panel, ["chrom", "pos", "id"])
    comparisons = _by_cohort(cohorts, founders) if len(founders) > 1 else []
    comparisons += [
        found
        for phenotype, classes in phenotypes.items()
        if (found := _by_class(cohorts, phenotype, classes, len(sites))) is not None
    ]
    about, table = judge(comparisons, sites)
    write_table(table_out, table)
    write_json(counts_out, about)
    return about["comparisons"]


def judge(comparisons: list[Comparison], sites: pd.DataFrame) -> tuple[dict, pd.DataFrame]:
    """The contents of both files of `compare_missing`.

    Parameters
    ----------
    sites : DataFrame
        chrom, pos and id of the panel.
    """
    tests = sum(int(one.compared().sum()) for one in comparisons)
    found = [_judge(one, sites, tests) for one in comparisons]
    empty = _rows(sites.iloc[:0], "", "", *[np.empty(0)] * 4)
    table = pd.concat([rows for _, rows in found if len(rows)] or [empty])
    counts = [counts for counts, _ in found]
    about = {"limit": MAX_P, "tests": tests, "sites": len(sites), "comparisons": counts}
    return about, table


def _by_cohort(cohorts: dict[str, Path], founders: Sequence[str]) -> list[Comparison]:
    """Each founder cohort with the others; two with each other."""
    sizes = [len(read_fam(cohorts[name])) for name in founders]
    missing = [
        _count_missing(cohorts[name], np.zeros(n, np.int64), 1)[:, 0]
        for name, n in zip(founders, sizes, strict=True)
    ]
    total = np.sum(missing, axis=0)
    two = len(founders) == 2
    return [
        Comparison(
            "cohort",
            f"cohort {name}",
            f"cohort {founders[1]}" if two else "the other founders",
            sizes[k],
            sum(sizes) - sizes[k],
            missing[k],
            total - missing[k],
        )
        for k, name in enumerate(founders[:1] if two else founders)
    ]


def _by_class(
    cohorts: dict[str, Path], phenotype: str, classes: pd.Series, n_sites: int
) -> Comparison | None:
    """Cases with controls of all cohorts; None if one of the classes has no sample."""
    sizes, missing = np.zeros(2, np.int64), np.zeros((n_sites, 2), np.int32)
    for prefix in cohorts.values():
        own = classes.reindex(read_fam(prefix)["sample"]).fillna(-1).to_numpy(np.int64)
        sizes += np.bincount(own[own >= 0], minlength=2)
        missing += _count_missing(prefix, own, 2)
    if not sizes.all():
        return None
    names = [f"{word} of {phenotype}" for word in ("cases", "controls")]
    numbers = int(sizes[1]), int(sizes[0])
    return Comparison("phenotype", *names, *numbers, missing[:, 1], missing[:, 0])


def _count_missing(prefix: Path, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Samples of each group without a call: int32 (n_sites, n_groups)."""
    from .genotypes_cpu import count_by_group

    rows = open_bed(prefix, n_samples=len(group))
    found = np.empty((len(rows), n_groups), np.int32)
    for first, last in chunks(len(rows)):
        found[first:last] = count_by_group(rows[first:last], group, n_groups)[..., 3]
    return found


def _judge(one: Comparison, sites: pd.DataFrame, tests: int) -> tuple[dict, pd.DataFrame]:
    """Counts of a comparison, and its rows of the table."""
    compared = np.flatnonzero(one.compared())
    missing, other = one.missing[compared], one.missing_other[compared]
    p = fisher_p(missing, other, one.samples, one.samples_other)
    different = np.flatnonzero(p * tests < MAX_P)
    best = different[np.argsort(p[different], kind="stable")][:MOST_LISTED]
    share, share_other = missing / one.samples, other / one.samples_other
    about = {
        "kind": one.kind,
        "group": one.group,
        "other": one.other,
        "samples": one.samples,
        "samples_other": one.samples_other,
        "compared": len(compared),
        "different": len(different),
        "listed": len(best),
    }
    if len(different):
        gap = np.abs(share - share_other)[different]
        most = different[gap.argmax()]
        row = sites.iloc[compared[most]]
        about |= {"site": f"{row.chrom}:{row.pos}"}
        about |= {"missing": float(share[most]), "missing_other": float(share_other[most])}
    chosen = sites.iloc[compared[best]]
    shares = share[best], share_other[best]
    return about, _rows(chosen, one.group, one.other, *shares, p[best], p[best] * tests)


def _rows(sites: pd.DataFrame, group: str, other: str, *columns: np.ndarray) -> pd.DataFrame:
    names = ("missing", "missing_other", "p", "p_corrected")
    return sites.assign(group=group, other=other, **dict(zip(names, columns, strict=True)))


def fisher_p(
    missing: np.ndarray, missing_other: np.ndarray, samples: int, samples_other: int
) -> np.ndarray:
    """Two-sided p of Fisher's exact test of 2 x 2 tables, each number of missing calls once.

    The probability, given how many of all samples are missing, of a division among the groups that
    is at most as probable as the one observed.

    Parameters
    ----------
    missing, missing_other : int arrays, (n_sites,)
        Samples of each group without a call.
    samples, samples_other : int
        Sizes of the groups.

    Returns
    -------
    float64 array, (n_sites,)
        Above 0: what is smaller than the smallest normal number is given as that.
    """
    from scipy.special import gammaln

    log_factorial = gammaln(np.arange(samples + samples_other + 1) + 1.0)

    def log_binomial(n: int, k: np.ndarray) -> np.ndarray:
        return log_factorial[n] - log_factorial[k] - log_factorial[n - k]

    total = missing.astype(np.int64) + missing_other
    p = np.ones(len(total))
    order = np.argsort(total, kind="stable")
    ends = np.flatnonzero(np.diff(total[order])) + 1
    for which in np.split(order, ends) if len(order) else []:
        whole = int(total[which[0]])
        least = max(0, whole - samples_other)
        k = np.arange(least, min(whole, samples) + 1)
        log_p = log_binomial(samples, k) + log_binomial(samples_other, whole - k)
        chance = np.exp(log_p - log_p.max())
        chance /= chance.sum()
        own = missing[which] - least
        # Stable sorting merges the rising and the falling side, which takes linear time.
        ascending = np.sort(chance, kind="stable")
        at_most = np.searchsorted(ascending, chance[own] * (1 + SAME), "right")
        p[which] = np.cumsum(ascending)[at_most - 1]
    return np.clip(p, np.finfo(np.float64).tiny, 1.0)
