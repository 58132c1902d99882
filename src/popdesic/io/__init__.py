"""Files in and out: genotype formats, tables, matrices, atomic writing, sentences for users."""
