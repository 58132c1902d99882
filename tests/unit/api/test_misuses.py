"""Every public function refuses every misuse with one sentence that names the argument."""

import warnings

import numpy as np
import pytest

import popdesic

RNG = np.random.default_rng(9)
G = RNG.binomial(2, 0.4, (12, 300)).astype(np.int8)
H = (G > 0).astype(np.int8)
POS = np.arange(1, 301) * 20_000
LABELS = ["A"] * 3 + ["B"] * 3 + ["C"] * 3 + ["D"] * 3
CASE = np.arange(12) % 2
NUMBER = np.arange(12) * 1.5
D = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
PACKED = popdesic.pack(G)
CLOSURE = popdesic.shortest_paths(D, 2, device="cpu")


def forged(words=PACKED.words, n_sites=300, filled=False):
    return popdesic.PackedGenotypes(words, n_sites, filled)


def with_value(array, value, dtype=float):
    found = np.array(array, dtype)
    found.reshape(-1)[1] = value
    return found


BEYOND = PACKED.words.copy()
BEYOND[0, 0, -1] |= np.uint64(1 << 63)
HOM_ALONE = PACKED.words.copy()
HOM_ALONE[0, 1, 0] |= ~HOM_ALONE[0, 0, 0]
FORGED = {
    "words of int64": forged(PACKED.words.astype(np.int64)),
    "words of a list": forged(PACKED.words.tolist()),
    "one plane": forged(PACKED.words[:, :1]),
    "four planes": forged(np.concatenate([PACKED.words, PACKED.words], axis=1)),
    "two dimensions": forged(PACKED.words[0]),
    "no samples": forged(PACKED.words[:0]),
    "too many sites": forged(n_sites=3000),
    "no sites": forged(n_sites=0),
    "negative sites": forged(n_sites=-5),
    "half a site": forged(n_sites=299.5),
    "NaN sites": forged(n_sites=np.nan),
    "fewer sites": forged(n_sites=250),
    "bits beyond": forged(BEYOND),
    "hom without carrier": forged(HOM_ALONE),
    "filled of text": forged(filled="mode"),
}
ARRAYS = {
    "empty": [],
    "no samples": np.zeros((0, 300)),
    "no sites": np.zeros((12, 0)),
    "text": np.full((12, 300), "0/1"),
    "objects": np.full((12, 300), None),
    "three": with_value(G, 3),
    "minus two": with_value(G, -2),
    "half": with_value(G, 0.5),
    "infinite": with_value(G, np.inf),
    "complex": G.astype(complex),
    "one dimension": G[0],
    "three dimensions": G[None],
    "a number": 5,
    "None": None,
    "ragged": [[0, 1], [2]],
}
WHOLE = {
    **{f"{v!r}": v for v in (-1, 1.5, np.nan, np.inf, "2", True, [2], None, np.array([1, 2]))},
}
REAL = {f"{v!r}": v for v in (-1, np.nan, np.inf, "2", True, [2], None)}
THREADS = {name: v for name, v in WHOLE.items() if v is not None} | {"0": 0}
DEVICES = {f"{v!r}": v for v in ("cuda", "", None, 0, np.nan)}
TEXT = {f"{v!r}": v for v in ("nothing", "", None, 1, np.nan, ["euclidean"])}
MASKS = {
    "numbers": np.ones(12),
    "short": np.ones(11, bool),
    "two dimensions": np.ones((12, 1), bool),
    "none": np.zeros(12, bool),
    "text": ["yes"] * 12,
}
BLOCKS = {**WHOLE, "0": 0, "short": [0] * 299, "unknown": with_value(POS, np.nan)}
BLOCKS |= {"None in it": with_value(POS, None, object), "two dimensions": POS[None]}
POPULATIONS = {
    "short": LABELS[1:],
    "text": "A",
    "two dimensions": [LABELS],
    "all unknown": [None] * 12,
    "None": None,
    "a number": 3,
}
SINGLE = {name: MASKS[name] for name in ("numbers", "short", "two dimensions", "text")}
POSITIONS = {
    "negative": with_value(POS, -3, int),
    "first negative": POS - 10**9,
    "too large": POS + 2**40,
    "floats": POS * 1.0,
    "NaN": with_value(POS, np.nan),
    "short": POS[1:],
    "falling": POS[::-1],
    "text": POS.astype(str),
    "bool": POS > 5,
    "objects": POS.astype(object),
    "two dimensions": POS[None],
    "None": None,
    "empty": [],
}
CONTIGS = {
    "short": ["1"] * 299,
    "apart": ["1"] * 100 + ["2"] * 100 + ["1"] * 100,
    "None in it": ["1"] * 299 + [None],
    "NaN in it": with_value(POS, np.nan),
    "empty name": ["1"] * 299 + [""],
    "two dimensions": [["1"] * 300],
    "a name": "1",
}
CENTIMORGANS = {
    "NaN": with_value(POS, np.nan),
    "infinite": with_value(POS, np.inf),
    "short": POS[1:] / 1e6,
    "falling": -POS / 1e6,
    "text": POS.astype(str),
    "objects": with_value(POS, None, object),
    "empty": [],
}
FREQUENCIES = {
    "NaN": with_value(POS * 0, np.nan),
    "negative": POS * 0 - 0.1,
    "above one": POS * 0 + 1.1,
    "short": POS[1:] * 0.0,
    "text": POS.astype(str),
    "objects": POS.astype(object),
    "empty": [],
}
PHENOTYPES = {
    "two": with_value(CASE, 2),
    "short": CASE[1:],
    "text": CASE.astype(str),
    "objects": CASE.astype(object),
    "two dimensions": CASE[:, None],
    "infinite": with_value(CASE, np.inf),
    "all NaN": CASE * np.nan,
    "one class": CASE * 0,
    "None": None,
}
COVARIATES = {
    "short": NUMBER[1:, None],
    "one dimension": NUMBER,
    "text": NUMBER.astype(str)[:, None],
    "objects": NUMBER.astype(object)[:, None],
    "infinite": with_value(NUMBER, np.inf)[:, None],
    "three dimensions": NUMBER[:, None, None],
    "a number": 4.0,
}
KINSHIPS = {
    "short": np.zeros((11, 11)),
    "not square": np.zeros((12, 11)),
    "integers": np.eye(12, dtype=int),
    "text": np.full((12, 12), "0"),
    "above one": np.full((12, 12), 1.5),
    "infinite": np.full((12, 12), np.inf),
    "one dimension": np.zeros(12),
}
DISTANCES = {
    "NaN": with_value(D, np.nan),
    "negative": with_value(D, -1),
    "not symmetric": with_value(D, 7),
    "not square": D[:, 1:],
    "diagonal": D + 1,
    "text": D.astype(str),
    "objects": D.astype(object),
    "bool": D > 1,
    "complex": D.astype(complex),
    "one dimension": D[0],
    "empty": [],
    "None": None,
    "ragged": [[0, 1], [1]],
    "alone": np.where(np.eye(3), 0, np.inf),
}
ALPHAS = {**REAL, "0.5": 0.5, "0": 0}
SCORES = {
    "NaN": np.full((12, 2), np.nan),
    "short": np.zeros((11, 2)),
    "text": np.full((12, 2), "x"),
    "one dimension": np.zeros(12),
    "no columns": np.zeros((12, 0)),
    "None": None,
    "objects": np.full((12, 2), None),
}
LIMITS = {
    "min_kb": REAL,
    "threshold": REAL,
    "window_sites": WHOLE,
    "min_sites": WHOLE,
    "max_hets": {name: v for name, v in WHOLE.items() if name != "-1"} | {"-2": -2},
    "max_gap_kb": REAL,
}
SEGMENTS = dict.fromkeys(("min_cm", "min_lod", "error_rate", "drop", "min_ibd2_cm"), REAL)
SEGMENTS |= dict.fromkeys(("tolerance", "window", "most"), WHOLE)
HAPS = RNG.integers(0, 2, (6, 9))
PLACES = np.arange(9) / 10
TYPED = np.array([1, 4, 7])
ROWS = HAPS[:2, TYPED]
#: Arrays of alleles, and one of the right shape with a wrong allele.
ALLELES = {"two": HAPS * 2, "half": HAPS / 2, "one dimension": HAPS[0], "text": "x", "None": None}
ALLELES |= {"texts": HAPS.astype(str), "objects": HAPS.astype(object), "empty": []}
MAPS = {"short": PLACES[1:], "falling": PLACES[::-1], "NaN": PLACES * np.nan, "text": "x"}
MAPS |= {"None": None, "two dimensions": PLACES[None]}
SITES = {"falling": TYPED[::-1], "twice": [1, 1, 4], "beyond": [1, 4, 9], "negative": [-1, 4, 7]}
SITES |= {"halves": TYPED / 2, "text": "x", "None": None, "two dimensions": TYPED[None]}
CPU = {"device": "cpu"}


