"""Scans of real genotypes of chromosome 22, in LD, for `bench_epistasis.py --real`.

People are mosaics of real haplotypes (tests/scenes/interactions/real_haplotypes.py), a random part
of them cases. Beside them: the same genotypes without LD, and without what `epistasis.reorder`
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scenes.interactions.real_haplotypes import haplotypes, people

from popdesic.epistasis.reorder import pack_states, reorder_sites, split_classes
from popdesic.epistasis.scan_data import ScanData
from popdesic.epistasis.scores import make_scan_data, score_tables

GROUP = "EUR"


def chromosome(folder: Path, n_samples: int, n_sites: int | None = None) -> np.ndarray:
    """Genotypes of common SNPs of chromosome 22, int8 (n_sites, n_samples), in their order."""
    return people(
        np.random.default_rng(22), haplotypes(folder, GROUP), slice(n_sites), n_samples
    ).astype(np.int8)


def variants(genotypes: np.ndarray, n_controls: int) -> Iterator[tuple[str, ScanData]]:
    """Scan data by K2, with what distinguishes them; the first ones are those of a study."""
    n_cases = genotypes.shape[1] - n_controls
    yield "real, in LD", ordered(genotypes, n_controls)
    drawn = np.random.default_rng(1).permuted(genotypes, axis=1)
    yield "the same frequencies, no LD", ordered(drawn, n_controls)
    tables = score_tables("k2_excess", n_controls, n_cases)
    sites = np.arange(len(genotypes), dtype=np.int32)
    ranked = ordered(genotypes, n_controls)
    place = np.argsort(ranked.rank)  # back to the panel's order
    yield "real, sites as on the chromosome", ranked.of_sites(place)
    states = np.array([0, 1, 3], np.int8)[genotypes]
    least = np.argsort((states != 3).sum(axis=1), kind="stable")
    for name, rows in (("genotypes 0 and 1 stored", least), ("neither", sites)):
        words = pack_states(states[rows], n_controls)
        classes = split_classes(words, n_controls, n_cases)
        yield f"real, {name}", ScanData(classes, *tables, sites[rows])


def ordered(genotypes: np.ndarray, n_controls: int) -> ScanData:
    """Scan data as a study makes them."""
    words, sites, _ = reorder_sites(
        lambda rows: genotypes[rows], np.arange(len(genotypes)), n_controls
    )
    return make_scan_data(words, sites, n_controls, genotypes.shape[1] - n_controls, "k2_excess")


def many_sites(folder: Path, classes: tuple[int, int], n_sites: int) -> ScanData:
    """Scan data of more sites than there are: those of the chromosome several times.

    Each time the people are shuffled: frequencies and LD are real, and sites of different times are
    unlinked.
    """
    genotypes, rng = chromosome(folder, sum(classes)), np.random.default_rng(1)
    times = range(-(-n_sites // len(genotypes)))
    drawn = [genotypes[:, rng.permutation(sum(classes))] for _ in times]
    return ordered(np.concatenate(drawn)[:n_sites], classes[0])
