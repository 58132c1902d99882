"""Fermat geodesics: weights, closures, insertion of newcomers, paths."""
