"""Every error of a user gives one sentence with file, row and value, and no partial file."""

import gzip
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.one_map import umap_layout
from support.study import FAST, make_cohorts, read_config, swap_alleles, write_sheets, write_study

from popdesic.cohort.contigs import genome_of_cohorts
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.genotype_choice import missing_rule
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.long_range_ld import regions_of
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.samples import populations
from popdesic.components.define_axes import define_axes
from popdesic.components.pca import compute_pca
from popdesic.core.errors import UserError
from popdesic.core.tables import read_table
from popdesic.core.triangle import open_symmetric
from popdesic.distance.matrix import load_distances
from popdesic.distance.measure_tile import measure_tile
from popdesic.distance.tiles import assemble_tiles
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.geodesic.graph import COMPLETE
from popdesic.geodesic.lengths import open_lengths
from popdesic.geodesic.measure import measure_geodesics
from popdesic.io.bgzf import BGZF_END
from popdesic.maps.pcoa import compute_pcoa
from popdesic.study.configuration import fill_config
from popdesic.study.sheets import load_study

RESULTS = Path("results")


def run_study() -> tuple[str, str]:
    """Run the study in the current folder, stage by stage, as the rules do.

    Returns the stage that failed with a UserError and its sentence; ("", "") if none failed.
    """
    stage = "sheets"
    try:
        config = fill_config(read_config(Path()))
        study = load_study(config)
        cohorts = {name: RESULTS / "cohorts" / name for name in study.order}
        backend = CpuBackend(2)
        stage = "ingest"
        for name, folder in cohorts.items():
            ingest_cohort(
                study.cohorts.genotypes[name],
                folder / "raw",
                haploid=config["contigs"]["haploid"],
            )
        stage = "qc"
        for name, folder in cohorts.items():
            summarize_cohort(
                folder / "raw",
                populations(Path(config["samples"])),
                RESULTS / f"qc/{name}.sites.tsv",
                RESULTS / f"qc/{name}.samples.tsv",
                min_sample_call_rate=config["qc"]["min_sample_call_rate"],
            )
        stage = "panel"
        panel = RESULTS / "panel/sites.tsv"
        genome = genome_of_cohorts(cohorts[name] / "raw.json" for name in study.founders)
        build_panel(
            {name: RESULTS / f"qc/{name}.sites.tsv" for name in study.founders},
            panel,
            RESULTS / "panel/counts.json",
            PanelFilters(genome.excluded(config["contigs"]["exclude"]), **config["panel"]),
        )
        stage = "encode"
        for name, folder in cohorts.items():
            encode_cohort(
                folder / "raw",
                RESULTS / f"qc/{name}.samples.tsv",
                panel,
                folder,
                impute=config["impute"]["method"],
                cohort=name,
            )
        stage = "distance"
        metric, least = config["distance"]["metric"], config["distance"]["min_called"]
        pairs = list(combinations_with_replacement(study.order, 2))
        tiles = {(a, b): RESULTS / f"distance/tiles/{b}/{a}.npz" for a, b in pairs}
        for (a, b), path in tiles.items():
            missing = missing_rule(config)
            measure_tile(cohorts[a], cohorts[b], path, backend, metric=metric, missing=missing)
        assemble_tiles(
            tiles,
            study.order,
            RESULTS / "distance",
            metric=metric,
            min_called=least,
            on_uncomparable=config["distance"]["on_uncomparable"],
        )
        stage = "geodesic"
        n_sites = len(read_table(panel)) - 1
        lengths = RESULTS / "geodesic/closure.npy"
        order = RESULTS / "distance/samples.tsv"
        measure_geodesics(
            load_distances(RESULTS / "distance", metric=metric, n_sites=n_sites, min_called=least),
            read_table(order),
            set(study.founders),
            backend,
            alpha=f"{config['geodesic']['alpha'][0]:g}",
            value=float(config["geodesic"]["alpha"][0]),
            ends=set(),
            graph=COMPLETE,
            code="",
            out={
                "statistics": RESULTS / "geodesic/alpha.json",
                "record": RESULTS / "geodesic/alpha.run.json",
                "closure": lengths,
                "about": lengths.with_suffix(".json"),
            },
        )
        stage = "embedding"
        sheet = Path(config["samples"])
        axes = [RESULTS / "embedding" / name for name in ("axes.npz", "axes.json")]
        define_axes(
            [cohorts[name] / "genotypes" for name in study.founders],
            panel,
            unrelated=None,
            components=3,
            pcs=config["geodesic"]["pcs"],
            ld_prune=config["embedding"]["ld_prune"],
            regions=regions_of(config["qc"]["build"]),
            out={
                "axes": axes[0],
                "about": axes[1],
                "loadings": RESULTS / "embedding/loadings.tsv",
            },
        )
        compute_pca(
            [folder / "genotypes" for folder in cohorts.values()],
            *axes,
            order,
            sheet,
            table_out=RESULTS / "embedding/pca.tsv",
            scores_out=RESULTS / "embedding/pca.npy",
            statistics_out=RESULTS / "embedding/pca.json",
            backend=CpuBackend(),
        )
        compute_pcoa(
            lengths,
            order,
            sheet,
            components=3,
            table_out=RESULTS / "embedding/pcoa.tsv",
            statistics_out=RESULTS / "embedding/pcoa.json",
        )
        if len(read_table(order)) < 5:  # a higher value would only cost time here
            rows = open_lengths(lengths)
            umap_layout(rows.__getitem__, len(rows), rows, neighbors=5, min_dist=0.3, seed=1)
    except UserError as error:
        return stage, str(error)
    return "", ""


