"""What kernel bodies in Numba are written in: sixteen lanes at a time.

`simd` is what bodies import: the lanes' type and arithmetic (`lanes`), loads and stores (`memory`), pairs of vectors (`pairs`).
`vmath` has exp and log of vectors, `columns` sums down columns, `summation_order` the one order in which kernels sum.
`tasks` gives a body its next task, scratch memory, and where its operands are.
Start with `simd.py`; ops/softmax/numba.py shows a body.
"""
