# Threads, GPUs and memory of jobs.
#
# needs   GPUS, COHORTS, CONFIG; constants of the rule files when called
# gives   shared_threads(), row_threads(), balanced_threads(), spare_threads(), rest_threads(),
#         wide_threads(), axes_threads(), ld_threads(), pair_threads(), aside_threads(),
#         closing_threads(), closure_threads(), pca_memory(), pca_minutes(), further_threads(),
#         further_gpus(), counting_gpus(), closing_gpus(), settle_place()

import os

from popdesic.engine.needs import closing_devices
from popdesic.core.places import SHARES_DEVICES
from popdesic.study.resources import ONE_JOB_PEOPLE

#: Memory of this machine.
MACHINE_MB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6


def _own_cores():
    """Cores that the jobs of this machine share; 0 where each job has cores of its own."""
    if workflow.nodes is not None or not workflow.is_main_process:
        return 0
    try:
        return workflow.cores
    except WorkflowError:  # not set: a cluster's profile
        return 0


def settle_place():
    """Let jobs of one machine share its GPUs; advise how a small study runs on Slurm."""
    os.environ.pop(SHARES_DEVICES, None)
    if workflow.nodes is None:
        # Also in a job of a scheduler, which granted its GPU to all jobs of this run together.
        os.environ[SHARES_DEVICES] = "1"
    elif n_samples(*COHORTS) <= ONE_JOB_PEOPLE:
        logger.info(
            "This study is small: `popdesic run STUDY --profile slurm` can run it as one Slurm job, "
            "which takes less time."
        )


def shared_threads(jobs, most, mb=0):
    """Threads of one of several jobs that can run side by side, if memory holds `mb` of each."""
    cores = _own_cores()
    if mb:
        jobs = max(1, min(jobs, int(MACHINE_MB // mb)))
    return max(1, min(most, cores // jobs)) if cores else most


def row_threads(rows, pair_bytes=0, beside=0):
    """Threads of a row of tiles: rows not made yet run side by side, with some jobs `beside` them.

    On a GPU too, which they share: start-up and files take longer than its work.
    """
    jobs = len(rows.unmade() or COHORTS) + beside
    return shared_threads(jobs, 8, mb=pair_bytes * 1e-6 * max(map(n_samples, COHORTS)) ** 2)


def balanced_threads(rows, pair_bytes=0):
    """`row_threads` by the pairs of each row, where there are more cores than rows.

    The last row of a first run has as many pairs as there are cohorts, the first one only one.
    """
    cores, unmade = _own_cores(), rows.unmade() or COHORTS
    if cores <= len(unmade):
        return row_threads(rows, pair_bytes)
    total = sum(len(rows.pairs(row)) for row in unmade)

    def threads(wildcards):
        return max(1, min(8, cores * len(rows.pairs(wildcards.row)) // total))

    return threads


def spare_threads(most):
    """Threads of a job that leaves a core to a long job of one thread (the block model)."""
    cores = _own_cores()
    return max(1, min(most, cores - 1)) if cores else most


def rest_threads(most):
    """Threads of a job beside one of `spare_threads` and one of one thread; all, if few are left.

    Of many cores half of the rest, so that PC-Relate has the other half.
    """
    left = _own_cores() - spare_threads(most)
    rest = min(left - 1, max(4, left // 2))
    return min(most, rest) if 2 * rest >= most else most


def ld_threads():
    """Threads of LD, which runs beside the axes and then beside two jobs of `pair_threads`."""
    return shared_threads(8 if CONFIG["device"] == "gpu" else 4, 8)


def pair_threads(most):
    """Threads of one of two jobs that need each other's time, beside LD where cores are many."""
    cores = _own_cores()
    return max(1, min(most, (cores - ld_threads()) // 2)) if cores >= 8 else shared_threads(2, most)


def wide_threads():
    """Threads of a job that the first map waits for: three quarters, the rest for jobs beside it."""
    cores = _own_cores()
    return max(1, min(16, cores * 3 // 4)) if cores else 8


def axes_threads():
    """Threads of the axes: on a GPU few wait for it, and it begins beside any jobs of others.

    Of very many samples they take a CPU longer than all jobs beside them.
    """
    cores = _own_cores()
    if STUDY.sparse and 0 < cores < 4 and not GPUS:
        return cores
    return min(8, cores // 2) if GPUS and cores >= 8 else wide_threads()


def aside_threads(most):
    """Threads of one of two jobs that begin before a job of `wide_threads`, which does not wait."""
    cores = _own_cores()
    return min(most, max(1, (cores - wide_threads()) // 2)) if cores >= 8 else most


def closing_threads(closures, mb):
    """Threads of one of some closures; on a GPU little is left for them, before `define_axes`."""
    threads = shared_threads(closures, 8, mb)
    return min(threads, aside_threads(8)) if CONFIG["device"] == "gpu" else threads


def closure_threads(closures, mb):
    """`closing_threads`; more for closures after the axes, of which three run side by side.

    On a GPU they leave cores to PC-Relate and communities, so that none of them waits.
    """
    few = closing_threads(closures, mb)
    more = max(few, shared_threads(5 if CONFIG["device"] == "gpu" else 3, 8, mb))

    def threads(wildcards):
        return few if wildcards.space == "genotypes" and wildcards.alpha != "auto" else more

    return threads


def closing_gpus():
    """GPUs of a closure: several where the study says so and has many samples."""
    return GPUS and closing_devices(n_samples(*COHORTS), CONFIG["geodesic"]["gpus"])


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


def further_threads(wildcards):
    """densMAP moves its points on several threads, t-SNE on one."""
    return 8 if wildcards.method == "densmap" else 1


def further_gpus(wildcards):
    """densMAP moves many points on a GPU, as UMAP does; t-SNE has no kernel."""
    return GPUS if wildcards.method == "densmap" and MAPS_DEVICE != "cpu" else 0


def counting_gpus(wildcards, input):
    """GPUs of a count: none if it is short, or if runs are sought, which the CPU does.

    Runs take five times as long as all counts, so a GPU would wait for the CPU.
    """
    return 0 if SEEKS_RUNS or input_mb(input.planes) < GPU_COUNTED_MB else GPUS
