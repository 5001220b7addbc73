"""The frozen statement of a problem, and the small rules that descriptors are checked with.

A descriptor is a frozen dataclass of plain data. Its annotations say what each field may be; `check` yields a reason for
everything else that is nonsense. Both run when it is constructed, so a descriptor that exists makes sense.
"""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from enum import Enum
from typing import Any, ClassVar, Self

from baracuda_kernels.core.bounded import Once
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.identity import identity
from baracuda_kernels.core.json_values import number, plain
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = [
    "SYMBOLS", "Descriptor", "InBatches", "Numbers", "OnElements", "Shape", "axis_in_range", "extents_not_negative", "finite",
    "rank_at_least",
]  # fmt: skip

Numbers = tuple[float, ...]
SYMBOLS: set[type] = set()  # what tracers write for ints that are not known yet; descriptors keep them as they are


@dataclass(frozen=True)
class Descriptor:
    """Base of all descriptors. Subclasses are `@dataclass(frozen=True)` and override `check`."""

    _readers: ClassVar[dict[type, dict[str, Callable[[Any], Any]]]] = {}

    def __init_subclass__(cls) -> None:
        # Before `dataclass` would give it its own, for which 0.0 and -0.0 are the same problem.
        cls.__eq__, cls.__hash__ = Descriptor.__eq__, Descriptor.__hash__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        reasons = []
        for name, read in self._field_readers().items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, read(value))
            except _WrongType as wrong:
                reasons.append(Reason(ReasonCode.WRONG_TYPE, name, repr(value), wrong.wanted))
        # Rules may rely on fields of the right type.
        reasons = reasons or list(self.check())
        if reasons:
            raise rejection(type(self).__name__, reasons)

    @Once
    def _identity(self) -> tuple[Any, ...]:
        return tuple(identity(getattr(self, field.name)) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and self._identity == other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = (f"{name}={value.name if isinstance(value, Enum) else value}" for name, value in values.items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def plain(self) -> dict[str, Any]:
        """The fields as plain data, which JSON can hold."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> Self:
        """The descriptor from the result of `plain`. Raises `InvalidProblem` for anything else."""
        hints = typing.get_type_hints(cls)
        known = [field.name for field in fields(cls)]
        reasons = [
            Reason(ReasonCode.UNKNOWN_FIELD, str(name), value, " or ".join(known))
            for name, value in values.items()
            if name not in known
        ]
        required = [field.name for field in fields(cls) if field.default is MISSING]
        reasons += [Reason(ReasonCode.UNKNOWN_FIELD, name, "nothing", "a value") for name in required if name not in values]
        if reasons:
            raise rejection(cls.__name__, reasons)
        return cls(**{name: _member(hints[name], value) for name, value in values.items()})

    def check(self) -> Iterator[Reason]:
        """Yields a reason for each thing that is invalid about this problem."""
        yield from ()

    def repeated(self, count: int) -> Self | None:
        """So many such problems as one, in which each is computed as it is alone; None where there is none.

        They follow each other along the first axis of every operand: a new one, or one that is so many times as long. All of them share
        an operand whose shape is the same as before.
        """
        return None

    @classmethod
    def _field_readers(cls) -> dict[str, Callable[[Any], Any]]:
        readers = cls._readers.get(cls)
        if readers is None:
            hints = typing.get_type_hints(cls)
            readers = cls._readers[cls] = {field.name: _reader(hints[field.name]) for field in fields(cls)}
        return readers


class OnElements(Descriptor):
    """Mixin: every element of a tensor of `shape` is computed independently."""

    def repeated(self: Any, count: int) -> Any:
        return replace(self, shape=(count, *self.shape))


class InBatches(Descriptor):
    """Mixin: the `batch_size` entries along the first axis are computed independently."""

    def repeated(self: Any, count: int) -> Any:
        return replace(self, batch_size=count * self.batch_size)


# --- fields: what may stand there, and the plain form it is kept in -----------------------------------------------------


class _WrongType(Exception):
    def __init__(self, wanted: str) -> None:
        self.wanted = wanted


def _read_int(value: Any) -> int:
    if isinstance(value, bool):
        raise _WrongType("an int")
    if type(value) in SYMBOLS:
        return value  # type: ignore[no-any-return] # it behaves like one
    try:
        return operator.index(value)
    except TypeError:
        raise _WrongType("an int") from None


def _read_shape(value: Any) -> Shape:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _WrongType("a sequence of ints")
    try:
        return tuple(_read_int(extent) for extent in value)
    except _WrongType:
        raise _WrongType("a sequence of ints") from None


def _read_float(value: Any) -> float:
    if isinstance(value, bool | str):
        raise _WrongType("a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _WrongType("a number") from None


def _read_numbers(value: Any) -> Numbers:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise _WrongType("a sequence of numbers")
    try:
        return tuple(_read_float(number) for number in value)
    except _WrongType:
        raise _WrongType("a sequence of numbers") from None


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _WrongType("a text")
    return value


def _read_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongType("a bool")
    return value


def _enum_reader(kind: type[Enum]) -> Callable[[Any], Enum]:
    def read(value: Any) -> Enum:
        if not isinstance(value, kind):
            raise _WrongType(f"one of {', '.join(f'{kind.__name__}.{member.name}' for member in kind)}")
        return value

    return read


def _member(hint: Any, value: Any) -> Any:
    """The member of an enum that has this value, or the number of this name; everything else is as it is, for the reader to judge."""
    kinds = hint.__args__ if isinstance(hint, types.UnionType) else (hint,)
    if float in kinds or Numbers in kinds:
        return number(value)
    members = [member for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum) for member in kind]
    return next((member for member in members if member.value == value), value)


def _reader(hint: Any) -> Callable[[Any], Any]:
    if isinstance(hint, types.UnionType) and types.NoneType in hint.__args__:
        (inner,) = (kind for kind in hint.__args__ if kind is not types.NoneType)
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_reader(hint)
    return {
        int: _read_int,
        float: _read_float,
        bool: _read_bool,
        str: _read_text,
        Shape: _read_shape,
        Numbers: _read_numbers,
    }[hint]


# --- rules ---------------------------------------------------------------------------------------------------------------


def extents_not_negative(**extents: int | Shape) -> Iterator[Reason]:
    for name, extent in extents.items():
        if any(each < 0 for each in (extent if isinstance(extent, tuple) else (extent,))):
            yield Reason(ReasonCode.NEGATIVE_EXTENT, name, extent, "extents of at least 0")


def rank_at_least(name: str, shape: Shape, least: int) -> Iterator[Reason]:
    if len(shape) < least:
        yield Reason(ReasonCode.RANK, name, f"rank {len(shape)}", f"a rank of at least {least}")


def axis_in_range(name: str, axis: int, shape: Shape) -> Iterator[Reason]:
    if not 0 <= axis < len(shape):
        yield Reason(ReasonCode.AXIS_OUT_OF_RANGE, name, axis, f"an axis of a rank-{len(shape)} shape, 0 <= axis < {len(shape)}")


def finite(**numbers: float) -> Iterator[Reason]:
    for name, value in numbers.items():
        if not math.isfinite(value):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, value, "a finite number")


def element_of(descriptor: Descriptor) -> ElementKind:
    """The main dtype of the problem; every descriptor has one."""
    element = getattr(descriptor, "element")  # noqa: B009 - declared by subclasses
    assert isinstance(element, ElementKind)
    return element
