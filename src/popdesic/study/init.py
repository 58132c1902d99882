"""Create the sheets of a new study from its genotype files (`popdesic init`)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..cohort.contigs import AUTO, excluded_names, genome_of, haploid_policies
from ..cohort.first_ploidies import first_ploidies
from ..cohort.first_records import bytes_each, first_records
from ..cohort.sources import CONTIG, GLOB, expand_sources, read_names, source_files
from ..cohort.species import known_species, propose_species
from ..core.errors import UserError, shorten
from ..core.files import path_exists
from ..core.places import HOME
from ..io.batches import LeftOut
from ..io.formats import PREFIXES, find_format, header_contigs, is_zarr
from ..io.layers import MOST_PLOIDY
from ..io.remote import is_remote
from .configuration import read_config
from .init_people import NewSamples, fam_people, read_people
from .validation import validate_study

#: Extensions of genotype files; a file name without its extension gives the cohort's name.
EXTENSIONS = re.compile(
    r"\.(vcf\.b?gz|vcf|bcf|vcz|zarr|trees|bgen|bed|bim|fam|pgen|pvar|psam|geno|snp|ind)$",
    re.IGNORECASE,
)
#: `NAME=FILE`: a file and the name of its cohort.
NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)", re.DOTALL)
#: A chromosome's name at the end of a file's name.
CHROMOSOME = re.compile(r"(^|[._-])(chr)?([0-9]{1,2}|X|Y|XY|MT?)$", re.IGNORECASE)
CONFIG = """\
# Every key has a default; write only the keys that you change. Popdesic's config/README.md
# describes all keys.

device: auto        # cpu, gpu, or auto: a GPU if the job finds one
"""


@dataclass
class NewCohort:
    """One row of cohorts.tsv, with the cohort's files and samples.

    Attributes
    ----------
    genotypes : str
        As written in the sheet, relative to the study.
    sources : list of str
        VCF or BCF files or prefixes, relative to the current folder.
    samples : list of str
        Sample names in file order.
    """

    name: str
    genotypes: str
    sources: list[str]
    samples: list[str]
    founder: bool = True


def init_study(
    arguments: Sequence[str], founders: Sequence[str] = (), samples: Path | None = None
) -> str:
    """Create the sheets and the configuration of a study; existing files are never overwritten.

    Parameters
    ----------
    arguments : sequence of str
        The study folder, unless it is the current one, then genotype files: VCF, VCF.gz, BCF,
        VCF-Zarr, a prefix or file of PLINK or EIGENSTRAT, or a pattern. Each becomes a cohort;
        files with the same samples become one cohort. `NAME=FILE` sets the cohort's name.
    founders : sequence of str
        Cohorts that define the panel; all by default.
    samples : Path, optional
        A table of samples (TSV or CSV) whose columns are copied into samples.tsv.

    Returns
    -------
    str
        A message: what was written, what to fill in and which command to run next.

    Raises
    ------
    UserError
        A file cannot be used, and nothing is written; or the study does not pass `popdesic check`
        yet, and the sheets stay to be corrected.
    """
    folder, files = split_arguments(arguments)
    written = [folder / "config" / name for name in ("config.yaml", "cohorts.tsv", "samples.tsv")]
    for path in written:
        if path_exists(path):
            raise UserError(
                f"{path} already exists and is not overwritten; add rows to the sheets by hand, or "
                "choose another folder."
            )
    cohorts = find_cohorts(folder, files)
    choose_founders(cohorts, founders)
    people = gather_people(folder, cohorts, samples)
    config = propose_config(cohorts)
    texts = (CONFIG + config, cohort_sheet(cohorts), people.sheet())
    made = [path for path in (folder, folder / "config") if not path.exists()]
    try:
        (folder / "config").mkdir(parents=True, exist_ok=True)
        for path, text in zip(written, texts, strict=True):
            path.write_text(text, "utf-8")
    except OSError as error:
        _remove(written, made)
        raise UserError(
            f"{folder}/config cannot be written ({error.strerror}); choose another folder."
        ) from None
    try:
        validate_study(read_config(folder), folder)
    except UserError as error:  # the answer may be a column of the sheets: they stay
        study = "" if folder == Path() else f" {folder}"
        raise UserError(
            f"{error} The sheets are written: correct them in {folder / 'config'}, or the files, "
            f"then run popdesic check{study}."
        ) from None
    said = [line.removeprefix("# ") for line in config.splitlines() if line.startswith("# ")]
    return "\n".join([*describe_study(folder, cohorts, people), *(["", *said] if said else [])])


def propose_config(cohorts: list[NewCohort]) -> str:
    """Lines of config.yaml that name a species, if the contigs in the headers of all files fit."""
    contigs = header_contigs([source for cohort in cohorts for source in cohort.sources])
    found = propose_species(contigs)
    if found is None:
        return ""
    name, why = found
    values = known_species()[name].defaults
    told = ", ".join(values) or "no key"
    return (
        f"\n# The species was recognised from the files: {why}. Remove the line if it is wrong.\n"
        f"# It fills in {told}, where you do not set them (config/README.md).\n"
        f"species: {name}\n"
    )


def _remove(written: list[Path], made: list[Path]) -> None:
    for path in written:
        path.unlink(missing_ok=True)
    for folder in reversed(made):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def split_arguments(arguments: Sequence[str]) -> tuple[Path, list[tuple[str, str]]]:
    """The study folder, and (cohort name, file) pairs; a name is "" if it was not given.

    The first argument is the study if it is a folder or does not look like a genotype file.
    """
    folder, files = Path(), list(arguments)
    if files and _is_study(files[0]):
        folder = Path(files.pop(0))
    if not files:
        raise UserError(
            "no genotype file was given; name VCF, BCF, VCF-Zarr, PLINK or EIGENSTRAT files, for "
            "example `popdesic init my-study data/eur.vcf.gz data/afr.vcf.gz`."
        )
    return folder, [_named(file) for file in files]


def _is_study(argument: str) -> bool:
    path = Path(argument)
    if is_remote(argument):
        return False
    if path.is_dir():
        return not is_zarr(path)
    named = _is_there(argument) or NAMED.fullmatch(argument)
    return not (named or EXTENSIONS.search(argument) or _is_pattern(argument) or "," in argument)


def _is_there(argument: str) -> bool:
    """Whether an argument is a file, or a prefix of files."""
    ends = ("", *(end for end, *_ in PREFIXES.values()))
    return any(path_exists(Path(f"{argument}{end}")) for end in ends)


def _is_pattern(text: str) -> bool:
    return CONTIG in text or GLOB.search(text) is not None


def _named(file: str) -> tuple[str, str]:
    found = NAMED.fullmatch(file)
    name, sign, rest = file.partition("=")
    if sign and rest and not found and "/" not in name and not _is_there(file):
        raise UserError(
            f"'{shorten(name)}' cannot be the name of a cohort, as in {shorten(file)}; use "
            "letters, digits, '.', '_' and '-', and begin with a letter or digit."
        )
    return (found[1], found[2]) if found and not path_exists(Path(file)) else ("", file)


def named_file(file: str) -> tuple[str, Path]:
    """The name of the cohort in one file, given as `NAME=FILE` or made from the file's name."""
    name, path = _named(file)
    return name or _cohort_name([path]), Path(path)


