"""The vocabulary and the machinery of all ops; it knows none of them.

A call passes function → descriptor → plan → kernel → launch: `function`, `descriptor`, `args`, `plan`, `kernel`.
Memory and devices: `tensor`, `layout`, `device`, `stream`, `workspace`. Refusals: `reason`, `errors`.
Choice among kernels: `preference`, `race`, `wisdom`. What an op is tried and timed on: `cases`, `peers`.
Start with `plan.py`: `Plan.select` chooses a kernel, `Plan.run` launches it.
"""
