"""Whether the axes of the PCA show ancestry, or something else."""

from __future__ import annotations

from .words import join, percent

#: Mean r2 beyond the window of pruning, less that of chance, from which on it is said.
LD_LEFT = 0.1


def axis_warnings(axes: dict) -> list[tuple[str, str]]:
    """Topic and sentences of each warning; `axes` is `embedding/pca.json`."""
    found = []
    if not axes["significant"]:
        found.append(
            (
                "No structure",
                "No principal component is larger than expected by chance in one population "
                f"(Tracy-Widom test at {percent(axes['level'], 0)}). The first two are shown "
                "because a map needs two; do not interpret positions on them.",
            )
        )
    if (left := axes.get("ld_beyond") or 0.0) > LD_LEFT:
        found.append(
            (
                "LD reaches beyond its window",
                f"Sites of the PCA that are just more than {axes['ld_window']} apart still have a "
                f"mean r² of {left:.2f} above chance, as in crosses, inbred lines and after a "
                "recent bottleneck: these sites are not independent, and components may show long "
                "haplotypes.",
            )
        )
    found += [("An axis of one family", _family(one)) for one in axes.get("families", [])]
    for region in axes["regions"]:
        place = f"{region['chrom']}:{region['start'] / 1e6:.1f}-{region['end'] / 1e6:.1f} Mb"
        found.append(
            (
                "An axis of one region",
                f"PC{region['axis']} reflects one region, {place}: "
                f"{percent(region['share'])} of its squared loadings are there and "
                f"{percent(region['expected'])} of the sites. It sorts samples by what they carry "
                "in that region, such as an inversion, and not by ancestry.",
            )
        )
    found += [
        (
            "Cohorts apart",
            f"On PC{shift['axis']} founder cohorts {join(shift['cohorts'])} lie apart within "
            f"the same populations ({join(shift['labels'])}): cohort explains "
            f"{percent(shift['share'])} of the variance there. Either their genotyping differs, "
            "or one label names different populations.",
        )
        for shift in axes["shifts"]
    ]
    return found


def _family(one: dict) -> str:
    """What was found about an axis of one family, and what was done."""
    samples, left_out = one["samples"], one["left_out"]
    share = percent(one["share"], 0)
    if len(samples) == 1:
        return (
            f"PC{one['axis']} was that of one inbred sample, {samples[0]} ({share} of its "
            "variance). The sample no longer defines axes, and was projected onto those of the "
            "others."
        )
    words = "was" if len(left_out) == 1 else "were"
    kept = join([name for name in samples if name not in left_out])
    return (
        f"PC{one['axis']} was that of one family, {join(samples)} ({share} of its variance). They "
        "share long stretches of the genome, although KING-robust does not tell them as "
        "relatives, as happens where samples are inbred. "
        + (f"Of these, {kept} still defines axes; " if kept else "")
        + f"{join(left_out)} {words} projected onto the axes of the others."
    )
