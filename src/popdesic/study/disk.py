"""How many bytes a study writes: a forecast by stage, for `popdesic plan`, `check` and runs.

A stage is a folder below `results`. What grows with genotypes or with pairs of samples follows from
the formats of the files. The rest was measured on studies of 600 to 3 000 samples
(`tests/bench/bench_disk.py` prints forecast and files beside each other).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from pathlib import Path

from ..cohort.sources import expand_sources, source_files
from ..copying.copying_plan import MOST_FOUNDERS
from ..copying.painting_plan import MOST_STRETCHES
from ..core.errors import UserError
from ..core.files import bytes_meant, digest, has_lists, named_rows, read_json, result_files
from ..core.limits import MOST_EXPORTED
from ..core.triangle import triangle_size
from ..distance.landmarks import MOST_LANDMARKS
from ..distance.tiles import (
    SYMMETRIC,
    count_type,
    refers_to_tiles,
    study_matrices,
    tile_outputs,
)
from ..io.bed import LEAST_NAMED, bed_row_bytes
from ..io.formats import count_sites
from ..io.remote import is_remote
from .sheets import Study
from .sparse import DISTANCE_TEXT, is_compared, neighbors_kept

#: Approximate number of bytes of VCF text per byte of a compressed file.
COMPRESSION = {".gz": 15.0, ".bcf": 10.0}
#: Bytes of a neighbour in a list: number, distance, jointly called sites.
NEIGHBOR_BYTES = 16.0
#: Bytes of a pair of samples in a text matrix, and of n squared in the gzipped table of pairs.
SQUARE_TEXT, PAIRS_TEXT = 10.9, 5.0
#: Bytes of a number of a closure by space: of the types that are mostly taken.
CLOSURE_BYTES, OTHER_SPACE = {"genotypes": 4}, 8
#: Bytes of a site in tables: in a .bim, on the panel, in each cohort's quality control, in
#: comparisons (LD), in loadings, in each cohort's counts of populations, there beside the panel.
BIM, PANEL, QC, LD, LOADINGS, COUNTS, BESIDE = 27, 50, 100, 35, 45, 40, 30
#: Bytes of a site in gzipped scores of haplotypes, for a population and for a pair of two; how many
#: populations the forecast assumes, because it knows none.
SWEPT, SWEPT_PAIR, SWEPT_POPULATIONS = 14, 8, 5
#: Bytes of figures and page of any study, and of each further part with figures.
FIGURES, PAGE, FURTHER = 7e6, 3.7e6, 2e6


@dataclass(frozen=True)
class StudySizes:
    """What the cohorts of a study hold.

    Attributes
    ----------
    samples, sites : dict
        Number of samples, and of sites in its files, of each cohort.
    n_sites : int
        Sites of the panel; at most those of the founder that has the fewest.
    source : str
        Phrase that says how the number of sites is known.
    known : bool
        Whether all numbers of sites were counted rather than guessed.
    named : collection of str
        Cohorts of large PLINK 1 files, which are not copied: `raw.bed` names their rows.
    choice : dict
        `geodesic/choice.json`, once it is there: what alpha `auto` stands for in each space.
    layers : int
        Columns of a sample in files of genotypes (`io.layers`).
    listed : dict
        Bytes of each `raw.bed` that has lists of carriers (`io.listed_rows`), or will have them
        (`content.look_into_files`).
    set_bytes : float
        Scores of sets that are kept of each cohort, if `look_into_files` looked.
    guessed : bool
        Whether the sizes of files alone tell `n_sites`.
    """

    samples: Mapping[str, int]
    sites: Mapping[str, float]
    n_sites: int
    source: str = ""
    known: bool = True
    choice: Mapping[str, Mapping] = field(default_factory=dict)
    named: Collection[str] = ()
    layers: int = 1
    listed: Mapping[str, int] = field(default_factory=dict)
    set_bytes: float = 0.0
    guessed: bool = False

    @property
    def n_samples(self) -> int:
        return sum(self.samples.values())


def study_sizes(folder: Path, study: Study, n_sites: int | None = None) -> StudySizes:
    """Sites of all units: of results, otherwise as their files state them or their sizes hint.

    Of a batch the first cohort's files tell.

    Parameters
    ----------
    folder : Path
        The study.
    study : Study
        Its checked sheets.
    n_sites : int, optional
        Sites of the panel, if the user says so.
    """
    samples = study.counts
    found = {unit: _sites_of(folder, study, unit) for unit in samples}
    sites = {cohort: number for cohort, (number, _) in found.items()}
    known = all(exact for _, exact in found.values())
    panel, guessed = folder / "results/panel/counts.json", False
    if n_sites is not None:
        source = "given by --sites"
    elif panel.is_file():
        n_sites, source = int(read_json(panel)["n_sites"]), "of the panel"
    else:
        n_sites = max(1, int(min(sites[unit] for unit in study.founders)))
        source, guessed = "guessed from file sizes; set the number with --sites N", True
    chosen = folder / "results/geodesic/choice.json"
    choice = read_json(chosen) if chosen.is_file() else {}
    named = [unit for unit in samples if _is_named(folder, study, unit)]
    layers = study.layers
    raw = {unit: folder / f"results/cohorts/{unit}/raw.bed" for unit in samples}
    listed = {u: p.stat().st_size for u, p in raw.items() if p.is_file() and has_lists(p)}
    return StudySizes(
        *(samples, sites, n_sites, source, known, choice, named, layers, listed), guessed=guessed
    )


def _is_named(folder: Path, study: Study, unit: str) -> bool:
    """Whether a unit's `raw.bed` names rows, or will, as far as sheets tell."""
    raw = folder / f"results/cohorts/{unit}/raw.bed"
    if raw.is_file():
        return named_rows(raw) is not None
    cohort, *more = study.units[unit]
    sources = expand_sources(study.cohorts.genotypes[cohort], folder)
    names = study.names_in_files(cohort)
    if more or len(sources) > 1 or len(names) > study.counts[unit]:
        return False
    if is_remote(sources[0]):
        return False
    path = Path(source_files(folder / sources[0])[0])
    return path.suffix == ".bed" and path.stat().st_size >= LEAST_NAMED


