"""From a kernel body to machine code, and to a launch on several threads.

`native` compiles a body once per machine and loads it; `entries` are the C functions by which a launch enters it.
`parallel` shares the tasks of a launch among threads without a say in the result; `placement` keeps helpers off the caller's CPU.
Start with `native.py`, then `parallel.py`.
"""
