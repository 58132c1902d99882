"""What every genotype reader yields: batches of biallelic SNPs, and counts of all records."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import numpy as np

from ..core.errors import UserError
from .genotypes import pack_bed, unpack_bed
from .layers import join_layers, layers_each, most_layers, split_layers
from .site_classes import Opened

#: ALT of a site whose file knows one allele alone, because no sample has another. PLINK writes 0.
UNKNOWN_ALLELE = "."
HAPLOID_POLICIES = ("error", "diploidize", "missing")
#: Policy of a study of haploids: as `diploidize`, and `only_haploid` refuses other calls.
ONLY_HAPLOID = "only"
#: Begin of the policy of a study of polyploids, before the ploidy: every call has so many alleles.
#: Or before several ploidies of a study, with commas, and after EACH that of each sample of a file.
OF_PLOIDY = "ploidy "
EACH = " of "
#: Mapping key for all contigs that are not named.
OTHER_CONTIGS = "default"
#: Added to the policy of a contig that is left out (`vcf_text_cpu.ANY_PLOIDY`).
ANY_PLOIDY = 4
# Bytes of text per decoding call: enough to amortise the call, few enough to bound memory.
# Measured by `tests/bench/bench_ingest.py`.
CHUNK_BYTES = 2 << 20


def joined_names(names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names as concatenated bytes, uint8 (n_bytes,), and where each ends, int64 (n_names,)."""
    parts = [name.encode() for name in names]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.array(list(b"".join(parts)), np.uint8), ends


