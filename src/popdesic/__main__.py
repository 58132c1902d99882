"""Command line: `popdesic check [STUDY]`, `path START END [STUDY]`, `plan [STUDY]`,
`audit [STUDY]`, `resume [STUDY]`, `tune`; STUDY is the folder of a study, by default this one."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from .geodesic.explain import read_path
from .io.errors import UserError
from .io.version import __version__
from .study.audit import audit
from .study.configuration import read_config
from .study.forecast import describe_plan
from .study.resume import resume
from .study.validation import validate_study


def check(folder: Path) -> None:
    """Check a study's configuration, sheets and file headers; print what it holds.

    What may be a slip goes to standard error as a warning.

    Raises
    ------
    UserError
        The first problem found.
    """
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


def show_path(options: argparse.Namespace) -> None:
    """Print the individuals on a geodesic, one a line; the study comes last or as `--study`.

    Raises
    ------
    UserError
        Two studies are named, or there is no such path.
    """
    named = {folder for folder in (options.study, options.study_option) if folder is not None}
    if len(named) > 1:
        raise UserError(
            f"the study is given as {options.study} and as --study {options.study_option}; "
            "leave out one of them."
        )
    study = next(iter(named), Path())
    print("\n".join(read_path(study, options.space, options.alpha, options.start, options.end)))


def tune() -> None:
    """Measure the GPU's kernels for the usual sizes of tiles, so that no job has to.

    Raises
    ------
    UserError
        No GPU can be used here.
    """
    from .engine.select import select_backend  # the other commands start without it

    backend = select_backend("gpu")
    from .engine.gpu.tune import tune_usual

    print(backend.describe())
    print("\n".join(tune_usual(backend.device)))


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; a user's error is one sentence and exit status 1."""
    parser = argparse.ArgumentParser(prog="popdesic", description=__doc__)
    parser.add_argument("--version", action="version", version=f"popdesic {__version__}")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("check", help="check a study's sheets and files, run nothing")
    command.add_argument("study", nargs="?", type=Path, default=Path(), help="folder of the study")
    command.set_defaults(run=lambda options: check(options.study))
    command = commands.add_parser("path", help="the individuals on the geodesic between two")
    command.add_argument("start", help="sample at one end")
    command.add_argument("end", help="sample at the other end")
    command.add_argument("--space", default="genotypes", help="genotypes or pcs")
    command.add_argument("--alpha", default="2", help="as in geodesic.alpha")
    command.add_argument("study", nargs="?", type=Path, help="folder of the study")
    command.add_argument("--study", type=Path, dest="study_option", help="the same")
    command.set_defaults(run=show_path)
    command = commands.add_parser("plan", help="jobs, hours, memory and disk of a run, beforehand")
    command.add_argument("study", nargs="?", type=Path, default=Path(), help="folder of the study")
    command.add_argument("targets", nargs="*", help="stages or files, as for Snakemake")
    command.add_argument("--sites", type=int, help="sites of the panel, where there is none yet")
    command.set_defaults(run=lambda o: print(describe_plan(o.study, o.sites, o.targets)))
    command = commands.add_parser("audit", help="compare results with their checksums")
    command.add_argument("study", nargs="?", type=Path, default=Path(), help="folder of the study")
    command.add_argument("--repair", action="store_true", help="compute damaged results again")
    command.add_argument("snakemake", nargs="*", help="after --, arguments for Snakemake")
    command.set_defaults(run=lambda o: audit(o.study, o.repair, o.snakemake))
    command = commands.add_parser("resume", help="go on on Slurm after Snakemake was killed")
    command.add_argument("study", nargs="?", type=Path, default=Path(), help="folder of the study")
    command.add_argument("snakemake", nargs="*", help="after --, arguments for Snakemake")
    command.set_defaults(run=lambda options: resume(options.study, options.snakemake))
    command = commands.add_parser("tune", help="measure this machine's GPU and keep the choices")
    command.set_defaults(run=lambda options: tune())
    options, rest = parser.parse_known_args(arguments)
    # argparse takes no positional behind options once it might have come before them.
    late = len(rest) == 1 and not rest[0].startswith("-")
    if late and options.run is show_path and options.study is None:
        options.study, rest = Path(rest[0]), []
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.run(options) or 0
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
