"""Every command that the documentation shows is run, in a copy of the repository as after set-up.

How is said in WAYS; a command that is not there fails. docs/tutorial.md is run first, from top to
bottom, on the embedded example with fewer stages and repeats (TUTORIAL). What is put in for a
placeholder elsewhere:

STUDY         the tutorial's study, ../my-study
START, END    two of its samples
NEW           a folder that is not there yet
../shared     the real data, where there are any; skipped without
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support.browser import find_chromium
from support.clone import ROOT, make_clone, run
from support.commands import Shown, extract, pages, shown_commands
from support.paper import result_phrases
from support.reader import count_clicks, questions
from support.running import planned, snapshot
from support.sentences import MOST_WORDS, of_report


@dataclass(frozen=True)
class Way:
    """How a command is run: a kind (below), what is added to it, and why not as it stands."""

    kind: str
    add: str = ""
    why: str = ""


#: As it stands.
WHOLE = Way("whole")
#: With a size of seconds.
QUICK = Way("quick", " --quick", "hours at full size")
#: The same, where that size takes ten seconds or more (--slow).
HEAVY = Way("heavy", " --quick", "hours at full size")
#: The same on a GPU (--require-gpu).
GPU = Way("gpu", " --quick", "needs an NVIDIA GPU")
#: Tests are collected, not run: `make test` and `make test-slurm` run them.
COLLECT = Way("collect", "", "the tests that it runs run anyway")
#: Planned here; run for real by tests/slurm.
SLURM = Way("whole", " -n", "needs Slurm: tests/slurm/test_shown_commands.py")
#: Planned here; run for real on a bare machine by .ci/run.
BARE = Way("bare", " -n", "sets a machine up: .ci/run")


def named(why: str) -> Way:
    """No line to type: a name within a sentence."""
    return Way("named", "", why)


#: A wheel is built and installed into an environment of its own.
INSTALLED = named("what tests/workflow/test_wheel.py does, without an index")

BENCH = ".venv/bin/python tests/bench/bench_"
SNAKEMAKE = ".venv/bin/snakemake --cores all"
WAYS: dict[str, Way] = {
    # set-up and development
    "make run": BARE,
    "make test": BARE,
    "python3 tests/bare_root.py": named("what CI begins with; needs root and takes ten minutes"),
    ".venv/bin/python tests/fuzz/run.py --seconds 3600": Way(
        "whole", " sheets --seconds 4", "an hour; tests/fuzz runs all readers"
    ),
    "python docs/count_clicks.py": named("needs the finished example; tests/support/reader.py"),
    "python docs/measure_page.py": named("needs the finished example; test_page_contents.py"),
    "python tests/support/sentences.py": named("tests/docs/test_sentences.py"),
    ".venv/bin/pytest tests/docs/test_hip_compile.py": named("a part of `make test`"),
    "make lint": WHOLE,
    "snakemake --lint": named("a part of `make lint`"),
    "snakefmt --check -v": named("a part of `make lint`"),
    "make format": WHOLE,
    "make paper-figures": WHOLE,
    "make lock": Way("whole", " -n", "asks package indices for newer versions"),
    "make concordance": COLLECT,
    "make peers": Way("whole", " PEERS_FLAGS=--quick", "minutes at full size"),
    "make docs": Way("whole", " -n", "installs the generator: tests/docs/test_site.py"),
    "make test-slurm": COLLECT,
    ".venv/bin/python tests/bench/bench_phenotypes.py --bound": named(
        "tests/docs/test_page_facts.py"
    ),
    ".venv/bin/pytest tests/golden -s": COLLECT,
    ".venv/bin/pytest tests/golden/test_maps.py -s --slow": COLLECT,
    ".venv/bin/pytest tests/kernels --require-gpu": COLLECT,
    ".venv/bin/pytest tests/workflow/test_accidents.py": COLLECT,
    ".venv/bin/python -m pytest tests/simt --slow": COLLECT,
    **{
        f".venv/bin/pip install --require-hashes -r requirements-gpu{kind}.txt": Way(
            "install", "", "hundreds of megabytes: resolved, not installed"
        )
        for kind in ("", "-cuda12")
    },
    **{
        f".venv/bin/pip install {name}": Way(
            "install", "", "an optional package: in the tests' own"
        )
        for name in ("Pgenlib", "obstore", "tskit")
    },
    "pip install .": INSTALLED,
    "pip install '.[cuda12]'": INSTALLED,
    "pip install '.[cuda13]'": INSTALLED,
    **dict.fromkeys(
        (
            "python3 -m venv ../popdesic-env",
            "../popdesic-env/bin/pip install .",
            "export PATH=$PWD/../popdesic-env/bin:$PATH",
            "popdesic init NEW resources/example/atlantic.vcf.gz "
            "west=resources/example/pacific.vcf.gz",
            "popdesic run STUDY",
            "snakedeploy deploy-workflow https://github.com/OWNER/popdesic NEW --tag vVERSION",
        ),
        INSTALLED,
    ),
    **dict.fromkeys(
        (
            "buildah build -f envs/Containerfile -t popdesic .",
            "buildah build -f envs/Containerfile -t popdesic:cuda13 "
            "--build-arg PINS=requirements-gpu.txt .",
            "buildah push popdesic:cuda13 docker-archive:popdesic.tar",
        ),
        named("needs buildah and a base image; docs/installation.md says what was run"),
    ),
    **dict.fromkeys(
        (
            "apptainer build popdesic.sif docker-archive:popdesic.tar",
            "apptainer run --nv popdesic.sif run STUDY",
        ),
        named("needs apptainer, which Debian 12 does not have"),
    ),
    "snakemake --sdm conda": named("needs conda's channels"),
    "python3 tests/bare_root.py wheel": named("needs root, apt and minutes: by hand"),
    ".venv/bin/python resources/example/make_example.py": Way("slow", "", "a minute or two"),
    # a study
    ".venv/bin/popdesic init NEW resources/example/atlantic.vcf.gz "
    "west=resources/example/pacific.vcf.gz": WHOLE,
    ".venv/bin/popdesic check STUDY": WHOLE,
    ".venv/bin/python tests/bench/bench_disk.py STUDY": WHOLE,
    ".venv/bin/popdesic run STUDY -n": WHOLE,
    ".venv/bin/popdesic run STUDY distance": WHOLE,
    ".venv/bin/popdesic run STUDY": WHOLE,
    ".venv/bin/popdesic report STUDY": WHOLE,
    f"{SNAKEMAKE} --directory STUDY results/epistasis/plan.json": WHOLE,
    f"{SNAKEMAKE} --directory STUDY": WHOLE,
    f"{SNAKEMAKE} --resources gpu=4 --directory STUDY": WHOLE,
    ".venv/bin/snakemake --unlock --directory STUDY": WHOLE,
    ".venv/bin/snakemake --profile slurm --directory STUDY": SLURM,
    ".venv/bin/popdesic run STUDY --profile slurm": SLURM,
    ".venv/bin/popdesic run STUDY --profile slurm --no-one-job": SLURM,
    f"{BENCH}slurm.py --every-job": named("needs Slurm: tests/slurm/test_small_studies.py"),
    "snakemake --profile slurm --directory ../my-study": Way("whole", " -n", SLURM.why),
    "snakemake --report report.zip --directory ../my-study": WHOLE,
    ".venv/bin/popdesic plan STUDY": WHOLE,
    ".venv/bin/popdesic audit STUDY": WHOLE,
    ".venv/bin/popdesic crate STUDY": WHOLE,
    ".venv/bin/popdesic resume STUDY": WHOLE,
    ".venv/bin/popdesic path START END STUDY --space pcs --alpha 2": WHOLE,
    ".venv/bin/popdesic place resources/example/pacific.vcf.gz --sample END --study STUDY "
    "--out ../place": WHOLE,
    ".venv/bin/popdesic freeze REFERENCE.vcf.gz --map MAP -o REFERENCE.npz": named(
        "tests/unit/cohort/test_haplotype_panel.py"
    ),
    ".venv/bin/popdesic profiles add ../profiles lab=resources/example/atlantic.vcf.gz": WHOLE,
    ".venv/bin/popdesic profiles search ../profiles resources/example/pacific.vcf.gz --top 3 "
    "--out ../matches.tsv": WHOLE,
    ".venv/bin/popdesic impute TARGET.vcf.gz --reference REFERENCE.npz -o IMPUTED.vcf.gz": named(
        "tests/unit/cohort/test_copy_haplotypes.py"
    ),
    ".venv/bin/popdesic impute TARGET.vcf.gz --reference REFERENCE.npz -o IMPUTED.vcf.gz "
    "--likelihoods": named("tests/unit/cohort/test_likely_targets.py"),
    **{
        f".venv/bin/popdesic paint REFERENCE.npz {words}": named(
            "tests/unit/cohort/test_paint_file.py"
        )
        for words in ("-o COANCESTRY.npy", "--target TARGET.vcf.gz -o PAINTED.tsv")
    },
    ".venv/bin/popdesic ancestry TARGET.vcf.gz --reference REFERENCE.npz --labels LABELS.tsv "
    "-o TRACTS.tsv": named("tests/unit/cohort/test_ancestry_file.py"),
    ".venv/bin/popdesic sweeps REFERENCE.npz --labels LABELS.tsv -o SWEEPS.tsv": named(
        "tests/unit/population/test_sweeps.py"
    ),
    ".venv/bin/pytest tests/golden/test_copied_chromosome.py -s --slow": COLLECT,
    ".venv/bin/pytest tests/golden/test_copied_cohort.py -s --slow": COLLECT,
    ".venv/bin/pytest tests/unit/population/test_sweeps.py -k coalescents -s --slow": COLLECT,
    "bcftools view --samples ^NAME": named("what a user does to a file of their own"),
    "pip install fastmixture": named(
        "tests/unit/population/test_ancestry.py, where it is installed"
    ),
    "pip install mpi4py": named(
        "tests/unit/components/test_axes_together.py, where it is installed"
    ),
    "popdesic forget SAMPLE STUDY --yes": named("tests/workflow/test_exclude.py"),
    **{
        f"{start}popdesic {words}": named("tests/workflow/test_stale_results.py")
        for start, words in (
            (".venv/bin/", "forget --cohort pacific STUDY"),
            (".venv/bin/", "forget --cohort pacific STUDY --yes"),
            ("", "audit --remove-stale STUDY"),
        )
    },
    # docs/tutorial_real.md
    **{
        line: named("downloads real people: followed by hand, its numbers are from that run")
        for line in (
            "git clone --depth 1 https://github.com/gabraham/flashpca ../flashpca",
            "export H=../flashpca/HapMap3/HM3_thinned_autosomal_overlap",
            "export K=../flashpca/HapMap3/"
            "1kg.ref.phase1_release_v3.20101123_thinned_autosomal_overlap",
            ".venv/bin/popdesic init ../worldwide hapmap3=$H --samples "
            "../flashpca/HapMap3/relationships_w_pops_121708.txt",
            ".venv/bin/popdesic check ../worldwide",
            ".venv/bin/popdesic run ../worldwide",
            "cp $K.bed ../worldwide/kg1.bed",
            "awk 'NR == FNR {at[$2] = $4; next} {$4 = at[$2]; print}' $H.bim $K.bim "
            "> ../worldwide/kg1.bim",
            """awk '{$2 = "KG_" $2; print}' $K.fam > ../worldwide/kg1.fam""",
            r"printf 'kg1\tkg1\tno\n' >> ../worldwide/config/cohorts.tsv",
            r"""awk '{print $2 "\tkg1\tNA\tNA\tNA\tNA"}' ../worldwide/kg1.fam """
            ">> ../worldwide/config/samples.tsv",
            "popdesic crate ../worldwide",
        )
    },
    # benchmarks
    **{
        f"{BENCH}{name}": HEAVY
        for name in (
            "artefacts.py",
            "axes.py",
            "barriers.py",
            "communities.py",
            "copying.py",
            "copying.py --unphased --seed 11",
            "degrees.py",
            "epistasis_cpu.py",
            "ibd_communities.py",
            "ibd_newcomer.py",
            "ibd_truth.py",
            "imputation.py ../shared/data",
            "imputed_stages.py ../shared/data",
            "ingest.py",
            "interactions.py",
            "labels_example.py",
            "landscapes.py",
            "local_ancestry.py",
            "maps.py",
            "newcomers.py example",
            "null_sets.py",
            "one_locus.py",
            "organisms.py",
            "phantoms.py ../shared/data",
            "projection.py",
            "rare.py --products --passes",
            "relatives.py",
            "report.py",
            "rerun.py",
            "scaffolds.py",
            "scaling.py",
            "set_phantoms.py ../shared/data",
            "set_phantoms.py ../shared/data --replicates 54 --seed 4",
            "sparse_study.py",
            "study.py",
        )
    },
    **{
        f"{BENCH}{name}": QUICK
        for name in (
            "call_rates.py",
            "compare.py",
            "copying.py --founders --people 200 --seed 31",
            "distance.py",
            "family_axes.py",
            "haploid_ibd.py",
            "ibd.py",
            "interaction_power.py",
            "interaction_power.py --real ../shared/data",
            "kinship_null.py",
            "merging.py",
            "million.py",
            "minplus.py",
            "missing_kinship.py",
            "mixture_search.py",
            "neighbors.py",
            "number_formats.py ../shared",
            "pca.py",
            "peers.py",
            "phenotypes.py",
            "place.py",
            "population.py",
            "profiles.py",
            "quality.py",
            "rare.py",
            "relatedness.py",
            "scan_planes.py",
            "sets.py",
            "sparse_paths.py",
            "units.py",
        )
    },
    **{
        f"{BENCH}sets.py --studies {rest}": named("bench_sets.py --quick runs this part too")
        for rest in (
            *("0 --planted 0 --timed 0 --joined 40", "0 --timed 0 --joined 0 --jobs 1"),
            "0 --planted 0 --timed 0 --joined 0 --biobank 12 --biobank-people 10000",
        )
    },
    f"{BENCH}sets.py --planted 0 --timed 0 --joined 0 --jobs 1 --scenes "
    '"number x age" "number x exposed" "structure x age" "cases 1:1 x age" "cases 1:20 x age" '
    '"number x age, spread"': named("bench_sets.py --quick runs this part too"),
    f"{BENCH}maps.py --data ../shared/data": Way(
        "heavy", " --quick --pca --layouts", "hours at full size; the rest runs without --data"
    ),
    f"{BENCH}null_sets.py --scenes 'cases 1:1' 'cases 1:20' --sets 100000 "
    "--phenotypes 500 --seed 8": Way(
        "quick", " --quick --sets 400 --phenotypes 100", "minutes at full size"
    ),
    f"{BENCH}null_sets.py --scenes 'cases 1:20' --sets 300000 --phenotypes 500 --seed 9": named(
        "the command above with one of its scenes"
    ),
    f"{BENCH}painting.py --seeds 11 12 13 14 15 16 --null 101 140": Way(
        "quick", " --quick --seeds 1 --null 1 1", "minutes at full size"
    ),
    f"{BENCH}copying.py --coverage 0.5 1 4 --megabases 3 --people 1000 --targets 6 --seed 3": Way(
        "quick", " --quick --megabases 0.2 --people 40 --targets 2", "a minute at full size"
    ),
    # a GPU
    ".venv/bin/popdesic tune": named("tests/workflow/test_wheel.py"),
    **{
        f"{BENCH}{name}": GPU
        for name in (
            *("bitgemm_gpu.py", "bitgemm_gpu.py --spectrum", "bitgemm_gpu.py --ploidy"),
            *("compare_gpu.py", "epistasis.py"),
            *("epistasis_peers.py", "minplus_gpu.py", "devices.py", "neighbors.py --device gpu"),
            *("ibd.py --device gpu", "copying.py --device gpu", "ibd_mosaics.py", "together.py"),
            *("population.py --device gpu", "spread_gpu.py", "hardware_gpu.py"),
            "hardware_gpu.py --grid",
        )
    },
    f"{BENCH}epistasis.py --grid cuda-cores tensor-episdet epiclear --seconds 0.7": named(
        "more than a minute of a GPU; tests/bench/test_scan_grids.py plans it"
    ),
    # other programs and short names
    "plink2 --ref-from-fa": named("what a user does to a file of their own"),
    "bcftools +fixref": named("what a user does to a file of their own"),
    "bcftools view -c 1": named("what a user does to a file of their own"),
    "bcftools view -c 1:minor": named("what a user does to a file of their own"),
    "bcftools norm -m -": named("what a user does to a file of their own"),
    "plink2 --export bgen-1.2": named("what a user does to a file of their own"),
    "plink --mac 1": named("what a user does to a file of their own"),
    "bcftools merge -0": named("tests/bench/bench_merging.py, where it is installed"),
    "plink2 --indep-pairwise": named("whose windows ours are"),
    "plink2 --make-king": named("whose number ours is"),
    "plink1.9 --r2": named("whose number ours is"),
    "plink1.9 --het small-sample": named("whose number ours is"),
    "plink1.9 --homozyg": named("whose rule ours is"),
    **{
        f"popdesic run STUDY {words}": named("what bench_slurm.py runs")
        for words in ("--profile slurm", "--cores 2")
    },
    "popdesic resume STUDY --no-one-job": named("tests/slurm/test_small_studies.py"),
    **{
        f"tests/bench/bench_{words}": named("tests/bench/README.md shows it whole")
        for words in (
            *(
                "slurm.py --repeats 2",
                "minplus.py --closures 128 256 512 1024",
                "disk.py STUDY",
                "rare.py --samples 200000 --length 40000",
                "study.py --genomes 600000 --min-maf 0 --samples 12000 --cohorts 3 "
                "--dense-limit 1000 --warm --no-peers",
                "ingest.py --fields GT --samples 2000 --sites 30000 --repeats 2",
                "ingest.py --exports --fields GT --samples 2000 --sites 30000 --kinds BCF "
                "--threads 1 --repeats 1",
                "rare.py --products --samples 2000 --length 2000000",
                "rare.py --passes --samples 10000 --length 150000",
                "rare.py --axes --samples 200000 --length 40000 --copies 60 --device gpu "
                "--threads 16",
                "compare.py --searches",
                "pca.py --device gpu --threads 16 --no-matrix",
            ),
            *("axes.py --stage axes", "disk.py STUDY"),
            "axes.py --samples 6000 --sites 120000 --cohorts 2 --threads 1 --stage axes "
            "--repeats 1 --processes 4",
            "communities.py --scenes --worlds 16 --first-seed 12001",
            "communities.py --scenes --bridges 40 --first-seed 3001",
            "epistasis.py --cases dcDr --scores k2 k2_excess gini --share 0.1",
            *("ibd_mosaics.py --exact --threads 12", "ibd.py --ibis PATH --plink"),
            *(
                "ibd_newcomer.py --people 100 --newcomers 25 --lengths 100",
                "spread_gpu.py --devices 2",
            ),
        )
    },
    "bench_relatedness.py --cost": named("tests/bench/README.md shows it whole"),
    "python tests/bench/bench_quality.py": named("tests/bench/README.md shows it whole"),
    "scontrol show job": named("what the tests of Slurm read"),
    "snakemake -n": named("what bench_scaling.py times"),
    **dict.fromkeys(("popdesic init", "popdesic init --upgrade"), named("shown whole below")),
    ".venv/bin/popdesic init --upgrade STUDY": named("tests/unit/study/test_upgrade.py"),
    "popdesic run": named("shown whole above"),
    "popdesic COMMAND --help": named("each one's: tests/unit/study/test_run.py"),
    **{
        f"popdesic {name}": named("shown whole in docs/study.md or docs/installation.md")
        for name in ("check", "plan", "tune")
    },
    **{
        f"popdesic {name}": named("shown whole in docs/imputation.md")
        for name in ("freeze", "impute")
    },
    **{
        f"popdesic {name}": named("shown whole in docs/painting.md")
        for name in ("paint", "ancestry")
    },
    "popdesic sweeps": named("shown whole in docs/population.md"),
    "popdesic profiles": named("shown whole in docs/samples.md"),
    "popdesic --version": named("tests/workflow/test_wheel.py"),
    "popdesic resume": named("shown whole on the same page's neighbours"),
    "popdesic audit": named("shown whole below its table"),
}

#: What makes the tutorial's study quick; nothing that the pages' commands ask for is left out.
TUTORIAL = {
    "impute": {"evaluate": []},
    "geodesic": {"alpha": [2], "space": ["pcs"], "explain": True},
    "embedding": {"ensemble": 0},
    "communities": {"methods": ["hdbscan"]},
    "compare": {"analyses": []},
    "export": {"formats": []},
    "epistasis": {"order": [2], "covariates": [], "power": []},
}
#: What stands for the placeholders.
FILLED = {
    "STUDY": "../my-study",
    "NEW": "../new-study",
    "START": "AT00224",
    "END": "PC_0445-C",
}

ALL = shown_commands()


def in_script(shown: Shown) -> bool:
    """Whether the tutorial's script runs it."""
    return shown.page == "docs/tutorial.md" and shown.block


