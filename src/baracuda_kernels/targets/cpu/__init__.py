"""Kernels on the CPU.

`runtime` compiles a body to machine code, keeps it on disk, and launches it on several threads.
`vectors` is what bodies in Numba are written in; `llvm` makes LLVM from formulas, without Numba.
`float16` converts 16-bit floats in LLVM's own language, for both.
Start with `runtime/native.py`: `build` turns a factory of bodies into a C function.
"""
