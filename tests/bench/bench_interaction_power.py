"""Power to find an interaction at equal family-wise error, beside PLINK 1.9, or on real data.

    python tests/bench/bench_interaction_power.py [--replicates 200] [--jobs 2] [--quick]
    python tests/bench/bench_interaction_power.py --real ../shared/data

Studies of independent sites (MAF 0.05 to 0.5). The first two follow a model of MAF 0.05 to 0.5
(`tests/scenes/interactions/models.py`): `xor`, `threshold`, `product`, or `pure`, a random model
without main effects as GAMETES draws them. Its effect is such that the test of its interaction has
a power of 0.6, or the largest allowed. A method finds the pair if its statistic is above the
method's own threshold: exceeded by the best pair of one in 20 studies with the same genotypes and
main effects without the interaction. All methods see the same studies. Columns:

    LR          our `interaction`: likelihood ratio (`p`: by its p, `lr_df` degrees of freedom;
                `prior`: p corrected by main effects, `epistasis/priority.py`)
    K2, MI      association by our centred K2 (`raw K2`: as Schaffer et al.) and mutual information
    BOOST       plink1.9 --fast-epistasis boost
    logistic    plink1.9 --epistasis: product of allele counts in a logistic regression

`goal`: LR, and `prior`, at least as often as BOOST and as the better of LR and K2 less 0.03. The
second table says how often the best pair of a study without interaction has a corrected p of at
most 0.05.

`--real` ranks the pairs and triples of real and published data sets
(`tests/scenes/interactions/real.py`).
"""

from __future__ import annotations

import math
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from scenes.interactions.models import (
    MODELS,
    Model,
    by_p,
    draw_study,
    pair_tables,
    statistics,
    tuned,
)
from scenes.interactions.peers import TESTS, run_plink
from timing import print_table

SITES = 60
MAFS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SIZES = ((500, 500), (1000, 1000))
LEVEL, TOLERANCE = 0.05, 0.03
OURS = ("LR", "p", "prior", "K2", "raw K2", "MI")
#: Pairs with a larger p need not be printed by PLINK.
PRINTED_P = 0.01
#: Studies whose pairs PLINK reads at once.
AT_ONCE = 20


def of_null(
    cells: np.ndarray, sizes: tuple[int, int], peers: bool, seed: list[int]
) -> tuple[dict[str, float], dict[str, float]]:
    """Best statistic by method in a study without interaction; smallest p by test."""
    genotypes = draw_study(cells, sizes, SITES, np.random.default_rng(seed))
    tables = pair_tables(genotypes, sizes[0])
    found = statistics(tables, sizes) | by_p(genotypes, tables, sizes[0])
    best = {name: float(values.max()) for name, values in found.items()}
    p = {"p": math.exp(-best["p"]), "prior": math.exp(-best["prior"])}
    with tempfile.TemporaryDirectory() as folder:
        for test in TESTS if peers else ():
            table = run_plink(test, genotypes, sizes[0], Path(folder), PRINTED_P)
            best[test] = float(table.statistic.max()) if len(table) else 0.0
            p[test] = float(table.p.min()) if len(table) else 1.0
    return best, p


