"""The CPU backend: numba kernels and the arithmetic around them."""
