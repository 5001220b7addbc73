"""Bridges to NumPy, PyTorch, JAX and CuPy: their arrays, streams and kernels."""