def texts(*kinds: str) -> list[str]:
    """Commands that are run in these ways, in the order in which they are shown."""
    wanted = [s.text for s in ALL if not in_script(s) and s.text in WAYS]
    return list(dict.fromkeys(text for text in wanted if WAYS[text].kind in kinds))


# --------------------------------------------------------------------------- taking them out

PAGE = """\
Type `make run`, or `popdesic
check .`; `plink2` and `--quick` are names.

```
cp a b   # a comment
VAR=1 whatever
```

```text
make nothing
```

    snakemake -n

```yaml
python: 3
```
"""


def test_commands_are_found_in_blocks_and_sentences():
    found = [(shown.line, shown.text, shown.block) for shown in extract(PAGE, "page.md")]
    assert found == [
        (1, "make run", False),
        (1, "popdesic check .", False),
        (5, "cp a b", True),
        (6, "VAR=1 whatever", True),
        (13, "snakemake -n", True),
    ]


def test_every_shown_command_is_run_some_way():
    unknown = [str(shown) for shown in ALL if not in_script(shown) and shown.text not in WAYS]
    assert not unknown, "commands that no test runs; say how in WAYS of this file: " + "; ".join(
        unknown
    )
    gone = WAYS.keys() - {shown.text for shown in ALL}
    assert not gone, f"WAYS names commands that no page shows: {sorted(gone)}"