def find_cohorts(folder: Path, files: list[tuple[str, str]]) -> list[NewCohort]:
    """The cohorts in genotype files; files with the same samples in the same order are one."""
    groups: dict[tuple, list[tuple[str, list[str]]]] = {}
    names_of: dict[tuple, list[str]] = {}
    for name, file in files:
        sources = _sources(file)
        try:
            names = read_names(sources)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"{shorten(file)} cannot be read ({reason}).") from None
        key = (name, *names)
        parts = groups.setdefault(key, [])
        if (file, sources) not in parts:  # the same file may be given twice
            parts.append((file, sources))
        names_of[key] = names
    cohorts = []
    for key, parts in groups.items():
        genotypes = _written(folder, parts)
        sources = [source for _, some in parts for source in some]
        name = key[0] or _cohort_name([file for file, _ in parts])
        cohorts.append(NewCohort(name, genotypes, sources, names_of[key]))
    _require_unique_names(cohorts)
    _require_unique_samples(cohorts)
    return cohorts


def _sources(file: str) -> list[str]:
    """The files, prefixes or addresses that an argument names."""
    if is_remote(file):
        return expand_sources(file)
    for main, *others in PREFIXES.values():
        for end in others:
            if file.endswith(end):
                prefix = file.removesuffix(end)
                if path_exists(Path(f"{prefix}{main}")):
                    return [prefix if main == ".bed" else f"{prefix}{main}"]
                raise UserError(
                    f"{file}: {prefix}{main}, the file with the genotypes, does not exist; correct "
                    "the path."
                )
    if path_exists(Path(file)) and Path(file).is_dir() and not is_zarr(file):
        raise UserError(
            f"{file} is a folder; name its files, for example '{file.rstrip('/')}/*.vcf.gz'."
        )
    try:
        sources = expand_sources(file)
    except UserError:  # its text is about the study folder
        raise UserError(f"{shorten(file)} matches no file; correct the path or pattern.") from None
    for path in (path for source in sources for path in source_files(source)):
        if not path_exists(Path(path)):
            raise UserError(f"{shorten(path)} does not exist; correct the path.")
    return sources


