"""Plan a drawn study of thousands of scaffolds: seconds of `init`, `check`, `plan` and the dry run.

python tests/bench/bench_scaffolds.py [--contigs 5000] [--samples 40] [--run] [--quick]

Contigs are 5 to 500 kb long, with three sites each and no chromosome among them. Every command is a
process of its own. `plan` runs twice: the first may have to make digests of code. CPU time stands
beside wall time, because machines are shared. `--run` also runs the study, by the defaults, up to
its report.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np
from timing import print_table

SITES_EACH = 3


def write_vcf(path: Path, n_contigs: int, n_samples: int) -> None:
    """Two populations whose frequencies differ a little."""
    rng = np.random.default_rng(1)
    lengths = np.exp(rng.uniform(np.log(5e3), np.log(5e5), n_contigs)).astype(int).tolist()
    names = [f"s{k}" for k in range(n_samples)]
    half = np.arange(n_samples) < n_samples // 2
    with open(path, "w", encoding="utf-8") as file:
        file.write("##fileformat=VCFv4.2\n")
        file.writelines(f"##contig=<ID=scaffold_{k},length={n}>\n" for k, n in enumerate(lengths))
        columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *names]
        file.write("\t".join(columns) + "\n")
        for k, length in enumerate(lengths):
            for pos in sorted(rng.choice(length - 1, SITES_EACH, replace=False).tolist()):
                af = rng.beta(0.8, 0.8)
                shift = rng.normal(0, 0.25 * np.sqrt(af * (1 - af)), 2)
                drawn = rng.binomial(2, np.clip(af + shift, 0.01, 0.99)[half.astype(int)])
                calls = np.array(["0/0", "0/1", "1/1"])[drawn].tolist()
                fixed = [f"scaffold_{k}", str(pos + 1), ".", "A", "C", ".", ".", ".", "GT"]
                file.write("\t".join([*fixed, *calls]) + "\n")


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of `popdesic` with these arguments; an error ends the benchmark."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "popdesic", *command], cwd=folder, capture_output=True, text=True
    )
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"popdesic {' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--contigs", type=int, default=5_000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--run", action="store_true", help="run the study up to its report")
    options = commandline.parse(parser, contigs=200, samples=12)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_vcf(folder / "a.vcf", options.contigs, options.samples)
        commands = [["init", "study", "a.vcf"], *[["plan", "study"]] * 2, ["check", "study"]]
        commands += [["run", "study", "-n"]]
        commands += [["run", "study"]] if options.run else []
        rows = [
            (
                f"popdesic {' '.join(command)}",
                *(f"{seconds:.1f}" for seconds in timed(command, folder)),
            )
            for command in commands
        ]
        pages = list(folder.glob("study/results/report/report.html"))
        print_table(f"{options.contigs} scaffolds", ("command", "wall s", "CPU s"), rows)
        for page in pages:
            print(f"report: {page.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
