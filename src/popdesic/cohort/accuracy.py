"""Imputation accuracy: hide some called genotypes, impute them, compare."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.files import content_key, digest
from ..core.row import renew_cohorts
from ..core.tables import read_table, write_npz, write_table
from ..io.genotypes import MISSING, unpack_bed
from .absent import UNSTATED, Absent
from .accuracy_sums import SUMS, measures
from .beagle import Beagle, fill_window
from .encode import OnPanel
from .impute import NO_BEAGLE, Window, contig_start, find_beagle, plan_windows, read_windows
from .panel import load_panel

#: Share of the called genotypes that an evaluation hides.
HIDDEN_SHARE = 0.02

log = logging.getLogger("popdesic")

#: Bounds of the classes of minor allele frequency in the panel.
MAF_BOUNDS = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]

#: Imputes a window: genotypes int8 (n_sites, n_samples), rows of the panel, window, sample names
#: and a folder for temporary files give genotypes, none missing, and dosages.
Imputer = Callable[
    [np.ndarray, pd.DataFrame, Window, list[str], Path], tuple[np.ndarray, np.ndarray]
]


def uniform_draws(
    seed: int, cohort: str, contig: str, first: int, n_sites: int, n_samples: int
) -> np.ndarray:
    """Draw a number in [0, 1) for each genotype, (n_sites, n_samples), whatever the windows.

    Parameters
    ----------
    first : int
        Number of sites of the contig before these.
    """
    key = [seed, zlib.crc32(cohort.encode()), zlib.crc32(contig.encode())]
    bits = np.random.PCG64(np.random.SeedSequence(key))
    bits.advance(
        int(first) * n_samples
    )  # one step per number, so windows agree with the whole contig
    return np.random.Generator(bits).random((n_sites, n_samples))


def hidden(share: float, *of_genotypes) -> np.ndarray:
    """Choose genotypes to hide, bool (n_sites, n_samples); `of_genotypes` as in `uniform_draws`."""
    return uniform_draws(*of_genotypes) < share


def evaluate_window(
    raw: Path,
    qc_samples: Path,
    panel_path: Path,
    windows: Path | None,
    number: int | None,
    out: Path,
    *,
    cohort: str,
    share: float = HIDDEN_SHARE,
    seed: int,
    imputers: Mapping[str, Imputer],
    absent: Absent = UNSTATED,
) -> dict[str, int]:
    """Sum over hidden genotypes of one window (or of the whole panel if `windows` is None).

    Parameters
    ----------
    share : float
        Share of the called genotypes to hide.
    imputers : dict
        The methods that are compared, by name (``mode``, ``beagle``, ``copying``), in order.
    out : Path
        .npz: `maf`, float64 (n_methods, n_classes, 9), and `samples`, float64
        (n_methods, n_samples, 9), sums in the order of `SUMS`, all zero for Beagle where the
        command is missing.

    Returns
    -------
    dict
        Number of sites and of hidden genotypes.
    """
    panel, _ = load_panel(panel_path)
    methods = list(imputers)
    measured = [method for method in methods if method != "beagle" or find_beagle()]
    if measured != methods:
        log.warning("%s Its accuracy is not measured.", NO_BEAGLE)
    n_samples = int((read_table(qc_samples).keep == "yes").sum())
    by_maf = np.zeros((len(methods), len(MAF_BOUNDS) - 1, len(SUMS)))
    by_sample = np.zeros((len(methods), n_samples, len(SUMS)))
    chosen = plan_windows(panel)[0] if windows is None else [read_windows(windows)[number - 1]]
    out.parent.mkdir(parents=True, exist_ok=True)
    placed = OnPanel.open(raw, qc_samples, panel, absent)
    for window in chosen:
        genotypes = unpack_bed(placed.rows(window.start, window.stop), n_samples)
        before = window.start - contig_start(panel, window.contig)
        mask = hidden(share, seed, cohort, window.contig, before, *genotypes.shape)
        mask &= genotypes != MISSING
        sites = panel.iloc[window.start : window.stop]
        shown = np.where(mask, MISSING, genotypes).astype(np.int8)
        # Flanks inform the imputation; only the window's own sites are counted.
        mask[: window.first - window.start] = False
        mask[window.last - window.start :] = False
        for method in measured:
            index = methods.index(method)
            called, dosage = imputers[method](shown, sites, window, placed.names, out.parent)
            _add(by_maf[index], by_sample[index], genotypes, called, dosage, mask, sites)
    write_npz(out, maf=by_maf, samples=by_sample)
    hidden_genotypes = int(by_maf[:, :, 0].sum(axis=1).max())
    return {"sites": sum(w.last - w.first for w in chosen), "hidden": hidden_genotypes}


def measure_accuracy(
    out: Path,
    windows: Sequence[Path],
    kept: Path | None,
    raws: Mapping[str, Path],
    samples: Mapping[str, Path],
    panel: Path,
    *,
    absent: Mapping[str, Absent],
    methods: list[str],
    seed: int,
    code: str,
    threads: int = 1,
) -> None:
    """Write `impute/evaluation.tsv` (`summarize_evaluation`).

    Parameters
    ----------
    windows : list of Path
        What `evaluate_window` wrote, ``{cohort}.{window}.npz``, where methods include Beagle.
    kept : Path, optional
        Otherwise where the mode is evaluated (`evaluate_mode`, which has the other parameters).
    """
    if kept:
        how = {"absent": absent, "seed": seed, "code": code, "threads": threads}
        parts = evaluate_mode(kept, raws, samples, panel, **how)
    else:
        parts = {cohort: [] for cohort in raws}
        for path in windows:
            parts[path.name.rsplit(".", 2)[0]].append(path)
    summarize_evaluation(parts, samples, methods, out)


def evaluate_mode(
    out: Path,
    raws: Mapping[str, Path],
    samples: Mapping[str, Path],
    panel: Path,
    *,
    absent: Mapping[str, Absent],
    seed: int,
    code: str,
    threads: int = 1,
) -> dict[str, list[Path]]:
    """Evaluate the mode in cohorts of which something has changed; keep what is known of others.

    Parameters
    ----------
    out : Path
        ``impute/evaluation/row.json``, which lists the cohorts; their sums lie beside it.
    raws, samples : dict
        Prefix of the decoded files and `qc/{cohort}.samples.tsv` of each cohort.
    code : str
        Digest of the code that evaluates.
    threads : int
        Cohorts at a time.

    Returns
    -------
    dict
        The file of each cohort, as `summarize_evaluation` takes them.
    """
    keys = {}
    for cohort, raw in raws.items():
        files = [raw.with_suffix(end) for end in (".bed", ".bim", ".fam", ".json")]
        about = [content_key(path) for path in (*files, samples[cohort], panel)]
        keys[cohort] = digest(repr([cohort, absent[cohort], seed, code, *about]))

    def evaluate(cohort: str, outputs: list[Path]) -> None:
        evaluate_window(
            *(raws[cohort], samples[cohort], panel, None, None, outputs[0]),
            cohort=cohort,
            seed=seed,
            imputers={"mode": by_mode},
            absent=absent[cohort],
        )

    renew_cohorts(out, (".npz",), keys, evaluate, threads)
    return {cohort: [out.parent / f"{cohort}.npz"] for cohort in keys}


def by_mode(shown, sites, window: Window, names: list[str], folder: Path):
    """An `Imputer`: the panel's most frequent genotype."""
    mode = np.broadcast_to(sites["mode"].to_numpy(np.int8)[:, None], shown.shape)
    return mode, mode.astype(np.float32)


