"""Time the decoding of genotype files to PLINK files, beside htslib and PLINK on the same file.

    python tests/bench/bench_ingest.py [--samples 2000] [--sites 30000] [--fields GT] [--quick]

Writes a random bgzipped VCF to a temporary folder, converts it to BCF, PLINK 1 files, PGEN and
VCF-Zarr where bcftools, plink2, Pgenlib and tabix are there, reads each with `ingest_cohort`, and
the VCF with each other tool, in separate processes, and prints a table. `ingest_cohort` is timed at
its first call, with cached kernels, and ('again') at its second, without the half second that numba
needs to start. 'inflate alone' decompresses the same file with the same library and discards the
bytes: no reader of it can be faster. The other rows time whole processes. CPU seconds are printed
too, because other load on the machine affects wall time.

`--fields` gives one or more FORMATs. Depths are Poisson (mean 30, of missing calls 3), reads of
heterozygotes binomial, qualities and likelihoods follow the depth, so length and content of calls
vary as in files of sequencing. Where a FORMAT has DP, `ingest_cohort` reads it, because 0/0 with a
depth of 0 is missing, and cyvcf2 is asked for it too.

`--exports` also encodes the genotypes as a study does, writes them as `export.formats` `zarr` and
`zarr3` do, each in a process of its own, and reads both stores with `ingest_cohort`.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import commandline
import numpy as np

from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.qc import summarize_cohort

# Allele frequencies: 'spectrum' is U-shaped as in genomes, 'common' uniform as on arrays.
SHAPES = {"spectrum": (0.3, 1.5), "common": (1.0, 1.0)}

FORMATS = ("GT", "GT:DP:GQ", "GT:AD:DP:GQ:PL")
#: Numbers of values of FORMAT fields, where not 1.
NUMBERS = {"AD": "R", "PL": "G"}

#: Columns with further fields that are drawn for each genotype; calls choose among them.
N_CELLS = 1 << 14

OURS = """
import sys, time
from popdesic.cohort.ingest import ingest_cohort
for repeat in range(2):
    start, before = time.perf_counter(), time.process_time()
    ingest_cohort(sys.argv[1], sys.argv[2], threads=int(sys.argv[3]))
    print(time.perf_counter() - start, time.process_time() - before)
"""

#: Leaves compiled kernels in numba's cache.
OURS_OF_ALL = """
import sys
from popdesic.cohort.ingest import ingest_cohort
for source in sys.argv[2:]:
    ingest_cohort(source, sys.argv[1], threads=2)
"""

INFLATE = """
import sys, time
from popdesic.io.batches import CHUNK_BYTES
from popdesic.io.bgzf import read_pieces
start, before = time.perf_counter(), time.process_time()
text = bytearray()
for piece in read_pieces(sys.argv[1], "bgzf", CHUNK_BYTES):
    if len(text) < piece.size:
        text = bytearray(piece.size)
    assert piece.read_into(memoryview(text)[: piece.size])
print(time.perf_counter() - start, time.process_time() - before)
"""

TO_ZARR = """
import sys
from bio2zarr import vcf
if __name__ == "__main__":
    vcf.convert([sys.argv[1]], sys.argv[2], worker_processes=0)
"""

EXPORT = """
import sys
from pathlib import Path
from popdesic.export.zarr import export_zarr
if __name__ == "__main__":
    placed, panel, out = map(Path, sys.argv[1:4])
    export_zarr([placed], panel, out, shards=sys.argv[4] == "zarr3")
"""
#: Formats of `export.formats` that --exports writes.
STORES = ("zarr", "zarr3")

CYVCF2 = """
import sys, time
import cyvcf2
start, before = time.perf_counter(), time.process_time()
n_sites = 0
for variant in cyvcf2.VCF(sys.argv[1]):
    n_sites += len(variant.genotype.array()) > 0
    if sys.argv[2] == "DP":
        n_sites += len(variant.format("DP")) > 0
