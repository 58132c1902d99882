"""Studies of people made of real haplotypes of chromosome 22, with one causal site left out.

Source: `kg1_chr22_564` (phased, 1000 Genomes phase 1). A person's two haplotypes are mosaics of
haplotypes of one continental group that switch once a megabase on average, as about 100 generations
of random mating make them: LD at short range is that of the group, and nobody is related.
"""

from __future__ import annotations

import functools
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

#: Groups of at least 150 people, and the smallest minor allele frequency of a site.
GROUPS, LEAST_MAF = ("EUR", "AFR", "EAS"), 0.05
#: Mean length in base pairs of a piece of one real haplotype.
PIECE = 1_000_000


@functools.cache
def haplotypes(folder: Path, group: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions int64 (n_sites,) and ALT alleles int8 (n_sites, n_haplotypes) of common SNPs."""
    source = folder / "kg1_chr22_564"
    sheet = pd.read_csv(source / "samples.tsv", sep="\t").set_index("sample_id")
    pos, rows = [], []
    with gzip.open(source / "kg1_chr22_dev564.vcf.gz", "rt") as lines:
        for line in lines:
            if line.startswith("##"):
                continue
            words = line.rstrip("\n").split("\t")
            if line.startswith("#"):
                member = sheet.loc[words[9:], "superpopulation"].to_numpy() == group
                continue
            if len(words[3]) == len(words[4]) == 1:
                text = "".join(word[:3] for word in words[9:])
                alleles = np.frombuffer(text.encode(), np.uint8).reshape(-1, 3)[member][:, [0, 2]]
                rows.append((alleles.T.ravel() == ord("1")).astype(np.int8))
                pos.append(int(words[1]))
    alleles = np.stack(rows)
    share = alleles.mean(axis=1)
    common = np.minimum(share, 1 - share) >= LEAST_MAF
    return np.array(pos)[common], alleles[common]


def people(
    rng: np.random.Generator, found: tuple[np.ndarray, np.ndarray], sites: slice, n: int
) -> np.ndarray:
    """Genotypes of n people at some sites of `haplotypes`: int8 (n_sites, n)."""
    pos, alleles = (array[sites] for array in found)
    switches = 1 - np.exp(-np.diff(pos, prepend=pos[0]) / PIECE)
    begins = rng.random((len(pos), 2 * n)) < switches[:, None]
    begins[0] = True
    last = np.maximum.accumulate(np.where(begins, np.arange(len(pos))[:, None], 0), axis=0)
    drawn = rng.integers(0, alleles.shape[1], begins.shape)
    copied = np.take_along_axis(alleles, np.take_along_axis(drawn, last, axis=0), axis=1)
    return copied[:, :n] + copied[:, n:]


@dataclass(frozen=True)
class Study:
    """Typed sites and cases: chrom (str) and pos of sites, genotypes (n_sites, n), case (n,)."""

    chrom: np.ndarray
    pos: np.ndarray
    genotypes: np.ndarray
    case: np.ndarray


def untyped_site(
    folder: Path,
    rng: np.random.Generator,
    n: int,
    odds: float,
    *,
    width: int = 2_000_000,
    regions: int = 1,
) -> Study:
    """A study of `regions` unlinked regions; in each, one common site multiplies the odds.

    The causal sites lie near the middle of their regions of `width` base pairs and are not typed;
    `odds` is the odds ratio per allele, additive on the scale of log-odds. Half are cases. `folder`
    holds the real data.
    """
    group = GROUPS[int(rng.integers(len(GROUPS)))]
    found = haplotypes(folder, group)
    pos = found[0]
    logit, chrom, places, typed = np.zeros(n), [], [], []
    for region in range(regions):
        inside = np.flatnonzero((pos > pos[0] + width) & (pos < pos[-1] - width))
        causal = int(rng.choice(inside))
        first, last = np.searchsorted(pos, pos[causal] + np.array([-width, width]) // 2)
        genotypes = people(rng, found, slice(first, last), n)
        logit += np.log(odds) * genotypes[causal - first]
        kept = np.arange(first, last) != causal
        chrom += [str(region + 1)] * int(kept.sum())
        places.append(pos[first:last][kept])
        typed.append(genotypes[kept])
    case = rng.random(n) < 1 / (1 + np.exp(logit.mean() - logit))
    return Study(np.array(chrom), np.concatenate(places), np.concatenate(typed), case)
