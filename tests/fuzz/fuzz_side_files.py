"""Files beside the sheets: read by definition, or refused with one sentence that names the file."""

from __future__ import annotations

import functools
import gzip
import logging
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
from fuzz.damage import ODD, damaged

from popdesic.cohort.beagle import _cut_map, _cut_reference
from popdesic.cohort.genetic_maps import read_map
from popdesic.cohort.reference_check import read_fasta
from popdesic.core.errors import UserError
from popdesic.epistasis.reorder import read_restriction
from popdesic.study.configuration import fill_config
from popdesic.study.validation import check_side_files

CONTIGS = ["1", "chr1", "2", "chr2", "X", "CHRX", "7", "scaffold_1", "chr"]
PANEL = pd.DataFrame(
    [
        (contig, 100 * k + 50, f"rs{contig}_{k}", "ACGT"[k % 4], "CGTA"[k % 4])
        for contig in ("1", "chr2", "X")
        for k in range(6)
    ],
    columns=["chrom", "pos", "id", "ref", "alt"],
)
#: Rows and positions of the panel's sites, by contig.
BY_CONTIG: dict[str, list[tuple[int, int]]] = {}
for _k, (_contig, _pos) in enumerate(zip(PANEL.chrom, PANEL.pos, strict=True)):
    BY_CONTIG.setdefault(_contig.removeprefix("chr"), []).append((_k, _pos))
ENDS = ["\n", "\r\n", "\r"]


def bare(contig: str) -> str:
    return contig[3:] if contig.lower().startswith("chr") and len(contig) > 3 else contig


