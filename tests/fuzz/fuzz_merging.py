"""Cohorts called apart: files, masks and strands of known samples, from files to the panel.

Each case has a small genome, samples whose alleles are known, and cohorts that tell of them in
different ways: all sites, variant sites alone with a mask or on one's own word, a gVCF, PLINK files
with alleles in either order, one known allele, or the other strand; VCF-Zarr and PLINK 2 files.
Some are turned to the genome, or to one of its contigs. A slow merge of dictionaries says what
panel and genotypes must be, by regions, call rate, frequency and Hardy-Weinberg proportions of
labelled groups. Besides, no genotype may differ from the truth, and the order in which founders are
given does not change a byte.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import shutil
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import zarr
from fuzz.runner import check_case
from oracles.reference import bed_bytes, hwe_exact, hwe_excess
from scipy.stats import binom
from support.bcf_files import bcf_of, calls_of, format_of, header_of, record_of, typed

from popdesic.cohort.absent import Absent
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.hwe_groups import COMMON, DEPARTS, FIFTH, LEAST_SAMPLES, LEAST_SITES
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.core.errors import UserError
from popdesic.io.bed import open_bed, read_fam
from popdesic.io.genotypes import unpack_bed

BASES = "ACGT"
OTHER = dict(zip(BASES, "TGCA", strict=True))
CONTIGS, LENGTH = ("1", "2"), 40
#: Contigs of a BCF file, FORMAT and INFO keys, by their numbers in the header.
META = (
    "##fileformat=VCFv4.2\n"
    '##FILTER=<ID=PASS,Description="All filters passed",IDX=0>\n'
    '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype",IDX=1>\n'
    '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth",IDX=2>\n'
    '##INFO=<ID=END,Number=1,Type=Integer,Description="End",IDX=3>\n'
    '##FILTER=<ID=q10,Description="low",IDX=4>\n'
    '##FILTER=<ID=q20,Description="low",IDX=5>\n'
)
COLUMNS = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
FILTERS = {".": b"\x00", "PASS": b"\x11\x00", "q10": b"\x11\x04", "q20;q10": b"\x21\x05\x04"}


# --- cases ----------------------------------------------------------------------------------------


def make_truth(rng: random.Random, cohorts: dict[str, int]) -> tuple[dict, dict]:
    """Bases of each contig, and at variable places the two alleles of each sample by cohort."""
    bases = {contig: "".join(rng.choices(BASES, k=LENGTH)) for contig in CONTIGS}
    truth = {}
    for contig in CONTIGS:
        for pos in rng.sample(range(1, LENGTH + 1), rng.randint(4, 16)):
            ref = bases[contig][pos - 1]
            alts = rng.sample([b for b in BASES if b != ref], 2 if rng.random() < 0.1 else 1)
            truth[contig, pos] = {}
            for name, n in cohorts.items():
                share = rng.choice((0, 0.1, 0.4, 0.9, 1))
                pool = [ref, *alts]
                weights = [1 - share, *[share / len(alts)] * len(alts)]
                draw = [rng.choices(pool, weights, k=2) for _ in range(n)]
                truth[contig, pos][name] = [tuple(pair) for pair in draw]
    return bases, truth


def vcf_records(rng, name: str, n: int, bases: dict, truth: dict, kind: str, quirks: set) -> list:
    """Records (contig, pos, ref, alts, filter, calls, depths) of a cohort's VCF, in order.

    A call is two indices of alleles, or None for an unknown one.
    """
    records = []
    for (contig, pos), by_cohort in sorted(truth.items()):
        pairs, ref = by_cohort[name], bases[contig][pos - 1]
        own = sorted({b for pair in pairs for b in pair} - {ref})
        everyone = {b for pairs in by_cohort.values() for pair in pairs for b in pair}
        alts = own if kind != "joint" or rng.random() < 0.3 else sorted(everyone - {ref})
        if not alts and kind != "joint":
            continue
        rows = [alts]
        if len(alts) > 1 and "split" in quirks:
            rows = [[alt] for alt in alts]
        for row in rows:
            index = {ref: 0} | {alt: k for k, alt in enumerate(row, 1)}
            calls = [[index.get(b, 0) for b in pair] for pair in pairs]
            records.append([contig, pos, ref, row, "PASS", calls, [9] * n])
    covered = {(r[0], r[1]) for r in records}
    if kind == "joint" and "all sites" in quirks:
        for contig in CONTIGS:
            for pos in range(1, LENGTH + 1):
                if (contig, pos) not in truth and (contig, pos) not in covered:
                    ref = bases[contig][pos - 1]
                    records.append([contig, pos, ref, [], "PASS", [[0, 0]] * n, [9] * n])
        records.sort(key=lambda r: CONTIGS.index(r[0]))
        records.sort(key=lambda r: (CONTIGS.index(r[0]), r[1]))
    for record in records:
        record[5] = [list(call) for call in record[5]]
        if "missing" in quirks:
            for s in range(n):
                if rng.random() < 0.1:
                    record[5][s] = rng.choice(([None, None], [None, record[5][s][1]]))
        if "depth" in quirks:
            record[6] = [rng.choice((0, 3, 9)) for _ in range(n)]
        if "filter" in quirks and rng.random() < 0.1:
            record[4] = rng.choice(("q10", "q20;q10"))
        elif "filter" in quirks and rng.random() < 0.1:
            record[4] = "."
    if "indels" in quirks:
        for _ in range(rng.randint(1, 4)):
            contig, pos = rng.choice(CONTIGS), rng.randint(1, LENGTH - 3)
            ref = bases[contig][pos - 1 : pos - 1 + rng.randint(1, 3)]
            alt = rng.choice((ref[0] + "G" * 4, "*", "<DEL>"))
            here = [contig, pos, ref, [alt], "PASS", [[0, rng.randint(0, 1)] for _ in range(n)]]
            records.insert(rng.randint(0, len(records)), [*here, [9] * n])
        records.sort(key=lambda r: (CONTIGS.index(r[0]), r[1]))
    if "repeats" in quirks and records:
        k = rng.randrange(len(records))
        again = [*records[k][:5], [[0, 0] for _ in range(n)], [9] * n]
        records.insert(k + 1 if rng.random() < 0.5 else len(records), again)
    if "shuffled" in quirks:
        rng.shuffle(records)
    return records


def gvcf_blocks(rng, name: str, n: int, truth: dict, records: list) -> list:
    """Reference blocks (contig, pos, end, filter, calls, depths) around a cohort's records."""
    listed = {(r[0], r[1]) for r in records}
    blocks = []
    for contig in CONTIGS:
        pos = rng.randint(1, 4)
        while pos <= LENGTH:
            end = pos
            while end < LENGTH and (contig, end + 1) not in listed and rng.random() < 0.85:
                end += 1
            if (contig, pos) in listed:
                pos += 1
                continue
            calls, depths = [], []
            for _ in range(n):
                call = rng.choices(([0, 0], [None, None], [0, 1], [None, 0]), (20, 1, 1, 1))[0]
                calls.append(call)
                depths.append(rng.choice((0, 9, 9, 9, 9)))
            mark = rng.choices(("PASS", ".", "q10"), (8, 2, 1))[0]
            blocks.append([contig, pos, end, mark, calls, depths])
            pos = end + rng.choice((1, 1, 1, 3))
    return blocks


