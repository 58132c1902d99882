"""Error sentences for records of VCF and BCF files."""

import re

from ..core.errors import UserError

COLUMN_NAMES = ["CHROM", "POS", "ID", "REF", "ALT"]


def show(value: bytes | bytearray | str) -> str:
    """Return `value` quoted, escaped and shortened."""
    text = value if isinstance(value, str) else bytes(value).decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def record_error(
    where: str,
    code: int,
    *,
    value: bytes | str = b"",
    number: int = 0,
    samples: list[str],
    sample: int = 0,
    any_gt: bool = False,
) -> UserError:
    """Return the UserError for an error code of `vcf_text`.

    Parameters
    ----------
    where : str
        File and line (or record).
    value : bytes or str
        The offending text.
    number : int
        Number of columns found, or the index of an empty column.
    sample : int
        Index of the sample of a genotype.
    any_gt : bool
        Whether an earlier record had GT.
    """
    from . import vcf_text_cpu as kernel

    if code == kernel.BAD_COLUMNS:
        return UserError(
            f"{where}: the record has {number} columns where {9 + len(samples)} are expected "
            "(9 and one for each sample, separated by tabs); correct or remove it."
        )
    if code == kernel.EMPTY_COLUMN:
        return UserError(
            f"{where}: the column {COLUMN_NAMES[number]} is empty; fill it, or write '.' where "
            "the value is unknown."
        )
    if code == kernel.BAD_POS:
        return UserError(
            f"{where}: POS {show(value)} is not a whole number from 0 to 2147483647; correct or "
            "remove the record."
        )
    if code == kernel.HEADER_LINE:
        return UserError(
            f"{where}: a header line follows records; if files were joined, join them with "
            "bcftools concat instead."
        )
    if code == kernel.NOT_UTF8:
        return UserError(
            f"{where}: {show(value)} is not UTF-8 text; convert the file, for example with iconv."
        )
    if code == kernel.BAD_NAME:
        return UserError(
            f"{where}: the contig or identifier {show(value)} contains a tab, a line end or a zero "
            "byte, which a table cannot hold; rename it."
        )
    if code == kernel.NO_GT:
        return _no_gt(where, value, any_gt)
    return _call_error(where, code, value, samples[sample])


def _no_gt(where: str, value: bytes | str, any_gt: bool) -> UserError:
    keys = (value.decode("utf-8", "replace") if isinstance(value, bytes) else value).split(":")
    if not any_gt and {"DS", "GP"} & set(keys):
        return UserError(
            f"{where}: FORMAT {show(value)} has dosages or probabilities but no genotypes (GT); "
            "hard calls are needed, so call genotypes first, for example with bcftools +tag2tag."
        )
    return UserError(
        f"{where}: FORMAT {show(value)} has no genotypes (GT); give records with GT or remove "
        "this one."
    )


def _call_error(where: str, code: int, value: bytes | str, sample: str) -> UserError:
    from . import vcf_text_cpu as kernel

    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if text.startswith("!"):  # `layer_text_cpu`
        return _ploidy_error(where, *text[1:].split("!", 1), sample)
    start = f"{where}: genotype {show(value)} of sample {show(sample)}"
    if code in (kernel.HAPLOID_REF, kernel.HAPLOID_ALT):
        return UserError(
            f"{start} is haploid; set contigs.haploid to 'diploidize' (counts its allele twice) "
            "or 'missing' in the configuration, or ploidy to 1 in the sheet if all samples are "
            "haploid."
        )
    if code == kernel.POLYPLOID:
        return UserError(
            f"{start} has more than two alleles; if all calls of the sample have as many, write "
            "the column ploidy in the sample sheet, else remove the sample or the record."
        )
    if code == kernel.HIGH_ALLELE:
        return UserError(
            f"{start} names an allele that the record does not have (it has one ALT or none); "
            "correct or remove the record."
        )
    if re.fullmatch(r"\d*\.\d+(e[+-]?\d+)?", text, re.IGNORECASE):
        return UserError(
            f"{start} is a dosage, and dosages are not genotypes; give hard calls such as 0/1."
        )
    return UserError(f"{start} is not a genotype; write it as 0/0, 0/1, 1/1 or ./. (or with '|').")


def _ploidy_error(where: str, ploidy: str, call: str, sample: str) -> UserError:
    """A call of another ploidy than the sheet declares, or of which a part is called."""
    alleles = re.split("[/|]", call)
    start = f"{where}: genotype {show(call)} of sample {show(sample)}"
    if len(alleles) != int(ploidy):
        return UserError(
            f"{start} is of ploidy {len(alleles)}, but {ploidy} in the sample sheet; "
            "correct the sheet, call the sample again, or remove it."
        )
    return UserError(
        f"{start} has {len(alleles) - alleles.count('.')} of {ploidy} alleles called; call all or "
        "none, for example with bcftools +setGT FILE -- -t ./x -n ."
    )
