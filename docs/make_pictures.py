"""Pictures of the documentation from the finished example: python docs/make_pictures.py

Needs Chromium and results/ of the embedded example (make run).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from PIL import Image
from support.browser import Browser

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "docs/pictures"
#: Figures that the documentation shows, by their names there.
FIGURES = {"umap": "umap.genotypes.alpha2"}
READY = "document.documentElement?.dataset.ready === 'yes'"
#: Windows of a desk and of a phone, in pixels; places of the page that are shown in both.
WINDOWS = ((1440, 900), (390, 844))
PLACES = {"first_screen": "", "close_up": "#fig-zoom.pairs"}


def shrink(path: Path) -> None:
    """Reduce a screenshot to 128 colours, which takes a third of the bytes."""
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(
            128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    few.save(path, optimize=True)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    for name, figure in FIGURES.items():
        shutil.copyfile(ROOT / f"results/figures/{figure}.png", OUT / f"{name}.png")
    with Browser(1180, 640) as browser:
        page = ROOT / "results/report/report.html"
        browser.open(page.as_uri(), READY)
        # A group chosen in the legend, one sample pointed at.
        browser.click_on("[data-part=legend] li:nth-child(1) button")
        left, top, _, _ = browser.bring("explorer.panels[0].canvas")
        browser.run("document.querySelector('#explorer').scrollIntoView({behavior: 'instant'})")
        left, top = browser.run(
            "(() => { const b = explorer.panels[0].canvas.getBoundingClientRect();"
            "return [b.x, b.y]; })()"
        )
        x, y = browser.run("explorer.panels[0].screen(explorer.chosen()[3])")
        browser.mouse("Moved", left + x, top + y)
        browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        browser.screenshot(OUT / "report.png")
        for width, height in WINDOWS:
            for name, place in PLACES.items():
                browser.resize(width, height)
                browser.open("about:blank")
                browser.open(f"{page.as_uri()}{place}", READY)
                browser.run("new Promise(done => setTimeout(done, 300))")
                browser.screenshot(OUT / f"{name}_{width}.png")
                shrink(OUT / f"{name}_{width}.png")
    for path in sorted(OUT.iterdir()):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