def of_planted(
    cells: np.ndarray, sizes: tuple[int, int], peers: bool, seed: list[int], replicates: int
) -> dict[str, np.ndarray]:
    """Statistic of the model's pair by method in each of several studies: float64 (replicates,).

    As all studies have the same controls and cases, PLINK reads the pairs of several as one study.
    """
    rngs = [np.random.default_rng([*seed, k]) for k in range(replicates)]
    studies = [draw_study(cells, sizes, SITES, rng) for rng in rngs]
    rows = []
    for genotypes in studies:
        table = pair_tables(genotypes[:2], sizes[0])
        rows.append(statistics(table, sizes) | by_p(genotypes, table, sizes[0]))
    found = {name: np.array([row[name][0] for row in rows]) for name in rows[0]}
    pairs = np.stack([genotypes[:2] for genotypes in studies])
    for test in TESTS if peers else ():
        found[test] = np.zeros(replicates)
        for first in range(0, replicates, AT_ONCE):
            some = pairs[first : first + AT_ONCE]
            with tempfile.TemporaryDirectory() as folder:
                table = run_plink(test, np.concatenate(some), sizes[0], Path(folder))
            own = table[(table.site1 % 2 == 0) & (table.site2 == table.site1 + 1)]
            found[test][first + own.site1.to_numpy() // 2] = own.statistic
    return found


def limits_of(null: list[dict[str, float]]) -> dict[str, float]:
    """Threshold of each method: at most one in 20 null studies (and the next one) is above it."""
    rank = min(len(null), math.ceil((1 - LEVEL) * (len(null) + 1))) - 1
    return {name: sorted(study[name] for study in null)[rank] for name in null[0]}


def of_cell(
    name: str, maf: float, sizes: tuple[int, int], replicates: int, peers: bool
) -> tuple[Model, dict[str, float], dict[str, float]]:
    """A model, the power of each method, and how often its best p passes Bonferroni in vain."""
    tests = math.comb(SITES, 2)
    model = tuned(name, maf, sizes, tests)
    seed = [MODELS.index(name), round(1000 * maf), sizes[0]]
    null = [of_null(model.without, sizes, peers, [*seed, 0, k]) for k in range(replicates)]
    limits = limits_of([best for best, _ in null])
    drawn = of_planted(model.cells, sizes, peers, [*seed, 1], replicates)
    power = {method: float((drawn[method] > limit).mean()) for method, limit in limits.items()}
    false = {
        test: float(np.mean([p[test] * tests <= LEVEL for _, p in null])) for test in null[0][1]
    }
    return model, power, false


def missed_goal(power: dict[str, float]) -> str:
    """Which goals of the first table a cell misses."""
    short = []
    for ours in ("LR", "prior"):
        if power[ours] < power.get("BOOST", power["LR"]):
            short.append(f"{ours} < BOOST")
        if power[ours] < max(power["LR"], power["K2"]) - TOLERANCE:
            short.append(f"{ours} < K2, LR")
    return "; ".join(short) or "met"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--replicates", type=int, default=200, help="studies of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--mafs", nargs="+", type=float, default=list(MAFS))
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="real data instead")
    options = commandline.parse(parser, replicates=3, jobs=1, models=["xor"], mafs=[0.3])
    peers = commandline.find_peer("plink1.9") is not None
    if options.real:
        from scenes.interactions.real import print_real

        print_real(options.real, peers, options.quick)
        return
    columns = (*OURS, *(TESTS if peers else ()))
    cells = [(m, q, sizes) for sizes in SIZES for m in options.models for q in options.mafs]
    rows, false = [], []
    with ProcessPoolExecutor(options.jobs) as pool:
        work = partial(of_cell, replicates=options.replicates, peers=peers)
        for (name, maf, sizes), (model, power, in_vain) in zip(
            cells, pool.map(work, *zip(*cells, strict=True)), strict=True
        ):
            shown = [f"{power[column]:.2f}" for column in columns]
            rows.append((name, maf, sum(sizes), f"{model.power:.2f}", *shown, missed_goal(power)))
            print(*rows[-1], file=sys.stderr, flush=True)  # progress
            false.append((name, sum(sizes), in_vain))
    title = f"Power at a family-wise error of {LEVEL}, {options.replicates} studies of each kind"
    print_table(title, ("model", "MAF", "people", "expected", *columns, "goal"), rows)
    tests = ("p", "prior", *(TESTS if peers else ()))
    rows = []
    for name in options.models:
        for people in map(sum, SIZES):
            own = [p for model, n, p in false if (model, n) == (name, people)]
            rows.append(
                (name, people, *(f"{np.mean([p[test] for p in own]):.3f}" for test in tests))
            )
    title = f"Best pair without interaction, with main effects: corrected p at most {LEVEL}"
    print_table(title, ("model", "people", *tests), rows)


if __name__ == "__main__":
    main()
