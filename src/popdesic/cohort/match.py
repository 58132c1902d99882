"""Match a cohort's sites to the panel: by contig and position, then by alleles in either order.

At a shared position the alleles are compared as sets, so that neither the choice of REF nor,
except at A/T and C/G, the strand matters. Longer alleles (indels, structural variants) must be the
same, REF and ALT: none of them is turned. A site of which only one allele is known (ALT ``.`` in
VCF, ``0`` in PLINK files) matches a site that has this allele.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..io.sites import canonical_contig, upper_alleles

#: A smaller share of sites in a reference tells too little.
MIN_SHARE = 0.05
#: Fewer sites that samples and a reference share tell too little.
MIN_SHARED_SITES = 1_000
#: A cohort with a larger share of sites on the other strand has A/T and C/G sites in doubt: nothing
#: tells on which strand they are, so they are missing.
MAX_FLIPPED = 0.01
#: By frequency they are told only where the minor allele of cohort and panel is clear: both minor
#: frequencies are at most `MAX_MINOR`, and `MARGIN` below those of any site of known strand at
#: which cohort and panel differ in the minor allele. So many sites of known strand must show it.
MAX_MINOR, MARGIN, MIN_SHOWN = 0.4, 0.1, 300
#: Called samples from which a cohort's frequency counts.
MIN_FREQUENCY_SAMPLES = 10
#: At fewer shared positions the alleles tell nothing of the build.
MIN_POSITIONS = 50
#: Two lists of sites at shared positions have compatible alleles nearly everywhere if they are of
#: one build. By chance alone half of the pairs agree or are complements: transitions are common.
MIN_COMPATIBLE = 0.8
#: Where a larger share of REF alleles is swapped, REF is not the base of the genome in one of both.
MAX_SWAPPED = 0.01
_PLACE_BITS = 33
#: Bits of A, C, G and T in the set of a site's alleles; the complement is the reverse.
_BITS = {"A": 1, "C": 2, "G": 4, "T": 8}
COMPLEMENT = np.array([int(f"{mask:04b}"[::-1], 2) for mask in range(16)], np.int64)
ALLELE_SIZE = np.array([mask.bit_count() for mask in range(16)], np.int64)
ALLELE_LETTER = np.array(["", "A", "C", "", "G", "", "", "", "T", *[""] * 7], object)


@dataclass(frozen=True)
class Matched:
    """Rows of a cohort's table at sites of the panel.

    Attributes
    ----------
    row : int64 array, (n_sites,)
        Row of the table, or -1.
    swapped : bool array, (n_sites,)
        Whether REF of the table is ALT of the site.
    flipped : bool array, (n_sites,)
        Whether the row is on the other strand.
    listed : bool array, (n_sites,)
        Whether the table has the position, whatever its alleles.
    ambiguous : bool array, (n_sites,)
        A/T and C/G sites with REF and ALT swapped, which may be a strand flip: no row.
    doubtful : bool array, (n_sites,)
        Other A/T and C/G sites of a table with strand flips: no row.
    unclear : bool array, (n_sites,)
        Sites that share the one known allele of a row with another site: no row.
    completed : bool array, (n_sites,)
        Sites whose row, or which themselves, have one known allele.
    candidate : int64 array, (n_sites,)
        Rows of `ambiguous` and `doubtful` sites with two known alleles, else -1.
    oriented : bool array, (n_sites,)
        A/T and C/G sites that `orient` told by frequency.
    plain : int
        Sites, not A/T or C/G, whose alleles are those of the row; `flipped` are the others.
    positions, compatible : int
        Sites with two alleles at positions that the table lists with two, and those whose alleles
        are the same on either strand.
    chance : float
        Share of `positions` at which alleles would be compatible by chance.
    in_doubt : bool
        Whether a genome showed sites of the table on both strands, and they were turned.
    """

    row: np.ndarray
    swapped: np.ndarray
    flipped: np.ndarray
    listed: np.ndarray
    ambiguous: np.ndarray
    doubtful: np.ndarray
    unclear: np.ndarray
    completed: np.ndarray
    candidate: np.ndarray
    oriented: np.ndarray
    plain: int
    positions: int
    compatible: int
    chance: float
    in_doubt: bool = False

    @property
    def has_flips(self) -> bool:
        """Whether so many sites are on the other strand that A/T and C/G sites are in doubt."""
        n_flipped = int((self.flipped & (self.row >= 0)).sum())
        return self.in_doubt or n_flipped > MAX_FLIPPED * (self.plain + n_flipped)

    @property
    def other_build(self) -> bool:
        """Whether alleles at shared positions agree so rarely that the positions do not."""
        return self.positions >= MIN_POSITIONS and self.compatible < MIN_COMPATIBLE * self.positions

    @property
    def reference_differs(self) -> bool:
        """Whether REF is swapped too often to be the genome's base in both."""
        turned = int((self.swapped & ~self.completed & ~self.oriented).sum())
        if not self.in_doubt:
            turned += int(self.ambiguous.sum())
        return turned > MAX_SWAPPED * max(int((self.row >= 0).sum()), MIN_POSITIONS)


