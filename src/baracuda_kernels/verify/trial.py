"""One problem, one kernel, one choice of layouts: run in guarded memory and compared with the reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy

from baracuda_kernels.core.args import Access, Operand
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, MathPrecision
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut
from baracuda_kernels.core.workspace import Workspace
from baracuda_kernels.verify.bounds import error_bound, parts, relative_error
from baracuda_kernels.verify.memory import LAYOUTS, Placed

AnyPlan = Plan[Any, Any]


class BrokenPromise(AssertionError):
    """A kernel did what it promised not to do."""


@dataclass
class Trial:
    """What came of it: the operands after the run, or the reasons why the kernel does not take these layouts."""

    operands: dict[str, Placed]
    outputs: tuple[str, ...] = ()
    declined: tuple[Reason, ...] = ()
    trespasses: tuple[str, ...] = ()  # what was written that must not be
    errors: dict[str, float] = field(default_factory=dict)  # of each output, once it has been compared
    bounds: dict[str, float] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)  # of complex numbers their `parts`

    @property
    def bits(self) -> dict[str, bytes]:
        return {name: self.operands[name].raw.tobytes() for name in self.outputs}


def random_inputs(plan: type[AnyPlan], descriptor: Descriptor, rng: Any, with_optional: bool = True) -> dict[str, Any]:
    """Inputs that are exact in their elements, as float64 arrays."""
    special = plan.cases.inputs(descriptor, rng)
    inputs = {}
    for operand in plan.args_type.OPERANDS:
        if operand.access is Access.READ and operand.is_given(descriptor, with_optional):
            values = special.get(operand.name)
            if values is None:
                values = _drawn(operand.shapes(descriptor)[0], operand.element(descriptor), rng)
            inputs[operand.name] = rounded(values, operand.element(descriptor))
    return inputs


def _drawn(shape: tuple[int, ...], element: ElementKind, rng: Any) -> Any:
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if element.is_complex else values


def _fits(operand: Operand, shape: tuple[int, ...], element: ElementKind, layout: str, plan: AnyPlan) -> bool:
    """Whether the op allows this layout for this operand."""
    stride, _ = LAYOUTS[layout](shape)
    laid = Layout.of(element, shape, stride, plan.device)
    return not (operand.writes and laid.overlaps_itself) and not list(operand.reasons_against(plan.descriptor, laid, plan.device))


def run_trial(
    plan: AnyPlan,
    inputs: dict[str, Any],
    layout: str | dict[str, str] = "contiguous",
    in_place: tuple[str, str] | None = None,
    may_cancel: bool = False,
) -> Trial:
    """Like `compared`, and raises `BrokenPromise` for anything that must not happen."""
    trial = compared(plan, inputs, layout, in_place, may_cancel)
    for trespass in trial.trespasses:
        raise BrokenPromise(f"{plan}: {trespass}")
    for name, error in trial.errors.items():
        if not error <= trial.bounds[name]:
            allowed = f"allowed is {trial.bounds[name]:.3g}; layout {layout}"
            raise BrokenPromise(f"{plan}: {name} has a relative error of {error:.3g}, {allowed}")
    return trial


def compared(
    plan: AnyPlan,
    inputs: dict[str, Any],
    layout: str | dict[str, str] = "contiguous",
    in_place: tuple[str, str] | None = None,
    may_cancel: bool = False,
) -> Trial:
    """Like `launched`, with the error of every output. `may_cancel` says that outputs can be small only because sums cancel, and
    are then compared on the scale they are sensitive on."""
    if any("broadcast" in name for name in ([layout] if isinstance(layout, str) else layout.values())):
        may_cancel = True  # an input that is constant along a sum often does
    trial = launched(plan, inputs, layout, in_place)
    if not trial.declined:
        # A broadcast view holds fewer numbers than were given, and an input that was written in place holds none of them.
        logical = {name: trial.operands[name].given for name in inputs}
        _compare(plan, trial, logical, may_cancel)
    return trial


def launched(
    plan: AnyPlan, inputs: dict[str, Any], layout: str | dict[str, str] = "contiguous", in_place: tuple[str, str] | None = None
) -> Trial:
    """Runs `plan` on `inputs` in guarded memory; a layout an operand cannot have becomes contiguous for that operand.

    `in_place` names an output and the input it is to be.
    """
    operands: dict[str, Placed] = {}
    for operand in plan.args_type.OPERANDS:
        values = inputs.get(operand.name)
        if values is None if operand.access is Access.READ else operand.presence(plan.descriptor) is False:
            continue
        shape = operand.shapes(plan.descriptor)[0] if values is None else values.shape
        element = operand.element(plan.descriptor)
        wanted = layout if isinstance(layout, str) else layout.get(operand.name, "contiguous")
        used = wanted if _fits(operand, shape, element, wanted, plan) else "contiguous"
        operands[operand.name] = Placed(shape, element, used, values, plan.device)
    if in_place is not None:
        operands[in_place[0]] = operands[in_place[1]]
    args = plan.args_type(**{o.name: operands[o.name].view(o.view) for o in plan.args_type.OPERANDS if o.name in operands})
    verdict = plan.can_implement(args)
    if not verdict:
        return Trial(operands, declined=verdict.reasons)
    outside = list(_run_guarded(plan, args))
    for placed in operands.values():
        placed.fetch()
    outputs = tuple(name for name in plan.outputs() if name in operands)
    return Trial(operands, outputs, trespasses=(*outside, *_trespasses(plan, operands, in_place)))


def _run_guarded(plan: AnyPlan, args: Any) -> Iterator[str]:
    """Runs with a workspace of NaN between guards, and says whether they were overrun."""
    stream = Stream.on(plan.device)
    if not plan.workspace_size:
        plan.run(stream, Workspace.none(), args)
        return
    lent = Placed((plan.workspace_size,), ElementKind.U8, "contiguous", device=plan.device)
    view = lent.view()
    # Guards are a multiple of the alignment away from the start of NumPy's own aligned memory.
    assert isinstance(view, TensorMut)
    plan.run(stream, Workspace(view), args)
    lent.fetch()
    if not lent.is_untouched_outside():
        yield f"wrote outside its workspace of {plan.workspace_size} bytes"


def _compare(plan: AnyPlan, trial: Trial, inputs: dict[str, Any], may_cancel: bool) -> None:
    """Fills in of each output what was expected, its relative error and what is allowed."""
    expected = reference_outputs(plan, inputs)
    for number, (name, reference) in enumerate(zip(trial.outputs, expected, strict=True)):
        result, element = parts(trial.operands[name].values), trial.operands[name].element
        # What overflows the element is infinite; and where even the rounded reference is far off, as in f16 below its normal
        # range, no kernel can do better than that.
        nearest, exact = parts(rounded(reference, element)), parts(numpy.asarray(reference))
        value = numpy.where(numpy.isinf(nearest), nearest, exact)
        slack = 2.0 if _is_cut_off(plan, element) else 1.0
        bound = slack * error_bound(plan.cases, plan.descriptor, element, plan.precision_guarantee)
        floor = 0.0
        if may_cancel and relative_error(result, value) > bound:
            floor = _sensitivity(plan, inputs, expected, number)
        trial.expected[name] = value
        trial.errors[name] = relative_error(result, value, floor)
        trial.bounds[name] = max(bound, slack * 1.25 * relative_error(nearest, value, floor))


def _is_cut_off(plan: AnyPlan, element: ElementKind) -> bool:
    """Triton's interpreter cuts a number off where the GPU rounds it to bf16, in outputs and in the operands of products."""
    has_bf16 = element is ElementKind.BF16 or plan.precision_guarantee.math_precision is MathPrecision.BF16
    return has_bf16 and _is_interpreted(plan)


