"""Formulas: scalar arithmetic in Python, traced once into a graph of operations.

`expression` is the graph, `operations` what every backend can compute, `function` how functions are defined, `functions` has them all.
`derive` gives derivatives, `evaluate` runs a formula in NumPy, `fast_path` leaves out what only extreme arguments need.
Start with `expression.py`. Kernels are made from formulas in `targets/cpu/llvm` and `targets/cuda/formulas`.
"""
