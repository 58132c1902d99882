"""Steps from the founders' files to the panel, as data: `steps` of `panel/counts.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..io.files import read_json

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
        Sites in a founder's file; those dropped because they come again with REF and ALT swapped;
        those that the founders so far share with this one; those of them whose REF and ALT were
        turned, and those dropped because a swap cannot be told from the other strand; sites that
        a filter leaves.
    subject : str
        The founder, or the filter's key in the configuration.
    sites : int
    limit : str
        The filter's value; empty where the key alone says it.
    """

    what: str
    subject: str
    sites: int
    limit: str = ""

    @property
    def text(self) -> str:
        """The step in `qc/summary.tsv`."""
        return _TEXTS[self.what].format(self.subject) + (f" = {self.limit}" if self.limit else "")

    @property
    def leaves(self) -> bool:
        """Whether `sites` are what is left, not a count on the way."""
        return self.what in ("shared", "filter")


def read_steps(counts: Path) -> list[PanelStep]:
    """The steps of `panel/counts.json`, in order."""
    return [PanelStep(**step) for step in read_json(counts)["steps"]]
