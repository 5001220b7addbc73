"""Typed errors. Each carries its reasons; each message names the plan, the operand, what was got and what was wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from baracuda_kernels.core.reason import ABOUT_AXES, ABOUT_TYPES, Reason, Severity


class Error(Exception):
    """Base of everything the library raises on purpose."""

    def __init__(self, subject: str, reasons: Iterable[Reason] = ()) -> None:
        self.subject = subject
        self.reasons = tuple(reasons)

    def __str__(self) -> str:
        if not self.reasons:
            return self.subject
        if len(self.reasons) == 1:
            return f"{self.subject}: {self.reasons[0]}"
        return "\n  - ".join([f"{self.subject}:", *map(str, self.reasons)])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


def _rebuild(cls: type[Error], state: dict[str, object]) -> Error:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    return error


class InvalidProblem(Error, ValueError, RuntimeError):
    """A descriptor or a set of args that is invalid: a ValueError as in NumPy, a RuntimeError as in PyTorch."""


class InvalidType(InvalidProblem, TypeError):
    """What is invalid is the type of an argument, or which arguments there are."""


class InvalidAxis(InvalidProblem, IndexError):
    """What is invalid is an axis that the shape does not have, or that is empty."""


class Unsupported(Error, NotImplementedError):
    """A valid problem that no kernel here supports. `candidates` maps each kernel's name to its reasons."""

    def __init__(
        self, subject: str, reasons: Iterable[Reason] = (), candidates: dict[str, tuple[Reason, ...]] | None = None
    ) -> None:
        super().__init__(subject, reasons)
        self.candidates = candidates or {}

    def __str__(self) -> str:
        if not self.candidates:
            return super().__str__()
        lines = [f"{self.subject}: no kernel serves this problem here"]
        for name, reasons in self.candidates.items():
            lines += [f"  {reason}" if reason.where == name else f"  {name}: {reason}" for reason in reasons]
        return "\n".join(lines)


class InvalidWisdom(Error, ValueError):
    """A file of measured times that is corrupt or malicious. Nothing of it was used."""


class MisalignedOperand(Error, ValueError):
    """An operand whose address or strides are not multiples of the size of its dtype."""


class _TooSmall(Error, ValueError):
    unit = ""

    def __init__(self, needed: int, got: int, subject: str = "", reasons: Iterable[Reason] = ()) -> None:
        super().__init__(subject, reasons)
        self.needed = needed
        self.got = got

    def __str__(self) -> str:
        text = super().__str__() if self.reasons else f"{self.subject or type(self).__name__}: got {self.got} {self.unit}"
        return f"{text}, needed {self.needed} {self.unit}"


class WorkspaceTooSmall(_TooSmall):
    """`needed` and `got` in bytes."""

    unit = "bytes"


class BufferTooSmall(_TooSmall):
    """`needed` and `got` in elements."""

    unit = "elements"


class KernelInternal(Error, RuntimeError):
    """The backend failed; the cause is chained."""


@contextlib.contextmanager
def typed(what_failed: str) -> Iterator[None]:
    """Turns whatever a backend raises within into a `KernelInternal`."""
    try:
        yield
    except Error:
        raise
    except Exception as cause:
        raise KernelInternal(f"{what_failed}: {cause}") from cause


def rejection(subject: str, reasons: Iterable[Reason]) -> Error:
    """The error for a non-empty list of reasons: the most severe one decides its class, and it carries all."""
    reasons = tuple(reasons)
    order = list(Severity)
    worst = min(reasons, key=lambda reason: order.index(reason.code.severity))
    if worst.code.severity is Severity.BUFFER:
        assert isinstance(worst.wanted, int) and isinstance(worst.got, int)
        return BufferTooSmall(worst.wanted, worst.got, subject, reasons)
    kinds = ((ABOUT_AXES, InvalidAxis), (ABOUT_TYPES, InvalidType))
    invalid = next((kind for codes, kind in kinds if worst.code in codes), InvalidProblem)
    classes = {Severity.INVALID: invalid, Severity.MISALIGNED: MisalignedOperand, Severity.UNSUPPORTED: Unsupported}
    return classes[worst.code.severity](subject, reasons)
