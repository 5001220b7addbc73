"""The command line: `baracuda-kernels`, or `python -m baracuda_kernels`."""

from __future__ import annotations

import argparse

import baracuda_kernels
from baracuda_kernels.cli import accuracy, bench, cache, demo, explain, ops, tune, verify

SUBCOMMANDS = (ops, explain, demo, verify, accuracy, bench, tune, cache)


def main(arguments: list[str] | None = None) -> int:
    """0 where all went well, 1 where the answer is no, 2 where the question was wrong."""
    parser = argparse.ArgumentParser(
        prog="baracuda-kernels", description="ML ops as plans: which kernel runs and why, and what its numbers are worth."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {baracuda_kernels.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in SUBCOMMANDS:
        module.add_to(commands)
    options = parser.parse_args(arguments)
    status: int = options.run(options)
    return status
