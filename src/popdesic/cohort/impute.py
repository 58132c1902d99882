"""Imputation: fill missing genotypes. The mask of called genotypes is always kept.

Methods: ``mode`` fills with the panel's most frequent genotype (inside `encode`, at no cost),
``beagle`` runs Beagle 5 on every window of a cohort (`beagle`), ``copying`` copies from the
haplotypes of a phased reference (`copy_cohort`), ``none`` fills nothing.
Each cohort is imputed by itself, so results of earlier cohorts do not change when one is added.
"""

from __future__ import annotations

import csv
import glob
import re
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError, shorten
from ..core.files import is_file
from ..core.tables import write_table
from .map_rates import map_file

#: Megabases that a window shares with the next, as in the manual of Beagle.
OVERLAP_MB = 2.0
#: Threads of Beagle, on whose number its genotypes can depend, and megabytes of its Java.
BEAGLE_THREADS, BEAGLE_MB = 4, 4000

#: Sentence in the log and the report if the command is missing.
NO_BEAGLE = (
    "There is no command 'beagle' on PATH, although impute.method or impute.evaluate asks "
    "for it; install it (apt-get install beagle, or bioconda's beagle) and run again."
)
#: In a path: the name of a contig, if each has its own file.
CONTIG_HOLE = "{contig}"
#: End of the name of a frozen reference.
FROZEN_END = ".npz"
WINDOW_COLUMNS = ["window", "contig", "start", "end", "first", "last", "from", "to"]


def fill_words(mode: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits that fill missing genotypes in the carrier and the hom plane.

    Parameters
    ----------
    mode : int array, (n_sites,)
        The panel's most frequent genotype of each site (from the founders, so that new cohorts do
        not change it).
    method : str
        ``mode`` fills with `mode`, ``none`` fills nothing.

    Returns
    -------
    two uint64 arrays, (n_words,)
        Little-endian bits: sites filled with a genotype >= 1, sites filled with 2.
    """
    filled = mode if method == "mode" else np.zeros_like(mode)
    return pack_bits(filled >= 1), pack_bits(filled == 2)


def pack_bits(flags: np.ndarray) -> np.ndarray:
    """Pack flags (n,) as little-endian bits into uint64 words, zero-padded."""
    packed = np.packbits(flags, bitorder="little")
    words = np.zeros(-(-len(flags) // 64) * 8, np.uint8)
    words[: len(packed)] = packed
    return words.view("<u8")


@dataclass(frozen=True)
class Window:
    """Panel sites imputed in one run: rows [first, last), with their flanks [start, stop).

    All rows are of one contig. A window that is a whole contig has no flanks.
    """

    contig: str
    first: int
    last: int
    start: int
    stop: int


def plan_windows(
    panel: pd.DataFrame, window_mb: float = 0, overlap_mb: float = 0
) -> tuple[list[Window], pd.DataFrame]:
    """Cut the panel into windows for imputation.

    Parameters
    ----------
    panel : DataFrame
        Sites in panel order: rows of a contig are consecutive, positions ascend.
    window_mb : float
        Length of a window in megabases, counted from position 1; 0 makes each contig one window.
        Windows without sites are left out.
    overlap_mb : float
        Length of the flanks, whose sites inform the imputation but are not part of the result.

    Returns
    -------
    windows : list of Window
        In panel order; every site is in the [first, last) of exactly one.
    table : DataFrame
        The same for `impute/windows.tsv`: `window` (number from 1), `contig`, `start` and `end`
        (positions of the first and the last site), `first`, `last`, `from` and `to` (rows).
    """
    chrom, pos = panel.chrom.to_numpy(), panel.pos.to_numpy(np.int64)
    bounds = np.flatnonzero(np.r_[True, chrom[1:] != chrom[:-1], True])
    size, overlap = int(window_mb * 1e6), int(overlap_mb * 1e6)
    windows = []
    for low, high in pairwise(bounds):
        places = pos[low:high]
        number = (places - 1) // size if size else np.zeros(len(places), np.int64)
        for k in np.unique(number):
            first, last = np.searchsorted(number, [k, k + 1])
            start, stop = 0, len(places)
            if size:
                start = np.searchsorted(places, k * size + 1 - overlap)
                stop = np.searchsorted(places, (k + 1) * size + overlap, side="right")
            windows.append(
                Window(str(chrom[low]), *(int(low + x) for x in (first, last, start, stop)))
            )
    table = pd.DataFrame(
        [
            (i, w.contig, pos[w.first], pos[w.last - 1], w.first, w.last, w.start, w.stop)
            for i, w in enumerate(windows, 1)
        ],
        columns=WINDOW_COLUMNS,
    )
    return windows, table


def write_windows(
    panel: pd.DataFrame, out: Path, *, window_mb: float, overlap_mb: float = OVERLAP_MB
) -> list[Window]:
    """Write `impute/windows.tsv` of `plan_windows`."""
    windows, table = plan_windows(panel, window_mb, overlap_mb)
    write_table(out, table)
    return windows


def read_windows(path: Path) -> list[Window]:
    """Read the windows of `impute/windows.tsv`, in panel order."""
    table = pd.read_csv(
        path,
        sep="\t",
        dtype={"contig": str},
        keep_default_na=False,
        quoting=csv.QUOTE_NONE,
    )
    rows = table[["contig", "first", "last", "from", "to"]].itertuples(index=False)
    return [Window(contig, *map(int, numbers)) for contig, *numbers in rows]


def contig_start(panel: pd.DataFrame, contig: str) -> int:
    """Row of the panel's first site of a contig that it has."""
    return int(np.argmax((panel.chrom == contig).to_numpy()))


