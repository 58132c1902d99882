"""What a contig is (autosome, X, Y, mitochondrion, …), and which genome build a study has.

Told by names, by the lengths in headers (`resources/assemblies.tsv`), by how far the sites of
each contig reach, or by an assembly report of NCBI. Nothing compiled is imported here, because the
workflow is parsed by every job.
"""

from __future__ import annotations

import csv
import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import UserError
from ..core.files import read_json
from ..core.places import RESOURCES
from ..io.sites import canonical_contig, contig_order

if TYPE_CHECKING:
    from ..io.batches import SiteBatch

TABLE = RESOURCES / "assemblies.tsv"
#: Builds of which regions are known (`qc.build`).
HUMAN = ("hg18", "hg19", "hg38", "chm13")
AUTO = "auto"
AUTOSOME, OTHER, MT = "autosome", "other", "MT"
SEX = ("X", "Y", "XY", "Z", "W")
#: Roles of contigs that are not inherited as autosomes are.
NOT_AUTOSOMAL = frozenset({*SEX, MT})
#: Numbers that PLINK gives to further chromosomes, after the last autosome.
_AFTER_AUTOSOMES = ("X", "Y", "XY", MT)
#: Human autosomes, which decides what the numbers 23 to 26 are where nothing else does.
_HUMAN_AUTOSOMES = 22
#: Contigs shorter than this may have equal lengths in several assemblies.
_LEAST_LENGTH = 1_000_000
#: Numbered contigs 1, 2, … from which a genome without a chromosome 22 is not human.
_WHOLE = 10
_NAMES = {
    **{name: name for name in SEX},
    **dict.fromkeys(("PAR", "PAR1", "PAR2", "X_PAR", "X_PAR1", "X_PAR2", "XPAR"), "XY"),
    **dict.fromkeys(("M", "MT", "MTDNA", "MITO", "MITOCHONDRION", "MITOCHONDRIA", "RCRS"), MT),
    **dict.fromkeys(("MITOCHONDRIAL", "MITOCHONDRION_GENOME", "PT", "PLTD", "PLASTID"), MT),
    **dict.fromkeys(("CHLOROPLAST",), MT),
}
#: Roman numbers that only genomes have whose X is the tenth chromosome (yeast, stickleback).
_ROMAN = frozenset({"VI", "VII", "VIII", "IX"})


def _numbered(last: int, *further: str) -> tuple[str, ...]:
    return (*map(str, range(1, last + 1)), *further)


#: Sequences of RefSeq and GenBank: species, prefix, number of the first one, chromosomes in order.
_ACCESSIONS = (
    ("human", "NC", 1, _numbered(22, "X", "Y")),
    ("human", "NC", 60925, _numbered(22, "X", "Y")),
    ("human", "CM", 663, _numbered(22, "X", "Y")),
    ("human", "CP", 68254, (MT, "X", *reversed(_numbered(22)))),
    ("human", "CP", 86569, ("Y",)),
    ("human", "NC", 12920, (MT,)),
    ("human", "NC", 1807, (MT,)),
    ("human", "J", 1415, (MT,)),
    ("mouse", "NC", 67, _numbered(19, "X", "Y")),
    ("mouse", "CM", 994, _numbered(19, "X", "Y")),
    ("mouse", "NC", 5089, (MT,)),
    ("mouse", "AY", 172335, (MT,)),
    ("rat", "NC", 5100, _numbered(20, "X")),
    ("rat", "NC", 51336, _numbered(20, "X", "Y")),
    ("rat", "NC", 1665, (MT,)),
    ("dog", "NC", 6583, _numbered(38, "X")),
    ("dog", "NC", 2008, (MT,)),
    ("cattle", "NC", 37328, _numbered(29, "X")),
    ("cattle", "NC", 6853, (MT,)),
    ("pig", "NC", 10443, _numbered(18, "X", "Y")),
    ("pig", "NC", 845, (MT,)),
)