def table() -> list[tuple[str, str, str, object]]:
    """Function, argument, name of the misuse, call."""
    rows = []

    def add(function, argument, values, *given, **options):
        for name, value in values.items():
            arguments = [value if one is ... else one for one in given]
            keywords = {k: (value if v is ... else v) for k, v in options.items()}

            def call(arguments=arguments, keywords=keywords):
                return getattr(popdesic, function)(*arguments, **keywords)

            rows.append((function, argument, name, call))

    for function, more, options in (
        ("pairwise_distance", (), CPU),
        ("kinship", (), CPU),
        ("diversity", (LABELS,), {}),
        ("shared_doubletons", (LABELS,), {}),
        ("f_st", (LABELS,), {}),
        ("f2", (LABELS,), {}),
        ("f3", (LABELS,), {}),
        ("f4", (LABELS, [list("ABCD")]), {}),
        ("homozygous_runs", (POS,), {}),
        ("ibd_segments", (POS,), {"min_cm": 1}),
    ):
        add(function, "genotypes", ARRAYS | FORGED, ..., *more, **options)
        add(function, "threads", THREADS, G, *more, **options, threads=...)
    for function in ("identity", "mixture"):
        add(function, "genotypes", ARRAYS | FORGED, ..., G, **CPU)
        add(function, "genotypes", ARRAYS | FORGED, G, ..., **CPU)
        add(function, "sites", {"fewer": G[:, 1:]}, G, ..., **CPU)
        add(function, "threads", THREADS, G, G, **CPU, threads=...)
        add(function, "device", DEVICES, G, G, device=...)
        add(function, "min_called", WHOLE, G, G, **CPU, min_called=...)
        add(function, "top", WHOLE | {"0": 0}, G, G, **CPU, top=...)
    for function, more in (("pack", ()), ("pca", ()), ("ld_r2", ())):
        add(function, "genotypes", ARRAYS, ..., *more)
        add(function, "threads", THREADS, G, *more, threads=...)
    add("ld_r2", "genotypes", {k: v for k, v in ARRAYS.items() if k != "None"}, G, ..., **CPU)
    for function in ("scan", "scan_sites"):
        add(function, "genotypes", ARRAYS, ..., CASE)
        phenotypes = dict(PHENOTYPES)
        if function == "scan_sites":  # 0, 1 and 2 are numbers
            del phenotypes["two"]
        add(function, "phenotype", phenotypes, G, ...)
        add(function, "covariates", COVARIATES, G, CASE, covariates=...)
        add(function, "kinship", KINSHIPS, G, CASE, kinship=...)
    one = {"gene": [0, 1, 2]}
    flags = {"text": "no", "None": None, "2": 2}
    for function in ("scan_sets", "score_sets"):
        add(function, "genotypes", ARRAYS, ..., CASE, one)
        wide = NUMBER[:, None, None] if function == "scan_sets" else NUMBER[:, None]
        wrong = phenotypes | {"two dimensions": wide}  # columns of `scan_sets` are phenotypes
        add(function, "phenotype", wrong, G, ..., one)
        add(function, "covariates", COVARIATES, G, CASE, one, covariates=...)
        add(function, "transform", TEXT, G, NUMBER, one, transform=...)
        add(function, "threads", THREADS, G, CASE, one, threads=...)
        add(function, "dominance", flags, G, CASE, one, dominance=...)
    add("scan_sets", "device", DEVICES, G, CASE, one, device=...)
    two = {"a": popdesic.CohortSets({}), "b": popdesic.CohortSets({})}
    other = {
        "a list": [1, 2],
        "None": None,
        "text": "ab",
        "a pair": (two, two),
        "tables": {"a": 1, "b": 2},
        "one": {"a": two["a"]},
    }
    add("replicate_sets", "cohorts", other, ..., ["a"])
    names = {
        "text": "a",
        "None": None,
        "3": 3,
        "empty": [],
        "all": ["a", "b"],
        "unknown": ["c"],
        "half": 0.5,
    }
    add("replicate_sets", "discovery", names, two, ...)
    wrong = {"text": "AB", "None": None, "3": 3, "300": [0, 300], "half": [0.5], "nested": [[[1]]]}
    wrong = {name: {"gene": value} for name, value in wrong.items()}
    wrong |= {"a list": [[0, 1]], "nothing": None, "names": {1: [0, 1], "1": [2, 3]}}
    for function in ("scan_sets", "score_sets"):
        add(function, "sets", wrong, G, CASE, ...)
    add("shared_doubletons", "populations", POPULATIONS, G, ...)
    for function in ("diversity", "f_st", "f2", "f3", "f4"):
        more = ([list("ABCD")],) if function == "f4" else ()
        add(function, "blocks", BLOCKS, G, LABELS, *more, blocks=...)
        add(function, "populations", POPULATIONS, G, ..., *more)
        add(function, "pseudo_haploid", SINGLE, G, LABELS, *more, pseudo_haploid=...)
    for function, people in (("f_st", ["A"] * 12), ("f2", ["A"] * 12), ("f3", LABELS[:6] * 2)):
        add(function, "populations", {"too few": people}, G, ...)
    tests = {"unknown": [list("ABCX")], "three": [list("ABC")], "twice": [list("AABC")]}
    tests |= {"text": "ABCD", "None": None, "a number": 3, "numbers": [1, 2], "empty": []}
    add("f4", "tests", tests, G, LABELS, ...)
    for function in ("pairwise_distance", "kinship", "ld_r2"):
        add(function, "device", DEVICES, G, device=...)
    add("scan", "device", DEVICES, G, CASE, device=...)
    add("shortest_paths", "device", DEVICES, D, device=...)
    for function in ("pairwise_distance", "kinship"):
        add(function, "min_called", WHOLE, G, **CPU, min_called=...)
    add("pairwise_distance", "metric", TEXT, G, **CPU, metric=...)
    add("pairwise_distance", "missing", TEXT, G, **CPU, missing=...)
    add("kinship", "method", TEXT, G, **CPU, method=...)
    add("kinship", "scores", SCORES, G, method="pc-relate", scores=...)
    add("kinship", "founders", MASKS, G, method="pc-relate", scores=G[:, :1] * 1.0, founders=...)
    add("pca", "founders", MASKS, G, founders=...)
    add("pca", "af", FREQUENCIES, G, af=...)
    add("pca", "n_components", WHOLE | {"0": 0, "'all'": "all"}, G, n_components=...)
    fills = {"text": "mean", "short": [0] * 299, "three": [3] * 300, "half": [0.5] * 300}
    fills |= {"NaN": [np.nan] * 300, "objects": [None] * 300, "texts": ["0"] * 300, "number": 1}
    add("pack", "fill", fills, G, fill=...)
    add("scan", "order", {f"{v!r}": v for v in (1, 5, 2.0, "2", None, np.nan)}, G, CASE, order=...)
    add("scan", "score", TEXT, G, CASE, score=...)
    add("scan", "top", WHOLE | {"0": 0}, G, CASE, top=...)
    add("scan", "max_r2", REAL | {"2": 2}, G, CASE, max_r2=...)
    add("scan", "threads", THREADS, G, CASE, threads=...)
    add("scan_sites", "transform", TEXT, G, NUMBER, transform=...)
    for function, limits in (("homozygous_runs", LIMITS), ("ibd_segments", SEGMENTS)):
        add(function, "positions", POSITIONS, G, ...)
        add(function, "contigs", CONTIGS, G, POS, ...)
        for limit, values in limits.items():
            add(function, limit, values, G, POS, **{limit: ...})
        add(function, "nonsense", {"unknown limit": 1}, G, POS, nonsense=...)
    add("ibd_segments", "centimorgans", CENTIMORGANS, G, POS, centimorgans=...)
    add("ibd_segments", "af", FREQUENCIES, G, POS, af=...)
    add("haploid_ibd", "genotypes", ARRAYS | {"packed": PACKED, "two": 2 * H}, ..., POS)
    add("haploid_ibd", "genotypes", {"too few": H[:7]}, ..., POS)
    add("haploid_ibd", "positions", POSITIONS, H, ...)
    add("haploid_ibd", "contigs", CONTIGS, H, POS, ...)
    add("haploid_ibd", "centimorgans", CENTIMORGANS, H, POS, centimorgans=...)
    add("haploid_ibd", "af", FREQUENCIES, H, POS, af=...)
    rates = REAL | {"0": 0, "0.6": 0.6}
    add("haploid_ibd", "error_rate", rates, H, POS, error_rate=...)
    most = {name: value for name, value in REAL.items() if value is not None} | {"0.5": 0.5}
    add("haploid_ibd", "max_generations", most, H, POS, max_generations=...)
    add("haploid_ibd", "iterations", WHOLE | {"0": 0}, H, POS, iterations=...)
    add("haploid_ibd", "threads", THREADS, H, POS, threads=...)
    add("impute_haplotypes", "reference", ALLELES | {"-1": -HAPS}, ..., PLACES, ROWS, TYPED)
    add("impute_haplotypes", "centimorgans", MAPS, HAPS, ..., ROWS, TYPED)
    short = {
        name: value[..., :3] if name in ("two", "half", "texts", "objects") else value
        for name, value in ALLELES.items()
    }
    add("impute_haplotypes", "targets", short | {"wide": HAPS}, HAPS, PLACES, ..., TYPED)
    add("impute_haplotypes", "typed", SITES, HAPS, PLACES, ROWS, ...)
    sizes = {name: value for name, value in REAL.items() if value is not None} | {"0": 0}
    for name in ("ne", "mismatch"):
        add("impute_haplotypes", name, sizes, HAPS, PLACES, ROWS, TYPED, **{name: ...})
    add("impute_haplotypes", "threads", THREADS, HAPS, PLACES, ROWS, TYPED, threads=...)
    reads = np.zeros((2, len(TYPED), 3))
    bad = {"None": None, "text": "abc", "two": reads[0], "wide": reads[..., :2], "-1": reads - 1}
    bad |= {"inf": reads + np.inf, "some": np.where([0, 0, 1], np.nan, reads)}
    add("impute_likelihoods", "phreds", bad, HAPS, PLACES, ..., TYPED)
    add("impute_likelihoods", "typed", SITES, HAPS, PLACES, reads, ...)
    add("impute_likelihoods", "seed", WHOLE | {"0": 0}, HAPS, PLACES, reads, TYPED, seed=...)
    add("impute_likelihoods", "names", {"one": ["a"]}, HAPS, PLACES, reads, TYPED, names=...)
    add("impute_likelihoods", "threads", THREADS, HAPS, PLACES, reads, TYPED, threads=...)
    few = G[:2, : len(TYPED)]
    add("phase_genotypes", "genotypes", ARRAYS | {"wide": G}, HAPS, PLACES, ..., TYPED)
    add("phase_genotypes", "typed", SITES, HAPS, PLACES, few, ...)
    add("phase_genotypes", "seed", WHOLE | {"0": 0}, HAPS, PLACES, few, TYPED, seed=...)
    add("phase_genotypes", "names", {"one": ["a"]}, HAPS, PLACES, few, TYPED, names=...)
    add("phase_genotypes", "threads", THREADS, HAPS, PLACES, few, TYPED, threads=...)
    add("fit_copying", "reference", ALLELES, ..., PLACES)
    add("fit_copying", "centimorgans", MAPS, HAPS, ...)
    add("fit_copying", "ploidy", WHOLE | {"0": 0}, HAPS, PLACES, ploidy=...)
    add("fit_copying", "threads", THREADS, HAPS, PLACES, threads=...)
    add("paint", "reference", ALLELES | {"-1": -HAPS, "one": HAPS[:2]}, ..., PLACES)
    add("paint", "centimorgans", MAPS, HAPS, ...)
    given = {name: value for name, value in ALLELES.items() if value is not None}
    add("paint", "targets", given | {"wide": ROWS, "odd": HAPS[:1]}, HAPS, PLACES, ...)
    add("paint", "ploidy", WHOLE | {"0": 0}, HAPS, PLACES, ploidy=...)
    for name in ("ne", "mismatch"):
        add("paint", name, sizes, HAPS, PLACES, **{name: ...})
    add("paint", "threads", THREADS, HAPS, PLACES, threads=...)
    sources = list("AAB")
    add("local_ancestry", "reference", ALLELES | {"-1": -HAPS}, ..., PLACES, sources, HAPS)
    add("local_ancestry", "centimorgans", MAPS, HAPS, ..., sources, HAPS)
    named = {"text": "AAB", "None": None, "short": sources[:2], "one": ["A"] * 3, "numbers": [0, 1]}
    named |= {"mixed": ["A", "B", 3], "empty": [], "nobody": [None] * 3}
    add("local_ancestry", "labels", named, HAPS, PLACES, ..., HAPS)
    odd = given | {"wide": ROWS, "odd": HAPS[:1]}
    add("local_ancestry", "targets", odd, HAPS, PLACES, sources, ...)
    add("local_ancestry", "ploidy", WHOLE | {"3": 3}, HAPS, PLACES, sources, HAPS, ploidy=...)
    for name in ("ne", "mismatch"):
        add("local_ancestry", name, sizes, HAPS, PLACES, sources, HAPS, **{name: ...})
    add("local_ancestry", "threads", THREADS, HAPS, PLACES, sources, HAPS, threads=...)
    stacks = {"matrix": HAPS, "NaN": np.full((9, 4, 4), np.nan), "text": "x", "wide": [[[1, 2]]]}
    stacks |= {"None": None, "empty": np.zeros((0, 2, 2)), "number": 3, "texts": [[["1"]]]}
    stacks |= {"infinite": np.full((9, 4, 4), np.inf), "complex": np.full((9, 4, 4), 1j)}
    stacks |= {"objects": np.full((9, 4, 4), None)}
    add("coancestry_groups", "lengths", stacks, ...)
    few = {"-1": -HAPS, "one": HAPS[:1]}
    places = POS[: HAPS.shape[1]]
    add("sweep_scores", "haplotypes", ALLELES | few, ..., PLACES, places)
    add("sweep_scores", "centimorgans", MAPS, HAPS, ..., places)
    add("sweep_scores", "positions", POSITIONS, HAPS, PLACES, ...)
    add("sweep_scores", "threads", THREADS, HAPS, PLACES, places, threads=...)
    add("xp_ehh", "first", ALLELES | few, ..., HAPS, PLACES, places)
    add("xp_ehh", "second", ALLELES | few | {"narrow": HAPS[:, 1:]}, HAPS, ..., PLACES, places)
    add("xp_ehh", "centimorgans", MAPS, HAPS, HAPS, ..., places)
    add("xp_ehh", "positions", POSITIONS, HAPS, HAPS, PLACES, ...)
    add("xp_ehh", "threads", THREADS, HAPS, HAPS, PLACES, places, threads=...)
    add("garud_h", "haplotypes", ALLELES | few, ...)
    for name in ("window", "step"):
        add("garud_h", name, WHOLE | {"0": 0}, HAPS, **{name: ...})
    numbers = {"None": None, "text": "abc", "texts": ["1", "2"], "matrix": [[0.5]], "number": 1}
    numbers |= {"objects": [None, 0.5], "complex": [1j, 0.5], "infinite": [np.inf, 0.5]}
    add("standardised_scores", "scores", numbers, ...)
    del numbers["None"]
    numbers |= {"short": [0.5], "NaN": [np.nan, 0.5], "1.5": [1.5, 0.5]}
    add("standardised_scores", "frequency", numbers, [0.5, 1.5], ...)
    for function in ("fermat_weights", "shortest_paths"):
        matrices = dict(DISTANCES)
        if function == "fermat_weights":  # of any matrix
            for name in ("not symmetric", "not square", "diagonal", "alone"):
                del matrices[name]
        add(function, "distances", matrices, ..., 2)
        add(function, "alpha", ALPHAS, D, ...)
    add("shortest_paths", "graph", TEXT, D, graph=...)
    add("shortest_paths", "density", TEXT, D, density=...)
    add("shortest_paths", "number", TEXT, D, number=...)
    add("shortest_paths", "neighbors", WHOLE | {"0": 0}, D, graph="knn", neighbors=...)
    add("shortest_paths", "threads", THREADS, D, threads=...)
    add("insert", "closure", {"None": None, "matrix": D, "text": "x"}, ..., [[1.0] * 5 + [0.0]])
    rows_ = {name: DISTANCES[name] for name in ("NaN", "text", "objects", "one dimension", "None")}
    rows_ |= {"narrow": [[1.0, 0.0]], "diagonal": [[1.0] * 6], "empty": [], "negative": [[-1] * 6]}
    add("insert", "distances", rows_, CLOSURE, ...)
    add("insert", "threads", THREADS, CLOSURE, [[1.0] * 5 + [0.0]], threads=...)
    return rows


