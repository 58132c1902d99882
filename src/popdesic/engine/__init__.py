"""The two semiring products that all analyses stand on: one protocol (`backend`), one for CPUs
(`cpu`, numba), one for NVIDIA GPUs (`gpu`, CuPy and `kernels/`); `select` chooses."""