@dataclass(frozen=True)
class Genome:
    """What is known of the genome of some files.

    Attributes
    ----------
    build : str
        One of HUMAN or another build of the table; ``any``: human, of an unknown build; ``none``:
        no human genome; ``unknown``.
    why : str
        How that was decided, the end of a sentence.
    roles : dict
        Role of each contig that has sites.
    notes : list of str
        Sentences on contigs whose role is not told by their names alone.
    """

    build: str
    why: str
    roles: dict[str, str]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict:
        return asdict(self)

    def sentence(self) -> str:
        """Which build was assumed, and why."""
        named = {
            "any": "human, of an unknown build",
            "none": "not taken as human",
            "unknown": "not known, so no region of the human genome is left out",
        }
        return f"The genome is {named.get(self.build, self.build)}: {self.why}."

    def x_contigs(self, asked: str | Sequence[str]) -> list[str]:
        """Contigs that are X; `asked` as `contigs.x`."""
        return named_contigs(self.roles, asked, ("X",))

    def excluded(self, asked: str | Sequence[str]) -> list[str]:
        """Contigs that never enter the panel; `asked` as `contigs.exclude`."""
        return named_contigs(self.roles, asked, NOT_AUTOSOMAL)

    def regions_build(self) -> str:
        """Build of the regions of long-range LD: none where the genome is not known."""
        return "none" if self.build == "unknown" else self.build

    def par_build(self) -> str:
        """Build of the pseudo-autosomal regions: all human ones where nothing is known."""
        return "any" if self.build == "unknown" else self.build


def haploid_policies(
    haploid: str | Mapping[str, str],
    excluded: str | Sequence[str],
    contigs: Mapping[str, int],
) -> dict[str, str]:
    """How haploid calls of each contig are read, where `error` is the default.

    A call that cannot enter the panel stops no run: on contigs that `contigs.exclude` keeps
    out, haploid calls are homozygous, which is what the check of sex compares. They are counted
    with all others (`haploid_calls`).

    Parameters
    ----------
    haploid
        `contigs.haploid`; what it says of a contig holds.
    excluded
        `contigs.exclude`; of ``auto``, the letters of sex chromosomes and mitochondria, and
        the contigs with such a role.
    contigs
        `io.formats.header_contigs` of the files that are read, which tell the roles: of ``23``, of
        ``NC_000023.11``.
    """
    given = {"default": haploid} if isinstance(haploid, str) else dict(haploid)
    if given.get("default", "error") != "error":
        return given
    return dict.fromkeys(excluded_names(excluded, contigs), "diploidize") | given


def excluded_names(asked: str | Sequence[str], contigs: Mapping[str, int]) -> list[str]:
    """All names of contigs that never enter the panel, whether the files have them or not.

    Parameters
    ----------
    asked, contigs
        As `haploid_policies` takes them.
    """
    names = (*SEX, "M", MT) if asked == AUTO else tuple(asked)
    plain = [name.removeprefix("chr") for name in names]
    out = [spelt for name in plain for spelt in (name, f"chr{name}")]
    return out + genome_of(dict.fromkeys(contigs, 0), contigs).excluded(asked)


def named_contigs(
    roles: Mapping[str, str], asked: str | Sequence[str], wanted: Iterable[str]
) -> list[str]:
    """Contigs with one of the roles ``wanted``, or those that a list names (with or without chr).

    ``wanted`` is used where `asked` is ``auto``.
    """
    if asked == AUTO:
        return [contig for contig, role in roles.items() if role in wanted]
    given = set(map(canonical_contig, asked))
    return [contig for contig in roles if canonical_contig(contig) in given]


@functools.cache
def assemblies() -> dict[str, dict[str, int]]:
    """Length of each chromosome, by build."""
    found: dict[str, dict[str, int]] = {}
    for row in _rows():
        found.setdefault(row["build"], {})[row["contig"]] = int(row["length"])
    return found


