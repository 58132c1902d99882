"""The report in a real browser: it answers, fetches nothing and leaves the console empty."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from support.browser import Browser, find_chromium
from support.outcomes import EMPTY, FIGURES, configuration, make_results

from popdesic.core.tables import write_table
from popdesic.report.figures.maps import draw_components
from popdesic.report.figures.style import Colouring, save_figure, styled
from popdesic.report.page import default_maps, write_report

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium on PATH; install chromium or set CHROMIUM"
)

HOSTILE = "</script><script>window.hacked = 1</script>\"'&é"
READY = "document.documentElement?.dataset.ready === 'yes'"
POPULATIONS = ["P", "Q", HOSTILE, "NA"]


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> dict:
    """Two cohorts, a sample with a hostile name, a map of some samples and a table of traits."""
    folder = tmp_path_factory.mktemp("page")
    cohorts = {
        "one": [HOSTILE, *(f"a{i}" for i in range(59))],
        "new": [f"b{i}" for i in range(40)],
    }
    columns = {
        "population": (POPULATIONS * 25)[:100],
        "age": [str(20 + i) for i in range(100)],
        "a.column.with.one.of.the.longest.names": [f"value {i}" for i in range(100)],
    }
    outcome, distances = make_results(folder, cohorts, ["one"], columns)
    results = outcome.folder
    half = outcome.samples.iloc[::2][["sample"]].assign(
        X1=np.linspace(-3, 5, 50), X2=np.linspace(1, 0, 50), wobble=np.arange(50) / 7
    )
    write_table(results / "embedding/coordinates/half.tsv", half)
    write_table(
        results / "communities.tsv",
        outcome.samples[["sample"]].assign(community=np.arange(100) % 3 + 1),
    )
    figures = results / "figures"
    figures.mkdir()
    for name in FIGURES:  # drawing takes seconds, and only one of them is looked at
        (figures / f"{name}.svg").write_text(EMPTY)
    pca = outcome.embedding("pca")
    colouring = Colouring(outcome.qc.population, outcome.cohorts, outcome.founders, "population")
    with styled():
        drawn = draw_components(pca, "PC", outcome.variance["pca"], pca.population, colouring)
        save_figure(drawn, figures / "pca")
    out = results / "report/report.html"
    write_report(
        outcome,
        distances,
        results / "figures",
        configuration(title=HOSTILE),
        out,
        maps=[*default_maps(outcome), results / "embedding/coordinates/half.tsv"],
        tables=[results / "communities.tsv"],
    )
    return {"outcome": outcome, "page": out}


@pytest.fixture
def page(study, browser):
    with browser.visit(study["page"].as_uri(), READY):
        yield browser


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


def point(page: Browser, sample: int, panel: int = 0) -> tuple[float, float]:
    """Where a sample's point is in the window."""
    left, top, _, _ = page.bring(f"explorer.panels[{panel}].canvas")
    x, y = page.run(f"explorer.panels[{panel}].screen({sample})")
    return left + x, top + y


