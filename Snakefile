# Popdesic: cohorts of VCFs -> panel -> distances -> geodesics -> maps -> report.
#
#   snakemake --cores all                      the study in this folder (the embedded example)
#   snakemake --cores all --directory STUDY    the study in STUDY/config
#   snakemake --profile slurm                  the same on a cluster
#   snakemake --cores all distance             up to a stage: panel, encode, distance, geodesic, ...

import importlib.util
import sys
import time
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.0")

STARTED = time.time()

# Not workflow.basedir: another workflow may use this one as a module.
WORKFLOW = Path(workflow.snakefile).parent
# In a wheel this file lies in the package itself. Jobs find packages where this process does.
PACKAGES = WORKFLOW / "src" if (WORKFLOW / "src").is_dir() else WORKFLOW.parents[1]

installed = importlib.util.find_spec("popdesic")
if workflow.is_main_process and installed and installed.origin:
    if not Path(installed.origin).resolve().is_relative_to(PACKAGES.resolve()):
        raise WorkflowError(
            f"Jobs would run the Popdesic of {Path(installed.origin).parent} instead of "
            f"{PACKAGES / 'popdesic'}, to which this Snakefile belongs; uninstall that one "
            "(`pip uninstall popdesic`, or take it off PYTHONPATH), or run its own workflow."
        )

if str(PACKAGES) not in sys.path:
    sys.path.insert(0, str(PACKAGES))

NEEDED = [name for name in ("numba", "pandas", "scipy") if importlib.util.find_spec(name) is None]
if NEEDED:
    raise WorkflowError(
        f"Python cannot find {', '.join(NEEDED)}: Snakemake must run where Popdesic is installed. "
        "Type `make run`, or `pip install .` in the repository and then `popdesic run STUDY`."
    )

from popdesic.core.errors import UserError
from popdesic.study.closing import last_line, quiet_interrupts, say_failure_last
from popdesic.study.configuration import read_config
from popdesic.study.forked_jobs import start_forks
from popdesic.study.records import require_writable
from popdesic.study.snakemake_internals import before_plan, has_given_config, is_module
from popdesic.study.trust import refuse_programs, settle_environment

# A study is data. As a module, this is a part of the study.
if workflow.is_main_process and not is_module(workflow):
    try:
        refuse_programs(Path())
    except UserError as error:
        raise WorkflowError(str(error)) from None
    settle_environment()

# Imports of jobs take about as long as the plan of a run.
before_plan(workflow, start_forks)

if workflow.is_main_process:
    try:
        require_writable(Path())
    except UserError as error:
        raise WorkflowError(str(error)) from None

CONFIG_KEYS = []
if not has_given_config(workflow):
    try:
        # Before Snakemake reads the file: it takes the last of two equal keys, and ten lines of
        # YAML can stand for more values than there is memory.
        CONFIG_KEYS = list(read_config())
    except UserError as error:
        raise WorkflowError(str(error)) from None

# Snakemake refuses a file without a key, but here every key has a default.
if CONFIG_KEYS:

    configfile: "config/config.yaml"


if not is_module(workflow):

    report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/functions.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/cohort_impute.smk"
include: "workflow/rules/cohort.smk"
include: "workflow/rules/distance.smk"
include: "workflow/rules/components.smk"
include: "workflow/rules/maps.smk"
include: "workflow/rules/geodesic.smk"
include: "workflow/rules/communities.smk"
include: "workflow/rules/relatives.smk"
include: "workflow/rules/ibd.smk"
include: "workflow/rules/geography.smk"
include: "workflow/rules/population.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/epistasis.smk"
include: "workflow/rules/epistasis_sets.smk"
include: "workflow/rules/report.smk"


# Results that were copied here without .snakemake are held against the sheets of today. As a module
# this is left to the workflow that uses it, whose results lie in the same folder.
if workflow.is_main_process and not is_module(workflow):
    keep_records()
    make_lost_tiles()
if workflow.is_main_process:
    decode_again()


onstart:
    from popdesic.study.progress import show_progress

    settle_place()
    require_disk()
    hold_batches(Path(), STUDY.units)
    show_progress(workflow, logger)
    quiet_interrupts(logger)


onsuccess:
    from popdesic.core.files import remove_temporaries

    keep_records()
    remove_temporaries(Path("results"))  # of nodes that died
    print(last_line(STARTED), file=sys.stderr)


onerror:
    keep_records()
    say_failure_last(STARTED)


# `snakemake STAGE` makes the files of a stage, `snakemake` those of all.
TARGETS["all"] = EVALUATION + [TARGETS[stage] for stage in TARGETS if stage != "impute"]

for stage, files in TARGETS.items():

    rule:
        name:
            stage
        default_target: stage == "all"
        input:
            files,
        message:
            f"All results of {stage} are there" if stage != "all" else "All results are there"
