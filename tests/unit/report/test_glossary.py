"""Words that the page explains come from the glossary alone."""

from __future__ import annotations

import re

from popdesic.core.places import GLOSSARY
from popdesic.report.glossary import plain, plural_term, read_terms


def test_bold_words_of_the_glossary_are_read():
    terms = read_terms()
    rows = re.findall(r"^\| \*\*.+", GLOSSARY.read_text("utf-8"), re.M)
    assert len(terms) == len(rows) > 30
    assert len({term.id for term in terms}) == len(terms)
    forms = [form.lower() for term in terms for form in term.forms.split("|")]
    assert len(forms) == len(set(forms)), "two words have a form in common"
    named = {term.names[0]: term for term in terms}
    assert {"founder", "panel", "geodesic", "closure", "interaction"} <= named.keys()
    assert "tile" not in named and "word" not in named
    for term in terms:
        assert not re.search(r"[`*\]]|\.md", term.meaning), term
        assert not term.meaning.endswith("."), term


def test_plurals():
    assert plural_term("founder") == "founders"
    assert plural_term("community") == "communities"
    assert plural_term("run of homozygosity") == "runs of homozygosity"
    assert plural_term("F_ROH") == "F_ROHs"


def test_meanings_are_plain_text(tmp_path):
    path = tmp_path / "glossary.md"
    path.write_text(
        "| word | meaning |\n|---|---|\n| **a, b** | `x` of [c](c.md) ([d](d.md)) |\n| e | f |\n"
    )
    (term,) = read_terms(path)
    assert term.names == ("a", "b") and term.title == "a, b"
    assert term.meaning == "x of c" == plain("`x` of [c](c.md) ([d](d.md))")
    assert term.forms == "a|as|b|bs"