def _sites_of(folder: Path, study: Study, unit: str) -> tuple[float, bool]:
    """Number of sites of a unit's files, and whether it was counted."""
    raw = folder / f"results/cohorts/{unit}/raw.bed"
    n_samples = study.counts[unit]
    if raw.is_file() and n_samples:
        return bytes_meant(raw) // bed_row_bytes(n_samples * study.layers), True
    sites, known = 0.0, True
    cohort = study.units[unit][0]
    n_samples = len(study.names_in_files(cohort))
    for source in expand_sources(study.cohorts.genotypes[cohort], folder):
        if is_remote(source):
            sites += count_sites(source) or 0
            continue
        path = Path(source_files(folder / source)[0])
        size = path.stat().st_size
        if path.suffix == ".bed":
            sites += size // bed_row_bytes(n_samples)
        elif (exact := count_sites(folder / source)) is not None:
            sites += exact
        else:
            row = 2 * max(study.ploidy, 2) * n_samples + 60
            sites += size * COMPRESSION.get(path.suffix, 1.0) / row
            known = False
    return sites, known


def forecast_disk(config: dict, genotypes: StudySizes, *, sparse: bool) -> dict[str, float]:
    """Bytes of a whole study's results at their most, by stage.

    Parameters
    ----------
    config : dict
        With all defaults filled in.
    genotypes : StudySizes
    sparse : bool
        Whether the study has no matrix of all pairs.
    """
    n, m, cohorts = genotypes.n_samples, genotypes.n_sites, len(genotypes.samples)
    maps = len(_geodesics(config))
    stages = {
        "cohorts": _cohorts(config, genotypes),
        "panel": PANEL * m + 20 * n,
        "qc": QC * sum(genotypes.sites.values()) + 85 * n,
        "embedding": LOADINGS * m + (420 * maps + 200) * n,
        "communities": 1100 * n,
        "figures": FIGURES,
        "report": PAGE + 220 * n,
        "export": sum(_export(name, n, m) for name in config["export"]["formats"]),
    }
    if "painting" in config["communities"]["methods"]:
        stages["painting"] = (8 + 4 * MOST_STRETCHES) * n * min(n, MOST_FOUNDERS)
        stages["figures"] += FURTHER
    if is_compared(config):
        stages["compare"] = LD * m + 250 * n
    if config["population"]["analyses"]:
        stages["population"] = COUNTS * m * cohorts + 160 * n
        if config["panel"]["min_maf"] > 0 or config["panel"]["ld_prune"]:
            further = max(max(genotypes.sites.values()) - m, 0)
            stages["panel"] += PANEL * further
            stages["population"] += BESIDE * further * cohorts
        if "sweeps" in config["population"]["analyses"]:
            pairs = SWEPT_POPULATIONS * (SWEPT_POPULATIONS - 1) // 2
            stages["population"] += (SWEPT * SWEPT_POPULATIONS + SWEPT_PAIR * pairs) * m
            stages["figures"] += FURTHER
    for part, asked in (
        ("epistasis", config["epistasis"]["order"] or config["epistasis"]["sets"]),
        ("ibd", "ibd" in config["compare"]["analyses"]),
    ):
        if asked:
            stages[part] = FURTHER
            stages["figures"] += FURTHER
    if config["epistasis"]["sets"]:
        stages["epistasis"] += genotypes.set_bytes * cohorts
    return stages | (_near_pairs if sparse else _all_pairs)(config, genotypes)


