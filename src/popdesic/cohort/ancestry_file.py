"""Local ancestry of the samples of a file, by a table of labels of a phased reference."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..copying.copying import Haplotypes
from ..copying.local_ancestry import Mixed, Sources, by_haplotype, mix_sample
from ..core.errors import UserError
from ..core.files import atomic_path, beside, require_output
from ..core.tables import write_table
from ..core.threads import run_tasks
from ..io.frozen_haplotypes import HaplotypePart
from .copy_haplotypes import CopyOptions, own_samples, phase_part
from .haplotype_panel import frozen_for, reference_files
from .label_table import read_labels
from .phased_targets import TypedPart, read_targets

log = logging.getLogger("popdesic")


class _Chromosome(NamedTuple):
    """A part of the reference that targets are typed on."""

    part: HaplotypePart
    typed: TypedPart
    sources: Sources
    unlabelled: np.ndarray


def ancestry_file(
    target: Path, reference: Path, labels: Path, out: Path, genetic_map: str, options: CopyOptions
) -> pd.DataFrame:
    """Write tracts of local ancestry as a table and as BED, and proportions of each sample.

    Parameters
    ----------
    target : Path
        VCF, BCF or VCF-Zarr, phased or not.
    reference : Path
        A file of `freeze_haplotypes`, or what that reads, which is frozen for this run.
    labels : Path
        A table with the columns `sample` and `label`. Samples of the reference that it leaves out
        are not copied.
    out : Path
        Tracts, `.tsv`; beside it `.bed` and `.proportions.tsv`.
    genetic_map : str
        As in `freeze_haplotypes`; '' if the reference is frozen.

    Returns
    -------
    pandas.DataFrame
        Proportions: `sample`, one column for each label, `generations`, `switch_rate`.

    Raises
    ------
    UserError
        As `freeze_haplotypes` and `read_targets`; or the table of labels is not valid.
    """
    if out.suffix != ".tsv":
        raise UserError(f"the output {out} is a table; give it a name that ends in .tsv.")
    stem = str(out.with_suffix(""))
    bed, shares = beside(stem, ".bed"), beside(stem, ".proportions.tsv")
    require_output(out, target, labels, *reference_files(reference), others=[bed, shares])
    with frozen_for(reference, genetic_map, out.parent, options.threads) as panel:
        names, label_of = read_labels(labels, panel)
        clash = {"sample", "generations", "switch_rate"} & set(names)
        if clash:
            raise UserError(
                f"{labels}: '{min(clash)}' is a column of the results; rename this label."
            )
        targets = read_targets(target, panel, options.threads)
        same = own_samples(targets.samples, panel.samples)
        chromosomes = []
        for part, given in zip(panel.parts, targets.parts, strict=True):
            if not len(given.rows):
                log.warning("no site of %s is typed in the targets: left out", part.contig)
                continue
            typed = phase_part(part, given, targets.samples, same, options)
            chromosomes.append(_at_typed_sites(part, typed, label_of))
        found = run_tasks(
            lambda sample: _tracts(chromosomes, sample, same.get(sample), names),
            [(sample,) for sample in range(len(targets.samples))],
            options.threads,
        )
    tables = []
    for sample, (_, tracts) in zip(targets.samples, found, strict=True):
        tracts.insert(0, "sample", sample)
        tables.append(tracts)
    tracts = pd.concat(tables, ignore_index=True)
    write_table(out, tracts)
    _write_bed(bed, tracts)
    proportions = pd.DataFrame([mixed.proportions for mixed, _ in found], columns=names)
    proportions.insert(0, "sample", targets.samples)
    proportions["generations"] = [mixed.generations for mixed, _ in found]
    proportions["switch_rate"] = [mixed.switch_rate for mixed, _ in found]
    write_table(shares, proportions)
    return proportions


def _at_typed_sites(part: HaplotypePart, typed: TypedPart, label_of: np.ndarray) -> _Chromosome:
    labels = label_of[part.owner]
    few = Haplotypes(
        np.ascontiguousarray(part.haplotypes[typed.rows]),
        len(part.owner),
        np.array(part.cm[typed.rows]),
    )
    sources = Sources(few, np.maximum(labels, 0).astype(np.int64), part.ne, part.mismatch)
    return _Chromosome(part, typed, sources, np.flatnonzero(labels < 0))


def _tracts(
    chromosomes: list[_Chromosome], sample: int, same: int | None, names: list[str]
) -> tuple[Mixed, pd.DataFrame]:
    """What one sample is made of, and its tracts."""
    here = [np.flatnonzero(one.typed.owner == sample) for one in chromosomes]
    masked = [
        np.union1d(one.unlabelled, np.flatnonzero(one.part.owner == (-1 if same is None else same)))
        for one in chromosomes
    ]
    mixed = mix_sample(
        [one.sources for one in chromosomes],
        [one.typed.alleles[rows] for one, rows in zip(chromosomes, here, strict=True)],
        masked,
    )
    tables = []
    for one, rows, pairs in zip(chromosomes, here, mixed.pairs, strict=True):
        pos = np.array(one.part.pos[one.typed.rows])
        for haplotype, shares in enumerate(by_haplotype(pairs)[: len(rows)], 1):
            label = shares.argmax(axis=1)
            starts = np.flatnonzero(np.r_[True, np.diff(label) != 0])
            ends = np.r_[starts[1:], len(label)]
            sums = np.add.reduceat(shares.max(axis=1).astype(np.float64), starts)
            tables.append(
                pd.DataFrame(
                    {
                        "haplotype": haplotype,
                        "chrom": one.part.contig,
                        "start": pos[starts],
                        "end": pos[ends - 1],
                        "label": [names[k] for k in label[starts]],
                        "sites": ends - starts,
                        "probability": sums / (ends - starts),
                    }
                )
            )
    return mixed._replace(pairs=[]), pd.concat(tables, ignore_index=True)


def _write_bed(path: Path, tracts: pd.DataFrame) -> None:
    """Tracts as BED: sample, haplotype and label are the name, the probability the score."""
    with atomic_path(path) as temporary, open(temporary, "w") as file:
        file.writelines(_bed_lines(tracts))


def _bed_lines(tracts: pd.DataFrame) -> Iterator[str]:
    for row in tracts.itertuples():
        name = f"{row.sample}:{row.haplotype}:{row.label}"
        score = round(1000 * row.probability)
        yield f"{row.chrom}\t{row.start - 1}\t{row.end}\t{name}\t{score}\n"
