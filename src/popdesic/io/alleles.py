"""How PLINK files write alleles: bases, or numbers that stand for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..core.errors import UserError

#: Sites of the parts that are read to see how alleles are written.
FIRST_ROWS = 1 << 12
#: Alleles of PLINK files that are numbers (`plink --allele1234`).
NUMBERS = {"1": "A", "2": "C", "3": "G", "4": "T"}


def are_numbered(tables: Iterable[dict[str, Any]], path: Path) -> bool:
    """Whether a PLINK file numbers its alleles, 1 to 4 for A, C, G and T.

    The first base or the first 3 or 4 decides; a file of bases is read no further.

    Parameters
    ----------
    tables : iterable of dict
        Parts of the table of sites, with the columns ref and alt.

    Raises
    ------
    UserError
        All alleles are 1 and 2, which name no bases.
    """
    found: set[str] = set()
    for sites in tables:
        found.update(sites["ref"], sites["alt"])
        if found & set("ACGTacgt"):
            return False
        if found & set("34"):
            return True
    if found & set("12"):
        raise UserError(
            f"{path}: the alleles are coded 1 and 2, which name no bases; write the bases of the "
            "array's manifest with `plink --update-alleles`."
        )
    return False


def name_bases(sites: dict[str, Any]) -> None:
    """Replace the numbers of alleles by bases, in place."""
    for name in ("ref", "alt"):
        sites[name] = [NUMBERS.get(allele, allele) for allele in sites[name]]
