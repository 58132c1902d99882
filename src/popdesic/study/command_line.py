"""The words of the command line: commands, their arguments and help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.version import __version__

DESCRIPTION = "Population genomics of cohorts: from genotype files to distances, maps and a report."
STUDY = "study folder (default: current folder)"
ONE_JOB = "on Slurm, run the whole study as one job (default: if it is small)"
MAP = (
    "genetic map, a table with chrom, pos and cm or PLINK's four columns; {contig} in the path "
    "stands for a chromosome; or a rate such as '1.1 cM/Mb' (default: 1 cM a megabase)"
)
AFTER_DASHES = "Arguments after -- are passed to Snakemake."


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
        description=DESCRIPTION,
        epilog="popdesic COMMAND --help describes a command and shows an example.",
    )
    parser.add_argument("--version", action="version", version=f"popdesic {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add_targets(command: argparse.ArgumentParser) -> None:
        text = "VCF, BCF or VCF-Zarr; it need not be phased"
        command.add_argument("file", type=Path, help=text)
        text = "what popdesic freeze wrote, or a phased VCF, BCF or VCF-Zarr"
        command.add_argument("--reference", type=Path, required=True, metavar="FILE", help=text)

    def add_reference(command: argparse.ArgumentParser) -> None:
        text = "what popdesic freeze wrote, or phased VCF, BCF or VCF-Zarr"
        command.add_argument("reference", type=Path, help=text)

    def add_labels(command: argparse.ArgumentParser, without: str = "") -> None:
        text = "table with the columns sample and label, separated by tabs"
        text += f" (default: {without})" if without else ""
        more = {"required": not without, "metavar": "FILE", "help": text}
        command.add_argument("--labels", type=Path, **more)

    def add_copying(command: argparse.ArgumentParser, out: str, *, draws: bool = True) -> None:
        text = f"{MAP}; a frozen reference has its own"
        command.add_argument("--map", default="", metavar="MAP", help=text)
        command.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help=out)
        if draws:
            text = "seed of the draws of phases (default: 1)"
            command.add_argument("--seed", type=int, default=1, metavar="N", help=text)
        text = "threads (default: 1)"
        command.add_argument("--threads", type=positive, default=1, metavar="N", help=text)

    def add(
        name: str,
        help: str,
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
        command.set_defaults(command=name, takes_snakemake=snakemake)
        if study:
            command.add_argument("study", nargs="?", type=Path, default=Path(), help=STUDY)
        return command

    command = add(
        "init",
        "create the sheets of a new study from genotype files",
        "popdesic init my-study data/eur.vcf.gz afr='data/afr.chr*.vcf.gz' --samples people.csv",
        details="Each file becomes a cohort; files with the same samples become one cohort. "
        "NAME=FILE sets the cohort's name. Existing files are never overwritten.",
        study=False,
    )
    command.add_argument(
        "files",
        nargs="*",
        metavar="[STUDY] FILE",
        help="study folder (default: current folder), then VCF or BCF files, VCF-Zarr folders, "
        "prefixes of PLINK or EIGENSTRAT files (or .bed, .pgen, .geno), or quoted patterns",
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
        "popdesic check my-study",
    )

    command = add(
        "plan",
        "estimate the jobs, hours, memory and disk space of a run",
        "popdesic plan my-study distance",
    )
    command.add_argument("targets", nargs="*", help="stages or files (default: everything)")
    command.add_argument(
        "--sites",
        type=int,
        metavar="N",
        help="number of panel sites (default: that of the panel, or an estimate from files)",
    )
    command.add_argument(
        "--profile",
        metavar="NAME",
        help="the Snakemake profile of the run, whose job groups are counted (default: slurm, of "
        "the study's folder profiles, the user, or Popdesic)",
    )

    command = add(
        "run",
        "run the workflow on a study",
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
        "popdesic report my-study",
        snakemake=True,
    )

    command = add(
        "audit",
        "verify results against their checksums",
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
        "place one genome in a finished study: nearest samples, relatives, maps",
        "popdesic place genome.vcf.gz --study my-study",
        details="The study itself does not change.",
        study=False,
    )
    command.add_argument(
        "file",
        type=Path,
        help="VCF, BCF, prefix of PLINK or EIGENSTRAT files, or table of 23andMe and the like",
    )
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
        "popdesic freeze reference.vcf.gz --map genetic_map.txt -o reference.npz",
        details="Biallelic SNPs are kept; other records are counted. A missing call is refused, "
        "and so is a heterozygous one without phase.",
        study=False,
    )
    command.add_argument(
        "reference",
        type=Path,
        help="phased VCF, BCF or VCF-Zarr; in a quoted path {contig} stands for a chromosome",
    )
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
        "popdesic profiles add DB cases.vcf.gz lab=more.bcf; popdesic profiles search DB new.vcf",
        details="The first file defines the sites. Each file is read once; NAME=FILE sets the "
        "cohort's name. A search lists the profiles that differ at the smallest share of sites.",
        study=False,
    )
    command.add_argument("action", choices=("add", "search"))
    command.add_argument("database", type=Path, metavar="DB", help="folder of the database")
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="VCF, BCF, VCF-Zarr or prefix of PLINK or EIGENSTRAT files; one to search",
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
        "phase and impute genotypes from a reference by haplotype copying",
        "popdesic impute array.vcf.gz --reference reference.npz -o imputed.vcf.gz",
        details="Each sample is imputed from the reference and its own calls: its column has the "
        "same bytes alone and among others. A table beside the output has the accuracy by allele "
        "frequency.",
        study=False,
    )
    add_targets(command)
    command.add_argument(
        "--map", default="", metavar="MAP", help=f"{MAP}; a frozen reference has its own"
    )
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="file to write, .vcf.gz"
    )
    command.add_argument(
        "--likelihoods",
        action="store_true",
        help="take PL, GL or GP of a VCF or BCF of low coverage, not its genotypes",
    )
    command.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the draws of phases (default: 1)"
    )
    command.add_argument(
        "--threads", type=positive, default=1, metavar="N", help="threads (default: 1)"
    )
    command.add_argument(
        "--device",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="where doses are computed; the output does not depend on it (default: auto)",
    )

    command = add(
        "paint",
        "paint samples: how much of its genome each copies from each donor",
        "popdesic paint reference.npz -o coancestry.npy",
        details="Samples of a phased reference copy from each other, or those of --target from the "
        "reference. Lengths in centimorgans are written, and beside them numbers of segments and "
        "lists of samples; without --target the list says which group each sample is in.",
        study=False,
    )
    add_reference(command)
    command.add_argument(
        "--target",
        type=Path,
        metavar="FILE",
        help="VCF, BCF or VCF-Zarr that copies from the reference; it need not be phased",
    )
    add_copying(command, "file to write, .npy or .tsv")

    command = add(
        "ancestry",
        "find which of your labels each haplotype has along the genome",
        "popdesic ancestry target.vcf.gz --reference reference.npz --labels labels.tsv "
        "-o tracts.tsv",
        details="The table of labels says from which source samples of the reference come. Tracts "
        "are written as TSV and BED, and the proportions of each sample.",
        study=False,
    )
    add_targets(command)
    add_labels(command)
    add_copying(command, "table of tracts to write, .tsv")

    command = add(
        "sweeps",
        "score phased haplotypes along the genome: iHS, nSL, XP-EHH and Garud's H",
        "popdesic sweeps reference.npz --labels labels.tsv -o sweeps.tsv",
        details="Each label is a population. Scores of sites, of pairs of populations and of "
        "windows are three tables, with a figure of the windows.",
        study=False,
    )
    add_reference(command)
    add_labels(command, "one population")
    add_copying(command, "table of sites to write, .tsv", draws=False)

    command = add(
        "resume",
        "continue a Slurm run whose Snakemake was killed",
        "popdesic resume my-study -- --jobs 50",
        details="Slurm jobs that are still queued or running are cancelled first.",
        snakemake=True,
    )
    command.add_argument("--one-job", action=argparse.BooleanOptionalAction, help=ONE_JOB)

    command = add(
        "path",
        "print the samples on the geodesic between two samples",
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
    if late and options.command == "path" and options.study is None:
        options.study, rest = Path(rest[0]), []
    if options.command == "forget":
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
