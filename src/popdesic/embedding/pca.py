"""PCA of genotypes, with axes defined by the founders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from ..cohort.panel import load_panel
from ..cohort.samples import describe_samples
from ..engine.threads import run_tasks
from ..io.bed import open_bed, read_fam
from ..io.errors import UserError
from ..io.genotypes import MISSING, unpack_bed
from ..io.sites import chunks
from ..io.tables import read_table, write_npy
from .eigen import leading_eigenpairs
from .tables import write_embedding, write_statistics

#: Sites of one pass over the genotypes.
CHUNK_SITES = 2_048
#: Samples per side of one block of the products.
BLOCK_SAMPLES = 512


def standardized_products(
    prefixes: list[Path], af: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """`products_of` for the genotypes of cohorts on the panel, read chunk by chunk.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' .bed files on the panel, in sample order.
    """
    beds = [open_bed(prefix) for prefix in prefixes]
    sizes = [len(read_fam(prefix)) for prefix in prefixes]

    def read(first: int, last: int) -> np.ndarray:
        parts = [
            unpack_bed(np.ascontiguousarray(bed[first:last]), size)
            for bed, size in zip(beds, sizes, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    return products_of(read, sizes, af, threads)


def products_of(
    read: Callable[[int, int], np.ndarray], sizes: list[int], af: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of products of standardised genotypes over all samples.

    A genotype g at a site with ALT frequency p is standardised to (g - 2p) / sqrt(2p (1 - p))
    (Patterson, Price and Reich 2006); a missing genotype counts 0. Monomorphic sites are skipped.

    Parameters
    ----------
    read : callable
        ``read(first, last)`` gives the genotypes of these sites: int8 (last - first, n), -1 where
        missing.
    sizes : list of int
        Number of samples of each cohort, n in total.
    af : float64 array, (n_sites,)
        ALT frequency in the founders.
    threads : int
        Number of threads; the sums are bit-identical for any number.

    Returns
    -------
    products : float64 array, (n, n)
        Sums over jointly called sites.
    called : float64 array, (n, n)
        Number of those sites.
    """
    n = sum(sizes)
    blocks = sample_blocks(sizes)
    products, called = np.zeros((n, n)), np.zeros((n, n))
    complete_sites = 0.0
    scale = np.sqrt(2 * af * (1 - af))
    polymorphic = scale > 0
    for first, last in chunks(len(af), CHUNK_SITES):
        use = polymorphic[first:last]
        genotypes = read(first, last)[use].astype(np.float64)
        there = genotypes != MISSING
        genotypes -= 2 * af[first:last][use, None]
        genotypes /= scale[first:last][use, None]
        genotypes[~there] = 0.0
        _add_products(products, genotypes, blocks, threads)
        incomplete = ~there.all(axis=1)
        complete_sites += len(there) - incomplete.sum()
        mask = there[incomplete].astype(np.float32)  # counts below 2**24 are exact
        _add_products(called, mask, blocks, threads)
    return _mirrored(products), _mirrored(called) + complete_sites


def sample_blocks(sizes: list[int]) -> list[tuple[int, int]]:
    """Bounds of blocks of at most BLOCK_SAMPLES samples, each within one cohort.

    The shape of a matrix product decides the order of its sums. With blocks within cohorts, the
    products of two cohorts are bit-identical whichever other cohorts are present.
    """
    first, found = 0, []
    for size in sizes:
        found += [(first + a, first + b) for a, b in chunks(size, BLOCK_SAMPLES)]
        first += size
    return found


def _add_products(
    total: np.ndarray, columns: np.ndarray, blocks: list[tuple[int, int]], threads: int
) -> None:
    """Add columns' * columns to the upper triangle of `total`, block by block.

    Each block is one product on one BLAS thread, because the order of BLAS's sums depends on its
    number of threads.
    """

    def work(one: tuple[int, int], other: tuple[int, int]) -> None:
        left, right = columns[:, slice(*one)], columns[:, slice(*other)]
        total[slice(*one), slice(*other)] += left.T @ right

    pairs = [(one, other) for i, one in enumerate(blocks) for other in blocks[i:]]
    with threadpool_limits(1, "blas"):
        run_tasks(work, pairs, threads)


def _mirrored(upper: np.ndarray) -> np.ndarray:
    """The symmetric matrix of which `upper` holds the upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


@threadpool_limits.wrap(limits=1, user_api="blas")  # as in _add_products
def principal_components(
    products: np.ndarray, called: np.ndarray, founders: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """PCA with axes from the founders; all others are projected.

    The relationship matrix G = products / called is decomposed over the founders, G = U L U'. A
    founder's scores are U sqrt(L), equal to `plink2 --pca` up to sign and scale. Any other sample's
    scores are its row of G times U / sqrt(L); for a founder this gives its own scores.

    Returns
    -------
    scores : float64 array, (n, n_components)
        Signs are chosen so that each component's largest absolute founder score is positive.
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
    values, vectors = leading_eigenpairs(among, min(n_components, size - 1))
    positive = values > 1e-9 * values[:1]
    if not positive.any():
        raise UserError(
            f"results/panel/sites.tsv: the {size} founder samples have no component of variation "
            "(PCA needs two that differ); add samples or sites."
        )
    values, vectors = values[positive], vectors[:, positive]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    vectors = vectors * np.sign(largest)
    # Row by row: bit-identical whichever other samples are projected.
    axes = vectors / np.sqrt(values)
    scores = np.stack([row @ axes for row in relationship[:, founders]])
    scores[founders] = vectors * np.sqrt(values)
    return scores, values / np.trace(among)


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
    """PCA of a study: table, full-precision scores (float64 (n, k)), variance explained.

    Parameters
    ----------
    prefixes : list of Path
        Stems of the cohorts' genotypes on the panel, in sample order.
    order : Path
        `distance/samples.tsv`: the samples to keep, in this order.
    founders : set of str
        Names of the cohorts that define the axes.
    unrelated : Path, optional
        `panel/unrelated.tsv`: only its unrelated founders define the axes; other founders are
        projected like newcomers.
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
    return write_statistics(statistics_out, explained, len(samples))
