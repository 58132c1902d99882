"""Whatever reads decoded files writes the same bytes from rows and from lists of carriers.

All other results are made from what these stages write, so they are the same, too.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenes.mosaics import make_haplotypes
from support.study import NO_FILTERS, Cohort, make_sites, swap_alleles

import popdesic
from popdesic.cohort import check_reference, phased_targets
from popdesic.cohort.absent import UNSTATED, Absent
from popdesic.cohort.accuracy import by_mode, evaluate_window, measure_accuracy
from popdesic.cohort.batch import ingest_batch
from popdesic.cohort.beagle import BEAGLE_MB, beagle_settings, impute_window, window_genotypes
from popdesic.cohort.copy_cohort import by_copying, copy_cohort
from popdesic.cohort.copy_haplotypes import CopyOptions
from popdesic.cohort.define_panel import PanelFilters, build_panel
from popdesic.cohort.drift import measure_drift
from popdesic.cohort.encode import encode_cohort
from popdesic.cohort.freeze_founders import freeze_founders
from popdesic.cohort.impute import read_windows, write_windows
from popdesic.cohort.ingest import ingest_cohort
from popdesic.cohort.panel import load_panel
from popdesic.cohort.qc import summarize_cohort
from popdesic.cohort.sample_checks import Checks
from popdesic.core.files import has_lists, read_json
from popdesic.core.places import HOME
from popdesic.engine.backend_cpu import CpuBackend
from popdesic.io import listed_rows
from popdesic.io.bed import open_bed
from popdesic.population.counts import count_cohorts
from popdesic.population.further_sites import further_sites
from popdesic.study.forget import rewrite_without

N_SITES = 240
SIZES = {"north": 28, "south": 24, "west": 26}
FOUNDERS = ("north", "south")
#: What the sheet says of sites that a file lacks.
SAID = {"north": UNSTATED, "south": UNSTATED, "west": Absent("reference")}
#: A sample that the sheet excludes after its cohort was decoded.
EXCLUDED = "N07"


def draw(name: str, seed: int) -> Cohort:
    """Every third site is common, and neighbours of these predict each other; the rest is rare.

    The second founder has one site in seven with its alleles the other way. The newcomer lacks one
    in nine, and a sample of it has no call.
    """
    rng, n = np.random.default_rng(seed), SIZES[name]
    haplotypes = make_haplotypes(N_SITES, 2 * n, seed)
    genotypes = (haplotypes[:, ::2] + haplotypes[:, 1::2]).astype(np.int8)
    share = np.random.default_rng(9).choice([0.005, 0.02, 0.05], N_SITES)
    rare = np.arange(N_SITES) % 3 > 0
    genotypes[rare] = rng.binomial(2, share[rare, None], (rare.sum(), n))
    genotypes[rng.random(genotypes.shape) < 0.02] = -1
    sites = [("X" if k > 210 else s[0], *s[1:]) for k, s in enumerate(make_sites(N_SITES))]
    cohort = Cohort(name, [f"{name[0].upper()}{k:02d}" for k in range(n)], sites, genotypes)
    if name == "south":
        return swap_alleles(cohort, [k for k in range(0, N_SITES, 7) if k % 10 != 9])  # not A/T
    if name == "west":
        kept = [k for k in range(N_SITES) if k % 9 != 4]
        genotypes[:, 3] = -1
        cohort = replace(cohort, sites=[sites[k] for k in kept], genotypes=genotypes[kept])
    return cohort


def settle(folder: Path) -> None:
    """What the readers need beside decoded files: tables of samples, panel, planes, a reference."""
    control_quality(folder, folder)
    filters = PanelFilters(**NO_FILTERS | {"min_maf": 0.05})
    define_panel(folder, folder, filters)
    for name in SIZES:
        encode(folder, folder / name, name)
    write_windows(load_panel(folder / "panel.tsv")[0], folder / "windows.tsv", window_mb=0)
    freeze(folder, folder)
    lines = ["sample\tcohort\tpopulation"]
    for name, size in SIZES.items():
        lines += [f"{name[0].upper()}{k:02d}\t{name}\t{'PQ'[k % 2]}" for k in range(size)]
    (folder / "sheet.tsv").write_text("\n".join(lines) + "\n")


def raw_of(folder: Path, name: str) -> Path:
    return folder / name / "raw"


def placed(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Stem of the decoded files, table of samples, and the panel."""
    return raw_of(folder, name), folder / f"{name}.samples.tsv", folder / "panel.tsv"


