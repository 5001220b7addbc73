"""What kernels stand on, by the device they run on. CPU and CUDA know nothing of each other.

`cpu` has the run time, vectors for Numba bodies, and LLVM made from formulas; `cuda` the run time, helpers for Triton bodies, and
Triton made from formulas; `aten` shows operands to PyTorch, for kernels that are PyTorch's own.
Both devices share `geometry`, the axes of operands merged into as few as possible, `operand_views` and `optional_operands`.
Start with `geometry.py`, then with the device of your kernel.
"""