print(time.perf_counter() - start, time.process_time() - before)
"""


def write_random_vcf(path: Path, n_samples: int, n_sites: int, shape: str, fields: str) -> int:
    """Write a bgzipped VCF of random genotypes, 1 % missing; return the bytes of its text."""
    rng = np.random.default_rng(1)
    plain = np.frombuffer(b"0/0\t0/1\t1/1\t./.\t", np.uint8).reshape(4, 4)
    if fields != "GT":
        cells = _random_cells(rng, fields)
    names = "\t".join(f"S{k}" for k in range(n_samples))
    head = "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
    for key in fields.split(":"):
        kind = "String" if key == "GT" else "Integer"
        number = NUMBERS.get(key, 1)
        head += f'##FORMAT=<ID={key},Number={number},Type={kind},Description="{key}">\n'
    head += f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}\n"
    positions = np.cumsum(rng.integers(1, 1000, n_sites))
    size = len(head)
    with open(path, "wb") as file:
        packer = subprocess.Popen(["bgzip", "-c", "-@", "2"], stdin=subprocess.PIPE, stdout=file)
        packer.stdin.write(head.encode())
        for k, pos in enumerate(positions.tolist()):
            genotypes = rng.binomial(2, rng.beta(*SHAPES[shape]), n_samples)
            genotypes[rng.random(n_samples) < 0.01] = 3
            record = f"1\t{pos}\trs{k}\tA\tG\t.\tPASS\t.\t{fields}\t".encode()
            if fields != "GT":
                chosen = genotypes * N_CELLS + rng.integers(0, N_CELLS, n_samples)
                record += b"\t".join(map(cells.__getitem__, chosen.tolist())) + b"\n"
            else:
                record += plain[genotypes].tobytes()[:-1] + b"\n"
            packer.stdin.write(record)
            size += len(record)
        packer.stdin.close()
        if packer.wait() != 0:
            raise SystemExit("Error: bgzip failed.")
    return size


def _random_cells(rng: np.random.Generator, fields: str) -> list[bytes]:
    """Return N_CELLS columns of each genotype with these fields, one after the other."""
    depths = rng.poisson(30, (4, N_CELLS))
    depths[3] //= 10
    qualities = np.minimum(99, 3 * depths + rng.poisson(3, (4, N_CELLS)))
    alt = np.stack([0 * depths[0], rng.binomial(depths[1], 0.5), depths[2], 0 * depths[3]])
    likely = qualities + rng.poisson(300, (4, N_CELLS))
    likelihoods = np.stack([qualities, likely], -1)
    zero = np.zeros((4, N_CELLS, 1), np.int64)
    likelihoods = np.concatenate([zero, likelihoods], -1)
    likelihoods[1] = likelihoods[1][:, [1, 0, 2]]
    likelihoods[2] = likelihoods[2][:, [2, 1, 0]]
    likelihoods[3] = 0
    values = {
        "GT": np.repeat(["0/0", "0/1", "1/1", "./."], N_CELLS).tolist(),
        "AD": [f"{a},{b}" for a, b in zip((depths - alt).flat, alt.flat, strict=True)],
        "DP": depths.ravel().tolist(),
        "GQ": qualities.ravel().tolist(),
        "PL": [",".join(map(str, row)) for row in likelihoods.reshape(-1, 3).tolist()],
    }
    rows = zip(*(values[key] for key in fields.split(":")), strict=True)
    return [":".join(map(str, row)).encode() for row in rows]


def run(command: list[str]) -> tuple[float, float, float, str]:
    """Run a command; return wall seconds, CPU seconds, peak resident MB, and what it printed."""
    # keep bytecode, so that the compilation of Python sources is not timed
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command[0]} failed with exit status {child.returncode}.")
    peak = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
    text = output.decode(errors="replace") if len(output) < 1000 else ""
    return wall, usage.ru_utime + usage.ru_stime, peak, text


def convert(vcf: Path, folder: Path) -> dict[str, Path]:
    """Write the VCF in further formats; return the sources by the name of their format."""
    sources = {"VCF.gz": vcf, "VCF": folder / "random.vcf"}
    with open(sources["VCF"], "wb") as file:
        subprocess.run(["bgzip", "-dc", str(vcf)], stdout=file, check=True)
    if bcftools := commandline.find_peer("bcftools"):
        sources["BCF"] = folder / "random.bcf"
        run([bcftools, "view", "-Ob", "-o", str(sources["BCF"]), str(vcf)])
    if plink := commandline.find_peer("plink2"):
        sources["PLINK"] = folder / "plink"
        run([plink, "--vcf", str(vcf), "--make-bed", "--out", str(sources["PLINK"])])
        if importlib.util.find_spec("pgenlib"):
            sources["PGEN"] = folder / "pgen"
            run([plink, "--vcf", str(vcf), "--make-pgen", "--out", str(sources["PGEN"])])
    if tabix := commandline.find_peer("tabix"):
        sources["VCF-Zarr"] = folder / "random.vcz"
        run([tabix, str(vcf)])
        run([sys.executable, "-c", TO_ZARR, str(vcf), str(sources["VCF-Zarr"])])
    return sources


def measure(
    sources: dict[str, Path], vcf: Path, folder: Path, fields: str, options: argparse.Namespace
) -> list[tuple[str, int, float, float, float]]:
    """Return (tool, threads, wall seconds, CPU seconds, peak MB) of the fastest repeat of each."""
    commands: list[tuple[str, int, list[str], bool]] = []
    out = str(folder / "out")
    for kind, source in sources.items():
        if kind in ("VCF.gz", "BCF"):
            inflate = [sys.executable, "-c", INFLATE, str(source)]
            commands.append((f"inflate alone {kind}", 1, inflate, True))
        for threads in options.threads if kind not in ("PLINK", "PGEN") else (1,):
            ours = [sys.executable, "-c", OURS, str(source), out, str(threads)]
            commands.append((f"ingest_cohort {kind}", threads, ours, True))
    wanted = "DP" if "DP" in fields.split(":") else "GT"
    for kind in ("VCF.gz", "BCF"):
        if kind in sources:
            theirs = [sys.executable, "-c", CYVCF2, str(sources[kind]), wanted]
            commands.append((f"cyvcf2 {kind}", 1, theirs, True))
    if bcftools := commandline.find_peer("bcftools"):
        view = ["sh", "-c", 'exec "$0" view -Ou "$1" > /dev/null', bcftools, str(vcf)]
        commands.append(("bcftools view -Ou", 1, view, False))
    for name in ("plink2", "plink1.9"):
        if not (plink := commandline.find_peer(name)):
            continue
        for threads in (1, 2) if name == "plink2" else (1,):
            words = ["--vcf", str(vcf), "--make-bed", "--out", out + name]
            words += ["--threads", str(threads)]
            commands.append((f"{name} --make-bed", threads, [plink, *words], False))
    rows = []
    for tool, threads, command, prints_time in commands:
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(options.repeats):
            *whole, peak, text = run(command)
            printed = [tuple(map(float, line.split())) for line in text.splitlines()]
            times = printed if prints_time else [tuple(whole)]
            for label, (wall, cpu) in zip(("", " again"), times, strict=False):
                best[tool + label] = min(best.get(tool + label, (np.inf,)), (wall, cpu, peak))
        rows += [(name, threads, *values) for name, values in best.items()]
    return rows


def time_exports(vcf: Path, folder: Path, repeats: int) -> None:
    """Write the genotypes of a VCF as VCF-Zarr of both formats, and read them; print a table."""
    ingest_cohort(vcf, folder / "raw", threads=2)
    sites, samples, panel = (folder / f"{name}.tsv" for name in ("sites", "samples", "panel"))
    summarize_cohort(folder / "raw", {}, sites, samples, min_sample_call_rate=0)
    filters = PanelFilters([], min_call_rate=0, min_maf=0, min_hwe_p=0)
    build_panel({"c": sites}, panel, folder / "counts.json", filters)
    out = folder / "placed"
    encode_cohort(folder / "raw", samples, panel, out, impute="none", cohort="c")
    print(f"{'format':10}{'wall s':>9}{'CPU s':>8}{'peak MB':>9}{'MB':>8}{'files':>7}", end="")
    print(f"{'read, CPU s':>13}")
    best = {name: [(np.inf,) * 3, np.inf] for name in STORES}
    for _ in range(repeats):
        for name in STORES:
            store = str(folder / f"{name}.vcz")
            arguments = [str(out / "genotypes"), str(panel), store, name]
            *whole, _ = run([sys.executable, "-c", EXPORT, *arguments])
            read = run([sys.executable, "-c", OURS, store, str(folder / "again"), "1"])[3]
            read = float(read.split()[-1])  # the second time
            best[name] = [min(best[name][0], tuple(whole), key=lambda w: w[1]),
                          min(best[name][1], read)]  # fmt: skip
    for name, ((wall, cpu, peak), read) in best.items():
        sizes = [p.stat().st_size for p in (folder / f"{name}.vcz").rglob("*") if p.is_file()]
        print(
            f"{name:10}{wall:9.2f}{cpu:8.2f}{peak:9.0f}{sum(sizes) / 1e6:8.1f}{len(sizes):7d}"
            f"{read:13.2f}"
        )


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--sites", type=int, default=30_000)
    parser.add_argument("--shape", choices=SHAPES, default="spectrum", help="allele frequencies")
    parser.add_argument(
        "--fields", nargs="+", choices=FORMATS, default=list(FORMATS), help="FORMAT of the files"
    )
    parser.add_argument("--kinds", nargs="+", help="kinds of files to read, all without")
    parser.add_argument("--repeats", type=int, default=3, help="the fastest counts")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of ingest_cohort")
    parser.add_argument("--json", type=Path, help="also write the table here")
    parser.add_argument("--exports", action="store_true", help="write and read VCF-Zarr, too")
    quick = {"fields": [FORMATS[0], FORMATS[-1]], "samples": 100, "sites": 1_000, "repeats": 1}
    quick["exports"] = True
    options = commandline.parse(parser, **quick)
    if not commandline.find_peer("bgzip", "tabix"):
        raise SystemExit("Error: without bgzip there is no file to decode.")
    table = [row for fields in options.fields for row in time_fields(options, fields)]
    if options.json:
        names = ["fields", "tool", "threads", "wall_s", "cpu_s", "peak_mb"]
        rows = [dict(zip(names, row, strict=True)) for row in table]
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def time_fields(options: argparse.Namespace, fields: str) -> list[tuple]:
    """Measure all tools on files with one FORMAT, and print their table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vcf = folder / "random.vcf.gz"
        size = write_random_vcf(vcf, options.samples, options.sites, options.shape, fields)
        print(
            f"{options.samples} samples x {options.sites} sites, {options.shape}, "
            f"{fields}: {size / 1e6:.0f} MB of text, {vcf.stat().st_size / 1e6:.1f} MB "
            f"compressed; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        sources = convert(vcf, folder)
        if options.kinds:
            sources = {kind: sources[kind] for kind in sources if kind in options.kinds}
        run([sys.executable, "-c", OURS_OF_ALL, str(folder / "warm"), *map(str, sources.values())])
        rows = measure(sources, vcf, folder, fields, options)
        if options.exports and fields == options.fields[0]:  # a study keeps genotypes alone
            time_exports(vcf, folder, options.repeats)
    n_genotypes = options.samples * options.sites / 1e6
    peers = [row[2] for row in rows if row[0].startswith("plink2")]
    print(f"{'tool':30}{'threads':>8}{'wall s':>9}{'CPU s':>8}{'M gt/s':>9}", end="")
    print(f"{'M gt/CPU s':>12}{'peak MB':>9}{'x plink2':>10}")
    for tool, threads, wall, cpu, peak in rows:
        ratio = f"{min(peers) / wall:.1f}" if peers else "-"
        print(
            f"{tool:30}{threads:8d}{wall:9.2f}{cpu:8.2f}{n_genotypes / wall:9.1f}"
            f"{n_genotypes / cpu:12.1f}{peak:9.0f}{ratio:>10}"
        )
    return [(fields, *row) for row in rows]


if __name__ == "__main__":
    main()
