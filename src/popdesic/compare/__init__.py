"""SNP comparisons: LD and pruning, kinship, identity search, mixture analysis."""