class LeftOut(NamedTuple):
    """Samples and contigs that never enter the study: a call of another ploidy is missing there."""

    samples: frozenset[str] = frozenset()
    contigs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HaploidPolicies:
    """How haploid calls are read: index into HAPLOID_POLICIES, by contig or by default.

    `kinds` are the ploidies of the study; if there are several, `each` has that of each sample.
    `left_out` is what never enters the study.
    """

    default: int
    by_contig: dict[str, int]
    kinds: tuple[int, ...] = (2,)
    each: tuple[int, ...] = ()
    left_out: LeftOut = LeftOut()  # noqa: RUF009 (a tuple)

    @classmethod
    def parse(
        cls,
        haploid: str | Mapping[str, str],
        left_out: LeftOut = LeftOut(),  # noqa: B008 (a tuple)
    ) -> "HaploidPolicies":
        """Parse the configuration's `contigs.haploid`; ValueError for an unknown policy."""
        given = {OTHER_CONTIGS: haploid} if isinstance(haploid, str) else dict(haploid)
        given = {c: "diploidize" if p == ONLY_HAPLOID else p for c, p in given.items()}
        kinds, each = ploidies_in(given)
        given = {c: "error" if p.startswith(OF_PLOIDY) else p for c, p in given.items()}
        for policy in given.values():
            if policy not in HAPLOID_POLICIES:
                raise ValueError(f"haploid must be one of {HAPLOID_POLICIES}, got {policy!r}")
        codes = {contig: HAPLOID_POLICIES.index(policy) for contig, policy in given.items()}
        return cls(codes.pop(OTHER_CONTIGS, 0), codes, kinds, each, left_out)

    def of_samples(self, n_samples: int) -> np.ndarray:
        """Ploidy of the samples of a file, int64 (n_samples,)."""
        return np.array(self.each or self.kinds * n_samples, np.int64)

    def of(self, contig: str) -> int:
        """Return the policy of one contig, plus ANY_PLOIDY where it is left out."""
        return self.by_contig.get(contig, self.default) | self._any_ploidy(contig)

    def _any_ploidy(self, contig: str) -> int:
        return ANY_PLOIDY if contig in self.left_out.contigs else 0

    def ignored(self, samples: list[str]) -> np.ndarray:
        """Which of these samples are left out: bool (n_samples,)."""
        return np.array([name in self.left_out.samples for name in samples], np.bool_)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return concatenated contig names, their end offsets and policies, for the decoder."""
        contigs = [*self.by_contig, *sorted(self.left_out.contigs.difference(self.by_contig))]
        policies = np.array([self.of(contig) for contig in contigs], np.int64)
        return *joined_names(contigs), policies


class DecodedRecords(NamedTuple):
    """What a decoder of VCF text or BCF fills; it says how many rows of each it has used.

    Attributes
    ----------
    genotypes : int8 array, (capacity, n_samples)
        ALT counts 0, 1, 2, or -1 for missing.
    fields : int64 array, (capacity, N_FIELDS)
        Where the fields of each kept site are.
    counts : int64 array, (N_COUNTS,)
        The counts of these records are added to it.
    error : int64 array, (6,)
        On an error its code, and where it is.
    dropped : int64 array, (capacity, N_DROPPED)
        Where each dropped record with a position is, and its FILTER if that dropped it.
    removed : int64 array, (n_samples,)
        The number of calls that limits removed is added to it.
    blocks : int64 array, (capacity, N_BLOCK)
        Contig and interval of each reference block of a gVCF.
    block_rows : int8 array, (capacity, n_samples)
        0 for the samples that are called homozygous REF in it within the limits.
    """

    genotypes: np.ndarray
    fields: np.ndarray
    counts: np.ndarray
    error: np.ndarray
    dropped: np.ndarray
    removed: np.ndarray
    blocks: np.ndarray
    block_rows: np.ndarray

    @classmethod
    def room(
        cls, genotypes: np.ndarray, n_dropped: int, n_counts: int, widths: tuple[int, int, int]
    ) -> "DecodedRecords":
        """Room for sites with `genotypes`; widths: N_FIELDS, N_DROPPED, N_BLOCK of the decoder."""
        (capacity, n_samples), (fields, dropped, block) = genotypes.shape, widths
        return cls(
            genotypes,
            np.empty((capacity, fields), np.int64),
            np.zeros(n_counts, np.int64),
            np.zeros(6, np.int64),
            np.empty((n_dropped, dropped), np.int64),
            np.zeros(n_samples, np.int64),
            np.empty((n_dropped, block), np.int64),
            np.empty((n_dropped, n_samples), np.int8),
        )


#: A warning where more of the SNPs than this share failed a filter.
MANY_FAILED = 0.1


def many_failed(filtered: int, snps: int) -> bool:
    """Whether so many SNPs of files failed a filter, of `filtered` and those that are read."""
    return filtered > MANY_FAILED * (filtered + snps)


#: Fields of `DecodeCounts` that count dropped records, and those that count what few files have.
DROPS = ("multiallelic", "indel", "symbolic", "star", "no_alt", "non_acgt", "unplaced")
DROPS += ("filtered", "low_qual", "reference_blocks")
RARE = ("one_allele", "filtered", "low_qual", "no_depth", "low_dp", "high_dp", "low_gq")
RARE += ("unbalanced", "sites_with_removed_calls", "reference_blocks", "made_reference")
RARE += ("odd_block_calls",)
#: Counts of records with one ALT that are read as a site, by the site's kind.
ONE_ALT = {"snp": "snps_in_long_alleles", "indel": "indels_read", "sv": "svs_read"}
#: All counts of what `sites.classes` reads beside SNPs.
OPENED = (*ONE_ALT.values(), "split_records", "split_sites", "alt_left_out")


def count_fields() -> list[str]:
    """Fields of `DecodeCounts` that are one number."""
    return [one.name for one in fields(DecodeCounts) if one.type is int]


@dataclass
class DecodeCounts:
    """Records read, dropped and kept; `snps` and the fields after it count kept sites.

    Each record is counted once: records = multiallelic + indel + symbolic + star + no_alt +
    non_acgt + unplaced + filtered + low_qual + snps. `indel` holds every REF or ALT longer than one
    base, `no_alt` an ALT equal to REF, and records without ALT whose REF is no single base or that
    have no genotypes, `unplaced` any record without a position, whatever its alleles: POS 0 (a
    telomere), in PLINK files also chromosome 0 or a position below 0. Each genotype of a kept site
    counts as missing, phased or unphased, unless it is a haploid call that was diploidized.
    Half-calls count as missing. `one_allele` of the kept sites have no ALT: no sample varies.

    SNPs that failed a filter are `filtered`, those below the limit of QUAL `low_qual`. `filters`
    has the number of filtered SNPs by the name of the filter; one that failed two counts in both.
    A call that a limit made missing counts once, at the first of `no_depth` (0/0 of no read,
    neither phased nor with GP or DS), `low_dp`, `high_dp`, `low_gq` and `unbalanced`. `removed` has
    these calls by sample, int64 (n_samples,) or empty. `dropped_at` says where the dropped records
    lie: contig, starts from 0 and ends, except those without a position.

    At `made_reference` of the kept sites limits removed all calls with ALT, and the others are
    homozygous REF.

    `reference_blocks` are records of a gVCF that say where samples have no variant. `blocks` has
    their intervals of homozygous REF calls: contig, start from 0, end, number of the sample.
    `odd_block_calls` in them cannot be such a call: they have more than two alleles, or one that
    the policy does not read as two.

    `opened` counts what is read beside biallelic SNPs (`site_classes`), by the names of OPENED, and
    these records are counted nowhere else; so the sum above gains all of OPENED but `split_sites`
    and `alt_left_out`. `no_length` has the places of structural variants without a length.
    """

    records: int = 0
    multiallelic: int = 0
    indel: int = 0
    symbolic: int = 0
    star: int = 0
    no_alt: int = 0
    non_acgt: int = 0
    unplaced: int = 0
    snps: int = 0
    missing: int = 0
    half_calls: int = 0
    haploid_calls: int = 0
    phased: int = 0
    unphased: int = 0
    one_allele: int = 0
    filtered: int = 0
    low_qual: int = 0
    no_depth: int = 0
    low_dp: int = 0
    high_dp: int = 0
    low_gq: int = 0
    unbalanced: int = 0
    sites_with_removed_calls: int = 0
    reference_blocks: int = 0
    made_reference: int = 0
    odd_block_calls: int = 0
    filters: Counter[str] = field(default_factory=Counter)
    opened: Counter[str] = field(default_factory=Counter)
    no_length: list[str] = field(default_factory=list, compare=False)
    removed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), compare=False)
    dropped_at: list[tuple[str, np.ndarray, np.ndarray]] = field(
        default_factory=list, compare=False
    )
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = field(
        default_factory=list, compare=False
    )

    def add(self, values) -> None:
        """Add `values`: one for each number, in the order of the fields."""
        for name, value in zip(count_fields(), values, strict=True):
            setattr(self, name, getattr(self, name) + int(value))

    @property
    def sites(self) -> int:
        """Number of kept sites of all classes."""
        return self.snps + sum(self.opened[name] for name in (*ONE_ALT.values(), "split_sites"))

    def note_opened(self, opened: Opened, n_alts: int) -> None:
        """Count a record that is no biallelic SNP, and is read."""
        if n_alts == 1:
            self.opened[ONE_ALT[opened.sites[0].kind]] += 1
            return
        self.opened["split_records"] += 1
        self.opened["split_sites"] += len(opened.sites)
        self.opened["alt_left_out"] += opened.left_out

    def add_removed(self, removed: np.ndarray) -> None:
        """Add calls that limits removed, by sample."""
        if removed.any():
            self.removed = self.removed + removed if len(self.removed) else removed

    def add_dropped(self, chrom: list[str], pos: np.ndarray, sizes: np.ndarray) -> None:
        """Note where dropped records lie: contig, position from 1, and bases of REF."""
        chrom_of = np.asarray(chrom, object)
        ends = np.flatnonzero(chrom_of[1:] != chrom_of[:-1]) + 1
        for first, last in zip([0, *ends], [*ends, len(chrom)], strict=True):
            if first < last:
                here = pos[first:last] - 1
                self.dropped_at.append((chrom[first], here, here + sizes[first:last]))

    def merge(self, other: "DecodeCounts") -> None:
        """Add all counts of another part of the same file."""
        self.add([getattr(other, name) for name in count_fields()])
        self.filters += other.filters
        self.opened += other.opened
        self.no_length += other.no_length
        self.add_removed(other.removed)
        self.dropped_at += other.dropped_at
        self.blocks += other.blocks

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name; those of what few files have, only where there are any."""
        counts = {name: getattr(self, name) for name in count_fields()}
        counts = {name: n for name, n in counts.items() if n or name not in RARE}
        counts |= {name: self.opened[name] for name in OPENED if self.opened[name]}
        return counts | {f"filter {name}": n for name, n in sorted(self.filters.items())}

    def filter_sentence(self, which: str = "") -> str:
        """Say how many records were dropped for their FILTER; `which`: of which records."""
        names = ", ".join(f"{name} {number}" for name, number in sorted(self.filters.items()))
        return (
            f"{self.filtered} of {which}{self.records} records are dropped, because their FILTER "
            f"is not PASS ({names}); name those to accept in ingest.filter."
        )

    def dropped(self) -> dict[str, int]:
        """Return the number of records that each filter dropped, where it dropped any."""
        return {name: getattr(self, name) for name in DROPS if getattr(self, name)}


