"""Names of the sums of `population.allele_sums_cpu`, for stages that start without numba."""

#: Sums of a pair of populations in a block, last axis of `pair_sums`.
PAIR_SUMS = (
    *("sites", "f2", "d", "wc_sites", "a", "b", "c", "differences", "pairs"),
    *("masked_d",),
)
#: Sums of one population in a block, last axis of `own_sums`.
OWN_SUMS = (
    *("sites", "called", "ho_sites", "ho", "he", "alt", "polymorphic", "masked_he", "he_diploid"),
)
