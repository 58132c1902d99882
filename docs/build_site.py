"""Build the documentation as a site, from the pages of the repository and from the code.

    python docs/build_site.py            build/docs/site/index.html
    python docs/build_site.py --pages    lay the pages out below build/docs/pages, build nothing

Pages keep their text; links between them are turned to the site's. Made from the code are the
reference of the public functions (docstrings), the commands (`--help`) and the references of the
methods text. The table of configuration keys in config/README.md is made from the schema, which
`tests/docs/test_docs.py` checks.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "docs"
#: Pages from elsewhere than docs/, by their path in the repository.
ELSEWHERE = {
    "README.md": "index.md",
    "config/README.md": "config.md",
    "kernels/README.md": "kernels.md",
    "tests/bench/README.md": "benchmarks.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
#: A link that does not lead to the web or to a heading of its own page.
LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)"
)


def page_names() -> dict[str, str]:
    """Pages of the site by the path of their source in the repository."""
    own = {f"docs/{path.name}": path.name for path in sorted((ROOT / "docs").glob("*.md"))}
    return ELSEWHERE | own


def turn_links(text: str, source: str, pages: dict[str, str]) -> str:
    """The text of a page with links to the site's pages.

    Links to other files of the repository, which the site does not have, become text with the path.
    Code blocks stay as they are.
    """
    folder = Path(source).parent

    def turn(link: re.Match) -> str:
        image, words, target, anchor = link.groups()
        path = os.path.normpath(folder / target)
        if image:
            return f"![{words}](pictures/{Path(path).name})"
        if path in pages:
            return f"[{words}]({pages[path]}{anchor or ''})"
        if not (ROOT / path).exists():
            sys.exit(f"{source}: the link to {target} leads nowhere.")
        return f"{words} (`{path}`)" if words.strip("`") != path else f"`{path}`"

    parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)
    return "".join(part if k % 2 else LINK.sub(turn, part) for k, part in enumerate(parts))


def reference_page() -> str:
    """The public functions; the generator fills in their docstrings."""
    from popdesic import _PUBLIC

    lines = ["# Reference", "", "Made from the docstrings of the public functions."]
    for name, module in _PUBLIC.items():
        lines += ["", f"::: popdesic.{module}.{name}"]
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """What `--help` prints for every command."""
    from popdesic.study.command_line import make_parser

    parser = make_parser()
    parser.prog = "popdesic"
    lines = ["# Commands", "", "What `popdesic COMMAND --help` prints."]
    for name, command in parser._subparsers._group_actions[0].choices.items():
        command.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=90)
        lines += ["", f"## {name}", "", "```text", command.format_help().rstrip(), "```"]
    return "\n".join(lines) + "\n"


def references_page() -> str:
    """The references that the methods text of a study cites."""
    from popdesic.report.citations import REFERENCES

    lines = ["# References", "", "A study's `report/methods.md` cites those that it used.", ""]
    for words in sorted(REFERENCES.values()):
        linked = re.sub(r"doi:(\S+)$", r"[doi:\1](https://doi.org/\1)", words)
        lines.append(f"- {linked}")
    return "\n".join(lines) + "\n"


def lay_out(pages_folder: Path) -> list[str]:
    """Write all pages and pictures; return the names of the pages."""
    shutil.rmtree(pages_folder, ignore_errors=True)
    pages_folder.mkdir(parents=True)
    pages = page_names()
    for source, name in pages.items():
        text = (ROOT / source).read_text("utf-8")
        (pages_folder / name).write_text(turn_links(text, source, pages), "utf-8")
    made = {
        "reference.md": reference_page(),
        "commands.md": commands_page(),
        "references.md": references_page(),
    }
    for name, text in made.items():
        (pages_folder / name).write_text(text, "utf-8")
    shutil.copytree(ROOT / "docs" / "pictures", pages_folder / "pictures")
    return sorted([*pages.values(), *made])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", action="store_true", help="lay the pages out, build nothing")
    options = parser.parse_args()
    names = lay_out(OUT / "pages")
    if options.pages:
        print(f"{len(names)} pages in {OUT / 'pages'}")
        return
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    generator = shutil.which("mkdocs", path=places)
    if generator is None:
        sys.exit("mkdocs is not installed; `make docs` installs it from requirements-docs.txt.")
    command = [generator, "build", "--strict", "--quiet"]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(
        [*command, "--config-file", str(ROOT / "docs/mkdocs.yml")], check=True, env=quiet
    )
    print(OUT / "site" / "index.html")


if __name__ == "__main__":
    main()
