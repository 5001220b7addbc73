"""`baracuda-kernels bench`."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.bench import command


def add_to(commands: Any) -> None:
    parser = commands.add_parser("bench", help="time every op beside a copy and its peers", description=command.__doc__)
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)