def _written(folder: Path, parts: list[tuple[str, list[str]]]) -> str:
    """Column `genotypes` of cohorts.tsv: a path, a pattern or a list, relative to the study."""
    if len(parts) == 1:
        file, sources = parts[0]
        return _relative(folder, file if _is_pattern(file) or "," in file else sources[0])
    paths = [_relative(folder, source) for _, sources in parts for source in sources]
    start = re.sub(r"[A-Za-z0-9]*$", "", common_start(paths))
    end = common_start([path[len(start) :][::-1] for path in paths])[::-1]
    end = re.sub(r"^[A-Za-z0-9_-]*", "", end)
    middle = [path[len(start) : len(path) - len(end)] for path in paths]
    chr_too = all(name.startswith("chr") for name in middle)
    for pattern in (f"{start}chr{CONTIG}{end}",) * chr_too + (f"{start}{CONTIG}{end}",):
        try:
            # the study folder may not exist yet, and `..` cannot be resolved from it
            found = expand_sources(os.path.normpath(folder.resolve() / pattern))
            if end and {_relative(folder, path) for path in found} == set(paths):
                return pattern
        except UserError:
            continue
    return ",".join(paths)


def common_start(texts: list[str]) -> str:
    """The longest common prefix."""
    first, last = min(texts), max(texts)
    same = (k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(same, min(len(first), len(last)))]


def _relative(folder: Path, text: str) -> str:
    """A path, or several separated by commas, relative to the study folder."""
    if "," in text and not path_exists(Path(text)):
        return ",".join(_relative(folder, part.strip()) for part in text.split(","))
    if is_remote(text):
        return text
    path = Path(text)
    where = path.parent.resolve() / path.name  # a symbolic link is not followed
    return os.path.relpath(where, folder.resolve())


def _cohort_name(files: list[str]) -> str:
    """A name for a cohort, from the names of its files."""
    stems = [EXTENSIONS.sub("", Path(file.split(",")[0]).name) for file in files]
    stem = common_start(stems) if len(stems) > 1 else stems[0]
    stem = re.sub(r"(chr)?(\{contig\}|[*?]|\[[^\]]*\])", "", stem)
    if len(stems) > 1:
        stem = re.sub(r"(^|[._-])chr$", "", CHROMOSOME.sub("", stem), flags=re.IGNORECASE)
    parent = Path(files[0]).resolve().parent.name
    return next(name for name in map(_plain_name, (stem, parent, "cohort")) if name)