def find_contig_file(pattern: str, contig: str, folder: Path = Path()) -> str | None:
    """Return the file of one contig, or None if there is none.

    In the path `pattern`, ``{contig}`` is replaced by the name, with and without `chr`. A pattern
    without it is one file for all contigs.
    """
    if not pattern:
        return None
    for name in contig_names(contig):
        path = pattern.replace("{contig}", name)
        if is_file(folder / path):
            return path
    return None


def contig_names(contig: str) -> list[str]:
    """Return the possible names of a contig: as given, without and with a leading `chr`."""
    bare = contig[3:] if contig.lower().startswith("chr") else contig
    return list(dict.fromkeys([contig, bare, f"chr{bare}"]))


def find_beagle() -> str | None:
    """Return the path of the command, or None if it is missing."""
    return shutil.which("beagle")


def uses_method(impute: dict, method: str) -> bool:
    """Whether a job of the study runs a method; `impute` is that block of the configuration."""
    return method in (impute["method"], *impute["evaluate"])


def no_file(shown: str, pattern: str, source: str = "config/config.yaml") -> UserError:
    """What is said of a key whose path names no file."""
    return UserError(
        f"{source}: {shown} is '{shorten(pattern)}', but there is no such file in the "
        "study folder; correct the path ('{contig}' in it stands for a chromosome name)."
    )


def check_files(settings: dict, folder: Path, source: str) -> dict[str, list[Path]]:
    """Check that reference and map exist, before any job runs.

    Returns
    -------
    dict
        The files that match ``reference`` and ``map``, sorted by name.

    Raises
    ------
    UserError
        No file matches `impute.reference` or `genetic_map`.
    """
    matching = {}
    for key, shown in (("reference", "impute.reference"), ("map", "genetic_map")):
        pattern = map_file(settings[key])
        found = matching_files(pattern, folder)
        if pattern and not found:
            raise no_file(shown, pattern, source)
        matching[key] = found
    return matching


def matching_files(pattern: str, folder: Path = Path()) -> list[Path]:
    """The file of this path, or those that match it with one name for every `{contig}`."""
    if pattern and is_file(folder / pattern):
        return [folder / pattern]
    if CONTIG_HOLE not in pattern:
        return []
    text, hole = re.escape(pattern), re.escape("{contig}")
    whole = re.compile(text.replace(hole, "(?P<contig>[^/]+)", 1).replace(hole, "(?P=contig)"))
    tried = glob.escape(pattern).replace("{contig}", "*")
    try:
        # The method of Path takes no absolute pattern.
        names = sorted(glob.glob(tried, root_dir=folder))  # noqa: PTH207
    except (OSError, ValueError):
        return []
    return [folder / name for name in names if whole.fullmatch(name) and is_file(folder / name)]
