"""The arrays of each framework: how results are made, and what a framework needs beside that.

One module per framework: `numpy_arrays`, `torch_arrays`, `jax_arrays`, `cupy_arrays`, each with a `FRAMEWORK`; `jax_tracing` serves jit, grad
and vmap. How arrays are read without a copy is in core/arrays.py.
Start with `numpy_arrays.py`, the smallest; a new framework is such a module and a line in core/framework.py.
"""
