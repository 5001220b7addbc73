"""Scans: running sums, products, extrema and logarithms of sums of powers along one axis, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.element import FLOATS, ElementKind
from baracuda_kernels.core.kernel import Kernel, rank_at_most
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, MathPrecision, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.formula.expression import HALVES
from baracuda_kernels.ops.scan import reference, tiles
from baracuda_kernels.ops.scan.cases import ScanBackwardCases, ScanCases
from baracuda_kernels.ops.scan.descriptor import PRODUCTS, ScanBackwardDescriptor, ScanDescriptor
from baracuda_kernels.ops.scan.launch_words import checkpoint_bytes, split_bytes
from baracuda_kernels.ops.scan.rows import ALL, FORWARD, computed_in, tree_formulas_of

__all__ = ["ScanArgs", "ScanBackwardArgs", "ScanBackwardPlan", "ScanPlan"]


def _in(computing: ElementKind, batch_invariant: bool) -> PrecisionGuarantee:
    precision = MathPrecision(computing.value) if computing.is_float else MathPrecision.EXACT
    return PrecisionGuarantee(precision, computing, True, True, batch_invariant)


def fixed_order(descriptor: ScanDescriptor) -> PrecisionGuarantee:
    """States are joined in an order that the length of a line decides."""
    return _in(computed_in(descriptor), batch_invariant=True)


def fixed_by_layout(descriptor: ScanDescriptor) -> PrecisionGuarantee:
    """How states are joined as a tree depends on how lines lie, and how many there are; of integers and extrema that has no say."""
    formulas = tree_formulas_of(descriptor)
    computing = formulas.states[0]
    if descriptor.element in HALVES and (descriptor.kind in PRODUCTS or not isinstance(descriptor, ScanBackwardDescriptor)):
        computing = computed_in(descriptor)  # products in f64, except along whole rows
    return _in(computing, formulas.exact or not formulas.states[0].is_float)


def element_makes_sense(descriptor: Descriptor) -> Iterator[Reason]:
    assert isinstance(descriptor, ScanDescriptor)
    elements = FORWARD[descriptor.kind].elements
    if descriptor.element not in elements:
        wanted = " or ".join(map(str, elements))
        yield Reason(ReasonCode.LIMIT, "element", descriptor.element, f"{wanted}, for {descriptor.kind.value}")


LIMITS = (rank_at_most("shape", 8),)


class ScanArgs(Args):
    input: TensorRef = read("shape", "the elements")
    result: TensorMut = write("shape", "the running result", element="result_element", may_be=("input",))
    indices: TensorMut = write("shape", "where each extremum is along the axis", element=ElementKind.I64, present="has_indices")


class ScanPlan(Plan[ScanDescriptor, ScanArgs]):
    """A running sum, product, extremum or logarithm of a sum of powers along one axis."""

    category, op = OpCategory.SCAN, "kind"
    reference = staticmethod(reference.scan)
    cases = ScanCases(ScanDescriptor)
    kernels = (
        Kernel("llvm.scan", BackendKind.NUMBA, "llvm:scan", fixed_order, ALL, (*LIMITS, element_makes_sense), split_bytes),
        Kernel(
            "triton.scan",
            BackendKind.TRITON,
            "triton:scan",
            fixed_by_layout,
            ALL,
            (*LIMITS, element_makes_sense),
            tiles.split_bytes,
        ),
    )


class ScanBackwardArgs(Args):
    d_result: TensorRef = read("shape", "the gradient of the result")
    input: TensorRef = read("shape", "the elements", present="reads_input")
    result: TensorRef = read("shape", "the saved result", present="reads_result")
    indices: TensorRef = read("shape", "the saved indices", element=ElementKind.I64, present="reads_indices")
    d_input: TensorMut = write("shape", "the gradient of the elements", may_be=("d_result",))


def backward_bytes(descriptor: ScanBackwardDescriptor) -> int:
    return split_bytes(descriptor) + checkpoint_bytes(descriptor)


class ScanBackwardPlan(Plan[ScanBackwardDescriptor, ScanBackwardArgs]):
    """The gradient of a scan."""

    category, op = OpCategory.SCAN, "kind"
    reference = staticmethod(reference.scan_backward)
    cases = ScanBackwardCases()
    kernels = (
        Kernel("llvm.scan_backward", BackendKind.NUMBA, "llvm:scan_backward", fixed_order, FLOATS, LIMITS, backward_bytes),
        Kernel(
            "triton.scan_backward",
            BackendKind.TRITON,
            "triton:scan_backward",
            fixed_by_layout,
            FLOATS,
            LIMITS,
            tiles.backward_bytes,
        ),
    )