def _geodesics(config: dict) -> list[str]:
    """Space of each geodesic."""
    geodesic = config["geodesic"]
    return [space for space in geodesic["space"] for _ in geodesic["alpha"]]


def _closures(config: dict, choice: Mapping[str, Mapping]) -> list[str]:
    """Space of each closure whose numbers are stored.

    Not of plain distances between components, and not where `auto` stands for a listed alpha.
    """
    alphas, graph = config["geodesic"]["alpha"], config["geodesic"]["graph"]
    stored = []
    for space in config["geodesic"]["space"]:
        unknown = {"alpha": "auto", "graph": ""}
        auto = {"alpha": 1, "graph": graph} if space == "ibd" else choice.get(space, unknown)
        for alpha in alphas:
            value, kind = (auto["alpha"], auto["graph"]) if alpha == "auto" else (alpha, graph)
            plain = space == "pcs" and (value, kind) == (1, "complete")
            repeated = alpha == "auto" and kind == graph and value in alphas
            stored += [] if plain or repeated else [space]
    return stored


def _cohorts(config: dict, genotypes: StudySizes) -> float:
    """Decoded and encoded genotypes, planes and, if a program imputes, imputed genotypes."""
    total, m = 0.0, genotypes.n_sites
    encoded = {"beagle": 2, "copying": 3}.get(config["impute"]["method"], 1)  # 3: with phase
    for cohort, n in genotypes.samples.items():
        n *= genotypes.layers
        sites, row = genotypes.sites[cohort], bed_row_bytes(n)
        named = cohort in genotypes.named and not config["qc"]["fasta"]
        raw = genotypes.listed.get(cohort, (8 if named else row) * sites)
        total += raw + encoded * row * m + BIM * (sites + encoded * m)
        total += n * 3 * 64 * -(-m // 512) + 80 * n
    return total


def _all_pairs(config: dict, genotypes: StudySizes) -> dict[str, float]:
    """Matrices of all pairs: tiles, assembled distances if tiles are small, closures."""
    n, distance, geodesic = genotypes.n_samples, config["distance"], config["geodesic"]
    sizes = list(genotypes.samples.values())
    outputs = tile_outputs(distance["metric"])
    tile_pairs = sum(a * b for a, b in combinations(sizes, 2))
    number = {name: _count_bytes(name, genotypes.n_sites, 3) for name in outputs}
    tiles = tile_pairs * sum(number.values()) + 64.0 * n * len(sizes)
    for name in outputs:
        own = [triangle_size(a) if name in SYMMETRIC else a * a for a in sizes]
        tiles += number[name] * sum(own)
    text = writes_text(config, n)
    repeated = not refers_to_tiles(distance["metric"], sizes)
    named = study_matrices(distance["metric"]) if repeated else ()
    matrices = sum(
        _count_bytes(name, genotypes.n_sites, 2) * triangle_size(n)
        if name in SYMMETRIC
        else count_type(genotypes.n_sites)(0).itemsize * n * n
        for name in named
    )
    stored, maps = _closures(config, genotypes.choice), len(_geodesics(config))
    each = [CLOSURE_BYTES.get(space, OTHER_SPACE) for space in stored]
    paths = triangle_size(n) * sum(each) + 20 * n * maps
    paths += maps * n * n * 4 * (geodesic["explain"] + config["embedding"]["stable"])
    return {
        "distance": tiles + matrices + text * n * n * (SQUARE_TEXT + PAIRS_TEXT),
        "geodesic": paths,
    }


def _count_bytes(name: str, n_sites: int, fewest: int) -> int:
    """Bytes of a count at most: two or `fewest` where no two counts can differ by more."""
    most = (1 if name in ("called", "ibs0") else 4) * n_sites
    fitting = (n for n in (2, fewest) if most < 1 << 8 * n)
    return next(fitting, count_type(n_sites)(0).itemsize)


def writes_text(config: dict, n_samples: int) -> bool:
    """Whether a study with all pairs writes its distances as text."""
    return DISTANCE_TEXT in config["export"]["formats"] or n_samples <= MOST_EXPORTED


def _near_pairs(config: dict, genotypes: StudySizes) -> dict[str, float]:
    """Lists of nearest samples and rows of landmarks; tiles have the nearest in every cohort."""
    n, k = genotypes.n_samples, neighbors_kept(config)
    lists = NEIGHBOR_BYTES * n * k + 4.0 * n * min(n, MOST_LANDMARKS)
    tiles = bytes_of_lists(
        combinations_with_replacement(genotypes.samples, 2), genotypes.samples, k
    )
    return {"distance": tiles + 2 * lists, "geodesic": len(_geodesics(config)) * lists}


def bytes_of_lists(pairs: Iterable[tuple[str, str]], samples: Mapping[str, int], k: int) -> float:
    """Size of the lists of the k nearest samples of these pairs of cohorts in each other."""
    numbers = 0
    for a, b in pairs:
        numbers += samples[a] * min(k, samples[b])
        numbers += 0 if a == b else samples[b] * min(k, samples[a])
    return NEIGHBOR_BYTES * numbers


def _export(name: str, n: int, m: int) -> float:
    """Size of an exported format."""
    genotypes = {"plink": 0.25, "vcf": 0.33, "zarr": 0.22, "zarr3": 0.22}
    if name in genotypes:
        return genotypes[name] * n * m + BIM * m
    return SQUARE_TEXT * n * n if name in ("mibs", "king", "phylip") else 100.0 * n


def held_bytes(folder: Path, cohorts: Sequence[str]) -> dict[str, int]:
    """Bytes of the results that are there, by stage; without closures of other sets of cohorts."""
    results, own = folder / "results", f".{cohort_set(cohorts)}."
    held: dict[str, int] = {}
    for path in result_files(results):
        stage = path.relative_to(results).parts[0]
        if path.parent.name == "closure" and own not in path.name:
            continue
        files = path.rglob("*") if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files if file.is_file())
        held[stage] = held.get(stage, 0) + size
    return held


