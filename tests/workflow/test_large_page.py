"""The page of a large study: compressed arrays, WebGL, and the same answers as a small page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.browser import Browser, find_chromium
from support.outcomes import EMPTY, FIGURES, configuration, make_results
from support.reader import open_all

from popdesic.report import packs, pagedata
from popdesic.report.page import default_maps, write_report

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium on PATH; install chromium or set CHROMIUM"
)

HOSTILE = "</script><script>window.hacked = 1</script>\"'&é"
LOADED = "document.documentElement?.dataset.loaded === 'yes'"
READY = "document.documentElement?.dataset.ready === 'yes'"
N = 300


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict:
    """One study as a small page and as a large one."""
    folder = tmp_path_factory.mktemp("large")
    # İ becomes two letters in lower case, so that positions in both texts differ.
    names = [HOSTILE, "İstanbul", *(f"a{i}" for i in range(N - 102))]
    cohorts = {"one": names, "new": [f"B{i}" for i in range(100)]}
    rng = np.random.default_rng(3)
    columns = {
        "population": (["P", "Q", HOSTILE, "NA"] * N)[:N],
        "barcode": [f"x{value:08x}" for value in rng.integers(0, 2**32, N)],
        "height": [*(f"{value:.6f}" for value in rng.normal(170, 9, N - 1)), "NA"],
    }
    outcome, distances = make_results(folder, cohorts, ["one"], columns)
    figures = outcome.folder / "figures"
    figures.mkdir()
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    half = outcome.samples.iloc[::2][["sample"]].assign(X1=np.linspace(-3, 5, N // 2))
    table = outcome.folder / "embedding/coordinates/half.tsv"
    half.to_csv(table, sep="\t", index=False)
    written = {"outcome": outcome}
    with pytest.MonkeyPatch.context() as patch:
        for kind, limit in (("small", 10 * N), ("large", N - 1)):
            patch.setattr(packs, "LARGE", limit)
            patch.setattr(pagedata, "MANY_VALUES", 250)
            out = outcome.folder / f"report/{kind}.html"
            maps = [*default_maps(outcome), table]
            write_report(outcome, distances, figures, configuration(), out, maps=maps)
            written[kind] = out
    return written


@pytest.fixture
def page(pages, browser):
    # Chromium remarks that it copies WebGL's picture, which costs time only without a GPU.
    with browser.visit(pages["large"].as_uri(), LOADED, harmless="ReadPixels"):
        yield browser


#: Answers that both pages must give.
ANSWERS = {
    "names": "Array.from({length: explorer.data.n}, (_, i) => explorer.data.name(i))",
    "values": "explorer.data.columns.map(c => [c.name, Array.from({length: explorer.data.n},"
    "(_, i) => explorer.data.value(c, i))])",
    "pca": "[0, 1].map(k => Array.from(explorer.data.coordinates(explorer.data.maps[0], k),"
    "x => Number.isNaN(x) ? -1 : Math.round(65534 * x)))",
    "half": "explorer.data.load(explorer.data.maps.at(-1).axes).then(() =>"
    "Array.from(explorer.data.coordinates(explorer.data.maps.at(-1), 0),"
    "x => Number.isNaN(x) ? -1 : Math.round(65534 * x)))",
    "search": "['a1', 'B', '1', '</SCR', 'é', 'STANB', 'nobody', ' b9 '].map(t =>"
    "explorer.matches(t))",
    "find": "['a17', 'B', 'a1', 'İstanbul'].map(name => explorer.data.find(name))",
    "nearest": "[[100, 100], [200, 90], [5, 5]].map(p => explorer.panels[0].nearest(...p))",
    "lasso": "Array.from(explorer.panels[0].within("
    "[[60, 10], [300, 10], [180, 150], [300, 300], [60, 290]]))",
    "legend": "document.querySelector('[data-part=legend]').innerText",
    "cohorts": "(explorer.select([1, 2, 250]), [explorer.chosen(),"
    "document.querySelector('[data-part=count]').innerText,"
    "document.querySelector('[data-part=rows]').innerText])",
}


def test_a_large_page_answers_as_a_small_one(pages, page):
    assert page.run("explorer.data.large") is True
    large = {name: page.run(script) for name, script in ANSWERS.items()}
    assert page.run("typeof window.hacked") == "undefined"
    page.open(pages["small"].as_uri(), READY)
    assert page.run("explorer.data.large") is False
    for name, script in ANSWERS.items():
        assert large[name] == page.run(script), name
    assert large["search"][3] == [0]
    assert large["search"][5] == [1]
    page.open(pages["large"].as_uri(), LOADED)


def colours(page: Browser, engine: str, column: str) -> dict[str, int]:
    """How many pixels of each colour a panel has, drawn by one of the two engines."""
    page.run(
        "globalThis.pixelsOf = c => { const o = new OffscreenCanvas(c.width, c.height)"
        ".getContext('2d'); o.drawImage(c, 0, 0); return o.getImageData(0, 0, c.width, c.height);}"
    )
    page.run(
        f"(() => {{ explorer.data.points = new {engine}(explorer.data.order, true);"
        "explorer.part('colour').value = explorer.data.columns.findIndex("
        f"c => c.name === '{column}'); explorer.recolour();"
        "for (const p of explorer.panels) { p.layerKey = null; p.drawNow(); } })()"
    )
    counts = page.run(
        "(() => { const n = {}, d = pixelsOf(explorer.panels[0].layer()).data;"
        "for (let i = 0; i < d.length; i += 4) if (d[i + 3]) {"
        "const k = [d[i], d[i + 1], d[i + 2]].join(); n[k] = (n[k] || 0) + 1; } return n; })()"
    )
    return dict(counts)


def test_without_a_gpu_pixels_are_drawn(page):
    """Emulated WebGL takes twice as long; this browser has no GPU."""
    assert page.run("explorer.data.points instanceof PixelPoints")


@pytest.mark.parametrize("column", ["population", "barcode", "height"])
def test_webgl_and_pixels_draw_the_same_places(page, column):
    """Ink lies at the same places, whichever engine draws it; every label has its colour."""
    boxes = []
    for engine in ("GlPoints", "PixelPoints"):
        assert len(colours(page, engine, column)) > 3
        boxes.append(
            page.run(
                "(() => { const p = explorer.panels[0], c = p.layer(), d = pixelsOf(c).data;"
                "let hit = 0; for (let i = 0; i < p.data.n; i++) {"
                "const [x, y] = p.screen(i).map(Math.round);"
                "if (d[4 * (y * c.width + x) + 3]) hit++; } return hit; })()"
            )
        )
    assert boxes == [N, N]


def test_a_selection_fades_the_others_and_is_listed_by_pages(page):
    before = colours(page, "GlPoints", "population")
    page.run("explorer.part('all').click()")
    assert page.run("document.querySelectorAll('#explorer .rows tbody tr').length") == 200
    page.run("explorer.part('later').click()")
    assert page.run("document.querySelectorAll('#explorer .rows tbody tr').length") == N - 200
    assert f"201 to {N} of {N}" in page.run("explorer.part('more').innerText")
    assert page.run("explorer.part('later').disabled") is True
    page.run("explorer.part('clear').click(), explorer.select([3])")
    assert colours(page, "GlPoints", "population") != before


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("engine", ["GlPoints", "PixelPoints"])
def test_a_large_page_has_no_fault_of_accessibility(page, engine, theme, width):
    """By axe-core, with thousands of points drawn, a page of a selection and a sample's card."""
    page.resize(width, 900)
    try:
        page.run(f"document.documentElement.dataset.theme = {theme!r}")
        colours(page, engine, "population")
        page.run("explorer.part('all').click(), explorer.part('later').click(), explorer.pin(5)")
        assert page.run("explorer.part('pages').checkVisibility()")
        open_all(page)
        assert page.violations() == []
    finally:
        page.resize(1280, 900)


