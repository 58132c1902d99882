"""Questions of a reader of the example's report, and what their answers take in clicks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from support.browser import Browser

#: Pixels of the first lines of an answer.
LINES = 60
READY = "document.documentElement?.dataset.ready === 'yes'"


@dataclass(frozen=True)
class Question:
    """A question, its answer and the way to it.

    Attributes
    ----------
    text : str
    answer : str
        Regular expression of what the answer's element says.
    within : str
        Selector of elements that may hold the answer.
    clicks : tuple of str
        Selectors of what is clicked, one after the other, from the first screen.
    """

    text: str
    answer: str
    within: str = "#found dd, #warnings li"
    clicks: tuple[str, ...] = field(default=())


def contents(name: str) -> str:
    return f"nav a[href='#{name}']"


def tab(panel: str) -> str:
    return f"[id='tab-{panel}']"


QUESTIONS = (
    Question("How many samples and sites were analysed?", r"598 samples of 3 cohorts"),
    Question("Which samples are duplicates?", r"twins \(PC_0445-C and PC_0578-A\)", "#found dd"),
    Question(
        "Which samples were left out, and why?",
        r"quality control: AT00248 and PC_1179-C \(call rate\)",
        "#found dd",
    ),
    Question("Is there structure?", r"principal components exceed chance"),
    Question("Which groups are there, and do labels follow them?", r"separate 4 communities.*ARI"),
    Question("Are CHB and JPT different?", r"CHB and JPT least \(0\.009 ± 0\.001\)"),
    Question("Is the new cohort off?", r"arctic.*allele frequencies differ by .*sampling alone"),
    Question("Which loci interact?", r"ps0231632 .* and ps0464519 .* interact"),
    Question("Which analyses were not run?", r"not run: ancestry proportions", "header p"),
    Question(
        "Which sample has the largest share in runs of homozygosity?",
        r"0\.0[4-9]",
        "#sample-table tbody tr:first-child",
        (contents("samples"), "#sample-table th:nth-child(6) button"),
    ),
    Question(
        "Who is related to whom?",
        r"AT\d+|PC_\d+",
        "#comparisons tbody tr, #ibd tbody tr",
        (contents("comparisons"),),
    ),
    Question(
        "How different are two populations?",
        r"CHB\s+EUR\s+0\.1288 ± 0\.0061",
        "#population tbody tr",
        (contents("population"),),
    ),
    Question(
        "Was a cohort genotyped otherwise than the others?",
        r"Cohort arctic has 124 sites .* look like artefacts",
        "#notes li",
        (contents("notes"),),
    ),
    Question(
        "How accurate are imputed genotypes?",
        r"arctic\s+mode\s+all sites\s.*0\.41",
        "#imputation tbody tr",
        (contents("imputation"),),
    ),
    Question(
        "Is the best interaction one locus or LD around it?",
        r"Loci of the best pairs, close up",
        "figure",
        (contents("epistasis"), tab("epistasis-pairs"), tab("fig-zoom.pairs")),
    ),
    Question(
        "Could this scan have missed an interaction?",
        r"Power by number of samples",
        "figure",
        (contents("epistasis"), tab("epistasis-power")),
    ),
    Question(
        "Which settings were changed?",
        r"\w",
        "#parameters tr.changed",
        (contents("parameters"),),
    ),
)


def count_clicks(page: Browser, address: str, question: Question) -> tuple[int, int] | None:
    """Clicks from the first screen to an answer, and screens to scroll after the last one.

    None if the answer is not there after the clicks; a click that is not needed counts, too.
    """
    page.open("about:blank")
    page.open(address, READY)
    for selector in question.clicks:
        page.run(f"document.querySelector({json.dumps(selector)}).click()")
        page.run("new Promise(done => setTimeout(done, 150))")
    top = page.run(
        f"(() => {{ const words = new RegExp({json.dumps(question.answer)}, 's');"
        f"const found = [...document.querySelectorAll({json.dumps(question.within)})]"
        ".filter(e => e.checkVisibility({contentVisibilityAuto: true}) && words.test(e.innerText));"
        "return found.length ? found.map(e => e.getBoundingClientRect())[0].top : null; })()"
    )
    if top is None:
        return None
    # Its first lines are in sight.
    height = page.run("innerHeight")
    return len(question.clicks), max(0, -int(-(top + LINES - height) // height))


def open_all(page: Browser) -> None:
    """Open sections, tabs and details: axe-core misjudges colours of what is folded."""
    page.run("document.getElementById('unfold').click()")
    page.run("document.querySelectorAll('[data-tab][hidden]').forEach(e => { e.hidden = false; })")
    page.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")


def explain(page: Browser, address: str, word: str) -> str:
    """What the page says of a word that is marked in it, when the word has the focus."""
    page.open("about:blank")
    page.open(address, READY)
    page.run(
        "[...document.querySelectorAll('.term')].find(m => m.textContent.toLowerCase()"
        f".startsWith({json.dumps(word)})).focus()"
    )
    return page.run("document.querySelector('.term-box:not([hidden])')?.innerText ?? ''")
