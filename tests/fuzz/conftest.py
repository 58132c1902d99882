"""Fuzzing runs in worker processes; see README.md."""
