# Geography: isolation by distance, barriers and a map, if the sample sheet has coordinates.
#
# needs   results/distance/squared.npy called.npy samples.tsv, the sample sheet; if they are made,
#         results/communities/partition.tsv and the tiles of close relatives
# gives   results/geography/places.tsv       places with their numbers of samples
#         results/geography/edges.tsv        neighbouring places, barriers and corridors
#         results/geography/pairs.tsv        both distances of every two places
#         results/geography/isolation.json   isolation by distance
#         results/figures/geography_map.*, isolation.*, barriers.*

from popdesic.geography.coordinates import PERMUTATIONS as PERMUTATIONS_OF_PLACES, PLANE, SPHERE

GEOGRAPHY_FIGURES = figures_by("measure_geography")
#: Partition that colours places and divides pairs, if it is made.
PLACE_PARTITION = ["results/communities/partition.tsv"] if COMMUNITY_METHODS else []
#: Close pairs of people, where another analysis finds them anyway.
PLACE_RELATIVES = expand(ROW_COMPARED, row=COHORTS) if COMPARISONS else []
#: What places and their figures read of the sheet.
PLACE_ROWS = STUDY.digest_of(
    None, "cohort", "population", CONFIG["report"]["color_by"], *SPHERE, *PLANE
)


TARGETS["geography"] = [
    (
        multiext("results/geography/", "places.tsv", "edges.tsv", "pairs.tsv", "isolation.json")
        if PLACED
        else []
    ),
    expand("results/figures/{name}.{end}", name=GEOGRAPHY_FIGURES, end=["svg", "png"]),
]


if PLACED:

    rule measure_geography:
        input:
            matrices=["results/distance/squared.npy", "results/distance/called.npy"],
            samples="results/distance/samples.tsv",
            panel="results/panel/counts.json",
            partition=PLACE_PARTITION,
            rows=PLACE_RELATIVES,
        output:
            places="results/geography/places.tsv",
            edges="results/geography/edges.tsv",
            pairs="results/geography/pairs.tsv",
            summary="results/geography/isolation.json",
            svg=reported("measure_geography"),
            png=expand("results/figures/{name}.png", name=GEOGRAPHY_FIGURES),
        log:
            "logs/measure_geography.log",
        benchmark:
            "benchmarks/measure_geography.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            # Matrices of at most 1 000 places, and blocks of the memory-mapped ones of people.
            mem_mb=memory(900, samples=0.02),
            runtime=minutes(1 + 0.012 * PERMUTATIONS_OF_PLACES, pairs=2e-9),
        params:
            founders=STUDY.founders,
            min_called=CONFIG["distance"]["min_called"],
            seed=CONFIG["seed"],
            color_by=CONFIG["report"]["color_by"],
            sheet=CONFIG["samples"],
            rows=PLACE_ROWS,
            code=code_of("measure_geography"),
        message:
            "Measure isolation by distance and barriers, and draw them"
        script:
            "../scripts/geography/measure_geography.py"