def outcome(argument: str, call) -> str:
    """'' where a call is refused as it should be, else what happened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except ValueError as error:
            said = str(error)
        except TypeError as error:
            return f"TypeError: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        else:
            return "returned in silence"
    words = {"genotypes": ("genotypes", "argument"), "scores": ("scores", "PC-Relate")}
    words |= {"founders": ("founders",), "positions": ("positions", "sites")}
    words |= {"contigs": ("contig",), "kinship": ("kinship", "founders")}
    words |= {"distances": ("distance", "argument", "sample")}
    words |= {"populations": ("population",)}
    named = any(word in said for word in words.get(argument, (argument,)))
    one = "\n" not in said and said.endswith(".") and len(said) < 300
    return "" if named and one else f"said: {said}"


CALLS = table()
FUNCTIONS = sorted({row[0] for row in CALLS})


def test_every_public_function_is_in_the_table():
    classes = {"Closure", "CohortSets", "Components", "PackedGenotypes", "__version__"}
    assert set(FUNCTIONS) == set(popdesic.__all__) - classes


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_misuse_is_refused_in_one_sentence(function):
    own = [row[1:] for row in CALLS if row[0] == function]
    assert len(own) > 10
    wrong = {f"{argument}: {name}": outcome(argument, call) for argument, name, call in own}
    wrong = {name: said for name, said in wrong.items() if said}
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
