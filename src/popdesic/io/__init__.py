"""Input and output: genotype formats, tables, matrices, atomic writes, errors for users."""
