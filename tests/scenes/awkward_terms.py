"""Terms for tests of the bit-GEMM: those of distances, and some that no analysis needs."""

from __future__ import annotations

from popdesic.distance.any_ploidy import layer_products
from popdesic.engine.terms import SQUARED, SQUARED_IBS0, Product, Terms

#: Sums for linkage disequilibrium. They are not a function of |a - b|, have weights that are not
#: powers of two, and an output that is the same for every pair of complete samples.
LD = Terms(
    ("n", "sum_a", "sum_b", "sum_aa", "sum_bb", "sum_ab", "odd"),
    (
        Product(0, 1, "c", "c"),
        Product(1, 1, "u", "c"),
        Product(1, 1, "v", "c"),
        Product(2, 1, "c", "u"),
        Product(2, 1, "c", "v"),
        Product(3, 1, "u", "c"),
        Product(3, 3, "v", "c"),
        Product(4, 1, "c", "u"),
        Product(4, 3, "c", "v"),
        Product(5, 2, "u", "u"),
        Product(5, 2, "v", "v"),
        Product(5, -1, "e", "e"),
        Product(6, 3, "u", "v"),
        Product(6, 2, "e", "z"),
        Product(6, -5, "h", "u"),
    ),
)
IBS = Terms(
    ("ibs2", "ibs1", "manhattan"),
    (
        Product(0, 1, "z", "z"),
        Product(0, 1, "e", "e"),
        Product(0, 1, "v", "v"),
        Product(1, 1, "e", "c"),
        Product(1, 1, "c", "e"),
        Product(1, -2, "e", "e"),
        Product(2, 2, "z", "v"),
        Product(2, 2, "v", "z"),
        Product(2, 1, "e", "c"),
        Product(2, 1, "c", "e"),
        Product(2, -2, "e", "e"),
    ),
)
#: Of octoploids, with the largest weights of an analysis of even ploidies up to eight.
LAYERS = layer_products(0, 3)
TERMS = {"squared": SQUARED, "squared_ibs0": SQUARED_IBS0, "ld": LD, "ibs": IBS, "layers": LAYERS}