def plink_rows(rng, name: str, bases: dict, truth: dict, kind: str, how: dict) -> list:
    """Rows (contig, pos, a2, a1, genotypes), a1 '0' if unknown; genotypes count A1, -1 missing."""
    rows = []
    for (contig, pos), by_cohort in sorted(truth.items()):
        pairs, ref = by_cohort[name], bases[contig][pos - 1]
        own = {b for pair in pairs for b in pair} - {ref}
        alts = {b for pairs in by_cohort.values() for pair in pairs for b in pair} - {ref}
        if len(own) > 1 or not alts or (not own and kind != "joint"):
            continue
        alt = min(own or alts)
        copies = [pair.count(alt) for pair in pairs]
        copies = [-1 if rng.random() < how["missing"] else c for c in copies]
        called = [c for c in copies if c >= 0]
        a2, a1 = ref, alt
        if how["order"] == "major" and sum(called) > len(called):
            a2, a1, copies = alt, ref, [c if c < 0 else 2 - c for c in copies]
        if how["unknown"] and called:
            if all(c in (0, -1) for c in copies):
                a1 = "0"
            elif all(c in (2, -1) for c in copies):
                a2, a1, copies = a1, "0", [c if c < 0 else 0 for c in copies]
        if rng.random() < how["flips"]:
            a2, a1 = OTHER[a2], OTHER.get(a1, "0")
        rows.append([contig, pos, a2, a1, copies])
    return rows


def make_mask(rng, spelling: str) -> tuple[str, bytes, list]:
    """Name and content of a BED file, and its positions (contig, from 1)."""
    lines, places = [], set()
    if rng.random() < 0.3:
        lines.append(rng.choice(("# mask", "track name=x", "browser position 1:1-9")))
    for contig in CONTIGS:
        start = rng.randint(0, 3)
        while start < LENGTH:
            end = start + rng.choice((1, 2, 5, 12))
            words = [spelling.format(contig), str(start), str(end)]
            words += rng.choice(([], [], ["x"], ["x y", "0", "-"]))
            lines.append(("\t" if "x y" in words else rng.choice("\t ")).join(words))
            places |= {(contig, k + 1) for k in range(start, end)}
            start = max(end + rng.choice((-1, 0, 1, 1, 3)), start + 1)
    if rng.random() < 0.3:
        rng.shuffle(lines)
    end = rng.choice(("\n", "\n", "\r\n"))
    content = (end.join(lines) + rng.choice((end, ""))).encode()
    packed = rng.random() < 0.3
    return ("bed.gz" if packed else "bed"), content, sorted(places)


def make_cohort(rng: random.Random, name: str, n: int, bases: dict, truth: dict) -> dict:
    """A cohort's files as they are written, and what the sheet says of it."""
    kind = rng.choice(("joint", "variants", "variants", "gvcf"))
    plink = kind != "gvcf" and rng.random() < 0.4
    cohort = {
        "name": name,
        "samples": [f"{name}{k}" for k in range(n)],
        "spelling": rng.choice(("{}", "{}", "chr{}", "Chr{}")),
        "absent": "auto",
        "mask": None,
        "blocks": [],
    }
    if kind == "variants":
        way = rng.choice(("mask", "mask", "reference", "missing", "auto"))
        if way == "mask":
            cohort["mask"] = make_mask(rng, rng.choice(("{}", "chr{}")))
        else:
            cohort["absent"] = way
    elif kind == "joint":
        cohort["absent"] = rng.choice(("auto", "missing"))
    if plink:
        how = {
            "order": rng.choice(("ref", "ref", "ref", "major")),
            "unknown": rng.random() < 0.4,
            "flips": rng.choice((0, 0, 0, 0.3, 1)),
            "missing": rng.choice((0, 0, 0.1)),
        }
        cohort |= {"form": "plink", "how": how}
        cohort["rows"] = plink_rows(rng, name, bases, truth, kind, how)
    else:
        names = ("missing", "depth", "filter", "indels", "repeats", "shuffled", "split")
        quirks = {one for one in (*names, "all sites") if rng.random() < 0.25}
        records = vcf_records(rng, name, n, bases, truth, kind, quirks)
        if kind == "gvcf":
            cohort["blocks"] = gvcf_blocks(rng, name, n, truth, records)
            cohort["any"] = rng.choice(("<NON_REF>", "<*>", "."))
            if cohort["any"] == ".":  # such a record of one position is a site
                cohort["blocks"] = [one for one in cohort["blocks"] if one[2] > one[1]]
        forms = ("vcf", "vcf", "vcf.gz", "bcf") + ((), ("vcz", "pgen"))[kind != "gvcf"]
        cohort |= {"form": rng.choice(forms), "records": records}
        cohort["lower"] = rng.random() < 0.1
        if cohort["form"] == "pgen":
            cohort["records"] = as_pgen(records)
    cohort["parts"] = rng.random() < 0.25
    return cohort


