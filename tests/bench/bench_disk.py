"""Bytes of a finished study by stage, beside what `popdesic plan` forecasts.

python tests/bench/bench_disk.py STUDY [--samples N --sites M --cohorts C]

Also prints the forecast of a larger study with the same configuration (by default 30 000 samples x
500 000 sites in 4 cohorts of PLINK 1 files).
"""

from __future__ import annotations

from pathlib import Path

import commandline
from timing import print_table

from popdesic.study.configuration import read_config
from popdesic.study.content import look_into_files
from popdesic.study.disk import StudySizes, forecast_disk, held_bytes, study_sizes
from popdesic.study.validation import validate_study


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--samples", type=int, default=30_000)
    parser.add_argument("--sites", type=int, default=500_000)
    parser.add_argument("--cohorts", type=int, default=4)
    options = parser.parse_args()
    config, study, _ = validate_study(read_config(options.study), options.study)
    counted = look_into_files(options.study, config, study, study_sizes(options.study, study))
    expected = forecast_disk(config, counted, sparse=study.sparse)
    found = held_bytes(options.study, study.order)
    names = [f"c{k}" for k in range(options.cohorts)]
    sites = dict.fromkeys(names, options.sites)
    samples = dict.fromkeys(names, options.samples // options.cohorts)
    large = StudySizes(samples, sites, options.sites, named=names)
    larger = forecast_disk(config, large, sparse=False)
    rows = [
        (stage, *(of.get(stage, 0.0) / 1e6 for of in (found, expected, larger)))
        for stage in sorted({*found, *expected}, key=lambda stage: -found.get(stage, 0))
    ]
    rows.append(("all", *(sum(of.values()) / 1e6 for of in (found, expected, larger))))
    print_table(
        f"MB: {counted.n_samples} samples x {counted.n_sites} sites, and forecast of "
        f"{options.samples} x {options.sites}",
        ("stage", "written", "forecast", "forecast, large"),
        [(stage, *(f"{value:.4g}" for value in values)) for stage, *values in rows],
    )


if __name__ == "__main__":
    main()