def test_the_table_lists_every_benchmark_once_with_the_pages_that_quote_it():
    folder = ROOT / "tests/bench"
    rows = re.findall(r"^\| (`.*) \|$", (folder / "README.md").read_text("utf-8"), re.M)
    cells = [row.split(" | ") for row in rows]
    names = [re.search(r"bench_\w+", commands)[0] for commands, *_ in cells]
    assert names == sorted(path.stem for path in folder.glob("bench_*.py"))
    read = {path.relative_to(ROOT): path.read_text("utf-8") for path in pages()}
    del read[(folder / "README.md").relative_to(ROOT)]
    for name, (*_, quoted) in zip(names, cells, strict=True):
        said = {str(page) for page, text in read.items() if re.search(rf"\b{name}\b", text)}
        assert set(re.findall(r"\[(.*?)\]", quoted)) == said, name


# --------------------------------------------------------------------------- running them


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The copy in which all commands are typed."""
    return make_clone(tmp_path_factory.mktemp("clone").resolve())


@pytest.fixture(scope="module")
def tutorial(clone) -> list[tuple[str, str]]:
    """Each command of the tutorial's blocks with what it printed, run in one shell, in order."""
    path = clone / "config/config.yaml"
    written = path.read_text()
    config = yaml.safe_load(written)
    for block, values in TUTORIAL.items():
        config[block] |= values
    path.write_text(yaml.safe_dump(config))
    said = []
    exports: list[str] = []
    study = clone.parent / "my-study"
    for shown in ALL:
        if not in_script(shown) or shown.text in WAYS:  # `make run` is done: `.venv` is there
            continue
        if shown.text.startswith("export "):
            exports.append(shown.text)
            continue
        before = snapshot(study) if (study / "results").is_dir() else {}
        started = time.time()
        output = run(clone, "\n".join([*exports, shown.text]))
        said.append((shown.text, output))
        if before and "-n" not in shown.text.split() and time.time() - started > 5:
            kept = {name for name, value in snapshot(study).items() if before.get(name) == value}
            (clone.parent / "kept.json").write_text(json.dumps(sorted(kept)))
    path.write_text(written)
    return said


