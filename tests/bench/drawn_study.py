"""Draw a study with planted structure into PLINK files, in blocks of sites.

Populations split from one ancestral population (Balding and Nichols 1995), each with its own F_ST.
People are spread over cohorts, so that every cohort has people of several populations. Sites come
in pairs that are in linkage disequilibrium. Some people are children of two others, some are there
twice. Only one block of sites a thread is kept in memory, so that 30 000 people x 500 000 sites
take 3.8 GB of disk and 0.1 GB of memory a thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from popdesic.io.genotypes import BED_MAGIC, bed_row_bytes

#: F_ST of each population from the ancestral one.
F_ST = (0.01, 0.02, 0.05, 0.08, 0.12)
#: Shares of people who are children of two people of their population, and who are there twice.
CHILDREN, DUPLICATES = 0.01, 0.002
#: Share of missing genotypes; share of haplotypes on which the second site of a pair equals the
#: first: r squared is its square.
MISSING_SHARE, LINKED = 0.005, 0.7
#: Genotypes of a block, which has its own seed; and those whose random bytes are in memory at a
#: time: what is allocated again and again must be small, or its pages cost more than its numbers.
BLOCK, PIECE = 1 << 24, 1 << 19
CHROMOSOMES, CHROMOSOME_LENGTH = 22, 120_000_000


@dataclass(frozen=True)
class People:
    """Who is drawn; all arrays have length n_samples, in the order of cohorts.

    Attributes
    ----------
    cohort, population : (n_samples) int64
        Numbers of the cohort and of the population.
    children : (n_children, 3) int64
        Places of a child and its two parents.
    duplicates : (n_duplicates, 2) int64
        Places of a copy and its original.
    """

    cohort: np.ndarray
    population: np.ndarray
    children: np.ndarray
    duplicates: np.ndarray

    @property
    def names(self) -> list[str]:
        return [f"s{place:06d}" for place in range(len(self.cohort))]


def draw_people(n_samples: int, n_cohorts: int, rng: np.random.Generator) -> People:
    """Spread people over cohorts of nearly equal size, and choose children and duplicates.

    A child has its parents' population. A copy may lie in another cohort than its original.
    """
    cohort = np.sort(np.arange(n_samples) % n_cohorts)
    population = rng.integers(0, len(F_ST), n_samples)
    n_children, n_copies = (max(1, round(share * n_samples)) for share in (CHILDREN, DUPLICATES))
    chosen = rng.permutation(n_samples)[: 3 * n_children + 2 * n_copies]
    children = chosen[: 3 * n_children].reshape(-1, 3)
    duplicates = chosen[3 * n_children :].reshape(-1, 2)
    population[children[:, 1:]] = population[children[:, :1]]
    population[duplicates[:, 0]] = population[duplicates[:, 1]]
    return People(cohort, population, children, duplicates)


def draw_block(people: People, n_sites: int, seed: Sequence[int]) -> np.ndarray:
    """Draw the genotypes of a block of sites.

    Returns
    -------
    (n_sites, n_samples) uint8
        PLINK's two-bit codes, of which A1 is the allele counted: 0, 2 and 3 for two, one and no
        copies, 1 for missing.
    """
    rng = np.random.default_rng(seed)
    n_samples = len(people.cohort)
    pairs = (n_sites + 1) // 2
    ancestral = rng.uniform(0.05, 0.5, (pairs, 1))
    scale = 1 / np.array(F_ST) - 1
    frequency = rng.beta(ancestral * scale, (1 - ancestral) * scale).repeat(2, axis=0)[:n_sites]
    # An allele is drawn as a byte below a limit, so frequencies are multiples of 1 / 256.
    limit = np.round(256 * frequency).clip(2, 254).astype(np.uint8)

    def pieces(n_rows: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Random bytes of some rows; four rows are whole words of the generator."""
        step = max(4, PIECE // n_samples // 4 * 4)
        for first in range(0, n_rows, step):
            rows = min(step, n_rows - first)
            bytes_ = np.frombuffer(rng.bytes(rows * n_samples), np.uint8)
            yield slice(first, first + rows), bytes_.reshape(rows, n_samples)

    def haplotypes() -> np.ndarray:
        alleles = np.empty((n_sites, n_samples), np.uint8)
        for rows, random in pieces(n_sites):
            np.less(random, limit[rows][:, people.population], out=alleles[rows].view(bool))
        one, second = alleles[0::2], alleles[1::2]
        for rows, linked in pieces(len(second)):
            np.copyto(second[rows], one[rows], where=linked < round(256 * LINKED))
        return alleles

    genotypes = haplotypes()
    genotypes += haplotypes()
    child, *parents = people.children.T
    genotypes[:, child] = sum(_transmitted(genotypes[:, one], rng) for one in parents)
    genotypes[:, people.duplicates[:, 0]] = genotypes[:, people.duplicates[:, 1]]
    codes = 3 - genotypes
    codes -= genotypes >> 1  # 3, 2, 0
    n_missing = rng.binomial(codes.size, MISSING_SHARE)
    codes.reshape(-1)[rng.integers(0, codes.size, n_missing)] = 1
    return codes


def _transmitted(genotypes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The allele that each parent hands on; sites are taken to be unlinked."""
    chance = rng.integers(0, 2, genotypes.shape, np.uint8)
    return (genotypes + chance) // 2


def pack(codes: np.ndarray) -> np.ndarray:
    """Two-bit codes, (n_sites, n_samples), as rows of a .bed file, four samples a byte."""
    packed = np.zeros((len(codes), bed_row_bytes(codes.shape[1])), np.uint8)
    for place in range(4):
        part = codes[:, place::4]
        packed[:, : part.shape[1]] |= part << np.uint8(2 * place)
    return packed


def write_plink(
    people: People,
    n_sites: int,
    prefixes: Sequence[Path],
    whole: Path | None,
    seed: int,
    threads: int,
) -> None:
    """Write the PLINK files of every cohort, and of all people together (for PLINK itself).

    Parameters
    ----------
    people : People
    n_sites : int
    prefixes : sequence of Path
        One a cohort; the suffixes .bed, .bim and .fam are added.
    whole : Path, optional
        Prefix of the files of all people.
    seed : int
        The same seed gives the same files, whatever the number of threads.
    threads : int
        Blocks that are drawn at a time.
    """
    n_samples = len(people.cohort)
    rows = max(2, BLOCK // n_samples // 2 * 2)
    starts = range(0, n_sites, rows)
    ends = np.searchsorted(people.cohort, np.arange(len(prefixes) + 1)).tolist()
    columns = [slice(*bounds) for bounds in pairwise(ends)]
    if whole:
        prefixes, columns = [whole, *prefixes], [slice(None), *columns]
    files = [open(f"{prefix}.bed", "wb") for prefix in prefixes]  # noqa: SIM115

    def block(first: int) -> list[bytes]:
        codes = draw_block(people, min(rows, n_sites - first), [seed, first])
        return [pack(codes[:, column]).tobytes() for column in columns]

    def write(parts: list[bytes]) -> None:
        for file, part in zip(files, parts, strict=True):
            file.write(part)

    try:
        for file in files:
            file.write(BED_MAGIC)
        with ThreadPoolExecutor(threads) as pool:
            under_way: deque[Future[list[bytes]]] = deque()
            for first in starts:
                under_way.append(pool.submit(block, first))
                if len(under_way) > 2 * threads:  # of memory that packed blocks wait in
                    write(under_way.popleft().result())
            for done in under_way:
                write(done.result())
    finally:
        for file in files:
            file.close()
    names = np.array(people.names)
    for prefix, column in zip(prefixes, columns, strict=True):
        _write_sites(Path(f"{prefix}.bim"), n_sites)
        with open(f"{prefix}.fam", "w") as file:
            file.writelines(f"0\t{name}\t0\t0\t0\t-9\n" for name in names[column])


def _write_sites(path: Path, n_sites: int) -> None:
    """Sites evenly spaced on the chromosomes; the alleles of none are complements."""
    on_one = -(-n_sites // CHROMOSOMES)
    step = max(1, CHROMOSOME_LENGTH // on_one)
    with open(path, "w") as file:
        for first in range(0, n_sites, 1 << 16):
            file.writelines(
                f"{site // on_one + 1}\trs{site}\t0\t{(site % on_one + 1) * step}\tG\tA\n"
                for site in range(first, min(n_sites, first + (1 << 16)))
            )


def write_study(
    folder: Path,
    n_samples: int,
    n_sites: int,
    n_cohorts: int,
    *,
    device: str,
    seed: int = 1,
    threads: int = 1,
    together: bool = True,
) -> Path | None:
    """Write a study: `config/`, and PLINK files in `data/`.

    Returns the prefix of the files of all people, which are written if `together`.
    """
    people = draw_people(n_samples, n_cohorts, np.random.default_rng([seed]))
    for name in ("config", "data"):
        (folder / name).mkdir(parents=True)
    cohorts = [f"c{number:02d}" for number in range(n_cohorts)]
    prefixes = [folder / "data" / cohort for cohort in cohorts]
    whole = folder / "data" / "all" if together else None
    write_plink(people, n_sites, prefixes, whole, seed, threads)
    sheet = ["cohort\tgenotypes\tfounder", *(f"{c}\tdata/{c}.bed\tyes" for c in cohorts)]
    (folder / "config/cohorts.tsv").write_text("\n".join(sheet) + "\n")
    rows = ["sample\tcohort\tpopulation"]
    for name, cohort, population in zip(
        people.names, people.cohort, people.population, strict=True
    ):
        rows.append(f"{name}\t{cohorts[cohort]}\tP{population}")
    (folder / "config/samples.tsv").write_text("\n".join(rows) + "\n")
    (folder / "config/config.yaml").write_text(f"device: {device}\n")
    return whole