def text_of(raw: bytes) -> str:
    return (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode("utf-8-sig")


def lines_of(raw: bytes) -> list[list[str]]:
    """Words of each non-blank line."""
    return [words for line in re.split("\r\n|\r|\n", text_of(raw)) if (words := line.split())]


def packed(rng: random.Random, text: str, clean: bool) -> bytes:
    raw = text.encode()
    if not clean and rng.random() < 0.7:
        raw = damaged(rng, raw)
    return gzip.compress(raw, mtime=0) if rng.random() < 0.15 else raw


class SideFile:
    """A case is `raw`, the content, and `clean`, whether it was written without errors."""

    name = ""
    key = ""

    def check(self, case: dict, folder: Path) -> str:
        path = folder / "side"
        path.write_bytes(case["raw"])
        try:
            self.first_look(folder)
            found = self.read(path, folder)
        except UserError as error:
            assert str(path) in str(error) or "side (" in str(error), error
            assert not case["clean"], f"refused without a fault: {error}"
            raise
        self.compare(found, case["raw"])
        return "equal"

    def first_look(self, folder: Path) -> None:
        """The check made before any job."""
        check_side_files(self.filled, folder)

    @functools.cached_property
    def filled(self) -> dict:
        """The configuration with its defaults; filling them in takes longer than a case."""
        return fill_config(self.configuration())

    def configuration(self) -> dict:
        inner = "side"
        for name in reversed(self.key.split(".")):
            inner = {name: inner}
        return inner


class SiteList(SideFile):
    name, key = "site_list", "epistasis.restrict"

    def generate(self, rng: random.Random) -> dict:
        clean = rng.random() < 0.3
        rows = []
        for _ in range(rng.randint(1, 8)):
            contig, start = rng.choice(CONTIGS), rng.randint(0, 700)
            rows.append([contig, str(start), str(start + rng.randint(0, 300)), "name"])
        rows[0] = ["chr1", "0", "100", "name"]
        if rng.random() < 0.5:
            sites = rng.choices(PANEL.to_numpy().tolist(), k=len(rows))
            names = [[s[2]] if rng.random() < 0.5 else [":".join(map(str, [*s[:2], *s[3:]]))]
                     for s in sites]  # fmt: skip
            rows = names + [[rng.choice(["rs9", "chr1:5:A:C", "x"])]] * rng.randint(0, 2)
        if not clean and rng.random() < 0.5:
            row = rows[rng.randrange(len(rows))]
            row[rng.randrange(len(row))] = rng.choice(ODD)
        lines = [rng.choice(["\t", " "]).join(row) for row in rows]
        if rng.random() < 0.3:
            lines.insert(0, rng.choice(["# x", "track name=y", "browser position 1", ""]))
        end = rng.choice(ENDS)
        return {"raw": packed(rng, end.join(lines), clean), "clean": clean}

    def first_look(self, folder: Path) -> None:
        pass  # the whole list is read before any job

    def prepare(self, folder: Path) -> None:
        logging.disable(logging.WARNING)  # rows that match no site of the panel

    def read(self, path: Path, folder: Path):
        return read_restriction(path, PANEL)

    def compare(self, found, raw: bytes) -> None:
        rows = [w for w in lines_of(raw) if not w[0].startswith("#")]
        rows = [w for w in rows if len(w) == 1 or w[0] not in ("track", "browser")]
        for keep, (chrom, pos, name, ref, alt) in zip(
            found, PANEL.to_numpy().tolist(), strict=True
        ):
            if len(rows[0]) == 1:
                keys = {f"{bare(w[0].split(':')[0])}:{w[0].partition(':')[2]}" for w in rows}
                assert keep == ([name] in rows or f"{bare(chrom)}:{pos}:{ref}:{alt}" in keys)
            else:
                hits = [bare(w[0]) == bare(chrom) and int(w[1]) < pos <= int(w[2]) for w in rows]
                assert keep == any(hits)


class LdMap(SideFile):
    name, key = "ld_map", "genetic_map"

    def generate(self, rng: random.Random) -> dict:
        clean = rng.random() < 0.3
        header = ["chrom", "pos", "cm", *rng.sample(["rate", "id"], rng.randint(0, 2))]
        order = rng.sample(range(len(header)), len(header))
        rows = []
        for contig in rng.sample(["1", "chr2", "X"], 3):
            pos, cm = 0, 0.0
            for k in range(rng.randint(1 + clean, 4)):
                values = [contig, str(pos), repr(cm), "1.5", "x"][: len(header)]
                rows.append([values[k] for k in order])
                # a clean map gives a rate
                step = rng.choice([0, 0.5, 1e-9, 3]) if k or not clean else 0.5
                pos, cm = pos + rng.randint(clean, 400), cm + step
        lines = [[header[k] for k in order], *rows]
        if not clean and rng.random() < 0.6:
            row = lines[rng.randrange(len(lines))]
            row[rng.randrange(len(row))] = rng.choice(ODD)
        gap, end = rng.choice(["\t", " ", "  "]), rng.choice(ENDS)
        text = end.join(gap.join(row) for row in lines) + end * rng.randint(0, 2)
        return {"raw": packed(rng, text, clean), "clean": clean}

    def read(self, path: Path, folder: Path):
        return read_map(path, PANEL)

    def compare(self, found, raw: bytes) -> None:
        header, *rows = lines_of(raw)
        if "chrom" in header:
            chrom, pos, cm = (header.index(name) for name in ("chrom", "pos", "cm"))
        else:  # PLINK's columns
            chrom, pos, cm = 0, 3, 2
            rows = rows if header[2:] == ["cm", "pos"] else [header, *rows]
        assert np.isfinite(found).all()
        of = {
            name: [row for row in rows if bare(row[chrom]) == name] for name in map(bare, CONTIGS)
        }
        spans = [
            [float(part[k][j]) for k in (0, -1)] for part in of.values() if part for j in (pos, cm)
        ]
        bp, length = (sum(b - a for a, b in spans[k::2]) for k in (0, 1))
        for contig, sites in BY_CONTIG.items():
            x, y = ([float(row[k]) for row in of[contig]] for k in (pos, cm))
            assert sorted(set(x)) == x and sorted(y) == y and y[0] >= 0
            for k, place in sites:
                expected = float(np.interp(place, x, y))
                if not x[0] <= place <= x[-1]:
                    expected += length / bp * (place - min(max(place, x[0]), x[-1]))
                np.testing.assert_allclose(found[k], expected, rtol=1e-9, atol=1e-12)


class PlinkMap(SideFile):
    name, key = "plink_map", "genetic_map"

    def generate(self, rng: random.Random) -> dict:
        clean = rng.random() < 0.3
        lines = [["#", "x"]] if rng.random() < 0.2 else []
        for contig in [*rng.sample(["1", "chr2", "X", "7"], 3), "1" if clean else "chr1"]:
            if clean and any(row[0] == contig for row in lines):
                continue
            pos, cm = rng.randint(0, 9), 0.0
            for _ in range(rng.randint(1, 4)):
                lines.append([contig, rng.choice([".", "rs1"]), repr(cm), str(pos)])
                pos, cm = pos + rng.randint(clean, 400), cm + rng.choice([0, 0.5, 1e-9, 3])
        if not clean and rng.random() < 0.6:
            row = lines[rng.randrange(len(lines))]
            row[rng.randrange(len(row))] = rng.choice(ODD)
        gap, end = rng.choice(["\t", " ", "  "]), rng.choice(ENDS)
        text = end.join(gap.join(row) for row in lines) + end * rng.randint(0, 2)
        return {"raw": packed(rng, text, clean), "clean": clean}

    def configuration(self) -> dict:
        return {"genetic_map": "side"}

    def read(self, path: Path, folder: Path):
        usable = _cut_map(path, "chr1", folder / "cut")
        return usable, (folder / "cut").read_text()

    def compare(self, found, raw: bytes) -> None:
        usable, text = found
        rows = [words for words in lines_of(raw) if words[0] in ("1", "chr1")]
        cut = [line.split() for line in text.splitlines()]
        assert usable == (len(rows) > 1)
        assert [c[:2] for c in cut] == [["1", "."]] * len(rows)
        assert [(float(c[2]), float(c[3])) for c in cut] == [
            (float(w[2]), float(w[3])) for w in rows
        ]


class Reference(SideFile):
    name, key = "reference", "impute.reference"

    def generate(self, rng: random.Random) -> dict:
        clean = rng.random() < 0.3
        n = rng.randint(1, 4)
        names = [f"R{k}" for k in range(n)]
        lines = ["##fileformat=VCFv4.2", *["##x=y"] * rng.randint(0, 2)]
        fixed = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
        records = [[*fixed, *names]]
        for contig, pos, _, ref, alt in rng.choices(PANEL.to_numpy().tolist(), k=rng.randint(0, 8)):
            contig = rng.choice([contig, f"chr{bare(contig)}", bare(contig)])
            alleles = rng.choice([[ref, alt], [alt, ref], [ref, "T,C"], [ref.lower(), alt]])
            more = rng.random() < 0.3
            calls = [rng.choice(["0|0", "0|1", "1|0", "1|1"]) + ":9" * more for _ in names]
            head = [contig, str(pos), ".", *alleles, ".", "PASS", ".", "GT:DP" if more else "GT"]
            records.append([*head, *calls])
        if not clean and rng.random() < 0.6:
            row = records[rng.randrange(len(records))]
            row[rng.randrange(len(row))] = rng.choice([*ODD, "0/1", "0", "1|2", ".|.", "0|1|1"])
        lines += ["\t".join(record) for record in records]
        end = rng.choice(ENDS[:2])
        return {"raw": packed(rng, end.join(lines) + end, clean), "clean": clean}

    def configuration(self) -> dict:
        return {"impute": {"method": "beagle", "reference": "side"}}

    def read(self, path: Path, folder: Path):
        within, swapped = _cut_reference(path, PANEL[:6], "1", folder / "cut")
        return within, swapped, (folder / "cut").read_bytes()

    def compare(self, found, raw: bytes) -> None:
        within, swapped, cut = found
        data = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
        there: dict[tuple, tuple[bytes, bool]] = {}
        for line in data.split(b"\n"):
            words = line.rstrip(b"\r").split(b"\t")
            if line.startswith(b"#") or words[0] not in (b"1", b"chr1"):
                continue
            ref, alt = (allele.decode().upper() for allele in words[3:5])
            for a, b, turned in ((ref, alt, False), (alt, ref, True)):
                ambiguous = {a, b} in ({"A", "T"}, {"C", "G"})
                match = (PANEL.chrom == "1") & (PANEL.pos == int(words[1]))
                match &= (PANEL.ref == a) & (PANEL.alt == b)
                if match.any() and not (turned and ambiguous):
                    calls = b"\t".join(call.split(b":")[0] for call in words[9:])
                    there.setdefault(int(np.flatnonzero(match)[0]), (calls, turned))
                    break
        assert np.flatnonzero(within).tolist() == sorted(there)
        assert np.flatnonzero(swapped).tolist() == sorted(k for k, v in there.items() if v[1])
        rows = [line.split(b"\t", 9) for line in cut.split(b"\n") if line and line[:1] != b"#"]
        assert {int(row[2]): row[9] for row in rows} == {k: v[0] for k, v in there.items()}


class Fasta(SideFile):
    name, key = "fasta", "qc.fasta"

    def generate(self, rng: random.Random) -> dict:
        clean = rng.random() < 0.3
        lines = [""] * rng.randint(0, 1)
        for name in rng.sample(["1", "chr2", "X", "scaffold_1 words", "é"], rng.randint(1, 4)):
            lines.append(f">{name}")
            for _ in range(rng.randint(0, 4)):
                lines.append("".join(rng.choices("ACGTacgtnN-*R", k=rng.randint(0, 60))))
        if not clean and rng.random() < 0.6:
            lines[rng.randrange(len(lines))] += rng.choice([*ODD, ">", " "])
        end = rng.choice(ENDS[:2])
        return {
            "raw": packed(rng, end.join(lines) + end * rng.randint(0, 1), clean),
            "clean": clean,
        }

    def read(self, path: Path, folder: Path):
        return [(name, bases.tobytes()) for name, bases in read_fasta(path)]

    def compare(self, found, raw: bytes) -> None:
        data = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
        parts = re.split(rb"(?m)^>", data)
        assert not parts[0].strip()
        expected = []
        for part in parts[1:]:
            head, _, rest = part.partition(b"\n")
            bases = b"".join(line.strip() for line in rest.split(b"\n")).upper()
            expected.append((head.split()[0].decode(), bases))
        assert found == expected
        assert re.fullmatch(rb"[A-Z*.-]*", b"".join(bases for _, bases in found))


TARGETS = [SiteList(), LdMap(), PlinkMap(), Reference(), Fasta()]
