"""Write imputed genotypes as bgzipped VCF with an index: GT (phased), DS and GP.

Probabilities are written to a thousandth. A call is one of a million texts then, which are made
when they first occur.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..core.files import atomic_path, beside
from .bgzf_writer import BgzfWriter, write_csi

#: Steps of a probability.
STEPS = 1_000
_TEXT_BYTES = 32
_HEADER = (
    '##INFO=<ID=AF,Number=A,Type=Float,Description="Frequency of ALT, from DS">',
    '##INFO=<ID=R2,Number=1,Type=Float,Description="Estimated r2 of imputed and true alleles: '
    "variance of the alleles' probabilities over that of alleles of this frequency\">",
    '##INFO=<ID=ER2,Number=1,Type=Float,Description="Measured r2 of called alleles and what '
    'the calls at all other sites say of them">',
    '##INFO=<ID=IMP,Number=0,Type=Flag,Description="Imputed: the site is not in the targets">',
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype: as called where it is, else the '
    'most probable alleles">',
    '##FORMAT=<ID=DS,Number=1,Type=Float,Description="Expected number of ALT alleles">',
    '##FORMAT=<ID=GP,Number=G,Type=Float,Description="Genotype probabilities">',
)


class ImputedSites(NamedTuple):
    """What is written of consecutive sites of one contig; lists and arrays of n_sites."""

    chrom: str
    pos: np.ndarray
    id: list[str]
    ref: list[str]
    alt: list[str]
    info: list[str]


class ImputedVcf:
    """A VCF that is being written; a context manager, which writes the index at its end.

    Beside a file there is its own index or none, also after a kill.
    """

    def __init__(self, out: Path, samples: list[str], contigs: list[str], about: list[str]) -> None:
        self._out, self._contigs = out, contigs
        self._pos: dict[str, list[np.ndarray]] = {name: [] for name in contigs}
        lines = ["##fileformat=VCFv4.2", *about]
        lines += [f"##contig=<ID={name}>" for name in contigs]
        columns = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
        lines += [*_HEADER, "\t".join([*columns, *samples]), ""]
        self._head = "\n".join(lines).encode()
        n_codes = (STEPS + 1) * (STEPS + 2)
        self._texts = np.zeros(n_codes, f"S{_TEXT_BYTES}")
        self._known = np.zeros(n_codes, bool)

    def __enter__(self) -> ImputedVcf:
        with ExitStack() as stack:
            # left in the opposite order: the index is in place last, and never beside another file
            self._index = stack.enter_context(atomic_path(beside(self._out, ".csi")))
            temporary = stack.enter_context(atomic_path(self._out))
            self._writer = BgzfWriter(stack.enter_context(open(temporary, "wb")))
            self._open = stack.pop_all()
        self._writer.write(self._head)
        self._ends = [self._writer.size]
        return self

    def __exit__(self, *error) -> None:
        if error[0] is not None:
            self._open.__exit__(*error)
            return
        with self._open:
            self._writer.close()
            pos = [np.concatenate(self._pos[name] or [np.zeros(0, int)]) for name in self._contigs]
            with open(self._index, "wb") as file:
                write_csi(file, self._writer, self._contigs, pos, np.array(self._ends))
            beside(self._out, ".csi").unlink(missing_ok=True)  # of what is replaced

    def write(self, sites: ImputedSites, probability: np.ndarray) -> None:
        """Write sites with their calls.

        Parameters
        ----------
        probability : int16 array, (n_sites, n_samples, 2)
            Probability of ALT of both alleles in thousandths; the second is -1 where a sample has
            one.
        """
        codes = probability[..., 0].astype(np.int32) * (STEPS + 2) + probability[..., 1] + 1
        used = np.flatnonzero(np.bincount(codes.ravel(), minlength=len(self._known)))
        for code in used[~self._known[used]].tolist():
            self._texts[code] = call_text(*divmod(code, STEPS + 2))
        self._known[used] = True
        fixed = zip(sites.pos.tolist(), sites.id, sites.ref, sites.alt, sites.info, strict=True)
        for (pos, name, ref, alt, info), row in zip(fixed, codes, strict=True):
            line = f"{sites.chrom}\t{pos}\t{name}\t{ref}\t{alt}\t.\tPASS\t{info}\tGT:DS:GP"
            calls = self._texts[row].tobytes().translate(None, b"\0")
            self._writer.write(line.encode() + calls + b"\n")
            self._ends.append(self._writer.size)
        self._pos[sites.chrom].append(sites.pos)


def call_text(first: int, second: int) -> bytes:
    """The text of a call, with the tab before it.

    Parameters
    ----------
    first : int
        Probability of ALT of the first allele in thousandths.
    second : int
        One more than that of the second; 0 if there is none.
    """
    if not second:
        text = f"\t{int(2 * first >= STEPS)}:{_number(first)}:"
        return f"{text}{_number(STEPS - first)},{_number(first)}".encode()
    second -= 1
    none = round((STEPS - first) * (STEPS - second) / STEPS)
    both = round(first * second / STEPS)
    calls = "|".join(str(int(2 * one >= STEPS)) for one in (first, second))
    shares = ",".join(map(_number, (none, STEPS - none - both, both)))
    return f"\t{calls}:{_number(first + second)}:{shares}".encode()


def _number(steps: int) -> str:
    return f"{steps / STEPS:.3f}".rstrip("0").rstrip(".")