def filled(text: str) -> str:
    """The command with what stands for its placeholders."""
    return re.sub(r"\b(STUDY|NEW|START|END)\b", lambda match: FILLED[match[1]], text)


def needs_data(clone: Path, text: str) -> None:
    if "../shared" in text and not (clone.parent / "shared").exists():
        pytest.skip("the real data are not here; set POPDESIC_SHARED to their folder")


def test_the_copy_runs_its_own_package(clone):
    said = run(clone, ".venv/bin/python -c 'import popdesic; print(popdesic.__file__)'")
    assert Path(said.strip()).is_relative_to(clone)


def test_tutorial_adds_one_cohort(tutorial, clone):
    """Section 3: one cohort is decoded, and old files stay as they are."""
    plan = planned(next(said for text, said in tutorial if text.endswith("-n")))
    once = Counter({"ingest_cohort": 1, "encode_cohort": 1})
    assert plan & once == once
    assert plan["ingest_cohort"] == 1
    assert plan["measure_row"] == 1
    assert not plan["build_panel"]
    kept = set(json.loads((clone.parent / "kept.json").read_text()))
    for name in ("atlantic", "pacific"):
        assert f"cohorts/{name}/genotypes.bed" in kept
    assert "panel/sites.tsv" in kept
    assert {name for name in kept if name.startswith("distance/tiles/")}


