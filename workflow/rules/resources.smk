# Threads, GPUs and memory of jobs.
#
# needs   GPUS, COHORTS; constants of the rule files when called
# gives   shared_threads(), spare_threads(), pca_memory(), further_threads(), further_gpus(),
#         counting_gpus(), shared_minutes()


def _own_cores():
    """Cores that the jobs of this machine share; 0 where each job has cores of its own."""
    if workflow.nodes is not None or not workflow.is_main_process:
        return 0
    try:
        return workflow.cores
    except WorkflowError:  # not set: a cluster's profile
        return 0


def shared_threads(jobs, most):
    """Threads of one of several jobs that can run side by side."""
    cores = _own_cores()
    return max(1, min(most, cores // jobs)) if cores else most


def spare_threads(most):
    """Threads of a job that leaves a core to a long job of one thread (the block model)."""
    cores = _own_cores()
    return max(1, min(most, cores - 1)) if cores else most


def pca_memory(wildcards, input, attempt):
    """Of the products of a group of samples with those that define the axes, and of scores."""
    n = n_samples(*COHORTS)
    return limit_mb(400 + 0.05 * n + min(2_200, 6e-6 * n**2), attempt)


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


def shared_minutes(wildcards, input, attempt):
    """Of a scan of several phenotypes: at most that of scans apart."""
    order, share = int(wildcards.order), 1 / len(UNITS)
    hours = sum(scan_hours(plan, order, share, *SCAN_LIMITS) for plan in input.plans)
    return limit_minutes(60 * hours, attempt)
