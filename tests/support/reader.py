"""Questions of a reader of the example's report, and what their answers take in clicks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.report.words import number
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
        Expressions of the elements that are clicked, one after the other, from the first screen.
    """

    text: str
    answer: str
    within: str = "#found dd, #warnings li"
    clicks: tuple[str, ...] = field(default=())


def contents(name: str) -> str:
    return f"document.querySelector(\"nav a[href='#{name}']\")"


def tab(panel: str) -> str:
    return f"document.querySelector(\"[id='tab-{panel}']\")"


def heading(words: str) -> str:
    """The heading of a column in the table of all samples."""
    buttons = "[...document.querySelectorAll('#sample-table th button')]"
    return f"{buttons}.find(one => one.textContent.trim() === {json.dumps(words)})"


def questions(results: Path) -> list[Question]:
    """Questions of a reader of a finished study, with answers computed from its results.

    A question whose analysis did not run is not asked. Names and numbers are in the answers as the
    page writes them.
    """
    made = lambda name: (results / name).is_file()  # noqa: E731
    table = lambda name: read_table(results / name)  # noqa: E731
    kept, sites = table("distance/samples.tsv"), read_json(results / "panel/counts.json")["n_sites"]
    qc = pd.concat([read_table(path) for path in sorted(results.glob("qc/*.samples.tsv"))])
    asked = [
        Question(
            "How many samples and sites were analysed?",
            f"{len(kept)} samples of {kept.cohort.nunique()} cohorts were compared at "
            f"{number(sites)} sites",
        ),
        Question(
            "Which samples were left out, and why?",
            "quality control: "
            + " and ".join(sorted(qc["sample"][qc.left_out == "qc.min_sample_call_rate"]))
            + " (call rate)",
            "#found dd",
        ),
        Question(
            "Is there structure?",
            f"{read_json(results / 'embedding/pca.json')['significant']} principal components "
            "exceed chance",
        ),
        Question("Which analyses were not run?", "not run: ", "header p"),
    ]
    if made("compare/identity.tsv"):
        same = table("compare/identity.tsv")
        pair = same[same.verdict == "same"].iloc[0]
        names = " and ".join(sorted([pair["query"], pair["match"]]))
        asked.append(Question("Which samples are duplicates?", f"twins ({names})", "#found dd"))
    if made("communities/agreement.tsv"):
        scores = table("communities/agreement.tsv")
        score = scores[(scores.label == "population") & (scores.partition == "community")].iloc[0]
        asked.append(
            Question(
                "Which groups are there, and do labels follow them?",
                f"separate {score.groups} communities.*ARI {float(score.ari):.2f}",
            )
        )
    if made("population/pairs.tsv"):
        pairs = table("population/pairs.tsv")
        values = pairs.fst.astype(float)
        near, far = pairs.loc[values.idxmin()], pairs.loc[values.idxmax()]
        asked += [
            Question(
                "Which populations differ least?",
                f"{near.population1} and {near.population2} least ({_fst(near, 3)})",
            ),
            Question(
                "How different are two populations?",
                rf"{far.population1}\s+{far.population2}\s+{_fst(far, 4)}",
                "#population tbody tr",
                (contents("population"),),
            ),
        ]
    if made("population/samples.tsv"):
        runs = table("population/samples.tsv")
        first = runs["sample"][runs.f_roh.astype(float).idxmax()]
        asked.append(
            Question(
                "Which sample has the largest share in runs of homozygosity?",
                f"^{first}\\b",
                "#sample-table tbody tr:first-child",
                (contents("samples"), heading("F_ROH")),
            )
        )
    if farthest := _farthest_newcomer(results):
        asked.append(
            Question(
                "Which sample of the newcomers lies farthest from founders of its label?",
                rf"^{farthest}\b",
                "#sample-table tbody tr:first-child",
                (contents("samples"), heading("newcomer shift")),
            )
        )
    drift = table("qc/drift.tsv")
    for new in drift[drift.founder == "no"].itertuples():
        off, chance = float(new.mean_af_difference), float(new.expected_af_difference)
        absent = sites - _found(results, new.cohort)
        asked += [
            Question(
                "Is the new cohort off?",
                f"{new.cohort} .*allele frequencies differ by {off:.3f} (sampling alone: "
                f"{chance:.3f})",
            ),
            Question(
                "Which sites does the new cohort lack, and what was done?",
                rf"absent from the cohort (set to missing).*\b{absent}\b",
                "#data tbody tr",
                (contents("data"),),
            ),
        ]
    strange = table("qc/artefacts.tsv").cohort if made("qc/artefacts.tsv") else pd.Series([])
    for cohort, n in strange.value_counts().items():
        asked.append(
            Question(
                f"Was cohort {cohort} genotyped otherwise than the others?",
                f"Cohort {cohort} has {n} sites .* look like artefacts",
                "#notes li",
                (contents("notes"),),
            )
        )
    if made("compare/relatives.tsv"):
        closest = table("compare/relatives.tsv").iloc[0]
        asked.append(
            Question(
                "Who is related to whom?",
                rf"{closest.sample_a}\s.*{closest.sample_b}\s.*{float(closest.kinship):.3f}",
                "#comparisons tbody tr",
                (contents("comparisons"),),
            )
        )
    if made("impute/evaluation.tsv"):
        accuracy = table("impute/evaluation.tsv")
        row = accuracy[accuracy.by == "all"].iloc[-1]
        asked.append(
            Question(
                "How accurate are imputed genotypes?",
                rf"{row.cohort}\s+{row.method}\s+all sites\s.*{float(row.dosage_r2):.3f}",
                "#imputation tbody tr",
                (contents("imputation"),),
            )
        )
    if made("epistasis/pairs.tsv"):
        best = table("epistasis/pairs.tsv").iloc[0]
        asked += [
            Question("Which loci interact?", f"{best.id1} .* and {best.id2} .* interact"),
            Question(
                "Is the best interaction one locus or LD around it?",
                "Loci of the best pairs, close up",
                "figure",
                (contents("epistasis"), tab("epistasis-pairs"), tab("fig-zoom.pairs")),
            ),
        ]
    if made("epistasis/power.tsv"):
        power = table("epistasis/power.tsv").iloc[0]
        asked.append(
            Question(
                "Could this scan have missed an interaction?",
                rf"{power.model}\s+{power.scan}.*{float(power.power_interaction):.3f}",
                "#epistasis tbody tr",
                (contents("epistasis"), tab("epistasis-power")),
            )
        )
    asked.append(
        Question(
            "Which settings were changed?",
            r"\w",
            "#parameters tr.changed",
            (contents("parameters"),),
        )
    )
    return [replace(one, answer=_literal(one.answer)) for one in asked]