def test_what_does_not_fit_is_left_out_by_name(pages, monkeypatch, tmp_path):
    outcome = pages["outcome"]
    monkeypatch.setattr(pagedata, "MANY_VALUES", 250)
    first = ["pca", "umap.pcs.alpha2"]
    whole = packs.Packs()
    args = {"color_by": "population", "first": first}
    data = pagedata.page_data(outcome, default_maps(outcome), [], **args, store=whole)
    assert data["left_out"] == []
    used = packs.BUDGET - whole.left
    small = packs.Packs(used * 2 // 3)
    data = pagedata.page_data(outcome, default_maps(outcome), [], **args, store=small)
    assert {m["name"] for m in data["maps"]} >= set(first)
    assert data["left_out"]
    assert small.left >= 0
    # Packs that are gone are not referred to.
    numbers = [a["steps"]["pack"] for m in data["maps"] for a in m["axes"]]
    numbers += [c["codes"]["pack"] for c in data["columns"]]
    assert max(numbers) < len(small.texts)


def test_a_column_of_many_labels_keeps_every_text():
    values = pd.Series([f"v{i % 97}" for i in range(500)] + ["NA", ""])
    colouring = pagedata.Colouring(values, ["one"], ["one"], "label")
    packed = pagedata._pack_texts("label", values, colouring, packs.Packs())
    assert packed["others"] + len(colouring.labels) == 97
    assert packed["values"][-2:] == ["NA", pagedata.REST]
    assert len(packed["colours"]) == len(packed["values"]) == len(packed["markers"])