def as_pgen(records: list) -> list:
    """Records that PLINK 2 can hold in one allele pair: no third allele, half-call or depth."""
    records = [record for record in records if len(record[3]) < 2]
    for record in records:
        record[5] = [[None, None] if None in call else call for call in record[5]]
        record[6] = [9] * len(record[6])
    return records


# --- files ----------------------------------------------------------------------------------------


def write_files(cohort: dict, folder: Path) -> list[Path]:
    """Write the cohort's files; one for each contig if it has parts."""
    parts = [[contig] for contig in CONTIGS] if cohort["parts"] else [list(CONTIGS)]
    writers = {"plink": write_plink, "bcf": write_bcf, "vcz": write_zarr, "pgen": write_pgen}
    write = writers.get(cohort["form"], write_vcf)
    paths = [write(cohort, part, folder / f"{cohort['name']}_{k}") for k, part in enumerate(parts)]
    return [path for path in paths if path is not None]


def write_plink(cohort: dict, contigs: list[str], prefix: Path) -> Path | None:
    rows = [row for row in cohort["rows"] if row[0] in contigs]
    if not rows:
        return None
    spelt = cohort["spelling"]
    bim = [f"{spelt.format(c)}\t.\t0\t{pos}\t{a1}\t{a2}\n" for c, pos, a2, a1, _ in rows]
    fam = [f"0 {sample} 0 0 0 -9\n" for sample in cohort["samples"]]
    Path(f"{prefix}.bim").write_text("".join(bim))
    Path(f"{prefix}.fam").write_text("".join(fam))
    Path(f"{prefix}.bed").write_bytes(bed_bytes(np.array([row[4] for row in rows], np.int8)))
    return prefix


def lines_of(cohort: dict, contigs: list[str]) -> list[tuple]:
    """Records and blocks as (contig, pos, ref, alts, filter, end or None, calls, depths)."""
    further = [one for one in [cohort.get("any", ".")] if one != "."]
    found = []
    for contig, pos, ref, alts, mark, calls, depths in cohort["records"]:
        if contig in contigs:
            if cohort["lower"]:
                ref, alts = ref.lower(), [a.lower() if a in BASES else a for a in alts]
            found.append((contig, pos, ref, [*alts, *further], mark, None, calls, depths))
    for contig, pos, end, mark, calls, depths in cohort["blocks"]:
        if contig in contigs:
            found.append((contig, pos, "N", further, mark, end, calls, depths))
    if cohort["blocks"]:
        found.sort(key=lambda line: (CONTIGS.index(line[0]), line[1]))
    return found


def text_of_call(call: list) -> str:
    return "/".join("." if allele is None else str(allele) for allele in call)


def write_vcf(cohort: dict, contigs: list[str], stem: Path) -> Path:
    rows = []
    for contig, pos, ref, alts, mark, end, calls, depths in lines_of(cohort, contigs):
        words = [cohort["spelling"].format(contig), pos, ".", ref, ",".join(alts) or ".", ".", mark]
        words += [f"X=1;END={end}" if end else ".", "GT:DP"]
        words += [f"{text_of_call(c)}:{d}" for c, d in zip(calls, depths, strict=True)]
        rows.append("\t".join(map(str, words)) + "\n")
    text = META + "\t".join([COLUMNS, *cohort["samples"]]) + "\n" + "".join(rows)
    path = stem.with_name(f"{stem.name}.{cohort['form']}")
    raw = text.encode()
    path.write_bytes(gzip.compress(raw, 1, mtime=0) if cohort["form"] == "vcf.gz" else raw)
    return path


def write_bcf(cohort: dict, contigs: list[str], stem: Path) -> Path:
    meta = META + "".join(
        f"##contig=<ID={cohort['spelling'].format(contig)},IDX={k}>\n"
        for k, contig in enumerate(CONTIGS)
    )
    records = []
    for contig, pos, ref, alts, mark, end, calls, depths in lines_of(cohort, contigs):
        columns = [
            format_of(1, calls_of([text_of_call(call) for call in calls])),
            format_of(2, b"\x11" + bytes(depths)),
        ]
        record = bytearray(
            record_of(
                columns,
                n_samples=len(calls),
                contig=CONTIGS.index(contig),
                pos=pos,
                alleles=[ref, *alts],
                filters=FILTERS[mark],
                info=[typed([3]) + typed([end])] if end else [],
            )
        )
        # Bases of the reference that the record takes, after two lengths, contig and position.
        record[16:20] = struct.pack("<i", end - pos + 1 if end else len(ref))
        records.append(bytes(record))
    path = stem.with_name(f"{stem.name}.bcf")
    path.write_bytes(bcf_of(header_of(cohort["samples"], meta), records))
    return path


