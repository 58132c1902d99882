"""What a newcomer's cohort reads and writes for segments of identity by descent.

    python tests/bench/bench_ibd_newcomer.py [--cohorts 4] [--people 250] [--newcomers 50]
        [--lengths 140 140] [--threads 2] [--quick]

Founder cohorts of --people each, of a population of 10 000 for the last 30 generations, at 150
sites a centimorgan; then a cohort of --newcomers arrives. The functions of the stage's jobs run as
in a study: one row of tiles for each cohort, then the tables of all pairs. Afterwards everything is
computed once more in an empty folder, with the newcomer from the start.

Printed for both: CPU seconds; files of the study that Python opened to read, each once, with their
sizes (recorded by an audit hook; planes are mapped, so this is the most that can be read of them);
files that are new or have other bytes or dates, and tiles among them. Tiles of founders must keep
bytes and dates, and all files must have the bytes of those from scratch.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import commandline
from scenes.ibd_people import draw_people, isolated
from support.study import Cohort, encode_cohorts
from timing import print_table

from popdesic.engine.select import cpu_backend
from popdesic.ibd.cohorts import ENDING, join_tiles, measure_rows
from popdesic.ibd.definition import SegmentLimits
from popdesic.ibd.genome import prepare_genome

LIMITS = SegmentLimits()


class Opened:
    """Files below a folder that were opened since `start`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.active = f"{folder}{os.sep}", False
        self.read: set[str] = set()
        self.written: set[str] = set()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple) -> None:
        if not self.active or event != "open" or not isinstance(arguments[0], (str, os.PathLike)):
            return
        path, flags = os.fspath(arguments[0]), arguments[2] or 0
        if isinstance(path, str) and path.startswith(self.folder):
            writes = flags & (os.O_WRONLY | os.O_RDWR)
            (self.written if writes else self.read).add(path)

    def start(self) -> None:
        self.read, self.written, self.active = set(), set(), True

    def sizes(self) -> tuple[int, float]:
        """Files that were opened to read, and their MB; those written meanwhile do not count."""
        self.active = False
        there = [path for path in self.read - self.written if Path(path).is_file()]
        return len(there), sum(map(os.path.getsize, there)) / 1e6


class Stage:
    """The stage of one study of these cohorts, in a folder of its own."""

    def __init__(self, out: Path, folders: dict[str, Path], panel: Path, genome: Path, threads):
        self.out, self.folders, self.panel, self.genome = out, folders, panel, genome
        self.threads = threads

    def row(self, owner: str, names: list[str]) -> Path:
        """Segments of a cohort with itself and with those before it."""
        others = names[: names.index(owner) + 1]
        path = self.out / "tiles" / owner / "row.json"
        measure_rows(
            *({path: [(other, owner) for other in others]}, self.folders, self.genome, self.panel),
            *(lambda _: cpu_backend(self.threads), "code"),
        )
        return path

    def join(self, names: list[str], cohorts: dict[str, str]) -> None:
        rows = [self.out / "tiles" / name / "row.json" for name in names]
        own = {sample: name for sample, name in cohorts.items() if name in names}
        tables = [self.out / name for name in ("segments.tsv.gz", "pairs.tsv", "summary.json")]
        join_tiles(rows, self.genome, self.panel, own, *tables, LIMITS.min_cm)

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Date and bytes of tiles and tables."""
        paths = [*self.out.glob(f"tiles/*/*{ENDING}"), *self.out.glob("*.*")]
        return {
            str(path.relative_to(self.out)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(paths)
        }


def draw_cohorts(options) -> list[Cohort]:
    sizes = [options.people] * options.cohorts + [options.newcomers]
    people = draw_people(
        *(sum(sizes), tuple(options.lengths)), seed=1, history=isolated(10_000),
        rate=2e-9, truth=False,
    )  # fmt: skip
    rows = people.sites.itertuples()
    sites = [(row.chrom, row.pos, f"s{k}", "A", "C") for k, row in enumerate(rows)]
    cohorts, first = [], 0
    for number, size in enumerate(sizes):
        name = f"cohort{number}" if number < options.cohorts else "newcomer"
        samples = [f"{name}_{k}" for k in range(size)]
        own = people.genotypes[first : first + size].T.copy()
        cohorts.append(Cohort(name, samples, sites, own, number < options.cohorts))
        first += size
    return cohorts


def measured(opened: Opened, stage: Stage, work) -> tuple:
    """Row of the table: CPU seconds, files read and written with their MB, new tiles."""
    before, start = stage.files(), time.process_time()
    opened.start()
    work()
    seconds = time.process_time() - start
    n_read, megabytes = opened.sizes()
    new = {name: content for name, content in stage.files().items() if before.get(name) != content}
    tiles = sum(name.startswith("tiles") for name in new)
    size = sum(len(content) for _, content in new.values()) / 1e6
    return f"{seconds:.2f}", n_read, f"{megabytes:.1f}", len(new), f"{size:.2f}", tiles


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--cohorts", type=int, default=4)
    parser.add_argument("--people", type=int, default=250, help="of each founder cohort")
    parser.add_argument("--newcomers", type=int, default=50)
    parser.add_argument("--lengths", type=float, nargs="+", default=[140.0, 140.0], help="cM")
    parser.add_argument("--threads", type=int, default=2)
    options = commandline.parse(parser, people=20, newcomers=5, lengths=[40.0])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        drawn = draw_cohorts(options)
        cohorts = {sample: cohort.name for cohort in drawn for sample in cohort.samples}
        names = [cohort.name for cohort in drawn]
        folders = dict(zip(names, encode_cohorts(folder, drawn), strict=True))
        panel, genome = folder / "panel.tsv", folder / "genome.npz"
        prepare_genome(
            *([folders[name] for name in names[:-1]], panel, genome, folder / "genome.json"),
            *(cpu_backend(options.threads),),
            **{"limits": LIMITS, "genetic_map": None, "x_contigs": [], "regions": []},
            max_sharing=10,
        )
        opened = Opened(folder)
        stages = [
            Stage(folder / name, folders, panel, genome, options.threads) for name in ("a", "b")
        ]

        def compute(stage: Stage, some: list[str]) -> None:
            for name in some:
                stage.row(name, names[: names.index(name) + 1])
            stage.join(names[: names.index(some[-1]) + 1], cohorts)

        compute(stages[0], names[:-1])
        old = stages[0].files()
        rows = [
            ("newcomer", *measured(opened, stages[0], lambda: compute(stages[0], names[-1:]))),
            ("from scratch", *measured(opened, stages[1], lambda: compute(stages[1], names))),
        ]
        kept, scratch = stages[0].files(), stages[1].files()
        same = all(kept[name] == old[name] for name in old if name.startswith("tiles"))
        equal = {name: content for name, (_, content) in kept.items()} == {
            name: content for name, (_, content) in scratch.items()
        }
    header = ["", "CPU s", "files read", "MB", "files written", "MB", "tiles of them"]
    title = f"{options.newcomers} people join {options.cohorts} x {options.people}"
    print_table(title, header, rows)
    print(f"tiles of founders keep bytes and dates: {same}; files as from scratch: {equal}")
    if not (same and equal):
        raise SystemExit("Error: the newcomer changed files, or they differ from those of scratch.")


if __name__ == "__main__":
    main()
