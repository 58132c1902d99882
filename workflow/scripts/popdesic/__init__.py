"""Popdesic: genotypes of several cohorts to distances, geodesics and maps."""

__version__ = "0.1.0"
