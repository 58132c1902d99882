"""Pairwise distances: tiles of cohort pairs, assembled into matrices."""