def test_tutorial_names_files_that_are_there(tutorial, clone):
    text = (ROOT / "docs/tutorial.md").read_text()
    names = set(re.findall(r"`(?:results/)?((?:\w+/)+\w+\.(?:tsv|html))`", text))
    assert {"report/report.html", "embedding/quality.tsv"} <= names
    for name in names:
        assert (clone.parent / "my-study/results" / name).is_file(), name
    assert (clone.parent / "my-study/results/report/report.html").stat().st_size > 1e5


def test_sentences_of_the_tutorials_report_are_short(tutorial, clone):
    found = of_report(clone.parent / "my-study/results/report/report.html")
    assert len(found) > 800
    assert [f.text for f in found if f.words > MOST_WORDS] == []


def test_tutorial_prints_what_it_shows(tutorial):
    """Section 4: the table of hits, number by number."""
    text = (ROOT / "docs/tutorial.md").read_text()
    shown = re.search(r"```text\n(rank .*?)```", text, re.DOTALL)[1]
    said = next(said for text, said in tutorial if text.startswith("cut "))
    assert [line.split() for line in said.splitlines()] == [
        line.split() for line in shown.splitlines()
    ]


def test_the_paragraph_for_a_paper_is_what_was_found(tutorial, clone):
    text = (ROOT / "docs/tutorial.md").read_text("utf-8").split("## 6. Write it up")[1]
    left = " ".join(line[2:] for line in text.splitlines() if line.startswith("> "))
    for phrase in result_phrases(clone.parent / "my-study/results"):
        assert phrase in left, phrase
        left = left.replace(phrase, "")
    assert not re.search(r"\d", re.sub(r"PC[12]|f3|1 %", "", left)), left


