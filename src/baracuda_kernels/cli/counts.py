"""Options that count something."""

from __future__ import annotations

import argparse


def count(text: str) -> int:
    """1 or more, as argparse wants it said."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, wanted 1 or more")
    return int(text)
