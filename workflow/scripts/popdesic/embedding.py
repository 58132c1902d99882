"""Maps of the samples: PCA of genotypes, PCoA and UMAP of geodesics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits

from .backend.threads import run_tasks
from .errors import UserError
from .genotypes import MISSING, unpack_bed
from .panel import load_panel
from .qc import chunks
from .results import read_table, write_npy, write_table
from .sheets import describe_samples
from .store import open_bed, read_fam, write_json

#: Sites of one pass over the genotypes.
CHUNK_SITES = 2_048
#: Samples a side of one block of the products.
BLOCK_SAMPLES = 512


def standardized_products(
    prefixes: list[Path], af: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of products of standardised genotypes over all cohorts' samples.

    A genotype g at a site of ALT frequency p counts (g - 2p) / sqrt(2p (1 - p)) (Patterson, Price
    and Reich 2006), a missing one nothing. Monomorphic sites are left out.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' .bed files on the panel, in sample order.
    af : float64 array, (n_sites,)
        ALT frequency in the founders.
    threads : int
        Threads to use; the sums are the same to the last bit for any number.

    Returns
    -------
    products : float64 array, (n, n)
        Sums over jointly called sites.
    called : float64 array, (n, n)
        Number of those sites.
    """
    beds = [open_bed(prefix) for prefix in prefixes]
    sizes = [len(read_fam(prefix)) for prefix in prefixes]
    n = sum(sizes)
    products, called = np.zeros((n, n)), np.zeros((n, n))
    complete_sites = 0.0
    scale = np.sqrt(2 * af * (1 - af))
    polymorphic = scale > 0
    for first, last in chunks(len(af), CHUNK_SITES):
        use = polymorphic[first:last]
        genotypes = np.concatenate(
            [
                unpack_bed(np.ascontiguousarray(bed[first:last]), size)
                for bed, size in zip(beds, sizes, strict=True)
            ],
            axis=1,
        )[use].astype(np.float64)
        there = genotypes != MISSING
        genotypes -= 2 * af[first:last][use, None]
        genotypes /= scale[first:last][use, None]
        genotypes[~there] = 0.0
        _add_products(products, genotypes, threads)
        incomplete = ~there.all(axis=1)
        complete_sites += len(there) - incomplete.sum()
        mask = there[incomplete].astype(np.float32)  # counts below 2**24 are exact
        _add_products(called, mask, threads)
    return _mirrored(products), _mirrored(called) + complete_sites


def _add_products(total: np.ndarray, columns: np.ndarray, threads: int) -> None:
    """Add columns' * columns to the upper triangle of `total`, block by block.

    Each block is one product on one BLAS thread: BLAS itself would sum in another order for
    another number of threads.
    """

    def work(i: int, j: int) -> None:
        left, right = columns[:, i : i + BLOCK_SAMPLES], columns[:, j : j + BLOCK_SAMPLES]
        total[i : i + BLOCK_SAMPLES, j : j + BLOCK_SAMPLES] += left.T @ right

    starts = range(0, columns.shape[1], BLOCK_SAMPLES)
    with threadpool_limits(1, "blas"):
        run_tasks(work, [(i, j) for i in starts for j in starts if i <= j], threads)


