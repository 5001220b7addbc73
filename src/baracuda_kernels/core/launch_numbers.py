"""Numbers that come with a launch: no plan is selected, compiled or kept for them.

A kernel is given each as the 64 bits of an f64, behind the addresses of its operands. Functions see them as they see arrays: bits in place
of an address, and in place of a layout what calls are told apart by beside the number's type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from baracuda_kernels.core.arrays import Seer

__all__ = ["FLOATS", "IMAG", "NUMBERS", "in_parts", "learn", "word_of", "words_of"]

IMAG = "_imag"  # after the name of a complex number: its imaginary part, which is a number of its own
_AS_FLOAT, _AS_WORD = struct.Struct("d"), struct.Struct("q")
_WIDTHS = (0, 1, 7, 8, 15, 16, 31, 32, 53)  # bits of integers that elements hold, and f64
_width = {bits: next(each for each in _WIDTHS if bits <= each) for bits in range(_WIDTHS[-1] + 1)}


def word_of(number: float) -> int:
    """The bits of a number as a kernel takes them."""
    word: int = _AS_WORD.unpack(_AS_FLOAT.pack(number))[0]
    return word


def words_of(numbers: Iterable[float]) -> tuple[int, ...]:
    return tuple(map(word_of, numbers))


def in_parts(numbers: Mapping[str, complex], wanted: Mapping[str, float]) -> dict[str, float]:
    """The numbers that are wanted, with others in their places."""
    found = dict(wanted)
    for name, number in numbers.items():
        found[name] = number.real
        if f"{name}{IMAG}" in found:
            found[f"{name}{IMAG}"] = number.imag
    return found


def _see_float(value: Any) -> Any:
    return _AS_WORD.unpack(_AS_FLOAT.pack(value))[0], None, False, value


def _see_integer(value: Any) -> Any:
    """Whether an element holds an integer is a question of its sign and its width: what is right for one is right for its like."""
    whole = int(value)
    kind = (whole < 0, _width.get((~whole if whole < 0 else whole).bit_length()))
    return _AS_WORD.unpack(_AS_FLOAT.pack(whole))[0], kind, False, value


FLOATS: dict[type, Seer] = {float: _see_float}
NUMBERS: dict[type, Seer] = {float: _see_float, int: _see_integer, bool: _see_integer}


def learn(kind: type) -> None:
    """Numbers of another type, such as NumPy's, are seen from now on."""
    if issubclass(kind, Integral):
        NUMBERS.setdefault(kind, _see_integer)
    else:
        NUMBERS.setdefault(kind, _see_float)
        FLOATS.setdefault(kind, _see_float)
