"""Words that the report explains: the bold ones of docs/glossary.md, which is their only list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..core.places import GLOSSARY

#: A row of a table of the glossary, and the mark of words that the report explains.
_ROW = re.compile(r"^\|(.+?)\|(.+)\|\s*$")
_BOLD = re.compile(r"^\*\*(.+)\*\*$")
#: References to other pages of the documentation, which the report does not have.
_REFERENCE = re.compile(r"\s*\(\[[^\]]*\]\([^)]*\)\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Term:
    """A word of the glossary.

    Attributes
    ----------
    names : tuple of str
        The word and others that share its meaning.
    id : str
        Identifier of its meaning on the page.
    meaning : str
        Plain text without a full stop.
    """

    names: tuple[str, ...]
    id: str
    meaning: str

    @property
    def title(self) -> str:
        return ", ".join(self.names)

    @property
    def forms(self) -> str:
        """Names with their plurals, joined by ``|``: what the page's script looks for."""
        return "|".join(form for name in self.names for form in (name, plural_term(name)))


def plural_term(name: str) -> str:
    """Plural of a term: of its noun if it is of the kind "run of homozygosity"."""
    head, of, rest = name.partition(" of ")
    ending = "ies" if re.search(r"[^aeiou]y$", head) else "s"
    return f"{head[:-1] if ending == 'ies' else head}{ending}{of}{rest}"


def read_terms(path: Path = GLOSSARY) -> list[Term]:
    """The bold words of the glossary, in its order."""
    terms = []
    for line in path.read_text("utf-8").splitlines():
        row = _ROW.match(line)
        bold = row and _BOLD.match(row[1].strip())
        if bold:
            names = tuple(bold[1].split(", "))
            terms.append(Term(names, f"term-{len(terms) + 1}", plain(row[2].strip())))
    return terms


def plain(text: str) -> str:
    """Markdown of a table's cell as plain text."""
    return _LINK.sub(r"\1", _REFERENCE.sub("", text)).replace("`", "").replace("**", "")
