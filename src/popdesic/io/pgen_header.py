"""Sizes and record types of a PLINK 2 .pgen file, read without Pgenlib.

Format: "The actual format" in plink-ng's pgenlib_misc.h. The magic number, the storage mode, the
numbers of variants and samples and a control byte take 12 bytes. Then, for storage mode 0x10, the
offsets of the records of each block of 65 536 variants, and for each block the types and the
lengths of its records. From these follows the size of the whole file, so that a file that was cut
short is noticed before it is read: Pgenlib reads such a file up to the end and then says "error 4".
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..core.errors import UserError
from ..core.files import open_regular

PGEN_ENDS = (".pgen", ".pvar", ".psam")
MAGIC = b"\x6c\x1b"
#: Storage modes: records of one length, with types that the mode gives; records of any length.
ONE_LENGTH = {2: 0x00, 3: 0x40, 4: 0xC0}
ANY_LENGTH = 0x10
BLOCK_VARIANTS = 1 << 16
FIXED_BYTES = 12
# Bits of a record's type.
MULTIALLELIC, PHASED, DOSAGES = 0x08, 0x10, 0x60


@dataclass(frozen=True)
class PgenHeader:
    """Content of a .pgen header.

    Attributes
    ----------
    n_sites, n_samples : int
    types : (n_sites) uint8
        Type of each record: a mask of MULTIALLELIC, PHASED, DOSAGES and bits of its compression.
    """

    path: Path
    n_sites: int
    n_samples: int
    types: np.ndarray

    def count(self, bits: int) -> int:
        """Return the number of records that have one of these bits."""
        return int(np.count_nonzero(self.types & bits))


def read_pgen_header(path: Path) -> PgenHeader:
    """Read the header of a .pgen file and compare the file's size with it.

    Raises
    ------
    FileNotFoundError
        The caller reports it.
    UserError
        The file is not PGEN, of a storage mode that cannot be read, or cut short.
    """
    with open_regular(path) as file:
        fixed = file.read(FIXED_BYTES)
        if fixed[:2] != MAGIC:
            raise UserError(
                f"{path} is not a PLINK 2 .pgen file: it starts with "
                f"{fixed[:2].hex(' ') or 'nothing'}, not with {MAGIC.hex(' ')}; write it again "
                "with plink2 --make-pgen."
            )
        mode = fixed[2] if len(fixed) > 2 else 0
        control = fixed[11] if len(fixed) == FIXED_BYTES else 0
        if mode == 1:
            raise UserError(
                f"{path} is a PLINK 1 .bed file under the name of a .pgen file; rename it, or "
                "write it again with plink2 --make-pgen."
            )
        if (mode != ANY_LENGTH and mode not in ONE_LENGTH) or (mode == ANY_LENGTH and control & 8):
            raise UserError(
                f"{path} has the storage mode 0x{mode:02x} (control byte 0x{control:02x}), which "
                "cannot be read; write it again with plink2 --make-pgen."
            )
        if len(fixed) < FIXED_BYTES:
            raise _cut_short(path)
        n_sites = int.from_bytes(fixed[3:7], "little")
        n_samples = int.from_bytes(fixed[7:11], "little")
        size = file.seek(0, 2)
        file.seek(FIXED_BYTES)
        if mode in ONE_LENGTH:
            row = (n_samples + 3) // 4 + {2: 0, 3: 2 * n_samples, 4: 4 * n_samples}[mode]
            flags = (n_sites + 7) // 8 if control >> 6 == 3 else 0
            if size < FIXED_BYTES + flags + n_sites * row:
                raise _cut_short(path)
            return PgenHeader(path, n_sites, n_samples, _same(n_sites, ONE_LENGTH[mode]))
        types, end = _read_blocks(file, path, n_sites, control, size)
        if size < end:
            raise _cut_short(path)
    return PgenHeader(path, n_sites, n_samples, types)


def _same(n_sites: int, kind: int) -> np.ndarray:
    """An array that holds one value without taking memory for each site."""
    return np.broadcast_to(np.uint8(kind), n_sites)


def _read_blocks(file, path: Path, n_sites: int, control: int, size: int) -> tuple[np.ndarray, int]:
    """Return the types of all records (n_sites) and the end of the last one in the file."""
    n_blocks = -(-n_sites // BLOCK_VARIANTS)
    length_bytes, wide = (control & 3) + 1, bool(control & 4)
    alt_bytes, flags = (control >> 4) & 3, control >> 6 == 3
    if FIXED_BYTES + 8 * n_blocks + n_sites * (length_bytes + (1 if wide else 0.5)) > size:
        raise _cut_short(path)  # before memory is asked for
    starts = np.frombuffer(file.read(8 * n_blocks), "<u8")
    types = np.empty(n_sites, np.uint8)
    end = 0
    for block, start in enumerate(starts.tolist()):
        first = block * BLOCK_VARIANTS
        n_here = min(BLOCK_VARIANTS, n_sites - first)
        raw = np.frombuffer(_read(file, path, n_here if wide else (n_here + 1) // 2), np.uint8)
        if not wide:  # two types a byte, the first in the low bits
            raw = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:n_here]
        types[first : first + n_here] = raw
        lengths = np.frombuffer(_read(file, path, n_here * length_bytes), np.uint8)
        weights = 1 << 8 * np.arange(length_bytes, dtype=np.int64)
        total = int((lengths.reshape(-1, length_bytes).sum(axis=0, dtype=np.int64) * weights).sum())
        end = max(end, start + total)
        file.seek(n_here * alt_bytes + ((n_here + 7) // 8 if flags else 0), 1)
    return types, end


def _read(file, path: Path, n_bytes: int) -> bytes:
    data = file.read(n_bytes)
    if len(data) < n_bytes:
        raise _cut_short(path)
    return data


def _cut_short(path: Path) -> UserError:
    return UserError(
        f"{path} is cut short: it has fewer bytes than its header says; copy or write it again."
    )
