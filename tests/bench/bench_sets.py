"""Tests of sets of sites: false findings, power beside other tests, time, a cohort that joins.

    python tests/bench/bench_sets.py [--studies 100] [--sets 50] [--sites 8] [--people 2000]
        [--scenes NAME ...] [--first-seed 0] [--planted 200] [--timed 20] [--joined 20]
        [--joining 1000] [--biobank 0] [--biobank-people 300000] [--phenotypes 52] [--device cpu]
        [--jobs 2] [--quick]

The first table has shares of null sets (tests/scenes/interactions/sets.py: LD, main effects,
covariates) with p at most 0.05, 0.01 and 0.001 by `popdesic.scan_sets`: its `p` (twice the smaller
of the other two), quadratic, best pair with Bonferroni, burden. In brackets the 95 % interval of p
(Wilson 1927). `above`: tests whose interval lies above the level. Scenes with an `x` test products
of each site with an environment (tests/scenes/interactions/environments.py); they run if named.

The second one plants 1, 5 or 20 of about 1 000 products (46 sites) with 0.1 to 1 % of the variance
of a number together, in 10 000 people (tests/scenes/interactions/planted_sets.py: phenotypes share
genotypes). Power is at 0.05 / 9 515, of `p`, its two parts, and QuadKAST's test from its
definition. Goal: `p` finds at least as many as the best pair, and as QuadKAST's test, less two
standard errors of the difference.

The third one is the time of `--timed` sets of 25 sites (300 products) and 10 000 people on one
thread, and what 9 515 sets take on two cores if all are like these: CPU seconds x 9 515 / 2.

The fourth one is a cohort that joins nine others of `--joining` people each, a number, `--joined`
sets of 25 sites, by the functions of a study (`kept_sets.py`, `set_tables.py`): CPU seconds of
scores, and of tests of all sets from the scores that are kept. Tests of the discovery cohort, the
first one, are kept too. `share`: what the tenth takes, over a tenth of what all ten take, of scores
alone and of both. Goal: at most 1.1.

The fifth one is a biobank: `--phenotypes` numbers of the same `--biobank-people`, in `--biobank`
sets of 25 sites (0: none), of which 8 differ, on all CPUs and `--device`. It has the time of
`scan_sets`, and what 9 515 sets take if all are like these, from genotypes in memory. Goal on one
GPU: 10 minutes.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import commandline
import numpy as np
import pandas as pd
from bench_interactions import wilson
from scenes.interactions.environments import SCENES as OUTSIDE
from scenes.interactions.environments import environment_study
from scenes.interactions.planted_sets import TESTS as PLANTED_TESTS
from scenes.interactions.planted_sets import planted_p_values
from scenes.interactions.sets import NULLS, SetStudy, null_study
from timing import print_table

import popdesic
from popdesic.core.threads import one_blas_thread, usable_cpus
from popdesic.epistasis.kept_sets import cohorts_of, renew_scores
from popdesic.epistasis.null_model import fit_null
from popdesic.epistasis.set_tables import replicate_set
from popdesic.io.genotypes import BED_MAGIC, pack_bed

LEVELS = (0.05, 0.01, 0.001)
TESTS = ("p", "p_quadratic", "p_pair", "p_burden")
GENES, MINUTES = 9_515, 10
PLANTED_PEOPLE, PLANTED_SITES = 10_000, 46
#: Products and their share of the variance; phenotypes of a cell that share genotypes.
CELLS = [(products, share) for products in (1, 5, 20) for share in (0.001, 0.002, 0.005, 0.01)]
PHENOTYPES = 10
TIMED_PEOPLE, TIMED_SITES = 10_000, 25
COHORTS, SHARE = 10, 1.1
DIFFERENT = 8


def tested(study: SetStudy, environment: np.ndarray | None = None):
    """The table of a study, by one thread."""
    return popdesic.scan_sets(
        *(study.genotypes, study.phenotype, study.sets, study.covariates),
        environment=environment,
        transform=study.transform,
        threads=1,
    )


def of_null(name: str, people: int, sets: int, sites: int, seed: int) -> np.ndarray:
    given = (seed, people, sets, sites)
    studies = environment_study(name, *given) if name in OUTSIDE else (null_study(name, *given),)
    return tested(*studies)[list(TESTS)].to_numpy()


def of_planted(people: int, sites: int, many: int, seed: int) -> np.ndarray:
    return planted_p_values(np.random.default_rng([seed, 51]), people, sites, CELLS, many)


def false_findings(options, pool) -> None:
    rows = []
    seeds = range(options.first_seed, options.first_seed + options.studies)
    for name in options.scenes:
        work = partial(of_null, name, options.people, options.sets, options.sites)
        p = np.concatenate(list(pool.map(work, seeds)))
        p = p[np.isfinite(p[:, 0])]
        for level in LEVELS:
            counts = (p <= level).sum(axis=0)
            shares = [f"{count / len(p):.4f}" for count in counts]
            low, high = wilson(int(counts[0]), len(p))
            shares[0] += f" ({max(low, 0):.4f} to {high:.4f})"
            above = [
                t for t, c in zip(TESTS, counts, strict=True) if wilson(int(c), len(p))[0] > level
            ]
            rows.append((name, len(p), level, *shares, ", ".join(above) or "none"))
    title = f"Null sets of {options.sites} sites and {options.people} people with p at most a level"
    print_table(title, ("scene", "sets", "level", *TESTS, "above"), rows)


def power(options, pool) -> None:
    rows, level = [], 0.05 / GENES
    people, sites = (500, 8) if options.quick else (PLANTED_PEOPLE, PLANTED_SITES)
    many = min(options.planted, PHENOTYPES)
    work = partial(of_planted, people, sites, many)
    seeds = range(options.first_seed, options.first_seed + options.planted // many)
    found = np.concatenate(list(pool.map(work, seeds)), axis=1) <= level
    for (products, share), one in zip(CELLS, found, strict=True):
        missed = [
            PLANTED_TESTS[k]
            for k in (2, 3)
            if one[:, k].sum() - one[:, 0].sum() > 2 * np.sqrt((one[:, 0] != one[:, k]).sum())
        ]
        shares = (f"{share:.2f}" for share in one.mean(axis=0))
        rows.append((products, f"{share:.1%}", *shares, ", ".join(missed) or "none"))
    studies = found.shape[1]
    title = f"Power at 0.05 / {GENES}, {studies} studies of {people} people, {sites} sites"
    print_table(title, ("products", "variance", *PLANTED_TESTS, "more than p"), rows)


def seconds(options) -> None:
    rows = []
    people, sites = (1_000, 6) if options.quick else (TIMED_PEOPLE, TIMED_SITES)
    for name in ("number", "cases 1:1", "cases 1:20"):
        study = null_study(name, 1, people, options.timed, sites)
        tested(null_study(name, 2, people, 1, sites))  # imports
        start, wall = time.process_time(), time.perf_counter()
        tested(study)
        took, wall = time.process_time() - start, time.perf_counter() - wall
        minutes = took / options.timed * GENES / 2 / 60
        met = "met" if minutes <= MINUTES else "missed"
        each = f"{1000 * took / options.timed:.0f}"
        rows.append(
            (name, options.timed, each, f"{1000 * wall / options.timed:.0f}", f"{minutes:.1f}", met)
        )
    title = f"Sets of {sites} sites x {people} people; {GENES} sets on two cores, extrapolated"
    head = ("phenotype", "sets run", "CPU ms a set", "wall ms", "minutes", f"goal: {MINUTES}")
    print_table(title, head, rows)


def biobank(options) -> None:
    people, sites = options.biobank_people, 5 if options.quick else TIMED_SITES
    study = null_study("number", 1, people, DIFFERENT, sites)
    rng = np.random.default_rng(51)
    traits = study.phenotype[:, None] + rng.normal(size=(people, options.phenotypes))
    members = list(study.sets.values())
    sets = {f"set{k}": members[k % DIFFERENT] for k in range(options.biobank)}

    def scan(chosen: dict) -> pd.DataFrame:
        given = study.genotypes, traits, chosen, study.covariates
        return popdesic.scan_sets(*given, device=options.device)

    scan({"first": members[0]})  # imports, kernels
    start, wall = time.process_time(), time.perf_counter()
    found = scan(sets)
    took, wall = time.process_time() - start, time.perf_counter() - wall
    minutes = wall / options.biobank * GENES / 60
    one, each = (
        popdesic.scan_sets(study.genotypes, traits[:, 0], {"first": members[0]}, study.covariates),
        found.loc[found["phenotype"] == 0],
    )
    apart = abs(np.log(each[list(TESTS)].iloc[0] / one[list(TESTS)].iloc[0])).max()
    row = (
        *(options.device, usable_cpus(), options.biobank, f"{1000 * wall / options.biobank:.0f}"),
        *(f"{1000 * took / options.biobank:.0f}", f"{minutes:.1f}", f"{apart:.1e}"),
        "met" if minutes <= MINUTES else "missed",
    )
    title = (
        f"{options.phenotypes} numbers x {people} people, sets of {sites} sites; "
        f"{GENES} extrapolated"
    )
    head = ("device", "CPUs", "sets run", "wall ms a set", "CPU ms a set", "minutes")
    print_table(title, (*head, "p beside one number", f"goal: {MINUTES}"), [row])


def write_cohorts(folder: Path, study: SetStudy, people: int) -> tuple[list[Path], pd.DataFrame]:
    """PLINK files of cohorts of so many people each; their stems, and the sheet."""
    n_sites, sheet = study.genotypes.shape[1], []
    bim = "".join(f"1 s{k} 0 {k + 1} A C\n" for k in range(n_sites))
    prefixes = []
    for first in range(0, len(study.genotypes), people):
        own = study.genotypes[first : first + people]
        prefix = folder / f"c{first // people:02d}/genotypes"
        prefix.parent.mkdir()
        names = [f"p{first + k}" for k in range(len(own))]
        packed = pack_bed(np.ascontiguousarray(own.T))
        prefix.with_suffix(".bed").write_bytes(BED_MAGIC + packed.tobytes())
        prefix.with_suffix(".bim").write_text(bim.replace(" ", "\t"))
        prefix.with_suffix(".fam").write_text("".join(f"0\t{n}\t0\t0\t0\t-9\n" for n in names))
        prefixes.append(prefix)
        sheet += names
    return prefixes, pd.DataFrame({"sample": sheet, "phenotype": study.phenotype})


def joining(options) -> None:
    people, sites = options.joining, 5 if options.quick else TIMED_SITES
    study = null_study("number", 1, COHORTS * people, options.joined, sites)
    sets = {name: (np.array(members), None) for name, members in study.sets.items()}
    null = fit_null(study.phenotype, study.covariates, "linear")
    found: dict[str, tuple[int, float, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        prefixes, samples = write_cohorts(Path(name), study, people)
        cohorts = cohorts_of(prefixes, samples, null, "none")
        known: dict[str, dict] = {}
        for scene, given in (
            ("imports", prefixes[:1]),
            ("all ten", prefixes),
            ("the nine", prefixes[:-1]),
            ("the tenth", prefixes),
        ):
            folder = Path(name) / "results" / ("again" if scene.startswith("the") else scene)
            chosen = {one.parent.name: cohorts[one.parent.name] for one in given}
            start = time.process_time()
            scores, made = renew_scores(folder / "row.json", chosen, sets, "", 1)
            middle = time.process_time()
            known = tests_of(scores, sorted(cohorts)[:1], known if scene == "the tenth" else {})
            found[scene] = len(made), middle - start, time.process_time() - middle
    rows = [
        (scene, scored, *(f"{1000 * seconds / options.joined:.1f}" for seconds in took))
        for scene, (scored, *took) in found.items()
        if scene != "imports"
    ]
    title = f"A cohort joins: {COHORTS} x {people} people, {options.joined} sets of {sites} sites"
    head = ("scene", "cohorts scored", "scores, CPU ms a set", "tests, CPU ms a set")
    print_table(title, head, rows)
    (_, *joins), (_, *whole) = found["the tenth"], found["all ten"]
    for what, share in (
        ("scores", COHORTS * joins[0] / whole[0]),
        ("scores and tests", COHORTS * sum(joins) / sum(whole)),
    ):
        print(f"share, {what}: {share:.2f}, goal {SHARE}: {'met' if share <= SHARE else 'missed'}")


@one_blas_thread
def tests_of(scores, discovery: list[str], known: dict[str, dict]) -> dict[str, dict]:
    """Make the rows of all sets, and return the tests of the discovery cohorts."""
    return {
        name: replicate_set(
            name, {cohort: one[name] for cohort, one in scores.items()}, discovery, known.get(name)
        )[0]["discovered"]
        for name in scores[discovery[0]]
    }


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument(
        "--studies", type=int, default=100, help="null studies of each scene; 0: none"
    )
    parser.add_argument("--sets", type=int, default=50, help="of a null study")
    parser.add_argument("--sites", type=int, default=8, help="of a null set")
    parser.add_argument("--people", type=int, default=2000, help="of a null study")
    parser.add_argument("--scenes", nargs="+", choices=(*NULLS, *OUTSIDE), default=list(NULLS))
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--planted", type=int, default=200, help="studies of each model; 0: none")
    parser.add_argument("--timed", type=int, default=20, help="sets that are timed; 0: none")
    parser.add_argument("--joined", type=int, default=20, help="sets of cohorts; 0: none")
    parser.add_argument("--joining", type=int, default=1000, help="people of such a cohort")
    parser.add_argument("--biobank", type=int, default=0, help="sets of a biobank; 0: none")
    parser.add_argument("--biobank-people", type=int, default=300_000, help="of a biobank")
    parser.add_argument("--phenotypes", type=int, default=52, help="of a biobank")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="of a biobank")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = commandline.parse(
        parser,
        studies=2,
        sets=5,
        sites=5,
        people=500,
        planted=2,
        timed=2,
        joined=2,
        joining=200,
        biobank=2,
        biobank_people=300,
        phenotypes=3,
        jobs=1,
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.studies:
            false_findings(options, pool)
        if options.planted:
            power(options, pool)
    if options.timed:
        seconds(options)
    if options.joined:
        joining(options)
    if options.biobank:
        biobank(options)


if __name__ == "__main__":
    main()
