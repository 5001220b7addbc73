"""Kernels on CUDA.

`runtime` compiles a Triton body ahead of its launch and launches it through the driver; no Triton code runs in a call.
`triton` is what bodies written by hand share; `formulas` makes bodies from formulas; `tiles` has what all tile rules use.
Start with `runtime/triton_launch.py`: a kernel is a list of such launches.
"""
