"""Planes of scans from .bed rows, block by block: equal to an obvious version, in little memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from support.study import Cohort, make_sites, write_raw

from popdesic.epistasis import stored_planes
from popdesic.epistasis.reorder import build_onehot, reorder_sites
from popdesic.io.bed import ChosenRows, ChosenSamples, forget_pages, open_bed


def planes_obviously(genotypes: np.ndarray, n_controls: int, most: float = 0.5):
    """Planes as bool (n_sites, n_states, n_samples), and rows and labels, one sample at a time."""
    sites = []
    for row, site in enumerate(genotypes.tolist()):
        counts = [site.count(g) for g in (0, 1, 2)]
        if max(counts) == sum(counts):
            continue  # no genotype, or one alone
        labels = sorted((0, 1, 2), key=counts.__getitem__)
        lacking = site.count(-1)
        stored = lacking + counts[labels[0]] + counts[labels[1]]
        sites.append((lacking == 0, stored, row, *labels, lacking))
    if sum(not site[0] for site in sites) > most * len(sites):
        sites = [(False, *site[1:]) for site in sites]
    sites.sort()
    stored = [site[3:5] for site in sites]
    n_states = 3 if any(site[6] for site in sites) else 2
    planes = np.zeros((len(sites), n_states, genotypes.shape[1]), bool)
    for k, (site, labels) in enumerate(zip(sites, stored, strict=True)):
        for state, label in enumerate([*labels, -1][:n_states]):
            planes[k, state] = genotypes[site[2]] == label
    return planes, [site[2:] for site in sites]


def packed(planes: np.ndarray, n_controls: int) -> np.ndarray:
    """Words of controls, then of cases."""
    parts = []
    for part in (planes[..., :n_controls], planes[..., n_controls:]):
        part = np.pad(part, ((0, 0), (0, 0), (0, -part.shape[2] % 64)))
        parts.append(np.packbits(part, axis=2, bitorder="little").view(np.uint64))
    return np.concatenate(parts, axis=2)


def drawn(rng, n_sites: int, n: int, missing: float) -> np.ndarray:
    genotypes = rng.binomial(2, rng.uniform(0, 1, (n_sites, 1)), (n_sites, n)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    genotypes[:, rng.random(n) < 0.05] = -1
    return genotypes


@pytest.fixture(params=[(1 << 28, 1 << 23), (3000, 100)], ids=["whole", "in pieces"])
def pieces(request, monkeypatch):
    monkeypatch.setattr(stored_planes, "BLOCK_BYTES", request.param[0])
    monkeypatch.setattr(stored_planes, "READ_BYTES", request.param[1])


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("sizes", [(1, 1), (0, 5), (31, 33), (63, 1), (64, 65), (129, 190)])
@pytest.mark.parametrize("missing", [0.0, 0.001, 0.3])
def test_planes_of_arrays_are_the_obvious_ones(pieces, n_sites, sizes, missing):
    rng = np.random.default_rng([n_sites, *sizes, int(1000 * missing)])
    genotypes = drawn(rng, n_sites, sum(sizes), missing)
    words, sites, counts = reorder_sites(lambda part: genotypes[part], np.arange(n_sites), sizes[0])
    planes, want = planes_obviously(genotypes, sizes[0])
    assert list(sites.itertuples(index=False, name=None)) == want
    np.testing.assert_array_equal(words, packed(planes, sizes[0]))
    assert counts["no_called_genotype"] + counts["monomorphic"] == n_sites - len(want)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", [(1,), (5, 3), (64, 63, 65), (1, 130, 2)])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_files_of_cohorts_are_the_obvious_ones(tmp_path, pieces, threads, sizes, missing):
    """Byte for byte as numpy writes the array; some people have no phenotype."""
    rng = np.random.default_rng([*sizes, int(100 * missing)])
    n, n_sites = sum(sizes), 65
    genotypes, classes = drawn(rng, n_sites, n, missing), rng.integers(-1, 2, n)
    names = [f"s{k}" for k in range(n)]
    if n == 1:
        classes[:] = 0
    else:
        classes[[0, -1]] = 1, 0
    prefixes, start = [], 0
    for number, size in enumerate(sizes):
        part = slice(start, start + size)
        cohort = Cohort(f"c{number}", names[part], make_sites(n_sites), genotypes[:, part])
        prefixes.append(write_raw(tmp_path / f"c{number}", cohort))
        start += size
    sheet = pd.DataFrame({"sample": names, "cohort": "c", "phenotype": classes.astype(str)})
    shuffled = rng.permutation(n)  # the sheet's order is not that of the files
    out = {name: tmp_path / name for name in ("onehot.npy", "sites.tsv", "samples.tsv")}
    build_onehot(
        prefixes,
        sheet.iloc[shuffled],
        classes[shuffled],
        quantitative=n == 1,
        strata="none",
        restrict=None,
        least=2,
        onehot_out=out["onehot.npy"],
        sites_out=out["sites.tsv"],
        samples_out=out["samples.tsv"],
        threads=threads,
    )
    order = np.concatenate([np.flatnonzero(classes == 0), np.flatnonzero(classes == 1)])
    n_controls = int((classes == 0).sum())
    planes, want = planes_obviously(genotypes[:, order], n_controls)
    np.save(tmp_path / "want.npy", packed(planes, n_controls))
    assert out["onehot.npy"].read_bytes() == (tmp_path / "want.npy").read_bytes()
    table = pd.read_csv(out["sites.tsv"], sep="\t")
    columns = ["rank", "state0", "state1", "other", "n_missing"]
    assert list(table[columns].itertuples(index=False, name=None)) == want
    listed = pd.read_csv(out["samples.tsv"], sep="\t")["sample"].tolist()
    assert listed == [names[k] for k in order]


def test_pages_of_files_are_given_back(tmp_path):
    """Rows read as before, whichever way a .bed is opened."""
    genotypes = drawn(np.random.default_rng(1), 20, 30, 0.1)
    prefix = write_raw(
        tmp_path / "c", Cohort("c", [f"s{k}" for k in range(30)], make_sites(20), genotypes)
    )
    bed = open_bed(prefix)
    chosen = ChosenRows(bed, np.array([3, 7, 8]))
    for rows in (bed, bed[4:9], chosen, ChosenSamples(chosen, np.arange(2, 20)), np.array(bed)):
        before = np.array(rows[:])
        forget_pages(rows)
        np.testing.assert_array_equal(rows[:], before)


#: Builds planes of a study in this process and prints the MB that it held above its start.
PEAK = """
import sys
from pathlib import Path
import numpy as np
import pandas as pd
from popdesic.epistasis import onehot_cpu, stored_planes
from popdesic.epistasis.reorder import build_onehot
stored_planes.BLOCK_BYTES, stored_planes.READ_BYTES = 1 << 22, 1 << 19
folder, n = Path(sys.argv[1]), int(sys.argv[2])
def build(name):
    names = [f"s{k}" for k in range(n)]
    sheet = pd.DataFrame({"sample": names, "cohort": "c", "phenotype": "0"})
    build_onehot([folder / name], sheet, np.arange(n) % 2, strata="none", restrict=None, least=2,
        onehot_out=folder / "out/onehot.npy", sites_out=folder / "out/sites.tsv",
        samples_out=folder / "out/samples.tsv", threads=2)
def held(name):
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) / 1e3
build("few")  # imports and compiles
before = held("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
build("many")
print(held("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_memory_does_not_grow_with_sites(tmp_path):
    """64 MB of .bed and of planes, of which the version with a byte a genotype held 550 MB."""
    n, rng = 16_000, np.random.default_rng(1)
    row = rng.integers(0, 256, (64, n // 4), np.uint8)
    for name, n_sites in (("few", 100), ("many", 16_384)):
        with open(tmp_path / f"{name}.bed", "wb") as bed:
            bed.write(b"\x6c\x1b\x01")
            for first in range(0, n_sites, 64):
                bed.write(np.roll(row[: n_sites - first], first, axis=1).tobytes())
        lines = (f"1\ts{k}\t0\t{k + 1}\tA\tG\n" for k in range(n_sites))
        (tmp_path / f"{name}.bim").write_text("".join(lines))
        (tmp_path / f"{name}.fam").write_text("".join(f"0 s{k} 0 0 0 -9\n" for k in range(n)))
    command = [sys.executable, "-c", PEAK, str(tmp_path), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 3 blocks of planes, pages of rows, and tables of sites and people
    assert float(done.stdout) < 48, done.stdout
