# Popdesic: cohorts of VCFs -> panel -> distances -> geodesics -> maps -> report.
#
#   snakemake --cores all                      the study in this folder (the embedded example)
#   snakemake --cores all --directory STUDY    the study in STUDY/config
#   snakemake --profile slurm                  the same on a cluster
#   snakemake --cores all distance             up to a stage: panel, encode, distance, geodesic, ...

import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.0")

WORKFLOW = Path(workflow.basedir)
sys.path.insert(0, str(WORKFLOW / "src"))

from popdesic.study.configuration import read_config
from popdesic.io.errors import UserError

try:
    # Before Snakemake reads the file: it takes the last of two equal keys, and ten lines of YAML
    # can stand for more values than there is memory.
    CONFIG_KEYS = list(read_config())
except UserError as error:
    raise WorkflowError(str(error)) from None

# Snakemake refuses a file without a key, but here every key has a default.
if CONFIG_KEYS:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/ingest.smk"
include: "workflow/rules/qc.smk"
include: "workflow/rules/panel.smk"
include: "workflow/rules/windows.smk"
include: "workflow/rules/impute.smk"
include: "workflow/rules/encode.smk"
include: "workflow/rules/distance.smk"
include: "workflow/rules/embedding.smk"
include: "workflow/rules/geodesic.smk"
include: "workflow/rules/communities.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/reorder.smk"
include: "workflow/rules/epistasis.smk"
include: "workflow/rules/report.smk"


# Results that were copied here without .snakemake are held against the sheets of today.
if workflow.is_main_process:
    keep_records()


onsuccess:
    keep_records()


onerror:
    keep_records()


localrules:
    all,
    ingest,
    qc,
    panel,
    impute,
    encode,
    distance,
    geodesic,
    embedding,
    communities,
    compare,
    export,
    reorder,
    epistasis,
    report,


rule all:
    default_target: True
    input:
        rules.qc.input,
        EVALUATION,
        rules.distance.input,
        rules.geodesic.input,
        rules.embedding.input,
        rules.communities.input,
        rules.compare.input,
        rules.export.input,
        rules.epistasis.input,
        rules.report.input,
