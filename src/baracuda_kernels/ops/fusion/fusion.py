"""A formula of the caller's as one op: whatever it is made of, every operand is read once and the result written once."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random
from typing import Any, ClassVar

from baracuda_kernels.core.args import Args, Operand, read, write
from baracuda_kernels.core.cases import Cases, Part, places
from baracuda_kernels.core.descriptor import Numbers, OnElements, Shape, extents_not_negative
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.formula.expression import Expr, Program, read_by
from baracuda_kernels.formula.operations import OPERATIONS
from baracuda_kernels.ops.fusion.tracing import Trace, backward_problem, forward_problem

__all__ = [
    "MOST_OPERANDS",
    "FusedArgs",
    "FusedBackwardArgs",
    "FusedBackwardDescriptor",
    "FusedBackwardPlan",
    "FusedDescriptor",
    "FusedPlan",
    "FusionKind",
]

MOST_OPERANDS = 8
NAMES = tuple(f"input{place}" for place in range(MOST_OPERANDS))


class FusionKind(Enum):
    FUSED = "fused"


@dataclass(frozen=True)
class FusedDescriptor(OnElements):
    """`formula` is a program as `Program.text` writes it: `fuse` makes them. `numbers` are its parameters, which are given with the launch.
    All operands have `shape`; a broadcast one has strides of 0."""

    HAS_UPSTREAM: ClassVar[bool] = False

    formula: str
    shape: Shape
    element: ElementKind
    numbers: Numbers = ()

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)
        wanted = f"a program of at most {MOST_OPERANDS} operands of {self.element}"
        try:
            program = Program.read(self.formula)
        except (ValueError, IndexError, KeyError, TypeError):
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "formula", self.formula, wanted)
            return
        unknown = {each.operation for each in program.order} - {*OPERATIONS, "input", "parameter", "constant"}
        is_whole = bool(program.results) and len(program.results) == len(program.outputs)
        operands = len(program.inputs) - self.HAS_UPSTREAM
        if unknown or not is_whole or not 0 < operands <= MOST_OPERANDS or set(program.inputs) != {self.element}:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "formula", self.formula, wanted)
        if len(self.numbers) != program.parameters:
            wanted = f"{program.parameters}, one for each parameter of the formula"
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "numbers", f"{len(self.numbers)} numbers", wanted)

    @property
    def program(self) -> Program:
        return Program.read(self.formula)

    @property
    def operands(self) -> int:
        return len(self.program.inputs) - self.HAS_UPSTREAM

    @property
    def result_element(self) -> ElementKind:
        return self.program.outputs[0]


@dataclass(frozen=True)
class FusedBackwardDescriptor(FusedDescriptor):
    """The gradients of a formula: the program's first operand is the gradient of the result."""

    HAS_UPSTREAM = True


def _has(place: int) -> property:
    return property(lambda self: place < self.operands)


for _place in range(MOST_OPERANDS):
    setattr(FusedDescriptor, f"has_input{_place}", _has(_place))


def _inputs() -> dict[str, Any]:
    return {
        name: read("shape", f"operand {place}", present=f"has_input{place}", broadcasts=True) for place, name in enumerate(NAMES)
    }


def _gradients() -> dict[str, Any]:
    return {
        f"d_{name}": write("shape", f"the gradient of operand {place}", present=f"has_input{place}", may_be=("d_result", *NAMES))
        for place, name in enumerate(NAMES)
    }


FusedArgs: Any = type(
    "FusedArgs",
    (Args,),
    _inputs() | {"result": write("shape", "the result", element="result_element", may_be=NAMES), "__module__": __name__},
)
FusedBackwardArgs: Any = type(
    "FusedBackwardArgs",
    (Args,),
    {"d_result": read("shape", "the gradient of the result", broadcasts=True)}
    | _inputs()
    | _gradients()
    | {"__module__": __name__},
)


def as_written(descriptor: FusedDescriptor) -> PrecisionGuarantee:
    """Every result depends on its own operands alone, by the operations of the formula."""
    computed = [each.element for each in descriptor.program.order if each.operation != "parameter"]
    widest = max((element for element in computed if element.is_float), key=lambda element: element.size)
    return PrecisionGuarantee(MathPrecision(widest.value), widest, True, True, True)


def _kernels(name: str) -> tuple[Kernel, ...]:
    limits = (rank_at_most("shape", 8),)
    return (
        Kernel(f"llvm.{name}", BackendKind.NUMBA, "llvm:fused", as_written, FLOATS, limits),
        Kernel(f"triton.{name}", BackendKind.TRITON, "triton:fused", as_written, FLOATS, limits),
    )


