"""Genome build of a study's files, by the contig lengths in their headers (`cohort.contigs`).

A header without lengths, and PLINK 1 files, say nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ..cohort.contigs import HUMAN, build_of, species_of
from ..cohort.sources import expand_sources
from ..core.errors import UserError
from ..io.formats import header_contigs, read_contig_lengths
from .configuration import CONFIG_PATH
from .sheets import Study


def check_builds(study: Study, build: str, folder: Path = Path()) -> None:
    """Compare the builds of the cohorts' files with each other and with `qc.build`.

    Raises
    ------
    UserError
        `qc.build` names one build and a header another, or two headers are of different builds.
        Nothing is compared if `qc.build` is ``none``.
    """
    if build == "none":
        return
    found: dict[str, tuple[Path, str]] = {}
    for source, cohort in _files(study, folder):
        lengths = read_contig_lengths(source)
        if (told := build_of(lengths)) is None:
            continue
        own, contig = told
        if build in HUMAN and own != build:
            raise UserError(
                f"{CONFIG_PATH}: qc.build is '{build}', but {source} gives contig {contig} the "
                f"length {lengths[contig]}, which it has in {named(own)}; set qc.build to "
                f"{own if own in HUMAN else 'any'}, or to none if the header is out of date, which "
                "compares no lengths."
            )
        found.setdefault(own, (source, cohort))
    if len(found) > 1:
        alone = len({cohort for _, cohort in found.values()}) == len(found)
        places = " and ".join(
            f"{named(own)} ({f'cohort {cohort}' if alone else source})"
            for own, (source, cohort) in found.items()
        )
        raise UserError(
            f"Headers give contigs the lengths of different genome builds, {places}, and sites are "
            "matched by position; lift one over to the build of the other, or correct its "
            "header (bcftools reheader --fai) if that was done, or set qc.build to none, which "
            "compares no lengths."
        )


def named(build: str) -> str:
    """A build with its species, unless that is human."""
    return build if build in HUMAN else f"{build} ({species_of(build)})"


def require_build(source: Path, study: Study, build: str, folder: Path = Path()) -> None:
    """Refuse a further file whose header is of another build than `qc.build` or the cohorts'.

    Raises
    ------
    UserError
        The builds differ.
    """
    if build == "none":
        return
    told = build_of(read_contig_lengths(source))
    known = {build} if build in HUMAN else set()
    if told and not known:
        for cohort in study.order:
            with contextlib.suppress(UserError, OSError):  # a cohort's own files may be gone
                for path in _files_of(study, cohort, folder):
                    found = build_of(read_contig_lengths(path))
                    known |= {found[0]} if found else set()
    if told and known and told[0] not in known:
        raise UserError(
            f"{source} gives contig {told[1]} the length that it has in "
            f"{named(told[0])}, but the study is of {' and '.join(map(named, sorted(known)))}; "
            "lift the file over, or give one of that build."
        )


def contigs_of(study: Study, folder: Path = Path()) -> dict[str, int]:
    """Contigs in the headers of the cohorts' files, with their lengths; 0: not given.

    PLINK 1 files have no header.
    """
    return header_contigs(source for source, _ in _files(study, folder))


def _files(study: Study, folder: Path) -> list[tuple[Path, str]]:
    """Files of all cohorts, each with its cohort."""
    return [(path, cohort) for cohort in study.order for path in _files_of(study, cohort, folder)]


def _files_of(study: Study, cohort: str, folder: Path) -> list[Path]:
    return [folder / one for one in expand_sources(study.cohorts.genotypes[cohort], folder)]
