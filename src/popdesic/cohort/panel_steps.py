"""Steps from the founders' files to the panel, as data: `steps` of `panel/counts.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TEXTS = {
    "founder": "sites of founder {}",
    "repeated": "sites that come again with REF and ALT swapped dropped, founder {}",
    "shared": "sites shared with founder {}",
    "turned": "swapped REF/ALT turned in founder {}",
    "ambiguous": "swapped and strand-ambiguous (A/T, C/G) dropped, founder {}",
    "filter": "after {}",
}


@dataclass(frozen=True)
class PanelStep:
    """One step and its number of sites.

    Attributes
    ----------
    what : {'founder', 'repeated', 'shared', 'turned', 'ambiguous', 'filter'}
        ``founder``: sites in a founder's file. ``repeated``: sites dropped as duplicates with REF
        and ALT swapped. ``shared``: sites shared by this founder and all previous ones; of these,
        ``turned`` had REF and ALT swapped and were corrected, and ``ambiguous`` were dropped
        because a swap at A/T or C/G looks like a strand flip. ``filter``: sites after a filter.
    subject : str
        The founder, or the filter's key in the configuration.
    sites : int
    limit : str
        The filter's value; empty if the key suffices.
    """

    what: str
    subject: str
    sites: int
    limit: str = ""

    @property
    def text(self) -> str:
        """Name of the step in `qc/summary.tsv`."""
        return _TEXTS[self.what].format(self.subject) + (f" = {self.limit}" if self.limit else "")

    @property
    def leaves(self) -> bool:
        """Whether `sites` counts the sites that remain after the step."""
        return self.what in ("shared", "filter")


def steps_of(counts: dict[str, Any]) -> list[PanelStep]:
    """The steps of `panel/counts.json`, given as read, in order."""
    return [PanelStep(**step) for step in counts["steps"]]
