"""Sites at which one cohort was genotyped otherwise than the others: artefacts between cohorts.

A cohort differs from others of the same ancestry at few sites if its probes, depth, strands or
genome build do; its ancestry differs at all sites. So each site is compared with what the sample's
ancestry (components of the sites that agree) lets expect, and each cohort with its typical site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import write_json
from ..core.tables import write_table
from ..core.threads import one_blas_thread, run_tasks
from ..io.bed import open_bed, read_fam
from ..io.genotypes import unpack_bed
from ..io.sites import chunks, is_ambiguous
from .contigs import AUTO, genome_of_panel
from .panel import load_panel

#: Fewest samples of a cohort that is tested, and of the others that it is compared with.
LEAST_SAMPLES = 10
#: Samples of a cohort that are looked at, evenly spaced: 252, fewer if there are more than eight
#: founder cohorts. More add cost, and with these nearly all artefacts are found.
MOST_SAMPLES, LEAST_OF_MANY, ALL_SAMPLES = 252, 48, 2016
#: Family-wise error of the founders, and of each newcomer. A cohort has artefacts if more sites
#: pass at PASSING in one test than is likely: with this probability, for all tests, if INFLATION
#: times as many pass as chance lets, a Poisson number. Sites count once within APART panel sites,
#: and at least LEAST_PLACES are needed: one selected locus or inversion is no artefact. What that
#: finds: tests/bench/bench_artefacts.py.
LEVEL, PASSING, INFLATION = 0.01, 1e-5, 3
LEAST_PLACES, APART = 5, 20
#: False discovery rate of the sites that are named in a cohort that has artefacts.
NAMED = 0.01
#: Share of the sites from which missed calls alone are artefacts: every cohort has sites of its own
#: that are hard to call, and the founders' are not on the panel.
#: Unless homozygotes there are too many by so many standard errors: calls are missed by genotype.
MANY_MISSED, BY_GENOTYPE = 0.01, 5.0
#: Components of ancestry: one in ten samples, at most MOST_COMPONENTS, from at most MOST_SITES
#: common sites, and at most MOST_VALUES genotypes of them.
MOST_COMPONENTS, MOST_SITES, MOST_VALUES = 10, 20_000, 40_000_000
#: Sites whose loading on a component exceeds so many robust standard deviations take no part.
OUTLYING = 5.0
#: Components that explain more of a cohort's membership leave too little to compare within them.
LEAST_LEFT = 0.1
#: Sites with a rarer allele do not say how inflated statistics are.
COMMON = 0.05
#: Genotypes that are read at once.
CHUNK_VALUES = 1_000_000

TESTS = ("frequency", "heterozygotes", "missing")
SWAPPED = "alleles swapped"
OTHER_STRAND = "other strand"
SHIFTED = "other frequency"
DEFICIT = "heterozygotes missed"
ABSENT = "calls missed"
SITE = ["chrom", "pos", "id", "ref", "alt"]
COLUMNS = [*SITE, "cohort", "other", "test", "observed", "expected", "statistic", "p", "looks_like"]

Reader = Callable[[int, int], np.ndarray]


@dataclass
class SiteSums:
    """Sums of a cohort's samples at each site; arrays (n_sites, n_cohorts).

    Attributes
    ----------
    called, alt, het, hom : samples with a call, ALT alleles, heterozygotes, ALT homozygotes
    contrast : weighted sum of genotypes that ancestry does not explain
    expected_het, squared_het : sums of 2 f (1 - f) and of its square, f the frequency that
        ancestry and cohort let expect of each sample
    """

    called: np.ndarray
    alt: np.ndarray
    het: np.ndarray
    hom: np.ndarray
    contrast: np.ndarray
    expected_het: np.ndarray
    squared_het: np.ndarray


@dataclass
class Tested:
    """A test of a cohort; arrays (n_sites,). What the columns are: `find_artefacts`.

    `excess` and `variance`, of heterozygotes alone: homozygotes of the rarer allele beyond those
    expected, and the variance of their number.
    """

    statistic: np.ndarray
    p: np.ndarray
    observed: np.ndarray
    expected: np.ndarray
    looks_like: np.ndarray
    excess: np.ndarray = field(default_factory=lambda: np.empty(0))
    variance: np.ndarray = field(default_factory=lambda: np.empty(0))

    def rows(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Columns of the table at some sites."""
        return {name: getattr(self, name)[chosen] for name in COLUMNS[8:]}


