"""Slow, obvious versions of what the package computes: the oracles of the tests."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np


@dataclass
class ParsedVcf:
    """Biallelic SNPs of a VCF text: (chrom, pos, id, ref, alt), line number, genotypes."""

    samples: list[str]
    sites: list[tuple[str, int, str, str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    genotypes: list[list[int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def array(self) -> np.ndarray:
        """Return the genotypes as (n_sites, n_samples) int8, -1 for missing."""
        return np.array(self.genotypes, np.int8).reshape(len(self.sites), len(self.samples))


def parse_vcf_text(text: str, haploid: str | dict[str, str] = "error") -> ParsedVcf:
    """Parse a VCF by the rules of the design, one line and one call at a time.

    Raises
    ------
    ValueError
        With a keyword for the error (columns, empty, pos, gt, haploid, ploidy, allele, malformed,
        header, or name: of the contig or site) and the line number.
    """
    names = ["records", "multiallelic", "indel", "symbolic", "star", "no_alt", "non_acgt", "snps"]
    names += ["unplaced", "missing", "half_calls", "haploid_calls", "phased", "unphased"]
    parsed = ParsedVcf([], counts=dict.fromkeys(names, 0))
    in_header = True
    lines = f"{text}\n".replace("\r\n", "\n").split("\n")
    for n_line, line in enumerate(lines, start=1):
        if in_header:
            if line.startswith("#CHROM"):
                parsed.samples = line.split("\t")[9:]
                in_header = False
            continue
        if line == "":
            continue
        try:
            _parse_record(line, n_line, parsed, haploid)
        except ValueError as error:
            raise ValueError(*error.args, n_line) from None
    return parsed


def _parse_record(line: str, n_line: int, parsed: ParsedVcf, haploid: str | dict[str, str]) -> None:
    counts = parsed.counts
    if line.startswith("#"):
        raise ValueError("header")
    counts["records"] += 1
    columns = line.split("\t")
    if len(columns) != 9 + len(parsed.samples):
        raise ValueError("columns")
    chrom, pos, site_id, ref, alt = columns[:5]
    if "" in (chrom, pos, site_id, ref, alt):
        raise ValueError("empty")
    kind = _kind_of_site(ref, alt)
    if not re.fullmatch("[0-9]{1,10}", pos) or int(pos) >= 2**31:
        raise ValueError("pos")
    kind = "unplaced" if int(pos) == 0 else kind
    keys = columns[8].split(":")
    if kind == "no_alt" and alt == "." and "GT" in keys:
        end = next((w[4:] for w in columns[7].split(";") if w.startswith("END=")), "")
        reach = int(pos) + len(ref.encode("utf-8", "surrogateescape")) - 1
        if re.fullmatch("[0-9]{1,10}", end) and int(end) > reach:
            kind = "reference_blocks"
    if kind == "reference_blocks" and "GT" in keys and not failed_filters(columns[6]):
        if isinstance(haploid, dict):
            haploid = haploid.get(chrom, haploid.get("default", "error"))
        odd = sum(_is_odd(column, keys.index("GT"), haploid) for column in columns[9:])
        if odd:
            counts["odd_block_calls"] = counts.get("odd_block_calls", 0) + odd
    one_allele = kind == "no_alt" and alt == "." and ref in [*"ACGTacgt"] and "GT" in keys
    if (kind == "snps" or one_allele) and (failed := failed_filters(columns[6])):
        count_filtered(failed, counts)
        return
    if kind != "snps" and not one_allele:
        counts[kind] = counts.get(kind, 0) + 1
        return
    if "GT" not in keys:
        raise ValueError("gt")
    if isinstance(haploid, dict):
        haploid = haploid.get(chrom, haploid.get("default", "error"))
    row = [_read_call(c, keys.index("GT"), haploid, counts) for c in columns[9:]]
    count_one_allele(one_allele, row, counts)
    if "DP" in keys:
        texts = [c.split(":") for c in columns[9:]]
        at, gt = keys.index("DP"), keys.index("GT")
        depths = [t[at] if at < len(t) else "." for t in texts]
        calls = [t[gt] if gt < len(t) else "" for t in texts]
        phases = [1 if "|" in call else 0 if "/" in call else -1 for call in calls]
        places = [keys.index(name) for name in ("GP", "DS") if name in keys]
        number = r"[+-]?(\.?[0-9])"
        stated = [any(k < len(t) and re.match(number, t[k]) for k in places) for t in texts]
        remove_without_depth(row, depths, phases, counts, stated)
    if re.search("[\0\r\ud800-\udfff]", chrom + site_id):  # surrogates: bytes that are not UTF-8
        raise ValueError("name")
    counts["snps"] += 1
    parsed.sites.append((chrom, int(pos), site_id, ref, alt))
    parsed.lines.append(n_line)
    parsed.genotypes.append(row)


def failed_filters(text: str) -> list[str]:
    """Names of FILTER with which a record is dropped by default."""
    names = [name for name in dict.fromkeys(text.split(";")) if name not in ("PASS", ".", "")]
    names = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in names]
    return [name if name.isprintable() else repr(name) for name in names]


def count_filtered(failed: list[str], counts: dict[str, int]) -> None:
    for name in ("filtered", *(f"filter {one}" for one in failed)):
        counts[name] = counts.get(name, 0) + 1


def remove_without_depth(
    row: list[int],
    depths: list[str],
    phases: list[int],
    counts: dict[str, int],
    stated: list[bool],
) -> None:
    """Make calls of 0/0 with a depth of 0 missing that are not imputed.

    `phases`: 1 phased, 0 not, -1 haploid. `stated`: whether GP or DS has a value.
    """
    removed = [
        k
        for k, depth in enumerate(depths)
        if row[k] == 0 and re.match(r"[+-]?0+(?!\.?[0-9])", depth)
        if phases[k] != 1 and not stated[k]
    ]
    for k in removed:
        row[k] = -1
        counts["missing"] += 1
        if phases[k] >= 0:
            counts["phased" if phases[k] else "unphased"] -= 1
    for name, number in (("no_depth", len(removed)), ("sites_with_removed_calls", 1)):
        if removed:
            counts[name] = counts.get(name, 0) + number


def count_one_allele(one_allele: bool, row: list[int], counts: dict[str, int]) -> None:
    """Count a site without ALT; ValueError if a call has one."""
    if one_allele:
        if max(row) > 0:
            raise ValueError("allele")
        counts["one_allele"] = counts.get("one_allele", 0) + 1


def _kind_of_site(ref: str, alt: str) -> str:
    if alt in ("<NON_REF>", "<*>"):
        return "reference_blocks"
    if alt == ".":
        return "no_alt"
    if "," in alt:
        return "multiallelic"
    if re.search(r"[<\[\]]", alt) or (len(alt) > 1 and (alt[0] == "." or alt[-1] == ".")):
        return "symbolic"
    if alt == "*":
        return "star"
    if max(len(allele.encode("utf-8", "surrogateescape")) for allele in (ref, alt)) > 1:
        return "indel"
    if ref not in "ACGTacgt" or alt not in "ACGTacgt":
        return "non_acgt"
    return "no_alt" if ref.upper() == alt.upper() else "snps"


def _is_odd(column: str, index: int, haploid: str) -> bool:
    """Whether a call in a reference block has other than two alleles, or is malformed."""
    values = column.split(":")
    if len(values) <= index and column:
        return False
    call = values[index] if column else ""
    if not re.fullmatch(r"(\.|[0-9]+)([/|](\.|[0-9]+))*", call):
        return True
    n = len(re.split(r"[/|]", call))
    return n > 2 or (n == 1 and call in ("0", "1") and haploid != "diploidize")


def _read_call(column: str, index: int, haploid: str, counts: dict[str, int]) -> int:
    if column == "":
        raise ValueError("malformed")
    values = column.split(":")
    if len(values) <= index:
        counts["missing"] += 1
        return -1
    call = values[index]
    if not re.fullmatch(r"(\.|[0-9]+)([/|](\.|[0-9]+))*", call):
        raise ValueError("malformed")
    alleles = re.split(r"[/|]", call)
    if len(alleles) > 2:
        raise ValueError("ploidy")
    if any(allele != "." and int(allele) > 1 for allele in alleles):
        raise ValueError("allele")
    if "." in alleles:
        counts["missing"] += 1
        counts["half_calls"] += len(set(alleles)) == 2
        return -1
    if len(alleles) == 1:
        counts["haploid_calls"] += 1
        if haploid == "error":
            raise ValueError("haploid")
        if haploid == "missing":
            counts["missing"] += 1
            return -1
        return 2 * int(alleles[0])
    counts["phased" if "|" in call else "unphased"] += 1
    return int(alleles[0]) + int(alleles[1])


# --- genotypes ----------------------------------------------------------------------------------
#
# Genotype matrices are (n_samples, n_sites) with 0, 1, 2 and -1 for missing, unless said otherwise.

#: Genotypes whose bit is set in each plane.
LETTERS = {"u": {1, 2}, "v": {2}, "c": {0, 1, 2}, "z": {0}, "e": {1}, "h": {0, 2}}


def draw_genotypes(
    rng: np.random.Generator, n_samples: int, n_sites: int, missing: float = 0.0
) -> np.ndarray:
    """Draw genotypes (n_samples, n_sites) int8 in Hardy-Weinberg proportions."""
    genotypes = rng.binomial(2, rng.uniform(0, 1, n_sites), (n_samples, n_sites)).astype(np.int8)
    genotypes[rng.random(genotypes.shape) < missing] = -1
    return genotypes


def pair_counts(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """Squared distance, called sites, opposite homozygotes and sums of all pairs, site by site.

    `sums` and `squares` are sums of the genotypes of a and of their squares, over sites called in
    both samples.
    """
    names = ("squared", "called", "ibs0", "sums", "squares")
    counts = {name: np.zeros((len(a), len(b)), np.int64) for name in names}
    for x, y in zip(a.T.astype(np.int64), b.T.astype(np.int64), strict=True):
        both = (x >= 0)[:, None] & (y >= 0)[None, :]
        difference = np.abs(x[:, None] - y[None, :])
        counts["squared"] += np.where(both, difference**2, 0)
        counts["called"] += both
        counts["ibs0"] += both & (difference == 2)
        counts["sums"] += np.where(both, x[:, None], 0)
        counts["squares"] += np.where(both, x[:, None] ** 2, 0)
    return counts


def nearest(distances: np.ndarray, k: int) -> np.ndarray:
    """The k nearest others of every sample by distance, then number: int (n, k)."""
    rows = []
    for i, row in enumerate(distances):
        order = np.argsort(row, kind="stable")  # ties stay in order
        rows.append(order[order != i][:k])
    return np.array(rows, int).reshape(len(distances), -1)


def outside_of(distances: np.ndarray):
    """`distance.founder_tree.Outside` by rows of a matrix of all pairs."""

    def outside(which: np.ndarray, part: np.ndarray, best: np.ndarray):
        far = distances[which].astype(float)
        far[part[which][:, None] == part] = np.inf
        return far.min(axis=1), far.argmin(axis=1)  # the first of equals

    return outside


def term_value(products, output: int, x: int, y: int) -> int:
    """Contribution of one site with genotypes x and y to one output of weighted plane products."""
    return sum(
        weight * (x in LETTERS[letter_a]) * (y in LETTERS[letter_b])
        for o, weight, letter_a, letter_b in products
        if o == output
    )


def evaluate_terms(a: np.ndarray, b: np.ndarray, terms) -> np.ndarray:
    """All outputs of `terms` for all pairs, int64 (n_outputs, m, n), looked up site by site."""
    out = np.zeros((len(terms.outputs), len(a), len(b)), np.int64)
    for output in range(len(terms.outputs)):
        states = (0, 1, 2, -1)
        table = np.array(
            [[term_value(terms.products, output, x, y) for y in states] for x in states]
        )
        for i, row in enumerate(a):
            out[output, i] = table[row[None, :], b].sum(axis=1)  # -1 is the last row and column
    return out


def plane_words(bits, n_words: int) -> list[int]:
    """Pack the bits of one plane into little-endian 64-bit words, bit by bit."""
    words = [0] * n_words
    for site, bit in enumerate(bits):
        words[site // 64] |= int(bit) << (site % 64)
    return words


def make_planes(
    genotypes: np.ndarray,
    fill: np.ndarray | None = None,
    *,
    masked: bool | None = None,
    n_words: int | None = None,
) -> np.ndarray:
    """Pack genotypes into bit-planes uint64 (n_samples, 2 or 3, n_words), bit by bit.

    Missing genotypes are replaced by `fill` (n_sites,) or (n_samples, n_sites), by default 0.
    The called plane is added if `masked`, by default if any genotype is missing.
    """
    n_samples, n_sites = genotypes.shape
    fill = np.broadcast_to(0 if fill is None else fill, genotypes.shape)
    masked = bool((genotypes < 0).any()) if masked is None else masked
    n_words = -(-n_sites // 64) if n_words is None else n_words
    planes = np.zeros((n_samples, 2 + masked, n_words), np.uint64)
    for sample, row in enumerate(genotypes):
        filled = [f if g < 0 else g for g, f in zip(row, fill[sample], strict=True)]
        planes[sample, 0] = plane_words([g >= 1 for g in filled], n_words)
        planes[sample, 1] = plane_words([g == 2 for g in filled], n_words)
        if masked:
            planes[sample, 2] = plane_words([g >= 0 for g in row], n_words)
    return planes


def bed_bytes(genotypes: np.ndarray) -> bytes:
    """Content of a PLINK 1 .bed file of genotypes (n_sites, n_samples), A1 = ALT."""
    codes = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
    content = bytearray(b"\x6c\x1b\x01")
    for row in genotypes.tolist():
        for first in range(0, len(row), 4):
            four = row[first : first + 4]
            content.append(sum(codes[g] << (2 * place) for place, g in enumerate(four)))
    return bytes(content)


# --- shortest paths -----------------------------------------------------------------------------


def minplus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """min_k a[i, k] + b[k, j] by broadcasting, in the precision of the arguments."""
    return (a[:, :, None] + b[None, :, :]).min(axis=1)


def floyd_warshall(weights: np.ndarray) -> np.ndarray:
    """All-pairs shortest path lengths by the triple loop, in Python numbers."""
    w = weights.tolist()
    n = len(w)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                w[i][j] = min(w[i][j], w[i][k] + w[k][j])
    return np.array(w)


def fermat_geodesics(distances: np.ndarray, alpha: float) -> np.ndarray:
    """Sample Fermat distances in float64: shortest paths over the weights d**alpha."""
    return floyd_warshall(distances.astype(np.float64) ** alpha)


# --- statistics ---------------------------------------------------------------------------------


def hwe_weights(n_ref: int, n_het: int, n_alt: int) -> dict[int, int]:
    """Ways to pair the alleles of one site, by the number of heterozygotes."""
    n = n_ref + n_het + n_alt
    n_a = 2 * n_ref + n_het
    return {
        het: 2**het * multinomial((n_a - het) // 2, het, n - het - (n_a - het) // 2)
        for het in range(n_a % 2, min(n_a, 2 * n - n_a) + 1, 2)
    }


def hwe_excess(n_ref: int, n_het: int, n_alt: int, midp: bool = True) -> Fraction:
    """Probability of more heterozygotes than observed, and half of that of as many (mid-p)."""
    weights = hwe_weights(n_ref, n_het, n_alt)
    more = sum(w for het, w in weights.items() if het > n_het)
    ties = (Fraction(1, 2) if midp else 1) * weights[n_het]
    return (more + ties) / Fraction(sum(weights.values()))


def hwe_exact(n_ref: int, n_het: int, n_alt: int, midp: bool = True) -> Fraction:
    """Exact Hardy-Weinberg p-value of one site, over all outcomes in exact fractions."""
    weights = hwe_weights(n_ref, n_het, n_alt)
    observed = weights[n_het]
    less = sum(w for w in weights.values() if w < observed)
    ties = sum(w for w in weights.values() if w == observed)
    return (less + (Fraction(1, 2) if midp else 1) * ties) / Fraction(sum(weights.values()))


def multinomial(*parts: int) -> int:
    """Multinomial coefficient: ways to divide sum(parts) items into groups of these sizes."""
    return factorial(sum(parts)) // math.prod(map(factorial, parts))


#: Those of one number of samples are asked for again and again.
factorial = functools.lru_cache(4096)(math.factorial)


def standardized(genotypes: np.ndarray, af: np.ndarray) -> np.ndarray:
    """Patterson-scaled genotypes (n_samples, n_polymorphic), zero where missing."""
    use = (af > 0) & (af < 1)
    g, p = genotypes[:, use].astype(np.float64), af[use]
    return np.where(g < 0, 0.0, (g - 2 * p) / np.sqrt(2 * p * (1 - p)))


def pca_scores(
    genotypes: np.ndarray, af: np.ndarray, founders: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """PCA scores of complete genotypes, and shares of variance, by SVD of the dense matrix."""
    z = standardized(genotypes, af)
    _, singular, axes = np.linalg.svd(z[founders] / np.sqrt(z.shape[1]), full_matrices=False)
    scores = z @ axes[:n_components].T / np.sqrt(z.shape[1])
    return scores, (singular**2 / (singular**2).sum())[:n_components]


def augmented_scores(
    genotypes: np.ndarray, af: np.ndarray, founders: np.ndarray, n_components: int
) -> np.ndarray:
    """Scores of those who are no founders: PCA of the founders and one of them, one by one.

    Of its axes, those along which the founders' scores lie most are kept; its founders are turned
    onto their own PCA (Procrustes without scaling).
    """
    z = standardized(genotypes, af)
    own, _ = pca_scores(genotypes, af, founders, n_components)
    found = []
    for one in z[~founders]:
        together = np.vstack([z[founders], one]) / np.sqrt(z.shape[1])
        u, singular, _ = np.linalg.svd(together, full_matrices=False)
        share = ((own[founders] / np.linalg.norm(own[founders], axis=0)).T @ u[:-1]) ** 2
        kept = np.sort(np.argsort(-share.sum(axis=0), kind="stable")[:n_components])
        scores = (u * singular)[:, kept]
        a, _, b = np.linalg.svd(scores[:-1].T @ own[founders])
        found.append(scores[-1] @ a @ b)
    return np.array(found)


def relationship(genotypes: np.ndarray, af: np.ndarray) -> np.ndarray:
    """Mean product of standardised genotypes over jointly called sites, pair by pair."""
    use = (af > 0) & (af < 1)
    z, called = standardized(genotypes, af), genotypes[:, use] >= 0
    n = len(z)
    means = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            both = called[i] & called[j]
            means[i, j] = (z[i, both] * z[j, both]).sum() / max(1, both.sum())
    return means


def table_value(table, squared: int, interval_bits: int, place_bits: int) -> int:
    """A table of forces at an integer squared distance: intervals between powers of two."""
    power = squared.bit_length() - 1
    interval = Fraction(squared - 2**power, 2**power) * 2**interval_bits
    entry = power * 2**interval_bits + int(interval)
    place = int((interval - int(interval)) * 2**place_bits)
    low, high = int(table[entry]), int(table[entry + 1])
    return low + (high - low) * place // 2**place_bits


def split_mix(value: int) -> int:
    """SplitMix64 (Steele, Lea and Flood 2014): the next number after a state."""
    mask = 2**64 - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def umap_epoch(
    points: list,
    edges: list,
    shares: list,
    tables: tuple,
    epoch: int,
    step: int,
    seed: int,
    **sizes,
) -> list:
    """All points after one epoch of UMAP, edge by edge, in Python's integers.

    Each active edge (i, j) pulls both of its ends, as in umap-learn; then `draws` points push its
    head. `sizes` are the constants of the kernel, in lower case.
    """
    n = len(points)
    sums = [[0, 0] for _ in points]
    one = 1 << sizes["share_bits"]

    def force(table, i: int, j: int) -> list[int]:
        apart = [points[i][axis] - points[j][axis] for axis in range(2)]
        squared = apart[0] ** 2 + apart[1] ** 2
        if squared == 0:
            return [0, 0]
        value = table_value(table, squared, sizes["interval_bits"], sizes["place_bits"])
        size = [abs(value * x) // 2 ** sizes["force_bits"] for x in apart]
        size = [min(x, sizes["farthest"]) for x in size]
        return [x if a > 0 else -x for x, a in zip(size, apart, strict=True)]

    start = split_mix(seed ^ split_mix(epoch))
    for number, ((i, j), share) in enumerate(zip(edges, shares, strict=True)):
        if (epoch + 1) * share // one == epoch * share // one:
            continue
        pull = force(tables[0], i, j)
        state = split_mix(start ^ number)
        for axis in range(2):
            sums[i][axis] -= pull[axis]
            sums[j][axis] += pull[axis]
        for _ in range(sizes["draws"]):
            state = split_mix(state)
            push = force(tables[1], i, (state >> 32) * n >> 32)
            for axis in range(2):
                sums[i][axis] += push[axis]
    half, bound = 1 << (sizes["step_bits"] - 1), sizes["bound"]
    moved = [
        [x + ((s * step + half) >> sizes["step_bits"]) for x, s in zip(*both, strict=True)]
        for both in zip(points, sums, strict=True)
    ]
    return [[min(max(x, -bound), bound) for x in point] for point in moved]


def umap_density(
    points: list, edges: list, shares: list, term, step: int, before: list, **sizes
) -> list:
    """Points after the density term of densMAP of one epoch, edge by edge in Python's numbers.

    `points`: where they were before the epoch; `before`: where UMAP's forces took them; `term`: a
    `Density`. `sizes` as in `umap_epoch`.
    """
    n, units = len(points), (sizes["interval_bits"], sizes["place_bits"])
    one, far = 1 << sizes["force_bits"], 1 << sizes["point_bits"]
    phi, wide, sums = [0] * n, [0] * n, [[0, 0] for _ in points]
    apart = [[points[i][axis] - points[j][axis] for axis in range(2)] for i, j in edges]
    squared = [x * x + y * y for x, y in apart]
    for (i, _), d2 in zip(edges, squared, strict=True):
        phi[i] += table_value(term.nearness, d2, *units) if d2 else one
        wide[i] += table_value(term.spread, d2, *units) if d2 else 0
    scale = far * far * one / (1 << sizes["spread_bits"])
    radii = [
        round(1e-8 * far * far) + (int(w / p * scale) if p else 0)
        for w, p in zip(wide, phi, strict=True)
    ]
    unit = 1 / (1 << sizes["radius_bits"])
    logs = [table_value(term.logarithms, radius, *units) * unit for radius in radii]
    mean = sum(logs) / n
    variance = sum(x * x for x in logs) / n - mean * mean + 0.1
    wanted = [value * unit for value in term.radii.tolist()]
    covariance = sum(x * r for x, r in zip(logs, wanted, strict=True)) / (n - 1)
    weight = [r - covariance / variance * (x - mean) for r, x in zip(wanted, logs, strict=True)]
    p = [w * one / f if f else 0.0 for w, f in zip(weight, phi, strict=True)]
    q = [x * far * far / radius for x, radius in zip(p, radii, strict=True)]
    for (i, j), d2, share, between in zip(edges, squared, shares, apart, strict=True):
        if not d2:
            continue
        by_radius = table_value(term.by_radius, d2, *units) / one * (q[i] + q[j])
        by_nearness = table_value(term.by_nearness, d2, *units) / one * (p[i] + p[j])
        c = term.strength / variance**0.5 * (by_radius + by_nearness)
        most = sizes["farthest"] * share / (1 << sizes["share_bits"])
        for axis in range(2):
            sums[i][axis] += 2 * int(min(max(2 * c * between[axis], -most), most))
    half = 1 << (sizes["step_bits"] - 1)
    return [
        [x + ((s * step + half) >> sizes["step_bits"]) for x, s in zip(*both, strict=True)]
        for both in zip(before, sums, strict=True)
    ]
