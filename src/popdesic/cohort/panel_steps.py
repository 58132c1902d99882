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
    "strand": "sites on the other strand turned in founder {}",
    "oriented": "A/T and C/G sites of founder {} oriented by allele frequency",
    "doubtful": "A/T and C/G sites dropped, founder {} has other strands",
    "completed": "sites with one known allele in founder {} or before it given both",
    "unclear": "sites with one known allele that fits several dropped, founder {}",
    "filled": "sites absent from the file of founder {} taken as homozygous reference",
    "added": "sites of founder {} alone added",
    "one_allele": "after dropping sites with one known allele in all {}",
    "filter": "after {}",
    "position": "after keeping one site for each position",
}


@dataclass(frozen=True)
class PanelStep:
    """One step and its number of sites.

    Attributes
    ----------
    what : str
        ``founder``: sites in a founder's file. ``repeated``: sites dropped as duplicates with REF
        and ALT swapped. ``added``: sites that no founder before lists, but all could be called at.
        ``shared``: sites that this founder and all previous ones speak about; of these, ``turned``
        had REF and ALT swapped and were corrected, and ``ambiguous`` were dropped because a swap at
        A/T or C/G looks like a strand flip. ``strand``: on the other strand, corrected;
        ``oriented``: A/T and C/G of such a founder told by frequency; ``doubtful``: others,
        dropped. ``completed``: one allele was known
        and another founder had both; ``unclear``: it fits several sites, dropped. ``filled``:
        absent from the file, homozygous reference. ``one_allele``: sites after those were dropped
        of which no founder knows a second allele. ``filter``: sites after a filter. ``position``:
        sites after the rarer ones at the same position were dropped.
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
        return self.what in ("shared", "one_allele", "filter", "position")

    @property
    def loses(self) -> bool:
        """Whether `sites` counts sites that the step drops from those that remained."""
        return self.what in ("ambiguous", "doubtful", "unclear")


def steps_of(counts: dict[str, Any]) -> list[PanelStep]:
    """The steps of `panel/counts.json`, given as read, in order."""
    return [PanelStep(**step) for step in counts["steps"]]