@dataclass(frozen=True)
class CohortArtefacts:
    """What is found in a cohort.

    Attributes
    ----------
    cohort, other : str
        Its name, and what it was compared with; empty if with nothing.
    samples : int
    own_population : bool
        Its ancestry is that of no other cohort: frequencies cannot be told from drift, and of
        these only swapped alleles are sought.
    sites : int
        Sites that are named.
    named : dict
        Rows of the table by what they look like.
    departs : bool
        It has artefacts: others than missed calls, MANY_MISSED of these, or calls missed by
        genotype.
    """

    cohort: str
    other: str
    samples: int
    own_population: bool
    sites: int
    named: dict[str, int]
    departs: bool

    def sentence(self, n_sites: int) -> str:
        """What was found, of a panel of `n_sites`."""
        if not self.sites:
            return f"Cohort {self.cohort} has no sites that look like artefacts."
        kinds = ", ".join(f"{what} {count}" for what, count in self.named.items())
        beside = f" beside {self.other}" if self.other else ""
        return (
            f"Cohort {self.cohort} has {self.sites} sites ({self.sites / n_sites:.1%} of the "
            f"panel) that look like artefacts{beside}: {kinds}."
        )


def write_artefacts(
    cohorts: dict[str, Path],
    founders: Sequence[str],
    panel: Path,
    counts: Path,
    table_out: Path,
    about_out: Path,
    *,
    threads: int = 1,
) -> list[str]:
    """Name artefacts between cohorts at the panel's autosomal sites; what was found, as sentences.

    Founders are compared among themselves, so that later cohorts change nothing of theirs; each
    newcomer is compared with the founders alone. Of a large cohort, some samples are looked at.

    Parameters
    ----------
    cohorts : dict
        Stem of each cohort's genotypes on the panel (.bed .bim .fam), called genotypes only, in
        sample order.
    panel, counts : Path
        `panel/sites.tsv`, `panel/counts.json`.
    table_out, about_out : Path
        The table of `find_artefacts`, and as JSON `level`, `sites` (that were tested) and
        `cohorts`, a `CohortArtefacts` each.

    Returns
    -------
    list of str
        A sentence for each cohort that was tested.
    """
    sites, _ = load_panel(panel, SITE)
    outside = genome_of_panel(counts).excluded(AUTO)
    rows = np.flatnonzero(~sites.chrom.isin(outside).to_numpy())
    sites = sites.iloc[rows].reset_index(drop=True)
    sizes = {name: len(read_fam(stem)["sample"]) for name, stem in cohorts.items()}
    sizes = {name: size for name, size in sizes.items() if size}
    beds = {name: open_bed(cohorts[name], n_samples=size) for name, size in sizes.items()}
    n_founders = sum(name in sizes for name in founders)
    columns, sizes = _looked_at(sizes, n_founders)

    def reader(names: Sequence[str]) -> Reader:
        def read(first: int, last: int) -> np.ndarray:
            which = rows[first:last]
            parts = [unpack_bed(beds[n][which][:, columns[n]], sizes[n]) for n in names]
            return np.concatenate(parts, axis=1)

        return read

    table, found = find_study_artefacts(reader, sites, sizes, founders, threads)
    write_table(table_out, table)
    about = {"level": LEVEL, "sites": len(sites), "cohorts": list(map(asdict, found))}
    write_json(about_out, about)
    return [one.sentence(len(sites)) for one in found]


