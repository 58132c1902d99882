"""Power to find an interaction at equal family-wise error, beside PLINK 1.9, or on real data.

    python tests/bench/bench_interaction_power.py [--replicates 200] [--jobs 2] [--quick]
    python tests/bench/bench_interaction_power.py --real

Studies of independent sites (MAF 0.05 to 0.5). The first two follow a model of MAF 0.05 to 0.5
(`tests/interactions/models.py`): `xor`, `threshold`, `product`, or `pure`, a random model without
main effects as GAMETES draws them. Its effect is such that the test of its interaction has a power
of 0.6, or the largest allowed. A method finds the pair if its statistic is above the method's own
threshold: exceeded by the best pair of one in 20 studies with the same genotypes and main effects
without the interaction. All methods see the same studies. Columns:

    LR          our `interaction`: likelihood ratio (`p`: by its p, `lr_df` degrees of freedom)
    K2, MI      association by our centred K2 (`raw K2`: as Schaffer et al.) and mutual information
    BOOST       plink1.9 --fast-epistasis boost
    logistic    plink1.9 --epistasis: product of allele counts in a logistic regression

`goal`: LR at least as often as BOOST, and as the better of LR and K2 less 0.03. The second table
says how often the best pair of a study without interaction passes Bonferroni's limit of 0.05.

`--real` ranks the pairs and triples of real and published data sets (`tests/interactions/real.py`).
"""

from __future__ import annotations

import math
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import commandline
import numpy as np
from interactions.models import MODELS, Model, draw_study, pair_tables, statistics, tuned
from interactions.peers import TESTS, run_plink
from timing import print_table

from popdesic.epistasis.interaction import interaction_test

SITES = 60
MAFS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SIZES = ((500, 500), (1000, 1000))
LEVEL, TOLERANCE = 0.05, 0.03
OURS = ("LR", "p", "K2", "raw K2", "MI")
#: Best pairs by LR among which the smallest p is looked for; pairs that PLINK need not print.
FEW, PRINTED_P = 10, 0.01


def p_of(table: np.ndarray) -> float:
    return interaction_test(table.reshape(2, 3, 3))[2]


def of_study(
    cells: np.ndarray, sizes: tuple[int, int], n_sites: int, peers: bool, seed: list[int]
) -> tuple[dict[str, float], dict[str, float]]:
    """The best statistic of a study's pairs by method, and the smallest p of tests that have one.

    A study of two sites has one pair, whose statistics these are.
    """
    genotypes = draw_study(cells, sizes, n_sites, np.random.default_rng(seed))
    tables = pair_tables(genotypes, sizes[0])
    found = statistics(tables, sizes)
    best = {name: float(values.max()) for name, values in found.items()}
    p = {"p": min(p_of(tables[k]) for k in np.argsort(-found["LR"])[:FEW])}
    best["p"] = -p["p"]
    with tempfile.TemporaryDirectory() as folder:
        for test in TESTS if peers else ():
            least = 1.0 if n_sites == 2 else PRINTED_P
            table = run_plink(test, genotypes, sizes[0], Path(folder), least)
            best[test] = float(table.statistic.max()) if len(table) else 0.0
            p[test] = float(table.p.min()) if len(table) else 1.0
    return best, p


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
    null = [of_study(model.without, sizes, SITES, peers, [*seed, 0, k]) for k in range(replicates)]
    limits = limits_of([best for best, _ in null])
    drawn = [of_study(model.cells, sizes, 2, peers, [*seed, 1, k])[0] for k in range(replicates)]
    power = {
        name: float(np.mean([study[name] > limit for study in drawn]))
        for name, limit in limits.items()
    }
    false = {
        test: float(np.mean([p[test] * tests <= LEVEL for _, p in null])) for test in null[0][1]
    }
    return model, power, false


def missed_goal(power: dict[str, float]) -> str:
    """Which goals of the first table a cell misses."""
    short = []
    if power["LR"] < power.get("BOOST", 0.0):
        short.append("BOOST")
    if power["LR"] < max(power["LR"], power["K2"]) - TOLERANCE:
        short.append("K2")
    return ", ".join(short) or "met"


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--replicates", type=int, default=200, help="studies of each kind")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--mafs", nargs="+", type=float, default=list(MAFS))
    parser.add_argument("--real", action="store_true", help="real data instead")
    options = commandline.parse(parser, replicates=3, jobs=1, models=["xor"], mafs=[0.3])
    peers = commandline.find_peer("plink1.9") is not None
    if options.real:
        from interactions.real import print_real

        print_real(peers)
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
            false.append((name, sum(sizes), in_vain))
    title = f"Power at a family-wise error of {LEVEL}, {options.replicates} studies of each kind"
    print_table(title, ("model", "MAF", "people", "expected", *columns, "goal"), rows)
    tests = ("p", *(TESTS if peers else ()))
    rows = []
    for name in options.models:
        for people in map(sum, SIZES):
            own = [p for model, n, p in false if (model, n) == (name, people)]
            rows.append(
                (name, people, *(f"{np.mean([p[test] for p in own]):.3f}" for test in tests))
            )
    title = f"Best pair without interaction, with main effects, beyond Bonferroni's {LEVEL}"
    print_table(title, ("model", "people", *tests), rows)


if __name__ == "__main__":
    main()
