"""Population genomics of cohorts: from genotype files to distances, maps and a report."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .io.errors import UserError
from .io.version import __version__

# What a command needs is imported where it runs, so that the others start without it.

STUDY = "folder of the study; the current one by default"
AFTER = "What follows -- goes to Snakemake."


def init(options: argparse.Namespace) -> None:
    """Make the sheets of a study and say what comes next."""
    from .study.init import init_study

    print(init_study(options.files, options.founder, options.samples))


def check(options: argparse.Namespace) -> None:
    """Check a study's configuration, sheets and file headers; print what it holds.

    What may be a slip goes to standard error as a warning.

    Raises
    ------
    UserError
        The first problem found.
    """
    from .study.configuration import read_config
    from .study.validation import validate_study

    folder = options.study
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; a study is a folder with config/config.yaml.")
    with contextlib.chdir(folder):  # sentences name files as Snakemake names them
        _, study, remarks = validate_study(read_config())
    for remark in remarks:
        print(f"Warning: {remark}", file=sys.stderr)
    for cohort in study.order:
        role = "founder" if cohort in study.founders else "newcomer"
        print(f"{cohort}\t{role}\t{len(study.samples_of(cohort))} samples")
    print(f"{len(study.samples)} samples in {len(study.order)} cohorts: no problem found.")


def plan(options: argparse.Namespace) -> None:
    """Print jobs, hours, memory and disk of a run."""
    from .study.forecast import describe_plan

    print(describe_plan(options.study, options.sites, options.targets))


def run(options: argparse.Namespace) -> int:
    """Run the workflow; the exit status is Snakemake's."""
    from .study.run import run_study

    return run_study(options.study, options.targets, snakemake_arguments(options))


def snakemake_arguments(options: argparse.Namespace) -> list[str]:
    """What `popdesic run` hands to Snakemake besides study and targets."""
    arguments = [*options.snakemake]
    if options.dry_run:
        arguments.append("--dry-run")
    if options.cores:
        arguments += ["--cores", options.cores]
    if options.profile:
        arguments += ["--profile", options.profile]
    return arguments


def report(options: argparse.Namespace) -> int:
    """Bring the report up to date and print where it is."""
    from .study.run import make_report

    return make_report(options.study, options.snakemake)


def audit(options: argparse.Namespace) -> int:
    """Compare results with their checksums."""
    from .study.audit import audit

    return audit(options.study, options.repair, options.snakemake)


def resume(options: argparse.Namespace) -> int:
    """Go on on Slurm after Snakemake was killed."""
    from .study.resume import resume

    return resume(options.study, options.snakemake)


def show_path(options: argparse.Namespace) -> None:
    """Print the individuals on a geodesic, one a line; the study comes last or as `--study`.

    Raises
    ------
    UserError
        Two studies are named, or there is no such path.
    """
    from .geodesic.explain import read_path

    named = {folder for folder in (options.study, options.study_option) if folder is not None}
    if len(named) > 1:
        raise UserError(
            f"the study is given as {options.study} and as --study {options.study_option}; "
            "leave out one of them."
        )
    study = next(iter(named), Path())
    print("\n".join(read_path(study, options.space, options.alpha, options.start, options.end)))


def tune(options: argparse.Namespace) -> None:
    """Measure the GPU's kernels for the usual sizes of tiles, so that no job has to.

    Raises
    ------
    UserError
        No GPU can be used here.
    """
    from .engine.select import select_backend

    backend = select_backend("gpu")
    from .engine.gpu.tune import tune_usual

    print(backend.describe())
    print("\n".join(tune_usual(backend.device)))


