"""The two semiring products that all analyses stand on: one protocol (`base`), a backend for CPUs
(`cpu`, numba) and one for NVIDIA GPUs (`gpu`, CuPy and `kernels/`); `select` chooses one."""
