"""Population genomics of cohorts: from genotype files to distances, maps and a report."""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from .core.errors import UserError
from .core.log import INTERRUPTED, blocked_write
from .study.closing import COMMAND
from .study.command_line import parse

# Each command imports what it needs when it runs, so that the others start fast.


def init(options: argparse.Namespace) -> None:
    """Create the sheets of a study and print the next steps; or rewrite an old configuration."""
    if options.upgrade:
        from .study.upgrade import upgrade_study

        if len(options.files) > 1 or options.founder or options.samples:
            raise UserError("init --upgrade takes the folder of a study alone.")
        print(upgrade_study(Path(*options.files)))
        return
    from .study.init import init_study

    print(init_study(options.files, options.founder, options.samples))


def check(options: argparse.Namespace) -> None:
    """Check a study's configuration, sheets and file headers; print its cohorts.

    Possible mistakes that are not errors are printed to standard error as warnings.

    Raises
    ------
    UserError
        The first problem found.
    """
    from .cohort.genotype_choice import describe_genotypes
    from .study.configuration import read_config
    from .study.content import look_into_files
    from .study.disk import require_disk_space, study_sizes
    from .study.sheets import said_of_absent
    from .study.validation import require_writable_results, validate_study

    folder = options.study
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; a study is a folder with config/config.yaml.")
    with contextlib.chdir(folder):  # messages then show the same paths as Snakemake's
        config, study, remarks = validate_study(read_config())
        require_writable_results()
        genotypes = study_sizes(Path(), study)
        look = functools.partial(look_into_files, Path(), config, study)
        require_disk_space(Path(), config, genotypes, sparse=study.sparse, look=look)
    for remark in remarks:
        print(f"Warning: {remark}", file=sys.stderr)
    for unit, members in study.units.items():
        role = "founder" if unit in study.founders else "newcomer"
        words = [unit, role, f"{len(study.samples_of(unit))} samples"]
        words += [f"{len(members)} cohorts"] if members != [unit] else []
        print("\t".join([*words, *filter(None, [said_of_absent(study, members[0])])]))
    print(describe_genotypes(config))
    cohorts = "1 cohort" if len(study.listed) == 1 else f"{len(study.listed)} cohorts"
    print(f"{len(study.samples)} samples in {cohorts}: no problem found.")


def plan(options: argparse.Namespace) -> None:
    """Print an estimate of a run's jobs, hours, memory and disk space."""
    from .study.forecast import describe_plan

    print(describe_plan(options.study, options.sites, options.targets, options.profile))


def run(options: argparse.Namespace) -> int:
    """Run the workflow; return Snakemake's exit status."""
    from .study.one_job import run_where_told

    return run_where_told(
        options.study,
        options.targets,
        snakemake_arguments(options),
        options.one_job,
        expect=expect,
    )


def expect(study: Path, targets: Sequence[str]) -> tuple:
    """`forecast.expect`, imported only where a run may go to Slurm."""
    from .study.forecast import expect

    return expect(study, targets)


def snakemake_arguments(options: argparse.Namespace) -> list[str]:
    """Arguments that `popdesic run` passes to Snakemake besides study and targets."""
    arguments = [*options.snakemake]
    if options.dry_run:
        arguments.append("--dry-run")
    if options.cores:
        arguments += ["--cores", options.cores]
    if options.profile:
        arguments += ["--profile", options.profile]
    return arguments


def report(options: argparse.Namespace) -> int:
    """Bring the report up to date and print its path."""
    from .study.run import make_report

    return make_report(options.study, options.snakemake)


def audit(options: argparse.Namespace) -> int:
    """Verify results against their checksums."""
    from .study.audit import audit

    stale = {"remove_stale": options.remove_stale}
    return audit(options.study, options.repair, options.snakemake, **stale)


def crate(options: argparse.Namespace) -> None:
    """Describe the run as an RO-Crate in the study's folder."""
    from .study.crate import write_crate
    from .study.run import require_study

    require_study(options.study)
    print(write_crate(options.study, options.license, options.author))


def forget(options: argparse.Namespace) -> None:
    """Remove an excluded sample or a deleted cohort from results; name what still holds it."""
    from .study.forget import forget_cohort, forget_sample
    from .study.run import require_study

    require_study(options.study)
    act = forget_cohort if options.cohort else forget_sample
    print(act(options.study, options.sample or options.cohort, yes=options.yes))


def place(options: argparse.Namespace) -> None:
    """Place one genome in a finished study, and describe the place."""
    from .core.threads import usable_cpus
    from .engine.select import cpu_backend
    from .study.place import place_sample
    from .study.place_maps import place_on_maps
    from .study.run import require_study

    require_study(options.study)
    backend = cpu_backend(usable_cpus())
    where = {"sample": options.sample, "out": options.out}
    gc.disable()  # a million names are no cycles
    try:
        print(place_sample(options.file, options.study, backend, place_on_maps, **where))
    finally:
        gc.enable()


def freeze(options: argparse.Namespace) -> None:
    """Freeze a phased reference for haplotype copying, and print what it holds."""
    from .cohort.haplotype_panel import freeze_haplotypes
    from .io.frozen_haplotypes import open_haplotypes

    counts = freeze_haplotypes(options.reference, options.out, options.map, threads=options.threads)
    counts["digest"] = open_haplotypes(options.out).digest
    print("\n".join(f"{name}\t{count}" for name, count in counts.items()))