def _plain_name(text: str) -> str:
    """Reduce a text to a valid cohort name: letters, digits, '.', '-' and single '_'."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", text)
    return re.sub(r"[._-]{2,}", "-", text).strip("._-")[:64].rstrip("._-")


def _require_unique_names(cohorts: list[NewCohort]) -> None:
    """Refuse two cohorts of the same name, upper and lower case being equal."""
    seen: dict[str, NewCohort] = {}
    for cohort in cohorts:
        other = seen.setdefault(cohort.name.casefold(), cohort)
        if other is not cohort:
            raise UserError(
                f"{other.sources[0]} and {cohort.sources[0]} have different samples, but both "
                f"cohorts would be called '{cohort.name}'; give one of them another name: "
                f"{cohort.name}-2={cohort.sources[0]}."
            )


def _require_unique_samples(cohorts: list[NewCohort]) -> None:
    """Refuse a sample that is in two cohorts."""
    first: dict[str, NewCohort] = {}
    for cohort in cohorts:
        for sample in cohort.samples:
            other = first.setdefault(sample, cohort)
            if other is not cohort:
                shared = len(set(other.samples) & set(cohort.samples))
                raise UserError(
                    f"sample '{sample}' is in {other.sources[0]} and in {cohort.sources[0]} "
                    f"(shared samples: {shared}), but names must be unique across cohorts; "
                    "rename one (bcftools reheader) or, if both files are parts of one cohort, "
                    "give them the same samples in the same order."
                )


def choose_founders(cohorts: list[NewCohort], founders: Sequence[str]) -> None:
    """Mark the cohorts that define the panel: those named, or all."""
    known = {cohort.name: cohort for cohort in cohorts}
    for name in founders:
        if name not in known:
            raise UserError(
                f"--founder {name}: no cohort has this name; the cohorts are {', '.join(known)}."
            )
    for cohort in cohorts:
        cohort.founder = not founders or cohort.name in founders
    cohorts.sort(key=lambda cohort: (not cohort.founder, cohort.name))


def gather_people(folder: Path, cohorts: list[NewCohort], table: Path | None) -> NewSamples:
    """All samples, with the columns that .fam, .psam or .ind files and a table of samples give."""
    people = NewSamples({s: cohort.name for cohort in cohorts for s in cohort.samples})
    for cohort in cohorts:
        # the first of several .fam files will do: all list the same samples
        source = cohort.sources[0]
        end = PREFIXES.get(find_format(source).kind, ("",))[-1]
        people.add(fam_people(source, cohort.samples), f"{cohort.name}'s {end}")
    if table is not None:
        people.add(read_people(table, people), str(table))
    if "ploidy" not in people.columns:
        haploid, diploid = are_haploid(cohorts)
        if haploid:
            people.add({name: {"ploidy": "1"} for name in people.cohorts}, "calls of one allele")
        elif ploidy := ploidies_of_calls(cohorts, diploid):
            kinds = " and ".join(map(str, sorted(set(ploidy.values()))))
            told = {name: {"ploidy": str(own)} for name, own in ploidy.items()}
            people.add(told, f"calls of {kinds} alleles")
    people.drop_unusable()
    return people


def are_haploid(cohorts: list[NewCohort]) -> tuple[bool, list[str]]:
    """Whether the first calls of all files have one allele each, some of them on an autosome.

    Also returns files whose first calls were all seen to have two alleles: no haploid file follows
    the first of them.
    """
    sources = [source for cohort in cohorts for source in cohort.sources]
    single = False
    for source in sources:
        try:
            size = bytes_each(len(sources))
            found = first_records(source, "diploidize", n_bytes=size, left_out=_excluded(source))
        except UserError:  # the check that follows says it with the sheets
            return False, []
        counts, contigs = found.counts, set(found.batch.chrom) if found.batch else set()
        if counts.phased or counts.unphased:
            return False, [] if counts.haploid_calls else [source]
        elsewhere = contigs.difference(genome_of(dict.fromkeys(contigs, 1), {}).excluded(AUTO))
        single = single or (counts.haploid_calls > 0 and bool(elsewhere))
    return single, []


def ploidies_of_calls(cohorts: list[NewCohort], diploid: list[str]) -> dict[str, int]:
    """Alleles of each sample's first calls; empty if all are two, or if a sample's differ.

    On autosomes. A sample without a call has no entry. Files of `diploid` are known to have two.
    """
    sources = [source for cohort in cohorts for source in cohort.sources]
    size = bytes_each(len(sources))
    found: dict[str, set[int]] = {}
    try:
        for source in sources:
            if source not in diploid:
                usual = haploid_policies("error", AUTO, header_contigs([source]))
                first_records(source, usual, n_bytes=size, left_out=_excluded(source))
        return {}
    except UserError:  # as calls of more or fewer alleles are
        pass
    try:
        for source in sources:
            for name, own in first_ploidies(source, size).items():
                found[name] = found.get(name, set()) | own
    except UserError:  # the check that follows says it with the sheets
        return {}
    kinds = set().union(*found.values())
    if kinds <= {2} or max(kinds) > MOST_PLOIDY or any(len(own) > 1 for own in found.values()):
        return {}
    return {name: next(iter(own)) for name, own in found.items() if own}


def _excluded(source: Path) -> LeftOut:
    """Contigs that never enter the panel, by the default of `contigs.exclude`."""
    return LeftOut(contigs=frozenset(excluded_names(AUTO, header_contigs([source]))))


def cohort_sheet(cohorts: list[NewCohort]) -> str:
    """Text of cohorts.tsv."""
    lines = ["cohort\tgenotypes\tfounder"]
    lines += [f"{c.name}\t{c.genotypes}\t{'yes' if c.founder else 'no'}" for c in cohorts]
    return "\n".join(lines) + "\n"


def describe_study(folder: Path, cohorts: list[NewCohort], people: NewSamples) -> list[str]:
    """Lines that say what was written, what to fill in and which command to run next."""
    config = folder / "config"
    lines = [f"{config / 'cohorts.tsv'}:"]
    for cohort in cohorts:
        role = "founder" if cohort.founder else "newcomer"
        lines.append(f"  {cohort.name}\t{role}\t{len(cohort.samples)} samples\t{cohort.genotypes}")
    lines.append(f"{config / 'samples.tsv'}: {len(people)} samples")
    lines += [f"  {remark}" for remark in people.remarks]
    lines.append(f"{config / 'config.yaml'}: every key has its default")
    lines.append(f"  all keys: {HOME / 'config/README.md'}")
    empty = people.unknown()
    if empty:
        lines += [
            "",
            f"Fill in what you know in {config / 'samples.tsv'}; leave NA where you do not know:",
        ]
        lines += [f"  {column}: {meaning}" for column, meaning in empty]
    study = str(folder) if folder != Path() else ""
    lines += [
        "To add a cohort later, add its row to cohorts.tsv with founder = no, and its samples to "
        "samples.tsv.",
        "",
        f"Next: {f'popdesic check {study}'.strip()}, then {f'popdesic run {study}'.strip()}",
    ]
    return lines
