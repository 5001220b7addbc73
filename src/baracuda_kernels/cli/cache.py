"""`baracuda-kernels cache`: the machine code that is kept on disk for later processes, and `--clear` removes it."""

from __future__ import annotations

import argparse
from typing import Any

from baracuda_kernels.bench.report import console
from baracuda_kernels.core import cache
from baracuda_kernels.core.explanation import bytes_in_words


def add_to(commands: Any) -> None:
    parser = commands.add_parser("cache", help="show or clear the compiled kernels on disk", description=__doc__)
    parser.add_argument("--clear", action="store_true", help="remove them; they are compiled again when they are needed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        place, found = cache.directory(), cache.clear() if options.clear else cache.contents()
    except OSError as refusal:
        console(stderr=True).print(cache.in_words(refusal), markup=False, soft_wrap=True)
        return 1
    kernels = [file for file in found if file.is_code]
    size = bytes_in_words(sum(file.size for file in kernels))
    limit = "" if options.clear else f" of at most {bytes_in_words(cache.most_bytes())}"
    verb = "removed from" if options.clear else "kept in"
    console().print(f"{len(kernels)} compiled kernels {verb} {place}: {size}{limit}", markup=False, soft_wrap=True)
    return 0
