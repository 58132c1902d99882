"""Segments of identity by descent of real mice: those of one cage share most.

`pytest tests/golden/test_mice_segments.py -s` prints the measured figures. The 1 814 mice descend
from eight strains through some fifty generations; the data state no families, but cages, which
mostly hold siblings. Positions are units of the source's genetic map, a million a centimorgan, so
no map of rates is needed. There are nine sites a centimorgan, so long segments are sought.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import popdesic

pytestmark = pytest.mark.shared

MIN_CM = 40.0
#: Mice of whole cages that take part; all would take 40 CPU seconds.
MOST = 500


def test_mice_of_a_cage_share_long_segments(shared_data):
    vcf = pytest.importorskip("cyvcf2").VCF
    folder = shared_data / "mice1814"
    sheet = pd.read_csv(folder / "samples.tsv", sep="\t", dtype=str).set_index("sample_id")
    sizes = sheet.cage.value_counts().sort_index()
    chosen = sheet.index[sheet.cage.isin(sizes.index[sizes.cumsum() <= MOST])]
    file = vcf(str(folder / "hs_mice.vcf.gz"), samples=chosen.tolist(), gts012=True)
    rows = [(v.CHROM, v.POS, v.gt_types.copy()) for v in file if v.CHROM != "X"]
    contigs, positions, calls = zip(*rows, strict=True)
    genotypes = np.stack(calls, axis=1).astype(np.int8)
    genotypes[genotypes == 3] = -1
    seen = np.where(genotypes < 0, 0, genotypes).mean(axis=0) / 2
    kept = (seen > 0.05) & (seen < 0.95)
    found = popdesic.ibd_segments(
        genotypes[:, kept],
        np.array(positions)[kept],
        np.array(contigs)[kept],
        min_cm=MIN_CM,
        threads=1,
    )
    n = len(chosen)
    total = np.zeros((n, n))
    one = found[found.ibd == 1]
    ends = tuple(one[name].to_numpy(np.int64) for name in ("sample1", "sample2"))
    np.add.at(total, ends, one.cM.to_numpy(np.float64))
    cage = sheet.cage[file.samples].to_numpy()
    pairs = np.array(list(itertools.combinations(range(n), 2)))
    same = cage[pairs[:, 0]] == cage[pairs[:, 1]]
    shared = total[pairs[:, 0], pairs[:, 1]]
    mates, others = np.median(shared[same]), np.median(shared[~same])
    below = np.quantile(shared[~same], 0.95)
    print(
        f"\n{n} mice, {same.sum()} pairs of a cage: they share {mates:.0f} cM in segments of "
        f"{MIN_CM:g} cM (median), other pairs {others:.0f}; {np.mean(shared[same] > below):.3f} of "
        "them share more than nineteen of twenty others"
    )
    assert same.sum() > 400 and mates > 5 * max(others, 1)
    assert np.mean(shared[same] > below) > 0.9
