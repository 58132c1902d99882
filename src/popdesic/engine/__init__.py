"""The two semiring products that all analyses stand on: one protocol (`backend`), for CPUs
(`backend_cpu`) and for NVIDIA GPUs (`backend_gpu`, CuPy and `kernels/`); `select` chooses."""
