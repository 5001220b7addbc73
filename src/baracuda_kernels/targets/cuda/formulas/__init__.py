"""Triton made from formulas: elementwise kernels and reductions.

`source` writes a formula as a Triton function, from what `operations` says of each operation.
`elementwise`, `reduction` and `rows` (statistics and map of a row in one launch) are the bodies that call it;
`elementwise_tiles` and `reduction_tiles` choose how much one program takes.
Start with `elementwise.py`.
"""
