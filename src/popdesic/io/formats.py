"""The formats of genotype files: which one a source has, its files, and its samples.

A source is what the column `genotypes` of the cohort sheet names: a VCF or BCF file, the prefix of
PLINK 1 files (.bed, .bim, .fam), of PLINK 2 files (.pgen, .pvar, .psam) or of EIGENSTRAT files
(.geno, .snp, .ind), a folder of VCF-Zarr, also in an object store (`remote`), or a BGEN file or a
tree sequence (.trees), read as a VCF.
Nothing compiled is imported here, because each job of the workflow reads the sheets.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import UserError
from ..core.files import is_file
from .bgen import BGEN_END, read_bgen_header, remarks_on_bgen
from .call_filters import CallFilters
from .pgen_header import PGEN_ENDS
from .remote import Remote, is_remote, located
from .trees import TREES_END, count_tree_sites

VCF, PLINK, PGEN, EIGENSTRAT, ZARR = "vcf", "plink", "pgen", "eigenstrat", "zarr"
TREES, BGEN = "trees", "bgen"
PLINK_ENDS = (".bed", ".bim", ".fam")
EIGENSTRAT_ENDS = (".geno", ".snp", ".ind")
#: Suffixes of the files of each kind of prefix, first that of the genotypes, in the order in which
#: they are looked for.
PREFIXES = {PLINK: PLINK_ENDS, PGEN: PGEN_ENDS, EIGENSTRAT: EIGENSTRAT_ENDS}
#: Files that the root of a Zarr store holds, of format 2 and 3.
ZARR_ROOTS = (".zgroup", ".zmetadata", "zarr.json")


class Source(NamedTuple):
    """Format of a source, and its file, its prefix, its folder or its address."""

    kind: str
    path: Any


def find_format(source: Path | Remote | str) -> Source:
    """Return the format of a source by its name and by what exists; VCF (or BCF) if nothing tells.

    A file with exactly this name comes before PLINK 1 files of this prefix, those before PLINK 2
    files, and those before EIGENSTRAT files. Of an object store VCF-Zarr alone is read.
    """
    if is_remote(source):
        return Source(ZARR, located(source))
    source = Path(source)
    for kind, (end, *_) in PREFIXES.items():
        if source.name.endswith(end):
            return Source(kind, source.with_name(source.name.removesuffix(end)))
    if is_zarr(source):
        return Source(ZARR, source)
    if source.name.endswith(TREES_END):
        return Source(TREES, source)
    if source.name.endswith(BGEN_END):
        return Source(BGEN, source)
    if not is_file(source):
        for kind, (end, *_) in PREFIXES.items():
            if is_file(f"{source}{end}"):
                return Source(kind, source)
    return Source(VCF, source)


def is_zarr(path: Path | Remote | str) -> bool:
    """Whether `path` is the folder of a Zarr store, or an address."""
    if is_remote(path):
        return True
    return any(is_file(Path(path, name)) for name in ZARR_ROOTS)


def read_sample_names(source: Path | Remote | str, shown: str | None = None) -> list[str]:
    """Return the sample names of a source, in file order.

    Raises
    ------
    UserError
        The source cannot be read, or has no samples or repeated ones; prefixed with `shown`, the
        file and row that name the source.
    """
    try:
        return read_file_samples(source)[0]
    except UserError as error:
        raise error if shown is None else UserError(f"{shown}: {error}") from None


def read_file_samples(source: Path | Remote | str) -> tuple[list[str], list[str]]:
    """Return the sample names of a source and their sex codes (1, 2, else unknown).

    Raises
    ------
    UserError
        The source cannot be read, or has no samples or repeated ones.
    """
    kind, path = find_format(source)
    if kind == PLINK:
        from .bed import read_plink_samples

        return read_plink_samples(path)
    if kind == PGEN:
        from .pgen_tables import read_pgen_samples

        return read_pgen_samples(path)
    if kind == EIGENSTRAT:
        from .eigenstrat_tables import read_eigenstrat_samples

        return read_eigenstrat_samples(path)
    if kind == ZARR:
        from .zarr_store import read_zarr_samples

        names = read_zarr_samples(path)
    else:
        from .vcf_header import read_header

        names = read_header(path).samples
    return names, ["0"] * len(names)


def read_contig_lengths(source: Path | Remote | str) -> dict[str, int]:
    """Return the contig lengths that a source's header gives; PLINK 1 and EIGENSTRAT give none."""
    kind, path = find_format(source)
    if kind in (PLINK, EIGENSTRAT):
        return {}
    if kind == PGEN:
        from .pgen_tables import read_pvar_header

        return read_pvar_header(path)[2]
    if kind == ZARR:
        from .zarr_store import read_zarr_lengths

        return read_zarr_lengths(path)
    from .vcf_header import read_header

    return read_header(path).lengths