def write_zarr(cohort: dict, contigs: list[str], stem: Path) -> Path | None:
    lines = lines_of(cohort, contigs)
    if not lines:
        return None
    n_alleles = max(1 + len(line[3]) for line in lines)
    alleles = [[line[2], *line[3], *[""] * n_alleles][:n_alleles] for line in lines]
    names = ["PASS", "q10", "q20"]
    calls = [[[-1 if a is None else a for a in call] for call in line[6]] for line in lines]
    arrays = {
        "sample_id": cohort["samples"],
        "contig_id": [cohort["spelling"].format(contig) for contig in CONTIGS],
        "filter_id": names,
        "variant_contig": np.array([CONTIGS.index(line[0]) for line in lines], np.int8),
        "variant_position": np.array([line[1] for line in lines], np.int32),
        "variant_id": ["."] * len(lines),
        "variant_allele": alleles,
        "variant_filter": [
            [f in line[4].split(";") for f in ("PASS", "q10", "q20")] for line in lines
        ],
        "call_genotype": np.array(calls, np.int8),
        "call_DP": np.array([line[7] for line in lines], np.int16),
    }
    path = stem.with_name(f"{stem.name}.vcz")
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    for name, values in arrays.items():
        values = np.array(values)
        chunks = (max(1, len(values) // 2), *values.shape[1:]) if "contig" not in name else None
        group.create_array(name, data=values, chunks=chunks or values.shape)
    return path


def write_pgen(cohort: dict, contigs: list[str], stem: Path) -> Path | None:
    import pgenlib

    lines = lines_of(cohort, contigs)
    if not lines:
        return None
    columns = ["#CHROM", "POS", "ID", "REF", "ALT", "FILTER"]
    rows = [
        [cohort["spelling"].format(c), str(pos), ".", ref, ",".join(alts) or ".", mark]
        for c, pos, ref, alts, mark, *_ in lines
    ]
    Path(f"{stem}.pvar").write_text("".join("\t".join(row) + "\n" for row in [columns, *rows]))
    names = "".join(f"{name}\n" for name in ["#IID", *cohort["samples"]])
    Path(f"{stem}.psam").write_text(names)
    n = len(cohort["samples"])
    writer = pgenlib.PgenWriter(
        f"{stem}.pgen".encode(), n, variant_ct=len(lines), nonref_flags=False
    )
    for line in lines:
        copies = [-9 if None in call else sum(call) for call in line[6]]
        writer.append_biallelic(np.array(copies, np.int8))
    writer.close()
    return stem


# --- what the files say ---------------------------------------------------------------------------


class Said:
    """A cohort as its files tell of it, in dictionaries.

    Attributes
    ----------
    rows : list of (contig, pos, ref, alt or None, genotypes)
        Sites that are read; genotypes count ALT, None is missing.
    kept : list of int
        Samples with any call.
    """

    def __init__(self, cohort: dict, genome: dict | None = None):
        self.name, self.cohort = cohort["name"], cohort
        self.dropped: set = set()
        self.in_block: set = set()
        n = len(cohort["samples"])
        rows = self._of_plink() if cohort["form"] == "plink" else self._of_vcf()
        seen, self.rows = set(), []
        order = CONTIGS if cohort["parts"] else [CONTIGS]
        for part in order:
            for row in rows:
                if row[0] in part and (key := (*row[:3], row[3] or row[2])) not in seen:
                    seen.add(key)
                    self.rows.append(row)
        self.in_doubt = False
        if genome is not None:
            self._turn(genome)
        self.kept = [s for s in range(n) if any(row[4][s] is not None for row in self.rows)]
        self.covers = None
        if cohort["absent"] == "reference":
            self.covers = lambda place, _: place not in self.dropped
        elif cohort["absent"] == "auto" and cohort["mask"]:
            inside = set(map(tuple, cohort["mask"][2]))
            self.covers = lambda place, _: place in inside and place not in self.dropped
        elif cohort["absent"] == "auto" and self.in_block:
            self.covers = lambda place, s: (
                (*place, s) in self.in_block and place not in self.dropped
            )

    def _of_plink(self) -> list:
        return [
            (contig, pos, a2, None if a1 == "0" else a1, [None if g < 0 else g for g in copies])
            for contig, pos, a2, a1, copies in self.cohort["rows"]
        ]

    def _of_vcf(self) -> list:
        rows = []
        gvcf = self.cohort.get("any", ".") != "."
        for contig, pos, ref, alts, mark, calls, depths in self.cohort["records"]:
            simple = len(ref) == 1 and len(alts) <= 1 and all(a in BASES for a in alts)
            simple &= not (gvcf and not alts)
            if not simple or mark not in ("PASS", "."):
                self.dropped |= {(contig, pos + k) for k in range(len(ref))}
                continue
            genotypes = [
                None if None in call or (sum(call) == 0 and depth == 0) else sum(call)
                for call, depth in zip(calls, depths, strict=True)
            ]
            rows.append((contig, pos, ref, alts[0] if alts else None, genotypes))
        for contig, pos, end, mark, calls, depths in self.cohort["blocks"]:
            for s, (call, depth) in enumerate(zip(calls, depths, strict=True)):
                if mark in ("PASS", ".") and call == [0, 0] and depth > 0:
                    self.in_block |= {(contig, k, s) for k in range(pos, end + 1)}
        return rows

    def _turn(self, genome: dict) -> None:
        """Turn the rows to the bases of a genome, which may lack a contig."""
        bases = [genome[row[0]][row[1] - 1] if row[0] in genome else None for row in self.rows]
        rows = list(zip(self.rows, bases, strict=True))
        plain = [(row, base) for row, base in rows if base and row[3] not in (None, OTHER[row[2]])]
        strand = sum(base not in alleles_of(row) for row, base in plain)
        whole = len(plain) >= 50 and strand >= 0.99 * len(plain)
        self.in_doubt = not whole and strand > 0.01 * len(plain)
        seen, self.rows = set(), []
        for row, base in rows:
            ref, alt = row[2:4]
            palindromic = alt is not None and OTHER[ref] == alt
            if base and (
                (alt and not palindromic and base not in (ref, alt))
                or (whole and (palindromic or alt is None))
            ):
                ref, alt = OTHER[ref], alt and OTHER[alt]
            if base and palindromic and base not in (ref, alt):
                self.dropped.add(row[:2])
                continue
            told = base and not (self.in_doubt and (palindromic or alt is None))
            calls = row[4]
            if told and base != ref:
                ref, alt, calls = base, ref, [None if g is None else 2 - g for g in calls]
            if (key := (*row[:2], ref, alt)) not in seen:
                seen.add(key)
                self.rows.append((*key, calls))

    def filled(self, place: tuple) -> list:
        """Genotypes of the kept samples at a place that the files do not list."""
        if self.covers is None:
            return [None] * len(self.kept)
        return [0 if self.covers(place, s) else None for s in self.kept]


def flip(alleles: frozenset) -> frozenset:
    return frozenset(OTHER[a] for a in alleles)


def alleles_of(site) -> frozenset:
    return frozenset(a for a in site[2:4] if a)


class Match:
    """Rows of a cohort at sites; both are lists of (contig, pos, ref, alt or None, …)."""

    def __init__(self, rows: list, sites: list, in_doubt: bool = False):
        self.in_doubt = in_doubt
        exact: dict = {}
        at: dict = {}
        for k, row in enumerate(rows):
            exact.setdefault((row[:2], alleles_of(row)), k)
            at.setdefault(row[:2], []).append(k)
        self.row: dict[int, int] = {}
        self.flipped, self.completed, self.unclear = set(), set(), set()
        for k, site in enumerate(sites):
            if len(alleles_of(site)) == 2 and (site[:2], alleles_of(site)) in exact:
                self.row[k] = exact[site[:2], alleles_of(site)]
        plain = sum(alleles_of(sites[k]) != flip(alleles_of(sites[k])) for k in self.row)
        used = set(self.row.values())
        for k, site in enumerate(sites):
            turned = exact.get((site[:2], flip(alleles_of(site))))
            if k not in self.row and len(alleles_of(site)) == 2 and turned not in (None, *used):
                self.row[k] = turned
                self.flipped.add(k)
        self.flips = in_doubt or len(self.flipped) > 0.01 * (plain + len(self.flipped))
        self.listed = {k for k, site in enumerate(sites) if site[:2] in at}
        used = set(self.row.values())
        pairs = []
        for k in sorted(self.listed - set(self.row)):
            theirs = alleles_of(sites[k])
            for r in at[sites[k][:2]]:
                mine = alleles_of(rows[r])
                if r in used or (len(mine) == 2 and len(theirs) == 2):
                    continue
                both = len(mine) == len(theirs) == 1
                doubt = both and (flip(mine) == theirs or (self.flips and mine != theirs))
                if len(mine | theirs) <= 2 and not doubt:
                    pairs.append((k, r, False))
                elif self.flips and not both and len(flip(mine) | theirs) <= 2:
                    pairs.append((k, r, True))
        sites_of, rows_of = (Counter(pair[i] for pair in pairs) for i in (0, 1))
        for k, r, turned in pairs:
            if sites_of[k] == 1 and rows_of[r] == 1:
                self.row[k] = r
                self.completed.add(k)
                self.flipped |= {k} if turned else set()
            else:
                self.unclear.add(k)
        self.swapped, self.ambiguous, self.doubtful = set(), set(), set()
        for k, r in list(self.row.items()):
            mine = rows[r][2]
            if (OTHER[mine] if k in self.flipped else mine) != sites[k][2]:
                self.swapped.add(k)
            pair = alleles_of(rows[r])
            pair = alleles_of(sites[k]) | (flip(pair) if k in self.flipped else pair)
            if len(pair) == 2 and pair == flip(pair):
                if k in self.swapped and k not in self.completed:
                    self.ambiguous.add(k)
                elif self.flips:
                    self.doubtful.add(k)
                else:
                    continue
                del self.row[k]
                self.swapped.discard(k)
        self.lost = self.ambiguous | self.doubtful | self.unclear

    def reference_differs(self, untold: set = frozenset()) -> bool:
        """Whether REF and ALT are swapped too often, but at sites whose REF is not told."""
        turned = len(self.swapped - self.completed - untold)
        turned += 0 if self.in_doubt else len(self.ambiguous)
        return turned > 0.01 * max(len(self.row), 50)

    def genotypes(self, said: Said, k: int) -> list:
        """Genotypes of the kept samples at site `k`, by its REF and ALT."""
        if k not in self.row:
            return [None] * len(said.kept)
        found = [said.rows[self.row[k]][4][s] for s in said.kept]
        return [None if g is None else 2 - g for g in found] if k in self.swapped else found


class Refused(Exception):  # noqa: N818
    """The study must be refused; the text is a part of the sentence."""


def within_chance(said: Said, row: tuple, case: dict) -> bool:
    """Whether a founder's own row keeps Hardy-Weinberg proportions in each group of samples."""
    group_of = {s: case["labels"].get(said.cohort["samples"][s], "NA") for s in said.kept}
    sizes = Counter(group_of.values())
    group_of = {s: g if sizes[g] >= LEAST_SAMPLES else "NA" for s, g in group_of.items()}
    for group in set(group_of.values()):
        members = [s for s in said.kept if group_of[s] == group]
        tested = tested_in(said, members, labelled=group != "NA")
        counts = [[row[4][s] for s in members].count(g) for g in (0, 1, 2)]
        monomorphic = 0 in (2 * counts[0] + counts[1], 2 * counts[2] + counts[1])
        if tested == "none" or monomorphic:
            continue
        if (hwe_exact if tested == "both" else hwe_excess)(*counts) < case["min_hwe_p"]:
            return False
    return True


def tested_in(said: Said, members: list[int], *, labelled: bool) -> str:
    """Which departures count in a group of samples: both, excess or none."""
    errors = []
    for row in said.rows:
        called = [row[4][s] for s in members if row[4][s] is not None]
        n, p = len(called), sum(called) / max(2 * len(called), 1)
        if n > 1 and min(p, 1 - p) >= COMMON:
            expected = 2 * p * (1 - p) * n * 2 * n / (2 * n - 1)
            errors.append((1 - called.count(1) / expected) * n**0.5)
    tested = "both" if labelled else "excess"
    if len(errors) >= LEAST_SITES:
        low, high = np.quantile(errors, [FIFTH, 1 - FIFTH])
        if low < -DEPARTS:
            return "none"
        if high > DEPARTS:
            return "excess"
    return tested


def in_order(founders: list[Said], tables: dict[str, Path], case: dict) -> list[Said]:
    """The founders by name, but those with sites on other strands last, of a genome or of others.

    The group with the most samples on one strand is first; of equal ones the table's bytes decide.
    """
    founders = sorted(founders, key=lambda one: (one.in_doubt, one.name))
    if len(founders) < 3:
        return founders
    rest, groups = founders, []
    while rest:
        flipped: list[Said] = []
        joined(rest, flipped, case)
        groups.append([one for one in rest if one not in flipped])
        rest = [one for one in flipped if not one.in_doubt]
    first = max(
        groups,
        key=lambda group: (
            not group[0].in_doubt,
            sum(len(one.kept) for one in group),
            hashlib.blake2b(tables[group[0].name].read_bytes()).hexdigest(),
        ),
    )
    return first + [one for one in founders if one not in first]


def joined(founders: list[Said], flipped: list[Said], case: dict) -> tuple:
    """Sites of the union, genotypes by founder, and what is known of them, in this order.

    Founders with sites on another strand than those before are added to `flipped`.

    A site begins with the first founder that lists its place, and REF and ALT are those of the
    first that knows both alleles. Each founder must speak about it: list it, or be homozygous REF.
    """
    sites: list = []
    known: dict[int, dict[str, list]] = {}
    lost: set = set()
    paired: set = set()  # sites of which a founder knows both alleles
    filled: set = set()  # (site, founder) where absent sites were read as REF
    for number, said in enumerate(founders):
        before = founders[:number]
        rows, seen = [], set()
        for row in said.rows:
            if (row[:2], alleles_of(row)) not in seen:
                seen.add((row[:2], alleles_of(row)))
                rows.append(row)
        places = {site[:2] for site in sites}
        if before:
            found = Match(said.rows, sites, said.in_doubt)
            flipped += [said] if found.flips else []
            untold = {k for k in known if k not in paired}
            if found.reference_differs(untold) and any(one.covers for one in (*before, said)):
                raise Refused("has REF and ALT swapped")
            lost |= found.lost
            for k, site in enumerate(sites):
                if k in found.row:
                    if not within_chance(said, said.rows[found.row[k]], case):
                        lost.add(k)
                    known[k][said.name] = found.genotypes(said, k)
                    if k not in paired:
                        complete(sites, known, filled, k, said.rows[found.row[k]], found)
                        if said.rows[found.row[k]][3] is not None:
                            paired.add(k)
                elif k not in found.listed:
                    known[k][said.name] = said.filled(site[:2])
                    filled.add((k, said.name))
                    if all(g is None for g in known[k][said.name]):
                        lost.add(k)
                else:
                    lost.add(k)
        for row in rows:
            if row[:2] in places:
                continue
            sites.append(row[:4])
            k = len(sites) - 1
            known[k] = {said.name: [row[4][s] for s in said.kept]}
            if said.in_doubt and row[3] is not None and OTHER[row[2]] == row[3]:
                lost.add(k)
            if not within_chance(said, row, case):
                lost.add(k)
            if row[3] is not None:
                paired.add(k)
            for one in before:
                filled.add((k, one.name))
                known[k][one.name] = one.filled(row[:2])
                if all(g is None for g in known[k][one.name]):
                    lost.add(k)
    return sites, known, lost, paired, filled


def expected_panel(founders: list[Said], case: dict) -> list:
    """Sites (contig, pos, ref, alt) of the panel, in order."""
    sites, known, lost, paired, filled = joined(founders, [], case)
    min_call_rate = case["min_call_rate"]
    panel = []
    names = {one.name for one in founders}
    regions = {key: set(map(tuple, case[key][2])) for key in ("include", "exclude") if case[key]}
    for k, site in enumerate(sites):
        if k in lost or site[3] is None or set(known[k]) != names:
            continue
        if any((site[:2] in places) != (key == "include") for key, places in regions.items()):
            continue
        if k not in paired and any(number == k for number, _ in filled):
            continue
        calls = [g for one in founders for g in known[k][one.name]]
        called = [g for g in calls if g is not None]
        if not called or len(called) / len(calls) < min_call_rate:
            continue
        if not all(enough(known[k][one.name], min_call_rate) for one in founders):
            continue
        alt = sum(called)
        if min(alt, 2 * len(called) - alt) / (2 * len(called)) >= case["min_maf"]:
            panel.append(site)
    if not panel:
        raise Refused("is left")
    spelling: dict = {}
    for said in founders:
        for row in said.rows:
            spelling.setdefault(row[0], said.cohort["spelling"].format(row[0]))
    panel.sort(key=lambda site: (CONTIGS.index(site[0]), *site[1:]))
    return [(spelling[site[0]], *site) for site in panel]


def complete(sites, known: dict, filled: set, k: int, row: tuple, found: Match) -> None:
    """Give a site of one known allele the other; a row with both alleles says which is REF."""
    alleles = [OTHER[a] if a and k in found.flipped else a for a in row[2:4]]
    ref, alt = sites[k][2:4]
    if alleles[1] is None:
        alt = alt or (alleles[0] if alleles[0] != ref else None)
    elif alleles[0] == ref:
        alt = alleles[1]
    else:
        ref, alt = alleles
        for name, calls in known[k].items():
            if (k, name) not in filled:
                known[k][name] = [None if g is None else 2 - g for g in calls]
    sites[k] = (*sites[k][:2], ref, alt)


def enough(calls: list, rate: float) -> bool:
    """Whether a cohort with this call rate misses so many calls with a chance of at least 1e-4."""
    n_called = sum(g is not None for g in calls)
    least = n_called > 0 and binom.cdf(n_called, len(calls), rate) >= 1e-4
    return rate == 0 or bool(least)


def expected_genotypes(said: Said, panel: list) -> list[list]:
    """Genotypes of the kept samples at each panel site."""
    sites = [site[1:] for site in panel]
    found = Match(said.rows, sites, said.in_doubt)
    if not found.row:
        raise Refused("shares no site with the panel")
    if said.covers and found.reference_differs():
        raise Refused("has REF and ALT swapped")
    genotypes = [
        found.genotypes(said, k) if k in found.listed else said.filled(site[:2])
        for k, site in enumerate(sites)
    ]
    called = [s for s in range(len(said.kept)) if any(row[s] is not None for row in genotypes)]
    if not called:
        raise Refused("has no called genotype at any")
    said.kept = [said.kept[s] for s in called]  # those without calls on the panel are left out
    genotypes = [[row[s] for s in called] for row in genotypes]
    return genotypes


# --- the target -----------------------------------------------------------------------------------


class Merging:
    """Two to four cohorts, one to three of them founders."""

    name = "merging"

    def prepare(self, folder: Path) -> None:
        for seed in range(30):
            check_case(self, self.generate(random.Random(seed)), folder)

    def generate(self, rng: random.Random) -> dict:
        names = rng.sample("abcdef", rng.choice((2, 2, 3, 3, 4)))
        sizes = {name: rng.choice((1, 2, 3, 4, 5, 6, 30)) for name in names}
        bases, truth = make_truth(rng, sizes)
        return {
            "bases": bases,
            "truth": truth,
            "cohorts": [make_cohort(rng, name, sizes[name], bases, truth) for name in names],
            "founders": names[: rng.randint(1, min(3, len(names)))],
            "min_call_rate": rng.choice((0.0, 0.0, 0.9, 0.5)),
            "min_maf": rng.choice((0.0, 0.0, 0.1)),
            "threads": rng.choice((1, 1, 1, 2)),
            "genome": rng.choice(([], [], list(CONTIGS), list(CONTIGS), [CONTIGS[0]])),
            "min_hwe_p": rng.choice((0.0, 0.00101, 0.1937)),
            "labels": {
                f"{name}{k}": label
                for name in names
                for k in range(sizes[name])
                if (label := rng.choice(("P", "P", "P", "P", "Q", "NA"))) != "NA"
            },
            "include": make_mask(rng, rng.choice(("{}", "chr{}"))) if rng.random() < 0.2 else None,
            "exclude": make_mask(rng, rng.choice(("{}", "chr{}"))) if rng.random() < 0.2 else None,
        }

    def check(self, case: dict, folder: Path) -> str:
        genome = {contig: case["bases"][contig] for contig in case["genome"]}
        said = {one["name"]: Said(one, genome or None) for one in case["cohorts"]}
        for name, one in list(said.items()):
            if not one.kept:  # refused, which other targets check
                del said[name]
        founders = [said[name] for name in sorted(case["founders"]) if name in said]
        if not founders:
            return "no founder"
        shutil.rmtree(folder / "study", ignore_errors=True)
        folder = folder / "study"
        folder.mkdir()
        absent, fasta = {}, None
        if genome:
            fasta = folder / "genome.fa"
            fasta.write_text("".join(f">chr{one}\n{genome[one]}\n" for one in genome))
        for one in said.values():
            labels = case["labels"]
            absent[one.name] = prepare_cohort(one, folder, labels, case["threads"], fasta)
        stems = {name: (folder / name / "raw", folder / f"{name}.samples.tsv") for name in said}
        tables = {one.name: folder / f"{one.name}.sites.tsv" for one in founders}
        panel = refusal = None
        try:
            founders = in_order(founders, tables, case)
            expected = expected_panel(founders, case)
        except Refused as error:
            refusal = str(error)
        try:
            for order, out in ((1, "panel.tsv"), (-1, "again.tsv")):
                masks = {key: write_mask(case[key], folder / key) for key in ("include", "exclude")}
                limits = {key: case[key] for key in ("min_call_rate", "min_maf", "min_hwe_p")}
                build_panel(
                    dict(list(tables.items())[::order]),
                    folder / out,
                    folder / f"{out}.json",
                    PanelFilters([], **limits, **masks),
                    genotypes={name: stems[name] for name in list(tables)[::order]},
                    absent=dict(list(absent.items())[::order]),
                    threads=case["threads"],
                )
            assert (folder / "again.tsv").read_bytes() == (folder / "panel.tsv").read_bytes()
            panel = load_panel(folder / "panel.tsv")[0]
        except UserError as error:
            assert refusal and refusal in str(error), f"{error} ({refusal})"
            return "no panel"
        assert refusal is None, f"not refused: {refusal}"
        found = list(zip(panel.chrom, panel.pos, panel.ref, panel.alt, strict=True))
        shown = [(site[0], *site[2:]) for site in expected]
        found = [(chrom, int(pos), ref.upper(), alt.upper()) for chrom, pos, ref, alt in found]
        assert found == shown, f"{set(found) ^ set(shown)}, found {found}"
        encoded = {}
        for one in said.values():
            try:
                wanted, refusal = expected_genotypes(one, expected), None
            except Refused as error:
                refusal = str(error)
            try:
                encode_cohort(
                    *stems[one.name],
                    folder / "panel.tsv",
                    folder / one.name,
                    impute="none",
                    cohort=one.name,
                    threads=case["threads"],
                    absent=absent[one.name],
                )
            except UserError as error:
                assert refusal and refusal in str(error), f"{error} ({refusal})"
                continue
            assert refusal is None, f"{one.name} not refused: {refusal}"
            genotypes = unpack_bed(open_bed(folder / one.name / "genotypes"), len(one.kept))
            wanted = [[-1 if g is None else g for g in row] for row in wanted]
            for site, row, right in zip(expected, genotypes.tolist(), wanted, strict=True):
                assert row == right, f"{one.name} at {site}: {row}, not {right}"
            encoded[one.name] = genotypes
        require_truth(case, said, expected, encoded)
        return "equal"


def prepare_cohort(
    said: Said, folder: Path, labels: dict, threads: int, fasta: Path | None
) -> Absent:
    """Decode a cohort's files and check samples; what the sheet says of its absent sites."""
    cohort = said.cohort
    raw = folder / said.name / "raw"
    raw.parent.mkdir()
    ingest_cohort(write_files(cohort, folder), raw, fasta=fasta, threads=threads)
    summarize_cohort(
        raw,
        labels,
        folder / f"{said.name}.sites.tsv",
        folder / f"{said.name}.samples.tsv",
        min_sample_call_rate=0.0,
        threads=threads,
    )
    assert read_fam(raw)["sample"].tolist() == cohort["samples"]
    if cohort["mask"] is None:
        return Absent(cohort["absent"])
    return Absent("auto", write_mask(cohort["mask"], folder / said.name))


def write_mask(mask: tuple | None, stem: Path) -> str:
    """Write a BED file; its path, empty for none."""
    if mask is None:
        return ""
    end, content, _ = mask
    path = stem.with_name(f"{stem.name}.{end}")
    path.write_bytes(gzip.compress(content, mtime=0) if end.endswith("gz") else content)
    return str(path)


def listed(said: Said, place: tuple) -> bool:
    return any(row[:2] == place for row in said.rows)


def require_truth(case: dict, said: dict, panel: list, encoded: dict) -> None:
    """No genotype differs from the true one, on one strand for all cohorts."""
    split = {
        record[:2] == [contig, pos] and (contig, pos)
        for one in said.values()
        for record in one.cohort.get("records", ())
        for contig, pos in [record[:2]]
        if sum(other[:2] == [contig, pos] for other in one.cohort["records"]) > 1
    }
    # Nothing tells the strand of A/T and C/G sites of a cohort that shows no flip elsewhere.
    sites = [site[1:] for site in panel]
    unseen = [
        one
        for one in said.values()
        if one.cohort.get("how", {}).get("flips") and not Match(one.rows, sites, one.in_doubt).flips
    ]
    single = {row[:2] for one in said.values() for row in one.rows if row[3] is None}
    # Where REF is not the genome's, only swapped sites show it, or the genome.
    major = any(one.cohort.get("how", {}).get("order") == "major" for one in said.values())
    for k, (_, contig, pos, ref, alt) in enumerate(panel):
        place = (contig, pos)
        if place in split or (unseen and (OTHER[ref] == alt or place in single)):
            continue
        # PLINK files cannot list sites of three alleles.
        alleles = {b for pairs in case["truth"][place].values() for pair in pairs for b in pair}
        of_three = len(alleles | {case["bases"][contig][pos - 1]}) > 2
        wrong = {}
        for strand in (False, True):
            wrong[strand] = []
            for name, genotypes in encoded.items():
                if of_three and (unseen or said[name].cohort["form"] in ("plink", "pgen")):
                    continue
                told = contig in case["genome"]
                if major and not told and said[name].covers and not listed(said[name], place):
                    continue
                pairs = case["truth"][contig, pos][name]
                for s, g in zip(said[name].kept, genotypes[k].tolist(), strict=True):
                    pair = [OTHER[b] if strand else b for b in pairs[s]]
                    if g >= 0 and sorted(pair) != sorted([ref] * (2 - g) + [alt] * g):
                        wrong[strand].append((name, s, g, pair))
        best = min(wrong.values(), key=len)
        assert not best, f"false genotypes at {panel[k]}: {best[:5]}"


TARGETS = [Merging()]