def choose(page: Browser, part: str, text: str, panel: str = "#explorer") -> None:
    """Choose an entry of a list by its words, as a person would."""
    page.run(
        f"(() => {{ const list = document.querySelector({json.dumps(panel)})"
        f".querySelector('[data-part={part}]');"
        f"list.value = [...list.options].find(o => o.text === {json.dumps(text)}).value;"
        "list.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


def pixels(page: Browser, panel: int = 0) -> dict[tuple[int, int, int], int]:
    """How often each colour occurs on a map."""
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    counts = page.run(
        f"(() => {{ const c = explorer.panels[{panel}].canvas, n = {{}};"
        "const copy = new OffscreenCanvas(c.width, c.height).getContext('2d');"
        "copy.drawImage(c, 0, 0);"
        "const d = copy.getImageData(0, 0, c.width, c.height).data;"
        "for (let i = 0; i < d.length; i += 4) {"
        "const k = `${d[i]},${d[i + 1]},${d[i + 2]}`; n[k] = (n[k] || 0) + 1; } return n; })()"
    )
    return {tuple(map(int, key.split(","))): count for key, count in counts.items()}


def test_the_page_opens_with_its_maps(page, study):
    assert page.run("typeof window.hacked") == "undefined"
    assert page.run("explorer.panels.map(p => p.map.name)") == ["pca", "umap.genotypes.alpha2"]
    assert len(pixels(page)) > 50
    assert page.run("document.querySelectorAll('figure svg, figure img').length") == 17


def test_the_page_without_scripts_keeps_its_figures(study, browser):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(study["page"].as_uri())
        hidden = browser.run("getComputedStyle(document.getElementById('explorer')).display")
        assert hidden == "none"
        assert browser.run("document.querySelectorAll('figure svg, figure img').length") == 17
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_coordinates_and_columns_arrive_as_they_were_written(page, study):
    """What the page unpacks is what the tables hold, to a step of 65 534."""
    for name, axis in (("pca", "PC2"), ("umap.pcs.alpha2", "UMAP1")):
        table = study["outcome"].embedding(name)[axis].to_numpy(float)
        shown = page.run(
            f"(() => {{ const m = explorer.data.maps.find(m => m.name === '{name}');"
            f"const k = m.axes.findIndex(a => a.name.split(' ')[0] === '{axis}'), a = m.axes[k];"
            "return [...explorer.data.coordinates(m, k)]"
            ".map(s => a.low + s * (a.high - a.low)); })()"
        )
        np.testing.assert_allclose(shown, table, atol=np.ptp(table) / 65_534)
    columns = page.run(
        "Object.fromEntries(explorer.data.columns.map(c =>"
        "[c.name, explorer.data.samples.map((_, i) => explorer.data.value(c, i))]))"
    )
    samples = study["outcome"].samples
    for name in ("cohort", "population", "age"):
        assert columns[name] == list(samples[name])
    assert columns["community"] == [str(i % 3 + 1) for i in range(100)]
    assert columns["wobble (half)"][1] == "NA"
    assert columns["call rate"][0] == "0.99"
    assert page.run("explorer.data.samples") == list(samples["sample"])


def test_pointing_at_a_sample_shows_its_columns(page, study):
    sample = page.run("explorer.panels[0].nearest(...explorer.panels[0].screen(0))")
    page.mouse("Moved", *point(page, sample))
    tip = page.run("document.querySelector('[data-part=tip]').innerText")
    assert page.run("document.querySelector('[data-part=tip]').hidden") is False
    row = study["outcome"].samples.iloc[sample]
    assert row["sample"] in tip
    assert row["age"] in tip
    widths = page.run(
        "[...document.querySelectorAll('[data-part=tip] dd')].map(cell => cell.clientWidth)"
    )
    assert min(widths) > 64, "long names must not squeeze the values to one letter a line"
    page.mouse("Moved", 5, 5)
    assert page.run("document.querySelector('[data-part=tip]').hidden") is True


def test_every_column_colours_the_maps(page):
    before = pixels(page)
    seen = [before]
    for column in ("cohort", "age", "community", "wobble (half)", "call rate"):
        choose(page, "colour", column)
        seen.append(pixels(page))
        assert seen[-1] != seen[-2], column
        assert column in page.run("document.querySelector('[data-part=legend]').innerText")
    choose(page, "colour", "population")
    assert pixels(page) == before


def test_a_label_has_the_colour_of_the_figures(page, study):
    """Colours are given once: a label's colour on the map is that of its marks in the SVG."""
    colours = page.run("explorer.column.values.map((v, i) => [v, explorer.colours[i]])")
    svg = (study["outcome"].folder / "figures/pca.svg").read_text().lower()
    for label, colour in colours:
        assert colour.lower() in svg, label
    assert len({colour for _, colour in colours}) == len(colours)


def test_shapes_tell_labels_apart_without_colour(page):
    choose(page, "shape", "label")
    shapes = page.run(
        "Object.fromEntries(explorer.column.values.map((value, code) =>"
        "[value, explorer.shapes.names[code]]))"
    )
    assert len({shapes[label] for label in POPULATIONS[:3]}) == 3


def test_any_map_and_any_pair_of_axes_can_be_shown(page, study):
    titles = page.run("[...document.querySelector('[data-part=map]').options].map(o => o.text)")
    assert titles[0] == "PCA"
    assert "half" in titles
    for title in titles:
        choose(page, "map", title)
        assert len(pixels(page)) > 20, title
    assert page.run("explorer.panels[0].u.filter(Number.isNaN).length") == 50
    choose(page, "map", "PCA")
    before = page.run("[...explorer.panels[0].v]")
    names = page.run("[...document.querySelector('[data-part=y]').options].map(o => o.text)")
    choose(page, "y", names[3])
    assert page.run("[...explorer.panels[0].v]") != before


def test_points_are_drawn_once_until_something_changes(page):
    """Pointing at a sample draws none of the others again."""
    page.run(
        "(() => { globalThis.drawn = 0; const of = PixelPoints.prototype.draw;"
        "PixelPoints.prototype.draw = function (...a) { drawn++; return of.apply(this, a); }; })()"
    )
    page.run("explorer.hover(3, {clientX: 9, clientY: 9}), explorer.panels[0].drawNow()")
    page.run("explorer.hover(-1, {}), explorer.panels[0].drawNow()")
    assert page.run("drawn") == 0
    for change in ("explorer.panels[0].zoom(1.1)", "explorer.select([4])", "explorer.recolour()"):
        page.run(f"(drawn = 0, {change}, explorer.panels[0].drawNow())")
        assert page.run("drawn") > 0, change
    page.run("explorer.select([])")


#: A panel's points as `drawShape` draws them, one after the other, beside those of the page: mean
#: difference of the pixels that either of them covers, the largest, and how many pixels.
BESIDE_SHAPES = """(() => {
  const p = explorer.panels[0];
  p.drawNow();
  const { style, ratio, radius, canvas } = p, { selected } = style;
  const image = (c) => c.getImageData(0, 0, canvas.width, canvas.height).data;
  const white = () => {
    const c = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
    c.fillStyle = "#fff";
    c.fillRect(0, 0, canvas.width, canvas.height);
    return c;
  };
  const [drawn, wanted] = [white(), white()];
  drawn.drawImage(p.layer(), 0, 0);
  wanted.scale(ratio, ratio);
  const alphas = selected.size ? [0.12, 0.95] : [0.85];
  alphas.forEach((alpha, pass) => {
    for (const i of p.data.order) {
      // Centres lie at quarters of a pixel.
      const [x, y] = p.screen(i).map((at) => Math.round(4 * at * ratio) / 4 / ratio);
      if (alphas.length > 1 && selected.has(i) !== (pass === 1)) continue;
      // A canvas mixes each shape on its own.
      const one = new OffscreenCanvas(canvas.width, canvas.height), c = one.getContext("2d");
      c.scale(ratio, ratio);
      drawShape(c, style.shapes.names[style.shapes.codes[i]], x, y, radius,
        style.colours[style.codes[i]]);
      wanted.globalAlpha = alpha;
      wanted.drawImage(one, 0, 0, p.width, p.height);
    }
  });
  const [a, b] = [image(drawn), image(wanted)];
  let sum = 0, n = 0, most = 0;
  const { left, top } = p.margin, { w, h } = p.inner;
  for (let k = 0; k < a.length; k += 4) {
    const [column, row] = [(k / 4) % canvas.width, Math.floor(k / 4 / canvas.width)];
    const [x, y] = [column / ratio, row / ratio];
    if (!(x > left && y > top && x < left + w && y < top + h)) continue;
    const off = Math.max(...[0, 1, 2].map((j) => Math.abs(a[k + j] - b[k + j])));
    if ([0, 1, 2].some((j) => a[k + j] < 250 || b[k + j] < 250)) { sum += off; n++; }
    most = Math.max(most, off);
  }
  return [sum / n, most, n];
})()"""


@pytest.mark.parametrize("chosen", ["[]", "[1, 5, 60]"])
@pytest.mark.parametrize("shape", ["cohort", "label"])
def test_mixed_pixels_look_like_drawn_shapes(page, shape, chosen):
    page.run(
        f"(explorer.part('shape').value = '{shape}', explorer.recolour(),"
        f"explorer.select({chosen}), explorer.panels[0].zoom(1.7))"
    )
    mean, most, n = page.run(BESIDE_SHAPES)
    assert n > 500
    assert mean < 2 and most < 20


def test_zoom_and_pan_by_mouse_and_keyboard(page):
    view = "JSON.stringify(explorer.panels[0].view)"
    whole = page.run(view)
    page.click_on("#explorer button[data-zoom=in]")
    zoomed = page.run(view)
    assert zoomed != whole
    page.run("explorer.panels[0].canvas.focus()")
    page.key("ArrowLeft", 37)
    moved = page.run(view)
    assert moved != zoomed
    x, y = page.middle("#explorer canvas")
    page.mouse("Wheel", x, y, deltaX=0, deltaY=-120)
    page.wait(f"{view} !== {json.dumps(moved)}", 5)
    turned = page.run(view)
    page.drag([(x, y), (x + 30, y + 10), (x + 60, y + 20)])
    assert page.run(view) != turned
    page.key("0", 48)
    assert page.run(view) == whole


def test_a_sample_is_found_by_keyboard(page, study):
    page.run("document.querySelector('[data-part=find]').focus()")
    page.type("B3")
    offered = page.run("[...document.querySelectorAll('#matches li')].map(r => r.innerText)")
    assert offered[:2] == ["b3", "b30"]
    page.key("ArrowDown", 40)
    page.key("Enter", 13)
    card = page.run("document.querySelector('[data-part=card]').innerText")
    assert "b30" in card
    assert page.run("explorer.data.samples[explorer.pinned]") == "b30"
    page.run("document.querySelector('[data-part=find]').value = ''")
    page.type("nobody")
    assert "No sample" in page.run("document.querySelector('[data-part=found]').innerText")


def test_hostile_names_stay_words(page):
    page.run("document.querySelector('[data-part=find]').focus()")
    page.type("</scr")
    page.key("Enter", 13)
    assert HOSTILE in page.run("document.querySelector('[data-part=pinned]').innerText")
    assert page.run("typeof window.hacked") == "undefined"


def test_a_lasso_selects_lists_and_downloads(page, study):
    page.run("document.querySelector('input[value=lasso]').click()")
    wanted = page.run(
        "(() => { const p = explorer.panels[0]; const f = [];"
        "for (let i = 0; i < 100; i++) if (p.screen(i)[0] < p.width / 2) f.push(i); return f; })()"
    )
    left, top, width, height = page.bring("explorer.panels[0].canvas")
    right, bottom = left + width / 2, top + height - 2
    page.drag([(left + 2, top + 2), (right, top + 2), (right, bottom), (left + 2, bottom)])
    samples = study["outcome"].samples
    names = list(samples["sample"].iloc[wanted])
    assert 5 < len(names) < 95
    assert page.run("explorer.chosen()") == wanted
    text = page.run("document.querySelector('[data-part=count]').innerText")
    assert text.startswith(f"{len(names)} of 100 samples selected: ")
    listed = page.run(
        "[...document.querySelectorAll('#explorer .rows tbody tr')].map(r => r.cells[0].innerText)"
    )
    assert listed == names
    page.click_on("[data-part=save]")
    header, *saved = rows(page.downloaded("selected_samples.tsv"))
    assert header[:4] == ["sample", "cohort", "population", "age"]
    assert [row[0] for row in saved] == names
    assert [row[3] for row in saved] == list(samples.age.iloc[wanted])
    page.run("document.querySelector('[data-part=clear]').click()")
    assert page.run("explorer.chosen()") == []


def test_names_are_copied(page):
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite"], session=False)
    page.run("explorer.select([1, 2])")
    page.click_on("[data-part=copy]")
    page.wait("document.querySelector('[data-part=copied]').innerText === 'Copied.'", 5)
    assert page.run("navigator.clipboard.readText()") == "a0\na1"


def test_a_row_of_the_legend_selects_its_samples(page, study):
    page.click_on("[data-part=legend] li:nth-child(2) button")
    label = page.run(
        "document.querySelector('[data-part=legend] li:nth-child(2) .label').innerText"
    )
    expected = np.flatnonzero(study["outcome"].samples.population == label).tolist()
    assert page.run("explorer.chosen()") == expected
    assert len(expected) == 25
    faded = pixels(page)
    page.click_on("[data-part=legend] li:nth-child(2) button")
    assert page.run("explorer.chosen()") == []
    assert pixels(page) != faded


def test_tables_sort_filter_and_download(page):
    page.run("location.hash = 'distances'")
    page.wait("!document.querySelector('#distances').classList.contains('folded')", 5)
    table = "document.querySelector('[aria-label=\"Closest pairs\"] table')"
    column = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[2].innerText))"
    first = page.run(column)
    assert first == sorted(first)
    page.run(f"{table}.querySelectorAll('th button')[2].click()")
    assert page.run(column) == sorted(first, reverse=True)
    assert page.run(f"{table}.querySelectorAll('th')[2].getAttribute('aria-sort')") == "descending"
    page.run(f"{table}.querySelectorAll('th button')[2].click()")
    assert page.run(column) == first
    page.run(
        "document.querySelector('[aria-label=\"Closest pairs\"]').nextElementSibling"
        ".querySelector('button').click()"
    )
    header, *saved = rows(page.downloaded("closest_pairs.tsv"))
    assert header == ["Sample", "Sample", "Distance", "Share of the median distance"]
    assert [float(row[2]) for row in saved] == first
    filtered = page.run(
        "(() => { const box = document.querySelector('[aria-label=Configuration]');"
        "const input = box.nextElementSibling.querySelector('input');"
        "input.value = 'further_maps'; input.dispatchEvent(new Event('input'));"
        "return [...box.querySelectorAll('tbody tr')].filter(r => !r.hidden).length; })()"
    )
    assert filtered == 1


