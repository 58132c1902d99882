"""Rates of exhaustive scans on a GPU beside EPIClear, Tensor-Episdet and the device's limits.

By K2 and by interaction; g and G are all pairs of 500 000 sites.

    python tests/bench/bench_epistasis.py [--cases abc] [--quick]

--phases adds the time of each phase and the waste by blocks and padding; --core, --operand-sites,
and --samples compare the cores of wgmma, and one or two first sites per operand, at other depths
(--cases c --samples 131072 --core deep); --shared-bytes compares what devices with little shared
memory run (--cases d --kernel mma --shared-bytes 101376); --devices 2 scans case e with one and
with two devices, one process each, with --real at the frequencies of chromosome 22; --share 0.05
scans a part of all combinations, in runs of first sites from the whole range (shares.py), and
prints its rate and what it holds. Cases j, J and o have missing genotypes in 5 % of the sites, and
print what share that is of the rate without any. Cases 1 to 7 are EPIClear's other mixes of
genotypes. Cases Q, R and S are quads, by scores of association alone (--cases QRS --share 0.1).
--device-bytes 12000000000 scans each case once more as data larger than a device with so
much memory, and prints what share of the rate that is, and of the rate that copies at their own
pace allow; with --phases also the time of each phase of that scan, where 'next block' is what the
scan waits for copies. --ordinary: from host memory that is not pinned. --real adds common SNPs of
chromosome 22 (--data), in LD and without it, and without each of the two reorderings. --grid prints
one table of the sizes that a paper has, each scanned for about --seconds (scan_grids.py).
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import commandline
import cupy
import cupyx
import numpy as np
import real_scans
import scan_devices
import scan_grids
import scan_steps
import shares
from scan_cases import CASES, WTCCC, Case, resized

from popdesic.engine.compile_gpu import current_device
from popdesic.engine.devices import SHARED_VARIABLE
from popdesic.epistasis import scan_gpu, scan_plan
from popdesic.epistasis.blocks_gpu import BlockPlanes, scan_blocks
from popdesic.epistasis.bound import score_scale
from popdesic.epistasis.interaction_cpu import UNIT_BITS
from popdesic.epistasis.layout import STEP_BITS
from popdesic.epistasis.residual_scan_gpu import ResidualScanner
from popdesic.epistasis.scan_data import ZERO_LEVEL, Hits, OneHot, ResidualData, ScanData
from popdesic.epistasis.scan_gpu import Scanner, scan_parts, scan_step
from popdesic.epistasis.scan_plan import schedule_tiles
from popdesic.epistasis.scores import SCORES, lr_bits, score_tables

DRAW = r"""
extern "C" __global__ void draw(unsigned* words, long long n, int n_words, int n_samples,
                                unsigned first, unsigned second, unsigned missing,
                                int n_incomplete, int n_states, unsigned seed) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long site = i / n_words; int w = (int)(i % n_words);
    unsigned a = 0, b = 0, m = 0;
    for (int k = 0; k < 32; ++k) {
        if (w * 32 + k >= n_samples) break;
        unsigned long long z = (i * 32 + k + 1) * 0x9E3779B97F4A7C15ull + seed;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        unsigned v = (unsigned)(z >> 32);
        if (site < n_incomplete && (unsigned)z < missing) m |= 1u << k;
        else if (v < first) a |= 1u << k;
        else if (v - first < second) b |= 1u << k;
    }
    words[(site * n_states) * n_words + w] = a;
    words[(site * n_states + 1) * n_words + w] = b;
    if (n_states == 3) words[(site * 3 + 2) * n_words + w] = m;
}
"""


def draw(
    n_sites: int, n_samples: int, frequencies, missing: float, seed: int, incomplete: float = 1.0
) -> cupy.ndarray:
    n_words, n_states = -(-n_samples // 64) * 2, 3 if missing else 2
    words = cupy.empty((n_sites, n_states, n_words), np.uint32)
    first, second, left_out = (np.uint32(f * 2**32) for f in (*frequencies[:2], missing))
    n = n_sites * n_words
    sizes = np.int64(n), np.int32(n_words), np.int32(n_samples)
    states = np.int32(round(incomplete * n_sites)), np.int32(n_states)
    cupy.RawKernel(DRAW, "draw")(
        (-(-n // 256),),
        (256,),
        (words, *sizes, first, second, left_out, *states, np.uint32(seed)),
    )
    return words.view(np.uint64)


def make(
    order, n_sites, n0, n1, frequencies, missing=0.0, score="k2_excess", incomplete=1.0
) -> ScanData:
    classes = tuple(
        OneHot(draw(n_sites, n, frequencies, missing, 7 + c, incomplete), n)
        for c, n in enumerate((n0, n1))
    )
    tables = score_tables(score, n0, n1)
    rank, bits = np.arange(n_sites, dtype=np.int32), lr_bits(score, n0 + n1)
    begin = round(incomplete * n_sites) if missing else 0
    return ScanData(classes, *tables, rank, lr_bits=bits, complete_from=begin)


def make_pinned(case: Case, score: str = "k2_excess") -> ScanData:
    """The case's planes in host memory, pinned unless ORDINARY says otherwise."""
    data = make(
        *(case.order, case.n_sites, case.controls, case.cases, case.frequencies, case.missing),
        score=score,
        incomplete=case.incomplete,
    )
    classes = tuple(OneHot(on_host(one.words), one.n_samples) for one in data.classes)
    cupy.get_default_memory_pool().free_all_blocks()
    return replace(data, classes=classes)


