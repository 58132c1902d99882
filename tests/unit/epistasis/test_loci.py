"""Candidates of a scan become loci and a list that no site fills."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from popdesic.epistasis.loci import describe_loci, list_hits, site_correlations
from popdesic.epistasis.options import LOCUS_BP
from popdesic.epistasis.reorder import reorder_sites
from popdesic.epistasis.scan_data import Hits


def places(genotypes, chrom, pos, n_controls=40):
    """words and sites as the scan reads them; `at[row]`: where a row of `genotypes` is."""
    words, sites, _ = reorder_sites(lambda part: genotypes[part], np.arange(len(chrom)), n_controls)
    sites = sites.join(pd.DataFrame({"chrom": chrom, "pos": pos}), on="rank")
    return words, sites, np.argsort(sites["rank"].to_numpy())


def hits_of(at, rows):
    return Hits(np.arange(len(rows)) - 99, np.sort(at[np.array(rows)], axis=1).astype(np.int32))


def rows_of(hits, at):
    back = np.argsort(at)
    return [tuple(sorted(back[row].tolist())) for row in hits.sites]


def test_members_are_near_the_lead_or_correlated_with_it_on_its_chromosome():
    rng = np.random.default_rng(1)
    genotypes = rng.binomial(2, 0.4, (8, 90)).astype(np.int8)
    genotypes[2] = np.where(rng.random(90) < 0.9, genotypes[0], genotypes[2])  # far, correlated
    genotypes[6] = genotypes[0]  # the same, but on another chromosome
    far = 50 * LOCUS_BP
    chrom = ["1", "1", "1", "1", "2", "2", "3", "2"]
    pos = [0, LOCUS_BP, far, 2 * far, 7, 7 + LOCUS_BP + 1, 0, 9]
    words, sites, at = places(genotypes, chrom, pos)
    rows = [(0, 4), (4, 1), (2, 4), (3, 4), (0, 5), (6, 4), (2, 7), (0, 2)]
    listing = list_hits(hits_of(at, rows), words, sites, 40, 50, top=99, max_per_site=99)
    assert rows_of(listing.hits, at) == [tuple(sorted(row)) for row in rows]
    assert listing.locus.tolist() == [1, 1, 1, 2, 3, 4, 1, 5]
    first = listing.loci.iloc[0]
    assert first["n_hits"] == first["n_listed"] == 4
    assert [first[c] for c in ("start1", "end1", "start2", "end2")] == [0, far, 7, 9]
    both = np.corrcoef(genotypes[0], genotypes[2])[0, 1] ** 2  # (2, 4) shares site 4 with the lead
    assert first["best_r2"] == pytest.approx(both) and np.isnan(listing.loci.best_r2[1])
    assert listing.loci["rank"].tolist() == [1, 4, 5, 6, 8]


def test_triples_match_their_sites_in_any_order():
    genotypes = np.random.default_rng(2).binomial(2, 0.4, (6, 90)).astype(np.int8)
    words, sites, at = places(genotypes, ["1", "1", "2", "2", "3", "3"], [1, 2, 1, 2, 1, 10**9])
    rows = [(0, 2, 4), (3, 1, 4), (0, 1, 4), (0, 2, 5)]
    listing = list_hits(hits_of(at, rows), words, sites, 40, 50, top=99, max_per_site=99)
    assert listing.locus.tolist() == [1, 1, 2, 3]


def test_no_site_fills_the_list_but_all_candidates_count():
    genotypes = np.random.default_rng(3).binomial(2, 0.4, (10, 90)).astype(np.int8)
    words, sites, at = places(genotypes, ["1"] * 9 + ["2"], np.r_[np.arange(9) * 10**7, 5])
    rows = [(9, k) for k in range(8)] + [(0, 1), (2, 8)]
    listing = list_hits(hits_of(at, rows), words, sites, 40, 50, top=5, max_per_site=3)
    assert rows_of(listing.hits, at) == [(0, 9), (1, 9), (2, 9), (0, 1), (2, 8)]
    assert listing.hits.cost.tolist() == [-99, -98, -97, -91, -90]
    assert listing.locus.tolist() == [1, 2, 3, 4, 5] and len(listing.loci) == 5
    short = list_hits(hits_of(at, rows), words, sites, 40, 50, top=2, max_per_site=3)
    assert rows_of(short.hits, at) == [(0, 9), (1, 9)]
    # Not listed, but counted: two more pairs of the first locus.
    sites["pos"] = 0
    listing = list_hits(hits_of(at, rows[:8]), words, sites, 40, 50, top=5, max_per_site=3)
    assert listing.loci[["n_hits", "n_listed"]].to_numpy().tolist() == [[8, 3]]


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_correlations_are_those_of_numpy(missing):
    rng = np.random.default_rng(4)
    genotypes = rng.binomial(2, rng.uniform(0.1, 0.9, (7, 1)), (7, 130)).astype(np.int8)
    genotypes[3] = genotypes[1]
    genotypes[rng.random(genotypes.shape) < missing] = -1
    words, sites, at = places(genotypes, ["1"] * 7, range(7), 70)
    from popdesic.epistasis.scores import make_scan_data

    data = make_scan_data(words, sites, 70, 60, "k2")
    found = site_correlations(data, sites, int(at[1]), at)
    for k in range(7):
        both = (genotypes[1] >= 0) & (genotypes[k] >= 0)
        want = np.corrcoef(genotypes[1, both], genotypes[k, both])[0, 1] ** 2
        assert found[k] == pytest.approx(want)


def test_the_table_of_loci_shows_their_leads():
    genotypes = np.random.default_rng(5).binomial(2, 0.4, (4, 90)).astype(np.int8)
    words, sites, at = places(genotypes, ["1", "2", "3", "4"], [1, 2, 3, 4])
    listing = list_hits(hits_of(at, [(0, 1), (2, 3)]), words, sites, 40, 50, top=9, max_per_site=9)
    table = pd.DataFrame({"chrom1": ["1", "3"], "pos1": [1, 3], "lr_p": [1e-9, 0.5], "main1": 0})
    found = describe_loci(listing, table, 2)
    assert found[["locus", "rank", "chrom1", "lr_p"]].to_numpy().tolist() == [
        [1, 1, "1", 1e-9],
        [2, 2, "3", 0.5],
    ]
    none = Hits(np.zeros(0, np.int64), np.zeros((0, 2), np.int32))
    listing = list_hits(none, words, sites, 40, 50, top=9, max_per_site=9)
    assert len(describe_loci(listing, table.iloc[:0], 2)) == len(listing.locus) == 0