def _is_interpreted(plan: AnyPlan) -> bool:
    return plan.kernel.backend is BackendKind.TRITON and plan.device.kind is DeviceKind.CPU


def reference_outputs(plan: AnyPlan, inputs: dict[str, Any]) -> list[Any]:
    expected = plan.reference(plan.descriptor, **inputs)
    return [value for value in (expected if isinstance(expected, tuple) else (expected,)) if value is not None]


def _sensitivity(plan: AnyPlan, inputs: dict[str, Any], expected: list[Any], number: int) -> float:
    """How far an output moves for a small random change of every float input, relative to that change.

    About the norm of the output, unless sums in it cancel: then it is the scale on which rounding the inputs moves it.
    """
    rng, change, draws, squares = numpy.random.default_rng(0), 1e-6, 4, 0.0
    for _ in range(draws):
        moved = {
            name: values * (1.0 + change * rng.standard_normal(values.shape)) if values.dtype.kind in "fc" else values
            for name, values in inputs.items()
        }
        with numpy.errstate(invalid="ignore"):
            distance = reference_outputs(plan, moved)[number] - expected[number]
        squares += float(numpy.sum(numpy.abs(distance[numpy.isfinite(distance)]) ** 2)) / draws
    return squares**0.5 / change


def _trespasses(plan: AnyPlan, operands: dict[str, Placed], in_place: tuple[str, str] | None) -> Iterator[str]:
    for operand in plan.args_type.OPERANDS:
        placed = operands.get(operand.name)
        if placed is None or (in_place is not None and operand.name == in_place[1]):
            continue
        if operand.writes and not placed.is_untouched_outside():
            yield f"wrote outside {operand.name}"
        if not operand.writes and not placed.is_untouched():
            yield f"wrote its input {operand.name}"


def partners(operand: Operand, plan: type[AnyPlan], descriptor: Descriptor) -> list[str]:
    """The inputs that an output can be, exactly, in this problem: those that are there and have its element."""
    if not operand.is_given(descriptor, True):
        return []
    others = {other.name: other for other in plan.args_type.OPERANDS if other.is_given(descriptor, True)}
    element = operand.element(descriptor)
    return [name for name in operand.may_be if name in others and others[name].element(descriptor) is element]


def mixed_layouts(plan: type[AnyPlan], rng: Any) -> dict[str, str]:
    """A different layout for each operand, drawn at random."""
    return {operand.name: str(rng.choice(list(LAYOUTS))) for operand in plan.args_type.OPERANDS}


__all__ = [
    "AnyPlan",
    "BrokenPromise",
    "Trial",
    "compared",
    "launched",
    "mixed_layouts",
    "partners",
    "random_inputs",
    "reference_outputs",
    "run_trial",
]