def test_texts_are_ordered_as_numbers_and_words(page):
    texts = ["10.5 %", "NA", "2", "< 0.1 %", "1\u202f234", "b", "a10", "a9", "-3", "1.2e-05"]
    script = f"{json.dumps(texts)}.map(t => cellText({{textContent: t}})).sort(compareTexts)"
    assert page.run(script) == [
        "-3",
        "1.2e-05",
        "< 0.1 %",
        "2",
        "10.5 %",
        "1234",
        "a9",
        "a10",
        "b",
        "NA",
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window(page, width):
    try:
        page.resize(width, 900)
        assert page.run("document.documentElement.scrollWidth") <= width
    finally:
        page.resize(1280, 900)


def test_a_script_that_fetches_would_be_stopped_and_seen(study, browser, tmp_path):
    """The tests above can fail: the page's own policy refuses requests, and the driver sees it."""
    text = study["page"].read_text("utf-8")
    bad = Path(tmp_path / "bad.html")
    bad.write_text(
        text.replace("</body>", "<script>fetch('https://example.org/x')</script></body>")
    )
    browser.problems.clear()
    browser.open(bad.as_uri(), READY)
    browser.wait("true", 1)
    assert any("Content Security Policy" in problem for problem in browser.problems)


def test_names_that_every_object_of_a_browser_has(tmp_path, browser):
    """One cohort called `constructor`: its shape is looked up by name."""
    names = ["toString", "valueOf", "__proto__", "hasOwnProperty"]
    samples = [f"{name}{k}" for name in names for k in range(10)]
    columns = {"population": names * 10, "constructor": ["x", "y"] * 20, "__proto__": ["z"] * 40}
    outcome, distances = make_results(tmp_path, {"constructor": samples}, ["constructor"], columns)
    figures = outcome.folder / "figures"
    figures.mkdir()
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(EMPTY)
    out = outcome.folder / "report/report.html"
    write_report(
        outcome, distances, figures, configuration(), out, maps=default_maps(outcome), tables=[]
    )
    browser.problems.clear()
    browser.open(out.as_uri(), READY)
    assert browser.problems == []
    for column in ("constructor", "__proto__", "population"):
        choose(browser, "colour", column)
        choose(browser, "shape", "cohort")
        assert len(pixels(browser)) > 3
        assert browser.problems == []
    assert browser.run("explorer.data.shapesOf(explorer.column, false).names[0]") == "o"


def listed(page: Browser) -> list[list[str]]:
    """Cells of the table of all samples, as shown."""
    return page.run(
        "[...document.querySelectorAll('#sample-table tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )


def press(page: Browser, words: str) -> None:
    page.run(
        "[...document.querySelectorAll('#sample-table button')]"
        f".find(button => button.textContent === {json.dumps(words)}).click()"
    )


def test_samples_are_listed_sorted_filtered_and_saved(page, study):
    samples = study["outcome"].samples
    page.run("document.querySelector('nav a[href=\"#samples\"]').click()")
    assert [row[0] for row in listed(page)] == samples["sample"].tolist()[:50]
    press(page, "Next rows")
    names = samples["sample"].tolist()[50:]
    assert [row[0] for row in listed(page)] == names
    headers = "[...document.querySelectorAll('#sample-table tbody th[scope=row]')]"
    assert page.run(f"{headers}.map(th => th.textContent)") == names
    assert page.run("document.activeElement.textContent") == "Previous rows"  # on the last page
    paper = "document.querySelector('#sample-table [data-part=paper]').textContent"
    said = page.run(paper)
    assert said.startswith("51 to 100 of 100 samples. All are in the sample sheet")
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert [row[0] for row in listed(page)] == samples["sample"].tolist()
    assert page.run(paper) == "1 to 100 of 100 samples"
    page.run("dispatchEvent(new Event('afterprint'))")
    assert [row[0] for row in listed(page)] == names and page.run(paper) == said
    head = page.run(
        "[...document.querySelectorAll('#sample-table thead th')].map(th => th.textContent)"
    )
    assert head[:3] == ["sample", "cohort", "population"] and "age" not in head
    press(page, "All columns")
    press(page, "age")  # numbers begin with the largest
    assert [row[0] for row in listed(page)] == samples["sample"].tolist()[:49:-1]
    press(page, "age")
    assert [row[0] for row in listed(page)] == samples["sample"].tolist()[:50]
    press(page, "population")  # words begin with the first, and those without come last
    assert {row[2] for row in listed(page)[:25]} == {HOSTILE}
    press(page, "Next rows")
    assert [row[2] for row in listed(page)[25:]] == ["NA"] * 25
    page.run(
        "(() => { const box = document.querySelector('#sample-table [data-part=filter]');"
        "box.value = 'VALUE 9'; box.dispatchEvent(new Event('input')); })()"
    )
    found = {"value 9", *(f"value {i}" for i in range(90, 100))}
    column = page.run(
        "[...document.querySelectorAll('#sample-table thead th')].map(th => th.textContent)"
    )
    at = column.index("a.column.with.one.of.the.longest.names")
    assert {row[at] for row in listed(page)} == found
    press(page, "Download TSV")
    saved = rows(page.downloaded("samples.tsv"))
    assert len(saved) == 12 and saved[0] == column


def test_what_was_found_has_the_first_map_beside_it(page):
    page.resize(1440, 900)
    box = page.run("document.querySelector('#glance').getBoundingClientRect().toJSON()")
    assert box["width"] > 200 and box["bottom"] < 900
    drawn = page.run(
        "(() => { const c = document.querySelector('#glance canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "return new Set(new Uint32Array(d.buffer)).size; })()"
    )
    assert drawn > 10
    page.resize(390, 844)
    assert page.run("document.querySelector('#glance').getBoundingClientRect().width") == 0
