"""Imputation by Beagle 5 (Browning et al. 2018, 2021): one run per window and cohort.

Beagle sees one contig, renamed `1`, with panel rows as identifiers and numbered samples: names in
the files cannot confuse it, and `chr1` in one file matches `1` in another. A reference is first
reduced to the sites of the window. Genotypes that Beagle cannot impute are filled with the panel's
most frequent genotype and counted: windows with one position, a single sample without a reference,
sites without any call. Called genotypes never change.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from isal import igzip

from ..core.errors import UserError
from ..core.files import write_json
from ..core.processes import end_with_parent
from ..core.tables import write_npy
from ..core.text import opened, read_text
from ..io.genotypes import MISSING, pack_bed, unpack_bed
from ..io.sites import is_ambiguous
from ..io.vcf_errors import show
from .absent import UNSTATED, Absent
from .encode import OnPanel
from .genetic_maps import parse_map, require_rising
from .impute import (
    BEAGLE_MB,
    BEAGLE_THREADS,
    NO_BEAGLE,
    Window,
    contig_names,
    find_beagle,
    read_windows,
)
from .panel import load_panel

logger = logging.getLogger("popdesic")

_META = b"##fileformat=VCFv4.2\n##contig=<ID=1>\n"
_META += b'##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
_COLUMNS = b"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
#: VCF text of a genotype by its value; MISSING is the last.
_CALLS = np.array([b"\t0/0", b"\t0/1", b"\t1/1", b"\t./."], "S4")
#: Beagle estimates distances between positions and stops on fewer than two.
LEAST_POSITIONS = 2
_TAIL_LINES = 4
#: Beagle's estimate of a site's dosage r2.
_DR2 = re.compile(rb"(?:^|;)DR2=([0-9.eE+-]+)")
#: Phased, complete genotypes, as a reference needs.
_PHASED = re.compile(rb"[01]\|[01](?:\t[01]\|[01])*")


@dataclass(frozen=True)
class Beagle:
    """Settings of Beagle, with genetic map and phased reference of one contig."""

    threads: int = 1
    memory_mb: int = BEAGLE_MB
    seed: int = 1
    reference: Path | None = None
    map: Path | None = None


def heap_mb(job_mb: int) -> int:
    """Megabytes of Java in a job: the default, or more where a profile gives the job more."""
    return max(BEAGLE_MB, 3 * job_mb // 4)


def beagle_settings(job_mb: int, seed: int, reference: str, map: str) -> Beagle:
    """Settings of a rule, whose paths are '' where there is no such file."""
    files = (Path(path) if path else None for path in (reference, map))
    return Beagle(BEAGLE_THREADS, heap_mb(job_mb), seed, *files)


def impute_window(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    windows: Path,
    number: int,
    out: Path,
    settings: Beagle,
    absent: Absent = UNSTATED,
) -> dict:
    """Impute one window of a cohort and write {out}.npy and {out}.json.

    Parameters
    ----------
    raw, qc_samples, panel_path, absent
        As in `encode.encode_cohort`.
    windows, number : Path, int
        `impute/windows.tsv` and a row of it, from 1.
    out : Path
        Prefix. The .npy holds .bed rows of the window's sites in panel order, uint8
        (n_sites, ceil(n_samples / 4)), without missing genotypes.

    Returns
    -------
    dict
        Counts: sites, missing genotypes, those filled by Beagle and those filled with the mode.
        Without the command `beagle` the mode fills all, and {out}.json notes it (`missing`).

    Raises
    ------
    UserError
        Beagle stopped, or no sample has a called genotype on the panel.
    """
    panel, digest = load_panel(panel_path)
    window = read_windows(windows)[number - 1]
    placed = OnPanel.open(raw, qc_samples, panel, absent)
    # Those whom encoding leaves out.
    placed.leave_out(placed.uncalled(), raw.parent.name)
    genotypes = unpack_bed(placed.rows(window.start, window.stop), len(placed.names))
    sites = panel.iloc[window.start : window.stop]
    out.parent.mkdir(parents=True, exist_ok=True)
    filled, _, by_beagle = fill_window(genotypes, sites, window.contig, settings, out.parent)
    core = slice(window.first - window.start, window.last - window.start)
    missing = genotypes[core] == MISSING
    counts = {
        "sites": window.last - window.first,
        "missing": int(missing.sum()),
        "filled_by_beagle": int((missing & by_beagle[core]).sum()),
        "filled_with_mode": int((missing & ~by_beagle[core]).sum()),
    }
    write_npy(Path(f"{out}.npy"), pack_bed(filled[core]))
    about = {"panel": digest, "contig": window.contig, "counts": counts}
    if counts["missing"] and not find_beagle():
        about["missing"] = NO_BEAGLE
    write_json(Path(f"{out}.json"), about)
    return counts


def window_genotypes(
    raw: Path, qc_samples: Path, panel: pd.DataFrame, window: Window, absent: Absent = UNSTATED
) -> np.ndarray:
    """Called genotypes of a cohort's kept samples at a window's sites and flanks, int8."""
    placed = OnPanel.open(raw, qc_samples, panel, absent)
    return unpack_bed(placed.rows(window.start, window.stop), len(placed.names))


def fill_window(
    genotypes: np.ndarray,
    sites: pd.DataFrame,
    contig: str,
    settings: Beagle,
    folder: Path,
    *,
    dr2: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fill the missing genotypes of consecutive panel sites of one contig.

    With a reference, the sites that it shares with the panel are imputed from it, including sites
    absent from the cohort; all other sites are imputed from the cohort alone.

    Parameters
    ----------
    genotypes : int8 array, (n_sites, n_samples)
        0, 1, 2 or MISSING.
    sites : DataFrame
        `pos`, `ref`, `alt`, `mode` of the panel.
    folder : Path
        Folder for temporary files.
    dr2 : float64 array, (n_sites,), optional
        Receives Beagle's estimate of the dosage r2 of the sites that it fills; it is 1 unless no
        sample is called.

    Returns
    -------
    filled : int8 array, (n_sites, n_samples)
        Nothing is missing; called genotypes are unchanged.
    dosage : float32 array, (n_sites, n_samples)
        Expected ALT allele count; Beagle gives fractions at sites absent from the cohort.
    by_beagle : bool array, (n_sites, 1)
        Sites that Beagle filled; the mode fills the others (all sites if the command is
        missing).
    """
    missing = genotypes == MISSING
    mode = sites["mode"].to_numpy(np.int8)[:, None]
    filled = np.where(missing, mode, genotypes)
    dosage = filled.astype(np.float32)
    done = ~missing.any(axis=1)
    by_beagle = np.zeros(len(sites), bool)
    if done.all():
        return filled, dosage, by_beagle[:, None]
    runs = [settings.reference, None] if settings.reference else [None]
    if not find_beagle():
        logger.warning("%s The mode is used instead.", NO_BEAGLE)
        runs = []
    for reference in runs:
        with tempfile.TemporaryDirectory(prefix=".beagle.", dir=folder) as temporary:
            called, doses, found, told = _run(
                genotypes, sites, contig, settings, reference, Path(temporary)
            )
        new = found & ~done
        filled[new] = np.where(missing[new], called[new], genotypes[new])
        dosage[new] = np.where(missing[new], doses[new], genotypes[new])
        by_beagle |= new
        if dr2 is not None:
            dr2[new] = told[new]
        done |= new
        if done.all():
            break
    if not done.all():
        logger.info(
            "%s: the mode fills %d sites that Beagle cannot impute", contig, int((~done).sum())
        )
    return filled, dosage, by_beagle[:, None]


