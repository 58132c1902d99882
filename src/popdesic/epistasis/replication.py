"""Some people discover, others confirm (`epistasis.replication`): halves, or by who arrives.

The scan, its permutations and its p-values see those who discover alone. The leads of its best loci
are then tested in the people it never saw, so that nothing was chosen with the data that tests it.
This protects from chance and from p-values that are too small; a phantom of an untyped causal site,
or population structure, may be there in both.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import read_table, write_table
from ..io.bed import open_bed, read_bim, read_fam
from ..io.genotypes import unpack_bed
from .discovery import divide_people
from .finished import Scans
from .lead_cohorts import lead_direction, lead_effect, lead_scores
from .p_values import p_of_hits
from .phantoms import conditional_test
from .phenotype import scan_phenotype
from .reorder import sites_of_hits
from .scan_data import NAMES
from .set_cohorts import combine_effects
from .significance import hit_tables

#: Loci of each scan, the best, whose leads are tested in the people who confirm.
MOST_TESTED = 20
#: Columns of a lead's effect in the cohorts of those people together.
TOGETHER = ["cohorts", "effect", "se", "p", "q", "p_q", "i2"]
BY_COHORT = ["scan", "locus", "rank", "cohort", "n_controls", "n_cases", "effect", "se", "p"]


def replicate_hits(
    tables: dict[int, tuple[Path, Path]],
    prefixes: list[Path],
    samples: pd.DataFrame,
    classes: np.ndarray,
    out: Path,
    by_cohort_out: Path,
    *,
    divided: tuple[np.ndarray, np.ndarray],
    strata: str,
    tests: dict[int, int],
) -> dict[str, int]:
    """Test the leads of the best loci in the people who did not discover them.

    Parameters
    ----------
    tables : dict
        Hits and loci of each order.
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel.
    samples, classes
        The sample sheet and everybody's classes, as for `divide_people`.
    out : Path
        One row per lead: `scan`, `locus`, `rank`, the sites, `p_discovery` (`p_values.p_of_hits`),
        people (`n_controls`, `n_cases`), `lr_p` (strata as covariates) and `p_replication`, lr_p
        times the leads of this scan; of the direction of those who discover (`lead_cohorts`):
        `cohorts` that could be tested, fixed `effect`, `se`, one-sided `p_effect`, Cochran's `q`,
        `p_q` and `i2`; `controls`, `cases`: the contingency table.
    by_cohort_out : Path
        One row per lead and cohort that confirms: `scan`, `locus`, `rank`, `cohort`,
        `n_controls`, `n_cases`, `effect`, `se`, one-sided `p`.
    divided : two bool arrays
        Of `divide_people`.
    tests : dict
        Tests of the scan of each order.

    Returns
    -------
    dict
        Numbers of people who confirm, of leads, and of those with p_replication <= 0.05.
    """
    names = [read_fam(prefix)["sample"].tolist() for prefix in prefixes]
    place = pd.Series(np.arange(len(samples)), samples["sample"])
    rows = place.loc[[name for group in names for name in group]].to_numpy()
    classes = np.asarray(classes)[rows]
    first, rest = (part[rows] for part in divided)
    kept = np.concatenate([np.flatnonzero(rest & (classes == c)) for c in (0, 1)])
    cohort = samples["cohort"].to_numpy()[rows]
    case = classes[kept] == 1
    stratum = samples[strata].iloc[rows] if strata != "none" else pd.Series("all", rows)
    columns = pd.get_dummies(stratum.reset_index(drop=True)).to_numpy(float)[:, 1:]
    further = columns[kept]
    beds = [(open_bed(prefix), len(group)) for prefix, group in zip(prefixes, names, strict=True)]
    panel = read_bim(prefixes[0]).reset_index(drop=True)
    found: list[dict] = []
    by_cohort: list[dict] = []
    for order, (hits_path, loci_path) in tables.items():
        loci = read_table(loci_path).head(MOST_TESTED)
        if not len(loci):
            continue
        hits = read_table(hits_path)
        leads = hits.iloc[loci["rank"].astype(int) - 1].reset_index(drop=True)
        p_discovery = p_of_hits(leads, tests[order])
        for k, sites in enumerate(sites_of_hits(leads, panel, order)):
            genotypes = np.concatenate([unpack_bed(bed[sites], n) for bed, n in beds], axis=1)
            discovered = genotypes[:, first], classes[first] == 1, columns[first]
            direction = lead_direction(*lead_scores(*discovered))
            genotypes = np.ascontiguousarray(genotypes[:, kept])
            p, _ = conditional_test(genotypes, np.zeros((0, len(kept)), np.int8), case, further)
            table = hit_tables(genotypes, int((~case).sum()))
            row = {"scan": NAMES[order], "locus": loci["locus"][k], "rank": loci["rank"][k]}
            row |= {f"{name}{s}": leads[f"{name}{s}"][k] for s in range(1, order + 1)
                    for name in ("id", "chrom", "pos")}  # fmt: skip
            row |= {"p_discovery": p_discovery[k]}
            row |= {"n_controls": int(table[0].sum()), "n_cases": int(table[1].sum())}
            row |= {"lr_p": p, "p_replication": min(1.0, p * len(leads))}
            effects = []
            for name in sorted(set(cohort[kept])):
                own = cohort[kept] == name
                scores = lead_scores(genotypes[:, own], case[own], further[own])
                effects.append(lead_effect(*scores, direction))
                sizes = {"n_controls": int((own & ~case).sum()), "n_cases": int((own & case).sum())}
                lead = {one: row[one] for one in ("scan", "locus", "rank")}
                by_cohort.append(lead | {"cohort": name} | sizes | vars(effects[-1]))
            together = combine_effects(effects)
            row |= {"p_effect" if one == "p" else one: together[one] for one in TOGETHER}
            for name, counts in zip(("controls", "cases"), table, strict=True):
                row[name] = ",".join(map(str, counts.ravel()))
            found.append(row)
    write_table(out, pd.DataFrame(found))
    write_table(by_cohort_out, pd.DataFrame(by_cohort, columns=BY_COHORT))
    confirmed = sum(row["p_replication"] <= 0.05 for row in found)
    return {"people": len(kept), "leads": len(found), "confirmed": confirmed}


def replicate_scans(
    scans: Scans,
    prefixes: list[Path],
    samples: pd.DataFrame,
    phenotype: dict[str, str],
    *,
    source: str,
    how: dict,
) -> dict[str, int]:
    """`replicate_hits` of all orders, to replication.tsv and replication_by_cohort.tsv.

    Parameters
    ----------
    samples, source
        The sample sheet with this phenotype, and its path.
    phenotype : dict
        `transform` and `score` of `phenotype.scan_phenotype`.
    how : dict
        Arguments of `divide_people`.
    """
    orders = list(scans.orders)
    classes = scan_phenotype(samples, source=source, orders=orders, **phenotype).classes
    return replicate_hits(
        {order: (scans.hits(order), scans.loci(order)) for order in orders},
        prefixes,
        samples,
        classes,
        scans.folder / "replication.tsv",
        scans.folder / "replication_by_cohort.tsv",
        divided=divide_people(samples, classes, **how),
        strata=how["strata"],
        tests=scans.tests,
    )
