"""Compiled loops that run on the CPU whatever the backend: they are no part of its protocol.

Genotypes of .bed rows (`genotypes`), tables and pruning of pairs of sites (`site_pairs`), shortest
path trees (`trees`), and what precedes a first call (`first_call`). Stages call them with the
threads of their job.
"""
