"""Comparisons of samples and of sites: kinship, PC-Relate, identity search, mixture, LD."""
