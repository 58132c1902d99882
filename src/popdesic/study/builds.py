"""Genome build of a study's files, by the contig lengths in their headers.

Only whole human chromosomes count, each of which has its own length in every build; a header
without lengths, and PLINK 1 files, say nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..cohort.sources import expand_sources
from ..io.errors import UserError
from ..io.formats import read_contig_lengths, read_contigs
from ..io.sites import canonical_contig
from .configuration import CONFIG_PATH
from .sheets import Study

#: Lengths of chromosomes 1 to 22 in each build that `qc.build` knows.
LENGTHS = {
    "hg18": (
        *(247249719, 242951149, 199501827, 191273063, 180857866, 170899992, 158821424, 146274826),
        *(140273252, 135374737, 134452384, 132349534, 114142980, 106368585, 100338915, 88827254),
        *(78774742, 76117153, 63811651, 62435964, 46944323, 49691432),
    ),
    "hg19": (
        *(249250621, 243199373, 198022430, 191154276, 180915260, 171115067, 159138663, 146364022),
        *(141213431, 135534747, 135006516, 133851895, 115169878, 107349540, 102531392, 90354753),
        *(81195210, 78077248, 59128983, 63025520, 48129895, 51304566),
    ),
    "hg38": (
        *(248956422, 242193529, 198295559, 190214555, 181538259, 170805979, 159345973, 145138636),
        *(138394717, 133797422, 135086622, 133275309, 114364328, 107043718, 101991189, 90338345),
        *(83257441, 80373285, 58617616, 64444167, 46709983, 50818468),
    ),
    "chm13": (
        *(248387328, 242696752, 201105948, 193574945, 182045439, 172126628, 160567428, 146259331),
        *(150617247, 134758134, 135127769, 133324548, 113566686, 101161492, 99753195, 96330374),
        *(84276897, 80542538, 61707364, 66210255, 45090682, 51324926),
    ),
}


def build_of(lengths: dict[str, int]) -> tuple[str, str] | None:
    """Build whose chromosomes have these lengths, and a contig that says so; None if none has.

    Parameters
    ----------
    lengths : dict
        Contigs of a header, by name.
    """
    said: dict[str, str] = {}
    for contig, length in lengths.items():
        name = canonical_contig(contig)
        if name.isdigit() and 1 <= int(name) <= 22:
            for build, known in LENGTHS.items():
                if known[int(name) - 1] == length:
                    said.setdefault(build, contig)
    return next(iter(said.items())) if len(said) == 1 else None


def check_builds(study: Study, build: str, folder: Path = Path()) -> list[str]:
    """Compare the builds of the cohorts' first files with each other and with `qc.build`.

    Returns
    -------
    list of str
        A sentence if cohorts are of different builds.

    Raises
    ------
    UserError
        `qc.build` names one build and a header another.
    """
    found: dict[str, str] = {}
    for cohort in study.order:
        source = _first_file(study, cohort, folder)
        lengths = read_contig_lengths(source)
        if (told := build_of(lengths)) is None:
            continue
        own, contig = told
        if build in LENGTHS and own != build:
            raise UserError(
                f"{CONFIG_PATH}: qc.build is '{build}', but {source} gives contig {contig} the "
                f"length {lengths[contig]}, which it has in {own}; set qc.build to {own}, or to "
                "any if the header is out of date."
            )
        found.setdefault(own, cohort)
    if len(found) < 2:
        return []
    places = " and ".join(f"{own} (cohort {cohort})" for own, cohort in found.items())
    return [
        f"Headers give contigs the lengths of different genome builds, {places}: sites are matched "
        "by position, so few will be shared unless the positions were lifted over."
    ]


def require_build(source: Path, study: Study, build: str, folder: Path = Path()) -> None:
    """Refuse a further file whose header is of another build than `qc.build` or the cohorts'.

    Raises
    ------
    UserError
        The builds differ.
    """
    told = build_of(read_contig_lengths(source))
    known = {build} if build in LENGTHS else set()
    if told and not known:
        for cohort in study.order:
            with contextlib.suppress(UserError, OSError):  # a cohort's own file may be gone
                lengths = read_contig_lengths(_first_file(study, cohort, folder))
                known |= {found[0]} if (found := build_of(lengths)) else set()
    if told and known and told[0] not in known:
        raise UserError(
            f"{source} gives contig {told[1]} the length that it has in {told[0]}, but the study "
            f"is of {' and '.join(sorted(known))}; lift the file over, or give one of that build."
        )


def contigs_of(study: Study, folder: Path = Path()) -> list[str]:
    """Contigs in the headers of the cohorts' first files; PLINK 1 files have no header."""
    found: dict[str, None] = {}
    for cohort in study.order:
        found |= dict.fromkeys(read_contigs(_first_file(study, cohort, folder)))
    return list(found)


def _first_file(study: Study, cohort: str, folder: Path) -> Path:
    return folder / expand_sources(study.cohorts.genotypes[cohort], folder)[0]