@pytest.mark.skipif(find_chromium() is None, reason="no Chromium")
def test_the_report_answers_its_readers(tutorial, clone, browser):
    """Answers computed from the results are on the page, at most three clicks away."""
    results = clone.parent / "my-study/results"
    page = (results / "report/report.html").as_uri()
    asked, table = questions(results), (ROOT / "docs/report.md").read_text("utf-8")
    assert len(asked) > 10
    for question in asked:
        found = count_clicks(browser, page, question)
        assert found is not None and found[0] <= 3, question.text
        assert f"| {question.text} | {found[0]} |" in table, question.text


@pytest.mark.parametrize("text", texts("whole"))
def test_command(text, clone, request):
    command, variables = filled(text), {}
    if "../my-study" in command:
        request.getfixturevalue("tutorial")
    if text.startswith("snakemake "):  # the tutorial's shell
        variables["PATH"] = f"{clone}/.venv/bin:{os.environ['PATH']}"
    said = run(clone, command + WAYS[text].add, **variables)
    if text == "make format":
        for path in ROOT.glob("workflow/**/*.py"):
            assert (clone / path.relative_to(ROOT)).read_bytes() == path.read_bytes()
    if " init " in text:
        assert "no problem found." in run(clone, filled(".venv/bin/popdesic check NEW"))
    if " report " in text:
        assert said.splitlines()[-1].endswith("my-study/results/report/report.html")
    if " path " in text:
        assert {FILLED["START"], FILLED["END"]} <= set(said.split())


