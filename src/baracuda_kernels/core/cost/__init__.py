"""What a plan will cost, before it runs.

`traffic` counts the bytes an op has to move, `copies` and `timing` measure how fast this machine moves them.
`shares.json` has what share of that each kernel reached in recorded runs; `make docs` writes it.
Start with `prediction.py`: `predict(plan)` puts them together, and `explain` prints it.
"""
