"""Decode the files of a cohort, or of a batch of small ones, once.

The decoded files lie beside ``raw.json``, which lists their checksums, with a hidden key: a digest
of all that decides them. A job that runs again, for a label or a limit of quality control, decodes
only where the key has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.files import atomic_path, beside, checksum_of, is_file, read_json
from ..core.row import Row, is_intact, kept_key
from ..io.bed import changed_source, lacking_samples
from ..io.call_filters import CallFilters
from ..io.formats import header_contigs
from .absent import Absent
from .batch import ingest_batch
from .contigs import excluded_names, haploid_policies
from .ingest import IngestCounts, ingest_cohort

KEPT = "The files were decoded before: kept."


def decode_unit(
    prefix: Path,
    cohorts: Mapping[str, Sequence[Any]],
    *,
    key: str,
    listed: Collection[str],
    excluded: Collection[str],
    founders: bool,
    absent: Sequence[Any],
    haploid: str,
    excluded_contigs: Sequence[str],
    filters: Mapping[str, Any],
    fasta: str,
    threads: int = 1,
) -> tuple[dict[str, int], list[str]]:
    """Decode cohorts that are read together, or one alone, unless that was done with this key.

    Parameters
    ----------
    prefix : Path
        Stem of the decoded files; its folder has the unit's name.
    cohorts : dict
        Sources and `names_key` of each cohort; where the study has several ploidies, also that of
        each sample.
    key : str
        Of all that decides the files, but for the samples that the sheet lists or excludes.
    listed : names
        Samples that the sheet lists: where one of them is lacking, the files are decoded again.
    excluded : names
        Samples that are left out. Files that have one already keep it.
    founders, absent
        Of a batch: as `batch.ingest_batch` takes them.
    haploid, excluded_contigs, filters, fasta
        Keys of the configuration; `fasta` is empty where there is none.

    Returns
    -------
    counts : dict
        As in ``raw.json``.
    remarks : list of str
        Sentences for the log.

    Raises
    ------
    UserError
        Of `ingest.ingest_cohort` and `batch.ingest_batch`.
    """

    def decode(cohort: str, out: Path) -> IngestCounts:
        sources, names, *ploidy = cohorts[cohort]
        contigs = header_contigs(sources)
        return ingest_cohort(
            sources,
            out,
            haploid=haploid_policies(haploid, excluded_contigs, contigs),
            excluded_contigs=excluded_names(excluded_contigs, contigs),
            filters=CallFilters.parse(filters),
            listed=names,
            excluded=excluded,
            fasta=Path(fasta) if fasta else None,
            ploidy=ploidy[0] if ploidy else None,
            threads=threads,
        )

    row, unit = Row(prefix.parent, ()), (prefix.name, prefix.parent.name)
    if kept_key(row, unit) == key and is_whole(prefix) and not lacking_samples(prefix, listed):
        about = beside(prefix, ".json")
        text = about.read_text("utf-8")
        with atomic_path(about) as temporary:  # made by this job, too
            temporary.write_text(text, "utf-8")
        return read_json(about)["counts"], [KEPT]
    row.begin(unit)
    if list(cohorts) == [prefix.parent.name]:
        found = decode(prefix.parent.name, prefix)
        counts, remarks = found.as_dict(), found.remarks
    else:
        how = {"founders": founders, "absent": Absent(*absent)}
        counts, remarks = ingest_batch(list(cohorts), decode, prefix, **how)
    row.finish(unit, key)
    return counts, remarks


def is_whole(prefix: Path) -> bool:
    """Whether decoded files and their list are as they were written."""
    about = beside(prefix, ".json")
    if not is_intact(about):
        return False
    files = read_json(about).get("files", {})
    paths = {beside(prefix, end): checksum for end, checksum in files.items()}
    if not paths or not all(is_file(p) and checksum_of(p) == c for p, c in paths.items()):
        return False
    return not changed_source(beside(prefix, ".bed"), read=True)
