"""How true segments of IBD are, where the truth is known.

    python tests/bench/bench_ibd_truth.py [--seeds 3] [--first-seed 101] [--people 200]
                                          [--truth-people 1000]
                                          [--lengths 80 60] [--sites-per-cm 150] [--isolate 1500]
                                          [--unrelated 6000] [--unrelated-lengths 50 50]
                                          [--unrelated-least 7]
                                          [--tables segments speed false errors]
                                          [--error-rates 0.001 0.005 …]
                                          [--threads 2] [--quick]

Genotypes have 0.1 % errors and 1 % missing calls. Four tables:

- Segments of an isolate (so many people for 30 generations, 8 000 before; msprime, the last 50
  generations by the discrete Wright-Fisher model). The truth is where two people have haplotypes
  of one ancestor of the last 200 generations over at least 0.5 cM; stretches that touch are one,
  because without phase nothing tells them apart. A true segment is found, and a call is right, if
  more than half of it is covered. Of more than --truth-people people, the true segments of so many
  are sought, and segments between these are compared, out of a search of everyone. `one
  ancestor`: share of the calls of which a single ancestor explains more than half. Ends: distance
  to the true ends of the segments that were found. Recall by length: of true segments in classes.
- CPU time of the exact pass (ends, LOD, both alleles) on the isolate, on one thread: that of all
  segments less that of the candidates.
- False segments among people of a large population, nobody of whom is chosen for being related: in
  numbers a pair and genome of 3 543 cM, of which a pair counts for the share that its contigs have.
  The interval is the exact one of a Poisson number (Garwood 1936, 95 %). Pairs of the same people
  and contigs are not independent, so it is rather too narrow.
- The isolates of the first table, whose genotypes are read with more and more errors: what is
  measured inside their long segments (`ibd/genotype_errors.py`), and recall with a rate of 0.001
  and with the measured one, whole and of true segments of 10 to 15 cM; and precision. The large
  population has too few long segments: there nothing may be measured.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

import commandline
import numpy as np
from scenes.ibd_people import (
    HUMAN_CM,
    draw_people,
    grown,
    isolated,
    joined,
    overlap,
    read_with_errors,
    true_among,
    true_of,
)
from scenes.ibd_scores import (
    COVERED,
    Scores,
    call_people,
    score,
)
from scipy.stats import chi2
from timing import print_table

from popdesic.engine.select import cpu_backend
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.find_candidates import find_candidates
from popdesic.ibd.genome import founders_errors
from popdesic.ibd.genotype_errors import tolerance_of
from popdesic.ibd.segments import SearchGenome, least_run, segments_between
from popdesic.ibd.windows import genetic_sites

#: Lengths at which segments are sought; the first has its precision in the table of goals.
LENGTHS = (7.0, 5.0)
#: Limits of the classes of true segments by length, in cM.
CLASSES = (5.0, 5.5, 6.0, 7.0, 7.5, 8.0, 10.0, 15.0, np.inf)
ERROR_RATE, MISSING = 0.001, 0.01
#: Times are the best of so many runs.
REPEATS = 5
#: Mutations of large draws, of which only common ones are kept: some 230 a cM.
THIN_RATE = 2e-9


def segments_table(options) -> None:
    """Above --truth-people, truth and calls are those among so many, drawn at random."""
    rows, whole = [], options.people <= options.truth_people
    by_length: dict[float, list[Scores]] = {least: [] for least in LENGTHS}
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        people = draw_people(
            options.people,
            tuple(options.lengths),
            seed=seed,
            history=isolated(options.isolate),
            sites_per_cm=options.sites_per_cm,
            error_rate=ERROR_RATE,
            missing=MISSING,
            rate=2e-8 if whole else THIN_RATE,
            truth=whole,
        )
        some = set(range(options.people))
        if not whole:
            rng = np.random.default_rng(seed)
            some = set(rng.choice(options.people, options.truth_people, replace=False).tolist())
            people.true.update(true_among(people, list(some)))
        for least in LENGTHS:
            calls = call_people(people, SegmentLimits(min_cm=least), options.threads)
            calls = {pair: own for pair, own in calls.items() if some.issuperset(pair)}
            one = score(people, calls, least)
            by_length[least].append(one)
            ends = np.abs(one.ends) if len(one.ends) else np.array([np.nan])
            rows.append(
                (
                    *(seed, f"{least:g}", one.true, f"{one.recall:.4f}"),
                    *(one.called, f"{one.precision:.4f}"),
                    f"{one.one_ancestor / max(one.called, 1):.4f}",
                    *(f"{np.median(ends):.3f}", f"{np.quantile(ends, 0.9):.3f}"),
                    f"{np.mean(ends <= 0.3):.3f}",
                )
            )
    header = ["seed", "least cM", "true", "recall", "called", "precision", "one ancestor"]
    header += ["ends: median cM", "90 %", "within 0.3 cM"]
    print_table("Segments of an isolate", header, rows)
    print_table("Recall by length", ["cM", *_recall_words()], list(_recall_rows(by_length)))


def _recall_words() -> list[str]:
    return [word for least in LENGTHS for word in ("true", f"recall, least {least:g} cM")]


def _recall_rows(by_length: dict[float, list[Scores]]) -> Iterator[list[str]]:
    """Rows of classes of length: true segments and their recall, for each shortest segment."""
    for low, high in itertools.pairwise(CLASSES):
        row = [f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} and more"]
        for scores in by_length.values():
            length, found = (
                np.concatenate([getattr(one, name) for one in scores])
                for name in ("lengths", "covered")
            )
            here = (low <= length) & (length < high)
            row += [str(here.sum()), f"{found[here].mean():.4f}" if here.any() else ""]
        yield row


def false_table(options) -> None:
    n, lengths = options.unrelated, tuple(options.unrelated_lengths)
    people = draw_people(
        *(n, lengths), seed=options.first_seed, history=grown(),
        sites_per_cm=options.sites_per_cm, error_rate=ERROR_RATE, missing=MISSING,
        rate=THIN_RATE, truth=False,
    )  # fmt: skip
    genomes = n * (n - 1) / 2 * sum(lengths) / sum(HUMAN_CM)
    rows = []
    for least in options.unrelated_least:
        calls = call_people(people, SegmentLimits(min_cm=least), options.threads)
        true = {pair: joined(own) for pair, own in true_of(people, sorted(calls)).items()}
        wrong = sum(
            overlap(call, true[pair]) <= COVERED * (call[2] - call[1])
            for pair, own in calls.items()
            for call in own
        )
        low, high = poisson_interval(wrong)
        million = genomes / 1e6
        rows.append(
            (
                *(
                    f"{least:g}",
                    sum(map(len, calls.values())),
                    wrong,
                    f"{genomes:.0f}",
                    f"{wrong / million:.3g}",
                ),
                f"{low / million:.3g} to {high / million:.3g}",
            )
        )
    header = ["least cM", "called", "false", "pairs x genomes", "false a million", "95 %"]
    print_table("People of a large population", header, rows)


def poisson_interval(events: int) -> tuple[float, float]:
    """95 % interval of the mean of a Poisson number (Garwood 1936)."""
    low = chi2.ppf(0.025, 2 * events) / 2 if events else 0.0
    return float(low), float(chi2.ppf(0.975, 2 * events + 2) / 2)


def speed_table(options) -> None:
    people = draw_people(
        *(options.people, tuple(options.lengths)), seed=options.first_seed,
        history=isolated(options.isolate), sites_per_cm=options.sites_per_cm,
        error_rate=ERROR_RATE, missing=MISSING, rate=THIN_RATE, truth=False,
    )  # fmt: skip
    sites, limits, backend = genetic_sites(people.sites, None), SegmentLimits(), cpu_backend(1)
    genome = SearchGenome.of(sites, people.alt, limits)
    planes, limited = people.planes, {"tolerance": limits.tolerance, "most": limits.most}

    def candidates() -> int:
        least = least_run(limits, genome.windows)
        found = find_candidates(backend, planes, None, genome.windows, min_length=least, **limited)
        return len(found[0])

    def all_segments() -> int:
        return len(segments_between(planes, None, genome, limits, backend))

    seconds, counts = [], []
    for work in (candidates, all_segments):
        counts.append(work())  # compiled
        runs = []
        for _ in range(REPEATS):
            begin = time.process_time()
            work()
            runs.append(time.process_time() - begin)
        seconds.append(min(runs))
    exact = seconds[1] - seconds[0]
    row = (len(sites.cm), *counts, f"{exact:.3f}", f"{1e6 * exact / max(counts[0], 1):.1f}")
    header = ["sites", "candidates", "segments", "CPU s", "CPU us a candidate"]
    print_table("The exact pass", header, [row])


def errors_table(options) -> None:
    rows = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for history in (isolated(options.isolate), grown()):
            people = draw_people(
                *(options.people, tuple(options.lengths)), seed=seed, history=history,
                sites_per_cm=options.sites_per_cm, error_rate=0, missing=0,
            )  # fmt: skip
            true = (people.haplotypes[::2] + people.haplotypes[1::2]).astype(np.int8)
            for rate in options.error_rates:
                rng = np.random.default_rng([seed, round(1e6 * rate)])
                people.genotypes = read_with_errors(true.copy(), rng, rate, MISSING)
                who = "isolate" if history.populations[0].initial_size < 1e5 else "large"
                rows.append((seed, who, f"{rate:g}", *_with_errors(people, options.threads)))
    header = ["seed", "people", "errors", "measured", "segments", "contradictions"]
    header += [f"{word}, {rate}" for rate in ("0.001", "measured") for word in SCORED]
    print_table("Genotyping errors", header, rows)


#: Columns of scores of the table of errors.
SCORED = ("recall", "10 to 15 cM", "precision")


def _with_errors(people, threads: int) -> Iterator[str]:
    """What was measured of errors, and scores without and with it."""
    sites, limits = genetic_sites(people.sites, None), SegmentLimits()
    found = founders_errors(people.planes, sites, people.alt, limits, cpu_backend(threads))
    yield "" if found.rate is None else f"{found.rate:g}"
    yield from (str(found.segments), str(found.contradictions))
    rate = found.rate or limits.error_rate
    measured = replace(
        limits, error_rate=rate, tolerance=tolerance_of(sites, people.alt, limits, rate)
    )
    for own in (limits, measured):
        one = score(people, call_people(people, own, threads), own.min_cm)
        some = (one.lengths >= 10) & (one.lengths < 15)
        here = f"{one.covered[some].mean():.4f}" if some.any() else ""
        yield from (f"{one.recall:.4f}" if one.true else "", here, f"{one.precision:.4f}")


#: Tables of --tables.
TABLES = {
    "segments": segments_table,
    "speed": speed_table,
    "false": false_table,
    "errors": errors_table,
}


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--lengths", type=float, nargs="+", default=[80.0, 60.0], help="cM")
    parser.add_argument("--truth-people", type=int, default=1000, help="with known segments")
    parser.add_argument("--sites-per-cm", type=float, default=150)
    parser.add_argument("--isolate", type=int, default=1500, help="people of the isolate")
    parser.add_argument("--unrelated", type=int, default=6000)
    parser.add_argument("--unrelated-lengths", type=float, nargs="+", default=[50.0, 50.0])
    parser.add_argument("--unrelated-least", type=float, nargs="+", default=[7.0], help="cM")
    parser.add_argument(
        "--error-rates", type=float, nargs="+", default=[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02]
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    options = commandline.parse(
        parser,
        **{"seeds": 1, "people": 30, "lengths": [25.0], "unrelated": 40},
        error_rates=[0.005],
        **{"sites_per_cm": 80, "unrelated_lengths": [25.0]},
    )
    for name in options.tables:
        TABLES[name](options)


if __name__ == "__main__":
    main()