def make_parser() -> argparse.ArgumentParser:
    """The command line of all commands."""
    parser = argparse.ArgumentParser(
        prog="popdesic",
        description=__doc__,
        epilog="popdesic COMMAND --help says more, with an example.",
    )
    parser.add_argument("--version", action="version", version=f"popdesic {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str,
        help: str,
        work: Callable,
        example: str,
        more: str = "",
        study: bool = True,
        snakemake: bool = False,
    ) -> argparse.ArgumentParser:
        said = [f"{help[0].upper()}{help[1:]}.", more, AFTER if snakemake else ""]
        command = commands.add_parser(
            name,
            help=help,
            description=" ".join(filter(None, said)),
            epilog=f"Example: {example}",
        )
        command.set_defaults(run=work, takes_snakemake=snakemake)
        if study:
            command.add_argument("study", nargs="?", type=Path, default=Path(), help=STUDY)
        return command

    command = add(
        "init",
        "make the sheets of a new study from genotype files",
        init,
        "popdesic init my-study data/eur.vcf.gz afr='data/afr.chr*.vcf.gz' --samples people.csv",
        more="Each file is a cohort; files with the same samples are one. NAME=FILE names a "
        "cohort. Nothing is overwritten.",
        study=False,
    )
    command.add_argument(
        "files",
        nargs="*",
        metavar="[STUDY] FILE",
        help="folder of the study, if it is not the current one; then VCF or BCF files, PLINK "
        "prefixes (or .bed, .fam), or patterns in quotes",
    )
    command.add_argument(
        "--founder",
        action="append",
        default=[],
        metavar="NAME",
        help="a cohort that defines the panel, again for each; by default all of them do",
    )
    command.add_argument(
        "--samples",
        type=Path,
        metavar="TABLE",
        help="CSV or TSV with a column of sample names: its other columns (population, sex, "
        "phenotype, any) go into the sheet",
    )

    add("check", "check a study's sheets and files, run nothing", check, "popdesic check my-study")

    command = add(
        "plan",
        "jobs, hours, memory and disk of a run, beforehand",
        plan,
        "popdesic plan my-study distance",
    )
    command.add_argument("targets", nargs="*", help="stages or files, as for Snakemake")
    command.add_argument("--sites", type=int, help="sites of the panel, where there is none yet")

    command = add(
        "run",
        "run the workflow on a study",
        run,
        "popdesic run my-study distance --cores 4 -- --keep-going",
        more="It uses all cores unless told otherwise.",
        snakemake=True,
    )
    command.add_argument("targets", nargs="*", help="stages or files; by default everything")
    command.add_argument("-n", "--dry-run", action="store_true", help="show the plan, run nothing")
    command.add_argument("-c", "--cores", metavar="N", help="cores to use, or all")
    command.add_argument(
        "--profile", metavar="NAME", help="a profile of Snakemake; slurm comes with Popdesic"
    )

    add(
        "report",
        "compute what the report still lacks, and print its path",
        report,
        "popdesic report my-study",
        snakemake=True,
    )

    command = add(
        "audit",
        "compare results with their checksums",
        audit,
        "popdesic audit my-study --repair -- --cores 4",
        snakemake=True,
    )
    command.add_argument("--repair", action="store_true", help="compute damaged results again")

    add(
        "resume",
        "go on on Slurm after Snakemake was killed",
        resume,
        "popdesic resume my-study -- --jobs 50",
        more="Jobs that are left over are cancelled first.",
        snakemake=True,
    )

    command = add(
        "path",
        "the individuals on the geodesic between two",
        show_path,
        "popdesic path NA12878 NA19240 my-study --space pcs --alpha 8",
        more="The run needs geodesic.explain: true.",
        study=False,
    )
    command.add_argument("start", help="sample at one end")
    command.add_argument("end", help="sample at the other end")
    command.add_argument("--space", default="genotypes", help="genotypes or pcs")
    command.add_argument("--alpha", default="2", help="as in geodesic.alpha")
    command.add_argument("study", nargs="?", type=Path, help=STUDY)
    command.add_argument("--study", type=Path, dest="study_option", help="the same")

    add(
        "tune",
        "measure this machine's GPU and keep the choices",
        tune,
        "popdesic tune",
        study=False,
    )
    return parser


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line; SystemExit, as of argparse, where it cannot be understood."""
    words = list(arguments)
    # argparse would take the first word after -- for the study.
    cut = words.index("--") if "--" in words else len(words)
    words, snakemake = words[:cut], words[cut + 1 :]
    parser = make_parser()
    options, rest = parser.parse_known_args(words)
    # argparse takes no positional behind options once it might have come before them.
    late = len(rest) == 1 and not rest[0].startswith("-")
    if late and options.run is show_path and options.study is None:
        options.study, rest = Path(rest[0]), []
    if rest:
        hint = "; arguments for Snakemake come after --" if options.takes_snakemake else ""
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    if snakemake and not options.takes_snakemake:
        parser.error(f"unrecognized arguments: -- {' '.join(snakemake)}")
    options.snakemake = snakemake
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a user's error is one sentence and exit status 1."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return options.run(options) or 0
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