def control_quality(folder: Path, out: Path) -> None:
    checks = Checks(
        sexes={"N01": "M", "S02": "F"},
        parents={"N03": ("N01", "N02"), "S05": ("S01", "S02")},
        x_contigs=("X",),
        max_heterozygosity_sd=8,
    )
    for name in SIZES:
        summarize_cohort(
            raw_of(folder, name),
            {f"{name[0].upper()}{k:02d}": "PQ"[k % 2] for k in range(SIZES[name])},
            out / f"{name}.sites.tsv",
            out / f"{name}.samples.tsv",
            populations_out=out / f"{name}.populations.tsv",
            min_sample_call_rate=0.0,
            excluded={EXCLUDED},
            checks=checks,
        )


def define_panel(folder: Path, out: Path, filters: PanelFilters | None = None) -> None:
    pruned = PanelFilters(**NO_FILTERS | {"min_maf": 0.01, "ld_prune": ["20 sites", 1, 0.2]})
    build_panel(
        {name: folder / f"{name}.sites.tsv" for name in FOUNDERS},
        out / "panel.tsv",
        out / "counts.json",
        filters or pruned,
        genotypes={name: placed(folder, name)[:2] for name in FOUNDERS},
        further_out=out / "further.tsv",
    )


def encode(folder: Path, out: Path, name: str, impute: str = "mode") -> None:
    how = {"impute": impute, "cohort": name, "absent": SAID[name]}
    encode_cohort(*placed(folder, name), out, **how)


def encode_all(folder: Path, out: Path) -> None:
    for name in SIZES:
        for impute in ("mode", "none"):
            encode(folder, out / f"{name}.{impute}", name, impute)


def summarize(folder: Path, out: Path) -> None:
    """What `summarize_quality` reads decoded files for: drift and accuracy of the mode."""
    named = {name: placed(folder, name) for name in SIZES}
    sites = {name: folder / f"{name}.sites.tsv" for name in SIZES}
    pairs = {name: one[:2] for name, one in named.items()}
    panel, known = folder / "panel.tsv", {"genotypes": pairs, "absent": SAID}
    measure_drift(sites, panel, set(FOUNDERS), out / "drift.tsv", **known)
    raws, samples = ({name: one[k] for name, one in named.items()} for k in (0, 1))
    how = {"methods": ["mode"], "seed": 3, "code": "", "absent": SAID}
    row = out / "evaluation/row.json"
    measure_accuracy(out / "evaluation.tsv", [], row, raws, samples, panel, **how)


def count(folder: Path, out: Path) -> None:
    """Counts of populations, beside the panel too."""
    folders = {name: folder / name for name in SIZES}
    tables = [folder / f"{name}.samples.tsv" for name in SIZES]
    absent = {name: (said.rule, said.mask) for name, said in SAID.items()}
    count_cohorts(
        folders,
        out / "row.json",
        panel=folder / "panel.tsv",
        sheet=folder / "sheet.tsv",
        labels=dict.fromkeys(folders, ""),
        kinship=None,
        rows={},
        further=further_sites(folder / "further.tsv", folders, tables, absent),
        runs=None,
        code="",
        backend=lambda need: CpuBackend(1),
        column="population",
        x_contigs=["X"],
    )
    assert all(np.load(out / f"{name}.npz")["further"].any() for name in SIZES)


def freeze(folder: Path, out: Path) -> None:
    raws, tables = zip(*(placed(folder, name)[:2] for name in FOUNDERS), strict=True)
    given = raws, tables, folder / "panel.tsv", out / "reference.npz", "1 cM/Mb"
    freeze_founders(*given, CopyOptions(), [SAID[name] for name in FOUNDERS])


