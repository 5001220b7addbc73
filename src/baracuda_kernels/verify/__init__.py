"""Does every kernel keep its promises? `baracuda-kernels verify` and the tests ask here.

`trial` runs a kernel on operands in guarded `memory` and compares it with its reference within `bounds`; `promises` has one check for each
line of a guarantee; `wrong_operands` makes what has to be refused. `aot` compiles Triton kernels without a GPU, `machine_code` reads them.
Start with `trial.py`, then `suite.py`, which runs them all.
"""
