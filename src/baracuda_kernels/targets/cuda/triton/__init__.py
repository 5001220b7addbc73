"""What Triton bodies written by hand share.

`indexing` turns the number of a row into its offset; `maths` has functions that the interpreter has too; `products` multiplies matrices;
`packing` keeps 16-bit floats two to a register; `thread_reduction` reduces within a thread.
Start with `indexing.py`; ops/softmax/triton.py shows a body that uses it.
"""
