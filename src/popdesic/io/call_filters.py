"""What a file says about its own records and calls, and which of them are not read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UserError
from .site_classes import CLASSES

#: Values of FILTER that no filter has failed.
PASSED = ("PASS", ".")
#: Entry of `ingest.filter` that accepts every value.
ANY = "*"
#: Fields of calls, by the key of the configuration that needs them.
FIELDS = {"min_gq": "GQ", "min_dp": "DP", "max_dp": "DP", "min_allele_balance": "AD"}


@dataclass(frozen=True)
class CallFilters:
    """Limits of records and calls; 0 sets none.

    A value that the file does not state passes every limit.

    Attributes
    ----------
    accepted : tuple of str
        Names of FILTER, beside PASS, with which a record is read; with ANY every record is.
    min_qual : float
        Least QUAL of a record.
    min_gq, min_dp, max_dp : float
        Limits of a call's genotype quality (GQ) and depth (DP).
    min_allele_balance : float
        Least share of a heterozygote's reads (AD) that the less frequent allele must have.
    classes : tuple of str
        Classes of sites that are read beside SNPs (`site_classes.CLASSES`).
    """

    accepted: tuple[str, ...] = ()
    min_qual: float = 0.0
    min_gq: float = 0.0
    min_dp: float = 0.0
    max_dp: float = 0.0
    min_allele_balance: float = 0.0
    classes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> CallFilters:
        """From the blocks `ingest` and `sites` of the configuration, as one."""
        limits = {one.name: float(given.get(one.name, 0)) for one in fields(cls)[1:-1]}
        classes = tuple(one for one in given.get("classes", ()) if one != CLASSES[0])
        return cls(tuple(given.get("filter", ())), **limits, classes=classes)

    @property
    def any_filter(self) -> bool:
        """Whether records are read whatever their FILTER."""
        return ANY in self.accepted

    def limits(self) -> np.ndarray:
        """`min_qual`, `min_gq`, `min_dp`, `max_dp`, `min_allele_balance`: float64 (5,)."""
        return np.array([getattr(self, one.name) for one in fields(self)[1:-1]], np.float64)

    def names(self) -> tuple[np.ndarray, np.ndarray]:
        """Accepted names of FILTER in one array of bytes, and the end of each, for the decoder."""
        names = [name.encode() for name in self.accepted]
        sizes = [len(name) for name in names]
        return np.array(list(b"".join(names)), np.uint8), np.cumsum(sizes, dtype=np.int64)

    def failed(self, name: str) -> list[str]:
        """Names in a FILTER (`a;b`) with which a record is dropped."""
        names = [one for one in name.split(";") if one not in (*PASSED, "", *self.accepted)]
        return [one if one.isprintable() else repr(one) for one in dict.fromkeys(names)]

    def require(self, path: Path, has: Mapping[str, bool]) -> None:
        """Refuse a file without the fields that a limit needs.

        `has`: whether the file has GQ, DP, AD and QUAL.

        Raises
        ------
        UserError
            It lacks one.
        """
        for key, name in (FIELDS | {"min_qual": "QUAL"}).items():
            if getattr(self, key) and not has.get(name, False):
                where = "" if name == "QUAL" else "FORMAT/"
                raise UserError(
                    f"{path}: ingest.{key} needs {where}{name}, which the file does not have; set "
                    f"ingest.{key} to 0 and filter the files that have it yourself, for example "
                    "with bcftools +setGT."
                )
