"""Population genomics of cohorts: from genotype files to distances, maps and a report."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .core.errors import UserError
from .core.log import INTERRUPTED, blocked_write
from .core.version import __version__
from .study.closing import COMMAND

# Each command imports what it needs when it runs, so that the others start fast.

STUDY = "study folder (default: current folder)"
ONE_JOB = "on Slurm, run the whole study as one job (default: if it is small)"
MAP = (
    "genetic map, a table with chrom, pos and cm or PLINK's four columns; {contig} in the path "
    "stands for a chromosome (default: 1 cM a megabase)"
)
AFTER_DASHES = "Arguments after -- are passed to Snakemake."


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
        require_disk_space(Path(), config, genotypes, sparse=study.sparse)
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

    print(describe_plan(options.study, options.sites, options.targets))


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
    from .cohort.haplotype_panel import freeze_haplotypes, open_haplotypes

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
    """Impute phased targets from a reference, and print how many sites matched."""
    import logging

    from .cohort.copy_haplotypes import CopyOptions, impute_file

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    how = CopyOptions(options.turns, options.seed, options.threads)
    counts = impute_file(options.file, options.reference, options.out, options.map, how)
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


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def make_parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="popdesic",
        description=__doc__,
        epilog="popdesic COMMAND --help describes a command and shows an example.",
    )
    parser.add_argument("--version", action="version", version=f"popdesic {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str,
        help: str,
        function: Callable,
        example: str,
        details: str = "",
        study: bool = True,
        snakemake: bool = False,
    ) -> argparse.ArgumentParser:
        sentences = [
            f"{help[0].upper()}{help[1:]}.",
            details,
            AFTER_DASHES if snakemake else "",
        ]
        command = commands.add_parser(
            name,
            help=help,
            description=" ".join(filter(None, sentences)),
            epilog=f"Example: {example}",
        )
        command.set_defaults(run=function, takes_snakemake=snakemake)
        if study:
            command.add_argument("study", nargs="?", type=Path, default=Path(), help=STUDY)
        return command

    command = add(
        "init",
        "create the sheets of a new study from genotype files",
        init,
        "popdesic init my-study data/eur.vcf.gz afr='data/afr.chr*.vcf.gz' --samples people.csv",
        details="Each file becomes a cohort; files with the same samples become one cohort. "
        "NAME=FILE sets the cohort's name. Existing files are never overwritten.",
        study=False,
    )
    command.add_argument(
        "files",
        nargs="*",
        metavar="[STUDY] FILE",
        help="study folder (default: current folder), then VCF or BCF files, PLINK prefixes (or "
        ".bed, .fam), or quoted patterns",
    )
    command.add_argument(
        "--founder",
        action="append",
        default=[],
        metavar="NAME",
        help="a cohort that defines the panel; repeat the option for several (default: all "
        "cohorts)",
    )
    command.add_argument(
        "--samples",
        type=Path,
        metavar="TABLE",
        help="CSV or TSV with a column of sample names; all other columns (population, sex, "
        "phenotype, ...) are copied into the sheet",
    )
    command.add_argument(
        "--upgrade",
        action="store_true",
        help="rewrite config/config.yaml of STUDY with the keys of this version",
    )

    add(
        "check",
        "check a study's sheets and files without running anything",
        check,
        "popdesic check my-study",
    )

    command = add(
        "plan",
        "estimate the jobs, hours, memory and disk space of a run",
        plan,
        "popdesic plan my-study distance",
    )
    command.add_argument("targets", nargs="*", help="stages or files (default: everything)")
    command.add_argument(
        "--sites",
        type=int,
        metavar="N",
        help="number of panel sites (default: that of the panel, or a guess from file sizes)",
    )

    command = add(
        "run",
        "run the workflow on a study",
        run,
        "popdesic run my-study distance --cores 4 -- --keep-going",
        details="All cores are used unless an option sets their number.",
        snakemake=True,
    )
    command.add_argument("targets", nargs="*", help="stages or files (default: everything)")
    command.add_argument(
        "-n", "--dry-run", action="store_true", help="show what would run, without running it"
    )
    command.add_argument("-c", "--cores", metavar="N", help="number of cores, or all")
    command.add_argument(
        "--profile", metavar="NAME", help="a Snakemake profile; Popdesic provides one named slurm"
    )
    command.add_argument("--one-job", action=argparse.BooleanOptionalAction, help=ONE_JOB)

    add(
        "report",
        "bring the report up to date and print its path",
        report,
        "popdesic report my-study",
        snakemake=True,
    )

    command = add(
        "audit",
        "verify results against their checksums",
        audit,
        "popdesic audit my-study --repair -- --cores 4",
        snakemake=True,
    )
    command.add_argument(
        "--repair",
        action="store_true",
        help="recompute damaged results and everything that depends on them",
    )
    command.add_argument(
        "--remove-stale",
        action="store_true",
        help="delete results of other settings, and of cohorts that are not in the sheet",
    )

    command = add(
        "crate",
        "describe a finished run as an RO-Crate: inputs, versions, parameters, results",
        crate,
        "popdesic crate my-study --license https://creativecommons.org/licenses/by/4.0/",
        details="The file ro-crate-metadata.json is written into the study's folder. Results are "
        "verified first.",
    )
    command.add_argument(
        "--license", metavar="URL", default="", help="licence of the data and results"
    )
    command.add_argument("--author", metavar="NAME", default="", help="who ran the study")

    command = add(
        "forget",
        "remove a sample or a cohort that has left the study from its results",
        forget,
        "popdesic forget NA12878 my-study --yes",
        details="The sheet must exclude the sample, and the study must have run since; the row of "
        "a cohort must be deleted. Results of other settings, which may hold them, are deleted. "
        "Files that still hold the name are listed; your own files are never changed.",
        study=False,
    )
    command.add_argument(
        "names", nargs="*", metavar="SAMPLE [STUDY]", help="name of the sample, then " + STUDY
    )
    command.add_argument(
        "--cohort", metavar="NAME", help="a cohort whose row was deleted, instead of a sample"
    )
    command.add_argument(
        "--yes", action="store_true", help="without it, only list what would be done"
    )

    command = add(
        "place",
        "place one genome in a finished study: nearest people, relatives, maps",
        place,
        "popdesic place genome.vcf.gz --study my-study",
        details="The study itself does not change.",
        study=False,
    )
    command.add_argument("file", type=Path, help="VCF, BCF or prefix of PLINK files")
    command.add_argument("--study", type=Path, default=Path(), help=STUDY)
    command.add_argument("--sample", metavar="NAME", help="which sample of the file, if several")
    command.add_argument(
        "--out",
        type=Path,
        default=Path("place"),
        metavar="DIR",
        help="folder for place.tsv and place.json (default: place)",
    )

    command = add(
        "freeze",
        "freeze a phased reference, for imputation by haplotype copying",
        freeze,
        "popdesic freeze reference.vcf.gz --map genetic_map.txt -o reference.npz",
        details="Biallelic SNPs are kept; other records are counted. A call that is missing or "
        "not phased is refused.",
        study=False,
    )
    command.add_argument("reference", type=Path, help="phased VCF, BCF or VCF-Zarr")
    command.add_argument("--map", default="", metavar="MAP", help=MAP)
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="file to write"
    )
    command.add_argument(
        "--threads",
        type=positive,
        default=1,
        metavar="N",
        help="threads that decompress (default: 1)",
    )

    command = add(
        "profiles",
        "add files to a standing database of profiles, or search profiles in it",
        profiles,
        "popdesic profiles add DB cases.vcf.gz lab=more.bcf; popdesic profiles search DB new.vcf",
        details="The first file defines the sites. Each file is read once; NAME=FILE sets the "
        "cohort's name. A search lists the profiles that differ at the smallest share of sites.",
        study=False,
    )
    command.add_argument("action", choices=("add", "search"))
    command.add_argument("database", type=Path, metavar="DB", help="folder of the database")
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="VCF, BCF or prefix of PLINK files"
    )
    command.add_argument(
        "--top", type=positive, default=5, metavar="K", help="matches of a query (default: 5)"
    )
    command.add_argument(
        "--min-called",
        type=positive,
        default=100,
        metavar="N",
        help="fewest sites called in both profiles (default: 100; of fewer sites, half)",
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("matches.tsv"),
        metavar="TABLE",
        help="table of the matches (default: matches.tsv)",
    )
    command.add_argument(
        "--device", choices=("auto", "cpu", "gpu"), default="auto", help="where to search"
    )

    command = add(
        "impute",
        "impute phased genotypes from a reference by haplotype copying",
        impute,
        "popdesic impute array.vcf.gz --reference reference.npz -o imputed.vcf.gz",
        details="Each sample is imputed from the reference alone: its columns are the same bytes "
        "alone and among others. A table beside the output has the accuracy by allele frequency.",
        study=False,
    )
    command.add_argument("file", type=Path, help="phased VCF, BCF or VCF-Zarr")
    command.add_argument(
        "--reference",
        type=Path,
        required=True,
        metavar="FILE",
        help="what popdesic freeze wrote, or a phased VCF, BCF or VCF-Zarr",
    )
    command.add_argument("--map", default="", metavar="MAP", help=MAP)
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="file to write, .vcf.gz"
    )
    command.add_argument(
        "--turns",
        type=int,
        choices=range(101),
        default=10,
        metavar="N",
        help="measure the accuracy by hiding each typed site in one of N turns (default: 10; 0: "
        "do not)",
    )
    command.add_argument(
        "--seed", type=positive, default=1, metavar="N", help="draws the turns (default: 1)"
    )
    command.add_argument(
        "--threads", type=positive, default=1, metavar="N", help="threads (default: 1)"
    )

    command = add(
        "resume",
        "continue a Slurm run whose Snakemake was killed",
        resume,
        "popdesic resume my-study -- --jobs 50",
        details="Slurm jobs that are still queued or running are cancelled first.",
        snakemake=True,
    )
    command.add_argument("--one-job", action=argparse.BooleanOptionalAction, help=ONE_JOB)

    command = add(
        "path",
        "print the samples on the geodesic between two samples",
        show_path,
        "popdesic path NA12878 NA19240 my-study --space pcs --alpha 2",
        details="The study must have been run with geodesic.explain: true.",
        study=False,
    )
    command.add_argument("start", help="sample at one end")
    command.add_argument("end", help="sample at the other end")
    command.add_argument("--space", default="genotypes", help="genotypes (default) or pcs")
    command.add_argument(
        "--alpha", default="2", help="a value of geodesic.alpha, as written there (default: 2)"
    )
    command.add_argument("study", nargs="?", type=Path, help=STUDY)
    command.add_argument(
        "--study",
        type=Path,
        dest="study_option",
        metavar="STUDY",
        help="the study folder, given as an option",
    )

    add(
        "tune",
        "compile the CPU's kernels and choose the fastest of the GPU's, so that no job has to",
        tune,
        "popdesic tune",
        study=False,
    )
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; if it is invalid, exit as argparse does (SystemExit)."""
    words = list(arguments)
    # argparse would take the first word after -- to be the study.
    cut = words.index("--") if "--" in words else len(words)
    words, snakemake = words[:cut], words[cut + 1 :]
    parser = make_parser()
    options, rest = parser.parse_known_args(words)
    # argparse refuses an optional positional argument after options if it could precede them.
    late = len(rest) == 1 and not rest[0].startswith("-")
    if late and options.run is show_path and options.study is None:
        options.study, rest = Path(rest[0]), []
    if options.run is forget:
        names = [*([] if options.cohort else ["SAMPLE"]), "STUDY"]
        if not len(names) - 1 <= len(options.names) <= len(names):
            parser.error(f"expected {' '.join(names)} after forget")
        given = dict(zip(names, options.names, strict=False))
        options.sample, options.study = given.get("SAMPLE"), Path(given.get("STUDY", ""))
    if rest:
        hint = "; arguments for Snakemake come after --" if options.takes_snakemake else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    if snakemake and not options.takes_snakemake:
        parser.error(f"unrecognized arguments: -- {' '.join(snakemake)}")
    options.snakemake = snakemake
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; print a UserError as one sentence and return exit status 1."""
    from .study.trust import refuse_programs, settle_caches

    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parse(words)
    os.environ[COMMAND] = shlex.join(["popdesic", *words])  # a failed run says how it goes on
    try:
        refuse_programs(Path(), getattr(options, "study", None) or Path())
        settle_caches()
        return options.run(options) or 0
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if not (sentence := blocked_write(error)):
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
