"""The report of a large study: its size, and how fast it responds in a real browser.

python tests/bench/bench_report.py [--samples 600 30000 1000000] [--maps 24] [--repeats 3]
                                   [--webgl] [--quick]

A simulated study of 12 cohorts and 26 populations with clustered maps; the workflow's functions
draw its figures and write its page. Headless Chromium, which draws on the CPU, opens the page.
`painted` is the time from navigation until the maps are drawn, `ready` until the page responds and
names can be searched, `processor` the CPU time of the browser's main thread until then. Every
answer is timed with the drawing that it causes; axe-core then looks at the page, everything opened.
Limits: 15 MB and a second up to 30 000 samples, 40 MB, three seconds, 0.1 s a search and 0.5 s a
lasso above. Without Chromium only the size is measured. The study, its tables and the page of a
million samples take 2.5 GB of memory.
Above LARGE the figures of a small study stand for those of samples: figures are not what is timed.
"""

from __future__ import annotations

import os
import re
import resource
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from support.browser import Browser, find_axe, find_chromium
from support.outcomes import configuration, make_results
from support.reader import open_all
from timing import print_table

from popdesic.core.tables import read_table, write_table
from popdesic.distance.matrix import Distances
from popdesic.report.figures import draw_figures
from popdesic.report.figures.maps import draw_beside, draw_components
from popdesic.report.figures.quality import draw_samples
from popdesic.report.figures.style import Colouring, save_figure, styled
from popdesic.report.packs import LARGE
from popdesic.report.page import default_maps, write_report

#: Size in MB and seconds until the maps are drawn: of most studies, and of large ones.
LIMITS, LIMITS_LARGE = (15, 1.0), (40, 3.0)
#: Of answers, by the first word.
GOALS = {"search": "100 ms", "lasso": "500 ms"}
READY = "document.documentElement?.dataset.ready === 'yes'"
LOADED = "document.documentElement?.dataset.loaded === 'yes'"