def _run(genotypes, sites, contig, settings, reference, folder: Path):
    """Run Beagle once; return genotypes, dosages, which sites it imputed (perhaps none), DR2."""
    called = np.zeros_like(genotypes)
    doses = np.zeros(genotypes.shape, np.float32)
    found, dr2 = np.zeros(len(sites), bool), np.ones(len(sites))
    some = (genotypes != MISSING).any(axis=1)
    swapped = np.zeros(len(sites), bool)
    arguments = [f"gt={folder}/target.vcf", f"out={folder}/out", f"seed={settings.seed}"]
    arguments += [f"nthreads={settings.threads}"]
    if reference is None:
        given = some
        if genotypes.shape[1] < 2:
            return called, doses, found, dr2
    else:
        within, swapped = _cut_reference(reference, sites, contig, folder / "reference.vcf")
        given = some & within
        impute = "true" if (within & ~some).any() else "false"
        arguments += [f"ref={folder}/reference.vcf", f"impute={impute}"]
    positions = sites.pos.to_numpy()[given]
    if len(np.unique(positions)) < LEAST_POSITIONS:
        logger.info(
            "%s%s: %d sites at fewer than two positions, so Beagle does not run",
            contig,
            f" in {reference}" if reference else "",
            int(given.sum()),
        )
        return called, doses, found, dr2
    if settings.map and _cut_map(settings.map, contig, folder / "map.txt"):
        arguments.append(f"map={folder}/map.txt")
    _write_target(folder / "target.vcf", genotypes, sites, given, swapped)
    _call(arguments, settings, contig)
    _read_output(folder / "out.vcf.gz", called, doses, found, dr2)
    called[swapped] = 2 - called[swapped]
    doses[swapped] = 2 - doses[swapped]
    return called, doses, found, dr2


