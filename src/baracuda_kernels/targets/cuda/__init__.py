"""Kernels on CUDA."""
