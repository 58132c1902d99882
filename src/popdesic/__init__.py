"""Popdesic: genotypes of several cohorts to distances, geodesics and maps."""

from .io.version import __version__ as __version__
