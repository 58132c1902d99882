"""Write the genotypes of a person's table at a panel's sites as a VCF, from their letters.

The table names no REF. So each genotype, a set of one or two letters, is compared with the two
alleles of the panel's SNP at its position, and the panel's REF and ALT are written. Rules of strand
and build are those of `match`; the evidence are heterozygous genotypes, which show two alleles.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import atomic_path
from ..io.person_table import person_of, read_person_table, table_contig
from .contigs import HUMAN, Genome, plain_name
from .match import (
    COMPLEMENT,
    MAX_FLIPPED,
    MIN_COMPATIBLE,
    MIN_POSITIONS,
    SitePositions,
    allele_sets,
)

#: Calls by number of letters and copies of ALT; the last is a missing one.
_CALLS = (("0/0", "0/1", "1/1", "./."), ("0", ".", "1", "."))
_HEAD = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"


def write_person_calls(source: Path, panel: pd.DataFrame, genome: Genome, out: Path) -> dict:
    """Write a person's table as a VCF of the panel's SNPs at whose positions it has a row.

    A genotype with a letter that is no allele of the panel is missing. Of a heterozygous one, both
    letters may be those of the other strand; of homozygous ones only where more than `MAX_FLIPPED`
    of the heterozygous genotypes are. There, A/T and C/G sites are missing. Of rows at one position
    the first that is called counts.

    Parameters
    ----------
    panel : DataFrame
        Columns chrom, pos, ref and alt.
    genome : Genome
        That of the panel.

    Returns
    -------
    dict
        Counts: `rows`; of panel sites `listed`, `not_called`, `other_alleles`, `strand_turned`
        and `strand_ambiguous`. And `build`, as stated.

    Raises
    ------
    UserError
        The table is damaged, is of another genome build or has no row at a site of the panel.
    """
    table = read_person_table(source)
    if table.build and genome.build in HUMAN and table.build != genome.build:
        raise UserError(
            f"{source} states the genome build {table.build}, but the panel is of {genome.build}; "
            "lift the table over, or give a file of that build."
        )
    places = SitePositions()
    contigs = {name: table_contig(plain_name(name)) for name in panel.chrom.unique()}
    wanted = places.of(panel.assign(chrom=panel.chrom.map(contigs)))
    here = places.of(table.sites)
    order = np.lexsort((np.arange(len(here)), table.first == 0, here))
    here = here[order]
    at = np.minimum(np.searchsorted(here, wanted), len(here) - 1)
    pair, ref = allele_sets(panel)
    listed = np.flatnonzero((here[at] == wanted) & (pair > 0))
    if not len(listed):
        raise UserError(
            f"{source} has no row at a site of the panel, whose contigs are "
            f"{', '.join(list(contigs)[:3])} …; check that both are of one genome build."
        )
    row, pair, ref = order[at[listed]], pair[listed], ref[listed]
    first, second, single = (
        part[row]
        for part in (table.first.astype(np.int64), table.second.astype(np.int64), table.single)
    )
    letters, other = first | second, COMPLEMENT[pair]
    called, pair_itself = letters > 0, pair == other
    fits = called & (letters & ~pair == 0)
    fits_turned = called & (letters & ~other == 0) & ~fits
    two = called & (first != second)
    agree = int((two & (fits | fits_turned)).sum())
    if two.sum() >= MIN_POSITIONS and agree < MIN_COMPATIBLE * two.sum():
        raise UserError(
            f"{source}: of {two.sum()} heterozygous genotypes at sites of the panel only {agree} "
            f"have its alleles on either strand ({agree / two.sum():.0%}): the table is of another "
            "genome build; lift it over, or give a file of the panel's."
        )
    known = two & ~pair_itself & (fits | fits_turned)
    in_doubt = int((known & fits_turned).sum()) > MAX_FLIPPED * int(known.sum())
    turned = fits_turned & (two | in_doubt)
    ambiguous = fits & pair_itself & in_doubt
    used = (fits & ~ambiguous) | turned
    ref = np.where(turned, COMPLEMENT[ref], ref)
    copies = np.where(used, (first != ref).astype(np.int64) + (second != ref), 3)
    _write(out, person_of(source), panel.iloc[listed], copies, single)
    return {
        "rows": len(table.sites),
        "listed": len(listed),
        "not_called": int((~called).sum()),
        "other_alleles": int((called & ~used & ~ambiguous).sum()),
        "strand_turned": int(turned.sum()),
        "strand_ambiguous": int(ambiguous.sum()),
        "build": table.build or "not stated",
    }


def person_remark(source: Path, counts: dict) -> str:
    """What `write_person_calls` counted, as a sentence."""
    return (
        f"{source.name} is a table of letters (build {counts['build']}): of {counts['rows']} rows "
        f"{counts['listed']} are at sites of the panel. Of these, {counts['not_called']} are not "
        f"called or name no bases, {counts['other_alleles']} have letters that are no alleles of "
        f"the panel, and {counts['strand_ambiguous']} are A/T or C/G sites of unknown strand: they "
        f"are missing. {counts['strand_turned']} were turned to the panel's strand."
    )


def _write(out: Path, name: str, sites: pd.DataFrame, copies: np.ndarray, single: np.ndarray):
    head = ["##fileformat=VCFv4.2", *(f"##contig=<ID={c}>" for c in sites.chrom.unique())]
    head.append(f"{_HEAD}\t{name}")
    calls = np.array(_CALLS, object)[single.astype(np.int64), copies]
    columns = (sites.chrom, sites.pos, sites.id, sites.ref, sites.alt, calls)
    with atomic_path(out) as path, open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(head) + "\n")
        file.writelines(
            f"{chrom}\t{pos}\t{site}\t{ref}\t{alt}\t.\t.\t.\tGT\t{call}\n"
            for chrom, pos, site, ref, alt, call in zip(*columns, strict=True)
        )