@pytest.fixture
def cohorts():
    return make_cohorts((8, 7, 6), n_sites=150, missing=0.01)


@pytest.fixture
def study(tmp_path, monkeypatch, cohorts):
    """A valid study in the current folder, which the cases damage."""
    write_study(tmp_path, cohorts)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(path: str, old: str, new: str, count: int = 1) -> Callable:
    """A function that replaces text in a file of the study."""

    def spoil(cohorts):
        content = Path(path).read_text()
        assert old in content, f"{old!r} is not in {path}"
        Path(path).write_text(content.replace(old, new, count))

    return spoil


def sparse(distance: dict):
    """Call two of five genotypes: two samples share about a sixth of the panel's sites."""

    def spoil(cohorts):
        rng = np.random.default_rng(3)
        for cohort in cohorts:
            cohort.genotypes[rng.random(cohort.genotypes.shape) < 0.6] = -1
        settings = {"qc": {"min_sample_call_rate": 0.0}, "panel": {"min_call_rate": 0.0}}
        write_study(Path(), cohorts, FAST | settings | {"distance": distance})

    return spoil


def config(**blocks) -> Callable:
    def spoil(cohorts):
        Path("config/config.yaml").write_text(yaml.safe_dump(FAST | blocks))

    return spoil


def rewrite(change: Callable) -> Callable:
    """A function that writes the study again from changed cohorts."""
    return lambda cohorts: write_study(Path(), change(cohorts))


def append(path: str, line: str) -> Callable:
    def spoil(cohorts):
        with open(path, "a") as file:
            file.write(line + "\n")

    return spoil


def write(path: str, content: bytes) -> Callable:
    return lambda cohorts: Path(path).write_bytes(content)