def _looked_at(
    sizes: dict[str, int], n_founders: int
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Bytes of a .bed row, and samples in them, that are looked at of each cohort."""
    most = min(MOST_SAMPLES, max(LEAST_OF_MANY, ALL_SAMPLES // max(n_founders, 1)))
    columns, kept = {}, {}
    for name, size in sizes.items():
        whole = -(-size // 4)
        wanted = min(whole, most // 4)
        columns[name] = np.arange(wanted) * whole // wanted
        kept[name] = size if wanted == whole else 4 * wanted
    return columns, kept


def find_study_artefacts(
    reader: Callable[[Sequence[str]], Reader],
    sites: pd.DataFrame,
    sizes: dict[str, int],
    founders: Sequence[str],
    threads: int = 1,
) -> tuple[pd.DataFrame, list[CohortArtefacts]]:
    """`find_artefacts` of the founders, then of each newcomer beside them.

    A newcomer's rows depend on the founders and itself alone, whichever others there are.

    Parameters
    ----------
    reader : callable
        What reads the genotypes of some cohorts.
    """
    founders = [name for name in sizes if name in set(founders)]
    alone = {name: sizes[name] for name in founders}
    table, found = find_artefacts(
        reader(founders), sites, alone, founders, founders, threads=threads
    )
    known = table[table.test == TESTS[0]].index.unique().to_numpy(np.int64)
    tables = [table]
    for name in sizes:
        if name not in alone and sizes[name] >= LEAST_SAMPLES:
            own = alone | {name: sizes[name]}
            more, others = find_artefacts(
                *(reader(list(own)), sites, own, founders, [name]),
                **{"known": known, "threads": threads},
            )
            tables.append(more)
            found += others
    some = [table for table in tables if len(table)]
    return (pd.concat(some) if some else table), found


@one_blas_thread
def find_artefacts(
    read: Reader,
    sites: pd.DataFrame,
    sizes: dict[str, int],
    reference: Sequence[str],
    tested: Sequence[str],
    known: np.ndarray | None = None,
    threads: int = 1,
) -> tuple[pd.DataFrame, list[CohortArtefacts]]:
    """Name the sites at which a cohort departs from what its samples' ancestry lets expect.

    Three tests of each site and cohort: frequency (the regression of genotypes on the cohort, given
    components), heterozygotes fewer than Hardy-Weinberg proportions at each sample's own
    frequencies, and missing calls given those of others. Each is made relative to the typical site
    of the cohort: its drift, inbreeding and rate of missing calls.

    Parameters
    ----------
    read : callable
        Genotypes int8 (last - first, n_samples) of the sites from `first` to `last`, -1 missing.
    sites : DataFrame
        `chrom`, `pos`, `id`, `ref`, `alt` of autosomal sites, in genome order, numbered from 0.
    sizes : dict
        Samples of each cohort, in the order of the columns that `read` gives.
    reference, tested : sequences of str
        A tested cohort is compared with the others of `reference`.
    known : int array, optional
        Sites whose frequency is wrong in one of `reference`, and tells nothing of others.

    Returns
    -------
    table : DataFrame
        `COLUMNS`, a row for each named site, cohort and test, by the site's number. `observed` and
        `expected` are the frequency of ALT, the share of heterozygotes, or that of missing calls;
        `statistic` is a standard normal deviate, of which `p` is the two-sided probability
        (one-sided for heterozygotes and missing calls).
    found : list of CohortArtefacts
        Of each tested cohort with LEAST_SAMPLES.
    """
    names, counts = list(sizes), np.array(list(sizes.values()))
    tested = [name for name in tested if sizes[name] >= LEAST_SAMPLES]
    empty = pd.DataFrame(columns=COLUMNS)
    if not tested or not len(sites):
        return empty, []
    label = np.repeat(np.arange(len(names)), counts)
    components = steady_components(read, len(sites), len(label), threads)
    weights, left, alone = _contrasts(components, label, names, reference, tested)
    sums = _sum_sites(read, len(sites), counts, components, weights, threads)
    results: dict[str, dict[str, Tested]] = {}
    others: dict[str, str] = {}
    own = dict.fromkeys(tested, False)
    for name in tested:
        k = names.index(name)
        results[name] = {"heterozygotes": _few_heterozygotes(sums, k)}
        compared = np.isin(names, [one for one in reference if one != name])
        others[name] = ""
        if counts[compared].sum() >= LEAST_SAMPLES:
            some = np.array(names)[compared].tolist()
            rest = "the other founders" if name in reference else "the founders"
            others[name] = f"cohort {some[0]}" if len(some) == 1 else rest
            frequency, own[name] = _frequencies(sums, k, counts, left[k], bool(alone[k]))
            if known is not None:
                frequency.p[known] = 1
            results[name]["frequency"] = frequency
            results[name]["missing"] = _missing_calls(sums, k, compared, counts)
    _blame(results, reference)
    n_tests = sum(map(len, results.values()))
    parts, found = [], []
    ambiguous = is_ambiguous(sites.ref, sites.alt)
    for name in tested:
        rows = []
        for test in TESTS:
            if test in results[name]:
                one = results[name][test]
                chosen = _named(one.p, n_tests)
                columns = one.rows(chosen)
                strand = (columns["looks_like"] == SWAPPED) & ambiguous[chosen]
                columns["looks_like"] = np.where(strand, OTHER_STRAND, columns["looks_like"])
                about = {"cohort": name, "other": others[name], "test": test}
                rows.append(sites.iloc[chosen][SITE].assign(**about, **columns)[COLUMNS])
        table = pd.concat(rows)
        named = {key: int(count) for key, count in table.looks_like.value_counts().items()}
        several = len(table.index.unique())
        named = dict(sorted(named.items(), key=lambda item: (-item[1], item[0])))
        lack = results[name]["heterozygotes"]
        missed = table.index[table.test == "missing"].to_numpy(np.int64)
        by_genotype = lack.excess[missed].sum() > BY_GENOTYPE * lack.variance[missed].sum() ** 0.5
        departs = set(named) - {ABSENT} or several >= MANY_MISSED * len(sites) or by_genotype
        found.append(
            CohortArtefacts(
                cohort=name,
                other=others[name],
                samples=sizes[name],
                own_population=own[name],
                sites=several,
                named=named,
                departs=bool(departs),
            )
        )
        parts.append(table)
    parts = [table for table in parts if len(table)]
    return (pd.concat(parts) if parts else empty), found


def _blame(results: dict[str, dict[str, Tested]], reference: Sequence[str]) -> None:
    """Of several reference cohorts, only the one whose frequency departs most can be wrong.

    It is among the others of each, so that all depart. Of two, nothing tells which one it is.
    """
    some = [name for name in reference if "frequency" in results.get(name, {})]
    if len(reference) > 2 and len(some) > 1:
        departs = np.stack([np.abs(results[name]["frequency"].statistic) for name in some])
        most = departs.argmax(axis=0)
        for k, name in enumerate(some):
            results[name]["frequency"].p[most != k] = 1


def steady_components(read: Reader, n_sites: int, n_samples: int, threads: int = 1) -> np.ndarray:
    """Components of ancestry that few sites do not make: float32 (n_samples, k), orthonormal.

    Sites at equal steps. Sites that stand out on a component are left out, and the components are
    made again: a cohort's artefacts else had an axis of their own.
    """
    k = min(MOST_COMPONENTS, n_samples // 10)
    count = min(n_sites, MOST_SITES, max(MOST_VALUES // n_samples, 1))
    if k < 1 or count < 10 * k:
        return np.zeros((n_samples, 0), np.float32)
    chosen = np.arange(count) * n_sites // count

    def standard(first: int, last: int) -> np.ndarray:
        begin, end = np.searchsorted(chosen, (first, last))
        return _standard(read(first, last)[chosen[begin:end] - first])

    values = np.concatenate(run_tasks(standard, chunks(n_sites, _chunk(n_samples)), threads))
    start = np.random.default_rng(1).standard_normal((n_samples, k + 4)).astype(np.float32)
    for _ in range(4):
        basis = start
        for _ in range(6):
            basis, _ = np.linalg.qr(values.T @ (values @ basis))
        small = values @ basis
        _, _, turn = np.linalg.svd(small, full_matrices=False)
        vectors = basis @ turn[:k].T
        loadings = values @ vectors
        spread = 1.4826 * np.median(np.abs(loadings), axis=0)
        kept = (np.abs(loadings) <= OUTLYING * spread).all(axis=1)
        if kept.all() or kept.sum() < 10 * k:
            break
        values = values[kept]
    return np.ascontiguousarray(vectors)


def _chunk(n_samples: int) -> int:
    return max(CHUNK_VALUES // n_samples, 1)


def _standard(genotypes: np.ndarray) -> np.ndarray:
    """Common sites, centred and scaled by their frequency, 0 where a call is missing: float32."""
    called = genotypes >= 0
    n = np.maximum(called.sum(axis=1), 1)
    p = np.where(called, genotypes, 0).sum(axis=1) / (2 * n)
    common = np.minimum(p, 1 - p) >= COMMON
    p = p[common].astype(np.float32)[:, None]
    values = (genotypes[common] - 2 * p) / np.sqrt(2 * p * (1 - p))
    values[~called[common]] = 0
    return values


def _contrasts(
    components: np.ndarray,
    label: np.ndarray,
    names: list[str],
    reference: Sequence[str],
    tested: Sequence[str],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of samples for each cohort: what its membership has beyond its ancestry.

    Returns
    -------
    weights : float32 array, (n_samples, n_cohorts)
        Among the cohort and `reference`; scaled so that the weighted sum of genotypes estimates the
        difference that the cohort makes. 0 for cohorts that are not tested.
    left : float64 array, (n_cohorts, n_cohorts)
        Variance of that estimate by the variance of a genotype: what samples of each cohort add.
    alone : bool array, (n_cohorts,)
        Ancestry explains the cohort, and the weights are those without components.
    """
    n, k = len(label), len(names)
    weights, left, alone = np.zeros((n, k), np.float32), np.zeros((k, k)), np.zeros(k, bool)
    of_reference = np.isin(label, [names.index(name) for name in reference])
    for c, name in enumerate(names):
        mine = label == c
        if name not in tested or not (of_reference & ~mine).any():
            continue
        among = of_reference | mine
        member = mine[among].astype(np.float64)
        centred = member - member.mean()
        design = np.column_stack([np.ones(among.sum()), components[among].astype(np.float64)])
        q, _ = np.linalg.qr(design)
        rest = member - q @ (q.T @ member)
        alone[c] = rest @ rest < LEAST_LEFT * (centred @ centred)
        if alone[c]:
            rest = centred
        weight = rest / (rest @ rest)
        weights[among, c] = weight
        left[c] = np.bincount(label[among], weight**2, k)
    return weights, left, alone


def _sum_sites(
    read: Reader,
    n_sites: int,
    sizes: np.ndarray,
    components: np.ndarray,
    weights: np.ndarray,
    threads: int,
) -> SiteSums:
    """One pass over the genotypes."""
    n, k = int(sizes.sum()), len(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    label = np.repeat(np.arange(k), sizes)
    member = (label[:, None] == np.arange(k)).astype(np.float32)
    # What ancestry adds within cohorts, whose own means are taken as they are.
    within = components - (member @ ((member.T @ components) / sizes[:, None].astype(np.float32)))
    q, r = np.linalg.qr(within.astype(np.float64))
    q = q[:, np.abs(np.diag(r)) > 1e-6].astype(np.float32)
    leverage = (q**2).sum(axis=1) + 1 / sizes[label]
    unbiased = (1 / (1 - np.minimum(leverage / 2, 0.5))).astype(np.float32)
    out = {name: np.zeros((n_sites, k)) for name in SiteSums.__dataclass_fields__}

    def add(first: int, last: int) -> None:
        genotypes = read(first, last)
        values = genotypes.astype(np.float32)
        called = np.broadcast_to(sizes, (last - first, k)).astype(np.float64)
        rows, columns = np.nonzero(genotypes < 0)
        if len(rows):
            values[rows, columns] = 0
            gone = np.bincount(rows * k + label[columns], minlength=(last - first) * k)
            called = called - gone.reshape(-1, k)
        alt = np.add.reduceat(values, starts, axis=1)
        hom = np.add.reduceat((genotypes == 2).view(np.int8), starts, axis=1, dtype=np.int32)
        mean = (alt / np.maximum(called, 1)).astype(np.float32)
        if len(rows):
            values[rows, columns] = mean[rows, label[columns]]
        fitted = np.repeat(mean, sizes, axis=1)
        if q.shape[1]:
            fitted += (values @ q) @ q.T
        np.clip(fitted, 0, 2, out=fitted)
        fitted *= 1 - fitted / 2  # 2 f (1 - f)
        fitted *= unbiased
        here = slice(first, last)
        out["called"][here], out["alt"][here], out["hom"][here] = called, alt, hom
        out["het"][here] = alt - 2 * hom
        out["contrast"][here] = values @ weights
        share = called / sizes
        out["expected_het"][here] = (fitted @ member) * share
        fitted *= fitted
        out["squared_het"][here] = (fitted @ member) * share

    run_tasks(add, chunks(n_sites, _chunk(n)), threads)
    return SiteSums(**out)


def _frequencies(
    sums: SiteSums, k: int, sizes: np.ndarray, left: np.ndarray, alone: bool
) -> tuple[Tested, bool]:
    """The test of frequencies; whether drift outweighs sampling."""
    called, some = sums.called[:, k], left > 0
    # Cohorts with few calls tell little. One without any tells nothing, nor do those beside it.
    with np.errstate(divide="ignore"):
        sampling = (sizes[some] / sums.called[:, some]) @ left[some] / 2
    usable = np.isfinite(sampling)
    difference = sums.contrast[:, k] / 2  # of frequencies
    p_own = sums.alt[:, k] / np.maximum(2 * called, 1)
    p_others = np.clip(p_own - difference, 0, 1)
    difference = p_own - p_others  # a frequency below 0 is ancestry, which is no line there
    # Halfway between what is seen and what is expected: neither a rare allele among few samples nor
    # one that they lack has too small a variance.
    step = difference / 2
    spread = sums.expected_het[:, k] / np.maximum(called, 1) / 2
    spread = spread + step * (2 * p_own - 1) - step**2
    middle = (p_own + p_others) / 2
    spread = np.maximum(spread, 1 / (4 * sizes.sum()))
    spread = np.minimum(spread, np.maximum(middle * (1 - middle), 1 / (4 * sizes.sum())))
    ratio = difference**2 / spread
    common = usable & (np.minimum(middle, 1 - middle) >= COMMON)
    drift = 0.0
    if common.sum() >= 100:
        relative = ratio[common] / sampling[common]
        inflation = max(np.median(relative) / 0.4549, np.quantile(relative, 0.75) / 1.3233)
        drift = max(inflation - 1, 0) * float(np.median(sampling[common]))
    own = bool(alone and drift > float(np.median(sampling[usable]))) if usable.any() else False
    variance = spread * (sampling + drift)
    statistic = np.where(usable, difference / np.sqrt(variance), 0)
    complement = np.abs(p_own - (1 - p_others))
    swapped = complement**2 <= 9 * variance
    swapped &= complement < np.abs(difference) / 2
    p = _two_sided(statistic)
    if own:
        p = np.where(swapped, p, 1.0)
    looks = np.where(swapped, SWAPPED, SHIFTED)
    return Tested(statistic, np.where(usable, p, 1.0), p_own, p_others, looks), own


def _few_heterozygotes(sums: SiteSums, k: int) -> Tested:
    """Homozygotes of the rarer allele beyond Hardy-Weinberg and the cohort's own inbreeding.

    Their number is taken as a multiple of a Poisson variable with the right mean and variance,
    which is exact for rare alleles.
    """
    from scipy.special import gammainc, ndtri

    called, expected_het = sums.called[:, k], sums.expected_het[:, k]
    alt, hom_alt = sums.alt[:, k], sums.hom[:, k]
    rare_is_alt = alt <= called
    rare = np.where(rare_is_alt, alt, 2 * called - alt)
    hom = np.where(rare_is_alt, hom_alt, called - hom_alt - sums.het[:, k])
    # Given the number of rare alleles, random mating makes at least these; ancestry adds to them.
    least = rare * np.maximum(rare - 1, 0) / np.maximum(2 * (2 * called - 1), 1)
    mean = np.maximum(np.maximum((rare - expected_het) / 2, least), 1e-12)
    common = (rare >= COMMON * 2 * called) & (called > 0)
    lack = 0.0
    if common.sum() >= 100:
        share = 1 - sums.het[common, k] / np.maximum(expected_het[common], 1e-9)
        lack = float(np.clip(np.median(share), 0, 1))
    mean = mean + lack * expected_het / 2
    scale = np.clip(sums.squared_het[:, k] / 4 / mean, 0.05, 1)
    scale = np.maximum(scale, lack)
    observed = np.maximum((hom - 0.5) / scale + 0.5, 1e-9)
    p = np.where(hom > mean, gammainc(observed, mean / scale), 1.0)
    p = np.clip(p, 1e-300, 1.0)
    statistic = -ndtri(np.minimum(p, 1 - 1e-12))
    factor = _inflation(statistic, common & (hom > 0))
    if factor > 1:
        statistic = statistic / factor
        p = _one_sided(statistic)
    n = np.maximum(called, 1)
    looks = np.full(len(p), DEFICIT, object)
    p = np.where((called >= LEAST_SAMPLES) & (hom > mean), p, 1.0)
    rates = sums.het[:, k] / n, expected_het * (1 - lack) / n
    return Tested(-statistic, p, *rates, looks, hom - mean, mean * scale)


def _missing_calls(sums: SiteSums, k: int, others: np.ndarray, sizes: np.ndarray) -> Tested:
    """More missing calls than at the cohort's typical site, and than others' lets expect.

    How hard a site is to call has a gamma distribution, and calls of all cohorts depend on it: the
    number missing here, given those missing elsewhere, is negative binomial.
    """
    from scipy.special import betainc, ndtri

    own = sizes[k] - sums.called[:, k]
    size_others = int(sizes[others].sum())
    elsewhere = size_others - sums.called[:, others].sum(axis=1)
    typical, typical_others = _trimmed(own), _trimmed(elsewhere)
    shape = _gamma_shape(own, typical)
    typical = max(typical, 0.002 * sizes[k])
    difficulty = (shape + elsewhere) / (shape + typical_others)
    mean = typical * np.maximum(difficulty, 1)
    # Negative binomial with this mean and the shape of what is known.
    known = shape + elsewhere
    chance = mean / (known + mean)
    p = np.where(own > mean, betainc(np.maximum(own, 1), known, chance), 1.0)
    p = np.clip(p, 1e-300, 1.0)
    statistic = -ndtri(np.minimum(p, 1 - 1e-12))
    whole = own >= sizes[k]  # absent from its file, which is said elsewhere
    p = np.where(whole, 1.0, p)
    looks = np.full(len(p), ABSENT, object)
    return Tested(statistic, p, own / sizes[k], mean / sizes[k], looks)


def _trimmed(counts: np.ndarray) -> float:
    """Mean of counts of which the largest tenth is cut to what begins it."""
    return float(np.minimum(counts, max(np.quantile(counts, 0.9), 1)).mean())


def _gamma_shape(counts: np.ndarray, mean: float) -> float:
    """Shape of the gamma distribution of how hard sites are to call, from the typical ones."""
    cut = np.minimum(counts, max(np.quantile(counts, 0.98), 1))
    beyond = float(cut.var()) - float(cut.mean())
    return float(np.clip(cut.mean() ** 2 / max(beyond, 1e-9), 0.5, 50.0))


def _inflation(statistic: np.ndarray, usable: np.ndarray) -> float:
    """Spread of typical deviates above the median."""
    if usable.sum() < 100:
        return 1.0
    some = statistic[usable]
    return float((np.quantile(some, 0.9) - max(np.quantile(some, 0.5), 0)) / 1.2816)


def _two_sided(statistic: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.clip(2 * ndtr(-np.abs(statistic)), 1e-300, 1.0)


def _one_sided(statistic: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.clip(ndtr(-statistic), 1e-300, 1.0)


def _named(p: np.ndarray, n_tests: int) -> np.ndarray:
    """Sites to name in one of so many tests of cohorts; none unless enough places pass."""
    from scipy.special import pdtri

    passing = np.flatnonzero(p < PASSING)
    # The mean of a Poisson number that is at most so many with this probability.
    places = 1 + int((np.diff(passing) > APART).sum())
    most = pdtri(max(places - 1, 0), 1 - LEVEL / n_tests)
    if len(passing) < LEAST_PLACES or places < LEAST_PLACES or most < INFLATION * PASSING * len(p):
        return np.empty(0, np.int64)
    order = np.argsort(p, kind="stable")
    limits = NAMED * np.arange(1, len(p) + 1) / len(p)
    last = np.flatnonzero(p[order] <= limits).max(initial=-1)
    return np.sort(order[: last + 1])