def check_benchmark(text: str, clone: Path) -> None:
    needs_data(clone, text)
    said = run(clone, text + WAYS[text].add)
    first, *rest = said.splitlines()
    assert first.startswith("--quick: ")
    assert len(rest) > 2


@pytest.mark.parametrize("text", texts("quick"))
def test_benchmark(text, clone):
    check_benchmark(text, clone)


@pytest.mark.slow
@pytest.mark.parametrize("text", texts("heavy"))
def test_heavy_benchmark(text, clone):
    check_benchmark(text, clone)


@pytest.mark.parametrize("text", texts("collect"))
def test_tests(text, clone):
    said = run(clone, text, PYTEST_ADDOPTS="--collect-only -q")
    assert re.search(r"^(\d+ tests?|no tests|\d+/\d+ tests) collected", said, re.MULTILINE)


@pytest.mark.parametrize("text", texts("bare"))
def test_set_up(text, clone):
    run(clone, text + WAYS[text].add)
    places = [ROOT / ".ci/run", *(ROOT / "tests").glob("bare*/**/*"), *ROOT.glob("tests/bare*")]
    assert any(text in path.read_text() for path in places if path.is_file())


@pytest.mark.parametrize("text", texts("install"))
def test_install(text, clone):
    if not shutil.which(".venv/bin/pip", path=str(clone)):
        (clone / ".venv/bin/pip").exists() or pytest.skip("this environment has no pip")
    quiet = {"PIP_DRY_RUN": "1", "PIP_RETRIES": "1", "PIP_TIMEOUT": "15"}
    reached = run(clone, f"{text} || echo exit status $?", **quiet)
    if re.search(r"Failed to establish|ConnectTimeout|NameResolution|No matching dist", reached):
        pytest.skip("no package index can be reached")
    assert "exit status" not in reached
    assert ("cupy" if "gpu" in text else text.split()[-1].lower()) in reached.lower()


