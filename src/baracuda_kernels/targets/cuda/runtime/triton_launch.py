"""One launch of a Triton body, as data: its arguments, its constants, and the number of programs.

Floats are given as constants: the interpreter would round them to f32.

The signature, the hints for vector loads and the machine words of a launch are all derived from the arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from baracuda_kernels.core.element import ElementKind

__all__ = ["MOST_REGISTERS", "Argument", "At", "Count", "Lent", "Step", "TritonLaunch", "bits_of", "is_wide"]

VECTOR_BYTES = 16
MOST_REGISTERS = 255  # of a thread; left to itself, the compiler may spill some so that another program fits
_NARROW = (1 << 31) - (1 << 17)  # counts below it can be added to a whole block and still fit 32 bits

_POINTERS = {
    ElementKind.F32: "*fp32", ElementKind.F64: "*fp64", ElementKind.F16: "*fp16", ElementKind.BF16: "*bf16", ElementKind.I8: "*i8",
    ElementKind.I16: "*i16", ElementKind.I32: "*i32", ElementKind.I64: "*i64", ElementKind.U8: "*u8", ElementKind.BOOL: "*i1",
}  # fmt: skip


@dataclass(frozen=True)
class At:
    """The address of the operand at this position among the op's args."""

    operand: int
    element: ElementKind
    is_whole: bool = True  # whether it has to be that of a vector, where there are any


@dataclass(frozen=True)
class Lent:
    """An address within the workspace, `offset` bytes from its start."""

    offset: int
    element: ElementKind


@dataclass(frozen=True)
class Step:
    """A stride in elements, 64 bits wide. `element` is given if vector loads depend on it."""

    value: int
    element: ElementKind | None = None

    @property
    def multiple(self) -> int:
        """What the step must be a multiple of for vector loads."""
        return 1 if self.element is None else VECTOR_BYTES // self.element.size


@dataclass(frozen=True)
class Count(Step):
    """An extent or count: like a step, but in 32 bits where that is enough, including one block more."""


Argument = At | Lent | Step | int | tuple["Argument", ...]


@dataclass(frozen=True)
class TritonLaunch:
    """`body` in `blocks` programs. Arguments are in the order of the body's parameters; constants are by name."""

    body: Any
    blocks: int
    arguments: tuple[Argument, ...]
    constants: Mapping[str, Any] = field(hash=False)
    warps: int = 4
    registers: int | None = None  # the most a thread may have, so that several blocks share a multiprocessor
    may_spill: bool = False  # whether only the slow path spills
    otherwise: TritonLaunch | None = None  # what takes its place where addresses or steps do not allow vector loads
    contracts: bool = True  # whether a product and a sum may be rounded once, as the compiler sees fit

    @property
    def allows_vectors(self) -> bool:
        """Whether there are steps that matter, all whole numbers of vectors; addresses are looked at when it is launched."""
        steps = [leaf for leaf in self.flat() if isinstance(leaf, Step) and leaf.element is not None]
        return bool(steps) and all(step.value % step.multiple == 0 for step in steps)

    def forms(self) -> dict[bool, TritonLaunch]:
        """The call for operands that allow vector loads, if their steps do, and the one for any other."""
        scalar = self if self.otherwise is None else self.otherwise
        return {True: self, False: scalar} if self.allows_vectors else {False: scalar}

    def of(self, operands: Sequence[Argument]) -> TritonLaunch:
        """The call with other operands than those in their order."""

        def changed(argument: Argument) -> Argument:
            if isinstance(argument, tuple):
                return tuple(map(changed, argument))
            if not isinstance(argument, At):
                return argument
            other = operands[argument.operand]
            return other if argument.is_whole or not isinstance(other, At) else replace(other, is_whole=False)

        otherwise = None if self.otherwise is None else self.otherwise.of(operands)
        return replace(self, arguments=tuple(map(changed, self.arguments)), otherwise=otherwise)

    def flat(self) -> list[Argument]:
        return list(_flatten(self.arguments))

    def signature(self) -> dict[str, Any]:
        named = zip(self.body.arg_names, self.arguments, strict=False)
        return {name: _type_of(argument) for name, argument in named} | dict.fromkeys(self.constants, "constexpr")

    def hints(self) -> dict[tuple[int, ...], list[list[object]]]:
        """What the compiler may assume where vector loads are allowed: addresses and steps are multiples of a vector."""
        hints = {}
        for path, argument in _paths(self.arguments):
            if isinstance(argument, Lent) or (isinstance(argument, At) and argument.is_whole):
                hints[path] = [["tt.divisibility", VECTOR_BYTES]]
            elif isinstance(argument, Step) and argument.multiple > 1:
                hints[path] = [["tt.divisibility", argument.multiple]]
        return hints

    def words(self) -> list[int]:
        """The arguments as 64-bit words; addresses are zero until the launch."""
        return [_word(argument) for argument in self.flat()]


def bits_of(numbers: Sequence[float]) -> tuple[Step, ...]:
    """The parameters of formulas, as bodies take them: each as the 64 bits of an f64."""
    return tuple(map(Step, struct.unpack(f"{len(numbers)}q", struct.pack(f"{len(numbers)}d", *numbers))))


def is_wide(count: int) -> bool:
    """Whether offsets among so many elements need more than 32 bits."""
    return abs(count) >= _NARROW


def _flatten(argument: Argument) -> Any:
    return (leaf for _, leaf in _paths(argument)) if isinstance(argument, tuple) else (argument,)


def _paths(arguments: Any, prefix: tuple[int, ...] = ()) -> Any:
    for position, argument in enumerate(arguments):
        path = (*prefix, position)
        if isinstance(argument, tuple):
            yield from _paths(argument, path)
        else:
            yield path, argument


def _type_of(argument: Argument) -> Any:
    if isinstance(argument, tuple):
        return tuple(map(_type_of, argument))
    if isinstance(argument, At | Lent):
        return _POINTERS[argument.element]
    if isinstance(argument, Step) and not isinstance(argument, Count):
        return "i64"
    return "i64" if is_wide(_word(argument)) else "i32"


def _word(argument: Argument) -> int:
    if isinstance(argument, At | Lent):
        return 0
    value = argument.value if isinstance(argument, Step) else argument
    assert isinstance(value, int)
    return value