@dataclass
class SiteBatch:
    """Consecutive biallelic SNPs of a file, in file order.

    Attributes
    ----------
    chrom, id, ref, alt : list of str
        (n_sites) each, exactly as in the file; ALT is UNKNOWN_ALLELE where the file knows one
        allele alone, and all called genotypes are then 0.
    pos : (n_sites) int64
    rows : (n_sites, ceil(n_samples / 4)) uint8
        PLINK 1 two-bit codes; see `popdesic.io.genotypes`. Padding bits are zero.
    n_samples : int
    line : (n_sites) int64
        Line of the file, from 1; for BCF and PLINK files the number of the record, from 1.
    """

    chrom: list[str]
    pos: np.ndarray
    id: list[str]
    ref: list[str]
    alt: list[str]
    rows: np.ndarray
    n_samples: int
    line: np.ndarray

    @property
    def genotypes(self) -> np.ndarray:
        """(n_sites, n_samples) int8: ALT counts 0, 1, 2, or -1 for missing."""
        return unpack_bed(self.rows, self.n_samples)


def unusable_name(name: str) -> bool:
    """Whether a name contains a separator of fields or lines, which no table can hold."""
    return any(letter in name for letter in "\0\t\n\r")


def is_haploid(haploid: str | Mapping[str, str]) -> bool:
    """Whether `contigs.haploid` is that of a study of haploids."""
    return ONLY_HAPLOID in ([haploid] if isinstance(haploid, str) else haploid.values())


