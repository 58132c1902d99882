"""PLINK 1 files: what `ingest_cohort` makes of them, compared with a simple reader in Python."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

from fuzz.mutate import damage, odd
from fuzz.runner import check_case

from popdesic.cohort.ingest import ingest_cohort
from popdesic.core.errors import UserError
from popdesic.io.batches import DecodeCounts
from popdesic.io.bed import read_plink_samples
from popdesic.io.genotypes import site_kind
from popdesic.io.plink import stream_plink

MAGIC = b"\x6c\x1b\x01"
ENDS = (".bed", ".bim", ".fam")
#: Genotypes of the two-bit codes, and the reverse.
GENOTYPES = {0b00: 2, 0b01: -1, 0b10: 1, 0b11: 0}
CODES = {genotype: code for code, genotype in GENOTYPES.items()}
POSITION = re.compile(r"[+-]?\d{1,40}(\.0{1,40})?|[+-]?\d(\.\d{1,40})?[eE]\+?\d{1,4}", re.ASCII)


def parse_table(raw: bytes) -> list[list[str]]:
    """Rows of a .bim or .fam; ValueError if it is not a table of six columns."""
    text = raw.decode("utf-8")
    if text.startswith("\ufeff") or "\0" in text or re.search("\r(?!\n)", text):
        raise ValueError("no plain text")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    by_tab = bool(lines) and lines[0].count("\t") == 5
    rows = [line.split("\t") if by_tab else re.findall("[^ \t]+", line) for line in lines]
    if any(len(row) != 6 or "" in row for row in rows):
        raise ValueError("not six columns")
    return rows


def position(text: str) -> int:
    if not POSITION.fullmatch(text) or float(text) % 1 != 0 or abs(float(text)) >= 2**31:
        raise ValueError("position")
    return int(float(text))


def parse_plink(bed: bytes, bim: bytes, fam: bytes):
    """Sites (chrom, pos, id, ref, alt), rows of genotypes, lines and counts by name.

    Raises
    ------
    ValueError
        The files do not fit together or cannot be read.
    """
    people = parse_table(fam)
    names = [row[1] for row in people]
    if not names or len(set(names)) < len(names):
        raise ValueError("samples")
    sites = [(row, position(row[3])) for row in parse_table(bim)]
    size = (len(names) + 3) // 4
    if bed[:3] != MAGIC or len(bed) != 3 + size * len(sites):
        raise ValueError("bed")
    counts = dict.fromkeys(DecodeCounts().as_dict(), 0)
    kept, rows, lines = [], [], []
    for k, ((chrom, name, _, _, alt, ref), pos) in enumerate(sites):
        kind = "unplaced" if chrom == "0" or pos < 1 else site_kind(ref, [alt])
        counts["records"] += 1
        counts[kind] = counts.get(kind, 0) + 1
        if kind not in ("snps", "one_allele"):
            continue
        row = bed[3 + k * size : 3 + (k + 1) * size]
        genotypes = [GENOTYPES[row[s // 4] >> 2 * (s % 4) & 3] for s in range(len(names))]
        if kind == "one_allele":
            counts["snps"] += 1
            counts["half_calls"] += genotypes.count(1)
            if ref in "0.":
                ref, genotypes = alt, [2 - g if g >= 0 else g for g in genotypes]
            alt, genotypes = ".", [0 if g == 0 else -1 for g in genotypes]
        counts["missing"] += genotypes.count(-1)
        counts["unphased"] += len(genotypes) - genotypes.count(-1)
        kept.append((chrom, pos, name, ref, alt))
        rows.append(genotypes)
        lines.append(k + 1)
    return names, [row[4] for row in people], kept, rows, lines, counts


def first_of_each(kept: list[tuple]) -> list[int]:
    """Indices of sites that do not repeat an earlier one; `chr1` and `1` are one contig."""
    seen: dict[tuple, int] = {}
    for k, (chrom, pos, _, ref, alt) in enumerate(kept):
        bare = chrom[3:] if chrom.lower().startswith("chr") and chrom[3:] else chrom
        seen.setdefault((bare, pos, ref.upper(), alt.upper()), k)
    return list(seen.values())


class Plink:
    """Three small files: valid, with odd values, or damaged."""

    name = "plink"

    def prepare(self, folder: Path) -> None:
        for seed in range(40):
            check_case(self, self.generate(random.Random(seed)), folder)

    def generate(self, rng: random.Random) -> tuple:
        """(.bed, .bim, .fam, bytes per chunk, whether the output files are checked)."""
        how = rng.choice(("sound", "values", "values", "columns", "bytes", "bytes", "bed"))
        n_samples = rng.choice((1, 2, 3, 4, 5, 8, 9, 33))
        fam = [
            [f"F{k % 2}", f"S{k}", "0", "0", rng.choice("0129"), rng.choice(("-9", "1", "2.5"))]
            for k in range(n_samples)
        ]
        bim, pos = [], 1
        for _ in range(rng.choice((0, 1, 2, 3, 5, 9))):
            pos += rng.randrange(3) if rng.random() < 0.95 else -pos
            chrom = rng.choice(("1", "1", "1", "chr1", "X", "0", "Un|é"))
            name = rng.choice((".", "rs1", '"q"', "rs2;x", "é"))
            alt, ref = rng.choice("ACGTacgt"), rng.choice("ACGT")
            if rng.random() < 0.2:
                ref, alt = rng.choice(((ref, "0"), (ref, "."), ("0", alt), ("0", "0")))
            elif rng.random() < 0.15:
                alt = rng.choice(("0", "AC", "D", "N", "<X>", "*", ".", "A,C"))
            bim.append([chrom, name, rng.choice(("0", "0.5")), str(pos), alt, ref])
        rows = [[rng.choice((0, 0, 1, 2, -1)) for _ in range(n_samples)] for _ in bim]
        for _ in range(rng.randint(1, 2) if how == "values" else 0):
            row = rng.choice(rng.choice([table for table in (bim, fam) if table]))
            value = odd(rng)
            row[3 if row in bim and rng.random() < 0.5 else rng.randrange(6)] = value
        if how == "columns":
            table = rng.choice([table for table in (bim, fam) if table])
            row = rng.choice(table)
            kind = rng.randrange(4)
            if kind == 0:
                del row[rng.randrange(len(row))]
            elif kind == 1:
                row.insert(rng.randrange(len(row)), rng.choice(("", " ", "x")))
            elif kind == 2:
                table.insert(rng.randrange(len(table) + 1), rng.choice(([], [""], [" "], row)))
            else:
                rng.shuffle(row)
        files = [MAGIC + b"".join(self._bed_row(rng, row) for row in rows)]
        for table in (bim, fam):
            separator = rng.choice(("\t", "\t", "\t", " ", "  "))
            end = rng.choice(("\n", "\n", "\n", "\r\n"))
            text = end.join(separator.join(row) for row in table)
            text += end if table and rng.random() < 0.9 else ""
            files.append(text.encode("utf-8", "surrogatepass"))
        if how == "bytes":
            at = rng.choice((1, 2))
            files[at] = damage(rng, files[at])
        if how == "bed":
            files[0] = damage(rng, files[0])
        return (*files, rng.choice((1, 10, 1 << 20, 1 << 20)), rng.random() < 0.1)

    @staticmethod
    def _bed_row(rng: random.Random, row: list[int]) -> bytes:
        value = sum(CODES[genotype] << 2 * k for k, genotype in enumerate(row))
        size = (len(row) + 3) // 4
        padding = rng.getrandbits(8) if rng.random() < 0.1 else 0  # it has no meaning
        value |= (padding << 2 * len(row)) & ((1 << 8 * size) - 1)
        return value.to_bytes(size, "little")

    def check(self, case: tuple, folder: Path) -> str:
        *files, chunk, whole = case
        prefix = folder / "in"
        for end, content in zip(ENDS, files, strict=True):
            (folder / f"in{end}").write_bytes(content)
        try:
            expected = parse_plink(*files)
        except ValueError as error:
            try:
                for _ in stream_plink(prefix, DecodeCounts(), _chunk_bytes=chunk):
                    pass
            except UserError as refusal:
                assert str(prefix) in str(refusal)
                raise
            raise AssertionError(f"not refused: {error}") from None
        names, sexes, kept, rows, lines, counts = expected
        if whole:
            return self._check_written(folder, *expected)
        assert read_plink_samples(prefix) == (names, sexes)
        found_counts = DecodeCounts()
        found: tuple[list, list, list] = ([], [], [])
        for batch in stream_plink(prefix, found_counts, _chunk_bytes=chunk):
            columns = (batch.chrom, batch.pos.tolist(), batch.id, batch.ref, batch.alt)
            found[0].extend(zip(*columns, strict=True))
            found[1].extend(batch.genotypes.tolist())
            found[2].extend(batch.line.tolist())
        assert found[0] == kept, f"{found[0]}, not {kept}"
        assert found[1] == rows
        assert found[2] == lines
        assert found_counts.as_dict() == counts, f"{found_counts}, not {counts}"
        return "equal"

    @staticmethod
    def _check_written(folder: Path, names, sexes, kept, rows, lines, counts) -> str:
        """Check the files of the decoded cohort byte by byte."""
        first = first_of_each(kept)
        if not first:
            ingest_cohort(folder / "in", folder / "raw")  # a UserError reports this
            raise AssertionError("no site, and not refused")
        told = ingest_cohort(folder / "in", folder / "raw").as_dict()
        assert told == counts | {
            "duplicates": len(kept) - len(first),
            "sites": len(first),
            "samples": len(names),
        }
        used: dict[str, str] = {}  # a contig has the name of its first site
        for chrom, *_ in kept:
            used.setdefault(chrom.removeprefix("chr"), chrom)
        written = [
            (used[chrom.removeprefix("chr")], *rest, "0" if alt == "." else alt)
            for chrom, *rest, alt in (kept[k] for k in first)
        ]
        bim = "".join(map("{0[0]}\t{0[2]}\t0\t{0[1]}\t{0[4]}\t{0[3]}\n".format, written))
        assert (folder / "raw.bim").read_bytes() == bim.encode()
        known = [sex if sex in ("1", "2") else "0" for sex in sexes]
        people = zip(names, known, strict=True)
        fam = "".join(f"0\t{name}\t0\t0\t{sex}\t-9\n" for name, sex in people)
        assert (folder / "raw.fam").read_bytes() == fam.encode()
        size = (len(names) + 3) // 4
        bed = MAGIC
        for k in first:
            value = sum(CODES[genotype] << 2 * s for s, genotype in enumerate(rows[k]))
            bed += value.to_bytes(size, "little")
        assert (folder / "raw.bed").read_bytes() == bed
        assert json.loads((folder / "raw.json").read_text())["counts"] == told
        return "written"


TARGETS = [Plink()]
