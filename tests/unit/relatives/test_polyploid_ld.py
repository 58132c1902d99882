"""Tables of LD of polyploids, and of several ploidies: by numpy, from numbers of ALT alleles."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from support.plink_files import write_plink

from popdesic.cohort import dosage_r2
from popdesic.engine.select import cpu_backend
from popdesic.io.bed import read_fam, write_fam
from popdesic.io.layers import layers_each, most_layers, split_layers
from popdesic.relatives import ld_scan
from popdesic.relatives.ld import DECAY_BOUNDS

N_SITES, N = 90, 34
WINDOW, LEAST = 400, 0.1


def draw(ploidy: np.ndarray, seed: int) -> np.ndarray:
    """Sites that are like the one before in most samples, missing calls: int8 (n_sites, n)."""
    rng = np.random.default_rng(seed)
    out = np.empty((N_SITES, len(ploidy)), np.int8)
    for k in range(N_SITES):
        fresh = rng.binomial(ploidy, rng.uniform(0.1, 0.8))
        out[k] = np.where((rng.random(len(ploidy)) < 0.8) & (k % 9 > 0), out[k - 1], fresh)
    return np.where(rng.random(out.shape) < 0.05, -1, out).astype(np.int8)


def write_layers(prefix, genotypes, ploidy, kinds, names, sites) -> None:
    """The .bed of a cohort of any ploidies, as a study has it."""
    sizes, layers = layers_each(ploidy, kinds), most_layers(kinds)
    sums = np.where(genotypes < 0, -1, genotypes * (2 * sizes // ploidy)).astype(np.int8)
    columns = split_layers(sums, layers, sizes)
    write_plink(prefix, columns, list(names) * layers, sites.chrom, sites.pos)
    signs = np.where(np.arange(layers)[:, None] < sizes, "", "-")
    numbers = np.arange(1, layers + 1)[:, None].astype(str)
    fam = read_fam(prefix).assign(family=np.char.add(signs, numbers).ravel())
    write_fam(prefix, fam)


@pytest.fixture(scope="module", params=[(4,), (3,), (2, 4)], ids=str)
def study(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ld")
    ploidy = np.resize(request.param, N)
    genotypes = draw(ploidy, 5)
    sites = pd.DataFrame({"chrom": np.repeat(["1", "2", "7"], N_SITES // 3)})
    sites["pos"] = np.tile(30 * np.arange(N_SITES // 3) + 11, 3)
    sites = sites.assign(id=[f"site{k}" for k in range(N_SITES)], ref="A", alt="G")
    names = np.array([f"s{k}" for k in range(N)])
    prefixes, parts = [folder / "a", folder / "b"], (slice(0, 20), slice(20, N))
    for prefix, part in zip(prefixes, parts, strict=True):
        given = genotypes[:, part], ploidy[part], request.param, names[part]
        write_layers(prefix, *given, sites)
    with open(folder / "panel.tsv", "w") as file:
        file.write("# panel 0123\n")
        sites.to_csv(file, sep="\t", index=False)
    labels = ["P"] * 15 + ["Q"] * 19
    rows = "".join(f"{name}\tx\t{label}\n" for name, label in zip(names, labels, strict=True))
    (folder / "samples.tsv").write_text("sample\tcohort\tpopulation\n" + rows)
    return SimpleNamespace(**locals())


def run(study, out) -> SimpleNamespace:
    names = ("pairs", "decay", "populations", "region", "kept", "removed")
    paths = {name: out / f"{name}{'.tsv.gz' if name == 'pairs' else '.npz'}" for name in names}
    window, pruning = f"{WINDOW} bp", ["9 sites", 1, 0.3]
    options = ld_scan.LdOptions(window, LEAST, "em", None, "2:1-700", pruning)
    ld_scan.measure_ld(
        *(study.prefixes, [[], []], study.folder / "panel.tsv", None),
        *(study.folder / "samples.tsv", paths, cpu_backend(2), options),
    )
    return SimpleNamespace(**paths)


def true_r2(study, i: int, j: int, who=slice(None)) -> float:
    """Of shares of ALT alleles, over jointly called samples."""
    x, y, k = study.genotypes[i, who], study.genotypes[j, who], study.ploidy[who]
    both = (x >= 0) & (y >= 0)
    x, y = x[both] / k[both], y[both] / k[both]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan
    return float(np.corrcoef(x, y)[0, 1] ** 2)


def test_pairs_decay_and_region_are_those_of_numpy(study, tmp_path):
    out = run(study, tmp_path)
    with gzip.open(out.pairs, "rt") as file:
        assert "squared correlation of shares of ALT alleles" in file.readline()
        table = pd.read_csv(file, sep="\t", keep_default_na=False)
    assert (table.d == "NA").all() and (table.d_prime == "NA").all()
    found = {(one.id_a, one.id_b): one for one in table.itertuples()}
    bins: dict[int, list[float]] = {}
    listed = 0
    for i in range(N_SITES):
        for j in range(i + 1, N_SITES):
            a, b = study.sites.iloc[i], study.sites.iloc[j]
            if a.chrom != b.chrom or b.pos - a.pos > WINDOW:
                continue
            r2 = true_r2(study, i, j)
            if np.isnan(r2):
                continue
            bins.setdefault(int((b.pos - a.pos >= DECAY_BOUNDS).sum()) - 1, []).append(r2)
            if r2 >= LEAST:
                one = found[a.id, b.id]
                assert one.r2 == pytest.approx(r2, rel=1e-5)
                called = (study.genotypes[[i, j]] >= 0).all(axis=0).sum()
                assert (one.called, one.distance) == (called, b.pos - a.pos)
                listed += 1
    assert listed == len(table) > 100
    decay = pd.read_csv(out.decay, sep="\t")
    assert decay.pairs.tolist() == [len(bins[k]) for k in sorted(bins)]
    np.testing.assert_allclose(decay.mean_r2, [np.mean(bins[k]) for k in sorted(bins)], rtol=1e-5)
    with np.load(out.region) as region:
        rows = np.flatnonzero((study.sites.chrom == "2") & (study.sites.pos <= 700))
        assert region["pos"].tolist() == study.sites.pos[rows].tolist()
        expected = [[true_r2(study, i, j) for j in rows] for i in rows]
        np.testing.assert_allclose(region["r2"], expected, atol=1e-6)
    kept, removed = (path.read_text().split() for path in (out.kept, out.removed))
    assert len(kept) + len(removed) == N_SITES and 5 < len(kept) < 80


def test_populations_are_those_of_numpy(study, tmp_path):
    table = pd.read_csv(run(study, tmp_path).populations, sep="\t")
    chrom, pos = study.sites.chrom.to_numpy(), study.sites.pos.to_numpy()
    for name, who in (("P", np.arange(15)), ("Q", np.arange(15, N))):
        own = study.genotypes[:, who]
        called = (own >= 0) @ study.ploidy[who]
        alt = np.maximum(own, 0).sum(axis=1)
        common = np.flatnonzero(np.minimum(alt, called - alt) >= np.maximum(0.05 * called, 1))
        within, apart = [], []
        for i in common:
            for j in common[common > i]:
                near = chrom[i] == chrom[j] and pos[j] - pos[i] <= WINDOW
                if near or chrom[i] != chrom[j]:
                    (within if near else apart).append(true_r2(study, i, j, who))
        within, apart = (np.array(part)[~np.isnan(part)] for part in (within, apart))
        rows = table[table.population == name]
        last, rows = rows[rows.from_bp.isna()].iloc[0], rows[rows.from_bp.notna()]
        assert (rows.pairs.sum(), last.pairs) == (len(within), len(apart))
        total = (rows.pairs * rows.mean_r2).sum()
        assert total == pytest.approx(within.sum(), rel=1e-4)
        assert last.mean_r2 == pytest.approx(apart.mean(), rel=1e-4)


def test_blocks_do_not_change_a_byte(study, tmp_path, monkeypatch):
    files = []
    for part, size in (("whole", 256), ("parts", 7)):
        (tmp_path / part).mkdir()
        monkeypatch.setattr(dosage_r2, "BLOCK_SITES", size)
        monkeypatch.setattr(dosage_r2, "PAIRS_AT_ONCE", size)
        out = run(study, tmp_path / part)
        files.append([path.read_bytes() for path in vars(out).values()])
    assert files[0] == files[1]
