"""How many alleles the calls of each sample have, in the first records of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..io.formats import is_zarr
from ..io.vcf_header import VcfHeader, read_head
from .contigs import AUTO, genome_of


def first_ploidies(path: Path | str, n_bytes: int) -> dict[str, set[int]]:
    """Numbers of alleles of the calls of each sample, in about so many bytes of a file.

    Calls on sex chromosomes and mitochondria do not count, nor does a point alone.

    Parameters
    ----------
    path : Path
        VCF, BCF or VCF-Zarr, of which the first row of chunks is read.

    Raises
    ------
    UserError
        It is none of them.
    """
    if is_zarr(path):
        samples, records = _of_zarr(path)
        return _numbers_by_sample(samples, records)
    header, text, pieces = read_head(Path(path), n_bytes)
    while len(text) < n_bytes and (piece := next(pieces, None)) is not None:
        text += b"".join(piece.read())
    lines = header.kind != "bcf"
    records = _of_lines(text, len(header.samples)) if lines else _of_bcf(header, text)
    return _numbers_by_sample(header.samples, list(records))


def _numbers_by_sample(
    samples: Sequence[str], records: list[tuple[str, list[int]]]
) -> dict[str, set[int]]:
    """Numbers of alleles of each sample on contigs that all have alike."""
    found: dict[str, set[int]] = {name: set() for name in samples}
    others = set(genome_of(dict.fromkeys((c for c, _ in records), 1), {}).excluded(AUTO))
    for contig, numbers in records:
        for own, number in zip(
            found.values(), numbers if contig not in others else (), strict=False
        ):
            if number:
                own.add(number)
    return found


def _of_lines(text: bytes, n_samples: int) -> Iterator[tuple[str, list[int]]]:
    """Contig of each record, and alleles of its calls, 0 where none is called; of whole lines."""
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        record = line.decode("utf-8", "replace").split("\t")
        keys = record[8].split(":") if len(record) == 9 + n_samples else []
        if "GT" not in keys:
            continue
        at = keys.index("GT")
        calls = [(column.split(":") + ["."] * (at + 1))[at] for column in record[9:]]
        yield (
            record[0],
            [(1 + c.count("/") + c.count("|")) * bool(c.strip("./|")) for c in calls],
        )


def _of_zarr(path: Path) -> tuple[list[str], list[tuple[str, list[int]]]]:
    """Samples of a store, and as `_of_lines` of its first row of chunks."""
    from ..io.zarr_store import CALLS, FAULTS, FILL, SITE_ARRAYS, damaged, open_store

    store = open_store(path)
    try:
        contigs = np.asarray(store.group[SITE_ARRAYS[0]][: store.n_rows])
        calls = np.asarray(store.group[CALLS][: store.n_rows])
    except FAULTS as error:
        raise damaged(path, error) from None
    numbers = np.where((calls >= 0).any(axis=2), (calls > FILL).sum(axis=2), 0)
    names = [store.contigs[k] for k in contigs.tolist()]
    return store.samples, list(zip(names, numbers.tolist(), strict=True))


def _of_bcf(header: VcfHeader, data: bytes) -> Iterator[tuple[str, list[int]]]:
    """As `_of_lines`, of whole records."""
    from ..io.bcf import read_dictionaries
    from ..io.layer_bcf import numbers_of_alleles

    contigs, keys = read_dictionaries(header)
    gt_key = next((index for index, name in keys.items() if name == "GT"), -1)
    for contig, numbers in numbers_of_alleles(
        np.frombuffer(data, np.uint8), len(header.samples), gt_key
    ):
        yield contigs.get(contig, ""), numbers
