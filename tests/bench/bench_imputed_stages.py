"""Scans and LD of called and of imputed genotypes, against the truth, on 564 people.

    python tests/bench/bench_imputed_stages.py ../shared/data [--sites 1500] [--quick]

Hides called genotypes of the 1000 Genomes, chromosome 22: more of cases than of controls, who are
drawn at random, so that no interaction is real. Then imputes them as `fill_calls` does, and prints
for the truth, the called genotypes and those with missing calls imputed: the share of pairs of
sites, at least 500 kb apart, whose interaction has p below 0.01 and 0.001; r2 of such pairs, and
the error of r2 of pairs within 50 kb. Needs Beagle.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import commandline
import numpy as np
from bench_imputation import VCF, prepare
from scenes.imputed import hide, impute, interaction_p, r2_of

from popdesic.cohort.beagle import Beagle, window_genotypes
from popdesic.cohort.impute import plan_windows
from popdesic.cohort.panel import load_panel
from popdesic.io.genotypes import MISSING

#: Share of the calls of controls and of cases that is hidden.
HIDDEN = (0.02, 0.1)
FAR, NEAR = 500_000, 50_000


def draw_pairs(pos: np.ndarray, n: int, far: bool, seed: int) -> np.ndarray:
    """At most n random pairs of sites at least FAR or at most NEAR bp apart, int64 (n, 2)."""
    pairs = np.random.default_rng(seed).integers(0, len(pos), (40 * n, 2))
    apart = np.abs(pos[pairs[:, 0]] - pos[pairs[:, 1]])
    good = apart >= FAR if far else (apart <= NEAR) & (pairs[:, 0] != pairs[:, 1])
    return pairs[good][:n]


def main() -> None:
    parser = commandline.new_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder of the real data, with kg1_chr22_564")
    parser.add_argument("--sites", type=int, default=1500, help="the first of the panel")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--min-r2", type=float, default=0.8)
    options = commandline.parse(parser, sites=100, pairs=200)
    if not (options.data / VCF).is_file():
        raise SystemExit(f"Error: {options.data / VCF} is not there; name the folder of real data.")
    if not commandline.find_peer("beagle"):
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = prepare(options.data, folder, min_maf=0.05, n_sites=options.sites)
        panel = load_panel(paths["panel_path"])[0]
        window = plan_windows(panel)[0][0]
        truth = window_genotypes(paths["raw"], paths["qc_samples"], panel, window)
        case = np.random.default_rng(1).random(truth.shape[1]) < 0.5
        called = hide(truth, case, HIDDEN, seed=2)
        imputed, r2 = impute(called, panel, Beagle(threads=1), folder, options.min_r2)
    # Sites that the data themselves do not call are no truth.
    hidden = (called == MISSING) & (truth != MISSING)
    filled = hidden & (imputed != MISSING)
    either = filled & ((truth > 0) | (imputed > 0))
    print(f"{len(truth)} sites (MAF >= 0.05), {truth.shape[1]} people, {case.sum()} of them cases")
    print(
        f"r2 of at least {options.min_r2:g}: {(np.nan_to_num(r2) >= options.min_r2).mean():.1%} "
        f"of the sites; {filled.sum() / hidden.sum():.1%} of the hidden genotypes filled"
    )
    print(
        f"concordance of the filled {(imputed == truth)[filled].mean():.4f}, non-reference "
        f"{(imputed == truth)[either].mean():.4f}"
    )
    pos = panel.pos.to_numpy()
    far, near = (draw_pairs(pos, options.pairs, far, seed=3) for far in (True, False))
    kinds = {"truth": truth, "called": called, "imputed": imputed}
    true_near = r2_of(truth, near)
    print("genotypes  p < 0.01  p < 0.001  mean r2 far  mean r2 near  mean |error| near")
    for name, genotypes in kinds.items():
        p, here = interaction_p(genotypes, case, far), r2_of(genotypes, near)
        print(
            f"{name:9s}  {(p < 0.01).mean():8.4f}  {(p < 0.001).mean():9.5f}  "
            f"{np.nanmean(r2_of(genotypes, far)):11.5f}  {np.nanmean(here):12.4f}  "
            f"{np.nanmean(np.abs(here - true_near)):17.5f}"
        )


if __name__ == "__main__":
    main()
