"""Segments of identity by descent (IBD) between people, from unphased genotypes."""
