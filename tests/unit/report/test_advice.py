"""Every warning says what to do, and the gravest come first."""

from __future__ import annotations

import ast
from pathlib import Path

import popdesic.report as report
from popdesic.report.advice import ADVICE, advice_on, rank_warnings
from popdesic.report.axis_warnings import axis_warnings
from popdesic.report.findings import Finding


def texts(node: ast.expr) -> list[str]:
    """Texts that an expression can be: a constant, or the end of a formatted string."""
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [str(node.values[-1].value).removeprefix(": ")]
    return []


def topics() -> set[str]:
    """Topics of the warnings in the package's sources, and of the tuples of `axis_warnings`."""
    found = set()
    for path in Path(report.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                if isinstance(node.args[0], ast.Constant) and node.args[0].value == "note":
                    continue
                found.update(*(texts(argument) for argument in node.args[1:2]))
            elif path.name == "axis_warnings.py" and isinstance(node, ast.Tuple):
                found.update(texts(node.elts[0]))
    return found


def test_every_warning_has_advice_and_no_advice_is_idle():
    assert topics() == set(ADVICE)


def test_advice_is_one_short_sentence():
    for text in ADVICE.values():
        assert text.endswith(".") and text.count(". ") == 0
        assert len(text.split()) <= 20


def test_warnings_are_ranked_and_notes_left_out():
    findings = [
        Finding("note", "Labels", "x"),
        Finding("warning", "Unstable maps", "x"),
        Finding("warning", "Epistasis: trait: strata", "x"),
        Finding("warning", "Duplicates", "x"),
    ]
    ranked = [finding.topic for finding in rank_warnings(findings)]
    assert ranked == ["Duplicates", "Epistasis: trait: strata", "Unstable maps"]
    assert advice_on(findings[2]) == ADVICE["strata"]


def test_ld_beyond_its_window_is_said_where_it_is_much():
    axes = {"significant": 2, "level": 0.05, "regions": [], "shifts": [], "ld_window": "500 kb"}
    ((topic, text),) = axis_warnings(axes | {"ld_beyond": 0.4047})
    assert topic == "LD reaches beyond its window" and "embedding.ld_prune" in ADVICE[topic]
    assert "Widen" not in text  # the advice beside it says so
    assert "more than 500 kb apart still have a mean r² of 0.40 above chance" in text
    for little in (0.02, None):
        assert axis_warnings(axes | {"ld_beyond": little}) == []
