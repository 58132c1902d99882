"""Read genotype likelihoods of records of VCF and BCF.

A record's likelihoods are its PL, or else its GL, or else its GP. All become phreds, as PL are
(`core.phreds`).
"""

from __future__ import annotations

import numpy as np

from ..core.errors import UserError
from ..core.phreds import MOST_PHRED, phreds_of, phreds_of_shares

#: Fields that are read, the first one that a record has.
FIELDS = ("PL", "GL", "GP")
#: The first of a sample whose likelihoods are missing, and the third of a haploid sample.
NO_PHREDS, ONE_COPY = 254, 255
#: GP may differ from a sum of 1 by this, which rounding to two decimals explains.
GP_ROUNDING = 0.02
#: int32 and bits of float32 that BCF has for a missing value and behind the last one.
_MISSING, _END = -(2**31), -(2**31) + 1
_MISSING_BITS, _END_BITS = 0x7F800001, 0x7F800002


def read_phreds(shown: str, record, samples: list[str]) -> np.ndarray:
    """Phreds of a record of cyvcf2 with two alleles.

    Parameters
    ----------
    shown : str
        The file and the record, for errors.

    Returns
    -------
    uint8 array, (n_samples, 3)
        Of 0, 1 and 2 ALT alleles, the least of a sample 0; of 0 and 1 and ONE_COPY, where it has
        two values. Where they are missing the first is NO_PHREDS.

    Raises
    ------
    UserError
        There are none, or not what their field allows, with the sample.
    """
    name = next((name for name in FIELDS if name in record.FORMAT), None)
    if name is None:
        raise UserError(
            f"{shown}: the record has none of PL, GL and GP; give a file with one of them in all "
            "records, or leave --likelihoods out to take its genotypes."
        )
    given = record.format(name)
    if given is None or given.dtype.kind not in "if":
        raise UserError(
            f"{shown}: the header does not declare {name} as numbers; add its line "
            "(bcftools annotate --header-lines)."
        )
    if given.dtype.kind == "i":
        missing, behind = given == _MISSING, given == _END
    else:
        bits = given.view(np.uint32)
        missing, behind = bits == _MISSING_BITS, bits == _END_BITS
    values = np.where(missing | behind, 0, given.astype(np.float64))
    n = (~behind).sum(axis=1)
    nothing = (missing | behind).all(axis=1)
    _require_rows(shown, name, n, missing, nothing, samples)
    width = max(3, values.shape[1])
    wide = np.zeros((len(samples), width))
    wide[:, : values.shape[1]] = values
    wide = wide[:, :3]
    haploid = ~nothing & (n == 2)
    _require_values(shown, name, np.where(nothing[:, None], 0, wide), nothing, samples)
    found = np.zeros((len(samples), 3), np.uint8)
    for rows, columns in ((~haploid & ~nothing, slice(3)), (haploid, slice(2))):
        if rows.any():
            found[rows, columns] = _of_field(name, wide[rows, columns])
    found[haploid, 2] = ONE_COPY
    found[nothing] = (NO_PHREDS, 0, 0)
    return found


def _of_field(name: str, values: np.ndarray) -> np.ndarray:
    """Phreds of values of a field, (n, 2) or (n, 3)."""
    if name == "PL":
        return phreds_of(values)
    if name == "GL":
        most = values.max(axis=1, keepdims=True)
        return phreds_of(-10 * np.maximum(values - most, -MOST_PHRED / 10))
    return phreds_of_shares(values)


def _require_rows(shown, name, n, missing, nothing, samples) -> None:
    """Refuse another number of values than two or three, and values of which some are missing."""
    wrong = ~nothing & (n != 3) & (n != 2)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise UserError(
            f"{shown}: the {name} of sample '{samples[k]}' has {n[k]} "
            f"{'value' if n[k] == 1 else 'values'}, where a record of two alleles has 3 "
            "(2 of a haploid sample); correct the file."
        )
    partly = ~nothing & missing.any(axis=1)
    if partly.any():
        k = int(np.argmax(partly))
        raise UserError(
            f"{shown}: some values of the {name} of sample '{samples[k]}' are missing; give all of "
            "them, or '.' for none."
        )


def _require_values(shown, name, values, nothing, samples) -> None:
    """Refuse values that the field does not allow; those of `nothing` are zeros."""
    if name == "PL":
        wrong, rule = ~(values >= 0).all(axis=1), "PL are phred-scaled likelihoods, 0 or more"
    elif name == "GL":
        wrong = ~(values <= 0).all(axis=1) | (values == -np.inf).all(axis=1)
        rule = "GL are log10 of likelihoods, 0 or less and not all -inf"
    else:
        wrong = ~((values >= 0) & (values <= 1 + GP_ROUNDING)).all(axis=1)
        wrong |= ~nothing & ~(np.abs(values.sum(axis=1) - 1) <= GP_ROUNDING)
        rule = "GP are probabilities whose sum is 1"
    if wrong.any():
        k = int(np.argmax(wrong))
        raise UserError(
            f"{shown}: the {name} of sample '{samples[k]}' are "
            f"{', '.join(f'{value:g}' for value in values[k].tolist())}; {rule}, so correct the "
            "file."
        )
