"""How far a result may be from the float64 reference."""

from __future__ import annotations

import math
from typing import Any

from baracuda_kernels.core.cases import Cases
from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.sku import MathPrecision, PrecisionGuarantee

# Relative error of a whole output; the second number holds for the backward of attention or of a scan.
_BOUNDS = {ElementKind.F32: (2e-6, 4e-6), ElementKind.F16: (6e-4, 1.5e-3), ElementKind.BF16: (4e-3, 1e-2)}
_COARSER = {  # what a kernel multiplies in bounds its outputs too, where that has fewer bits than they have
    MathPrecision.TF32: (1.2e-3, 3e-3),  # the bits of f16, but inputs are rounded to it too
    MathPrecision.F16: _BOUNDS[ElementKind.F16],
    MathPrecision.BF16: _BOUNDS[ElementKind.BF16],
}
_EXACT = (ElementKind.I8, ElementKind.I16, ElementKind.I32, ElementKind.I64, ElementKind.U8, ElementKind.BOOL)


def error_bound(
    cases: Cases[Any], descriptor: Descriptor, element: ElementKind | None = None, guarantee: PrecisionGuarantee | None = None
) -> float:
    """The largest relative error allowed for an output of `element`, by default the problem's; integers have to be exact.

    Beside a `guarantee`, a result of products in fewer bits is judged by those.
    """
    element = (element_of(descriptor) if element is None else element).part
    if element in _EXACT:
        return 0.0
    coarser = 0.0 if guarantee is None else _COARSER.get(guarantee.math_precision, (0.0, 0.0))[cases.is_long_chain()]
    if element is ElementKind.F64:
        return max(coarser, 1e-13 * math.sqrt(max(cases.summed_extent(descriptor), 1)))
    return max(coarser, _BOUNDS[element][cases.is_long_chain()])


def parts(values: Any) -> Any:
    """The real and imaginary parts of complex numbers, along one more axis; other numbers unchanged."""
    if values.dtype.kind != "c":
        return values
    return values.reshape(*values.shape, 1).view(values.real.dtype)


def relative_error(result: Any, expected: Any, floor: float = 0.0) -> float:
    """‖result − expected‖₂ / ‖expected‖₂. NaN and infinities must stand in the same places, or the error is infinite.

    Integers are right or not: the error is zero or infinite. `floor` is a magnitude below which the expected norm is not trusted as
    a scale, for sums that cancel.
    """
    if type(expected).__module__.startswith("cupy"):
        import cupy as numpy  # the same functions, on the device
    else:
        import numpy

    result, expected = parts(numpy.asarray(result)), parts(numpy.asarray(expected))
    if expected.dtype.kind in "biu":
        return 0.0 if numpy.array_equal(result, expected) else math.inf
    result, expected = numpy.asarray(result, numpy.float64), numpy.asarray(expected, numpy.float64)
    finite = numpy.isfinite(expected)
    same = numpy.array_equal(numpy.isnan(result), numpy.isnan(expected)) and numpy.array_equal(
        result[numpy.isinf(expected)], expected[numpy.isinf(expected)]
    )
    if not same or not numpy.isfinite(result[finite]).all():
        return math.inf
    distance = float(numpy.linalg.norm(result[finite] - expected[finite]))
    if distance == 0.0:
        return 0.0
    scale = max(float(numpy.linalg.norm(expected[finite])), floor)
    return distance / scale if scale > 0.0 else math.inf


_LAST_PLACES = {ElementKind.F64: (52, -1022), ElementKind.F32: (23, -126), ElementKind.F16: (10, -14), ElementKind.BF16: (7, -126)}


def ulps(result: Any, expected: Any, element: ElementKind) -> Any:
    """The distance of every finite number from the expected one, in ulp of the latter; flat."""
    import numpy

    result, expected = parts(numpy.asarray(result)), parts(numpy.asarray(expected))
    digits, smallest = _LAST_PLACES[element.part]
    finite = numpy.isfinite(expected) & numpy.isfinite(result)
    exact = numpy.asarray(expected, numpy.float64)[finite]
    exponent = numpy.maximum(numpy.frexp(exact)[1] - 1, smallest)
    return numpy.ldexp(numpy.abs(numpy.asarray(result, numpy.float64)[finite] - exact), digits - exponent)
