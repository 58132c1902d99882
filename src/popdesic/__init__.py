"""Popdesic: genotypes of several cohorts to distances, geodesics and maps."""

__version__ = "0.2.0"