def _mirrored(upper: np.ndarray) -> np.ndarray:
    """The symmetric matrix of which `upper` holds the upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


@threadpool_limits.wrap(limits=1, user_api="blas")  # as in _add_products
def principal_components(
    products: np.ndarray, called: np.ndarray, founders: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """PCA with axes from the founders; all others are projected.

    The relationship matrix G = products / called is decomposed over the founders, G = U L U'. A
    founder's scores are U sqrt(L), as `plink2 --pca` has them up to sign and scale; any other
    sample's are its row of G times U / sqrt(L), which gives a founder its own scores again.

    Returns
    -------
    scores : float64 array, (n, n_components)
        The sign makes the component's largest absolute founder score positive.
    explained : float64 array, (n_components,)
        Share of the founders' total variance.

    Raises
    ------
    UserError
        The founders do not differ at any site.
    """
    relationship = products / np.maximum(called, 1)
    among = relationship[np.ix_(founders, founders)]
    size = len(among)
    k = min(n_components, size - 1)
    if k > 0:
        values, vectors = eigh(among, subset_by_index=[size - k, size - 1])
    else:
        values, vectors = np.zeros(0), among[:, :0]
    values, vectors = values[::-1], vectors[:, ::-1]
    positive = values > 1e-9 * values[:1]
    if not positive.any():
        raise UserError(
            f"results/panel/sites.tsv: the {size} founder samples have no component of variation "
            "(PCA needs two that differ); add samples or sites."
        )
    values, vectors = values[positive], vectors[:, positive]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    vectors = vectors * np.sign(largest)
    scores = relationship[:, founders] @ (vectors / np.sqrt(values))
    scores[founders] = vectors * np.sqrt(values)
    return scores, values / np.trace(among)


def _require_finite(distances: np.ndarray) -> None:
    if not np.isfinite(distances).all():
        raise UserError(
            "results/geodesic: some pairs have no finite geodesic, so they have no common map; "
            "set distance.on_uncomparable to drop."
        )


@threadpool_limits.wrap(limits=1, user_api="blas")  # as in _add_products
def principal_coordinates(distances: np.ndarray, n_components: int):
    """Classical scaling (PCoA) of a distance matrix.

    Returns
    -------
    coordinates : float64 array, (n, n_components)
    explained : float64 array, (n_components,)
        Share of the sum of positive eigenvalues.

    Raises
    ------
    UserError
        A distance is infinite.
    """
    _require_finite(distances)
    centred = distances**2
    centred -= centred.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    centred *= -0.5
    n = len(centred)
    k = min(n_components, n - 1)
    values, vectors = eigh(centred)
    total = values[values > 0].sum()
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    values = np.maximum(values, 0.0)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
    return vectors * np.sign(largest) * np.sqrt(values), values / (total or 1.0)


def umap_coordinates(
    distances: np.ndarray, *, neighbors: int, min_dist: float, seed: int
) -> np.ndarray:
    """A UMAP map (McInnes et al. 2018) from precomputed distances, by umap-learn.

    Distances are divided by the median of those above zero, which changes no neighbourhood but
    keeps float32 inside umap-learn from underflow at large alpha. One thread, seeded, so that a
    rerun gives the same.

    Returns
    -------
    float64 array, (n, 2)

    Raises
    ------
    UserError
        A distance is infinite, or there are fewer than five samples.
    """
    _require_finite(distances)
    if len(distances) < 5:
        raise UserError(
            f"embedding: UMAP needs at least 5 samples, this study has {len(distances)}; "
            "add samples or read the PCA instead."
        )
    import umap  # its own compilation takes seconds: only who needs it pays

    n_neighbors = min(neighbors, len(distances) - 1)
    positive = distances[distances > 0]
    scaled = distances / (np.median(positive) if positive.size else 1.0)
    model = umap.UMAP(
        n_neighbors=n_neighbors,
        min_dist=min_dist,
        metric="precomputed",
        random_state=seed,
        n_jobs=1,
        # Spectral initialisation asks for more eigenvectors than a tiny graph has.
        init="spectral" if len(distances) > 50 else "random",
    )
    return model.fit_transform(scaled.astype(np.float32)).astype(np.float64)


def compute_pca(
    prefixes: list[Path],
    panel: Path,
    order: Path,
    sheet: Path,
    *,
    founders: set[str],
    unrelated: Path | None = None,
    components: int,
    table_out: Path,
    scores_out: Path,
    statistics_out: Path,
    threads: int = 1,
) -> dict:
    """PCA of a study: table, scores in full precision (float64 (n, k)), variance explained.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    order : Path
        `distance/samples.tsv`: the samples to keep, in this order.
    founders : set of str
        Names of the cohorts that define the axes.
    unrelated : Path, optional
        `panel/unrelated.tsv`: of the founders, only its unrelated samples define the axes; the
        relatives are projected like newcomers.
    """
    sites, _ = load_panel(panel)
    products, called = standardized_products(prefixes, sites.af.to_numpy(), threads)
    everyone = [name for p in prefixes for name in read_fam(p)["sample"]]
    samples = describe_samples(order, sheet)
    row = {name: i for i, name in enumerate(everyone)}
    kept = np.array([row[name] for name in samples["sample"]])
    axes = samples.cohort.isin(founders).to_numpy()
    if unrelated is not None:
        table = read_table(unrelated)
        kept_apart = samples["sample"].isin(table["sample"][table.unrelated == "yes"])
        axes = axes & kept_apart.to_numpy()
    scores, explained = principal_components(
        products[np.ix_(kept, kept)], called[np.ix_(kept, kept)], axes, components
    )
    write_npy(scores_out, scores)
    write_embedding(table_out, samples, scores, "PC")
    return _write_statistics(statistics_out, explained, len(samples))


def compute_pcoa(
    lengths: Path,
    order: Path,
    sheet: Path,
    *,
    components: int,
    table_out: Path,
    statistics_out: Path,
) -> dict:
    """PCoA of one geodesic distance: table and variance explained."""
    coordinates, explained = principal_coordinates(np.load(lengths).astype(np.float64), components)
    write_embedding(table_out, describe_samples(order, sheet), coordinates, "PCo")
    return _write_statistics(statistics_out, explained, len(coordinates))


def compute_umap(
    lengths: Path,
    order: Path,
    sheet: Path,
    *,
    neighbors: int,
    min_dist: float,
    seed: int,
    out: Path,
) -> None:
    """UMAP of one geodesic distance: table."""
    coordinates = umap_coordinates(
        np.load(lengths).astype(np.float64), neighbors=neighbors, min_dist=min_dist, seed=seed
    )
    write_embedding(out, describe_samples(order, sheet), coordinates, "UMAP")


def _write_statistics(path: Path, explained: np.ndarray, n_samples: int) -> dict:
    about = {"samples": n_samples, "variance_explained": [round(float(x), 8) for x in explained]}
    write_json(path, about)
    return about


def write_embedding(
    path: Path, samples: pd.DataFrame, coordinates: np.ndarray, prefix: str
) -> None:
    """One row a sample: name, coordinates `{prefix}1`, …, then the sheet's columns."""
    table = pd.DataFrame(
        coordinates, columns=[f"{prefix}{i + 1}" for i in range(coordinates.shape[1])]
    )
    described = samples.reset_index(drop=True)
    write_table(
        path, pd.concat([described[["sample"]], table, described.drop(columns="sample")], axis=1)
    )