def evaluated(descriptor: FusedDescriptor, **operands: Any) -> Any:
    """The program in NumPy, operation by operation."""
    import numpy

    from baracuda_kernels.formula.evaluate import evaluate

    program = descriptor.program
    dtype = numpy.float64 if descriptor.element is ElementKind.F64 else numpy.float32
    inputs = [values.astype(dtype) for values in operands.values() if values is not None]
    results = evaluate(program.results, inputs, descriptor.numbers)
    wide = [result.astype(numpy.int64 if result.dtype.kind == "b" else numpy.float64) for result in results]
    return wide[0] if len(wide) == 1 else tuple(wide)


# --- what it is tested and timed on ------------------------------------------------------------------------------------------------


def _chain(x: Expr, y: Expr) -> Expr:
    """Five operations that would be five kernels."""
    return (x * y + 1.0) * x - y


def _choice(x: Expr, y: Expr, z: Expr) -> Expr:
    from baracuda_kernels.formula.operations import sqrt, where

    return where(x < y, sqrt(y * y + 1.0), x) / (z * z + 1.0)


EXAMPLES = ((_chain, 2), (_choice, 3), (lambda x: x * x, 1))
CORNERS: tuple[Shape, ...] = ((31, 33), (), (5, 0, 3), (70_001,), (2, 1, 3, 1, 2, 1, 5, 2))


@functools.cache
def _example(number: int, element: ElementKind, backward: bool) -> tuple[str, Numbers]:
    formula, operands = EXAMPLES[number]
    return (backward_problem if backward else forward_problem)(*Trace.of(formula, operands, element))


class FusedCases(Cases[Any]):
    def problem(self, number: int, shape: Shape, element: ElementKind) -> FusedDescriptor:
        formula, numbers = _example(number, element, self.descriptor.HAS_UPSTREAM)
        made: FusedDescriptor = self.descriptor(formula, shape, element, numbers)
        return made

    def corners(self, element: ElementKind) -> Iterator[FusedDescriptor]:
        for number in range(2 if element is ElementKind.F32 else 1):
            for shape in CORNERS:
                yield self.problem(number, shape, element)

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        return read_by(descriptor.program, super().bytes_read(descriptor, operands))

    def draw(self, random: Random, element: ElementKind) -> FusedDescriptor:
        shape = tuple(random.choice((0, 1, 2, 3, 5, 16, 17, 31)) for _ in range(random.randint(0, 4)))
        return self.problem(random.randrange(len(EXAMPLES)), shape, element)

    def showcase(self) -> Iterator[FusedDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            yield self.problem(0, (4096, 4096), element)

    def cuda_showcase(self) -> Iterator[FusedDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            yield self.problem(0, (16384, 8192), element)

    def from_options(self, options: dict[str, Any]) -> FusedDescriptor:
        element = options.get("element", ElementKind.F32)
        usual: dict[str, Any] = {"shape": (4096, 4096), "element": element}
        if "formula" not in options:
            usual["formula"], usual["numbers"] = _example(0, element, self.descriptor.HAS_UPSTREAM)
        made: FusedDescriptor = self.descriptor(**usual | options)
        return made

    def parts(self, descriptor: FusedDescriptor) -> Iterator[Part]:
        """What lies at one place of the first axis."""

        def take(name: str, values: Any, place: int) -> Any:
            return values[place]

        for place in places(descriptor.shape[0]) if descriptor.shape else ():
            yield Part(replace(descriptor, shape=descriptor.shape[1:]), partial(take, place=place))

    def flops(self, descriptor: FusedDescriptor) -> int:
        return math.prod(descriptor.shape) * len(descriptor.program.order)

    def summed_extent(self, descriptor: FusedDescriptor) -> int:
        return 1


class FusedPlan(Plan[FusedDescriptor, FusedArgs]):
    """A formula, elementwise."""

    category, op = OpCategory.UNARY_ELEMENTWISE, FusionKind.FUSED
    reference = staticmethod(evaluated)
    cases = FusedCases(FusedDescriptor)
    kernels = _kernels("fused")


class FusedBackwardPlan(Plan[FusedBackwardDescriptor, FusedBackwardArgs]):
    """The gradients of a formula."""

    category, op = OpCategory.UNARY_ELEMENTWISE, FusionKind.FUSED
    reference = staticmethod(evaluated)
    cases = FusedCases(FusedBackwardDescriptor)
    kernels = _kernels("fused_backward")