@functools.cache
def _species() -> dict[str, str]:
    return {row["build"]: row["species"] for row in _rows()}


@functools.cache
def _rows() -> tuple[dict[str, str], ...]:
    with open(TABLE, encoding="utf-8", newline="") as file:
        lines = dropwhile(lambda line: line.startswith("#"), file)
        return tuple(csv.DictReader(lines, delimiter="\t"))


def species_of(build: str) -> str:
    """Species of a build of the table."""
    return _species()[build]


def build_of(lengths: Mapping[str, int]) -> tuple[str, str] | None:
    """Build most of whose chromosomes have these lengths, and a contig that says so.

    None if no length is that of a chromosome, or if two builds have as many.

    Parameters
    ----------
    lengths : dict
        Contigs of a header, by name, whatever they are called.
    """
    count: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for contig, length in lengths.items():
        for build, _ in _lengths().get(length, ()):
            count[build] += 1
            shown.setdefault(build, contig)
    best = count.most_common(2)
    if not best or (len(best) == 2 and best[0][1] == best[1][1]):
        return None
    return best[0][0], shown[best[0][0]]


@functools.cache
def _lengths() -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for build, contigs in assemblies().items():
        for contig, length in contigs.items():
            if length >= _LEAST_LENGTH:
                found.setdefault(length, []).append((build, contig))
    return found


@functools.lru_cache(maxsize=1 << 16)
def plain_name(contig: str) -> str:
    """Name of a chromosome in capitals, without `chr` and zeros in front, of an accession too."""
    name = re.sub(r"^(CHROMOSOME|CHROM)[_.]?(?=.)", "", canonical_contig(contig).upper())
    return _accession(name)[1] or (re.sub(r"^0+(?=[0-9A-Z])", "", name))


class Spellings:
    """Gives each contig of a cohort one name: that of its first site, in whatever file.

    `1` and `chr1` are the same contig, and `chrM` and `MT` (`io.sites.canonical_contig`).

    Attributes
    ----------
    other : dict
        Names that are not used, and those that stand for them.
    """

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._chromosomes: dict[str, tuple[str, str, object]] = {}
        self.other: dict[str, str] = {}

    def of(self, name: str, source: object) -> str:
        """The name to use for one that a file has.

        Raises
        ------
        UserError
            Another name of the cohort looks like that of the same chromosome (`01`,
            `NC_000001.11`), but perhaps of another assembly.
        """
        canonical = canonical_contig(name)
        if (used := self._first.get(canonical)) is not None:
            if used != name:
                self.other[name] = used
            return used
        plain = plain_name(name)
        if plain.isdigit() or plain in SEX or plain == MT:
            known = self._chromosomes.setdefault(plain, (canonical, name, source))
            if known[0] != canonical:
                where = "" if str(known[2]) == str(source) else f" in {known[2]}"
                raise UserError(
                    f"{source}: contig {name} looks like the chromosome that is named {known[1]}"
                    f"{where}; the files of a cohort must be of one assembly and name a chromosome "
                    "alike, so rename one of them (bcftools annotate --rename-chrs)."
                )
        self._first[canonical] = name
        return name

    def of_batch(self, batch: SiteBatch, source: object) -> SiteBatch:
        """A batch of sites with these names."""
        names = {name: self.of(name, source) for name in dict.fromkeys(batch.chrom)}
        if all(name == used for name, used in names.items()):
            return batch
        return replace(batch, chrom=[names[name] for name in batch.chrom])

    def sentences(self) -> list[str]:
        """One on contigs with several names, if there are any."""
        if not self.other:
            return []
        pairs = ", ".join(f"{name} as {used}" for name, used in self.other.items())
        return [f"Contigs with two names are written with that of their first site: {pairs}."]