def by_beagle(settings: Beagle) -> Imputer:
    """Imputation by Beagle."""

    def impute(shown, sites, window: Window, names: list[str], folder: Path):
        called, dosage, _ = fill_window(shown, sites, window.contig, settings, folder)
        return called, dosage

    return impute


def _add(by_maf, by_sample, truth, called, dosage, mask, sites) -> None:
    maf = np.minimum(sites.af, 1 - sites.af).to_numpy()
    bins = np.clip(np.searchsorted(MAF_BOUNDS, maf, side="right") - 1, 0, len(MAF_BOUNDS) - 2)
    row, sample = np.nonzero(mask)
    t, g = truth[row, sample].astype(np.float64), called[row, sample]
    d = dosage[row, sample].astype(np.float64)
    right, carrier = t == g, (t > 0) | (g > 0)
    values = [np.ones(len(t)), right, carrier, carrier & right, t, d, t * t, d * d, t * d]
    for k, value in enumerate(values):
        by_maf[:, k] += np.bincount(bins[row], value, len(by_maf))
        by_sample[:, k] += np.bincount(sample, value, len(by_sample))


def summarize_evaluation(
    parts: dict[str, list[Path]], samples: dict[str, Path], methods: list[str], out: Path
) -> pd.DataFrame:
    """Add up the windows and write `impute/evaluation.tsv`.

    Parameters
    ----------
    parts : dict
        Files of `evaluate_window` by cohort.
    samples : dict
        `qc/{cohort}.samples.tsv` by cohort.

    Returns
    -------
    DataFrame
        `cohort`, `method`, `by` (``all``, ``common``: MAF of at least 0.05, ``maf``, ``sample``),
        `value` (the class or the sample), `hidden` (genotypes), `concordance`,
        `nonref_concordance` (over genotypes with an ALT allele, true or imputed, so that the
        many 0/0 do not hide errors), `dosage_r2` (squared Pearson correlation over the
        hidden genotypes). NA where nothing was hidden or nothing varies.
    """
    common = MAF_BOUNDS.index(0.05)
    labels = [f"{a:g}-{b:g}" for a, b in pairwise(MAF_BOUNDS)]
    rows = []
    for cohort, paths in parts.items():
        loaded = [np.load(path) for path in paths]
        by_maf = sum(part["maf"] for part in loaded)
        by_sample = sum(part["samples"] for part in loaded)
        table = read_table(samples[cohort])
        names = table["sample"][table.keep == "yes"].tolist()
        for k, method in enumerate(methods):
            start = cohort, method
            rows.append((*start, "all", "all", *measures(by_maf[k].sum(axis=0))))
            rows.append((*start, "common", "0.05-0.5", *measures(by_maf[k, common:].sum(axis=0))))
            for by, names_of, sums in (("maf", labels, by_maf[k]), ("sample", names, by_sample[k])):
                rows += [
                    (*start, by, name, *measures(line))
                    for name, line in zip(names_of, sums, strict=True)
                ]
    measured = ["hidden", "concordance", "nonref_concordance", "dosage_r2"]
    table = pd.DataFrame(rows, columns=["cohort", "method", "by", "value", *measured])
    write_table(out, table)
    return table
