"""Sizes at which a study is computed in another way. Rules and stages read them here alone.

| name | value | unit | what changes there |
|---|--:|---|---|
| `MOST_DENSE` | 1 000 | samples that define axes | their matrix of all pairs, above it passes |
| `MOST_MATRIX` | 10 000 | samples that define axes | a matrix where missing genotypes ask for it |
| `MOST_EXACT` | 5 000 | samples that define axes | others by relationships, above it by weights |
| `FEW_RELATED` | 2 000 | samples | PC-Relate on a CPU, above it on a GPU |
| `MOST_JOINED` | 2 000 | samples | one job draws all maps, one finds communities |
| `MOST_EXPORTED` | 5 000 | samples | distances as text, by default |
| `ONE_JOB_SAMPLES` | 5 000 | samples | on Slurm the whole study is one job |
| `SPREAD_LEAST` | 16 384 | samples | from here several GPUs share a closure |
| `DENSE_LIMIT` | 30 000 | samples | matrices of all pairs, above it nearest samples |
| `MOST_CLOSED` | 100 000 | samples | paths of all pairs, above it approximate ones |
| `BLOCK_MODEL_LIMIT` | 100 000 | samples | the block model, above it none |
| `SMALL_COHORT` | 50 | samples of a cohort | below it many new cohorts are read as batches |
| `MANY_COHORTS` | 16 | small cohorts | up to so many that are new are read one by one |
| `BATCH_SAMPLES` | 500 | samples of a batch | at most so many are read together |
| `MANY_POINTS` | 20 000 | points of all UMAPs of a job | laid out on a CPU, above it on a GPU |

`tests/unit/core/test_limits.py` compares the table with the values.
"""

from __future__ import annotations

#: Samples that define the axes of the PCA up to which their matrix of all pairs is made. CPU-s of
#: passes and matrix, axes and noise: 3.8 and 10.5 for 1 000 people x 20 000 sites, 8.4 and 32.4 for
#: 2 000; 9.4 and 31.4 for 1 500 x 100 000. Of fewer people, noise that takes all its rounds turns
#: this round: 23.6 and 9.2 for 600 x 100 000. A GPU makes the passes, if there is one: the stage
#: takes it 1.7 s for 1 100 x 20 000 and 2.0 for 1 600 x 100 000, 8 threads 5.4 and 9.5.
MOST_DENSE = 1_000
#: Samples of which a matrix is made where missing genotypes ask for it (`components.large_pca`).
MOST_MATRIX = 10_000
#: Samples that define axes up to which others are placed by float64 relationships to them, which
#: took 10 s beside 8 000 at 500 000 sites and 89 s beside 30 000.
MOST_EXACT = 5_000
#: Samples up to which PC-Relate is done on a CPU before a GPU has started.
FEW_RELATED = 2_000
#: Samples up to which one job makes all maps and one finds communities. In larger studies each job
#: makes what it has the input of, so that some results do not wait for the last closure.
MOST_JOINED = 2_000
#: Samples up to which distances are written as text by default: 25 million numbers.
MOST_EXPORTED = 5_000
#: A study of at most so many samples (and core hours, `study.resources`) is small: on Slurm
#: `popdesic run` submits it as one job.
ONE_JOB_SAMPLES = 5_000
#: Fewest points whose shortest paths several devices find: two were measured to be 1.9 times as
#: fast as one for so many; fewer were not measured (`tests/bench/bench_spread_gpu.py`).
SPREAD_LEAST = 16_384
#: Samples up to which a study has matrices of all pairs, with `distance.dense_limit: auto`: at
#: 30 000 the results take 33 GB (`study.disk`), and the closure's job 50 GB of memory.
DENSE_LIMIT = 30_000
#: Samples up to which geodesics of the complete graph are exact; the closure of more would take
#: hours of a GPU.
MOST_CLOSED = 100_000
#: Most samples of the block model, which takes 10 ms a sample and fit.
BLOCK_MODEL_LIMIT = 100_000
#: Cohorts of fewer samples are small. A cohort costs some six jobs and 60 files, and a tile of two
#: cohorts 12 ms, however few samples they have.
SMALL_COHORT = 50
#: Small cohorts up to which each is read by itself, as few cohorts always were.
MANY_COHORTS = 16
#: Samples of a batch of small cohorts at most: a batch is decoded again when one of its cohorts
#: leaves the sheet.
BATCH_SAMPLES = 500
#: Points of all UMAPs of a job above which they are laid out on a GPU. Six maps of 8 000 points
#: take 3.5 s of eight threads, and 0.8 s with a GPU, of which its driver takes 0.4 to start.
MANY_POINTS = 20_000