def _farthest_newcomer(results: Path) -> str:
    """The newcomer with the largest difference from founders of its population on a component.

    In standard deviations of at least ten founders, as the table shows them: among equal numbers
    the first sample comes first. Empty where nothing can be compared.
    """
    if not (results / "population/samples.tsv").is_file():
        return ""
    axes = [f"PC{k + 1}" for k in range(read_json(results / "embedding/pca.json")["significant"])]
    labels = read_table(results / "population/samples.tsv")[["sample", "population"]]
    scores = read_table(results / "embedding/coordinates/pca.tsv").merge(labels, on="sample")
    drift = read_table(results / "qc/drift.tsv")
    old = scores.cohort.isin(drift.cohort[drift.founder == "yes"])
    best, name = 0.0, ""
    for own in scores[~old].to_dict("records"):
        alike = scores.loc[old & (scores.population == own["population"]), axes].astype(float)
        if axes and len(alike) >= 10 and own["population"] != "NA":
            off = max(
                abs(float(own[axis]) - alike[axis].mean()) / alike[axis].std() for axis in axes
            )
            if round(off, 1) > best:
                best, name = round(off, 1), own["sample"]
    return name


def _fst(pair: pd.Series, digits: int) -> str:
    return f"{float(pair.fst):.{digits}f} ± {float(pair.error):.{digits}f}"


def _found(results: Path, cohort: str) -> int:
    """Sites of the panel in a cohort's files, also those that are set to missing."""
    table = read_table(results / "qc/summary.tsv")
    own = table[(table.stage == "encode") & (table.cohort == cohort)].set_index("step")["count"]
    return int(own["panel_sites_found"]) + int(own.get("swapped_ambiguous_dropped", 0))


def _literal(answer: str) -> str:
    """Round brackets of an answer are those of the page."""
    return answer.replace("(", r"\(").replace(")", r"\)")


def count_clicks(page: Browser, address: str, question: Question) -> tuple[int, int] | None:
    """Clicks from the first screen to an answer, and screens to scroll after the last one.

    None if the answer is not there after the clicks; a click that is not needed counts, too.
    """
    page.open("about:blank")
    page.open(address, READY)
    for element in question.clicks:
        page.run(f"{element}.click()")
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
