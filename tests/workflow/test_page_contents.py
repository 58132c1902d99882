"""The report's contents, folded sections, tabs, links and themes in a real browser."""

from __future__ import annotations

import base64
import json
import re

import pytest
from support.browser import find_chromium
from support.outcomes import FIGURES, configuration, make_results
from support.reader import Question, contents, count_clicks, explain, open_all

from popdesic.report.glossary import read_terms
from popdesic.report.page import write_report

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium on PATH; install chromium or set CHROMIUM"
)

READY = "document.documentElement?.dataset.ready === 'yes'"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="432pt" height="216pt" viewBox="0 0 2 1"/>'
FOLDED = "[...document.querySelectorAll('main > section.folded')].map(s => s.id)"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("contents")
    cohorts = {"one": [f"a{i}" for i in range(40)], "new": [f"b{i}" for i in range(9)]}
    columns = {"population": ["P", "Q"] * 20 + ["NA"] * 9}
    ways = {"geodesic": {"value": 3.0}, "listed": {"value": 2.0}}
    outcome, distances = make_results(folder, cohorts, ["one"], columns, **ways)
    figures = outcome.folder / "figures"
    figures.mkdir()
    for name in FIGURES:
        (figures / f"{name}.svg").write_text(PICTURE)
    out = outcome.folder / "report/report.html"
    write_report(outcome, distances, figures, configuration(), out)
    return out.as_uri()


@pytest.fixture
def page(address, browser):
    with browser.visit(address, READY):
        yield browser


def test_what_was_found_and_the_map_are_open_and_the_rest_is_folded(page):
    open_ones = page.run("[...document.querySelectorAll('main > section.open')].map(s => s.id)")
    assert open_ones == ["found", "warnings", "map"]
    folded = page.run(FOLDED)
    assert {"data", "quality", "distances", "maps", "parameters", "files"} <= set(folded)
    assert page.run("document.documentElement.scrollHeight") < 3000
    assert "49 samples of 2 cohorts" in page.run("document.querySelector('#found').innerText")


@pytest.mark.parametrize("width", [1440, 390])
def test_every_link_of_the_contents_opens_its_section_and_lands_on_it(page, width):
    try:
        page.resize(width, 900)
        landed = page.run(
            "(async () => { const found = [];"
            "for (const link of document.querySelectorAll('nav a')) { link.click();"
            " await new Promise(done => setTimeout(done, 60));"
            "const section = document.querySelector(link.hash);"
            "const { top } = section.getBoundingClientRect(), e = document.documentElement;"
            "const end = e.scrollHeight - e.clientHeight - Math.ceil(scrollY) <= 1;"
            "found.push([link.hash, Math.round(top), section.classList.contains('folded'), end]); }"
            "return found; })()"
        )
        assert len(landed) >= 9
        for name, top, folded, end in landed:
            assert not folded, name
            assert end or 0 <= top <= 70, (name, top)
        assert page.run(FOLDED) == []
        assert page.run("document.documentElement.scrollWidth") <= width
    finally:
        page.resize(1280, 900)


def test_the_contents_stay_in_sight_and_mark_the_section(page):
    page.run("document.querySelector('nav a[href=\"#files\"]').click()")
    page.wait("document.querySelector('nav [aria-current]')?.hash === '#files'", 5)
    top = page.run("document.querySelector('nav').getBoundingClientRect().top")
    assert 0 <= top < 100


def test_sections_fold_by_keyboard(page):
    state = "document.querySelector('#data h2 button').getAttribute('aria-expanded')"
    assert page.run(state) == "false"
    page.run("document.querySelector('#data h2 button').focus()")
    page.key("Enter", 13)
    assert page.run(state) == "true"
    assert "Cohorts" in page.run("document.querySelector('#data').innerText")
    page.run("document.querySelector('#data h2 button').click()")
    assert page.run(state) == "false"


def test_all_sections_open_at_once(page):
    page.run("document.getElementById('unfold').click()")
    assert page.run(FOLDED) == []
    page.run("document.getElementById('unfold').click()")
    assert len(page.run(FOLDED)) >= 6


def test_maps_of_a_method_are_tabs_with_one_caption(page):
    page.run("document.querySelector('nav a[href=\"#maps\"]').click()")
    shown = "[...document.querySelectorAll('.tabs > figure:not([hidden])')].map(f => f.id.slice(4))"
    first = page.run(shown)
    assert [name.split(".")[0] for name in first] == ["pca", "umap", "pcoa"]
    maps = "[...document.querySelectorAll('.tabs:has(> .caption) [role=tab]')]"
    tabs = page.run(f"{maps}.map(t => t.innerText)")
    assert len(tabs) == 8
    assert len(set(tabs)) == 4
    page.run(f"{maps}[1].click()")
    assert page.run(shown)[1] != first[1]
    assert page.run("document.querySelectorAll('.tabs .caption').length") == 2
    page.run(f"{maps}.find(t => t.getAttribute('aria-selected') === 'true').focus()")
    page.run(
        "document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}))"
    )
    assert page.run(shown) == first


