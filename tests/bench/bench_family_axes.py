"""False axes of inbred families whom KING-robust does not tell, and true axes of small groups.

    python tests/bench/bench_family_axes.py [--scenes 100] [--first 1000] [--quick]

One population of 120 strangers with two families of three siblings whose parents are siblings:
every significant axis is false. Without such families, and with four samples of each of two other
populations, no axis may be left out. "axes found" counts those that were significant on the way,
with those that were left out as one family's; "shown" those in the end. Thresholds were chosen on
seeds below 100.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import commandline
import numpy as np
from scenes.relatives import define_axes_of, draw_inbred, draw_outliers
from timing import print_table


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--first", type=int, default=1_000)
    parser.add_argument("--sites", type=int, default=8_000)
    options = commandline.parse(parser, scenes=2, sites=3_000)
    scenes = {
        "inbred families": lambda seed: draw_inbred(seed, sites=options.sites)[0],
        "one population": lambda seed: draw_inbred(seed, families=0, sites=options.sites)[0],
        "small groups": lambda seed: draw_outliers(seed, sites=options.sites),
    }
    rows = []
    for name, draw in scenes.items():
        found, shown, left, wrong = [], [], [], 0
        for seed in range(options.first, options.first + options.scenes):
            scene = draw(seed)
            with tempfile.TemporaryDirectory() as folder:
                about = define_axes_of(scene, Path(folder))
            families = about["families"]
            found.append(about["significant"] + len(families))
            shown.append(about["significant"])
            left.append(sum(len(one["left_out"]) for one in families))
            strangers = len(scene.kind) - (6 if name == "inbred families" else 0)
            wrong += sum(int(s[1:]) < strangers for one in families for s in one["left_out"])
        with_axes = sum(number > 0 for number in found), sum(number > 0 for number in shown)
        means = [f"{np.mean(x):.2f}" for x in (found, shown, left)]
        rows.append((name, options.scenes, *with_axes, *means, wrong))
    head = ("scene", "scenes", "with axes found", "with axes shown", "axes found", "axes shown")
    print_table("axes of families", (*head, "samples left out", "strangers left out"), rows)


if __name__ == "__main__":
    main()
