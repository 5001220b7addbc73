"""Softmax and log-softmax.

softmax       y = exp(x - max) / sum exp(x - max)          dx = y (dy - sum y dy)
log-softmax   y = (x - max) - log sum exp(x - max)         dx = dy - exp(y) sum dy
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, Limit, exact_order, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, LayoutSku, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.softmax import reference
from baracuda_kernels.ops.softmax.cases import KINDS, SoftmaxBackwardCases, SoftmaxCases
from baracuda_kernels.ops.softmax.descriptor import SoftmaxBackwardDescriptor, SoftmaxDescriptor, SoftmaxKind
from baracuda_kernels.ops.softmax.tiles import other_backward_tiles, other_forward_tiles

__all__ = ["SoftmaxArgs", "SoftmaxBackwardArgs", "SoftmaxBackwardPlan", "SoftmaxPlan"]


def aten_order(descriptor: SoftmaxDescriptor) -> PrecisionGuarantee:
    """PyTorch sums a row within one thread, but how it groups columns depends on how many there are and on its threads."""
    accumulator = descriptor.element.accumulator
    return PrecisionGuarantee(MathPrecision(accumulator.value), accumulator, True, False, batch_invariant=False)


def triton_order(descriptor: SoftmaxDescriptor) -> PrecisionGuarantee:
    """Rows that lie within others are summed in strips, but a row of one element's width is summed like any other row."""
    return replace(exact_order(descriptor), batch_invariant=descriptor.inner == 1)


def aten_cuda_order(descriptor: SoftmaxDescriptor) -> PrecisionGuarantee:
    """PyTorch's blocks on CUDA depend on the problem alone, but on all of it."""
    accumulator = descriptor.element.accumulator
    return PrecisionGuarantee(MathPrecision(accumulator.value), accumulator, True, True, batch_invariant=False)


def kind_is_served(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, SoftmaxDescriptor)
    if descriptor.kind not in KINDS:
        yield Reason(ReasonCode.LIMIT, "kind", descriptor.kind.name, " or ".join(kind.name for kind in KINDS))


def few_enough_for_aten(descriptor: Descriptor) -> Iterator[Reason]:
    """Along an outer axis PyTorch adds one element after the other in f32, and past this extent the error bound is not kept."""
    assert isinstance(descriptor, SoftmaxDescriptor)
    if descriptor.element is ElementKind.F32 and descriptor.inner > 1 and descriptor.extent > 4096:
        yield Reason(ReasonCode.LIMIT, "extent", descriptor.extent, "at most 4096 along an axis that is not the innermost")


def normal_in_f16(descriptor: Descriptor) -> Iterator[Reason]:
    """On CUDA PyTorch rounds more than once, which shows below f16's normal range: in the results of very long rows."""
    assert isinstance(descriptor, SoftmaxDescriptor)
    if descriptor.element is ElementKind.F16 and descriptor.extent > 16384:
        yield Reason(ReasonCode.LIMIT, "extent", descriptor.extent, "at most 16384 in f16")


def exact_logs_of_sums(descriptor: Descriptor) -> Iterator[Reason]:
    """Along the innermost axis PyTorch's CPU kernel rounds the logarithm of the sum to the element before it is subtracted."""
    assert isinstance(descriptor, SoftmaxDescriptor)
    if descriptor.kind is SoftmaxKind.LOG_SOFTMAX and descriptor.element.size == 2 and descriptor.inner == 1:
        yield Reason(ReasonCode.LIMIT, "element", descriptor.element, "f32 or f64 for a log-softmax along the innermost axis")


LIMITS: tuple[Limit, ...] = (rank_at_most("input_shape", 8), kind_is_served)
ATEN_LIMITS = (*LIMITS, few_enough_for_aten)
ATEN_CPU_LIMITS = (*ATEN_LIMITS, exact_logs_of_sums)
ATEN_CUDA_LIMITS = (*ATEN_LIMITS, normal_in_f16)


class SoftmaxArgs(Args):
    x: TensorRef = read("input_shape", "the logits")
    y: TensorMut = write("input_shape", "the probabilities, or their logarithms", may_be=("x",))


class SoftmaxPlan(Plan[SoftmaxDescriptor, SoftmaxArgs]):
    """Softmax or log-softmax of x along one axis."""

    category, op = OpCategory.SOFTMAX, "kind"
    reference = staticmethod(reference.softmax)
    cases = SoftmaxCases(SoftmaxDescriptor)
    kernels = (
        Kernel("numba.softmax", BackendKind.NUMBA, "numba:forward", exact_order, limits=LIMITS),
        Kernel(
            "triton.softmax", BackendKind.TRITON, "triton:forward", triton_order, limits=LIMITS, other_tiles=other_forward_tiles
        ),
        Kernel("triton.softmax_by_rows", BackendKind.TRITON, "triton:forward_by_rows", exact_order, limits=LIMITS),
        Kernel(
            "aten.softmax",
            BackendKind.ATEN,
            "vendor:forward",
            aten_order,
            limits=ATEN_CPU_LIMITS,
            layout=LayoutSku.CONTIGUOUS,
        ),
        Kernel(
            "aten.softmax_cuda",
            BackendKind.ATEN,
            "vendor:forward",
            aten_cuda_order,
            limits=ATEN_CUDA_LIMITS,
            layout=LayoutSku.CONTIGUOUS,
            on=DeviceKind.CUDA,
        ),
    )


class SoftmaxBackwardArgs(Args):
    dy: TensorRef = read("input_shape", "the gradient of the output")
    y: TensorRef = read("input_shape", "the saved forward output")
    dx: TensorMut = write("input_shape", "the gradient of the input", may_be=("dy", "y"))


# On CUDA PyTorch's backward allocates even where it is given memory, so it is no candidate there.
class SoftmaxBackwardPlan(Plan[SoftmaxBackwardDescriptor, SoftmaxBackwardArgs]):
    """The gradient of softmax or log-softmax, from the saved output."""

    category, op = OpCategory.SOFTMAX, "kind"
    reference = staticmethod(reference.softmax_backward)
    cases = SoftmaxBackwardCases()
    kernels = (
        Kernel("numba.softmax_backward", BackendKind.NUMBA, "numba:backward", exact_order, limits=LIMITS),
        Kernel(
            "triton.softmax_backward",
            BackendKind.TRITON,
            "triton:backward",
            triton_order,
            limits=LIMITS,
            other_tiles=other_backward_tiles,
        ),
        Kernel("triton.softmax_backward_by_rows", BackendKind.TRITON, "triton:backward_by_rows", exact_order, limits=LIMITS),
        Kernel(
            "aten.softmax_backward",
            BackendKind.ATEN,
            "vendor:backward",
            aten_order,
            limits=ATEN_LIMITS,
            layout=LayoutSku.CONTIGUOUS,
        ),
    )
