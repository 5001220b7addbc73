"""LLVM made from formulas: elementwise kernels and reductions, without Numba.

`operations` says what each operation of a formula is in LLVM; `loops` writes loops, tasks and places in operands.
`elementwise` and `reduction` (with `reduction_forms`) write whole functions; `*_launch` share out their work.
Start with `elementwise.py`. Scans write theirs in ops/scan with the same `loops`.
"""