def copy(folder: Path, out: Path) -> None:
    for name in ("north", "west"):
        ends = {"genotypes": "npy", "about": "json", "haplotypes": "npz", "quality": "r2.npy"}
        files = {kind: out / f"{name}.{kind}.{end}" for kind, end in ends.items()}
        given = *placed(folder, name), folder / "reference.npz", files, CopyOptions()
        copy_cohort(*given, absent=SAID[name])


def evaluate(folder: Path, out: Path) -> None:
    copying = by_copying(folder / "reference.npz", folder / "panel.tsv", CopyOptions())
    for name in SIZES:
        given = *placed(folder, name), folder / "windows.tsv", 1, out / f"{name}.npz"
        how = {"cohort": name, "seed": 3, "absent": SAID[name]}
        evaluate_window(*given, imputers={"mode": by_mode, "copying": copying}, **how)


def impute(folder: Path, out: Path) -> None:
    """Genotypes of a window as Beagle gets them; here no command fills what is missing."""
    settings = beagle_settings(BEAGLE_MB, 1, "", "")
    for name in SIZES:
        given = *placed(folder, name), folder / "windows.tsv", 2, out / name
        impute_window(*given, settings, absent=SAID[name])


def rate(folder: Path, out: Path) -> None:
    """The genotypes that `measure_quality` hides."""
    panel, _ = load_panel(folder / "panel.tsv")
    for window, name in enumerate(SIZES):
        raw, samples, _ = placed(folder, name)
        chosen = read_windows(folder / "windows.tsv")[window]
        np.save(out / name, window_genotypes(raw, samples, panel, chosen, SAID[name]))


def decode_again(folder: Path, out: Path) -> None:
    """Decoded files as those of a cohort, alone and in a batch; without the lists themselves."""

    def rows_of(prefix: Path) -> None:
        np.save(f"{prefix}.npy", np.array(open_bed(prefix)[:]))
        for end in (".bed", ".json"):
            prefix.with_suffix(end).unlink()

    def decode(name: str, prefix: Path):
        return ingest_cohort(raw_of(folder, name).with_suffix(".bed"), prefix)

    decode("north", out / "one")
    ingest_batch(["south", "west"], decode, out / "batch", founders=False, absent=Absent())
    for name in ("one", "batch"):
        rows_of(out / name)


def forget(folder: Path, out: Path) -> None:
    shutil.copytree(folder / "south", out / "south")
    rewrite_without(out / "south/raw", "S11")
    np.save(out / "south.npy", np.array(open_bed(out / "south/raw")[:]))
    for end in (".bed", ".json"):
        (out / "south/raw").with_suffix(end).unlink()


#: What reads decoded files, by the rule or command that does.
READERS: dict[str, Callable[[Path, Path], None]] = {
    "ingest_cohort": control_quality,
    "build_panel": define_panel,
    "encode_cohort": encode_all,
    "summarize_quality": summarize,
    "measure_population": count,
    "freeze_reference": freeze,
    "impute_by_copying": copy,
    "evaluate_imputation": evaluate,
    "impute_window": impute,
    "rate_imputation": rate,
    "files of another study": decode_again,
    "popdesic forget": forget,
}
#: Modules that open decoded files, or any .bed, in the readers above.
OPENED = {
    *("cohort/qc", "cohort/sample_checks", "cohort/encode", "cohort/batch", "cohort/raw_sites"),
    *("cohort/accuracy", "cohort/beagle", "cohort/copy_cohort", "cohort/freeze_founders"),
    *("cohort/define_panel", "population/further_sites", "io/plink", "study/forget", "io/bed"),
}
#: Modules that open genotypes on the panel alone, which are rows always.
ON_PANEL = {
    *("cohort/artefacts", "cohort/fill_calls", "cohort/missingness", "cohort/site_alleles"),
    *("cohort/site_planes", "components/relationship", "export/panel", "epistasis/kept_sets"),
    *("epistasis/lead_regions", "epistasis/reorder", "epistasis/replication"),
    *("population/ancestry", "population/local_structure", "relatives/relatedness"),
}


