"""The bench: every op on its showcase problems, beside the copy floor and its peers.

`engine` checks and times one row, `host` what a call costs, `report` prints tables, `roofline` draws, `record` writes JSON.
What an op is timed beside is declared in its `peers.py`; the command is cli/bench.py.
Start with `engine.py`.
"""