def profiles(options: argparse.Namespace) -> None:
    """Add files to a database of profiles, or search the profiles of a file in it."""
    from .core.threads import usable_cpus
    from .engine.select import select_backend
    from .relatives.profiles import add_profiles, search_database
    from .study.init import named_file

    folder, files = options.database, options.files
    if options.action == "add":
        counts = add_profiles(folder, [named_file(file) for file in files], usable_cpus())
        for name, count in counts.items():
            print(f"{name}\t{count['samples']} profiles\t{count['panel_sites_found']} sites")
        return
    if len(files) > 1:
        raise UserError("profiles search takes one file of queries; join several with bcftools.")
    limits = {"top": options.top, "min_called": options.min_called}
    backend = select_backend(options.device, usable_cpus())
    search_database(folder, Path(*files), options.out, backend, **limits)
    print(options.out)


def impute(options: argparse.Namespace) -> None:
    """Phase and impute targets from a reference, and print how many sites matched."""
    import logging

    from .cohort.copy_haplotypes import CopyOptions, impute_file
    from .engine.select import select_backend

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    backend = select_backend(options.device, options.threads)
    how = CopyOptions(options.seed, options.threads, backend, options.likelihoods)
    counts = impute_file(options.file, options.reference, options.out, options.map, how)
    print("\n".join(f"{name}\t{count}" for name, count in counts.items()))


def paint(options: argparse.Namespace) -> None:
    """Paint samples, find groups of those that paint each other, and print the groups' sizes."""
    import logging

    from .cohort.copy_haplotypes import CopyOptions
    from .cohort.paint_file import paint_file
    from .communities.coancestry import write_groups

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    how = CopyOptions(options.seed, options.threads)
    lengths = paint_file(options.reference, options.target, options.out, options.map, how)
    if lengths is not None:
        for group, size in enumerate(write_groups(options.out, lengths)):
            print(f"group {group}\t{size} samples")


def ancestry(options: argparse.Namespace) -> None:
    """Write tracts of local ancestry, and print the mean proportion of each label."""
    import logging

    from .cohort.ancestry_file import ancestry_file
    from .cohort.copy_haplotypes import CopyOptions

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    how = CopyOptions(options.seed, options.threads)
    files = (options.file, options.reference, options.labels, options.out)
    found = ancestry_file(*files, options.map, how)
    for label in found.columns[1:-2]:
        print(f"{label}\t{found[label].mean():.4f}")


def sweeps(options: argparse.Namespace) -> None:
    """Score phased haplotypes along the genome, draw windows, and print numbers of scores."""
    import logging

    from .population.sweeps_file import sweeps_file
    from .report.figures.style import save_figure, styled
    from .report.figures.sweeps import draw_sweeps

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    files = (options.reference, options.labels, options.out)
    counts = sweeps_file(*files, options.map, options.threads)
    stem = options.out.with_suffix("")
    with styled():
        save_figure(draw_sweeps(Path(f"{stem}.windows.tsv")), stem)
    print("\n".join(f"{name}\t{count}" for name, count in counts.items()))


def resume(options: argparse.Namespace) -> int:
    """Continue a Slurm run whose Snakemake was killed."""
    from .study.resume import resume

    return resume(options.study, options.snakemake, options.one_job, expect=expect)


def show_path(options: argparse.Namespace) -> None:
    """Print the samples on a geodesic, one per line; the study is the last argument or `--study`.

    Raises
    ------
    UserError
        Two studies are given, or the path does not exist.
    """
    from .geodesic.explain import read_path

    named = {folder for folder in (options.study, options.study_option) if folder is not None}
    if len(named) > 1:
        raise UserError(
            f"the study is given twice, as {options.study} and as --study {options.study_option}; "
            "remove one of them."
        )
    study = next(iter(named), Path())
    print("\n".join(read_path(study, options.space, options.alpha, options.start, options.end)))


def tune(options: argparse.Namespace) -> None:
    """Compile the CPU's kernels, and benchmark the GPU's at common tile sizes where there is one.

    No job then has to. Why no GPU can be used is logged.
    """
    import logging

    from matplotlib import font_manager  # lists the fonts once; every drawing would

    from .engine.select import select_backend
    from .study.code import share_digests
    from .study.precompile_cpu import compile_all

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for name, seconds in compile_all().items():
        print(f"CPU, {name}: {seconds:.1f} CPU-s")
    print(f"{len(font_manager.fontManager.ttflist)} fonts")
    print(f"digests of the code of {share_digests()} scripts, which a study's first run reads")
    backend = select_backend("auto")
    if backend.name == "gpu":
        from .engine.precompile_gpu import tune_usual
        from .engine.tune_plan import variants_to_measure
        from .study.rehearsal import rehearse_all

        print(backend.describe())
        variants = [variant.label for variant in variants_to_measure(backend.device)]
        for name, seconds in rehearse_all(backend.device.index, variants).items():
            print(f"GPU, {name}: {seconds:.1f} CPU-s")
        print("\n".join(tune_usual(backend.device)))


#: What each command does.
COMMANDS = {
    "init": init,
    "check": check,
    "plan": plan,
    "run": run,
    "report": report,
    "audit": audit,
    "crate": crate,
    "forget": forget,
    "place": place,
    "freeze": freeze,
    "profiles": profiles,
    "impute": impute,
    "paint": paint,
    "ancestry": ancestry,
    "sweeps": sweeps,
    "resume": resume,
    "path": show_path,
    "tune": tune,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; print a UserError as one sentence and return exit status 1."""
    from .study.trust import refuse_programs, settle_caches

    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parse(words)
    os.environ[COMMAND] = shlex.join(["popdesic", *words])  # a failed run says how it goes on
    try:
        refuse_programs(Path(), getattr(options, "study", None) or Path())
        settle_caches()
        return COMMANDS[options.command](options) or 0
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if not (sentence := blocked_write(error, study=hasattr(options, "study"))):
            raise
        print(f"Error: {sentence}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    finally:
        del os.environ[COMMAND]


if __name__ == "__main__":
    sys.exit(main())
