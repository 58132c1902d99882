"""Slow, obvious versions of what the package computes, which fast code is compared with."""
