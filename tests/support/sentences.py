"""Sentences of pages, captions, the report and messages, and the number of their words.

python tests/support/sentences.py [--commit COMMIT] [--page results/report/report.html ...]

Prints words per sentence of each kind and names the long sentences. `--commit` reads an older state
of the repository, `--page` finished reports in place of the repository's texts.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.page_text import paragraphs_of_html, paragraphs_of_template

ROOT = Path(__file__).resolve().parents[2]
#: Most words of a sentence.
MOST_WORDS = 30
#: Functions whose first texts are shown to users: (name, position of the text).
MESSAGES = {"UserError": (0,), "Finding": (1, 2), "Sentence": (1,)}
#: Ends that are no ends of sentences.
_SHORT = re.compile(r"\b(?:e\.g|i\.e|vs|al|approx|Fig|no|cf|resp)\.$", re.I)
#: How sentences begin.
_BEGIN = r"[A-Z0-9(“\"*α-ω]|[a-z]+-[a-z]+ |h |r2? |t-SNE|densMAP|compare/"


@dataclass(frozen=True)
class Found:
    """A sentence and where it is."""

    place: str
    text: str

    @property
    def words(self) -> int:
        return sum(any(c.isalnum() for c in word) for word in self.text.split())


def split(text: str, small: bool = False) -> list[str]:
    """Sentences of a paragraph. Code and links count as what they show; code is one word.

    `small`: a sentence may begin with a small letter, as with a key that is not marked as code.
    """
    text = re.sub(r"`[^`]*`", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>]+>|\*\*|__", "", text)
    parts, start = [], 0
    begin = r"[a-zA-Z0-9(“\"*α-ω]" if small else _BEGIN
    for end in re.finditer(rf"[.?!][)”\"*]*(?=\s+(?:{begin})|\s*$)", text):
        if not _SHORT.search(text[start : end.end()]):
            parts.append(text[start : end.end()])
            start = end.end()
    return [part for part in (*parts, text[start:]) if part.strip()]


def paragraphs(text: str) -> list[str]:
    """Paragraphs, items of lists and cells of tables of Markdown or reStructuredText."""
    text = re.sub(r"^(?P<fence>```|~~~).*?^(?P=fence)\s*$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "\n", text, flags=re.S)
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("|"):
            found += [[cell] for cell in re.split(r"(?<!\\)\|", stripped)] + [[]]
        elif not stripped or re.match(r"(#+ |[=~^-]{3,}$)", stripped):
            found.append([])
        elif re.match(r"([-*+]|\d+\.) ", stripped):
            found.append([re.sub(r"^([-*+]|\d+\.) ", "", stripped)])
        else:
            found[-1].append(stripped)
    return [" ".join(lines) for lines in found if lines]


def of_page(path: Path, root: Path = ROOT) -> list[Found]:
    text = path.read_text("utf-8")
    place = str(path.relative_to(root))
    return [Found(place, part.strip()) for p in paragraphs(text) for part in split(p)]


def of_template(path: Path, root: Path = ROOT) -> list[Found]:
    place = str(path.relative_to(root))
    texts = paragraphs_of_template(path.read_text("utf-8"))
    return [Found(place, part.strip()) for text in texts for part in split(text, small=True)]


def of_report(path: Path) -> list[Found]:
    """Sentences of a finished page."""
    texts = paragraphs_of_html(path.read_text("utf-8"))
    return [Found(path.name, part.strip()) for text in texts for part in split(text, small=True)]


def of_schema(path: Path, root: Path = ROOT) -> list[Found]:
    """Descriptions of a JSON schema."""

    def descriptions(node) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("description"), str):
                yield node["description"]
            for value in node.values():
                yield from descriptions(value)
        elif isinstance(node, list):
            for value in node:
                yield from descriptions(value)

    place = str(path.relative_to(root))
    content = yaml.safe_load(path.read_text("utf-8"))
    return [Found(place, part.strip()) for text in descriptions(content) for part in split(text)]


def _constant(node: ast.expr | None) -> str:
    """The text of an expression, with X for each value put in; joined texts are joined."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_constant(v) if isinstance(v, ast.Constant) else "X" for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _constant(node.left) + _constant(node.right)
    return "X"


def of_code(path: Path, root: Path = ROOT) -> list[Found]:
    """Messages of a module: texts of UserError, Finding and Sentence."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for k in MESSAGES.get(name, ()):
                if k < len(node.args):
                    place = f"{path.relative_to(root)}:{node.lineno}"
                    text = _constant(node.args[k])
                    # Before the semicolon what is wrong, after it the way out.
                    clauses = [c for part in split(text) for c in part.split("; ")]
                    found += [Found(place, clause.strip()) for clause in clauses]
    return found


def everything(root: Path = ROOT) -> dict[str, list[Found]]:
    """Sentences by kind, of a folder with the repository's files."""
    pages = [root / "README.md", root / "config/README.md", root / "CONTRIBUTING.md"]
    pages += [root / "SECURITY.md"]
    pages += [root / "kernels/README.md", *sorted((root / "docs").glob("*.md"))]
    report, schemas = root / "workflow/report", root / "workflow/schemas"
    code = sorted((root / "src/popdesic").rglob("*.py"))
    return {
        "pages": [f for path in pages for f in of_page(path, root)],
        "captions": [f for path in sorted(report.glob("*.rst")) for f in of_page(path, root)],
        "report": [f for path in sorted(report.glob("*.j2")) for f in of_template(path, root)],
        "schemas": [f for path in sorted(schemas.glob("*.yaml")) for f in of_schema(path, root)],
        "messages": [f for path in code for f in of_code(path, root)],
    }


def show(kind: str, found: list[Found]) -> None:
    """Print words per sentence, and the sentences that are too long."""
    counts = sorted(f.words for f in found if f.words > 3)
    long = [f for f in found if f.words > MOST_WORDS]
    mean, middle = sum(counts) / len(counts), counts[len(counts) // 2]
    print(
        f"{kind}: {len(counts)} sentences, mean {mean:.1f}, median {middle}, "
        f"longest {counts[-1]}, over {MOST_WORDS}: {len(long)}"
    )
    for f in sorted(long, key=lambda f: -f.words):
        print(f"  {f.words} {f.place}: {f.text}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit")
    parser.add_argument("--page", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    for path in options.page:
        show(str(path), of_report(path))
    if options.page:
        return
    with tempfile.TemporaryDirectory() as folder:
        root = ROOT
        if options.commit:
            command = ["git", "-C", str(ROOT), "archive", options.commit]
            archive = io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)
            with tarfile.open(fileobj=archive) as files:
                files.extractall(folder, filter="data")
            root = Path(folder)
        for kind, found in everything(root).items():
            show(kind, found)


if __name__ == "__main__":
    main()
