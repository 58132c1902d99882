"""Clicks to the answers of a reader's questions: python docs/count_clicks.py

Prints a table in Markdown. Needs Chromium and results/ of the embedded example (make run); another
page can be named, below the results from which answers are computed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.browser import Browser
from support.reader import count_clicks, questions

ROOT = Path(__file__).resolve().parents[1]
#: Windows of a desk and of a phone, in pixels.
WINDOWS = ((1440, 900), (390, 844))


def main() -> None:
    named = sys.argv[1] if len(sys.argv) > 1 else ROOT / "results/report/report.html"
    path = Path(named).resolve()
    page, results = path.as_uri(), path.parents[1]
    print("| question | clicks | screens to scroll, 1440 px wide | 390 px wide |")
    print("|---|---|---|---|")
    with Browser() as browser:
        for question in questions(results):
            found = []
            for window in WINDOWS:
                browser.resize(*window)
                found.append(count_clicks(browser, page, question))
            if None in found:
                sys.exit(f"no answer: {question.text}")
            (clicks, wide), (_, narrow) = found
            print(f"| {question.text} | {clicks} | {wide} | {narrow} |")


if __name__ == "__main__":
    main()
