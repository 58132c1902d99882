"""Painting of the samples of a file, by those of a phased reference or by each other."""

from __future__ import annotations

import logging
import math
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from ..copying.painting import Painting, joined_stretches
from ..core.errors import UserError
from ..core.files import beside, require_output
from ..core.tables import write_npy, write_table
from ..io.frozen_haplotypes import HaplotypePanel
from .copy_haplotypes import CopyOptions, own_samples, phase_part
from .haplotype_panel import frozen_for, reference_files
from .paint_batches import paint_part, sample_batches, unpacked
from .phased_targets import read_targets

log = logging.getLogger("popdesic")


def paint_file(
    reference: Path, target: Path | None, out: Path, genetic_map: str, options: CopyOptions
) -> np.ndarray | None:
    """Paint samples and write a matrix of lengths, one of segments, and both lists of samples.

    Parameters
    ----------
    reference : Path
        A file of `freeze_haplotypes`, or what that reads, which is frozen for this run.
    target : Path, optional
        Samples that copy from the reference, phased or not. By default those of the reference,
        which copy from each other.
    out : Path
        Lengths in centimorgans, `.npy` or `.tsv`: rows copy from columns. Beside it, numbers of
        segments in the same form, and `.samples.tsv` and `.donors.tsv`.
    genetic_map : str
        As in `freeze_haplotypes`; '' if the reference is frozen.

    Returns
    -------
    float64 array, (n_stretches, n_samples, n_samples), or None
        Without targets, lengths by stretch of the map, of contigs on which all samples have the
        same number of haplotypes. They lie in a temporary file in the folder of the output.

    Raises
    ------
    UserError
        As `freeze_haplotypes` and `read_targets`; or there is one sample alone, or no room for the
        temporary file.
    """
    if out.suffix not in (".npy", ".tsv"):
        raise UserError(f"the output {out} is a matrix; give it a name that ends in .npy or .tsv.")
    stem = str(out.with_suffix(""))
    segments, samples, donors = (
        beside(stem, end) for end in (f".segments{out.suffix}", ".samples.tsv", ".donors.tsv")
    )
    inputs = [*reference_files(reference), *filter(None, [target])]
    require_output(out, *inputs, others=[segments, samples, donors])
    with frozen_for(reference, genetic_map, out.parent, options.threads) as panel:
        if target is None:
            names, stretches, painted = _by_each_other(panel, out.parent, options)
        else:
            names, painted = _by_reference(target, panel, options)
            stretches = None
        for path, matrix in ((out, painted.lengths[0]), (segments, painted.segments)):
            if out.suffix == ".npy":
                write_npy(path, matrix)
            else:
                table = pd.DataFrame(matrix, columns=panel.samples)
                table.insert(0, "sample", names)
                write_table(path, table)
        for path, listed in ((samples, names), (donors, panel.samples)):
            write_table(path, pd.DataFrame({"sample": listed}))
    return stretches


def _by_each_other(panel: HaplotypePanel, folder: Path, options: CopyOptions):
    """Names, lengths by stretch, and the sum of all: samples of a reference."""
    n = len(panel.samples)
    if n < 2:
        raise UserError(f"{panel.path} has one sample; give a file of two or more, or --target.")
    count, numbers = joined_stretches([np.asarray(part.cm) for part in panel.parts])
    stretches = _on_disk((count, n, n), folder)
    whole = Painting(np.zeros((1, n, n)), np.zeros((n, n)))
    for part, number in zip(panel.parts, numbers, strict=True):
        first = int(number[0])
        owner = np.asarray(part.owner, np.int64)
        haplotypes = [np.flatnonzero(owner == k) for k in range(n)]
        own = np.full((len(owner), 2), -1, np.int64)
        for rows in haplotypes:
            own[rows, : len(rows)] = rows
        values = (int(number[-1]) - first + 1) * n
        for low, high, rows in sample_batches(owner, n, len(part.pos), values):
            bits = np.asarray(part.haplotypes)
            alleles = unpacked(bits, rows)
            found = paint_part(
                part, alleles, owner[rows] - low, number - first, own[rows], options.threads
            )
            whole.lengths[0, low:high] += found.lengths.sum(axis=0)
            whole.segments[low:high] += found.segments
            if len({len(rows) for rows in haplotypes}) == 1:
                stretches[first : first + len(found.lengths), low:high] += found.lengths
        log.info("%s: %d samples painted", part.contig, n)
    return panel.samples, stretches, whole


def _by_reference(target: Path, panel: HaplotypePanel, options: CopyOptions):
    """Names, and what the samples of a file copy from a reference."""
    targets = read_targets(target, panel, options.threads)
    same = own_samples(targets.samples, panel.samples)
    n, n_donors = len(targets.samples), len(panel.samples)
    whole = Painting(np.zeros((1, n, n_donors)), np.zeros((n, n_donors)))
    for part, given in zip(panel.parts, targets.parts, strict=True):
        if not len(given.rows):
            log.warning("no site of %s is typed in the targets: left out", part.contig)
            continue
        typed = phase_part(part, given, targets.samples, same, options)
        owner = typed.owner.astype(np.int64)
        own = np.full((len(owner), 2), -1, np.int64)
        for one, sample in same.items():
            here = np.flatnonzero(np.asarray(part.owner) == sample)
            own[owner == one, : len(here)] = here
        none = np.zeros(len(part.pos), np.int64)
        for low, high, rows in sample_batches(owner, n, len(part.pos), n_donors):
            alleles = np.full((len(rows), len(part.pos)), -1, np.int8)
            alleles[:, typed.rows] = typed.alleles[rows]
            found = paint_part(part, alleles, owner[rows] - low, none, own[rows], options.threads)
            whole.lengths[:, low:high] += found.lengths
            whole.segments[low:high] += found.segments
    return targets.samples, whole


def _on_disk(shape: tuple[int, int, int], folder: Path) -> np.memmap:
    """Zeros in a temporary file, float64, which is gone when the array is."""
    n_bytes = 8 * math.prod(shape)
    with tempfile.TemporaryFile(dir=folder) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except OSError as error:
            raise UserError(
                f"{folder} cannot hold {n_bytes / 1e9:.1f} GB ({error.strerror}): lengths by "
                f"stretch of {shape[1]} samples, by which groups are found; name an output in a "
                "folder with more space, or paint with the VCF of the reference as --target, which "
                "finds no groups."
            ) from None
        return np.memmap(file, np.float64, "r+", shape=shape)