def test_a_link_to_a_figure_in_a_tab_shows_it(page, address):
    name = "umap.pcs.alphaauto"
    page.open("about:blank")
    page.open(f"{address}#fig-{name}", READY)
    assert page.run(f"document.getElementById('fig-{name}').hasAttribute('hidden')") is False
    assert "maps" not in page.run(FOLDED)
    top = page.run(f"document.getElementById('fig-{name}').getBoundingClientRect().top")
    assert 0 <= top < 300


def test_a_link_restores_maps_colour_and_sample(page, address):
    page.run("explorer.panels[1].show(2, 1, 0)")
    page.run("(() => { const c = document.querySelector('[data-part=colour]');"
             "c.value = [...c.options].findIndex(o => o.text === 'cohort');"
             "c.dispatchEvent(new Event('change')); explorer.pin(7); })()")  # fmt: skip
    shown = "JSON.stringify([explorer.panels.map(p => [p.map.name, p.controls.x.value,"
    shown += "p.controls.y.value]), explorer.column.name, explorer.pinned])"
    before, link = page.run(shown), page.run("explorer.link()")
    page.open("about:blank")
    page.open(address, READY)
    assert page.run(shown) != before
    page.open("about:blank")
    page.open(link, READY)
    assert page.run(shown) == before
    page.run("document.querySelector('[data-part=link]').click()")
    page.wait("document.querySelector('[data-part=linked]').innerText !== ''", 5)


def test_a_link_that_names_nothing_known_is_harmless(page, address):
    page.open("about:blank")
    page.open(f"{address}#map1=nothing,9,9&colour=none&sample=nobody", READY)
    assert page.run("explorer.panels[0].map.name") == "pca"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_has_no_fault_of_accessibility(page, theme, width):
    """By axe-core, everything opened, one word explained; pictures are white in both themes."""
    page.resize(width, 900)
    page.run(f"document.documentElement.dataset.theme = {json.dumps(theme)}")
    open_all(page)
    page.run("document.querySelector('#data .term').focus()")
    assert page.run("document.querySelector('.term-box').hidden") is False
    assert page.violations() == []
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
    assert light == (theme == "light")
    page.resize(1280, 900)


BOX = "(document.querySelector('.term-box:not([hidden])')?.innerText ?? '')"
MARK = "[...document.querySelectorAll('#map .term')].find(m => m.textContent === 'founders')"


def test_a_word_of_the_glossary_is_marked_once_a_section(page):
    marked = page.run(
        "[...document.querySelectorAll('main > section')].map(s => [s.id,"
        "[...s.querySelectorAll('.term')].map(m => m.getAttribute('aria-describedby'))])"
    )
    assert sum(len(words) for _, words in marked) > 20
    for name, words in marked:
        assert len(words) == len(set(words)), name
    assert dict(marked)["glossary"] == []
    within = "'table .term, a .term, summary .term, h2 .term, #methods-text .term, svg .term'"
    assert page.run(f"document.querySelectorAll({within}).length") == 0


def test_a_word_is_explained_on_hover_focus_and_tap(page):
    meaning = {word: term.meaning for term in read_terms() for word in term.names}["founder"]
    # pointed at; the box stays while the pointer is on it
    left, top, width, height = page.bring(MARK)
    page.mouse("Moved", left + width / 2, top + height / 2)
    assert meaning in page.run(BOX)
    x, y = page.run(
        "(() => { const b = document.querySelector('.term-box').getBoundingClientRect();"
        "return [b.x + 20, b.y + 10]; })()"
    )
    page.mouse("Moved", x, y)
    page.run("new Promise(done => setTimeout(done, 400))")
    assert meaning in page.run(BOX)
    page.mouse("Moved", 2, 2)
    page.wait(f"{BOX} === ''", 5)
    # reached with the keyboard, left with Escape
    page.run(f"{MARK}.focus()")
    assert meaning in page.run(BOX)
    page.key("Escape", 27)
    assert page.run(BOX) == ""
    page.run("document.activeElement.blur()")
    # tapped
    page.click(left + width / 2, top + height / 2)
    assert meaning in page.run(BOX)
    page.click(2, 2)
    assert page.run(BOX) == ""


def test_a_screen_reader_gets_the_meaning(page):
    page.call("Accessibility.enable")
    element = page.call("Runtime.evaluate", expression=MARK)["result"]["objectId"]
    (node, *_) = page.call(
        "Accessibility.getPartialAXTree", objectId=element, fetchRelatives=False
    )["nodes"]
    assert node["role"]["value"] == "button"
    assert node["name"]["value"] == "founders"
    assert "define the panel" in node["description"]["value"]  # the glossary is folded
    page.call("Accessibility.disable")


def test_answers_are_few_clicks_away(page, address):
    there = Question("How many?", r"49 samples of 2 cohorts")
    assert count_clicks(page, address, there) == (0, 0)
    behind = Question("Panel?", r"", "#parameters tbody tr", (contents("parameters"),))
    assert count_clicks(page, address, behind)[0] == 1
    folded = Question("Panel?", r"", "#parameters tbody tr")
    assert count_clicks(page, address, folded) is None
    assert "define the panel" in explain(page, address, "founder")


