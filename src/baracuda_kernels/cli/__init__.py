"""The command line: `baracuda-kernels`, or `python -m baracuda_kernels`.

One module per command, each with `add_to`; `names` finds ops as a user names them, `fields` makes options from a descriptor's fields,
`stopping` says how commands are interrupted.
Start with `ops.py`, the smallest.
"""

from __future__ import annotations

import argparse
import functools

import baracuda_kernels
from baracuda_kernels.cli.stopping import exit_status


def main(arguments: list[str] | None = None) -> int:
    """0 where all went well, 1 where the answer is no, 2 where the question was wrong, 130 where it was interrupted."""
    return exit_status(functools.partial(_run, arguments))


def _run(arguments: list[str] | None) -> int:
    # Imported here, so that an interruption meanwhile is one like any other.
    from baracuda_kernels.cli import accuracy, bench, cache, demo, explain, ops, tune, verify

    parser = argparse.ArgumentParser(
        prog="baracuda-kernels", description="ML ops as plans: which kernel runs and why, and its numerical guarantees."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {baracuda_kernels.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (ops, explain, demo, verify, accuracy, bench, tune, cache):
        module.add_to(commands)
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status
