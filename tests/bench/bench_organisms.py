"""Run one small drawn study of each kind of organism from `popdesic init` to the report.

    python tests/bench/bench_organisms.py [--studies honeybee tetraploid] [--sites 8000] [--seed 1]
        [--plan] [--quick]

The studies of `tests/scenes/organisms.py`: two populations that parted at F_ST 0.1, and a clone of
the first sample. Sheets and configuration are those that `popdesic init` writes, with nothing set:
species and ploidy are as it finds them. `--plan` ends with `popdesic check`.

Columns: species and ploidies of the sheets; sites of the panel; F_ST found; whether the first axis
parts the populations, and how many axes are significant; communities that have samples of one
population alone, of all; how the clone shows (`identity`: named as the same sample; `nearest`: the
pair with the least distance); sexes told from X, of those known; words of the page for people
alone; wall and CPU seconds of the run.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import commandline
import numpy as np
from bench_scaffolds import timed
from scenes.organisms import draw_study, organisms
from support.page_text import paragraphs_of_html
from timing import print_table

from popdesic.core.files import read_json
from popdesic.core.tables import read_table
from popdesic.distance.matrix import load_distances

COLUMNS = ("study", "species", "ploidy", "panel", "F_ST", "first axis", "axes", "communities")
COLUMNS += ("clone", "sex", "people", "wall s", "CPU s")
#: Words of which a page about plants or parasites has none.
HUMAN = re.compile(r"\b(people|persons?|individuals?)\b", re.IGNORECASE)


def sheets(study: Path) -> Iterator[str]:
    """What `init` wrote: the species, and the ploidies of the samples."""
    text = (study / "config/config.yaml").read_text("utf-8")
    named = re.search(r"^species: (\S+)", text, re.MULTILINE)
    yield named[1] if named else "-"
    table = read_table(study / "config/samples.tsv")
    yield ", ".join(sorted(set(table.ploidy))) if "ploidy" in table else "2"


def findings(study: Path) -> Iterator[str]:
    """Cells of the table, from the panel on."""
    results = study / "results"
    about = read_json(results / "embedding/pca.json")
    yield str(about["sites"]["panel"])
    yield f"{float(read_table(results / 'population/pairs.tsv').fst[0]):.4f}"
    axes = read_table(results / "embedding/pca.tsv")
    first, population = axes.PC1.astype(float), axes.population
    low, high = (first[population == name] for name in ("a", "b"))
    yield "yes" if low.max() < high.min() or high.max() < low.min() else "no"
    yield str(about["significant"])
    parts = read_table(results / "communities/partition.tsv")
    place = dict(zip(axes["sample"], population, strict=True))
    own = parts.assign(population=[place[name] for name in parts["sample"]])
    kinds = own.groupby("community").population.nunique()
    yield f"{int((kinds == 1).sum())} of {len(kinds)}"
    yield clone(results)
    quality = read_table(results / "qc/study.samples.tsv")
    told = quality[quality.sex.isin(["M", "F"])]
    yield f"{int((told.sex == told.sex_from_x).sum())} of {len(told)}" if len(told) else "-"
    page = (results / "report/report.html").read_text("utf-8")
    yield str(sum(len(HUMAN.findall(one)) for one in paragraphs_of_html(page)))


def clone(results: Path) -> str:
    """How the clone of the first sample shows."""
    identity = results / "compare/identity.tsv"
    if identity.exists():
        table = read_table(identity)
        same = table[table.verdict == "same"]
        pairs = {frozenset(pair) for pair in zip(same["query"], same["match"], strict=True)}
        if pairs:
            return "identity" if pairs == {frozenset(("a00", "clone"))} else f"{len(pairs)} pairs"
    names = read_table(results / "distance/samples.tsv")["sample"].to_numpy()
    sites = read_json(results / "embedding/pca.json")["sites"]["panel"]
    options = {"metric": "euclidean", "n_sites": sites, "min_called": 1}
    distances = load_distances(results / "distance", **options)
    distances[np.diag_indices(len(names))] = np.inf
    nearest = np.unravel_index(distances.argmin(), distances.shape)
    return "nearest" if set(names[[*nearest]]) == {"a00", "clone"} else "not found"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--studies", nargs="+", choices=organisms(), default=[*organisms()])
    parser.add_argument("--sites", type=int, default=8_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plan", action="store_true", help="end with `popdesic check`")
    options = commandline.parse(parser, studies=["Plasmodium"], sites=1_000, plan=True)
    rows = []
    for name in options.studies:
        organism = organisms()[name]
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            draw_study(organism, folder, options.seed, options.sites)
            timed(["init", "study", "study.vcf", "--samples", "samples.tsv"], folder)
            timed(["check", "study"], folder)
            cells = [name, *sheets(folder / "study")]
            if not options.plan:
                wall, used = timed(["run", "study"], folder)
                cells += [*findings(folder / "study"), f"{wall:.0f}", f"{used:.0f}"]
            rows.append(cells)
            print(*cells, sep="\t", file=sys.stderr, flush=True)
    print_table("Studies by the defaults", COLUMNS[: len(rows[0])], rows)


if __name__ == "__main__":
    main()