@pytest.mark.parametrize("width", [1440, 390])
def test_no_section_is_endless(page, width):
    try:
        page.resize(width, 900)
        page.run("document.getElementById('unfold').click()")
        heights = page.run(
            "[...document.querySelectorAll('main > section')].map(s => [s.id, s.offsetHeight])"
        )
        for name, height in heights:
            assert 20 < height < 6000, name
    finally:
        page.resize(1280, 900)


def test_the_summary_is_printed_on_few_pages(page):
    def sheets() -> int:
        pdf = base64.b64decode(
            page.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        )
        return len(re.findall(rb"/Type\s*/Page[^s]", pdf))

    whole = sheets()
    page.run(
        "document.head.append(Object.assign(document.createElement('style'),"
        "{textContent: '@media print { #data, #data ~ section { display: none } }'}))"
    )
    assert 1 <= sheets() <= 12 < whole


#: Columns of a table of triples as they are shown at first: three sites and all p-values.
HEADINGS = ("Rank", "Locus", "Site 1", "Site 2", "Site 3", "Score")
HEADINGS += ("p of the interaction, one test", "p of the interaction, all tests", "In cis")
HEADINGS += ("p of the association, all tests", "The same by permuted scans")
HIT = ("1", "1", *["ps0047473<br>1:4362479"] * 3, "-77.61", "7.4e-32", "7.4e-26", "no")
HIT += ("1.9e-25", "≤ 1/21")


def test_no_table_is_cut_on_a_desk_or_on_paper(page):
    """At 1440 pixels no table scrolls sideways; on A4 all columns are on the sheet."""
    row = "".join(
        f'<td class="{"n" if not text.startswith("ps") else ""}">{text}</td>' for text in HIT
    )
    head = "".join(f'<th scope="col" class="n">{text}</th>' for text in HEADINGS)
    table = f"<table><thead><tr>{head}</tr></thead><tbody><tr>{row}</tr></tbody></table>"
    page.run(
        "document.querySelector('#data').insertAdjacentHTML('beforeend',"
        f"{json.dumps(f'<div class=scroll aria-label=hits>{table}</div>')})"
    )
    wide = (
        "[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth + 1)"
        ".map(s => s.getAttribute('aria-label'))"
    )
    try:
        page.resize(1440, 900)
        open_all(page)
        assert page.run("document.querySelectorAll('.scroll table').length") > 8
        assert page.run(wide) == []
        page.call("Emulation.setEmulatedMedia", media="print")
        page.resize(718, 1050)  # A4 less margins of 0.4 inches, at 96 dots an inch
        assert page.run(wide) == []
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
        page.resize(1280, 900)


PRINTED = "dispatchEvent(new Event('{}')), explorer.panels.map(p => [p.canvas.width, p.width])"


def test_the_summary_on_paper_has_the_maps(page):
    """They are drawn anew, in finer dots and without the controls, and stand on the first pages."""
    view = "JSON.stringify(explorer.panels.map(p => p.view))"
    page.run("explorer.panels[0].zoom(2)")
    before = page.run(f"[{view}, explorer.panels.map(p => [p.canvas.width, p.width])]")
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert page.run(PRINTED.format("beforeprint")) == [[1020, 340]] * 2
        for shown in ("canvas", ".printed", "[data-part=legend]"):
            assert page.run(f"document.querySelector('#map {shown}').checkVisibility()"), shown
        for hidden in (".controls", ".zoom", "[data-part=find]", "details", ".selection"):
            assert not page.run(f"document.querySelector('#map {hidden}').checkVisibility()"), (
                hidden
            )
        assert page.run("document.querySelector('#map .printed').innerText") == page.run(
            "explorer.panels[0].map.title"
        )
        # One scale on both axes, and points that are not squeezed.
        ratio = "(c => c.width / c.height / (c.clientWidth / c.clientHeight))"
        assert abs(page.run(f"{ratio}(explorer.panels[1].canvas)") - 1) < 0.02
        ink = (
            "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data"
            ".filter((v, i) => i % 4 < 3 && v < 200).length)(explorer.panels[0].canvas)"
        )
        assert page.run(ink) > 5000
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
    page.run(PRINTED.format("afterprint"))
    assert page.run(f"[{view}, explorer.panels.map(p => [p.canvas.width, p.width])]") == before


def test_on_paper_everything_is_open(page):
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        height = page.run("document.querySelector('#parameters .body').offsetHeight")
        assert height > 300
        assert page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
        tabs = "[...document.querySelectorAll('[role=tablist]')].filter(t => t.checkVisibility())"
        assert page.run(f"{tabs}.length") == 0
        folded = "document.querySelectorAll('main details:not([open])').length"
        before = page.run(folded)
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert before > 5 and page.run(folded) == 0
        page.run("dispatchEvent(new Event('afterprint'))")
        assert page.run(folded) == before
        # Paper is white, whatever the theme on the screen.
        page.run("document.documentElement.dataset.theme = 'dark'")
        assert page.run("getComputedStyle(document.body).color") == "rgb(29, 35, 41)"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
