"""Softmax and log-softmax: y = exp(x - max) / sum exp(x - max), and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor, Shape, axis_in_range, extents_not_negative, rank_at_least
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, Limit, exact_order, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, LayoutSku, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef


class SoftmaxKind(Enum):
    SOFTMAX = "softmax"
    LOG_SOFTMAX = "log_softmax"
    SPARSEMAX = "sparsemax"
    GUMBEL_SOFTMAX = "gumbel_softmax"


@dataclass(frozen=True)
class SoftmaxDescriptor(Descriptor):
    """Softmax of a tensor of `input_shape` along `softmax_axis`."""

    kind: SoftmaxKind
    input_shape: Shape
    softmax_axis: int
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from rank_at_least("input_shape", self.input_shape, 1)
        yield from extents_not_negative(input_shape=self.input_shape)
        yield from axis_in_range("softmax_axis", self.softmax_axis, self.input_shape)

    @property
    def extent(self) -> int:
        """How many elements are normalised together."""
        return self.input_shape[self.softmax_axis]


@dataclass(frozen=True)
class SoftmaxBackwardDescriptor(SoftmaxDescriptor):
    """The gradient of a softmax. It reads the saved output, never x."""


class SoftmaxArgs(Args):
    x: TensorRef = read("input_shape", "the logits")
    y: TensorMut = write("input_shape", "the probabilities, or their logarithms", may_be=("x",))


class SoftmaxBackwardArgs(Args):
    dy: TensorRef = read("input_shape", "the gradient of the output")
    y: TensorRef = read("input_shape", "the saved forward output")
    dx: TensorMut = write("input_shape", "the gradient of the input", may_be=("dy", "y"))


def aten_order(descriptor: SoftmaxDescriptor) -> PrecisionGuarantee:
    """PyTorch sums a row within one thread; how its columns are grouped depends on how many there are."""
    accumulator = descriptor.element.accumulator
    return PrecisionGuarantee(MathPrecision(accumulator.value), accumulator, True, True, batch_invariant=False)


def kind_is_served(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, SoftmaxDescriptor)
    if descriptor.kind not in (SoftmaxKind.SOFTMAX, SoftmaxKind.LOG_SOFTMAX):
        yield Reason(ReasonCode.LIMIT, "kind", descriptor.kind.name, "SOFTMAX or LOG_SOFTMAX")


LIMITS: tuple[Limit, ...] = (rank_at_most("input_shape", 8), kind_is_served)

CORNERS = (
    # shape, axis: empty, one, odd, prime, past a vector, past a block, rows that outgrow scratch, columns, rank 8
    ((1,), 0), ((0,), 0), ((7,), 0), ((5, 0, 3), 0), ((5, 0, 3), 1), ((64, 1), 1), ((1, 64), 0), ((3, 17), 0), ((3, 17), 1),
    ((2, 1, 13), 2), ((31, 33), 1), ((3, 1009), 1), ((5, 4097), 1), ((2, 70001), 1), ((6, 67, 65), 1), ((3, 300, 130), 1),
    ((300, 7), 0), ((2, 5003, 3), 1), ((1100, 70), 0), ((2, 1, 3, 1, 2, 1, 5, 2), 4), ((2, 3, 1, 2, 2, 1, 5, 2), 7), ((1, 300000), 1),
)  # fmt: skip


class SoftmaxPlan(Plan[SoftmaxDescriptor, SoftmaxArgs]):
    """y = softmax(x)."""

    category, op = OpCategory.SOFTMAX, "kind"
    kernels = (
        Kernel("numba.softmax", BackendKind.NUMBA, "numba:forward", exact_order, limits=LIMITS),
        Kernel("aten.softmax", BackendKind.ATEN, "vendor:forward", aten_order, limits=LIMITS, layout=LayoutSku.CONTIGUOUS),
    )

    @staticmethod
    def reference(descriptor: SoftmaxDescriptor, x: Any) -> Any:
        import numpy

        with numpy.errstate(invalid="ignore", divide="ignore"):
            shifted = x - x.max(axis=descriptor.softmax_axis, keepdims=True, initial=-numpy.inf)
            total = numpy.exp(shifted).sum(axis=descriptor.softmax_axis, keepdims=True)
            return numpy.exp(shifted) / total if descriptor.kind is SoftmaxKind.SOFTMAX else shifted - numpy.log(total)

    @classmethod
    def examples(cls, element: ElementKind) -> Iterator[Descriptor]:
        for kind in (SoftmaxKind.SOFTMAX, SoftmaxKind.LOG_SOFTMAX):
            for shape, axis in CORNERS:
                yield cls.descriptor_type(kind, shape, axis, element)

    @classmethod
    def draw(cls, random: Any, element: ElementKind) -> Descriptor:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(1, 4)))
        kind = random.choice((SoftmaxKind.SOFTMAX, SoftmaxKind.LOG_SOFTMAX))
        return cls.descriptor_type(kind, shape, random.randrange(len(shape)), element)

    @classmethod
    def showcase(cls) -> Iterator[Descriptor]:
        for kind, elements in ((SoftmaxKind.SOFTMAX, (ElementKind.F32, ElementKind.BF16)), (SoftmaxKind.LOG_SOFTMAX, (ElementKind.F32,))):
            for element in elements:
                for shape, axis in (((4096, 4096), 1), ((65536, 256), 1), ((64, 1024, 512), 1)):
                    yield cls.descriptor_type(kind, shape, axis, element)

    @staticmethod
    def flops(descriptor: SoftmaxDescriptor) -> int:
        return 5 * math.prod(descriptor.input_shape)


class SoftmaxBackwardPlan(Plan[SoftmaxBackwardDescriptor, SoftmaxBackwardArgs]):
    """dx = y (dy - sum y dy); for the logarithm dx = dy - exp(y) sum dy."""

    category, op = OpCategory.SOFTMAX, "kind"
    kernels = (
        Kernel("numba.softmax_backward", BackendKind.NUMBA, "numba:backward", exact_order, limits=LIMITS),
        Kernel("aten.softmax_backward", BackendKind.ATEN, "vendor:backward", aten_order, limits=LIMITS, layout=LayoutSku.CONTIGUOUS),
    )

    @staticmethod
    def reference(descriptor: SoftmaxBackwardDescriptor, dy: Any, y: Any) -> Any:
        import numpy

        if descriptor.kind is SoftmaxKind.SOFTMAX:
            return y * (dy - (y * dy).sum(axis=descriptor.softmax_axis, keepdims=True))
        return dy - numpy.exp(y) * dy.sum(axis=descriptor.softmax_axis, keepdims=True)

    @staticmethod
    def inputs(descriptor: SoftmaxBackwardDescriptor, rng: Any) -> dict[str, Any]:
        return {"y": SoftmaxPlan.reference(descriptor, rng.standard_normal(descriptor.input_shape))}

    examples = classmethod(SoftmaxPlan.examples.__func__)
    draw = classmethod(SoftmaxPlan.draw.__func__)
    showcase = classmethod(SoftmaxPlan.showcase.__func__)

    @staticmethod
    def flops(descriptor: SoftmaxBackwardDescriptor) -> int:
        return 4 * math.prod(descriptor.input_shape)