def small_limits(patch: pytest.MonkeyPatch) -> None:
    """Few founders at few sites are phased and copied from, and nobody runs Beagle."""
    patch.setattr(check_reference, "MIN_SHARED_SITES", 1)
    patch.setattr(phased_targets, "MIN_SHARED_SITES", 1)
    patch.setattr(check_reference, "LEAST_FOUNDERS", 2)
    patch.setattr("popdesic.cohort.freeze_founders.MOST_FOUNDERS", 12)
    patch.setattr("popdesic.cohort.beagle.find_beagle", lambda: None)


@pytest.fixture(scope="module")
def studies(tmp_path_factory) -> Iterator[dict[str, Path]]:
    """A study of rows and one of lists, which have all but the decoded genotypes in common."""
    rows, lists = (tmp_path_factory.mktemp(kind) / "study" for kind in ("rows", "lists"))
    cohorts = [draw(name, seed) for seed, name in enumerate(SIZES)]
    with pytest.MonkeyPatch.context() as patch:
        small_limits(patch)
        for cohort in cohorts:
            (rows / cohort.name).mkdir(parents=True)
            (rows / f"{cohort.name}.vcf").write_text(cohort.vcf())
            ingest_cohort(rows / f"{cohort.name}.vcf", rows / cohort.name / "raw")
        settle(rows)
        shutil.copytree(rows, lists)
        patch.setattr(listed_rows, "LEAST_LISTED", 1)
        patch.setattr(listed_rows, "LEAST_GAIN", 0)
        patch.setattr("popdesic.cohort.ingest.LEAST_LISTED", 1)
        for name, size in SIZES.items():
            for end in (".bed", ".bim", ".fam", ".json"):
                raw_of(lists, name).with_suffix(end).unlink()
            ingest_cohort(lists / f"{name}.vcf", raw_of(lists, name))
            bed = open_bed(raw_of(lists, name))
            nobody, unused = np.full(size, -1, np.int64), np.zeros((size, 4), np.int64)
            with_rows = bed.count(0, len(bed), nobody, 0, unused)[1]
            assert 0.2 < len(with_rows) / len(bed) < 0.7, "some sites have lists, some rows"
    yield {"rows": rows, "lists": lists}


def files_below(folder: Path) -> dict[str, Any]:
    """All results below a folder; of lists of tiles, whose keys name their inputs, the tiles."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not path.name.startswith("."):
            content = path.read_bytes()
            if path.name == "row.json":
                content = [tile[:-1] for tile in read_json(path)["tiles"]]
            found[name] = content
    return found


@pytest.mark.parametrize("reader", READERS)
def test_results_of_lists_are_those_of_rows(studies, tmp_path, monkeypatch, reader):
    small_limits(monkeypatch)
    found = {}
    for kind, folder in studies.items():
        assert all(
            has_lists(raw_of(folder, name).with_suffix(".bed")) == (kind == "lists")
            for name in SIZES
        )
        out = tmp_path / kind / "out"
        out.mkdir(parents=True)
        READERS[reader](folder, out)
        found[kind] = files_below(out)
    assert found["rows"] and found["rows"].keys() == found["lists"].keys()
    assert [name for name, own in found["rows"].items() if own != found["lists"][name]] == []


def test_every_rule_that_reads_decoded_files_is_compared():
    found = set()
    for path in sorted((HOME / "workflow/rules").glob("*.smk")):
        text = path.read_text()
        for block in re.split(r"\n(?= *(?:rule|checkpoint)(?: \w+)?:\n)", text)[1:]:
            name = re.match(r" *\w+ (\w+):", block)
            names = [name[1]] if name else re.findall(r'(?m)^    "(\w+)": \($', text)
            if re.search(r"\bRAW\b|/raw\.", block.partition("    log:")[0]):
                found |= set(names)
    assert found == {name for name in READERS if "_" in name}


def test_every_module_that_opens_a_bed_is_known():
    """A new one belongs to a reader above, or reads genotypes on the panel."""
    folder, found = Path(popdesic.__file__).parent, set()
    for path in folder.rglob("*.py"):
        if re.search(r"\b(open_bed|open_cohort|OnPanel\.open|ListedRows)\(", path.read_text()):
            found.add(path.relative_to(folder).with_suffix("").as_posix())
    assert found == OPENED | ON_PANEL and not OPENED & ON_PANEL