def cohort_set(cohorts: Sequence[str]) -> str:
    """Digest of a set of cohorts; part of the names of closures that later runs extend."""
    return digest("\n".join(sorted(cohorts)))


def stages_of(paths: Iterable[str]) -> set[str]:
    """Stages of some results: their folders below `results`."""
    return {path.split("/")[1] for path in paths if path.startswith("results/")}


def describe_disk(
    folder: Path, stages: Mapping[str, float], held: Mapping[str, int], named: int = 4
) -> str:
    """The forecast as a line of text; its largest stages are named."""
    largest = sorted(stages, key=lambda stage: -stages[stage])[:named]
    parts = ", ".join(f"{stage} {stages[stage] / 1e9:.2g}" for stage in largest)
    there = sum(held.get(stage, 0) for stage in stages)
    return (
        f"disk: {sum(stages.values()) / 1e9:.3g} GB at most ({parts}); {there / 1e9:.3g} GB are "
        f"there, {free_bytes(folder) / 1e9:.3g} GB are free"
    )


def free_bytes(folder: Path) -> float:
    """Bytes that are left in the file system of the results; infinite if it does not tell."""
    results = folder / "results"
    usage = shutil.disk_usage(results if results.is_dir() else folder)
    return usage.free if usage.total else float("inf")


def require_disk_space(
    folder: Path,
    config: dict,
    genotypes: StudySizes,
    *,
    sparse: bool,
    stages: Collection[str] | None = None,
    look: Callable[[StudySizes], StudySizes] = lambda sizes: sizes,
) -> None:
    """Refuse a study whose results do not fit into the file system.

    What depends on a guessed number of sites does not count.

    Parameters
    ----------
    stages : collection of str, optional
        Those that are wanted; all by default.
    look : function, optional
        Sizes that files show (`content.look_into_files`), if there is not room for those given.

    Raises
    ------
    UserError
        Says how much is needed for what, and how much there is.
    """
    free = free_bytes(folder)
    for sizes in (lambda: genotypes, lambda: look(genotypes)):
        sure = forecast_disk(config, sizes(), sparse=sparse)
        if not genotypes.known:
            sure = {stage: sure[stage] for stage in ("distance", "geodesic")}
        if sum(sure.values()) <= free:
            return  # whatever is there: not looked at, which takes time with many files
    held = held_bytes(folder, list(genotypes.samples))
    missing = {
        stage: size - held.get(stage, 0)
        for stage, size in sure.items()
        if (stages is None or stage in stages) and size > held.get(stage, 0)
    }
    if sum(missing.values()) > free:
        largest = sorted(missing, key=lambda stage: -missing[stage])[:3]
        parts = ", ".join(f"{stage} {missing[stage] / 1e9:.2g}" for stage in largest)
        raise UserError(
            f"{folder / 'results'} needs {sum(missing.values()) / 1e9:.3g} GB more ({parts}), but "
            f"its file system has {free / 1e9:.3g} GB left; make room, move the study to another "
            "disk, or lower distance.dense_limit, so that no matrix of all pairs is made."
        )