class FirstRows(Distances):
    """Distances of the first samples only, computed on demand: 30 000 squared would fill a disk.

    The page lists a few closest pairs from them; its size does not depend on which.
    """

    points: np.ndarray

    def __len__(self) -> int:
        return len(self.points)

    def rows(self, which: np.ndarray) -> np.ndarray:
        return np.sqrt(((self.points[which, None] - self.points[None]) ** 2).sum(axis=2))

    def blocks(self):
        which = np.arange(max(10, min(200, 4_000_000 // len(self))))
        yield which, self.rows(which)

    def probe(self) -> np.ndarray:
        return self.rows(np.arange(10)).ravel()


def draw(outcome, small, figures: Path) -> None:
    """All figures: those that show samples from `outcome`, the others from a small study.

    Figures of one kind have the same size, so one of each kind is drawn and used for all.
    """
    limits = {"min_sample_call_rate": 0.9, "min_maf": 0.01}
    draw_figures(*small, figures, color_by="population", **limits)
    if len(outcome.samples) > LARGE:  # minutes of drawing, which is not what is measured
        outcome = small[0]
    values = outcome.qc.population
    colouring = Colouring(values, outcome.cohorts, outcome.founders, "population")
    pca, variance = outcome.embedding("pca"), outcome.variance["pca"]
    with styled():
        save_figure(draw_samples(outcome, values, colouring, 0.9), figures / "samples")
        picture = draw_components(pca, "PC", variance, pca.population, colouring)
        save_figure(picture, figures / "pca")
        umap = outcome.embedding("umap.pcs.alpha2")
        picture = draw_beside(pca, umap, "UMAP", variance, umap.population, colouring, "UMAP")
        save_figure(picture, figures / "umap")
    for path in figures.glob("[!.]*.alpha*"):  # without their checksums
        kind = "umap" if path.name.startswith("umap") else "pca"
        path.write_bytes((figures / f"{kind}{path.suffix}").read_bytes())


def make_study(folder: Path, n: int, n_maps: int):
    """Results of n samples, clustered by population."""
    rng = np.random.default_rng(1)
    cohorts = {f"cohort{k:02}": [f"C{k:02}_{i:06}" for i in range(n // 12)] for k in range(12)}
    n = sum(map(len, cohorts.values()))
    population = rng.integers(0, 26, n)
    columns = {
        "population": [f"POP{k:02}" for k in population],
        "group": [f"G{k % 5}" for k in population],
        "sex": list(rng.choice(["M", "F"], n)),
        "age": list(map(str, rng.integers(18, 95, n))),
        "bmi": [f"{value:.1f}" for value in rng.normal(26, 4, n)],
        "site": list(rng.choice([f"clinic {k}" for k in range(40)], n)),
        "barcode": [f"{value:012x}" for value in rng.integers(0, 2**48, n)],
    }
    founders = list(cohorts)[:6]
    outcome, _ = make_results(folder, cohorts, founders, columns, matrices=False)
    for path in sorted((outcome.folder / "embedding").glob("*.tsv")):
        if path.name == "loadings.tsv":
            continue
        table = read_table(path)
        axes = [c for c in table.columns if c.startswith(("PC", "UMAP")) and c[-1].isdigit()]
        centres = rng.normal(0, 1, (26, len(axes)))
        table[axes] = centres[population] + rng.normal(0, 0.15, (n, len(axes)))
        write_table(path, table)
    maps = default_maps(outcome)
    for k in range(n_maps - len(maps)):
        copy = outcome.folder / "embedding" / f"densmap.map{k}.tsv"
        os.link(maps[1], copy)
        maps.append(copy)
    distances = FirstRows(outcome.folder, "euclidean", 40, 1)
    scores = outcome.embedding("pca")[["PC1", "PC2", "PC3", "PC4"]].to_numpy(float)
    object.__setattr__(distances, "points", scores)
    return outcome, distances, maps


#: What a person does, with the drawing that follows at once; `k` is the number of the repeat.
ANSWERS = {
    "colour by another column": "explorer.part('colour').selectedIndex = (k % 5) + 1,"
    "explorer.recolour(), draw()",
    "hover: find the sample, describe, draw": "explorer.hover("
    "explorer.panels[0].nearest(150, 150 + k), {clientX: 150, clientY: 150}), draw()",
    "zoom and draw": "explorer.panels[0].zoom(1.01), draw()",
    "search, a name's start": "explorer.matches('c0' + k)",
    "search, within names": "explorer.matches('9' + k)",
    "search, no such name": "explorer.matches('nobody' + k)",
    "lasso: select, list, draw": "explorer.select(explorer.panels[0].within("
    "[[60, 10], [300, 10], [300, 300], [60, 300 - k]])), draw()",
}


def measure_page(page: Path, repeats: int, large: bool, webgl: bool) -> tuple[list[tuple], list]:
    """Times until the page is ready and responds in Chromium, as table rows; and problems."""
    painted, ready, busy = [], [], []
    limit = (LIMITS_LARGE if large else LIMITS)[1]
    with Browser() as browser:
        browser.call("Performance.enable", timeDomain="threadTicks")
        if webgl:
            # As if the emulated device had another name.
            source = "WebGL2RenderingContext.prototype.getParameter = (of => function (name) {"
            source += "return name === 0x9246 ? 'any' : of.call(this, name); })"
            source += "(WebGL2RenderingContext.prototype.getParameter)"
            browser.call("Page.addScriptToEvaluateOnNewDocument", source=source)

        def processor() -> float:
            metrics = browser.call("Performance.getMetrics")["metrics"]
            return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

        for _ in range(repeats):
            browser.open("about:blank", "true")
            before = processor()
            browser.open(page.as_uri(), READY)
            for mark, times in (("painted", painted), ("ready", ready)):
                times.append(browser.run(f"performance.getEntriesByName('{mark}')[0].startTime"))
            busy.append(processor() - before)
        if large:
            browser.wait(LOADED)
        browser.run(
            "globalThis.draw = () => { for (const p of explorer.panels) { p.drawNow();"
            # Reading a pixel waits for the drawing.
            "p.canvas.getContext('2d').getImageData(60, 60, 1, 1); } }"
        )
        browser.problems.clear()
        times = {
            name: browser.run(
                "(() => { const all = []; for (let k = 0; k < 5; k++) {"
                f"const t = performance.now(); {script};"
                "all.push(performance.now() - t); } return all.sort((a, b) => a - b)[2]; })()"
            )
            for name, script in ANSWERS.items()
        }
        drawn = browser.run("explorer.data.points?.constructor.name ?? 'canvas'")
        # These remarks are on the measurement.
        problems = [p for p in browser.problems if not re.search("readback|ReadPixels", p)]
        faults = None
        if find_axe():
            open_all(browser)
            faults = browser.violations()
    rows = [
        ("maps painted, best", f"{min(painted) / 1e3:.2f} s", f"{limit:g} s"),
        ("maps painted, median", f"{np.median(painted) / 1e3:.2f} s", f"{limit:g} s"),
        ("ready, median", f"{np.median(ready) / 1e3:.2f} s", ""),
        ("processor until ready, best", f"{min(busy):.2f} s", ""),
        *(
            (name, f"{value:.0f} ms", GOALS.get(name.split(",")[0].split(":")[0], ""))
            for name, value in times.items()
        ),
        ("points drawn by", drawn, ""),
        ("violations by axe-core", "not installed" if faults is None else str(len(faults)), "0"),
    ]
    return rows, [*problems, *(faults or [])]


def peak_memory() -> float:
    """GB that this process has held at most; ru_maxrss has kilobytes on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure(n: int, n_maps: int, repeats: int, webgl: bool) -> None:
    """Write the page of a study of that many samples, open it, print the table."""
    with tempfile.TemporaryDirectory() as folder:
        outcome, distances, maps = make_study(Path(folder), n, n_maps)
        figures, page = outcome.folder / "figures", outcome.folder / "report/report.html"
        names = {"one": [f"a{i}" for i in range(200)], "two": [f"b{i}" for i in range(200)]}
        labels = {"population": [f"P{i % 7}" for i in range(400)]}
        draw(outcome, make_results(Path(folder) / "small", names, ["one"], labels), figures)
        start = time.process_time()
        counts = write_report(outcome, distances, figures, configuration(), page, maps=maps)
        written = time.process_time() - start
        rows, problems = [], None
        large = n > LARGE
        if find_chromium():
            rows, problems = measure_page(page, repeats, large, webgl)
        else:
            print("Chromium is left out: it is not installed (apt-get install chromium).")
        limit = (LIMITS_LARGE if large else LIMITS)[0]
        rows = [
            ("size of the page", f"{counts['bytes'] / 1e6:.1f} MB", f"{limit} MB"),
            *rows,
            ("page written, CPU", f"{written:.0f} s", ""),
            ("memory of this process, peak so far", f"{peak_memory():.1f} GB", "6 GB"),
        ]
        title = (
            f"{len(outcome.samples)} samples, {counts['maps']} maps, {counts['figures']} figures"
        )
        print_table(title, ["", "measured", "limit"], rows)
        if problems is not None:
            print(f"problems on the console: {problems or 'none'}")
        largest = sorted(figures.glob("*"), key=lambda path: -path.stat().st_size)[:3]
        print("largest figures:", [(p.name, p.stat().st_size) for p in largest], flush=True)


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[600, 30_000, 1_000_000])
    parser.add_argument("--maps", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--webgl", action="store_true", help="also where a CPU emulates WebGL")
    options = commandline.parse(parser, samples=[600], maps=8, repeats=1)
    for n in options.samples:
        measure(n, options.maps, options.repeats, options.webgl)


if __name__ == "__main__":
    main()
