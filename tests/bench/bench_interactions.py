"""False interactions: how often a study without any has a hit with p_interaction <= 5 %.

    python tests/bench/bench_interactions.py [--replicates 400] [--jobs 1] [--order 2] [--quick]
        [--scenes NAME ...] [--first-seed 0] [--cases N]

Each replicate is a study of about 1 000 people at 60 sites without any interaction, of cases and
controls on the scale of log-odds (scenes: tests/scenes/interactions/scenes.py), of numbers on their
own scale (tests/scenes/interactions/numbers.py; pairs alone). All its pairs (triples) are scanned
by interaction, numbers by residuals, with the covariates and the kinship that the scene knows.
'found' is the share of replicates whose best hits have p_interaction <= 0.05, with its 95 %
interval (Wilson 1927); 'chi-square' the same by lr_p times the number of tests. A test that keeps
its level has 0.03 to 0.07 in each scene that is not called unadjusted: there the test is not told
what it needs. In the scenes that are called planted, 'found' is the power. With --cases, so many
people are cases: those of the largest liability.
"""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import commandline
import numpy as np
from scenes.interactions import numbers
from scenes.interactions.scenes import PLANTED, SCENES, SITES, draw_study
from timing import print_table

import popdesic

LEVEL = 0.05
#: Hits of a study that are tested; the smallest p is hardly ever further down.
TOP = 4
#: What the scenes of numbers are called here.
NUMBERS = {f"number, {name}": name for name in numbers.SCENES}


def finds(order: int, scene: str, cases: int, seed: int) -> tuple[bool, bool]:
    """Whether a study has a hit by p_interaction, and by chi-square (of numbers: the F test)."""
    if scene in NUMBERS:
        return (numbers.family_wise(NUMBERS[scene], seed, TOP, LEVEL),) * 2
    study = draw_study(scene, seed)
    if cases:
        study = study.with_cases(cases)
    kinship = None
    if len(study.pairs):
        kinship = np.zeros((len(study.case),) * 2)
        kinship[tuple(study.pairs[:, :2].astype(int).T)] = study.pairs[:, 2]
        kinship += kinship.T
    hits = popdesic.scan(
        study.genotypes,
        study.case,
        order=order,
        top=TOP,
        covariates=study.design if study.design.shape[1] else None,
        kinship=kinship,
        device="cpu",
        threads=1,
    )
    chi_square = float(hits.lr_p.min()) * math.comb(SITES, order)
    return float(hits.p_interaction.min()) <= LEVEL, chi_square <= LEVEL


def wilson(found: int, n: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, found / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return centre - half, centre + half


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--order", type=int, choices=(2, 3), default=2)
    names = [*SCENES, *NUMBERS]
    without = [name for name in names if name not in PLANTED]
    parser.add_argument("--scenes", nargs="+", choices=names, default=without)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=0)
    options = commandline.parse(parser, replicates=1, jobs=1)
    rows = []
    seeds = range(options.first_seed, options.first_seed + options.replicates)
    with ProcessPoolExecutor(options.jobs) as pool:
        for scene in options.scenes:
            if scene in NUMBERS and options.order == 3:
                continue
            one_study = partial(finds, options.order, scene, options.cases)
            found = list(pool.map(one_study, seeds, chunksize=2))
            passed, chi_square = (sum(one[k] for one in found) for k in (0, 1))
            low, high = wilson(passed, len(found))
            rate, interval = f"{passed / len(found):.3f}", f"{low:.3f} to {high:.3f}"
            other = "-" if scene in NUMBERS else f"{chi_square / len(found):.3f}"
            rows.append((scene, len(found), rate, interval, other))
    title = f"Studies with a false interaction of order {options.order} at {LEVEL}"
    print_table(title, ("scene", "studies", "found", "95 % interval", "chi-square"), rows)


if __name__ == "__main__":
    main()
