"""Reasons: one closed catalogue, so that a refusal is data for programs and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Which error a reason becomes when it is raised. The first one present wins, in this order."""

    INVALID = "invalid"  # nonsense
    MISALIGNED = "misaligned"
    BUFFER = "buffer"
    UNSUPPORTED = "unsupported"  # sensible, but not served here


class ReasonCode(Enum):
    """A code, its text and its severity."""

    # a descriptor
    WRONG_TYPE = ("has the wrong type", Severity.INVALID)
    NEGATIVE_EXTENT = ("has a negative extent", Severity.INVALID)
    ARGUMENTS = ("does not fit the signature", Severity.INVALID)
    UNKNOWN_FIELD = ("does not match the fields", Severity.INVALID)
    RANK = ("has the wrong rank", Severity.INVALID)
    AXIS_OUT_OF_RANGE = ("is not an axis", Severity.INVALID)
    EMPTY = ("has an axis without elements", Severity.INVALID)
    VALUE_OUT_OF_RANGE = ("is out of range", Severity.INVALID)
    INCONSISTENT = ("does not fit the other fields", Severity.INVALID)
    # an operand
    NOT_AN_ARRAY = ("cannot be seen as an array", Severity.INVALID)
    UNKNOWN_OPERAND = ("is not an operand", Severity.INVALID)
    MISSING_OPERAND = ("is missing", Severity.INVALID)
    UNEXPECTED_OPERAND = ("must be left out", Severity.INVALID)
    SHAPE = ("has the wrong shape", Severity.INVALID)
    ELEMENT = ("has the wrong dtype", Severity.INVALID)
    DEVICE = ("is on the wrong device", Severity.INVALID)
    READ_ONLY = ("is read-only memory", Severity.INVALID)
    SELF_OVERLAP = ("overlaps itself", Severity.INVALID)
    ALIAS = ("overlaps another operand", Severity.INVALID)
    FRAMEWORK = ("belongs to another framework", Severity.INVALID)
    NEEDS_GRADIENT = ("needs a gradient, and none is recorded here", Severity.INVALID)
    STRIDE = ("has a stride this op does not allow", Severity.INVALID)
    BEFORE_BUFFER = ("reaches before the start of its buffer", Severity.INVALID)
    BUFFER = ("reaches past the end of its buffer", Severity.BUFFER)
    MISALIGNED = ("is misaligned", Severity.MISALIGNED)
    # a kernel
    BACKEND_MISSING = ("is not installed", Severity.UNSUPPORTED)
    DEVICE_ABSENT = ("is not there", Severity.UNSUPPORTED)
    OTHER_DEVICE = ("does not run on this device", Severity.UNSUPPORTED)
    ARCHITECTURE = ("needs a newer architecture", Severity.UNSUPPORTED)
    SHARED_MEMORY = ("needs more shared memory than a block can have", Severity.UNSUPPORTED)
    CAPTURE = ("is being captured into a graph, and nothing can be compiled meanwhile", Severity.UNSUPPORTED)
    ELEMENT_NOT_SERVED = ("does not support this dtype", Severity.UNSUPPORTED)
    LIMIT = ("is beyond what this kernel supports", Severity.UNSUPPORTED)
    LAYOUT = ("has a layout this kernel does not support", Severity.UNSUPPORTED)
    # a preference
    NOT_PREFERRED = ("is not the preferred backend", Severity.UNSUPPORTED)
    WORKSPACE_LIMIT = ("needs more workspace than the preference allows", Severity.UNSUPPORTED)
    NOT_DETERMINISTIC = ("is not deterministic", Severity.UNSUPPORTED)
    NOT_BATCH_INVARIANT = ("is not batch-invariant", Severity.UNSUPPORTED)
    REDUCED_PRECISION = ("multiplies in fewer bits than the preference allows", Severity.UNSUPPORTED)
    CANNOT_MEASURE = ("could not be timed here", Severity.UNSUPPORTED)
    # a file
    NOT_WISDOM = ("is not a file of measured times", Severity.INVALID)
    # a candidate that could have run
    LATER_IN_ORDER = ("has lower priority than", Severity.UNSUPPORTED)
    NOT_CLEARLY_FASTER = ("was not clearly faster when measured", Severity.UNSUPPORTED)
    SLOWER = ("was slower when measured", Severity.UNSUPPORTED)

    def __init__(self, says: str, severity: Severity) -> None:
        self.says = says
        self.severity = severity


ABOUT_LAYOUT = (ReasonCode.STRIDE, ReasonCode.LAYOUT, ReasonCode.MISALIGNED)  # what does not hold of a contiguous copy

ABOUT_AXES = (ReasonCode.AXIS_OUT_OF_RANGE, ReasonCode.EMPTY)  # an IndexError in Python
ABOUT_TYPES = (
    ReasonCode.ARGUMENTS,
    ReasonCode.MISSING_OPERAND,
    ReasonCode.NOT_AN_ARRAY,
    ReasonCode.WRONG_TYPE,
)  # a TypeError in Python


@dataclass(frozen=True)
class Reason:
    """A code, where it applies, what was got and what was wanted. The text is derived from them."""

    code: ReasonCode
    where: str
    got: object
    wanted: object

    def __str__(self) -> str:
        if self.code is ReasonCode.LATER_IN_ORDER:
            return f"{self.where} {self.code.says} {self.wanted}"
        return f"{self.where} {self.code.says}: got {self.got}, wanted {self.wanted}"
