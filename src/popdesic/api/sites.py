"""Comparisons between sites: linkage disequilibrium, scans for main effects and interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..cohort.site_planes import site_planes
from ..core.errors import UserError
from ..engine.select import backend_for
from ..epistasis.evidence import Prior, candidates_of
from ..epistasis.hit_test import hit_test
from ..epistasis.null_model import fit_null
from ..epistasis.options import ASSOCIATION, MAX_R2, kept_combinations
from ..epistasis.partners import partners_of
from ..epistasis.phantoms import mark_cis
from ..epistasis.phenotype import MAX_SAMPLES
from ..epistasis.priority import strength_of
from ..epistasis.relatedness import LEAST_KINSHIP, Relatives
from ..epistasis.reorder import reorder_sites
from ..epistasis.scan import count_tests
from ..epistasis.scan_data import merge_hits
from ..epistasis.scan_sites import scanner
from ..epistasis.scores import SCORES, make_scan_data
from ..epistasis.significance import describe_hits
from ..epistasis.single_sites import CHUNK, SiteTests
from ..io.sites import chunks
from ..relatives.ld import r2_matrix
from .arrays import (
    ArrayLike,
    genotype_array,
    host_array,
    real_number,
    require_choice,
    thread_count,
    to_device_of,
    whole_number,
)
from .responses import known_covariates, number_array, response_kind


def ld_r2(
    genotypes: ArrayLike,
    other: ArrayLike | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
) -> ArrayLike:
    """Squared correlation of ALT allele counts for all pairs of sites, as in `plink1.9 --r2`.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing. A sample counts
        for two sites if both are called. Haplotypes (0 and 1) are accepted as well. LD in one
        population is that of its rows.
    other : array-like, (n_samples, n_other_sites), optional
        Genotypes of the same samples at further sites, such as those of another contig: each site
        of `genotypes` is compared with each of these. By default all pairs within `genotypes`.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` uses a GPU if there is a usable one. Results do not depend on the device.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    float64 array, (n_sites, n_sites) or (n_sites, n_other_sites)
        Symmetric without `other`; NaN if one of the two sites does not vary among the samples that
        count. A CuPy array if a GPU computed it from a CuPy array (which is packed in host memory
        first), else a numpy array.

    Raises
    ------
    ValueError
        An argument is not valid, or `other` has another number of samples.
    RuntimeError
        `device` is ``gpu`` and there is no usable GPU.

    Examples
    --------
    >>> import popdesic
    >>> genotypes = [[0, 0, 2], [1, 1, 0], [2, 2, 1], [0, 1, 2]]
    >>> popdesic.ld_r2(genotypes, device="cpu").round(3)
    array([[1.   , 0.727, 0.405],
           [0.727, 1.   , 0.182],
           [0.405, 0.182, 1.   ]])
    >>> popdesic.ld_r2(genotypes, [[0], [1], [2], [1]], device="cpu").round(3)
    array([[0.727],
           [1.   ],
           [0.182]])
    """
    threads = thread_count(threads)
    arrays = [genotype_array(genotypes)]
    if other is not None:
        arrays.append(genotype_array(other))
        if len(arrays[1]) != len(arrays[0]):
            raise ValueError(
                f"other has {len(arrays[1])} samples, but genotypes have {len(arrays[0])}; give "
                "both for the same samples in the same order."
            )
    backend = backend_for(device, threads)
    first, *further = (site_planes(np.ascontiguousarray(array.T)) for array in arrays)
    return to_device_of(genotypes, r2_matrix(first, backend, *further), backend)


def scan(
    genotypes: ArrayLike,
    phenotype: ArrayLike,
    *,
    order: int = 2,
    score: str = "interaction",
    top: int = 100,
    max_r2: float = MAX_R2,
    covariates: ArrayLike | None = None,
    kinship: ArrayLike | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Search all pairs, triples or quads of sites for interactions in a case-control sample.

    Every combination of polymorphic sites is scored by its contingency table, and the best are
    returned. The best of many scores is low by chance: ``p_interaction`` says how often.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing. A sample counts
        for a combination if all its sites are called.
    phenotype : array-like, (n_samples,)
        1 case, 0 control. Samples with -1, NaN or a masked entry (unknown) are left out.
    order : {2, 3, 4}
        Pairs, triples or quads, the last of at most 32 767 sites: 40 sites have 91 390 quads,
        1 000 have 4e10. Quads by interaction are scanned on the CPU alone.
    score : {'interaction', 'k2', 'k2_excess', 'mutual_information', 'gini'}
        Lower is better. ``interaction`` is minus half of ``lr_chi2``: what the sites say together
        beyond their own effects (of triples: beyond those of their pairs; of quads: beyond those
        of their triples). The others score
        association, which main effects alone can fill the list with: K2 as published; K2 less its
        mean over all ways to assign the phenotype; the negative mutual information of genotypes
        and phenotype in nats, times the number of samples; or what the genotypes take off the Gini
        impurity of the phenotype, times minus half the number of samples.
    top : int
        Largest number of combinations to return.
    max_r2 : float
        Sites with an r² above this are not combined: sites in LD can look like an interaction
        because of a causal site that is not among them. 1 combines all.
    covariates : array-like, (n_samples, n_columns), optional
        Numbers for which the p-values are adjusted: principal components, age, one column of 0 and
        1 for each population but one. NaN where unknown; such samples are left out of the tests,
        and with a warning columns that are constant or follow from those before them.
        The score and its ranks are not adjusted.
    kinship : array-like, (n_samples, n_samples), optional
        Kinship coefficients (1/4 for parents and children), as from `popdesic.kinship`. The
        p-values allow for pairs related to third degree or closer; without it, samples are taken
        for unrelated.
    device : {'auto', 'cpu', 'gpu'}
        ``auto`` uses a GPU if there is a usable one. Hits do not depend on the device.
    threads : int, optional
        Number of CPU threads; all CPUs by default.

    Returns
    -------
    DataFrame
        Best combination first, ties in the order of the sites. With ``interaction``, best is the
        smallest p by chi-square times ``tests``; else the lowest score:

        - ``rank``, ``score``;
        - ``tests``: what p of the interaction is multiplied by. With ``interaction``, fewer than
          all combinations where the sites have main effects, and up to a ninth more elsewhere;
        - ``p_interaction``: how often a scan of this size has a combination with as strong an
          interaction by chance (p of the combination's likelihood ratio, drawn under the model
          without interaction, times ``tests``, at most 1); ``p_association``: the same for any
          association with the phenotype, main effects included, times all combinations;
        - ``p_conditional``, with ``interaction``, of hits whose ``p_interaction`` is at most 0.05:
          the same by a likelihood-ratio test given up to five sites that explain the phenotype
          best together. Judge by it where it is given: in families and near an untyped causal site,
          one locus can look like an interaction;
        - ``site1``, ``site2`` (``site3``, ``site4``): columns of `genotypes`;
        - ``main1``, …: scores of the single sites (for ``interaction``, their mutual information);
          for triples and quads also ``best_pair`` and ``best_pair_score``, for quads
          ``best_triple`` and ``best_triple_score``;
        - ``interaction_gain``: improvement of the association over the best of these scores;
        - ``alpha``, ``beta``: those of BitEpi (Bayat et al. 2021);
        - ``lr_chi2``, ``lr_df``, ``lr_p``: likelihood-ratio test of the interaction of all sites
          (for pairs that of BOOST, Wan et al. 2010), for one test, by chi-square, without
          covariates;
        - ``controls``, ``cases``: counts of genotype combinations as text, with the last site
          varying fastest.

    Raises
    ------
    ValueError
        An argument is not valid, there are no cases or no controls, or too few sites vary.
    RuntimeError
        `device` is ``gpu`` and there is no usable GPU.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.binomial(2, 0.4, (400, 30))
    >>> risk = np.where((genotypes[:, 4] == 1) ^ (genotypes[:, 17] == 1), 0.8, 0.2)
    >>> hits = popdesic.scan(genotypes, rng.random(400) < risk, top=3, device="cpu")
    >>> hits[["rank", "site1", "site2"]].iloc[0].tolist()
    [1, 4, 17]
    """
    require_choice(order, (2, 3, 4), "order")
    require_choice(score, SCORES, "score")
    order, top = int(order), whole_number(top, "top")
    max_r2, threads = real_number(max_r2, "max_r2", 0, 1), thread_count(threads)
    array = genotype_array(genotypes)
    case = _classes(phenotype, len(array))
    samples = np.concatenate([np.flatnonzero(case == 0), np.flatnonzero(case == 1)])
    n_controls, n_cases = int((case == 0).sum()), int((case == 1).sum())
    if len(samples) > MAX_SAMPLES:
        raise ValueError(
            f"{len(samples)} samples have a phenotype, but a scan takes at most {MAX_SAMPLES}; "
            "leave some out."
        )

    def read(part: np.ndarray) -> np.ndarray:
        return array[np.ix_(samples, part)].T

    words, sites, _ = reorder_sites(read, np.arange(array.shape[1]), n_controls)
    if len(sites) < order:
        raise ValueError(
            f"genotypes have {len(sites)} sites that vary among the {len(samples)} samples with a "
            f"phenotype; a scan of order {order} needs at least {order}."
        )
    design = known_covariates(covariates, case >= 0)
    test = hit_test(
        np.arange(len(samples)) >= n_controls,
        count_tests(len(sites), order),
        design[samples],
        _relatives(kinship, samples, len(array)),
    )
    backend = backend_for(device, threads, scans=True)
    data = make_scan_data(words, sites, n_controls, n_cases, score, partners_of(sites, 0, max_r2))
    hits = scanner(backend, order)(data, range(data.n_sites), kept_combinations(top))
    kept = merge_hits([hits], data.rank, kept_combinations(top))
    prior = None
    if score not in ASSOCIATION:
        used = np.flatnonzero((case >= 0) & np.isfinite(design).all(axis=1))
        chosen = array[np.ix_(used, sites["rank"].to_numpy())]
        tested = _main_effects(
            chosen,
            case[used].astype(float),
            design[used],
            "logistic",
            "none",
            _relatives(kinship, used, len(array)),
        )
        prior = Prior(strength_of(tested), backend, max_r2=max_r2)
    best = candidates_of(
        kept, words, sites, (n_controls, n_cases), prior, tests=test.tests, top=top
    )
    table = describe_hits(
        best.hits,
        words,
        sites.assign(site=sites["rank"]),
        test,
        order=order,
        score=score,
        drawn=np.zeros(0, np.int64),
        tests=best.tests,
        named=("site",),
    )
    if prior is not None and len(table):
        apart = sites.assign(chrom=np.arange(len(sites)), pos=0)  # places are not known
        table = mark_cis(
            table, best.hits, words, apart, n_controls, n_cases, tests=best.tests,
            covariates=design[samples], strength=prior.strength, relatives=test.relatives,
        )  # fmt: skip
        table.insert(4, "p_conditional", table.pop("p_conditional"))
    return table.drop(columns=["p_permutation", "cis"], errors="ignore")


def _relatives(kinship: ArrayLike | None, samples: np.ndarray, n_samples: int) -> Relatives | None:
    """Related pairs among `samples`, rows of the matrix; None if it is not known."""
    if kinship is None:
        return None
    array = host_array(kinship)
    if array.dtype.kind != "f" or array.shape != (n_samples, n_samples):
        raise ValueError(
            f"kinship has the shape {array.shape} and the type {array.dtype}; give "
            f"coefficients for all pairs of the {n_samples} samples."
        )
    wrong = (array > 1) | np.isposinf(array)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(f"kinship[{i}, {j}] is {array[i, j]}; a kinship coefficient is at most 1.")
    array = array[np.ix_(samples, samples)]
    array = np.fmax(array, array.T)  # one triangle of the matrix may be empty
    first, second = np.nonzero(np.triu(array >= LEAST_KINSHIP, 1))  # NaN is not related
    return Relatives(first, second, np.minimum(array[first, second], 0.5).astype(np.float64))


def scan_sites(
    genotypes: ArrayLike,
    phenotype: ArrayLike,
    covariates: ArrayLike | None = None,
    *,
    transform: str = "none",
    kinship: ArrayLike | None = None,
) -> pd.DataFrame:
    """Test every site by itself: what its allele count says about the phenotype.

    Score tests under a model of the phenotype with the covariates alone, logistic for cases and
    controls, linear for numbers; the latter are the exact t and F tests of the regression.

    Parameters
    ----------
    genotypes : array-like, (n_samples, n_sites)
        Number of ALT alleles: 0, 1, 2; -1, NaN or a masked entry where missing, which counts as the
        mean of the others.
    phenotype : array-like, (n_samples,)
        1 case, 0 control; or numbers, of which there are more than two. Samples with NaN or a
        masked entry are left out.
    covariates : array-like, (n_samples, n_columns), optional
        Numbers, for example principal components. Samples with an unknown one are left out. So are
        columns that are constant or follow from those before them, with a warning.
    transform : {'none', 'normal'}
        Of numbers: ``normal`` takes the normal scores of the ranks of their residuals.
    kinship : array-like, (n_samples, n_samples), optional
        Kinship coefficients, as from `popdesic.kinship`: scores vary more among relatives.

    Returns
    -------
    DataFrame
        One row per site: `n`, `af`, `beta`, `se`, `chi2`, `p` of the ALT allele's count, and
        `genotypic_chi2`, `genotypic_df`, `genotypic_p` with all genotypes apart. NaN for a site
        that does not vary.

    Raises
    ------
    ValueError
        An argument is not valid, or the covariates leave nothing to test.

    Examples
    --------
    >>> import numpy as np
    >>> import popdesic
    >>> rng = np.random.default_rng(1)
    >>> genotypes = rng.binomial(2, 0.3, (500, 8))
    >>> height = 170 + 2 * genotypes[:, 3] + rng.normal(0, 5, 500)
    >>> int(popdesic.scan_sites(genotypes, height).p.idxmin())
    3
    """
    require_choice(transform, ("none", "normal"), "transform")
    array = genotype_array(genotypes)
    response = number_array(phenotype, (len(array),), "phenotype")
    design = known_covariates(covariates, np.isfinite(response))
    used = np.isfinite(response) & np.isfinite(design).all(axis=1)
    kind = response_kind(response[used])
    relatives = _relatives(kinship, np.flatnonzero(used), len(array))
    return _main_effects(array[used], response[used], design[used], kind, transform, relatives)


def _main_effects(
    genotypes: np.ndarray,
    response: np.ndarray,
    design: np.ndarray,
    kind: str,
    transform: str,
    relatives: Relatives | None,
) -> pd.DataFrame:
    """Tests of all sites, int8 (n_samples, n_sites), of samples without an unknown value."""
    try:
        null = fit_null(response, design, kind, transform=transform)
    except UserError as error:
        raise ValueError(str(error)) from None
    tests, parts = SiteTests(null, relatives), []
    for first, last in chunks(genotypes.shape[1], max(1, CHUNK // max(len(genotypes), 1))):
        parts.append(tests.test(np.ascontiguousarray(genotypes[:, first:last].T)))
    return pd.concat(parts, ignore_index=True)


def _classes(phenotype: ArrayLike, n_samples: int) -> np.ndarray:
    """Class of each sample: int8 (n_samples,), 0 control, 1 case, -1 unknown."""
    array = host_array(phenotype)
    if array.shape != (n_samples,):
        raise ValueError(
            f"phenotype has the shape {array.shape}; give one value for each of the {n_samples} "
            "samples."
        )
    if array.dtype.kind not in "iubf":
        raise ValueError(f"phenotype is of type {array.dtype}; give 1 (case), 0 (control) or -1.")
    array = np.where(np.isnan(array), -1, array) if array.dtype.kind == "f" else array
    known = np.isin(array, (-1, 0, 1))
    if not known.all():
        k = int(np.argmin(known))
        raise ValueError(
            f"phenotype[{k}] is {array[k]}; give 1 (case), 0 (control), or -1 or NaN if unknown."
        )
    for value, name in ((0, "control"), (1, "case")):
        if not (array == value).any():
            raise ValueError(
                f"phenotype has no {name}; a scan compares cases with controls, so give both."
            )
    return array.astype(np.int8)