def read_contigs(source: Path | Remote | str) -> list[str]:
    """Return the contigs that a source's header names; of PGEN those with a length."""
    kind, path = find_format(source)
    if kind in PREFIXES:
        return list(read_contig_lengths(source))
    if kind == ZARR:
        from .zarr_store import open_store

        return list(open_store(path).contigs)
    from .vcf_header import read_header

    return read_header(path).contigs


def header_contigs(sources: Iterable[Path | Remote | str]) -> dict[str, int]:
    """Contigs in the headers of some files, with their lengths; 0: not given.

    PLINK 1 and EIGENSTRAT files have no header.
    """
    found: dict[str, int] = {}
    for source in sources:
        lengths = read_contig_lengths(source)
        for contig in [*read_contigs(source), *lengths]:
            found[contig] = found.get(contig) or lengths.get(contig, 0)
    return found


def read_filters(source: Path | Remote | str) -> frozenset[str] | None:
    """Return the names of FILTER that a source's header declares; None: not known (PGEN)."""
    kind, path = find_format(source)
    if kind in PREFIXES:
        return None if kind == PGEN else frozenset()
    if kind == ZARR:
        from .zarr_store import open_store, texts

        group = open_store(path).group
        return frozenset(texts(group["filter_id"][:]) if "filter_id" in group else [])
    from .vcf_header import read_header

    return read_header(path).filters


def remarks_on(source: Path | Remote | str) -> list[str]:
    """Return sentences about what is not read from a source, or could be missing from it.

    VCF and BCF files are not searched for dosages: their records without hard calls are refused.
    """
    kind, path = find_format(source)
    if kind == PGEN:
        from .pgen_tables import remarks_on_pgen

        return remarks_on_pgen(path)
    if kind == ZARR:
        from .zarr_store import remarks_on_zarr

        return remarks_on_zarr(path)
    if kind == BGEN:
        return remarks_on_bgen(path)
    return []


def require_readable(source: Path | Remote | str, filters: CallFilters) -> None:
    """Refuse a source that no job could read, by its header or its table of sites.

    Raises
    ------
    UserError
        The alleles of PLINK files are coded 1 and 2, which name no bases; or the source lacks a
        field that a limit of `filters` needs.
    """
    kind, path = find_format(source)
    if filters.limits().any():
        filters.require(located(source), _marks(kind, path))
    if kind == PLINK:
        from .bed import numbered_bim

        numbered_bim(path)
    elif kind == PGEN:
        from .pgen_tables import numbered_pvar

        numbered_pvar(path)
    elif kind == EIGENSTRAT:
        from .eigenstrat_tables import numbered_snp

        numbered_snp(path)


def _marks(kind: str, path: Any) -> dict[str, bool]:
    """Whether a source has QUAL, and GQ, DP and AD of its calls."""
    if kind in (PLINK, EIGENSTRAT):
        return {}
    if kind == PGEN:
        from .pgen_tables import read_pvar_header

        return {"QUAL": "QUAL" in read_pvar_header(path)[0]}
    if kind == ZARR:
        from .zarr_store import open_store

        group = open_store(path).group
        calls = {name: f"call_{name}" in group for name in ("GQ", "DP", "AD")}
        return calls | {"QUAL": "variant_quality" in group}
    from .vcf_header import read_header

    return {"QUAL": True} | dict.fromkeys(read_header(path).formats, True)


def count_sites(source: Path | Remote | str) -> int | None:
    """Return the number of sites that all but VCF, BCF and PLINK 1 files state; None for these."""
    kind, path = find_format(source)
    if kind == PGEN:
        from .pgen_tables import check_pgen

        return check_pgen(path).n_sites
    if kind == EIGENSTRAT:
        from .eigenstrat_tables import check_geno

        return check_geno(path).n_sites
    if kind == ZARR:
        from .zarr_store import open_store

        return open_store(path).n_sites
    if kind == TREES:
        return count_tree_sites(path)
    if kind == BGEN:
        return read_bgen_header(path).n_sites
    return None
