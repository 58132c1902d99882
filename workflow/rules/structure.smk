# Structure that is fitted to the founders alone: windows of the genome, ancestry proportions.
#
# needs   results/cohorts/{cohort}/genotypes.bed, results/panel/sites.tsv, unrelated.tsv,
#         results/embedding/axes.npz, the sample sheet
# gives   results/population/local_pca.tsv .json         windows by their principal components
#         results/population/ancestry.tsv                proportions of every sample
#         results/population/ancestry_validation.tsv     error of each number of components
#         results/population/ancestry.json               what was fitted, from which seeds
#         results/population/ancestry/model.npz          frequencies of the components
#         results/population/ancestry/cohorts/{cohort}.tsv


if LOCAL_TABLES:

    rule measure_local_structure:
        input:
            genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=STUDY.founders),
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
            # Relatives share long haplotypes, which would be what windows show.
            unrelated=(
                ["results/panel/unrelated.tsv"] if CONFIG["embedding"]["max_kinship"] else []
            ),
        output:
            table=LOCAL_TABLES[0],
            summary=LOCAL_TABLES[1],
        log:
            "logs/measure_local_structure.log",
        benchmark:
            "benchmarks/measure_local_structure.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            # Components of at most 2 000 windows and 1 000 people.
            mem_mb=memory(600, files="panel"),
            runtime=minutes(2, mb=1 / 20),
        params:
            options=dict(
                sites=POPULATION["local"]["sites"],
                x=POPULATION["x"],
                seed=POPULATION["seed"],
            ),
            x_contigs=CONFIG["qc"]["x_contigs"],
            code=code_of("measure_local_structure"),
        message:
            "Compare principal components of windows along the genome"
        script:
            "../scripts/measure_local_structure.py"


if ANCESTRY_TABLES:

    rule fit_ancestry:
        input:
            genotypes=expand("results/cohorts/{cohort}/genotypes.bed", cohort=STUDY.founders),
            panel="results/panel/sites.tsv",
            counts="results/panel/counts.json",
            axes="results/embedding/axes.npz",
        output:
            model="results/population/ancestry/model.npz",
            validation=ANCESTRY_TABLES[1],
            summary=ANCESTRY_TABLES[2],
        log:
            "logs/fit_ancestry.log",
        benchmark:
            "benchmarks/fit_ancestry.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 8
        resources:
            # Genotypes of the founders take four times their file, masks of them as much again, in
            # this process and in eight of fastmixture.
            mem_mb=memory(800, mb=60, files="genotypes"),
            runtime=minutes(5, mb=10, files="genotypes"),
        params:
            options=dict(
                **{key: POPULATION["ancestry"][key] for key in ("components", "folds", "starts")},
                x=POPULATION["x"],
                seed=POPULATION["seed"],
            ),
            # Reruns if fastmixture is installed later, or another version of it.
            version=version_of_fastmixture,
            x_contigs=CONFIG["qc"]["x_contigs"],
            code=code_of("fit_ancestry"),
        message:
            "Fit ancestry components to the unrelated founders"
        script:
            "../scripts/fit_ancestry.py"

    rule project_ancestry:
        input:
            genotypes=multiext("results/cohorts/{cohort}/genotypes", ".bed", ".fam"),
            model="results/population/ancestry/model.npz",
        output:
            "results/population/ancestry/cohorts/{cohort}.tsv",
        log:
            "logs/project_ancestry/{cohort}.log",
        benchmark:
            "benchmarks/project_ancestry/{cohort}.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(500, mb=12),
            runtime=minutes(2, mb=1),
        params:
            column=POPULATION["column"],
            sheet=CONFIG["samples"],
            rows=rows_of_populations,
            code=code_of("project_ancestry"),
        message:
            "Ancestry proportions of {wildcards.cohort}"
        script:
            "../scripts/project_ancestry.py"

    rule join_ancestry:
        input:
            expand("results/population/ancestry/cohorts/{cohort}.tsv", cohort=COHORTS),
        output:
            ANCESTRY_TABLES[0],
        log:
            "logs/join_ancestry.log",
        benchmark:
            "benchmarks/join_ancestry.tsv"
        conda:
            "../../envs/popdesic.yaml"
        threads: 1
        resources:
            mem_mb=memory(300, mb=10),
            runtime=minutes(1),
        params:
            code=code_of("join_ancestry"),
        message:
            "Join ancestry proportions of all cohorts"
        script:
            "../scripts/join_ancestry.py"
