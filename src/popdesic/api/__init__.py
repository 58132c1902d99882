"""Popdesic for people with arrays: the functions that `popdesic` itself offers, without Snakemake.

They call what the workflow's jobs call, so that both give the same numbers.
"""
