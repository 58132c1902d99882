"""Main effects: score tests of every site of a scan under its null model.

For the allele count g of a site, the score is U = g'(y - fitted), with the variance

    V = g'Wg - g'WX (X'WX)^-1 X'Wg,

W the variances of the responses, X the design with its constant. The trend test has chi2 = U^2 / V
(Cochran and Armitage's where there is no covariate); in a linear model it becomes the exact t test
of the regression, t^2 = R (f - 1) / (1 - R), R = chi2 / f the partial R2 and f the null model's
degrees of freedom. The genotypic test has both non-reference genotypes, 2 df. A missing genotype
counts as the mean of the others.

Relatives resemble each other in genotype and, where the phenotype is heritable, in phenotype, so
that U varies more than V says. With G the genotypes that the design leaves over, times the standard
deviations of the residuals, V becomes

    G'G + sum over related pairs (i, j) of 4 h phi_ij G_i G_j,

h and phi as in `relatedness` (Thornton & McPeek 2010, Am J Hum Genet 86:172, for cases and
controls).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..core.tables import write_table
from ..io.sites import chunks
from .null_model import NullModel, read_null_model
from .relatedness import LEAST_EIGENVALUE, Relatives, no_relatives, shared_risk
from .reorder import genotypes_of_planes, read_reordered

#: Genotypes of one chunk of sites (times 8 bytes, in three arrays).
CHUNK = 1 << 23
#: A variance of this size, relative to g'Wg, is that of a site which the design explains.
EXPLAINED = 1e-10
#: Share of all pairs that are related from which on their matrix is not sparse.
DENSE = 0.02
#: Median of the chi-square distribution with one degree of freedom.
MEDIAN = 0.454936423119572


class SiteTests:
    """Score tests under one null model.

    Parameters
    ----------
    null : NullModel
    relatives : Relatives, optional
        Pairs among the people of the model.
    """

    def __init__(self, null: NullModel, relatives: Relatives | None = None):
        self.used = null.used
        related = (relatives or no_relatives()).among(null.used)
        shared = shared_risk(related, null.residuals[null.used])
        self.kin = _correlation(related, shared, int(null.used.sum())) if shared else None
        self.root = np.sqrt(null.weights[null.used])
        # U = (g root)'(raw / root)
        self.score = null.raw_residuals[null.used] / (
            null.variance if null.kind == "linear" else 1.0
        )
        x = np.column_stack([np.ones(int(self.used.sum())), null.design[self.used]])
        if null.kind == "linear":  # so that U and V are in units of the response
            self.root = np.full(len(self.root), 1 / np.sqrt(null.variance))
        self.basis, _ = np.linalg.qr(self.root[:, None] * x)
        self.freedom = len(x) - x.shape[1] if null.kind == "linear" else None

    def test(self, genotypes: np.ndarray) -> pd.DataFrame:
        """Tests of sites.

        Parameters
        ----------
        genotypes : int8 array, (n_sites, n_people)
            ALT counts, -1 missing.

        Returns
        -------
        DataFrame
            One row per site: `n` people with a genotype, `af` of ALT among them; `beta`, `se` of
            one ALT allele (change of the number; log-odds in one step from the null, which is small
            towards zero for strong effects); `chi2`, `p` of the trend; `genotypic_chi2`,
            `genotypic_df`, `genotypic_p`. NaN where the site does not vary given the design.
        """
        from scipy.special import chdtrc

        g = genotypes[:, self.used]
        called = g >= 0
        n = called.sum(axis=1)
        count = np.maximum(n, 1)[:, None]
        columns = []
        for dose in (g, g == 1):
            dose = np.where(called, dose, 0).astype(float)
            mean = dose.sum(axis=1, keepdims=True) / count
            columns.append(np.where(called, dose, mean))
        af = columns[0].mean(axis=1) / 2
        score = np.stack([column @ self.score for column in columns], axis=1)
        weighted = [column * self.root for column in columns]
        held = [column @ self.basis for column in weighted]
        variance = np.empty((len(g), 2, 2))
        for i in range(2):
            for j in range(2):
                variance[:, i, j] = (weighted[i] * weighted[j]).sum(axis=1)
                variance[:, i, j] -= (held[i] * held[j]).sum(axis=1)
        whole = [(column**2).sum(axis=1) for column in weighted]
        u, alone = score[:, 0], variance[:, 0, 0].copy()
        good = (alone > EXPLAINED * whole[0]) & (n > 0)
        alone = np.where(good, alone, 1.0)
        if self.kin is not None:
            rest = [c - h @ self.basis.T for c, h in zip(weighted, held, strict=True)]
            variance = self._among_relatives(rest, variance)
        v = np.where(good, variance[:, 0, 0], 1.0)
        beta = np.where(good, u / alone, np.nan)
        chi2 = np.where(good, u * u / v, np.nan)
        both, df = self._genotypic(u, score[:, 1], variance, good, whole[1])
        p, genotypic_p = chdtrc(1, chi2), chdtrc(df, both)
        se = np.where(good, np.sqrt(v) / alone, np.nan)
        if self.freedom is not None:
            chi2, p, se = self._exact(chi2, 1, beta, se)
            both, genotypic_p, _ = self._exact(both, df, beta, se)
        return pd.DataFrame(
            {
                "n": n,
                "af": np.where(n > 0, af, np.nan),
                "beta": beta,
                "se": se,
                "chi2": chi2,
                "p": p,
                "genotypic_chi2": both,
                "genotypic_df": df,
                "genotypic_p": genotypic_p,
            }
        )

    def _among_relatives(self, rest: list[np.ndarray], variance: np.ndarray) -> np.ndarray:
        """Variances of the scores of two columns, with what relatives add: (n_sites, 2, 2)."""
        shared = [(self.kin @ column.T).T for column in rest]
        added = np.array([[(a * b).sum(axis=1) for b in rest] for a in shared])
        added = np.moveaxis(added, 2, 0)
        total = variance + (added + added.swapaxes(1, 2)) / 2
        # Estimated kinships need not be a matrix of covariances.
        lost = np.linalg.eigvalsh(total)[:, 0] < (
            LEAST_EIGENVALUE * np.linalg.eigvalsh(variance)[:, 0]
        )
        total[lost] = variance[lost]
        return total

    def _genotypic(self, u, het, variance, good, whole_het):
        """Chi2 and df of allele count and heterozygotes together."""
        cross, v = variance[:, 0, 1], np.where(good, variance[:, 0, 0], 1.0)
        rest = variance[:, 1, 1] - cross**2 / v
        further = good & (rest > EXPLAINED * whole_het) & (whole_het > 0)
        rest = np.where(further, rest, 1.0)
        added = (het - cross * u / v) ** 2 / rest
        chi2 = np.where(good, u * u / v, np.nan) + np.where(further, added, 0.0)
        return chi2, np.where(good, 1 + further, 0)

    def _exact(self, chi2, df, beta, se):
        """Statistic, p and standard error of a linear model: F of the partial R2."""
        from scipy.special import fdtrc

        share = np.minimum(chi2 / self.freedom, 1.0)
        left = np.maximum(self.freedom - df, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = share / (1 - share) * left
            p = fdtrc(np.maximum(df, 1), left, statistic / np.maximum(df, 1))
            exact = np.where(statistic > 0, np.abs(beta) / np.sqrt(statistic), se)
        return statistic, p, exact


def _correlation(relatives: Relatives, shared: float, n: int):
    """Correlations of the residuals of related people, (n, n) with a diagonal of 0."""
    from scipy.sparse import coo_array

    value = 2 * shared * relatives.kinship
    rows = np.concatenate([relatives.first, relatives.second])
    columns = np.concatenate([relatives.second, relatives.first])
    matrix = coo_array((np.concatenate([value, value]), (rows, columns)), shape=(n, n))
    return matrix.toarray() if len(rows) > DENSE * n * n else matrix.tocsr()


def genomic_control(chi2: np.ndarray) -> float:
    """Genomic-control lambda: the median chi2 over that of the null (Devlin & Roeder 1999)."""
    known = chi2[np.isfinite(chi2)]
    return float(np.median(known) / MEDIAN) if len(known) else np.nan


def genomic_control_error(n_sites: int) -> float:
    """Standard error of `genomic_control` of so many independent sites without any effect.

    That of a median is 1 / (2 f sqrt(n)), with f the density of chi-square (1 df) at its median.
    LD makes it larger.
    """
    if not n_sites:
        return float("nan")
    density = np.exp(-MEDIAN / 2) / np.sqrt(2 * np.pi * MEDIAN)
    return float(1 / (2 * density * np.sqrt(n_sites) * MEDIAN))


def scan_single_sites(
    folder: Path, null: Path, out: Path, relatives: Relatives | None = None
) -> dict[str, float]:
    """Test every site of a scan and write a table in panel order.

    Parameters
    ----------
    folder : Path
        `results/reorder`.
    null : Path
        `results/epistasis/null_model.npz`.
    out : Path
        chrom, pos, id, ref, alt, then the columns of `SiteTests.test`, then `p_adjusted`: `p` times
        the number of sites, at most 1.
    relatives : Relatives, optional
        Among the people of `folder`.

    Returns
    -------
    dict
        Number of sites, genomic-control lambda, smallest p.
    """
    words, sites, samples = read_reordered(folder)
    tests = SiteTests(read_null_model(null), relatives)
    n_cases = int((samples["class"] == "case").sum())
    n_controls = len(samples) - n_cases
    parts = []
    for first, last in chunks(len(sites), max(1, CHUNK // max(len(samples), 1))):
        rows = slice(first, last)
        parts.append(
            tests.test(genotypes_of_planes(words[rows], sites.iloc[rows], n_controls, n_cases))
        )
    found = pd.concat(parts, ignore_index=True)
    found["p_adjusted"] = np.minimum(found["p"] * found["p"].notna().sum(), 1.0)
    named = sites[["chrom", "pos", "id", "ref", "alt"]].reset_index(drop=True)
    table = pd.concat([named, found], axis=1).iloc[np.argsort(sites["rank"].to_numpy())]
    write_table(out, table)
    return {
        "sites": len(table),
        "lambda": round(genomic_control(found["chi2"].to_numpy()), 3),
        "smallest_p": float(found["p"].min()),
    }
