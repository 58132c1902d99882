"""Pages, captions, the report, descriptions and messages have no sentence of more than 30 words.

`python tests/support/sentences.py` prints words per sentence and names the long ones.
"""

from __future__ import annotations

import re

import pytest
from support.page_text import paragraphs_of_template
from support.sentences import MOST_WORDS, everything, of_code, paragraphs, split

#: Wording that reports once had, or another word for a thing that has one (glossary).
GONE = (
    "what was run on what",
    "with ref and alt swapped, turned",
    "keeps the neighbours of the plain distances best",
    "what indirect pairs gain",
    "the better do the genotypes tell",
    "from the largest on",
    "a dark square",
    "the same geodesics as",
)


#: Words for a thing that has another one (docs/glossary.md).
COMPETING = re.compile(r"\b(individuals?|traits?|markers?)\b", re.I)


@pytest.fixture(scope="module")
def found() -> dict:
    return everything()


@pytest.mark.parametrize("kind", ["pages", "captions", "report", "schemas", "messages"])
def test_sentences_are_short(found, kind):
    assert len(found[kind]) > 100
    long = [f for f in found[kind] if f.words > MOST_WORDS]
    assert not long, "\n".join(f"{f.words} words, {f.place}: {f.text}" for f in long)


def test_poor_wording_is_gone(found):
    for kind, sentences in found.items():
        for f in sentences:
            for words in GONE:
                assert words not in f.text.lower(), (kind, f.place)


def test_one_word_for_one_thing(found):
    for kind, sentences in found.items():
        for f in sentences:
            known = f.place == "docs/glossary.md"
            assert known or not COMPETING.search(f.text), (kind, f.place, f.text)


def test_sentences_are_told_apart():
    assert split("One `a. b` is, e.g. this. Two [is it](x.md)? α is three.") == [
        "One X is, e.g. this.",
        " Two is it?",
        " α is three.",
    ]
    text = "# Title\n\nA b\nc.\n\n- d e\n- f\n\n| g | h i |\n|---|---|\n\n```text\nno no\n```\n"
    assert [p for p in paragraphs(text) if p.strip(" -")] == ["A b c.", "d e", "f", " g ", " h i "]


def test_paragraphs_of_templates_are_read_with_each_alternative():
    text = """<p>{# no #}One {% if a %}b{% elif c %}d{% else %}e{% endif %}.</p><ul><li>{{ x }} is
    {% for y in x %}<b>this</b>{% endfor %}{% if z %} too{% endif %}</li></ul><style>p {}</style>"""
    assert paragraphs_of_template(text) == ["One b.", "X is this too", "One e.", "X is this"]


def test_messages_are_read_from_code(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        'raise UserError(f"{a} is b: " "c; do d.")\nFinding("note", "T", "One. Two.")\n'
    )
    assert [f.text for f in of_code(path, tmp_path)] == ["X is b: c", "do d.", "T", "One.", "Two."]