def on_host(words: cupy.ndarray | np.ndarray) -> np.ndarray:
    """Planes in host memory."""
    host = (np.empty if ORDINARY else cupyx.empty_pinned)(words.shape, np.uint64)
    if isinstance(words, np.ndarray):
        host[...] = words
    else:
        words.get(out=host)
    return host


def make_trait(case: Case) -> ResidualData:
    """Planes in pinned host memory, and levels of normal residuals."""
    words = draw(case.n_sites, case.controls, case.frequencies, case.missing, 7)
    pinned = cupyx.empty_pinned(words.shape, np.uint64)
    words.get(out=pinned)
    drawn = np.random.default_rng(1).normal(ZERO_LEVEL, 30, case.controls)
    levels = np.clip(np.rint(drawn), 1, 255).astype(np.uint8)
    del words
    cupy.get_default_memory_pool().free_all_blocks()
    one = OneHot(pinned, case.controls)
    return ResidualData(one, levels, float(levels.var()), np.arange(case.n_sites, dtype=np.int32))


def products(case: Case, scanner: Scanner) -> float:
    """Bit products per combination on the tensor cores, mean over first sites."""
    if case.order == 2:
        depth = 5 if case.residuals else 1  # people, and half of them for each of eight bits
        return depth * scanner.states**2 * (case.controls + case.cases)
    n, depths = case.n_sites, scanner.depths.sum(axis=1) / scanner.operand_sites
    before = case.order - 3  # sites before x, whose genotypes share its samples
    behind = [math.comb(n - x - 1, 2) for x in range(len(depths))]
    weight = np.array([math.comb(x, before) * pairs for x, pairs in enumerate(behind)], float)
    return float((depths * weight).sum() / weight.sum()) * scanner.states**2


