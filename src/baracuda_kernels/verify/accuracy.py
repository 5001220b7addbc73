"""How far single results of the elementwise ops are from the exact ones, in units in the last place."""

from __future__ import annotations

import datetime
import json
import math
import platform
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import decode, encode, rounded
from baracuda_kernels.core.machine import machine_of, versions
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.core.workspace import Workspace
from baracuda_kernels.verify.bounds import ulps

__all__ = [
    "ALLOWED",
    "AccuracyQuestion",
    "Measured",
    "Worst",
    "as_json",
    "every_half",
    "many_floats",
    "measure",
    "measured_ops",
    "results_of",
    "worst",
]

AnyPlan = type[Plan[Any, Any]]


_LARGEST = {
    ElementKind.F16: 65504.0,
    ElementKind.BF16: (2.0 - 2.0**-7) * 2.0**127,
    ElementKind.F32: (2.0 - 2.0**-23) * 2.0**127,
    ElementKind.F64: (2.0 - 2.0**-52) * 2.0**1023,
}


# How far an elementwise op may be off the exact result. In f16 and bf16 half a unit more, since the nearest number is that far off already.
ALLOWED = {ElementKind.F32: 4.0, ElementKind.F16: 1.5, ElementKind.BF16: 1.5}
AT_A_TIME = 1 << 20
_PACKAGES = ("baracuda-kernels", "torch", "triton", "numba", "numpy", "scipy")


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
    largest = _LARGEST[ElementKind.F32]
    edges = numpy.array(
        [0.0, 2.0**-149, 2.0**-126 - 2.0**-149, 2.0**-126, 0.5, 1.0, 2.0, largest, math.inf, math.nan], numpy.float32
    )
    anything = rng.integers(0, 1 << 32, count // 2, dtype=numpy.uint64).astype(numpy.uint32).view(numpy.float32)
    usual = rng.standard_normal(count - count // 2).astype(numpy.float32) * numpy.float32(4.0)
    with numpy.errstate(invalid="ignore"):
        return numpy.concatenate([anything, usual, edges, -edges])[-count:].astype(numpy.float64)


def results_of(plan: AnyPlan, descriptor: Any, values: Any, stream: Stream | None = None) -> Any:
    """What the selected kernel makes of a flat array of numbers that its element can hold."""
    import numpy

    stream = Stream.cpu() if stream is None else stream
    chosen = plan.select(stream, descriptor)
    (operand,) = (each for each in plan.args_type.OPERANDS if not each.writes)
    (result,) = (each for each in plan.args_type.OPERANDS if each.writes)
    given, element = encode(values, descriptor.element), result.element(descriptor)
    made: Any = numpy.zeros(values.size * element.size, numpy.uint8)

    if stream.device.kind is not DeviceKind.CPU:
        import torch

        given, made = (torch.from_numpy(each).to(str(stream.device)) for each in (given, made))

    def view(kind: type[TensorRef], data: Any, element: ElementKind) -> TensorRef:
        return kind.strided(data, (values.size,), (1,), element=element)

    operands = {operand.name: view(TensorRef, given, descriptor.element), result.name: view(TensorMut, made, element)}
    chosen.run(stream, Workspace.none(), plan.args_type(**operands))
    return decode(made if isinstance(made, numpy.ndarray) else made.cpu().numpy(), element)


def worst(result: Any, exact: Any, values: Any, element: ElementKind) -> Worst:
    """The worst error of results in `element`. Where the exact result rounds to infinity, infinity is expected."""
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


# --- measured over many operands ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AccuracyQuestion:
    """How far is this op off, on that device? Of f32 so many operands are tried, of 16-bit floats all."""

    op: str
    element: ElementKind
    device: Device
    count: int


@dataclass(frozen=True)
class Measured:
    """The worst error that was found."""

    op: str
    element: str
    count: int
    ulp: float
    at: float
    misplaced: int

    @property
    def holds(self) -> bool:
        return self.misplaced == 0 and self.ulp <= ALLOWED[ElementKind(self.element)]


def measured_ops() -> list[str]:
    """The unary ops that take a float and give a float."""
    from baracuda_kernels.ops.elementwise.tables import UNARY

    return [name for name, row in UNARY.items() if ElementKind.F16 in row.elements and row.result is None]


def measure(question: AccuracyQuestion) -> Measured:
    """A million operands at a time, other ones each time but for the edges of the format."""
    from baracuda_kernels.ops.elementwise.descriptor import UnaryDescriptor, UnaryKind
    from baracuda_kernels.ops.elementwise.elementwise import UnaryPlan
    from baracuda_kernels.ops.elementwise.reference import value

    tried, found = 0, Worst(0.0, 0.0, 0)
    while tried < question.count:
        if question.element is ElementKind.F32:
            values = many_floats(min(AT_A_TIME, question.count - tried), seed=tried // AT_A_TIME)
        else:
            values = every_half(question.element)
        descriptor = UnaryDescriptor(UnaryKind(question.op), values.shape, question.element)
        exact = value(question.op, question.element, [values], descriptor.numbers)
        result = results_of(UnaryPlan, descriptor, values, Stream.on(question.device))
        here = worst(result, exact, values, question.element)
        found = max(found, here)._replace(misplaced=found.misplaced + here.misplaced)
        tried += values.size
        if question.element is not ElementKind.F32:
            break
    return Measured(question.op, question.element.value, tried, found.ulp, found.at, found.misplaced)


def as_json(found: list[Measured], device: Device) -> str:
    """The whole run, an op a line. Names no machine but by its processor."""
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "kind": str(device.kind),
        "device": machine_of(device)["device"],
        "versions": {"python": platform.python_version()} | versions(_PACKAGES),
    }
    ops = ",\n".join(f"  {json.dumps(asdict(each) | {'at': repr(each.at)})}" for each in found)
    return f'{json.dumps(about, indent=1)[:-2]},\n "ops": [\n{ops}\n ]\n}}\n'
