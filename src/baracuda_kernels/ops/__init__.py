"""The operations, one package per family: declarations beside kernel bodies.

A package declares an op in `descriptor.py`, its args and plan in a module named like the op, its function in `functions.py`; it has its
`reference.py` in NumPy, its `cases.py`, and kernel bodies in `numba.py`, `llvm.py`, `triton.py` or `vendor.py`.
Ops that are rows of a table (elementwise, reduction, scan) need nothing but the row.
Start with `softmax`, which CONTRIBUTING.md explains step by step.
"""
