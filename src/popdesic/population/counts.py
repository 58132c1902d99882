"""Counts of one cohort: alleles by population and site, heterozygosity by sample.

They are all that statistics of populations read of a cohort, and they never change when another
cohort arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..cohort.panel import load_panel
from ..cohort.planes import load_planes, study_ploidies
from ..cohort.samples import UNKNOWN, read_samples
from ..core.files import content_key, digest
from ..core.row import renew_cohorts
from ..core.tables import read_table, write_npz, write_table
from ..engine.backend import Backend
from ..engine.needs import counting_bytes
from ..io.layers import columns_there, layers_each, most_layers
from ..relatives.kinship import kinship_tiles, related_newcomers
from .count_groups import count_groups
from .further_sites import FurtherSites
from .group_counts import VALUE_BITS, fixed_point
from .options import used_sites
from .runs import (
    RunLimits,
    SiteDensity,
    count_in_runs,
    fitting_windows,
    runs_of_words,
    runs_table,
    search_density,
    with_runs,
)

#: Endings of the files of a cohort's counts: by population, by sample, runs if they are sought.
ENDINGS = (".npz", ".tsv", ".runs.tsv")
#: A sample without heterozygotes is pseudo-haploid if at least this many were expected: in a
#: diploid sample the chance of that is below exp(-20).
LEAST_EXPECTED_HETS = 20.0


def count_cohorts(
    folders: Mapping[str, Path],
    out: Path,
    *,
    panel: Path,
    sheet: Path,
    labels: Mapping[str, str],
    kinship: KinshipFiles | None,
    rows: Mapping[str, Path],
    further: Mapping[str, FurtherSites],
    runs: RunLimits | None,
    code: str,
    backend: Callable[[int], Backend],
    threads: int = 1,
    **options: Any,
) -> dict[str, Any]:
    """Count cohorts, as `count_cohort` does, of which something has changed; keep other counts.

    Parameters
    ----------
    folders : dict
        Folder of the planes of each cohort.
    out : Path
        ``row.json`` in the folder of the counts (ENDINGS), which lists their keys.
    labels : dict
        Digest of each cohort's labels in the sheet.
    rows : dict
        ``compare/tiles/{cohort}/row.json`` of newcomer cohorts, where relatives are left out.
    further : dict
        Genotypes of each cohort beside the panel; empty if no site is counted there.
    code : str
        Digest of the code that counts.
    kinship : KinshipFiles, optional
        Of a founder cohort.
    runs, backend, threads, options
        See `count_cohort`.

    Returns
    -------
    dict
        Counts for the log.
    """

    def own_kinship(cohort: str) -> KinshipFiles | None:
        return kinship and kinship._replace(row=rows.get(cohort))

    keys = {}
    for cohort, folder in folders.items():
        own = own_kinship(cohort)
        relatives = [path for path in own[:2] if path] if own else []
        files = [folder / "planes.npy", folder / "planes.json", panel, *relatives]
        decided = [cohort, labels[cohort], runs and astuple(runs), own and own.max_kinship, code]
        decided += sorted(options.items())
        beside = further[cohort].key if cohort in further else ""
        keys[cohort] = digest(repr([*decided, *map(content_key, files), beside]))

    def count(cohort: str, outputs: list[Path]) -> dict[str, Any]:
        return count_cohort(
            *(folders[cohort], panel, sheet, outputs),
            cohort=cohort,
            runs=runs,
            backend=backend,
            kinship=own_kinship(cohort),
            further=further.get(cohort),
            threads=threads,
            **options,
        )

    made = renew_cohorts(out, ENDINGS if runs else ENDINGS[:2], keys, count)
    about: dict[str, Any] = {"cohorts kept": len(keys) - len(made)}
    for cohort, found in made.items():
        about |= {f"{cohort}: {name}": value for name, value in found.items()}
    return about


class KinshipFiles(NamedTuple):
    """What says which samples of a cohort are relatives of others.

    Attributes
    ----------
    unrelated : Path
        `panel/unrelated.tsv`.
    row : Path, optional
        Of a newcomer cohort, `compare/tiles/{cohort}/row.json`.
    max_kinship : float
        `close_kinship`.
    """

    unrelated: Path
    row: Path | None = None
    max_kinship: float = 0.0

    def relatives(self, names: list[str]) -> set[str]:
        """Samples of a cohort that are left out of their populations as relatives of others.

        Of founders those who do not define the axes of the PCA; of newcomers `related_newcomers`.
        """
        table = read_table(self.unrelated)
        if self.row is None:
            return set(names) & set(table["sample"][table.unrelated != "yes"])
        tiles = kinship_tiles([self.row], closed=False)
        return related_newcomers(tiles, names, table, self.max_kinship)


def count_cohort(
    folder: Path,
    panel: Path,
    sheet: Path,
    outputs: list[Path],
    *,
    cohort: str,
    column: str,
    x_contigs: list[str],
    runs: RunLimits | None,
    backend: Callable[[int], Backend],
    kinship: KinshipFiles | None = None,
    further: FurtherSites | None = None,
    threads: int = 1,
) -> dict[str, Any]:
    """Count the genotypes of a cohort by population and site.

    Parameters
    ----------
    folder : Path
        `results/cohorts/{cohort}` with `planes.npy` and `planes.json`. Imputed genotypes do not
        count: they are masked.
    panel, sheet : Path
        `panel/sites.tsv`; the sample sheet.
    column : str
        Column of the populations; samples without a label count for themselves alone.
    x_contigs : list of str
        Contigs whose sites do not count: males have one copy.
    runs : RunLimits, optional
        Without it no runs of homozygosity are sought. The CPU seeks them, whatever counts. Without
        `min_sites` each sample has its own (`run_windows`).
    backend : function
        Given the device memory that the counts need, returns the backend that counts. The bytes are
        the same from every backend.
    outputs : list of Path
        First .npz: `populations` and `ploidy` of the groups of samples, their `sizes`, and
        `counts`, uint16 or uint32 (n_sites, n_groups, 3): samples of 0, 1, 2 ALT alleles; the rest
        of a group is missing. `further`: the same at sites beside the panel. `in_runs` (n_sites,
        n_groups): samples in a run. `density`: `runs.SiteDensity`. Then by sample: `population`,
        `relative` (yes: does not count), `ploidy` (1: pseudo-haploid, or haploid by the sheet's
        column `ploidy`), called and heterozygous sites, the
        heterozygosity that Hardy-Weinberg proportions with the panel's allele frequencies give
        (`expected`, at the sample's called sites, Nei's correction), F = 1 - observed / expected;
        runs of homozygosity, and `roh_min_sites` where each has its own. Then runs of homozygosity,
        if sought.
    kinship : KinshipFiles, optional
        Relatives count for themselves alone. Without it everybody counts.
    further : FurtherSites, optional
        Sites beside the panel, where genotypes are counted by population alone.
    threads : int
        CPU threads that seek runs.

    Returns
    -------
    dict
        Counts for the log.
    """
    sites, _ = load_panel(panel)
    planes, described = load_planes(folder)
    names = list(described["samples"])
    table = read_samples(sheet)
    labels = labels_of(table, names, column)
    declared = np.array(labels_of(table, names, "ploidy")) == "1"
    kinds = study_ploidies(described)
    layers = most_layers(kinds)
    # Of several ploidies, one that tells which alleles a layer has.
    polyploid = 0 if kinds == [2] else max(kinds) | any(kind % 2 for kind in kinds)
    relatives = kinship.relatives(names) if kinship else set()
    counts_out, samples_out, *runs_out = outputs
    counted_as = ["" if n in relatives else x for n, x in zip(names, labels, strict=True)]
    n_bits = 64 * planes.words.shape[2]
    used = used_sites(sites, x_contigs)
    mask = np.packbits(np.pad(used, (0, n_bits - len(used))), bitorder="little").view(np.uint64)
    expected = expected_heterozygosity(sites.af.to_numpy(), sites.n_called.to_numpy())
    # Integers, so that sums over the sites of a sample do not depend on their order.
    values = fixed_point(np.pad(np.where(used, expected, 0.0), (0, n_bits - len(expected))))
    in_all = values.sum()
    known = sorted(set(counted_as) - {""})
    number = {name: k for k, name in enumerate(known)}
    label = np.array([number.get(name, -1) for name in counted_as], np.int64)
    # Of polyploids a row of the planes is a layer: one of two alleles, or of one if p is odd.
    label, declared = np.tile(label, layers), np.tile(declared, layers)
    if "each" in described:
        there = columns_there(layers_each(described["each"], kinds), layers)
        label = np.where(there, label, -1)
    group = np.empty(len(label), np.int64)
    found = [np.empty((0, 5), np.int64)]
    windows = None if runs is None or runs.min_sites else np.zeros((len(names), 2), np.int64)
    n_founders = int(sites.n_called.max()) if len(sites) else 0

    def group_part(begin: int, words: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Groups of a part of the samples: 2 label + ploidy - 1; its runs as well."""
        end = begin + len(words)
        ploidy = 2 - (_is_haploid(sums, in_all) | declared[begin:end]).astype(np.int64)
        if polyploid:
            ploidy[:] = 2 - polyploid % 2
        own = label[begin:end]
        group[begin:end] = np.where(own < 0, -1, 2 * own + ploidy - 1)
        if runs is not None:
            if windows is not None:
                n = max(n_founders, len(names))
                windows[begin:end] = run_windows(sums, in_all, int(used.sum()), n)
            own_windows = None if windows is None else windows[begin:end]
            part = runs_of_words(words, mask, ploidy, sites, runs, threads, own_windows)
            part[:, 0] += begin
            found.append(part)
        return group[begin:end]

    need = counting_bytes(planes.words.shape, 2 * len(known))
    device = backend(need)
    # A genotype is read once: everything is counted of one part of the samples, then of the next.
    counted = count_groups(
        device, planes.words, mask, values, len(sites), group_part, max(2 * len(known), 1)
    )
    sums = counted.sums[: len(names)]
    called, hets = sums[:, 0], sums[:, 1]
    of_sample = np.ldexp((in_all - sums[:, 2]).astype(np.float64), -VALUE_BITS)
    haploid = _is_haploid(sums, in_all) | declared[: len(names)]
    if polyploid:  # what follows from two alleles
        haploid[:], hets = True, np.full(len(names), np.nan)
        of_sample = np.full(len(names), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        inbreeding = np.where((of_sample > 0) & ~haploid, 1 - hets / of_sample, np.nan)
        observed = np.where((called > 0) & ~haploid, hets / called, np.nan)
    table = pd.DataFrame(
        {
            "sample": names,
            "cohort": cohort,
            "population": [label or "NA" for label in labels],
            "relative": ["yes" if name in relatives else "no" for name in names],
            "ploidy": described.get("each", polyploid or 2 - haploid.astype(np.int64)),
            "called": called,
            "heterozygous": hets,
            "heterozygosity": observed,
            "expected": of_sample,
            "f": inbreeding,
        }
    )
    about: dict[str, Any] = {
        "device": device.describe(),
        "samples": len(names),
        "sites": int(used.sum()),
        "groups": len(counted.groups),
        "relatives left out of populations": len(relatives),
        "pseudo-haploid samples": 0 if polyploid else int(haploid.sum()),
    }
    place = np.full(2 * len(known) + 1, -1, np.int64)  # its last entry is that of no group
    counts_of = partial(np.bincount, 1 + group[: len(names)], minlength=2 * len(known) + 1)
    of_groups = 1 + counted.groups  # before them those of no group
    alleles = {}
    if "each" in described:
        alleles["alleles"] = counts_of(np.array(described["each"]))[of_groups].astype(np.int64)
    place[counted.groups] = np.arange(len(counted.groups))
    beside = np.zeros((0, *counted.counts.shape[1:]), counted.counts.dtype)
    if further is not None:
        options = len(counted.groups), x_contigs, counted.counts.dtype, threads
        beside = further.count(sites, names, place[group[: len(names)]], *options)
        about["further sites"] = len(beside)
    density = SiteDensity(np.nan, np.nan, np.nan)
    in_runs = np.zeros((0, len(counted.groups)), counted.counts.dtype)
    if runs is not None and runs_out:
        all_runs = np.concatenate(found)
        if windows is not None:
            own = windows[~haploid]
            typical = np.sort(own, axis=0)[len(own) // 2] if len(own) else (len(sites) + 1, 1)
            runs = runs.with_window(*map(int, typical))
            table["roh_min_sites"] = pd.array(windows[:, 0], "Int64")
            table.loc[haploid, "roh_min_sites"] = pd.NA
        density = search_density(sites, used, runs)
        table = with_runs(table, all_runs, sites, used, runs, density)
        in_runs = count_in_runs(all_runs, place[group], len(counted.groups), len(sites))
        about["runs of homozygosity"] = len(all_runs)
        about |= {f"runs: {name}": value for name, value in asdict(density).items()}
        write_table(runs_out[0], runs_table(all_runs, table, sites))
    write_npz(
        counts_out,
        populations=np.array([known[k // 2] for k in counted.groups], dtype=np.str_),
        ploidy=np.full(len(counted.groups), polyploid) if polyploid else 1 + counted.groups % 2,
        sizes=counts_of()[of_groups],
        counts=counted.counts,
        further=beside,
        in_runs=in_runs.astype(counted.counts.dtype),
        density=np.array(astuple(density)),
        **alleles,
    )
    write_table(samples_out, table)
    return about


def run_windows(sums: np.ndarray, in_all: np.int64, n_sites: int, n_samples: int) -> np.ndarray:
    """`runs.fitting_windows` by the samples' own heterozygosity: int64 (n_samples, 2).

    So they fit in every population, whatever its diversity. Inbreeding lowers heterozygosity too,
    which makes windows longer than they need be. Half of the heterozygosity expected by the
    frequencies of the panel is the least that is taken: inbred lines have hardly any of their own.

    Parameters
    ----------
    sums, in_all
        As `_is_haploid` has them.
    n_sites, n_samples : int
        Sites that count, and samples of the founders or of the cohort, whichever are more.
    """
    expected = np.ldexp((in_all - sums[:, 2]).astype(np.float64), -VALUE_BITS)
    hets = np.maximum(sums[:, 1], 0.5 * expected) / max(n_sites, 1)
    return np.column_stack(fitting_windows(hets, n_sites, n_samples))


def _is_haploid(sums: np.ndarray, in_all: np.int64) -> np.ndarray:
    """Samples without a heterozygote where enough were expected: bool (n_samples,).

    sums: as `GroupCounts.sums`; in_all: sum of the values of all sites.
    """
    least = round(LEAST_EXPECTED_HETS * 2**VALUE_BITS)
    return (sums[:, 1] == 0) & (in_all - sums[:, 2] >= least)


def expected_heterozygosity(af: np.ndarray, n_called: np.ndarray) -> np.ndarray:
    """Heterozygosity in Hardy-Weinberg proportions, unbiased (Nei 1978): float64 (n_sites,).

    2 p (1 - p) · 2 n / (2 n - 1), n the founders called, as `plink1.9 --het small-sample` has it.
    The panel's table has six digits of p; the count of ALT alleles behind it is an integer.
    """
    alleles = 2.0 * n_called
    alt = np.rint(af * alleles)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(alleles > 1, 2 * alt * (alleles - alt) / (alleles * (alleles - 1)), 0.0)


def labels_of(table: pd.DataFrame, names: list[str], column: str) -> list[str]:
    """Population of each sample of a file; empty where unknown."""
    if column not in table:
        return [""] * len(names)
    known = dict(zip(table["sample"], table[column], strict=True))
    return ["" if known.get(name, "") in UNKNOWN else known[name] for name in names]
