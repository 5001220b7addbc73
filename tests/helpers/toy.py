"""A small op that uses what softmax does not: workspace, an optional operand, an output of another shape, broken kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.cases import Cases
from baracuda_kernels.core.descriptor import Descriptor, Shape, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, at_most, exact_order
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef


class ToyKind(Enum):
    COLUMN_SUM = "column_sum"


@dataclass(frozen=True)
class ToyDescriptor(Descriptor):
    """total = sum of the rows of x, plus bias."""

    shape: Shape
    has_bias: bool
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("shape", self.shape, 2)
        yield from extents_not_negative(shape=self.shape)

    @property
    def row(self) -> Shape:
        return self.shape[1:]

    @property
    def rows(self) -> int:
        return self.shape[0]


class ToyArgs(Args):
    x: TensorRef = read("shape", "the rows")
    bias: TensorRef = read("row", "added to the sum", present="has_bias")
    total: TensorMut = write("row", "the sum")


class ToyCases(Cases[ToyDescriptor]):
    def corners(self, element: ElementKind) -> Iterator[ToyDescriptor]:
        yield ToyDescriptor((5, 8), True, element)

    def draw(self, random: Random, element: ElementKind) -> ToyDescriptor:
        return ToyDescriptor((random.randint(0, 5), random.randint(0, 5)), random.random() < 0.5, element)

    def showcase(self) -> Iterator[ToyDescriptor]:
        yield ToyDescriptor((64, 64), True, ElementKind.F32)

    def summed_extent(self, descriptor: ToyDescriptor) -> int:
        return descriptor.rows


def racy(descriptor: Any) -> PrecisionGuarantee:
    return PrecisionGuarantee(MathPrecision.F32, ElementKind.F32, False, False, False)


def room(descriptor: ToyDescriptor) -> int:
    return 8 * max(descriptor.row[0], 1)


class ToyPlan(Plan[ToyDescriptor, ToyArgs]):
    category, op = OpCategory.REDUCTION, ToyKind.COLUMN_SUM
    cases = ToyCases(ToyDescriptor)
    kernels = (
        Kernel("toy.cuda", BackendKind.TRITON, "toy:never", exact_order),
        Kernel("toy.few", BackendKind.NUMBA, "toy:add_up", exact_order, (ElementKind.F32,), (at_most("rows", 4),)),
        Kernel("toy.sum", BackendKind.NUMBA, "toy:add_up", exact_order, (ElementKind.F32,), workspace=room),
        Kernel("toy.racy", BackendKind.ATEN, "toy:add_up", racy, (ElementKind.F32, ElementKind.F64)),
        Kernel("toy.broken", BackendKind.NUMBA, "toy:break_down", racy),
        Kernel("toy.unbuildable", BackendKind.NUMBA, "toy_that_is_not_there:build", racy),
    )

    @staticmethod
    def reference(descriptor: ToyDescriptor, x: Any, bias: Any = 0.0) -> Any:
        return x.sum(axis=0) + bias


def add_up(problem: ToyDescriptor) -> Any:
    from baracuda_kernels.targets.aten import as_torch

    def bind(layouts: Any) -> Any:
        def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
            x, bias, total = as_torch(addresses, layouts)
            total.copy_(x.sum(dim=0))
            if bias is not None:
                total.add_(bias)

        return launch

    return bind


def break_down(problem: ToyDescriptor) -> Any:
    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        raise ZeroDivisionError("the backend broke")

    return lambda layouts: launch
