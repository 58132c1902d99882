"""Haplotypes as mosaics of all haplotypes of a reference (Li and Stephens 2003)."""
