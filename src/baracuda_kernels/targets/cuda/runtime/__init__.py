"""From a Triton body to a launch.

`triton_launch` describes a launch: the body, its arguments and constants, the number of programs.
`compile` compiles it, for a device that need not be there; `launcher` makes it a call of the driver.
`interpret` runs the same launches in Triton's interpreter, on a machine without a GPU.
Start with `triton_launch.py`.
"""
