"""The public functions of `popdesic`: they work on arrays and do not need Snakemake.

They call the same code as the workflow's jobs, so both give the same numbers.
"""
