"""The Python that docs/api.md shows runs, from top to bottom, and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = "docs/api.md"


def blocks(text: str) -> list[tuple[int, str, str]]:
    """Line, code and shown output of each block of Python; an output follows its block at once."""
    found = []
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        if match[1] == "python":
            found.append([line, match[2], "", match.end()])
        elif match[1] == "text" and found and not text[found[-1][3] : match.start()].strip():
            found[-1][2] = match[2]
    return [(line, code, output) for line, code, output, _ in found]


def printed(code: str, names: dict) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, "page", "exec"), names)
    return said.getvalue()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_python_prints_what_the_page_shows():
    names: dict = {}
    shown = blocks((ROOT / PAGE).read_text("utf-8"))
    assert shown, "no Python is shown"
    for line, code, output in shown:
        assert lines(printed(code, names)) == lines(output), f"{PAGE}:{line}"


def test_every_public_function_is_shown():
    import popdesic

    text = (ROOT / PAGE).read_text("utf-8")
    code = "\n".join(code for _, code, _ in blocks(text))
    for name in popdesic._PUBLIC:
        if name[0].islower() and name != "fermat_weights":
            assert f"popdesic.{name}(" in code, name
        assert name[0].isupper() or f"`{name}(" in text, name


def test_a_wrong_output_would_be_seen():
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\nText.\n\n```text\nno output\n```\n"
    ((line, code, output),) = blocks(page)
    assert (line, output) == (1, "2\n")
    assert lines(printed(code, {})) != lines(output)
