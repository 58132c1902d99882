"""Paragraphs of the report: of a finished page, and of the templates that it is made from."""

from __future__ import annotations

import re
from html.parser import HTMLParser

#: Elements that end a paragraph.
BLOCKS = {
    *("p", "li", "dt", "dd", "td", "th", "caption", "summary", "h1", "h2", "h3", "h4", "div"),
    *("section", "figure", "figcaption", "label", "legend", "option", "button", "nav", "ul", "ol"),
    *(
        "dl",
        "table",
        "tr",
        "thead",
        "tbody",
        "details",
        "header",
        "footer",
        "main",
        "body",
        "title",
    ),
}
#: Elements whose content nobody reads as text.
SILENT = {"script", "style", "svg"}
_TAG = re.compile(r"{%-?\s*(\w+).*?-?%}", re.S)


class _Paragraphs(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = [""]
        self.silent = 0

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.silent += tag in SILENT
        self._end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in SILENT
        self._end(tag)

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.found[-1] += data

    def _end(self, tag: str) -> None:
        if tag in BLOCKS:
            self.found.append("")
        elif tag == "br":
            self.found[-1] += " "


def paragraphs_of_html(text: str) -> list[str]:
    """Texts of paragraphs, cells of tables and the like, without scripts and pictures."""
    parser = _Paragraphs()
    parser.feed(text)
    parser.close()
    return [found for part in parser.found if (found := " ".join(part.split()))]


def paragraphs_of_template(text: str) -> list[str]:
    """The same of a Jinja template, with X for each value; of alternatives the first and the last.

    So a sentence is seen with each of two ways through its conditions, not with all.
    """
    text = re.sub(r"{#.*?#}", "", text, flags=re.S)
    found: dict[str, None] = {}
    for last in (False, True):
        plain = re.sub(r"{{.*?}}", "X", _choose(text, last), flags=re.S)
        found |= dict.fromkeys(paragraphs_of_html(plain))
    return list(found)


def _choose(text: str, last: bool) -> str:
    """The template with the first or the last branch of each condition; other tags are dropped."""
    parts, start = [], 0
    stack: list[list[str]] = []  # branches of the conditions that are open

    def put(piece: str) -> None:
        if stack:
            stack[-1][-1] += piece
        else:
            parts.append(piece)

    for tag in _TAG.finditer(text):
        put(text[start : tag.start()])
        start = tag.end()
        if tag[1] == "if":
            stack.append([""])
        elif tag[1] in ("elif", "else") and stack:
            stack[-1].append("")
        elif tag[1] == "endif":
            branches = stack.pop()
            alone = len(branches) == 1  # without an alternative it is there, or it is not
            put("" if last and alone else branches[-1 if last else 0])
    return "".join([*parts, text[start:]])