def _accession(name: str) -> tuple[str, str]:
    """Species and chromosome of an accession of RefSeq or GenBank; empty for other names."""
    if found := re.fullmatch(r"(NC|CM|CP|J|AY)_?([0-9]{5,9})(\.[0-9]+)?", name):
        number = int(found[2])
        for species, prefix, first, names in _ACCESSIONS:
            if prefix == found[1] and first <= number < first + len(names):
                return species, names[number - first]
    return "", ""


def genome_of(
    reach: Mapping[str, int],
    lengths: Mapping[str, int],
    build: str = "any",
    report: Mapping[str, str] | None = None,
) -> Genome:
    """What the contigs of some files are.

    Parameters
    ----------
    reach : dict
        Largest position of a site, by contig.
    lengths : dict
        Lengths of contigs in headers.
    build : str
        `qc.build`.
    report : dict, optional
        Roles by `read_assembly_report`.
    """
    told = build_of(lengths)
    human, why = _decide_build(reach, lengths, build, told)
    contigs = list(dict.fromkeys([*reach, *lengths]))
    plain = {contig: plain_name(contig) for contig in contigs}
    numbers = {int(name) for name in plain.values() if name.isdigit()}
    autosomes, note = _autosomes(numbers, told[0] if told else "")
    roman = bool(_ROMAN & set(plain.values()))
    report = {name.upper(): role for name, role in (report or {}).items()}
    notes = [note] if note else []
    if roman and "X" in plain.values():
        notes.append("Contig X is taken as the tenth chromosome, because others are VI to IX.")
    roles = {}
    for contig in sorted(reach, key=contig_order):
        role = _role(plain[contig], autosomes, roman)
        by_length = _lengths().get(lengths.get(contig, 0), [])
        sexes = {name for _, name in by_length if name in SEX}
        if role not in NOT_AUTOSOMAL and sexes:
            role = next(iter(sexes))
            notes.append(
                f"Contig {contig} has the length of chromosome {role} ({by_length[0][0]})."
            )
        roles[contig] = report.get(contig.upper(), role)
    return Genome(human, why, roles, tuple(notes))


def _autosomes(numbers: set[int], build: str) -> tuple[int, str]:
    """Number of the last autosome, and a sentence where 23 to 26 are autosomes; 0: not known."""
    further = sorted(numbers & set(range(23, 27)))
    if build and (known := [int(name) for name in assemblies()[build] if name.isdigit()]):
        last = max(known)
        said = f"as in {build} ({species_of(build)})"
    elif numbers and max(numbers) > _HUMAN_AUTOSOMES + len(_AFTER_AUTOSOMES):
        last, said = 0, f"because there is a contig {max(numbers)}"
    else:
        return _HUMAN_AUTOSOMES, ""
    kept = [str(number) for number in further if not last or number <= last]
    if not kept:
        return last, ""
    return last, f"Contigs {', '.join(kept)} are taken as autosomes, {said}."


def _role(name: str, autosomes: int, roman: bool) -> str:
    if name.isdigit():
        after = int(name) - autosomes
        if autosomes and 1 <= after <= len(_AFTER_AUTOSOMES):
            return _AFTER_AUTOSOMES[after - 1]
        return AUTOSOME
    if roman and re.fullmatch("[IVX]+", name):
        return AUTOSOME
    # Unplaced parts of X: chrX_GL456233_random, chrX_KI270880v1_alt.
    first = re.fullmatch(r"(X|Y|M|MT|Z|W)_.+_(RANDOM|ALT|FIX|HAP[0-9]*)", name)
    known = _NAMES.get(first[1] if first else name)
    if known or name.endswith("MITOCHONDRION_GENOME"):
        return known or MT
    return AUTOSOME if re.fullmatch("[0-9]{1,2}[A-Z]|[IVX]+", name) else OTHER


