"""Checking what kernels promise: operands in guarded memory, every layout, errors against the reference."""
