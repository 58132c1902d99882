"""Formats of genotypes: VCF, BCF, PLINK 1 and 2, VCF-Zarr, and the rows of sites they share."""