class SitePositions:
    """Contig and position of sites as one integer, the same for all tables that one object sees."""

    def __init__(self) -> None:
        self._contigs: dict[str, int] = {}

    def of(self, table: pd.DataFrame) -> np.ndarray:
        """int64 (n_sites,)."""
        contig, names = pd.factorize(np.asarray(table.chrom, object))
        number = [
            self._contigs.setdefault(canonical_contig(name), len(self._contigs)) for name in names
        ]
        return np.array(number, np.int64)[contig] << _PLACE_BITS | table.pos.to_numpy(np.int64)


def find_repeated(places: SitePositions, table: pd.DataFrame) -> np.ndarray:
    """Sites with position and alleles of an earlier one, SNPs in either order: bool (n_sites,)."""
    sets = allele_sets(table)[0]
    keys = pd.DataFrame({"key": places.of(table) << 4 | sets})
    if (long := sets == 0).any():
        pairs = np.where(long, _pair_names(table), "")
        keys["pair"] = pd.factorize(pairs)[0]
    return keys.duplicated().to_numpy()


def _pair_names(table: pd.DataFrame) -> pd.Series:
    """REF and ALT of each site as one text, in capitals."""
    return table.ref.str.upper() + " " + table.alt.str.upper()


def allele_sets(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Bits of each site's alleles and of its REF: two int64 (n_sites,); 0 if one allele is long."""
    pair, pairs = upper_alleles(table.ref, table.alt)
    pairs = [one if len(one[0]) + len(one[1]) == 2 else ("", "") for one in pairs]
    first = np.array([_BITS.get(ref, 0) for ref, _ in pairs], np.int64)
    second = np.array([_BITS.get(alt, 0) for _, alt in pairs], np.int64)
    return (first | second)[pair], first[pair]


def match(
    table: pd.DataFrame,
    sites: pd.DataFrame,
    places: SitePositions | None = None,
    *,
    in_doubt: bool = False,
) -> Matched:
    """Find each site among the rows of a table; both have `chrom`, `pos`, `ref` and `alt`.

    Of rows with the same position and alleles the first counts. `in_doubt`: of the table or the
    sites it is known that A/T and C/G sites may be on either strand (`absent.strands_in_doubt`).
    """
    places = places or SitePositions()
    here, there = places.of(table), places.of(sites)
    (mine, my_ref), (theirs, their_ref) = allele_sets(table), allele_sets(sites)
    n = len(sites)
    key = here << 4 | mine
    known, first = np.unique(key, return_index=True)
    row = _find(known, first, there << 4 | theirs)
    row[ALLELE_SIZE[theirs] < 2] = -1
    flipped, completed, unclear = (np.zeros(n, bool) for _ in range(3))
    listed = row >= 0
    rest = np.flatnonzero(~listed)
    positions = np.unique(here)
    rest = rest[_find(positions, positions, there[rest]) >= 0]
    listed[rest] = True
    ambiguous_kind = theirs == COMPLEMENT[theirs]
    full = ALLELE_SIZE[theirs] == 2
    if len(rest):
        turned = rest[full[rest] & ~ambiguous_kind[rest]]
        other = _find(known, first, there[turned] << 4 | COMPLEMENT[theirs[turned]])
        used = np.zeros(len(table), bool)
        used[row[row >= 0]] = True
        free = (other >= 0) & ~used[other]
        row[turned[free]], flipped[turned[free]] = other[free], True
    plain = int(((row >= 0) & ~flipped & ~ambiguous_kind).sum())
    n_flipped = int(flipped.sum())
    flips = in_doubt or n_flipped > MAX_FLIPPED * (plain + n_flipped)
    compatible = int((row >= 0).sum())
    rest = rest[row[rest] < 0]
    others = _pairs_at(here, there[rest])
    other_full = np.bincount(others[1], ALLELE_SIZE[mine[others[0]]] == 2, minlength=len(rest)) > 0
    n_positions = compatible + int((other_full & full[rest]).sum())
    chance = _chance(mine, theirs)
    if len(rest):
        _complete(
            row, flipped, completed, unclear, rest, others, here, there, mine, theirs, flips=flips
        )
    if len(long := np.flatnonzero(theirs == 0)):
        rows = np.flatnonzero(mine == 0)
        row[long] = _find_long(table.iloc[rows], sites.iloc[long], here[rows], there[long])
        row[long] = np.where(row[long] < 0, -1, np.append(rows, -1)[row[long]])
    found = row >= 0
    own_ref = np.where(flipped, COMPLEMENT[my_ref[row]], my_ref[row]) if len(table) else their_ref
    swapped = found & (own_ref != their_ref)
    own = np.where(flipped, COMPLEMENT[mine[row]], mine[row]) if len(table) else theirs
    pair = np.where(completed, own | theirs, theirs)
    unsure = found & (ALLELE_SIZE[pair] == 2) & (pair == COMPLEMENT[pair])
    ambiguous = unsure & swapped & ~completed
    doubtful = unsure & ~ambiguous & flips
    candidate = np.where((ambiguous | doubtful) & ~completed, row, -1)
    row[ambiguous | doubtful] = -1
    swapped &= row >= 0
    return Matched(
        row,
        swapped,
        flipped,
        listed,
        ambiguous,
        doubtful,
        unclear,
        completed,
        candidate,
        np.zeros(n, bool),
        plain,
        n_positions,
        compatible,
        chance,
        in_doubt,
    )


def orient(found: Matched, own: np.ndarray, n_called: np.ndarray, panel: np.ndarray) -> Matched:
    """Tell the strand of A/T and C/G sites by allele frequency where that is safe.

    At sites of known strand one sees from which minor frequency on cohort and panel differ in the
    minor allele. A/T and C/G sites that are clearer are turned so that the minor alleles agree.

    Parameters
    ----------
    own : float64 array, (n_sites,)
        Frequency of the row's ALT in the cohort, by `row` or `candidate`; NaN where unknown.
    n_called : int array, (n_sites,)
        Its called samples.
    panel : float64 array, (n_sites,)
        Frequency of the site's ALT.

    Returns
    -------
    Matched
        As it was, if the cohort has no sites on the other strand.
    """
    if not found.has_flips or not (found.candidate >= 0).any():
        return found
    turned = np.where(found.swapped, 1 - own, own)
    with np.errstate(invalid="ignore"):
        minor = np.maximum(np.minimum(own, 1 - own), np.minimum(panel, 1 - panel))
        differs = (turned < 0.5) != (panel < 0.5)
        usable = (n_called >= MIN_FREQUENCY_SAMPLES) & ~np.isnan(minor)
    known = usable & (found.row >= 0) & ~found.completed
    limit = min(MAX_MINOR, minor[known & differs].min(initial=np.inf) - MARGIN)
    if int((known & (minor <= limit)).sum()) < MIN_SHOWN:
        return found
    told = usable & (found.candidate >= 0) & (minor <= limit)
    return replace(
        found,
        row=np.where(told, found.candidate, found.row),
        swapped=np.where(told, (own < 0.5) != (panel < 0.5), found.swapped),
        ambiguous=found.ambiguous & ~told,
        doubtful=found.doubtful & ~told,
        candidate=np.where(told, -1, found.candidate),
        oriented=told,
    )


def _find_long(
    table: pd.DataFrame, sites: pd.DataFrame, here: np.ndarray, there: np.ndarray
) -> np.ndarray:
    """The first row with the place, REF and ALT of each site, or -1: int64 (n_sites,)."""
    place = np.unique(np.concatenate([here, there]), return_inverse=True)[1]
    names = pd.concat([_pair_names(table), _pair_names(sites)])
    keys = place << 32 | pd.factorize(names.to_numpy())[0]
    known, first = np.unique(keys[: len(table)], return_index=True)
    return _find(known, first, keys[len(table) :])


def _find(known: np.ndarray, number: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """`number` of each wanted value among sorted `known` ones, or -1."""
    if not len(known):
        return np.full(len(wanted), -1)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, number[place], -1)


def _pairs_at(here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs (row, number of the site) at equal places."""
    order = np.argsort(here, kind="stable") if len(there) else np.empty(0, np.int64)
    low, high = (np.searchsorted(here[order], there, side) for side in ("left", "right"))
    number = np.repeat(np.arange(len(there)), high - low)
    within = np.arange(len(number)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    return order[np.repeat(low, high - low) + within], number


def _complete(row, flipped, completed, unclear, rest, others, here, there, mine, theirs, *, flips):
    """Give sites of `rest` the rows at their place with which they share the one known allele."""
    which, number = others
    a, b = mine[which], theirs[rest[number]]
    used = np.zeros(len(here), bool)
    used[row[row >= 0]] = True
    single = ((ALLELE_SIZE[a] == 1) | (ALLELE_SIZE[b] == 1)) & ~used[which]
    single &= (ALLELE_SIZE[a] > 0) & (ALLELE_SIZE[b] > 0)
    fits = single & (ALLELE_SIZE[a | b] <= 2)
    turned = COMPLEMENT[a]
    fits_turned = single & ~fits & (ALLELE_SIZE[turned | b] <= 2) & flips
    # Two single alleles that are each other's complement may be one allele on two strands, and
    # where strands differ, nothing tells which pair two others are.
    both = (ALLELE_SIZE[a] == 1) & (ALLELE_SIZE[b] == 1)
    fits &= ~(both & ((turned == b) | ((a != b) & flips)))
    fits_turned &= ~both
    usable = fits | fits_turned
    which, number, other = which[usable], number[usable], fits_turned[usable]
    per_site = np.bincount(number, minlength=len(rest))
    # A row with one known allele at a place where it fits several sites belongs to none.
    _, inverse = np.unique(which, return_inverse=True)
    per_row = np.bincount(inverse, minlength=inverse.max(initial=-1) + 1)[inverse]
    clear = (per_site[number] == 1) & (per_row == 1)
    site = rest[number[clear]]
    row[site], flipped[site], completed[site] = which[clear], other[clear], True
    unclear[rest[number[~clear]]] = True


def _chance(mine: np.ndarray, theirs: np.ndarray) -> float:
    """How often two sites drawn from both tables have the same alleles on either strand."""
    kinds = np.minimum(np.arange(16), COMPLEMENT)
    shares = []
    for masks in (mine, theirs):
        count = np.bincount(kinds[masks[ALLELE_SIZE[masks] == 2]], minlength=16).astype(float)
        shares.append(count / max(count.sum(), 1))
    return float(shares[0] @ shares[1])


def match_sites(bim: pd.DataFrame, panel: pd.DataFrame):
    """Find each panel site among a cohort's sites.

    Returns
    -------
    row_of_site : int64 array, (n_sites,)
        Row of the cohort's .bed, or -1 if absent.
    swapped : bool array, (n_sites,)
        Whether REF and ALT are swapped in the cohort.
    counts : dict
    """
    found = match(bim, panel)
    return found.row, found.swapped, count_matched(found, len(bim))


def count_matched(found: Matched, n_rows: int) -> dict[str, int]:
    """Counts of a match by name; those of strand and unknown alleles only where there are any."""
    present = int((found.row >= 0).sum())
    ambiguous = int(found.ambiguous.sum())
    doubtful, unclear = int(found.doubtful.sum()), int(found.unclear.sum())
    lost = ambiguous + doubtful + unclear
    counts = {
        "panel_sites_found": present,
        "panel_sites_absent": len(found.row) - present - lost,
        "swapped_turned": int(
            (found.swapped & ~found.flipped & ~found.completed & ~found.oriented).sum()
        ),
        "swapped_ambiguous_dropped": ambiguous,
        "sites_not_on_panel": n_rows - present - lost,
    }
    further = {
        "strand_turned": int((found.flipped & (found.row >= 0)).sum()),
        "strand_by_frequency": int(found.oriented.sum()),
        "strand_ambiguous_dropped": doubtful,
        "one_allele_completed": int((found.completed & (found.row >= 0)).sum()),
        "one_allele_unclear": unclear,
    }
    return counts | {name: count for name, count in further.items() if count}


def require_one_build(found: Matched, shown: str, other: str) -> None:
    """Refuse a table whose alleles at shared positions agree with the sites' by chance alone.

    Raises
    ------
    UserError
        With the counts, and the way out.
    """
    if found.other_build:
        raise UserError(
            f"{shown} and {other} share {found.positions} positions, but only "
            f"{found.compatible} of these have the same alleles on either strand "
            f"({found.compatible / found.positions:.0%}; by chance {found.chance:.0%}): they "
            "are of different genome builds; lift one of them over (bcftools +liftover, CrossMap) "
            "and run again."
        )


def no_overlap(cohort: str, raw: Path, bim: pd.DataFrame, panel: pd.DataFrame) -> str:
    here, there = list(bim.chrom.unique()), list(panel.chrom.unique())
    shared = set(map(canonical_contig, here)) & set(map(canonical_contig, there))
    if shared:
        reason = (
            f"contigs match ({', '.join(sorted(shared)[:3])} …) but positions and alleles do not"
        )
        advice = "check that both use the same genome build"
    else:
        reason = (
            f"its contigs are {', '.join(here[:3])} …, the panel's are {', '.join(there[:3])} …"
        )
        advice = "rename the contigs of one of them (bcftools annotate --rename-chrs)"
    return f"{raw}.bim: cohort '{cohort}' shares no site with the panel: {reason}; {advice}."
