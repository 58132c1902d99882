"""EPIClear and Tensor-Episdet beside our scans: the same genotypes, on the same card, in one run.

    python tests/bench/bench_epistasis_peers.py [--cases e] [--epiclear PROGRAM]
        [--tensor-episdet PAIRS] [--tensor-episdet-triples TRIPLES] [--mpi "mpirun -np 2"] [--quick]

Build the programs as their own pages say: github.com/hiperbio/EPIClear (its super-blocks have as
many sites as the case) and github.com/hiperbio/tensor-episdet (K2). A program that no option names
has a line that says so. Cases are those of bench_epistasis.py, without missing genotypes. All scan
for the best by K2, from planes: in files for the peers, whose rate is what they print; in pinned
memory for us, with set-up and all phases. The best combinations are compared: the peers score in
float32, so at many samples theirs may be one of our next. Files take two bits a genotype below
--folder. A program that may run too long can be given with its limit: --epiclear PROGRAM --mpi
"timeout 60 mpirun -np 2".
"""

from __future__ import annotations

import math
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import bench_epistasis
import commandline
from bench_peers import commit
from peer_programs import place_among, read_report, write_classes
from scan_cases import CASES, Case, resized

from popdesic.engine.compile_gpu import current_device


def ours(case: Case, data) -> tuple[float, list[frozenset[int]]]:
    """T combinations x samples a second of the better of two runs, and combinations, best first."""
    seconds = []
    for _ in range(2):  # the first one compiles
        started = time.perf_counter()
        scanner = bench_epistasis.scan(case, data, None, [range(case.n_sites)])
        best = [frozenset(sites) for sites in scanner.best.hits.sites.tolist()]
        seconds.append(time.perf_counter() - started)
        scanner.best.close()
        del scanner
    tests = math.comb(case.n_sites, case.order)
    return tests * (case.controls + case.cases) / min(seconds) / 1e12, best


def main() -> None:
    parser = commandline.new_parser(__doc__)
    names = [name for name, one in CASES.items() if not one.missing and not one.residuals]
    parser.add_argument("--cases", default="e", help=f"of {''.join(names)}")
    parser.add_argument("--sites", type=int, help="instead of the case's")
    parser.add_argument("--samples", type=int, help="instead of the case's, half of them cases")
    parser.add_argument("--epiclear", metavar="PROGRAM")
    parser.add_argument("--tensor-episdet", metavar="PAIRS")
    parser.add_argument("--tensor-episdet-triples", metavar="TRIPLES")
    parser.add_argument("--mpi", default="mpirun -np 2", help="EPIClear's: a coordinator, a worker")
    parser.add_argument("--folder", type=Path, help="of the files; a temporary one by default")
    options = commandline.parse(parser, gpu=True, sites=512, samples=2048, cases="ep")
    if wrong := set(options.cases) - set(names):
        parser.error(f"no cases to compare: {', '.join(sorted(wrong))}; there are {''.join(names)}")
    print(f"{current_device().name}; {time.strftime('%d %B %Y')}; commit {commit()}")
    for name in options.cases:
        case = resized(CASES[name], options.sites, options.samples)
        data = bench_epistasis.make_pinned(case, "k2")
        rate, best = ours(case, data)
        size = f"{name} {case.order} {case.n_sites} x {case.controls + case.cases}"
        print(f"{size}  here {rate:.2f} T, best {sorted(best[0])}", flush=True)
        programs = {"Tensor-Episdet": options.tensor_episdet}
        if case.order == 3:
            programs = {
                "EPIClear": options.epiclear and f"{options.mpi} {options.epiclear}",
                "Tensor-Episdet": options.tensor_episdet_triples,
            }
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            described = write_classes(
                Path(folder), [(one.words, one.n_samples) for one in data.classes]
            )
            for peer, command in programs.items():
                if not command:
                    print(f"{size}  {peer} is left out: no option names its program.", flush=True)
                    continue
                done = subprocess.run(
                    [*shlex.split(command), str(described)], capture_output=True, text=True
                )
                found = read_report(done.stdout)
                if done.returncode or found is None:
                    print(f"{size}  {peer} failed: {(done.stderr or done.stdout).strip()[-300:]}")
                    continue
                theirs, members = found
                print(
                    f"{size}  {peer} {theirs:.2f} T, {rate / theirs:.1f} times; "
                    f"best {place_among(best, members)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
