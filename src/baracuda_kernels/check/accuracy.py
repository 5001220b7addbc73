"""How far single results of the ops on elements are from the exact ones, in units in the last place."""

from __future__ import annotations

from typing import Any, NamedTuple

from baracuda_kernels.check.bounds import ulps
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import decode, encode, rounded
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.core.workspace import Workspace

__all__ = ["Worst", "every_half", "many_floats", "results_of", "worst"]

AnyPlan = type[Plan[Any, Any]]


_LARGEST = {
    ElementKind.F16: 65504.0,
    ElementKind.BF16: (2.0 - 2.0**-7) * 2.0**127,
    ElementKind.F32: (2.0 - 2.0**-23) * 2.0**127,
    ElementKind.F64: (2.0 - 2.0**-52) * 2.0**1023,
}


class Worst(NamedTuple):
    """The largest error of any result, and the operand that it is the result of."""

    ulp: float
    at: float
    misplaced: int  # results that are NaN or infinite where they should not be, or the other way round


def every_half(element: ElementKind) -> Any:
    """All 65,536 of them, as float64."""
    import numpy

    with numpy.errstate(invalid="ignore"):  # NaN of all kinds are among them
        return decode(numpy.arange(1 << 16, dtype=numpy.uint16).view(numpy.uint8), element)


def many_floats(count: int, seed: int = 0) -> Any:
    """Floats of every size and sign, as float64: random bits, subnormals and infinities among them, and the neighbours of small numbers."""
    import numpy

    rng = numpy.random.default_rng(seed)
    anything = rng.integers(0, 1 << 32, count // 2, dtype=numpy.uint64).astype(numpy.uint32).view(numpy.float32)
    usual = rng.standard_normal(count - count // 2).astype(numpy.float32) * numpy.float32(4.0)
    with numpy.errstate(invalid="ignore"):
        return numpy.concatenate([anything, usual]).astype(numpy.float64)


def results_of(plan: AnyPlan, descriptor: Any, values: Any, stream: Stream | None = None) -> Any:
    """What the selected kernel makes of a flat array of numbers that its element can hold."""
    import numpy

    stream = Stream.cpu() if stream is None else stream
    chosen = plan.select(stream, descriptor)
    (operand,) = (each for each in plan.args_type.OPERANDS if not each.writes)
    (result,) = (each for each in plan.args_type.OPERANDS if each.writes)
    given, element = encode(values, descriptor.element), result.element(descriptor)
    made = numpy.zeros(values.size * element.size, numpy.uint8)

    def view(kind: type[TensorRef], data: Any, element: ElementKind) -> TensorRef:
        return kind.strided(data, (values.size,), (1,), element=element)

    operands = {operand.name: view(TensorRef, given, descriptor.element), result.name: view(TensorMut, made, element)}
    chosen.run(stream, Workspace.none(), plan.args_type(**operands))
    return decode(made, element)


def worst(result: Any, exact: Any, values: Any, element: ElementKind) -> Worst:
    """Of results of `element`. What the exact result is rounded to stands for it where that is infinite."""
    import numpy

    nearest = rounded(exact, element)
    wanted = numpy.where(numpy.isinf(nearest), nearest, exact)
    other = numpy.isnan(result) != numpy.isnan(wanted)
    # One step from the largest number to infinity is a small error, and no misplaced infinity.
    largest = _LARGEST[element]
    infinite = (numpy.isinf(result) | numpy.isinf(wanted)) & (result != wanted)
    beside = (
        infinite & (numpy.minimum(numpy.abs(result), numpy.abs(wanted)) >= largest) & (numpy.sign(result) == numpy.sign(wanted))
    )
    misplaced = int((other | (infinite & ~beside)).sum())
    finite = numpy.isfinite(result) & numpy.isfinite(wanted)
    distances = ulps(result, wanted, element)
    if not distances.size:
        return Worst(0.0, 0.0, misplaced)
    place = int(distances.argmax())
    return Worst(float(distances[place]), float(values[finite][place]), misplaced)