@pytest.mark.slow
@pytest.mark.parametrize("text", texts("slow"))
def test_slow_command(text, clone):
    run(clone, text)
    for path in ROOT.glob("config/*.tsv"):
        assert (clone / "config" / path.name).read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def gpu(request, clone) -> dict[str, str]:
    """Variables of commands that use a GPU; skipped (with --require-gpu failed) without one."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except Exception as reason:
        message = f"no usable GPU: {reason}"
        if request.config.getoption("--require-gpu"):
            pytest.fail(message)
        pytest.skip(message)
    return {"XDG_CACHE_HOME": str(clone.parent / "cache")}


@pytest.mark.gpu
@pytest.mark.parametrize("text", texts("gpu"))
def test_gpu_command(text, gpu, clone):
    said = run(clone, text + WAYS[text].add, **gpu)
    if "bench_" in text:
        assert said.startswith("--quick: ")
    assert len(said.splitlines()) > 2
    assert "DIFFERENT" not in said


@pytest.mark.parametrize("text", texts("gpu"))
def test_without_a_gpu_one_sentence(text, clone):
    """Where there is none, each ends with a sentence and no traceback."""
    said = run(clone, text + WAYS[text].add, status=1, CUDA_VISIBLE_DEVICES="")
    assert len([line for line in said.splitlines() if line.startswith("Error: ")]) == 1