def bgzip(data: bytes) -> bytes:
    """One bgzip block without the end-of-file block."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    deflated = packer.compress(data) + packer.flush()
    head = BGZF_END[:16] + struct.pack("<H", len(deflated) + 25)
    return head + deflated + struct.pack("<II", zlib.crc32(data), len(data))


def spaced_name(cohorts):
    """A name that Newick can represent and PHYLIP cannot."""
    cohorts[0].samples[2] = "N 02"
    write_study(Path(), cohorts, FAST | {"export": {"formats": ["newick", "phylip"]}})


def truncated_bgzip(cohorts):
    text = cohorts[1].vcf().encode()
    Path(cohorts[1].path).write_bytes(b"".join(bgzip(text[k : k + 4000]) for k in (0, 4000)))


def truncated_gzip(cohorts):
    data = gzip.compress(cohorts[1].vcf().encode())
    Path(cohorts[1].path).write_bytes(data[: len(data) // 2])


def set_genotypes(index: int, sites, samples, value: int) -> Callable:
    def change(cohorts):
        cohorts[index].genotypes[sites, samples] = value
        return cohorts

    return rewrite(change)


def keep_samples(*sizes: int) -> Callable:
    def change(cohorts):
        return [
            replace(c, samples=c.samples[:n], genotypes=c.genotypes[:, :n], populations=[])
            for c, n in zip(cohorts, sizes, strict=False)
        ]

    return rewrite(change)


def move_sites(index: int, contig: str = "", shift: int = 0) -> Callable:
    def change(cohorts):
        sites = [(contig + c, pos + shift, *rest) for c, pos, *rest in cohorts[index].sites]
        return [replace(c, sites=sites) if k == index else c for k, c in enumerate(cohorts)]

    return rewrite(change)


NORTH, SOUTH, SAMPLES, SHEET = (
    "data/north.vcf",
    "data/south.vcf.gz",
    "config/samples.tsv",
    "config/cohorts.tsv",
)

#: name: (damage to the study, stage that stops, words of the sentence)
CASES: dict[str, tuple[Callable, str, list[str]]] = {
    # --- config
    "misspelt key": (
        config(distence={"metric": "ibs"}),
        "sheets",
        ["config/config.yaml", "'distence'", "did you mean 'distance'"],
    ),
    "misspelt key in a block": (
        config(panel={"min_mafs": 0.1}),
        "sheets",
        ["config/config.yaml", "'panel.min_mafs'", "'min_maf'"],
    ),
    "alpha below 1": (
        config(geodesic={"alpha": [0.5]}),
        "sheets",
        ["config/config.yaml", "geodesic.alpha[0] is 0.5", "at least 1"],
    ),
    "bad metric": (
        config(distance={"metric": "euclid"}),
        "sheets",
        ["config/config.yaml", "'euclid'", "euclidean"],
    ),
    "color_by of no column": (
        config(report={"color_by": "popluation"}),
        "sheets",
        ["config/config.yaml", "'popluation'", SAMPLES, "did you mean 'population'"],
    ),
    "imputed distances without imputation": (
        config(impute={"method": "none", "stages": ["distance"]}),
        "sheets",
        ["config/config.yaml", "impute.stages", "impute.method"],
    ),
    # --- cohorts.tsv
    "export that ends a name at a space": (
        spaced_name,
        "sheets",
        ["config/samples.tsv, row 4", "'N 02'", "'phylip'", "rename"],
    ),
    "no sheet of cohorts": (
        lambda cohorts: Path(SHEET).unlink(),
        "sheets",
        [SHEET, "does not exist"],
    ),
    "empty sheet": (write(SHEET, b"\n\n"), "sheets", [SHEET, "is empty"]),
    "header alone": (write(SHEET, b"cohort\tgenotypes\tfounder\n"), "sheets", [SHEET, "no rows"]),
    "wrong column": (
        edit(SHEET, "genotypes", "genotype"),
        "sheets",
        [SHEET, "row 1", "'genotypes' is missing", "did you mean 'genotype'?"],
    ),
    "unknown column": (
        lambda cohorts: Path(SHEET).write_text(
            "".join(f"{line}\tx\n" for line in Path(SHEET).read_text().splitlines())
        ),
        "sheets",
        [SHEET, "row 1", "'x' is not a column"],
    ),
    "duplicated column": (
        edit(SHEET, "founder", "cohort"),
        "sheets",
        [SHEET, "row 1", "'cohort' appears twice"],
    ),
    "column without a name": (
        lambda cohorts: Path(SAMPLES).write_text(
            "".join(f"{line}\t\n" for line in Path(SAMPLES).read_text().splitlines())
        ),
        "sheets",
        [SAMPLES, "row 1", "column 5 has no name"],
    ),
    "reserved column": (
        edit(SAMPLES, "phenotype", "row"),
        "sheets",
        [SAMPLES, "row 1", "'row' is reserved"],
    ),
    "spaces for tabs": (
        lambda cohorts: Path(SHEET).write_text(Path(SHEET).read_text().replace("\t", "  ")),
        "sheets",
        [SHEET, "row 1", "separated by tabs"],
    ),
    "commas for tabs": (
        lambda cohorts: Path(SAMPLES).write_text(Path(SAMPLES).read_text().replace("\t", ",")),
        "sheets",
        [SAMPLES, "row 1", "separated by tabs"],
    ),
    "spaces for tabs in one row": (
        edit(SHEET, f"north\t{NORTH}", f"north {NORTH}"),
        "sheets",
        [SHEET, "row 2", "2 columns where the header has 3", "tabs"],
    ),
    "not UTF-8": (
        write(SAMPLES, "sample\tcohort\nJosé\tnorth\n".encode("latin-1")),
        "sheets",
        [SAMPLES, "UTF-8"],
    ),
    "duplicated cohort": (
        append(SHEET, f"north\t{NORTH}\tno"),
        "sheets",
        [SHEET, "row 5", "'north'", "row 2"],
    ),
    "bad cohort name": (
        edit(SHEET, "north\t", "no/rth\t"),
        "sheets",
        [SHEET, "row 2", "'no/rth'", "letters, digits"],
    ),
    "two underscores in a name": (
        edit(SHEET, "north\t", "no__rth\t"),
        "sheets",
        [SHEET, "row 2", "'no__rth'"],
    ),
    "bad founder": (
        edit(SHEET, "\tyes", "\tmaybe"),
        "sheets",
        [SHEET, "row 2", "'maybe'", "yes (true, 1)"],
    ),
    "no founder": (edit(SHEET, "\tyes", "\tno", 2), "sheets", [SHEET, "no cohort has founder"]),
    "missing file": (
        edit(SHEET, NORTH, "data/nord.vcf"),
        "sheets",
        [SHEET, "row 2", "data/nord.vcf", "not exist"],
    ),
    "folder for a file": (edit(SHEET, NORTH, "data"), "sheets", [SHEET, "row 2", "data"]),
    # --- samples.tsv
    "no sheet of samples": (
        lambda cohorts: Path(SAMPLES).unlink(),
        "sheets",
        [SAMPLES, "does not exist"],
    ),
    "sample not in the VCF": (
        append(SAMPLES, "N8\tnorth\tP\t1"),
        "sheets",
        [SAMPLES, "row 23", "'N8'", NORTH, "N00, N01"],
    ),
    "sample not in the sheet": (
        edit(SAMPLES, "N03\tnorth\tP\t1\n", ""),
        "sheets",
        [NORTH, "'N03'", "is not listed", SAMPLES],
    ),
    "samples not in the sheet": (
        edit(SAMPLES, "N02\tnorth\tP\t0\nN03\tnorth\tP\t1\n", ""),
        "sheets",
        [NORTH, "'N02' and 1 more", "are not listed", SAMPLES],
    ),
    "sample in two cohorts": (
        append(SAMPLES, "N03\tsouth\tP\t1"),
        "sheets",
        [SAMPLES, "row 23", "'N03'", "row 5", "'north'", "'south'"],
    ),
    "sample twice": (
        append(SAMPLES, "N03\tnorth\tP\t1"),
        "sheets",
        [SAMPLES, "row 23", "'N03'", "row 5"],
    ),
    "same sample in two files": (
        rewrite(lambda c: [c[0], replace(c[1], samples=["N00", *c[1].samples[1:]]), c[2]]),
        "sheets",
        [SAMPLES, "row 10", "'N00'", "row 2", "'north'", "'south'"],
    ),
    "unknown cohort": (
        append(SAMPLES, "X\tnorht\tP\t1"),
        "sheets",
        [SAMPLES, "row 23", "'norht'", SHEET, "did you mean 'north'"],
    ),
    "bad sex": (
        write(SAMPLES, b"sample\tcohort\tsex\nN00\tnorth\tfemale\n"),
        "sheets",
        [SAMPLES, "row 2", "'female'", "M, F, NA"],
    ),
    "bad phenotype": (
        edit(SAMPLES, "N03\tnorth\tP\t1", "N03\tnorth\tP\tcase"),
        "sheets",
        [SAMPLES, "row 5", "'case'", "1 case, 0 control"],
    ),
    "phenotype of one class": (
        lambda cohorts: Path(SAMPLES).write_text(
            Path(SAMPLES).read_text().replace("\t0\n", "\t1\n")
        ),
        "sheets",
        [SAMPLES, "phenotype", "all 21 known values are '1'"],
    ),
    "empty sample name": (
        append(SAMPLES, "\tnorth\tP\t1"),
        "sheets",
        [SAMPLES, "row 23", "sample is ''"],
    ),
    "one sample only": (
        rewrite(lambda c: [replace(c[0], samples=["N"], genotypes=c[0].genotypes[:, :1])]),
        "sheets",
        [SAMPLES, "north", "1 sample", "two"],
    ),
    "one founder sample": (
        rewrite(
            lambda c: [
                replace(c[0], samples=["N"], genotypes=c[0].genotypes[:, :1], populations=[]),
                replace(c[1], founder=False),
            ]
        ),
        "sheets",
        [SAMPLES, "north", "1 sample", "two"],
    ),
    # --- headers of genotype files, read before any job
    "text that is no VCF": (
        write(NORTH, b"hello\n"),
        "sheets",
        [SHEET, "row 2", NORTH, "not a VCF", "hello"],
    ),
    "empty file": (write(NORTH, b""), "sheets", [SHEET, "row 2", NORTH, "empty"]),
    "gzip of no VCF": (
        write(SOUTH, gzip.compress(b"a,b,c\n" * 9)),
        "sheets",
        [SHEET, "row 3", SOUTH, "not a VCF"],
    ),
    "VCF without samples": (
        lambda cohorts: Path(NORTH).write_text(
            "\n".join("\t".join(line.split("\t")[:8]) for line in cohorts[0].vcf().splitlines())
        ),
        "sheets",
        [SHEET, "row 2", NORTH, "no samples"],
    ),
    "sample twice in a header": (
        edit(NORTH, "\tN03\t", "\tN02\t"),
        "sheets",
        [SHEET, "row 2", NORTH, "line 2", "'N02' occurs 2 times"],
    ),
    "truncated bgzip": (truncated_bgzip, "sheets", [SHEET, "row 3", SOUTH, "cut short"]),
    # --- records
    "truncated gzip": (truncated_gzip, "sheets", [SHEET, "row 3", SOUTH, "cut short"]),
    "VCF without GT": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"[01.]/[01.]", "12", cohorts[0].vcf()).replace("\tGT\t", "\tDP\t")
        ),
        "ingest",
        [NORTH, "line 3", "'DP'", "no genotypes (GT)"],
    ),
    "dosages in FORMAT DS": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"[01.]/[01.]", "0.97", cohorts[0].vcf()).replace("\tGT\t", "\tDS\t")
        ),
        "ingest",
        [NORTH, "line 3", "'DS'", "dosages"],
    ),
    "dosages in GT": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"(\t)[01.]/[01.]\n", r"\g<1>0.97\n", cohorts[0].vcf(), count=1)
        ),
        "ingest",
        [NORTH, "line 3", "'0.97'", "'N07'", "dosage"],
    ),
    "haploid call": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"(\t)[01.]/[01.]\n", r"\g<1>1\n", cohorts[0].vcf(), count=1)
        ),
        "ingest",
        [NORTH, "line 3", "'1'", "'N07'", "haploid", "contigs.haploid"],
    ),
    "allele that is not there": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"(\t)[01.]/[01.]\n", r"\g<1>0/2\n", cohorts[0].vcf(), count=1)
        ),
        "ingest",
        [NORTH, "line 3", "'0/2'", "'N07'"],
    ),
    "missing column in a record": (
        lambda cohorts: Path(NORTH).write_text(
            re.sub(r"\t[01.]/[01.]\n", "\n", cohorts[0].vcf(), count=1)
        ),
        "ingest",
        [NORTH, "line 3", "16 columns where 17"],
    ),
    "position that is no number": (edit(NORTH, "\t1000\t", "\t1e3\t"), "ingest", [NORTH, "1e3"]),
    "no record": (
        lambda cohorts: Path(NORTH).write_text("\n".join(cohorts[0].vcf().splitlines()[:2])),
        "ingest",
        [NORTH, "no records"],
    ),
    # --- errors that only the data reveal
    "no sample passes": (
        set_genotypes(0, slice(0, 60), slice(None), -1),
        "qc",
        ["north/raw.bed", "qc.min_sample_call_rate", "0.9"],
    ),
    "founders without a common site": (
        move_sites(1, shift=7),
        "panel",
        [
            "north, south",
            "150 before the step 'sites shared with founder south', 0 after it); check that the "
            "founders are of one genome build",
        ],
    ),
    "zero sites after min_hwe_p": (
        config(panel={"min_hwe_p": 1.0, "min_maf": 0.3}),
        "panel",
        ["results/panel/sites.tsv", "the step 'panel.min_hwe_p = 1.0', 0 after it); relax that"],
    ),
    "zero sites after exclude_contigs": (
        config(contigs={"exclude": ["1", "2"]}),
        "panel",
        ["150 before the step 'contigs.exclude', 0 after"],
    ),
    "contigs that do not overlap the panel": (
        move_sites(2, contig="scaffold"),
        "encode",
        ["west/raw.bim", "'west'", "scaffold1, scaffold2", "1, 2", "rename"],
    ),
    "positions that do not overlap the panel": (
        move_sites(2, shift=7),
        "encode",
        ["west/raw.bim", "'west'", "genome build"],
    ),
    "few sites in common": (
        sparse({"min_called": 100}),
        "distance",
        ["'N00' and 'N01'", "distance.min_called = 100"],
    ),
    "no pair to keep": (
        sparse({"min_called": 100, "on_uncomparable": "drop"}),
        "distance",
        ["no two samples", "distance.min_called = 100"],
    ),
    "isolated sample": (
        sparse({"min_called": 100, "on_uncomparable": "keep"}),
        "geodesic",
        ["'N00'", "no comparable other sample"],
    ),
    "weights beyond numbers": (
        config(geodesic={"alpha": [400]}),
        "geodesic",
        ["config/config.yaml", "geodesic.alpha = 400", "lower it"],
    ),
    "too few samples for UMAP": (
        keep_samples(2, 2),
        "embedding",
        ["UMAP", "at least 5 samples", "has 4"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_user_error_gives_one_sentence(study, cohorts, case):
    spoil, expected_stage, words = CASES[case]
    spoil(cohorts)
    stage, sentence = run_study()
    print(sentence)
    assert stage == expected_stage, sentence
    for word in words:
        assert word in sentence
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    assert not re.search(r"[.?] [A-Z]", sentence), "one sentence"
    assert len(sentence) < 400
    assert str(study) not in sentence, "paths are relative to the study"
    written = [p for p in study.rglob("*") if "results" in p.parts]
    assert not [p for p in written if p.name.endswith(".tmp")], "nothing half-written"
    if stage == "sheets":
        assert not written, "no job ran"
    if stage == "ingest":
        names = {p.name for p in written}
        assert not {"raw.json", "raw.bed"} & {p.name for p in written if "south" in p.parts}, names


def test_a_valid_study_runs(study):
    assert run_study() == ("", "")


def test_spaces_in_names_are_kept(study, cohorts):
    spaced = [replace(c, samples=[f"{name} of {c.name}" for name in c.samples]) for c in cohorts]
    write_study(study, spaced, FAST | {"export": {"formats": ["vcf", "newick"]}})
    assert run_study() == ("", "")
    names = [name for c in spaced for name in c.samples]
    assert sorted(read_table(RESULTS / "distance/samples.tsv")["sample"]) == sorted(names)
    assert sorted(read_table(RESULTS / "embedding/pca.tsv")["sample"]) == sorted(names)


def test_swapped_cohort_is_handled_and_counted(study, cohorts):
    """REF and ALT exchanged in a newcomer: exchanged back and counted, with the same distances."""
    assert run_study() == ("", "")
    squared = open_symmetric(Path("results/distance/squared.npy"))[:]
    unambiguous = [k for k in range(150) if cohorts[2].sites[k][3:] != ("A", "T")]
    write_study(study, [*cohorts[:2], swap_alleles(cohorts[2], unambiguous)])
    assert run_study() == ("", "")
    np.testing.assert_array_equal(open_symmetric(Path("results/distance/squared.npy"))[:], squared)
    counts = yaml.safe_load(Path("results/cohorts/west/planes.json").read_text())["counts"]
    panel = read_table(Path("results/panel/sites.tsv")).shape[0] - 1
    assert counts["swapped_turned"] > 0.8 * panel
    assert counts["swapped_ambiguous_dropped"] == 0
    write_study(study, [*cohorts[:2], swap_alleles(cohorts[2], range(150))])
    assert run_study() == ("", "")
    counts = yaml.safe_load(Path("results/cohorts/west/planes.json").read_text())["counts"]
    assert counts["swapped_ambiguous_dropped"] > 0
    assert counts["swapped_turned"] + counts["swapped_ambiguous_dropped"] == panel


@pytest.mark.parametrize("policy", ["diploidize", "missing"])
def test_haploid_calls_pass_where_a_policy_says_so(study, cohorts, policy):
    CASES["haploid call"][0](cohorts)
    write_sheets(study, cohorts, FAST | {"contigs": {"haploid": policy}})
    assert run_study() == ("", "")
    counts = yaml.safe_load(Path("results/cohorts/north/raw.json").read_text())["counts"]
    assert counts["haploid_calls"] == 1


def test_wide_sheets_give_short_error_messages(study, cohorts):
    """An error about one sample among thousands does not print them all."""
    names = [f"ID{k:05d}" for k in range(3000)]
    Path(NORTH).write_text(
        "##fileformat=VCFv4.2\n" + cohorts[0].vcf().split("\n")[1].split("N00")[0]
        + "\t".join(names) + "\n"
    )  # fmt: skip
    Path(SAMPLES).write_text("sample\tcohort\nxyzzy\tnorth\n")
    stage, sentence = run_study()
    assert stage == "sheets"
    assert "'xyzzy'" in sentence
    assert len(sentence) < 400
