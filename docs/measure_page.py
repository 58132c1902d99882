"""Heights, sizes, sheets of paper, faults and sentences of a report: python docs/measure_page.py

Prints a table in Markdown. Needs Chromium and results/ of the embedded example (make run); another
page can be named.
"""

from __future__ import annotations

import base64
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.browser import Browser, find_axe
from support.reader import READY, open_all
from support.sentences import MOST_WORDS, of_report

ROOT = Path(__file__).resolve().parents[1]
#: Widths of windows of a desk and of a phone, in pixels.
WIDTHS = (1440, 390)
#: What is printed of the page without its annex.
SUMMARY = "@media print { #data, #data ~ section { display: none } }"


def sheets(browser: Browser) -> int:
    """Sheets of A4 that the page prints on."""
    pdf = browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    return len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(pdf)))


def measure(page: Path) -> list[tuple[str, ...]]:
    """Rows of the table: what, and a value for each of WIDTHS or one for both."""
    closed, tallest, opened, faults = [], [], [], []
    with Browser() as browser:
        for width in WIDTHS:
            browser.resize(width, 900)
            browser.open("about:blank")
            browser.open(page.as_uri(), READY)
            height = "document.documentElement.scrollHeight"
            closed.append(browser.run(height))
            browser.run("document.getElementById('unfold').click()")
            opened.append(browser.run(height))
            tallest.append(
                browser.run(
                    "Math.max(...[...document.querySelectorAll('main > section')]"
                    ".map(section => section.offsetHeight))"
                )
            )
            open_all(browser)
            faults.append(len(browser.violations()) if find_axe() else "axe-core is not installed")
        browser.resize(1280, 900)
        browser.open("about:blank")
        browser.open(page.as_uri(), READY)
        headings = "[...document.querySelectorAll('main > section > h2')].map(h => h.textContent)"
        order = [" ".join(heading.split()) for heading in browser.run(headings)]
        figures = browser.run("document.querySelectorAll('figure').length")
        whole = sheets(browser)
        browser.run(
            "document.head.append(Object.assign(document.createElement('style'),"
            f"{{textContent: '{SUMMARY}'}}))"
        )
        summary = sheets(browser)
    words = sorted(found.words for found in of_report(page) if found.words > 3)
    long = sum(count > MOST_WORDS for count in words)
    return [
        ("height as opened, pixels", *closed),
        ("tallest section when opened, pixels", *tallest),
        ("height with all sections open, pixels", *opened),
        ("violations by axe-core, all open", *faults),
        ("size, MB", f"{page.stat().st_size / 1e6:.1f}"),
        ("sheets of A4: summary, whole", f"{summary}, {whole}"),
        ("figures", figures),
        ("sections in order", ", ".join(order)),
        (
            f"sentences; mean words; longest; over {MOST_WORDS} words",
            f"{len(words)}; {sum(words) / len(words):.1f}; {words[-1]}; {long}",
        ),
    ]


def main() -> None:
    named = sys.argv[1] if len(sys.argv) > 1 else ROOT / "results/report/report.html"
    print("| | 1440 pixels wide | 390 pixels wide |")
    print("|---|---|---|")
    for what, *values in measure(Path(named).resolve()):
        print(f"| {what} | {' | '.join(map(str, values))} |{' |' * (2 - len(values))}")


if __name__ == "__main__":
    main()