def _decide_build(
    reach: Mapping[str, int],
    lengths: Mapping[str, int],
    build: str,
    told: tuple[str, str] | None,
) -> tuple[str, str]:
    """Build as `Genome.build` has it, and why."""
    if build != "any":
        return build, "qc.build says so"
    if told:
        return told[0], f"the length of contig {told[1]} in a header ({species_of(told[0])})"
    species = Counter(found for name in reach if (found := _accession(name.upper())[0]))
    if species:
        one = species.most_common(1)[0][0]
        return ("any" if one == "human" else "none"), f"its contigs are accessions of the {one}"
    numbers = {int(p): top for name, top in reach.items() if (p := plain_name(name)).isdigit()}
    whole = _HUMAN_AUTOSOMES + len(_AFTER_AUTOSOMES)
    if numbers and max(numbers) > whole:
        return "none", f"it has a contig {max(numbers)}"
    own = sorted(number for number in numbers if number <= _HUMAN_AUTOSOMES)
    if len(own) >= _WHOLE and own == list(range(1, own[-1] + 1)) and own[-1] < _HUMAN_AUTOSOMES:
        return "none", f"its numbered contigs end at {own[-1]}"
    longest = {k: max(assemblies()[b][str(k)] for b in HUMAN) for k in own}
    if beyond := [k for k in own if numbers[k] > longest[k]]:
        k = beyond[0]
        return "none", f"position {numbers[k]} of contig {k} is beyond every human chromosome {k}"
    shares = sorted(numbers[k] / longest[k] for k in own)
    if own and own[-1] == _HUMAN_AUTOSOMES and shares[len(shares) // 2] >= 0.5:
        return "any", "no header gives known lengths, but contigs and positions fit a human genome"
    return "unknown", "no header gives the contig lengths of a known build; qc.build can name one"


def read_assembly_report(path: Path, shown: str = "") -> dict[str, str]:
    """Role of each sequence of an assembly report of NCBI, by each of its names.

    Raises
    ------
    UserError
        The file is no assembly report.
    """
    shown = shown or str(path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(
            f"{shown} cannot be read; give an assembly report of NCBI, as text, or ''."
        ) from None
    head = next((line for line in text.splitlines() if line.startswith("# Sequence-Name")), "")
    columns = head.removeprefix("# ").split("\t")
    if "Assigned-Molecule" not in columns:
        raise UserError(
            f"{shown} has no line that begins with '# Sequence-Name' and names the column "
            "'Assigned-Molecule'; give the *_assembly_report.txt of an assembly of NCBI, or ''."
        )
    roles: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        row = dict(zip(columns, line.split("\t"), strict=False))
        place = row.get("Assigned-Molecule-Location/Type", "").lower()
        molecule = row["Assigned-Molecule"].strip().upper()
        if "mitochondri" in place or "plast" in place or _NAMES.get(molecule) == MT:
            role = MT
        elif molecule in SEX:
            role = molecule
        else:
            role = AUTOSOME if place == "chromosome" and molecule != "NA" else OTHER
        for column in ("Sequence-Name", "GenBank-Accn", "RefSeq-Accn", "UCSC-style-name"):
            if (name := row.get(column, "na").strip()) not in ("", "na"):
                roles[name] = role
    return roles


def genome_of_cohorts(
    about: Iterable[Path], build: str = "any", report: str | Path | None = None
) -> Genome:
    """`genome_of` the decoded files of some cohorts.

    Parameters
    ----------
    about : paths of `results/cohorts/{cohort}/raw.json`
    report : path, optional
        Assembly report.
    """
    reach: dict[str, int] = {}
    lengths: dict[str, int] = {}
    for path in about:
        for contig, (top, length) in read_json(path).get("contigs", {}).items():
            if top:
                reach[contig] = max(reach.get(contig, 0), top)
            if length:
                lengths.setdefault(contig, length)
    return genome_of(reach, lengths, build, read_assembly_report(Path(report)) if report else None)


def genome_of_panel(counts: Path) -> Genome:
    """What `build_panel` found of the founders' genome (`panel/counts.json`)."""
    return Genome(**read_json(counts)["genome"])
