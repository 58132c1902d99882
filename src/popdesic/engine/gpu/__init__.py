"""The GPU backend: plans, launches and streams for the CUDA sources in `kernels/`."""
