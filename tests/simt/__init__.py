"""The CUDA kernels on a CPU: their sources as C++, with the execution model of CUDA emulated."""