def ploidies_in(haploid: str | Mapping[str, str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ploidies of a study by its `contigs.haploid`, ascending; and of each sample of a file.

    (2,) unless it is of polyploids, or of several. The second is empty unless `for_file` made it.
    """
    policies = [haploid] if isinstance(haploid, str) else haploid.values()
    found = [p.removeprefix(OF_PLOIDY) for p in policies if p.startswith(OF_PLOIDY)]
    parts = found[0].split(EACH) if found else ["2"]
    kinds, *each = (tuple(map(int, part.split(","))) for part in parts)
    return kinds, each[0] if each else ()


def is_layered(haploid: str | Mapping[str, str]) -> bool:
    """Whether genotypes are stored as layers: of polyploids, or of several ploidies."""
    return ploidies_in(haploid)[0] != (2,)


def for_file(
    haploid: str | Mapping[str, str], names: Sequence[str], ploidy: Mapping[str, int] | None
) -> str | Mapping[str, str]:
    """`contigs.haploid` for the samples of one file.

    `ploidy`: by name, where samples of the study differ in it; a sample without one is diploid.
    """
    kinds, _ = ploidies_in(haploid)
    if len(kinds) == 1:
        return haploid
    each = ",".join(str((ploidy or {}).get(name, 2)) for name in names)
    return f"{OF_PLOIDY}{','.join(map(str, kinds))}{EACH}{each}"


def not_vcf_text(source: object, haploid: str | Mapping[str, str]) -> UserError:
    """The error of a file whose calls are not read as polyploids."""
    ploidy = ", ".join(map(str, ploidies_in(haploid)[0]))
    return UserError(
        f"{source} is not a VCF, and samples of ploidy {ploidy} (sample sheet) are read from VCF, "
        "BCF and VCF-Zarr alone; write it as VCF, for example with bcftools view -O z, or compare "
        "the samples in Python (popdesic.pairwise_distance)."
    )


def as_samples(
    batch: SiteBatch, counts: DecodeCounts, kinds: tuple[int, ...], ploidy: np.ndarray
) -> tuple[SiteBatch, DecodeCounts]:
    """Sites and counts of layers (`layer_text_cpu`) as those of samples.

    The first layer has the limits of a call, and the others no phase: so the counts are exact.
    `kinds`: ploidies of the study. `ploidy`: int64 (n_samples,).

    Returns
    -------
    batch : SiteBatch
        `n_samples` is that of columns, `layers` times the samples.
    counts : DecodeCounts
    """
    layers = most_layers(kinds)
    sizes = layers_each(ploidy, kinds) if len(kinds) > 1 else None
    n = batch.n_samples // layers
    genotypes = batch.genotypes
    varied = (genotypes > 0).any(axis=1)
    joined = join_layers(genotypes, layers)
    none = ~(joined > 0).any(axis=1) & (joined == 0).any(axis=1)
    # Where a limit removed all samples with ALT in the first layer, others may have it still.
    left = varied & none & (genotypes[:, :n] <= 0).all(axis=1) & (genotypes[:, n:] > 0).any(axis=1)
    counts.made_reference += int(left.sum())
    called = int((joined >= 0).sum())
    counts.missing = joined.size - called
    counts.unphased = called - counts.phased
    if len(counts.removed):
        counts.removed = counts.removed[:n]
    counts.blocks = [
        tuple(part[sample < n] for part in (chrom, start, end, sample))
        for chrom, start, end, sample in counts.blocks
    ]
    return replace(batch, rows=pack_bed(split_layers(joined, layers, sizes))), counts


def only_haploid(
    batches: Iterator[SiteBatch], source: object, samples: list[str], left_out: LeftOut
) -> Iterator[SiteBatch]:
    """The batches of a file of haploids; of what is left out, other genotypes are missing.

    Raises
    ------
    UserError
        A genotype has two different alleles; names the first.
    """
    ignored = np.array([name in left_out.samples for name in samples], bool)
    for batch in batches:
        genotypes = batch.genotypes
        both = genotypes == 1
        if not both.any():
            yield batch
            continue
        free = both & (ignored | np.array([c in left_out.contigs for c in batch.chrom])[:, None])
        if (both := both & ~free).any():
            row, column = np.argwhere(both)[0]
            raise UserError(
                f"{source}: the genotype of sample '{samples[column]}' "
                f"at {batch.chrom[row]}:{batch.pos[row]} has two different alleles, as "
                f"{int(both.sum())} of {both.size} here have, but its ploidy is 1 in the sample "
                "sheet; set such calls to missing (bcftools +setGT with -- -t q -n . -i "
                "'GT=\"het\"'), or ploidy to 2."
            )
        genotypes[free] = -1
        yield replace(batch, rows=pack_bed(genotypes))