def _write_target(path: Path, genotypes, sites, given, swapped) -> None:
    pos, ref, alt = sites.pos.to_numpy(), sites.ref.to_numpy(), sites.alt.to_numpy()
    names = "".join(f"\tS{k}" for k in range(genotypes.shape[1])).encode()
    with open(path, "wb") as file:
        file.write(_META + _COLUMNS + names + b"\n")
        for row in np.flatnonzero(given):
            values = genotypes[row]
            alleles = f"{ref[row]}\t{alt[row]}"
            if swapped[row]:
                values = np.where(values == MISSING, MISSING, 2 - values)
                alleles = f"{alt[row]}\t{ref[row]}"
            file.write(f"1\t{pos[row]}\t{row}\t{alleles}\t.\tPASS\t.\tGT".encode())
            file.write(_CALLS[values].tobytes() + b"\n")


def _cut_reference(path: Path, sites, contig: str, out: Path) -> tuple[np.ndarray, np.ndarray]:
    """Write the reference's records at these sites; return which sites it has, and which swapped.

    Raises
    ------
    UserError
        The reference is not a VCF, is not phased or has missing genotypes.
    """
    ref, alt = sites.ref.str.upper().to_numpy(), sites.alt.str.upper().to_numpy()
    row_of = {key: k for k, key in enumerate(zip(sites.pos.to_numpy(), ref, alt, strict=True))}
    ambiguous = is_ambiguous(ref, alt)
    within, swapped = np.zeros(len(sites), bool), np.zeros(len(sites), bool)
    names = {name.encode() for name in contig_names(contig)}
    shown, n_samples = f"{path} (impute.reference)", 0
    with opened(path, "impute.reference") as lines, open(out, "wb") as file:
        for n_line, line in enumerate(lines, 1):
            if n_line == 1 and not line.startswith(b"##fileformat=VCF"):
                raise UserError(f"{shown} is not a VCF file; give a phased VCF or VCF.gz.")
            if line.startswith(b"#CHROM"):
                n_samples = line.count(b"\t") - 8
                header = "".join(f"\tR{k}" for k in range(n_samples)).encode()
                file.write(_META + _COLUMNS + header + b"\n")
                continue
            if line.startswith(b"#") or line.split(b"\t", 1)[0] not in names:
                continue
            fields = line.rstrip(b"\r\n").split(b"\t", 9)
            if n_samples < 1 or len(fields) < 10 or fields[9].count(b"\t") != n_samples - 1:
                columns = 1 + line.count(b"\t")
                raise UserError(
                    f"{shown}, line {n_line}: {columns} columns where the #CHROM line has "
                    f"{9 + n_samples}; copy or write the file again."
                )
            _, pos, _, a, b, _, _, _, keys, calls = fields
            if not (pos.isdigit() and len(pos) <= 10 and a.isascii() and b.isascii()):
                raise UserError(
                    f"{shown}, line {n_line}: {show(pos)}, {show(a)}, {show(b)} are not a "
                    "position and two alleles; correct the record."
                )
            key = int(pos), a.decode().upper(), b.decode().upper()
            row = row_of.get(key)
            turned = row is None
            row = row_of.get((key[0], key[2], key[1])) if turned else row
            if row is None or within[row] or (turned and ambiguous[row]):
                continue
            if keys != b"GT":
                calls = b"\t".join(call.split(b":", 1)[0] for call in calls.split(b"\t"))
            if keys.split(b":", 1)[0] != b"GT" or not _PHASED.fullmatch(calls):
                what = (
                    "is not phased"
                    if b"/" in calls
                    else "has a missing genotype"
                    if b"." in calls
                    else "has genotypes that are not two alleles, 0 or 1"
                )
                raise UserError(
                    f"{path}, line {n_line}: the record at {contig}:{key[0]} {what}, but an "
                    "imputation reference must be phased and complete; phase it first or set "
                    "impute.reference to another file."
                )
            within[row], swapped[row] = True, turned
            file.write(b"1\t%d\t%d\t%s\t%s\t.\tPASS\t.\tGT\t%s\n" % (key[0], row, a, b, calls))
    return within, swapped


