"""Decode small cohorts that are read together, and merge them into one: a batch.

Each is decoded as if it were alone. Sites are then matched as those of cohorts are on the panel:
`1` and `chr1` are one contig, REF and ALT may be swapped, and a file may be of the other strand. A
batch of founders has the sites that all its cohorts speak about, as the panel of founders has; one
of newcomers has those of any, which are missing in the samples of the other cohorts, or homozygous
reference where their files say so.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd

from ..core.errors import UserError
from ..core.files import atomic_path, beside, flushing_together, read_json
from ..core.tables import write_table
from ..io.bed import open_bed, read_bim, read_fam, write_fam
from ..io.genotypes import pack_bed, unpack_bed
from ..io.listed_rows import RowsFile
from ..io.sites import canonical_contig, chunks
from .absent import COUNTS, GENOME, REFERENCE_ONLY, Absent, frequency_of, strands_in_doubt
from .callable import BLOCKS, DROPPED, EVERYONE, Callable, load_beside
from .encode import OnPanel
from .fixed_sites import count_genotypes
from .ingest import IngestCounts, write_about
from .merge_founders import LEAST, SITE, Union
from .reference_check import reference_only

#: First part of the name of the folder with decoded cohorts, which is gone when they are merged.
MEMBERS = ".members."
#: Decodes the named cohort to {prefix}.bed, .bim, .fam and .json.
Decode = Function[[str, Path], IngestCounts]


def ingest_batch(
    cohorts: list[str],
    decode: Decode,
    out_prefix: Path,
    *,
    founders: bool,
    absent: Absent,
) -> tuple[dict[str, int], list[str]]:
    """Decode cohorts and merge them to {out_prefix}.bed, .bim, .fam and .json, as one cohort's.

    Samples lie cohort by cohort. `raw.json` has the sums of the cohorts' counts and, as
    ``members``, those of each.

    Parameters
    ----------
    cohorts : list of str
        In the order of their samples; the first sets REF, ALT and strand.
    decode : callable
        `ingest.ingest_cohort` of one of them.
    founders : bool
        Whether the batch has only the sites that all of them speak about.
    absent : Absent
        What the sheet says of their absent sites.

    Returns
    -------
    counts : dict
        As in `raw.json`.
    remarks : list of str
        Sentences for the log.

    Raises
    ------
    UserError
        Of `decode`; or the cohorts cannot be merged: one is of another build, lists variant sites
        alone, or no site is left. The sentence names the cohort.
    """
    out_prefix.parent.mkdir(parents=True, exist_ok=True)
    for left in out_prefix.parent.glob(f"{MEMBERS}*"):  # by a job that was killed
        shutil.rmtree(left)
    remarks: list[str] = []
    with tempfile.TemporaryDirectory(prefix=MEMBERS, dir=out_prefix.parent) as folder:
        stems = {cohort: Path(folder) / str(k) for k, cohort in enumerate(cohorts)}
        with flushing_together():
            for cohort, stem in stems.items():
                found = decode(cohort, stem)
                remarks += [f"{cohort}: {remark}" for remark in found.remarks]
        return _merge(stems, out_prefix, founders=founders, absent=absent), remarks


class _Members(Union):
    """The sites of the cohorts of a batch. Their tables are no files, but made when asked for."""

    kind = "cohort"

    def __init__(self, stems: Mapping[str, Path], samples: dict[str, Path], absent: Absent):
        super().__init__(
            {}, {c: (stems[c], samples[c]) for c in stems}, dict.fromkeys(stems, absent)
        )
        self._stems = stems

    def of_any(self) -> pd.DataFrame:
        """The sites that any of them lists, with pooled counts.

        Raises
        ------
        UserError
            A file lists variant sites alone and lacks others'.
        """
        self._refuse_untold([], variants_only=True)
        return self._sites

    def _add_new(self, founder, new: pd.DataFrame, rows: np.ndarray) -> None:
        before = len(self._sites)
        super()._add_new(founder, new, rows)  # names only sites that all speak about
        column = self._sites.columns.get_loc("id")
        self._sites.iloc[before:, column] = self._ids_of(founder.cohort)[rows]

    def _ids_of(self, cohort: str) -> np.ndarray:
        return read_bim(self._stems[cohort]).id.to_numpy()

    def _table_of(self, founder) -> pd.DataFrame:
        return self._with_one_spelling(member_sites(self._stems[founder.cohort]))


def member_sites(prefix: Path) -> pd.DataFrame:
    """Sites of decoded files with counts of genotypes: `SITE`, `id`, `COUNTS`, `LEAST`."""
    table, n_samples = read_bim(prefix), len(read_fam(prefix))
    bed, counts = open_bed(prefix, n_samples=n_samples, n_sites=len(table)), []
    for first, last in chunks(len(bed)):
        counts.append(count_genotypes(unpack_bed(bed[first:last], n_samples)))
    called = np.concatenate(counts)
    table = table[[*SITE, "id"]].reset_index(drop=True)
    table[COUNTS[:3]] = called
    table[COUNTS[3]] = n_samples - called.sum(axis=1)
    return table.assign(**dict.fromkeys(LEAST, 1.0))  # of no concern here


def _merge(
    stems: Mapping[str, Path], out_prefix: Path, *, founders: bool, absent: Absent
) -> dict[str, int]:
    tables = {cohort: stem.with_name(f"{stem.name}.tsv") for cohort, stem in stems.items()}
    fams = {cohort: read_fam(stem) for cohort, stem in stems.items()}
    with flushing_together():
        for cohort, path in tables.items():
            write_table(path, fams[cohort][["sample"]].assign(keep="yes"))
    order = sorted(stems, key=lambda cohort: strands_in_doubt(stems[cohort]))
    union = _joined(order, stems, tables, absent)
    if 2 * union.samples_of(union.flipped) > sum(map(len, fams.values())):  # most are of one strand
        order = union.flipped + [one for one in order if one not in union.flipped]
        union = _joined(order, stems, tables, absent)
    sites = union.shared([]) if founders else union.of_any()
    if sites.empty:
        names = f"{', '.join([*stems][:3])}{', …' * (len(stems) > 3)}"
        raise UserError(
            f"the {len(stems)} cohorts {names}, which are read together, share no site; compare "
            "the contigs, positions and alleles of their files."
        )
    rank = {name: k for k, name in enumerate(sites.chrom.unique())}
    sites = sites.iloc[np.lexsort((sites.pos, sites.chrom.map(rank)))].reset_index(drop=True)
    sites["af"] = frequency_of(sites[COUNTS].to_numpy(np.int64))[0]
    fam = pd.concat(list(fams.values()), ignore_index=True)
    placed = [_placed(stem, tables[cohort], sites, absent) for cohort, stem in stems.items()]
    sizes = [len(one) for one in fams.values()]
    only = 0
    with ExitStack() as stack:
        paths = [stack.enter_context(atomic_path(beside(out_prefix, e))) for e in (".bed", ".bim")]
        with RowsFile(paths[0], len(fam)) as bed:
            for first, last in chunks(len(sites)):
                parts = zip(placed, sizes, strict=True)
                genotypes = [unpack_bed(rows[first:last], n) for rows, n in parts]
                rows = pack_bed(np.concatenate(genotypes, axis=1))
                bed.add(rows)
                only += int(reference_only(rows, len(fam)).sum())
        columns = (sites[name].tolist() for name in ("chrom", "id", "pos", "alt", "ref"))
        with open(paths[1], "w", encoding="utf-8", newline="\n") as bim:
            bim.writelines(map("{}\t{}\t0\t{}\t{}\t{}\n".format, *columns))
    write_fam(out_prefix, fam)
    for end in (BLOCKS, DROPPED):
        if (intervals := _intervals(stems, fams, end)) is not None:
            intervals.save(beside(out_prefix, end))
        else:
            beside(out_prefix, end).unlink(missing_ok=True)
    about = _about({cohort: read_json(beside(stem, ".json")) for cohort, stem in stems.items()})
    about["counts"] |= {"sites": len(sites), "samples": len(fam)}
    about[REFERENCE_ONLY] = max(0, only - about["counts"].get("made_reference", 0))
    write_about(out_prefix, about)
    return about["counts"]


def _joined(
    order: Sequence[str], stems: Mapping[str, Path], tables: dict[str, Path], absent: Absent
) -> _Members:
    """The sites of cohorts that are added in this order."""
    union = _Members(stems, tables, absent)
    for cohort in order:
        table = member_sites(stems[cohort])
        union.add(cohort, table if cohort == order[0] else table.drop(columns="id"))
    return union


def _placed(stem: Path, samples: Path, sites: pd.DataFrame, absent: Absent) -> np.ndarray:
    """Rows of .bed of a cohort at the sites of the batch, which lie in a file beside its own."""
    cohort = OnPanel.open(stem, samples, sites, absent)
    path = stem.with_name(f"{stem.name}.npy")
    np.save(path, np.concatenate([cohort.rows(*part) for part in chunks(len(sites))]))
    return np.load(path, mmap_mode="r")


def _intervals(
    stems: Mapping[str, Path], fams: Mapping[str, pd.DataFrame], end: str
) -> Callable | None:
    """`BLOCKS` or `DROPPED` of all cohorts, by sample of the batch or of all; None: there are none.

    Where a record of one cohort was dropped, nothing is known of the others either.
    """
    parts, before = [], 0
    for cohort, stem in stems.items():
        if (own := load_beside(stem, end)) is not None and len(own):
            names = np.array(own.contigs, object)[own.contig]
            sample = np.where(own.sample == EVERYONE, EVERYONE, own.sample + before)
            parts.append((names, own.start, own.end, sample))
        before += len(fams[cohort])
    return Callable(*map(np.concatenate, zip(*parts, strict=True))) if parts else None


def _about(members: Mapping[str, dict]) -> dict:
    """What `raw.json` says of a batch, from that of its cohorts."""
    total: Counter[str] = Counter()
    contigs: dict[str, list[int]] = {}
    spelt: dict[str, str] = {}
    for one in members.values():
        total.update(one["counts"])
        for name, (reach, length) in one["contigs"].items():
            found = contigs.setdefault(spelt.setdefault(canonical_contig(name), name), [0, 0])
            found[:] = max(found[0], reach), found[1] or length
    first = next(iter(members.values()))
    about = {
        "source": ", ".join(one["source"] for one in members.values()),
        "source_bytes": sum(one["source_bytes"] for one in members.values()),
        "haploid": first["haploid"],
        "contigs": contigs,
        "removed_calls": {
            k: n for one in members.values() for k, n in one["removed_calls"].items()
        },
        "counts": dict(total),
        "members": {cohort: one["counts"] for cohort, one in members.items()},
    }
    if GENOME in first:
        turned: Counter[str] = Counter()
        for one in members.values():
            turned.update(one[GENOME]["counts"])
        doubtful = any(one[GENOME]["in_doubt"] for one in members.values())
        about[GENOME] = first[GENOME] | {"in_doubt": doubtful, "counts": dict(turned)}
    return about
