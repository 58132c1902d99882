"""Axes of variation: the founders' principal components, and the samples projected on them."""