def _cut_map(path: Path, contig: str, out: Path) -> bool:
    """Write a contig of a map as PLINK has it; return whether Beagle can use it: two rows."""
    shown = f"{path} (genetic_map)"
    names = set(contig_names(contig))
    table = parse_map(read_text(path, "genetic_map"), shown, names.__contains__)
    require_rising(table, contig, shown)
    lines = [f"1 . {cm!r} {pos}\n" for cm, pos in zip(table.cm.tolist(), table.pos, strict=True)]
    out.write_text("".join(lines))
    if len(lines) < LEAST_POSITIONS:
        found = f"has one position ({table.pos[0]})" if len(lines) else "is not"
        logger.warning(
            "contig '%s' %s in %s, so Beagle assumes one centimorgan per megabase",
            *(contig, found, shown),
        )
    return len(lines) >= LEAST_POSITIONS


def _call(arguments: list[str], settings: Beagle, contig: str) -> None:
    # Java reads this variable even if the wrapper script passes no options on.
    environment = os.environ | {"_JAVA_OPTIONS": f"-Xmx{settings.memory_mb}m"}
    done = subprocess.run(
        ["beagle", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=end_with_parent,
    )
    text = done.stdout + done.stderr
    if done.returncode == 0:
        return
    if "OutOfMemoryError" in text:
        raise UserError(
            f"Beagle ran out of {settings.memory_mb} MB on contig '{contig}'; set impute.window_mb "
            "to cut the contig into windows, or give the rule more mem_mb in a profile."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR") or "Exception" in line]
    reason = " / ".join(errors[:1] or lines[-_TAIL_LINES:])
    raise UserError(f"Beagle stopped on contig '{contig}': {reason}.")


def _read_output(
    path: Path, called: np.ndarray, doses: np.ndarray, found: np.ndarray, dr2: np.ndarray
) -> None:
    """Read Beagle's VCF into the rows that its identifiers name."""
    n_samples = called.shape[1]
    with igzip.open(path, "rb") as lines:
        for line in lines:
            if line.startswith(b"#"):
                continue
            *fixed, keys, calls = line.rstrip(b"\r\n").split(b"\t", 9)
            row = int(fixed[2])
            found[row] = True
            if told := _DR2.search(fixed[7]):
                dr2[row] = float(told[1])
            if keys == b"GT" and len(calls) == 4 * n_samples - 1:
                letters = np.frombuffer(calls + b"\t", np.uint8).reshape(n_samples, 4)
                called[row] = letters[:, 0] + letters[:, 2] - 2 * ord("0")
                doses[row] = called[row]
                continue
            fields = [call.split(b":") for call in calls.split(b"\t")]
            called[row] = [int(f[0][:1]) + int(f[0][-1:]) for f in fields]
            at = keys.split(b":").index(b"DS") if b"DS" in keys.split(b":") else -1
            doses[row] = [float(f[at]) for f in fields] if at >= 0 else called[row]
