"""Merge the founders' site tables: the union of the sites that every founder can speak about.

A founder speaks about a site that its file lists, and about one that it lacks where its mask, its
reference blocks or the user say that its samples are homozygous reference there. Without any of
these an absent site is missing, so that the sites of the panel are those that all files list.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.sites import canonical_contig, is_ambiguous
from .absent import (
    COUNTS,
    MAX_ABSENT,
    MIN_SITES,
    UNSTATED,
    Absent,
    Coverage,
    counts_at,
    frequency_of,
    has_rare,
    kept_coverage,
    lists_variants_only,
    measure_lack,
    refuse_lack,
    refuse_outside,
    strands_in_doubt,
)
from .call_rates import call_rate_bound
from .fixed_sites import has_fixed, refuse_lost_founder
from .match import (
    ALLELE_LETTER,
    ALLELE_SIZE,
    COMPLEMENT,
    MIN_FREQUENCY_SAMPLES,
    Matched,
    SitePositions,
    allele_sets,
    find_repeated,
    require_one_build,
)
from .panel_steps import PanelStep

logger = logging.getLogger("popdesic")

SITE = ["chrom", "pos", "ref", "alt"]
#: Columns of which the lowest value of all founders counts.
LEAST = ["call_rate_bound", "hwe_p_min"]
#: Most founders that a sentence names.
MOST_NAMED = 5


@dataclass
class _Founder:
    """A founder that was added: how it reads absent sites, and which it lists.

    `variants_only`: whether its file lists variant sites alone. `in_doubt`: whether it has sites on
    both strands (`absent.strands_in_doubt`). `has_fixed`: whether it lists sites fixed for ALT.
    `listed`: bits, one for each site
    that the union had when the founder was added, the first in the lowest bit.
    """

    cohort: str
    n_samples: int
    n_sites: int
    coverage: Coverage | None
    variants_only: bool = False
    in_doubt: bool = False
    has_fixed: bool = False
    listed: np.ndarray | None = None

    def lists(self, n_sites: int) -> np.ndarray:
        """Whether it lists each site of the union: bool (n_sites,)."""
        assert self.listed is not None
        bits = np.unpackbits(self.listed, bitorder="little")[:n_sites].astype(bool)
        return np.pad(bits, (0, n_sites - len(bits)))

    def call_rate_bound(self, missing: np.ndarray) -> np.ndarray:
        """`call_rates.call_rate_bound` of its samples; of polyploids layers are counted."""
        layers = self.coverage.layers if self.coverage else 1
        return call_rate_bound(missing // layers, self.n_samples // layers)


class Union:
    """The founders' sites, added founder by founder.

    Cohorts that are read as a batch are merged in the same way (`batch.py`).

    Attributes
    ----------
    steps : list of PanelStep
        What happened to the sites of each founder.
    flipped : list of str
        Founders that have sites on another strand than those added before.
    """

    #: What an error calls one of them.
    kind = "founder"

    def __init__(
        self,
        site_tables: dict[str, Path],
        genotypes: dict[str, tuple[Path, Path]],
        absent: dict[str, Absent],
    ):
        """`genotypes`: stem of the raw genotypes and sample table; both dictionaries by founder."""
        self.steps: list[PanelStep] = []
        self._tables, self._genotypes, self._absent = site_tables, genotypes, absent
        self._founders: list[_Founder] = []
        self._places = SitePositions()
        #: Founders with sites on another strand than those before, and frequency before the first.
        self.flipped: list[str] = []
        self._told: np.ndarray | None = None
        self._names: dict[str, str] = {}

    def add(self, cohort: str, table: pd.DataFrame) -> None:
        """Add the sites of the next founder: `SITE`, `COUNTS`, `LEAST`, of the first also `id`.

        Raises
        ------
        UserError
            Its alleles show another genome build, or absent sites cannot be read as REF.
        """
        self.steps.append(PanelStep("founder", cohort, len(table)))
        table = self._with_one_spelling(table)
        founder = self._founder(cohort, table)
        if not self._founders:
            self._begin(founder, table)
        elif self._is_first(founder, table):
            self._add_same(founder, table)
        else:
            self._join(founder, table)
        self._founders.append(founder)

    def _named(self, founders: Sequence[_Founder]) -> str:
        """Some of the founders, of many the first ones, in words."""
        names = [one.cohort for one in founders]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"{self.kind} {', '.join(names[:MOST_NAMED])}{more}"

    def samples_of(self, cohorts: list[str]) -> int:
        """Samples of some of the founders."""
        return sum(one.n_samples for one in self._founders if one.cohort in cohorts)

    def _is_first(self, founder: _Founder, table: pd.DataFrame) -> bool:
        """Whether a table has the sites of the first founder, row by row, and no others came."""
        if self._row is None or founder.in_doubt:
            return False
        return all(table[name].equals(self._first[name]) for name in SITE)

    def finished(self, exclude_contigs: list[str]) -> pd.DataFrame:
        """The sites that all founders speak about, with pooled counts.

        Returns
        -------
        DataFrame
            `SITE`, `id`, `COUNTS` and `LEAST` (the lowest of all founders).

        Raises
        ------
        UserError
            A founder's file lists variant sites alone, or sites by frequency, and lacks others'; or
            absent sites would be read as REF although they are fixed for ALT.
        """
        sites = self.shared(exclude_contigs)
        # Where no founder knows both alleles, REF may be any of two, and absent is neither.
        untold = (~self._paired & (self._filled > 0))[~self._lost]
        one_allele = sites.alt.isin([".", "0"]).to_numpy() | untold
        if one_allele.any():
            self.steps.append(PanelStep("one_allele", "founders", int((~one_allele).sum())))
            sites = sites[~one_allele]
        return sites

    def shared(self, exclude_contigs: list[str]) -> pd.DataFrame:
        """`finished`, with sites of which nobody knows both alleles."""
        self._refuse_untold(exclude_contigs)
        sites = self._sites[~self._lost]
        if self._row is None:  # some file lacks sites of another
            allowed = ~sites.chrom.isin(exclude_contigs).to_numpy()
            self._refuse_lost(sites[allowed], self._filled[~self._lost][allowed])
        return sites

    def _with_one_spelling(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with contigs as they were first spelt: `chr1` and `1` are the same."""
        names = {
            one: self._names.setdefault(canonical_contig(one), one) for one in table.chrom.unique()
        }
        if all(one == spelt for one, spelt in names.items()):
            return table
        return table.assign(chrom=table.chrom.map(names))

    def _founder(self, cohort: str, table: pd.DataFrame) -> _Founder:
        n_samples = int(table[COUNTS].iloc[0].sum()) if len(table) else 0
        founder = _Founder(cohort, n_samples, len(table), None)
        if cohort not in self._genotypes:
            return founder
        raw, samples = self._genotypes[cohort]
        absent = self._absent.get(cohort, UNSTATED)
        founder.coverage = kept_coverage(raw, samples, absent)
        founder.variants_only = lists_variants_only(raw, len(table))
        founder.in_doubt = strands_in_doubt(raw)
        founder.has_fixed = has_fixed(table)
        return founder

    def _begin(self, founder: _Founder, table: pd.DataFrame) -> None:
        repeated = find_repeated(self._places, table)
        self._count_repeated(repeated, founder.cohort)
        self._first = table[SITE]
        #: Row of each site in the first founder's table; None once other sites were added.
        self._row: np.ndarray | None = np.flatnonzero(~repeated)
        sites = table[~repeated].reset_index(drop=True)
        self._sites = sites
        self._lost = self._in_doubt(founder, sites)
        if self._lost.any():
            self.steps.append(PanelStep("doubtful", founder.cohort, int(self._lost.sum())))
        self._listed = np.ones(len(sites), np.int32)
        founder.listed = _bits(np.ones(len(sites), bool))
        #: Whether a founder knows both alleles, and genotypes that were read as REF where absent.
        self._paired = _knows_both(sites)
        self._filled = np.zeros(len(sites), np.int64)

    def _in_doubt(self, founder: _Founder, sites: pd.DataFrame) -> np.ndarray:
        """A/T and C/G sites of which nothing tells the founder's strand: bool (n_sites,)."""
        if not founder.in_doubt:
            return np.zeros(len(sites), bool)
        return is_ambiguous(sites.ref, sites.alt)

    def _frequency(self) -> np.ndarray:
        """ALT frequency among the founders that are on one strand; NaN where few are called.

        Whoever is on other strands is compared with these alone, so that their order does not
        matter.
        """
        if self._told is None:
            af, called = frequency_of(self._sites[COUNTS].to_numpy(np.int64))
            self._told = np.where(called >= MIN_FREQUENCY_SAMPLES, af, np.nan)
        return np.pad(self._told, (0, len(self._sites) - len(self._told)), constant_values=np.nan)

    def _add_same(self, founder: _Founder, table: pd.DataFrame) -> None:
        """`_join` of a founder whose sites are those of the first, row by row: quick."""
        found = {one.what: one.sites for one in self.steps if one.subject == self.steps[0].subject}
        found |= {"shared": int((~self._lost).sum()), "turned": 0, "ambiguous": 0}
        self.steps[-1:] = [PanelStep(what, founder.cohort, count) for what, count in found.items()]
        other = table.iloc[self._row].reset_index(drop=True)
        for name in COUNTS:
            self._sites[name] += other[name]
        for name in LEAST:
            self._sites[name] = np.minimum(self._sites[name], other[name])
        self._listed += 1
        founder.listed = _bits(np.ones(len(other), bool))

    def _count_repeated(self, repeated: np.ndarray, cohort: str) -> None:
        """Count duplicate sites with REF and ALT swapped; ingest dropped exact duplicates."""
        if repeated.any():
            self.steps.append(PanelStep("repeated", cohort, int(repeated.sum())))

    def _join(self, founder: _Founder, table: pd.DataFrame) -> None:
        """Add counts at known sites, and the sites that only this founder lists."""
        cohort = founder.cohort
        place, repeated = self._places.of(table), find_repeated(self._places, table)
        self._count_repeated(repeated, cohort)
        known = self._places.of(self._sites)
        found, counts, filled = counts_at(
            table,
            self._sites,
            founder.coverage,
            self._places,
            in_doubt=founder.in_doubt,
            frequency=self._frequency,
        )
        if found.has_flips:
            self.flipped.append(cohort)
        others = self._named(self._founders)
        require_one_build(found, f"{self.kind} '{cohort}'", others)
        found = replace(found, completed=found.completed | ((found.row >= 0) & ~self._paired))
        self._require_reference(founder, found)
        here = found.row >= 0
        gone = self._lost
        lost = found.ambiguous | found.doubtful | found.unclear
        self._lost = gone | ~(here | filled | lost)
        bound = founder.call_rate_bound(counts[:, 3])
        for name, absent in (("call_rate_bound", bound), ("hwe_p_min", np.inf)):
            theirs = np.where(here, table[name].to_numpy()[found.row], absent)
            self._sites[name] = np.minimum(self._sites[name], theirs)
        for k, name in enumerate(COUNTS):
            self._sites[name] += counts[:, k]
        self._listed += found.listed
        self._filled += np.where(filled, counts[:, 0], 0)
        self._complete(table, found)
        added = np.flatnonzero(~repeated & ~np.isin(place, known))
        founder.listed = _bits(np.append(found.listed, np.ones(len(added), bool)))
        if len(added):
            self._add_new(founder, table.iloc[added].reset_index(drop=True), added)
        alive = np.zeros(len(self._sites), bool)
        alive[: len(here)] = ~gone
        self.steps.append(PanelStep("shared", cohort, int((~self._lost).sum())))
        own = {
            "turned": found.swapped & ~found.flipped & ~found.completed & ~found.oriented,
            "ambiguous": found.ambiguous,
        }
        further = {
            "strand": here & found.flipped,
            "oriented": found.oriented,
            "doubtful": found.doubtful,
            "completed": here & found.completed,
            "unclear": found.unclear,
            "filled": filled,
        }
        for what, which in (own | further).items():
            number = int((which & ~gone).sum())
            if number or what in own:
                self.steps.append(PanelStep(what, cohort, number))
        self._lost[: len(lost)] |= lost
        if n := int((here & found.flipped).sum()):
            logger.info(
                "%d of %d sites of %s %s are on the opposite strand and were flipped",
                n,
                n + found.plain,
                self.kind,
                cohort,
            )

    def _require_reference(self, founder: _Founder, found: Matched) -> None:
        """Refuse to read absent sites as REF where REF is not the genome's base in both."""
        covered = [one.cohort for one in (*self._founders, founder) if one.coverage is not None]
        if covered and found.reference_differs:
            turned = int(found.swapped.sum()) + int(found.ambiguous.sum())
            raise UserError(
                f"{self.kind} '{founder.cohort}' has REF and ALT swapped at {turned} of "
                f"{int(found.listed.sum())} sites shared with {self._founders[0].cohort}, so "
                f"absent sites of {covered[0]} cannot be read as homozygous reference; set REF to "
                "the genome's base (plink2 --ref-from-fa, bcftools +fixref), or write "
                "absent = missing in the cohort sheet."
            )

    def _complete(self, table: pd.DataFrame, found: Matched) -> None:
        """Give sites with one known allele the pair of the table's row.

        A row that has both alleles also says which is REF: a PLINK file with one known allele does
        not. What was read as REF where absent then stays REF.
        """
        which = np.flatnonzero(found.completed & (found.row >= 0))
        sets, ref = allele_sets(self._sites.iloc[which])
        rows = found.row[which]
        theirs, first = allele_sets(table.iloc[rows])
        other = found.flipped[which]
        theirs, first = (np.where(other, COMPLEMENT[one], one) for one in (theirs, first))
        pair = ALLELE_SIZE[theirs] == 2
        turned = pair & ~self._paired[which] & (first != ref)
        ref = np.where(turned, first, ref)
        alt = ALLELE_LETTER[(theirs | sets) & ~ref]
        some = (alt != "") & ~self._paired[which]
        column = self._sites.columns.get_loc
        self._sites.iloc[which[some], column("alt")] = alt[some]
        self._paired[which[pair]] = True
        which = which[turned]
        if len(which):
            self._row = None
            self._sites.iloc[which, column("ref")] = ALLELE_LETTER[ref[turned]]
            filled = self._filled[which]
            n_ref, n_alt = (self._sites[name].to_numpy()[which] for name in ("n_ref", "n_alt"))
            self._sites.iloc[which, column("n_ref")] = n_alt + filled
            self._sites.iloc[which, column("n_alt")] = n_ref - filled

    def _add_new(self, founder: _Founder, new: pd.DataFrame, rows: np.ndarray) -> None:
        """Add sites of which no earlier founder lists the position."""
        lost = self._in_doubt(founder, new)
        chrom, pos = new.chrom.to_numpy(object), new.pos.to_numpy()
        filled = np.zeros(len(new), np.int64)
        for earlier in self._founders:
            known = np.zeros(len(new), np.int64)
            if earlier.coverage is not None:
                alive = np.flatnonzero(~lost)
                known[alive] = earlier.coverage.count(chrom[alive], pos[alive])
            lost |= known == 0
            new["n_ref"] += known
            filled += known
            new["n_missing"] += earlier.n_samples - known
            bound = earlier.call_rate_bound(earlier.n_samples - known)
            new["call_rate_bound"] = np.minimum(new.call_rate_bound, bound)
        new.insert(2, "id", ".")
        alive = np.flatnonzero(~lost)
        if len(alive):
            new.iloc[alive, 2] = self._ids_of(founder.cohort)[rows[alive]]
            self.steps.append(PanelStep("added", founder.cohort, len(alive)))
        self._sites = pd.concat([self._sites, new[self._sites.columns]], ignore_index=True)
        self._lost = np.concatenate([self._lost, lost])
        self._listed = np.concatenate([self._listed, np.ones(len(new), np.int32)])
        self._paired = np.concatenate([self._paired, _knows_both(new)])
        self._filled = np.concatenate([self._filled, filled])
        self._row = None

    def _refuse_untold(self, exclude_contigs: list[str], *, variants_only: bool = False) -> None:
        """Refuse founders whose files list a choice of sites, and of whose others nothing tells.

        `variants_only`: look at files of variant sites alone.
        """
        counts = self._sites[COUNTS].to_numpy(np.int64)
        allowed = ~self._sites.chrom.isin(exclude_contigs).to_numpy()
        for founder in self._founders if len(self._founders) > 1 else ():
            absent = self._absent.get(founder.cohort, UNSTATED)
            if absent.rule != "auto" or founder.n_sites < MIN_SITES:
                continue
            if variants_only and not founder.variants_only:
                continue
            listed = founder.lists(len(self._sites))
            wanted = np.flatnonzero((self._listed > listed) & allowed)
            lacking = wanted[~listed[wanted]]
            if absent.mask:
                if founder.variants_only:
                    own = self._table_of(founder)
                    own = own[~own.chrom.isin(exclude_contigs)]
                    regions = founder.coverage.regions
                    refuse_outside(founder.cohort, absent, regions, own, self._sites.iloc[lacking])
                continue
            # Without the sites beyond the ends of the file: no less than `Lack.matters` needs.
            if founder.coverage or len(lacking) <= MAX_ABSENT * (len(wanted) - len(lacking)):
                continue
            table, sites = self._table_of(founder), self._sites.iloc[wanted]
            _, own, _ = counts_at(table, sites, None, SitePositions())
            rest = np.maximum(counts[wanted, :3] - own[:, :3], 0)
            with np.errstate(invalid="ignore"):
                frequency = (rest[:, 1] + 2 * rest[:, 2]) / (2 * rest.sum(axis=1))
            lack = measure_lack(table, sites, listed[wanted], frequency)
            refuse_lack(
                founder.cohort,
                lack,
                self._named([one for one in self._founders if one is not founder]),
                founder.n_sites,
                variants_only=founder.variants_only and has_rare(table[COUNTS].to_numpy(np.int64)),
            )

    def _refuse_lost(self, sites: pd.DataFrame, filled: np.ndarray) -> None:
        """Refuse founders whose absent sites are read as REF although they are fixed for ALT."""
        pooled = sites[COUNTS[:3]].to_numpy(np.int64)
        pooled[:, 0] -= filled
        for founder in self._founders if len(self._founders) > 1 else ():
            coverage = founder.coverage
            if coverage is None or founder.has_fixed:
                continue
            if coverage.regions is None or not coverage.regions.by_sample:
                table = self._table_of(founder)
                refuse_lost_founder(founder.cohort, table, coverage, sites, pooled)

    def _ids_of(self, cohort: str) -> np.ndarray:
        """Identifiers of a founder's sites."""
        return pd.read_csv(
            self._tables[cohort],
            sep="\t",
            dtype=str,
            keep_default_na=False,
            quoting=3,
            usecols=["id"],
        ).id.to_numpy()

    def _table_of(self, founder: _Founder) -> pd.DataFrame:
        """A founder's sites, read again: few founders are looked at."""
        return self._with_one_spelling(
            pd.read_csv(
                self._tables[founder.cohort],
                sep="\t",
                dtype=dict.fromkeys(["chrom", "ref", "alt"], str),
                keep_default_na=False,
                quoting=3,
                usecols=["chrom", "pos", "ref", "alt", *COUNTS],
            )
        )


def _knows_both(sites: pd.DataFrame) -> np.ndarray:
    """Whether both alleles of a site are known: bool (n_sites,)."""
    return np.isin(ALLELE_SIZE[allele_sets(sites)[0]], (0, 2))  # 0: longer alleles


def _bits(listed: np.ndarray) -> np.ndarray:
    return np.packbits(listed, bitorder="little")