def scan(case: Case, data, kernel: str | None, spans: list[range]) -> Scanner | ResidualScanner:
    """Scan some runs of first sites, after one set-up."""
    if case.residuals:
        scanner = ResidualScanner(data, 1000, None, current_device(), kernel, os.cpu_count())
    else:
        scanner = Scanner(
            data, case.order, 1000, None, current_device(), kernel or case.kernel, os.cpu_count()
        )
    run = scanner.pairs if case.order == 2 else scanner.triples
    if case.order == 4:
        run = partial(scanner.quads_of, most=scan_gpu.BATCH // scan_plan.FEWER_QUADS)
    for span in spans:
        run(span)
    return scanner


def scan_once(case: Case, data, spans: list[range], kernel: str | None) -> tuple[Hits, float]:
    """Hits of one scan, and its bit products per combination."""
    scanner = scan(case, data, kernel, spans)
    found = scanner.best.hits, products(case, scanner)
    scanner.best.close()  # its memory is free at once
    return found


def measure(
    case: Case,
    kernel: str | None,
    share: float,
    score: str,
    device_bytes: int | None = None,
) -> tuple[str, float]:
    """A line of the table; combinations per second, with set-up, transfers, all phases.

    `device_bytes`: of a scan by blocks of sites.
    """
    data = make_trait(case) if case.residuals else make_pinned(case, score)
    spans = shares.first_sites(case.n_sites, case.order, share)
    tests = shares.count(case.n_sites, case.order, spans)
    samples = case.controls + case.cases
    times, depth = [], math.nan
    # the first run compiles; short runs repeat until the host reaches its usual clock
    while len(times) < 2 or (len(times) < 7 and sum(times[1:]) < 1):
        started = time.perf_counter()
        given = (1000, None, current_device(), kernel or case.kernel, os.cpu_count())
        if device_bytes:
            block = scan_steps.block_of(case, data, device_bytes)
            hits = scan_blocks(scan_step, data, case.order, spans, *given, block)
        elif case.mixed:
            hits = scan_parts(data, case.order, spans, *given)
        else:
            hits, depth = scan_once(case, data, spans, kernel)
        times.append(time.perf_counter() - started)
    rate = tests / min(times)
    unit = 2.0**UNIT_BITS if case.residuals else score_scale(data)
    limit, unit_name = limit_of(kernel or case.kernel)
    used = f"{rate * depth / limit:5.0%} of {unit_name}  " if depth == depth else ""
    return (
        f"{case.order}  {case.n_sites:6d} x {samples:<7d} {case.missing:5.0%} "
        f"{min(times):8.3f} s {rate / 1e9:7.2f} G/s "
        f"{rate * samples / 1e12:6.0f} T  target {case.target:5.0f} T  "
        f"published: {case.published:21s} "
        f"{used}{rate / LOOKUPS:5.1f} look-up ceilings  "
        f"({tests:.3g} tests, best {hits.cost[0] / unit:.2f}; "
        f"{shares.describe(case.n_sites, case.order, spans)})"
    ), rate


def measure_blocks(
    case: Case, kernel: str | None, share: float, score: str, device_bytes: int, resident: float
) -> None:
    """Print the rate by blocks of sites as a share of the rate with all sites on the device."""
    _, rate = measure(case, kernel, share, score, device_bytes)
    if share >= 1:
        data = make_pinned(case, score)
        block = scan_steps.block_of(case, data, device_bytes)
        print(scan_steps.describe(case, data, block, resident, rate))
        del data
    row_bytes = sum(16 * -(-n // 64) for n in (case.controls, case.cases))  # two planes
    row_bytes = row_bytes * 3 // 2 if case.missing else row_bytes
    whole = case.n_sites * row_bytes / 1e9
    print(
        f"   {whole:.2f} GB of planes by blocks, as on a device with {device_bytes / 1e9:.1f} GB: "
        f"{rate / resident:.1%} of the rate with all sites there",
        flush=True,
    )


def measure_real(folder: Path, kernel: str | None, n_sites: int | None) -> None:
    """Print rates of triples of chromosome 22 as shares of the first one."""
    controls, cases = 3072, 2048
    genotypes, rates = real_scans.chromosome(folder, controls + cases, n_sites), []
    for name, data in real_scans.variants(genotypes, controls):
        pinned = tuple(OneHot(on_host(one.words), one.n_samples) for one in data.classes)
        data, times = replace(data, classes=pinned), []
        while len(times) < 3:
            started = time.perf_counter()
            scanner = Scanner(data, 3, 1000, None, current_device(), kernel, os.cpu_count())
            scanner.triples(range(data.n_sites))
            scanner.best.close()
            del scanner
            times.append(time.perf_counter() - started)
        rates.append(math.comb(data.n_sites, 3) / min(times))
        print(
            f"chr22 k2  3  {data.n_sites} x {controls + cases}  {min(times):.3f} s "
            f"{rates[-1] * (controls + cases) / 1e12:5.0f} T  {name}: "
            f"{rates[-1] / rates[0]:.0%} of the first row",
            flush=True,
        )


#: Methods of a scan, with a name for each phase.
PHASES = {
    "__init__": "rest of the set-up",
    "receive": "upload, states counted",
    "transposed": "sample-major planes",
    "_measure_pairs": "largest counts of pairs",
    "pair_tables": "pair tables",
    "_items": "list of blocks",
    "pack": "planes packed",
    "compact": "compaction",
    "_launch": "scan",
    "merge": "exact scores, best so far",
}


def measure_phases(
    case: Case, kernel: str | None, share: float, score: str, device_bytes: int | None = None
) -> None:
    """Seconds of each phase, synchronised after each, so that nothing overlaps but copies."""
    data = make_trait(case) if case.residuals else make_pinned(case, score)
    names = {**PHASES, "take": "next block"} if device_bytes else PHASES
    spent, inside = dict.fromkeys(names, 0.0), [0.0]
    kind = ResidualScanner if case.residuals else Scanner

    def timed(name: str, method):
        def run(*arguments, **options):
            here = cupy.cuda.get_current_stream()
            here.synchronize()
            started = time.perf_counter()
            inside.append(0.0)
            out = method(*arguments, **options)
            here.synchronize()
            took = time.perf_counter() - started
            spent[name] += took - inside.pop()
            inside[-1] += took
            return out

        return run

    spans = shares.first_sites(case.n_sites, case.order, share)
    run = partial(scan, case, data, kernel, spans)
    if device_bytes:
        given = (1000, None, current_device(), kernel or case.kernel, os.cpu_count())
        block = scan_steps.block_of(case, data, device_bytes)
        run = partial(scan_blocks, scan_step, data, case.order, spans, *given, block)
    run()  # compiles
    with contextlib.ExitStack() as stack:
        for name in names:
            owner = BlockPlanes if name == "take" else kind
            if hasattr(owner, name):
                method = timed(name, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, method))
        started = time.perf_counter()
        scanner = run()
        whole = time.perf_counter() - started
    for name, seconds in sorted(spent.items(), key=lambda pair: -pair[1]):
        if seconds:
            print(f"   {names[name]:28s} {1000 * seconds:9.2f} ms {seconds / whole:6.1%}")
    rest = whole - sum(spent.values())
    print(f"   {'rest':28s} {1000 * rest:9.2f} ms {rest / whole:6.1%}", flush=True)
    if device_bytes:
        return
    print(f"   core {scanner.core.file}, first sites of an operand {scanner.operand_sites}")
    if case.order == 3:
        steps = -(-scanner.depths // STEP_BITS) * STEP_BITS
        print(f"   samples among those of padded depth {scanner.depths.sum() / steps.sum():.1%}")
    blocks = ((64, 32), (64, 64), (128, 64), (128, 128), (256, 256))
    useful = (f"{y} x {z} {useful_share(case, y, z):.1%}" for y, z in blocks)
    print("   useful combinations in blocks of y x z sites:", ", ".join(useful), flush=True)


def useful_share(case: Case, tile: int, width: int) -> float:
    """Share of useful combinations among all those in the blocks of a whole scan."""
    n = case.n_sites
    items = schedule_tiles(range(n), range(n), tile, width)
    ends = np.minimum((items[:, 0].astype(np.int64) + 1) * tile - 1, n)
    made = tile * width * sum(math.comb(end, case.order - 2) for end in ends.tolist())
    return math.comb(n, case.order) / made


def measure_devices(case: Case, n_devices: int, folder: Path | None, n_sites: int | None) -> None:
    """Print times on one device and on several; `folder`: real frequencies of these data."""
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            name, data = "equal frequencies", make_pinned(case)
        else:
            name, classes = "frequencies of chromosome 22", (case.controls, case.cases)
            data = real_scans.many_sites(folder, classes, n_sites or case.n_sites)
        scan_devices.save(Path(made), data)
        words = np.concatenate([one.words for one in data.classes], axis=2)
        label = f"{data.n_sites} x {case.controls + case.cases}, {name}"
        scan_devices.compare(label, partial(scan_devices.load, Path(made)), words, n_devices)


#: Whether planes lie in memory that is not pinned (--ordinary).
ORDINARY = False
#: wgmma b1 rate of an H200, and its combinations per second if each took 81 look-ups in shared
#: memory.
TENSOR_LIMIT, LOOKUPS = 7.72e15, 3e10
#: Bits a second that POPC counts on an H200, as bench_bitgemm_gpu.py measured it: 32 at a time.
POPC_LIMIT = 32 * 3.95e12
#: Sites of the Wellcome Trust study (5 004 samples), on which EPIClear and others are measured.
STUDY_SITES = 500_568


def limit_of(kernel: str | None) -> tuple[float, str]:
    """Bit products a second of what a kernel computes with, and its name."""
    return (POPC_LIMIT, "POPC") if kernel == "popc" else (TENSOR_LIMIT, "the tensor cores")


def measure_cases(arguments: argparse.Namespace) -> None:
    """Print the lines of all cases that were asked for."""
    for name in arguments.cases:
        case = resized(CASES[name], arguments.sites, arguments.samples)
        rates = []
        # no GPU scans quads by interaction
        scores = [one for one in arguments.scores if (case.order, one) != (4, "interaction")]
        for score in ["residuals"] if case.residuals else scores:
            line, rate = measure(case, arguments.kernel, arguments.share, score)
            rates.append(rate)
            ratio = f"  {rate / rates[0]:.0%} of {arguments.scores[0]}" if rates[1:] else ""
            print(f"{name} {score:12s}", line, ratio, flush=True)
            if case.mixed:
                whole = replace(case, missing=0.0)
                _, of_whole = measure(whole, arguments.kernel, arguments.share, score)
                samples = case.controls + case.cases
                print(
                    f"   missing genotypes in {case.incomplete:.0%} of the sites: "
                    f"{rate / of_whole:.1%} of the rate without any "
                    f"({of_whole * samples / 1e12:.0f} T)",
                    flush=True,
                )
            elif arguments.device_bytes and not case.residuals:
                given = (case, arguments.kernel, arguments.share, score, arguments.device_bytes)
                measure_blocks(*given, rate)
                if arguments.phases:
                    measure_phases(*given)
            elif arguments.phases:
                measure_phases(case, arguments.kernel, arguments.share, score)
        if case.order == 3 and case.frequencies == WTCCC:
            hours = math.comb(STUDY_SITES, 3) / rate / 3600
            print(f"   all triples of {STUDY_SITES} sites at this rate: {hours:.3g} device-hours")


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--cases", default="".join(CASES))
    parser.add_argument("--scores", nargs="+", choices=SCORES, default=["k2_excess", "interaction"])
    parser.add_argument("--kernel", choices=("wgmma", "mma", "popc"))
    parser.add_argument("--shared-bytes", type=int, help="of a thread block, less than there are")
    parser.add_argument("--core", choices=("deep", "registers"), help="of wgmma, at any depth")
    parser.add_argument("--operand-sites", type=int, choices=(1, 2), help="first sites, in deep")
    parser.add_argument("--batch", type=int, nargs="+", help="most first sites of a batch, in turn")
    parser.add_argument("--samples", type=int, help="instead of the case's, half of them cases")
    parser.add_argument("--share", type=float, default=1.0, help="of the combinations to scan")
    parser.add_argument("--phases", action="store_true")
    parser.add_argument("--devices", type=int, help="compare one device with so many")
    parser.add_argument("--sites", type=int, help="instead of the case's")
    parser.add_argument("--device-bytes", type=int, help="scan also by blocks of sites, in so many")
    parser.add_argument("--grid", nargs="+", choices=scan_grids.GRIDS, help="instead of cases")
    parser.add_argument("--seconds", type=float, default=0.4, help="of the scan of one size")
    parser.add_argument("--ordinary", action="store_true", help="host memory that is not pinned")
    parser.add_argument("--real", action="store_true", help="also chromosome 22")
    shared = Path(os.environ.get("POPDESIC_SHARED", commandline.ROOT.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="of the real genotypes")
    arguments = commandline.parse(parser, gpu=True, cases="dDJpqQ", sites=512, samples=2048)
    global ORDINARY
    ORDINARY = arguments.ordinary
    if arguments.shared_bytes:
        os.environ[SHARED_VARIABLE] = str(arguments.shared_bytes)
    if arguments.devices:
        name = arguments.cases if len(arguments.cases) == 1 else "e"
        case = resized(CASES[name], arguments.sites, arguments.samples)
        folder = arguments.data if arguments.real else None
        measure_devices(case, arguments.devices, folder, arguments.sites)
        return
    if arguments.core:
        steps = 0 if arguments.core == "deep" else math.inf
        scan_plan.DEEP_STEPS = dict.fromkeys((2, 3), steps)
    if arguments.operand_sites:
        least = math.inf if arguments.operand_sites == 1 else -math.inf
        scan_plan.SHARED_STEPS = dict.fromkeys((2, 3), least)
    print(f"{current_device().name}: best 1000, planes in pinned host memory, all phases counted")
    for name in arguments.grid or []:
        load = partial(make_pinned, score=arguments.scores[0])
        run = partial(scan_once, kernel=arguments.kernel)
        scan_grids.measure(name, arguments.seconds, load, run, *limit_of(arguments.kernel))
    if arguments.grid:
        return
    for batch in arguments.batch or [scan_gpu.BATCH]:
        if arguments.batch:
            scan_gpu.BATCH = batch
            print(f"at most {batch} first sites in a batch of triples")
        measure_cases(arguments)
    if arguments.real:
        measure_real(arguments.data, arguments.kernel, arguments.sites)


if __name__ == "__main__":
    main()
