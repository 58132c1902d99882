"""The black coat of 1 814 mice: hits of the scans become a few loci that a reader can name."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from cyvcf2 import VCF

from popdesic.engine.backend_cpu import CpuBackend
from popdesic.epistasis.loci import Listing, list_hits
from popdesic.epistasis.options import MAX_PER_SITE, MAX_R2, MIN_DISTANCE_BP, kept_combinations
from popdesic.epistasis.partners import partners_of
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_sites import scan_pairs, scan_triples
from popdesic.epistasis.scores import make_scan_data

#: Lines of the list.
TOP = 1000


@pytest.fixture(scope="module")
def mice(shared_data):
    """14 sites per chromosome and those at the loci of agouti, Tyrp1 and Tyr; black is a case."""
    folder = shared_data / "mice1814"
    chosen = set((folder / "ref_BitEpi_black_triples_panel.snps.txt").read_text().split())
    file = VCF(str(folder / "hs_mice.vcf.gz"), gts012=True)
    found = [(r.CHROM, r.POS, r.gt_types.astype(np.int8)) for r in file if r.ID in chosen]
    sheet = pd.read_csv(folder / "samples.tsv", sep="\t", dtype=str).set_index("sample_id")
    case = (sheet.phenotype.loc[file.samples] == "1").to_numpy()
    genotypes = np.stack([row[2] for row in found])[:, np.argsort(case, kind="stable")]
    genotypes[genotypes == 3] = -1
    n_cases = int(case.sum())
    sizes = len(case) - n_cases, n_cases
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(len(found)), sizes[0])
    place = pd.DataFrame([row[:2] for row in found], columns=["chrom", "pos"])
    return words, sites.join(place, on="rank"), sizes


def listed(mice, order: int, score: str) -> tuple[Listing, np.ndarray]:
    """The listing of a scan with the default limits, and the sites of what it kept."""
    words, sites, sizes = mice
    partners = partners_of(sites, MIN_DISTANCE_BP, MAX_R2)
    data = make_scan_data(words, sites, *sizes, score, partners)
    backend = CpuBackend(1)
    scan = partial(scan_pairs if order == 2 else scan_triples, backend)
    kept = scan(data, range(data.n_sites), kept_combinations(TOP))
    return list_hits(kept, words, sites, *sizes, top=TOP, max_per_site=MAX_PER_SITE), kept.sites


def chromosomes(mice, members) -> str:
    return " x ".join(sorted(mice[1].chrom.to_numpy()[members], key=lambda c: c.zfill(2)))


@pytest.mark.parametrize(
    ("order", "coat", "n_hits", "ends"),
    [(2, "2 x 4", 9, ((81, 83), (48, 50))), (3, "2 x 4 x 7", 18, ((81, 83), (48, 50), (49, 50)))],
)
def test_black_coat_is_the_first_locus(mice, order, coat, n_hits, ends):
    """agouti x Tyrp1 (x Tyr): the hits that lead by K2 are one locus of a few megabases."""
    listing, kept = listed(mice, order, "k2_excess")
    leads = [chromosomes(mice, listing.hits.sites[rank - 1]) for rank in listing.loci["rank"]]
    assert leads[0] == coat
    locus = listing.loci.iloc[0]
    assert locus["n_hits"] == n_hits and locus["best_r2"] > 0.99
    for side, (low, high) in enumerate(ends, 1):
        assert low < locus[f"start{side}"] / 1e6 <= locus[f"end{side}"] / 1e6 < high
    # Nearly all of the thousand best are the same two or three loci with any further site.
    lines = [chromosomes(mice, members) for members in kept[:TOP]]
    assert lines.count(coat) < 100
    _, times = np.unique(listing.hits.sites, return_counts=True)
    assert times.max() == MAX_PER_SITE < np.bincount(kept[:TOP].ravel()).max() / 10
    if order == 3:
        assert len(listing.hits.cost) <= 40 and len(leads) <= 6
