# Threads, GPUs and memory of jobs.
#
# needs   GPUS, COHORTS, CONFIG; constants of the rule files when called
# gives   MANY, SOME, WIDE, PER_COHORT, BESIDE_GPU, ingest_memory(), ingest_minutes(), map_memory(),
#         map_minutes(), pca_memory(), pca_minutes(), planes_memory(), null_memory(), null_minutes(),
#         counting_gpus(), closing_gpus(), scan_gpus(), freezing_memory(), freezing_minutes(),
#         copying_memory(), copying_minutes(), painting_memory(), painting_minutes(),
#         sweeping_memory(), sweeping_minutes(), settle_place()

import os

from popdesic.engine.needs import closing_devices
from popdesic.core.places import SHARES_DEVICES
from popdesic.core.limits import ONE_JOB_SAMPLES
from popdesic.copying.copying_plan import MOST_FOUNDERS
from popdesic.io.frozen_haplotypes import count_haplotypes


def _cores():
    """Cores that the jobs of this machine share; 0 where each job has cores of its own."""
    if workflow.nodes is not None or not workflow.is_main_process:
        return 0
    try:
        return workflow.cores
    except WorkflowError:  # not set: a cluster's profile
        return 0


#: Threads of jobs, which a profile may override (`set-threads`): of those that can use many and
#: some, of those that most of a run waits for, and of each cohort's. On few cores jobs run side by
#: side, which wastes less than many threads of one: two of MANY fit, three of SOME.
MANY, SOME, WIDE, PER_COHORT = 8, 4, 8, 4
if cores := _cores():
    MANY, SOME = max(1, min(8, cores // 2)), max(1, min(4, cores // 3))
    WIDE = max(1, min(16, cores * 3 // 4))
    PER_COHORT = max(1, min(4, cores // len(COHORTS)))
#: Of jobs whose work a GPU does, where the study has one: several of them share it.
BESIDE_GPU = SOME if CONFIG["device"] == "gpu" else MANY


def settle_place():
    """Let jobs of one machine share its GPUs; advise how a small study runs on Slurm."""
    os.environ.pop(SHARES_DEVICES, None)
    if workflow.nodes is None:
        # Also in a job of a scheduler, which granted its GPU to all jobs of this run together.
        os.environ[SHARES_DEVICES] = "1"
    elif n_samples(*COHORTS) <= ONE_JOB_SAMPLES:
        logger.info(
            "This study is small: `popdesic run STUDY --profile slurm` can run it as one Slurm job, "
            "which takes less time."
        )


def closing_gpus():
    """GPUs of a closure: several where the study says so and has many samples."""
    return GPUS and closing_devices(n_samples(*COHORTS), closure_gpus())


def scan_gpus(wildcards):
    """GPUs of a scan: none of quads by interaction, which no GPU scans."""
    return GPUS if DEVICES[int(wildcards.order)] != "cpu" else 0


def pca_memory(wildcards, input, attempt):
    """Of the products of a group of samples with those that define the axes, and of scores."""
    n = n_samples(*COHORTS)
    return limit_mb(400 + 0.05 * n + min(2_200, 6e-6 * n**2), attempt)


def pca_minutes(wildcards, input, attempt):
    """Of relationships to those who define the axes; of a pass where weights of sites replace them.

    All products of a genotype then take 5 ns on a core, the scores of a sample 0.2 ms.
    """
    n, mb = n_samples(*COHORTS), input_mb(input.genotypes)
    if SCORES_BY_WEIGHTS:
        return limit_minutes(0.5 + 1e-4 * mb + 5e-6 * n, attempt)
    return limit_minutes(4e-6 * mb * n + 5e-5 * n, attempt)


def planes_memory(wildcards, input, attempt):
    """`mem_mb` of planes of scans, and of random genotypes on which their time is forecast.

    Planes are made in blocks, which are as large as those of a small study. Tables of sites take 25
    times their text, those of people 1 000 bytes each.
    """
    planes = min(1_500, 4 * input_mb(input.beds))
    sites = 25 * input_mb(input.rest) / len(COHORTS)
    return limit_mb(1_500 + planes + sites + 1e-3 * n_samples(*COHORTS), attempt)


def null_memory(wildcards, input, attempt):
    """`mem_mb` of a null model: as `pca_memory`, a few copies of the design matrix, families.

    Genotypes are read in chunks, as float64. Pairs of relatives are listed; few are in one family.
    """
    n, mb = n_samples(*COHORTS), input_mb(input)
    return limit_mb(1_200 + min(2_000, mb) + 0.05 * n + min(4_000, 32e-6 * n**2), attempt)


def null_minutes(wildcards, input, attempt):
    """As `pca_minutes`, and tests of all sites: 3 seconds of a core for a MB of planes."""
    n, mb = n_samples(*COHORTS), input_mb(input)
    scores = 1e-4 * mb + 5e-6 * n if SCORES_BY_WEIGHTS else 4e-6 * mb * n
    return limit_minutes(1 + scores + 1e-4 * n + mb / 20, attempt)


def set_minutes(wildcards, input, attempt):
    """Of tests of sets, and again in cohorts: at most so many as its files have rows of 20 bytes,
    or of 10 where they are pairs of names.

    A set of 25 sites and 10 000 people takes 0.07 s of a core (numbers) to 0.12 s (cases), and 0.03
    s for tests of all cohorts; a busy core takes twice as long. Up to 20 leading sets are tested
    100 times more, with about as much for the sites of their regions.
    """
    rows = 1e6 * input_mb([input.sets]) / 20 * (1 + len(SETS.environments))
    if SETS.pairs:
        rows += 1e6 * input_mb([input.pairs]) / 10
    rows = rows * (2 if SETS_BY_COHORT else 1) + 20 * 100 * 2
    return limit_minutes(5 + rows * (0.05 + 1e-5 * n_samples(*COHORTS)) / 60, attempt)


def _decoded_mb(raws):
    """Megabytes of the cohorts' genotypes."""
    return input_mb([str(Path(raw).with_suffix(".bed")) for raw in raws])


def _copied_haplotypes(frozen=None):
    """Haplotypes that are copied from: those of the founders, or of a frozen file."""
    if COPIED_FOUNDERS:
        return 2 * min(n_samples(*COPIED_FOUNDERS), MOST_FOUNDERS)
    return count_haplotypes(Path(frozen))


def freezing_memory(wildcards, input, attempt):
    """`mem_mb` of a reference, whose haplotypes are written as they are read, or of founders."""
    mb = 30 * _decoded_mb(input.raws) if COPIED_FOUNDERS else input_mb(input)
    return limit_mb(2000 + mb, attempt)


def freezing_minutes(wildcards, input, attempt):
    """`runtime`. Founders, 8 cores: 36 sweeps, 0.2 CPU-seconds for a million cells."""
    if not COPIED_FOUNDERS:
        return limit_minutes(5 + input_mb(input) / 20, attempt)
    cells = 4 * _decoded_mb(input.raws) * _copied_haplotypes()  # in millions
    return limit_minutes(5 + 0.2 * cells / 8 / 60, attempt)


def copying_memory(wildcards, input, attempt):
    """`mem_mb`: genotypes of a contig as bytes, some copies; states of a window on each thread."""
    mb, n = _decoded_mb([input.raw]), _copied_haplotypes(input.reference[0])
    return limit_mb(1800 + 40 * mb + 0.06 * n, attempt)


def copying_minutes(wildcards, input, attempt):
    """`runtime`. 4 000 haplotypes, 8 cores: a second for 3 million genotypes, phased."""
    mb, n = _decoded_mb([input.raw]), _copied_haplotypes(input.reference[0])
    return limit_minutes(5 + 1.5 * mb * (0.1 + 0.9 * n / 4000), attempt)


def _donors():
    """Samples that others are painted by: founders, at most so many."""
    return min(n_samples(*STUDY.founders), MOST_FOUNDERS)


def painting_memory(wildcards, input, attempt):
    """`mem_mb`: donors' haplotypes, as bytes of a contig; those of a cohort; stretches of donors."""
    sites, n = input_mb([input.panel]) / 40, _donors()  # in millions; 40 bytes each
    bits = sites * (n + max(n_samples(cohort) for cohort in COHORTS)) / 4
    return limit_mb(1800 + bits + sites * n + 0.12 * n + 4e-4 * n**2, attempt)


def painting_minutes(wildcards, input, attempt):
    """`runtime`. 8 cores: a cell, of a haplotype, a site and a donor's haplotype, takes 5 ns."""
    cells = 4 * n_samples(*COHORTS) * _donors() * input_mb([input.panel]) / 40  # in millions
    return limit_minutes(5 + 5e-3 * cells / 8 / 60, attempt)


def sweeping_memory(wildcards, input, attempt):
    """`mem_mb`: founders' haplotypes as bits, and those of a contig as bytes, three times."""
    sites, n = input_mb([input.panel]) / 40, _donors()  # in millions; 40 bytes each
    return limit_mb(1200 + sites * n / 4 + 6 * sites * n, attempt)


def sweeping_minutes(wildcards, input, attempt):
    """`runtime`: 0.35 µs for a haplotype at a site, alone and in pairs; windows as without."""
    cells = 4 * _donors() * input_mb([input.panel]) / 40  # in millions
    return limit_minutes(4 + input_mb(input) / 20 + 0.35 * cells / 60, attempt)


def counting_gpus(wildcards, input):
    """GPUs of counts: none if they are short, or if runs are sought, which the CPU does.

    Runs take five times as long as all counts, so a GPU would wait for the CPU.
    """
    return 0 if SEEKS_RUNS or input_mb(input.planes) < GPU_COUNTED_MB else GPUS


def ingest_mb(wildcards, input):
    """Megabytes of a cohort's files and of its objects in stores."""
    return input_mb(input) + remote_bytes(STUDY, wildcards.cohort) / 1e6


def ingest_minutes(wildcards, input, attempt):
    """`runtime` of decoding and quality control."""
    n = n_samples(wildcards.cohort)
    return limit_minutes(Cost(mb=1 / 140).of(ingest_mb(wildcards, input), n), attempt)


def ingest_memory(wildcards, input, attempt):
    """`mem_mb` of decoding and quality control.

    Decoding streams. Quality control reads the sites, 200 bytes each, of which a source has at
    least n / 20 + 30. The sites of the cohorts of a batch are in memory, one by one. With a genome,
    one contig of it and the alleles of all sites besides.
    """
    mb, n, n_cohorts = (
        ingest_mb(wildcards, input),
        n_samples(wildcards.cohort),
        len(STUDY.units[wildcards.cohort]),
    )
    sites = 25 * mb / n_cohorts if is_batch(STUDY, wildcards.cohort) else 0
    cost = Cost((1500 if GENOME_FILES else 600) + sites, samples=0.05, mb=200 / (n / 20 + 30))
    return limit_mb(cost.of(mb, n), attempt)


def map_memory(methods):
    """`mem_mb` of maps: matrices are memory-mapped and read in blocks of rows, but for PCoA."""
    costs = {
        "pcoa": dict(fixed=500 * (1 - PAIR), pairs=32e-6 * PAIR, samples=0.01 * (1 - PAIR)),
        "umap": dict(fixed=300, samples=0.1),
    }
    further = dict(fixed=900, samples=0.05)  # t-SNE keeps 91 neighbours per sample
    found = [costs.get(method, further) for method in methods]
    return memory(
        **{key: max(one.get(key, 0) for one in found) for key in ("fixed", "samples", "pairs")}
    )


def map_minutes(methods):
    """`runtime` of maps, one after the other."""

    def runtime(wildcards, attempt):
        n, spaces = n_samples(*COHORTS), len(SPACES) if ONE_MAP_JOB else 1
        # A dense decomposition per map, or Lanczos above eigen.DENSE_ROWS; or landmarks.
        once = min(1e-11 * n**3, 4e-8 * n**2) * (1 + STABLE) if STUDY.store != "near" else 1e-6 * n
        costs = {
            "pcoa": once * len(ALPHAS) * spaces,
            "umap": 1 + N_UMAPS * (2e-5 * n + 1e-9 * PAIR * n**2),
        }
        further = 2 + len(ALPHAS) * spaces * (5e-4 * n + 1e-9 * n**2)
        return limit_minutes(sum(costs.get(method, further) for method in methods), attempt)

    return runtime
