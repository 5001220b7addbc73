"""Operands made wrong in every way that is declared to be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, InvalidProblem, MisalignedOperand, Unsupported, WorkspaceTooSmall
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.reason import Reason, ReasonCode, Severity
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.core.workspace import Workspace
from baracuda_kernels.verify.memory import Placed
from baracuda_kernels.verify.trial import AnyPlan, random_inputs


@dataclass(frozen=True)
class Spoiled:
    """Changed operands, and what has to be said of them."""

    operand: str  # the one that has to be named
    code: ReasonCode
    changed: dict[str, Any]

    @property
    def error(self) -> type[Error]:
        kinds = {Severity.MISALIGNED: MisalignedOperand, Severity.UNSUPPORTED: Unsupported}
        return kinds.get(self.code.severity, InvalidProblem)


class Situation:
    """A valid plan and its operands, to be spoiled."""

    def __init__(self, plan: AnyPlan, seed: int = 3) -> None:
        self.plan, self.descriptor = plan, plan.descriptor
        inputs = random_inputs(type(plan), self.descriptor, numpy.random.default_rng(seed))
        self.operands = {
            operand.name: operand for operand in plan.args_type.OPERANDS if operand.presence(self.descriptor) is not False
        }
        self.placed = {
            name: Placed(
                operand.shapes(self.descriptor)[0] if name not in inputs else inputs[name].shape,
                operand.element(self.descriptor),
                "contiguous",
                inputs.get(name),
                plan.device,
            )
            for name, operand in self.operands.items()
        }
        self.views = {name: placed.view() for name, placed in self.placed.items()}
        self.workspace = self.workspace_of(plan.workspace_size)

    def workspace_of(self, size: int) -> Workspace:
        return Workspace.borrowed(self.zeros(size)) if size > 0 else Workspace.none()

    def zeros(self, size: int) -> Any:
        """Zeroed bytes on the device of the plan."""
        if self.plan.device.kind is DeviceKind.CPU:
            return numpy.zeros(size, numpy.uint8)
        import torch

        return torch.zeros(size, dtype=torch.uint8, device=str(self.plan.device))

    def args(self, **changed: Any) -> Any:
        return self.plan.args_type(**(self.views | changed))

    def run(self, workspace: Workspace | None = None, **changed: Any) -> None:
        workspace = self.workspace if workspace is None else workspace
        self.plan.run(Stream.on(self.plan.device), workspace, self.args(**changed))

    def is_untouched(self) -> bool:
        for placed in self.placed.values():
            placed.fetch()
        return all(placed.is_untouched() for placed in self.placed.values())

    def complaint(self, spoiled: Spoiled) -> str | None:
        """Runs with some operands changed: it must raise, name the operand and leave all memory as it was. Says what it did not."""
        try:
            self.run(**spoiled.changed)
        except Error as refusal:
            if not isinstance(refusal, spoiled.error):
                return f"{spoiled.operand} {spoiled.code.says}: got {type(refusal).__name__}, wanted {spoiled.error.__name__}"
            if not any(reason.where == spoiled.operand and reason.code is spoiled.code for reason in refusal.reasons):
                return f"{spoiled.operand} {spoiled.code.says}, but the error does not say so: {refusal}"
        except Exception as other:
            return f"{spoiled.operand} {spoiled.code.says}: got an untyped {type(other).__name__}: {other}"
        else:
            return f"{spoiled.operand} {spoiled.code.says}, but was taken"
        return None if self.is_untouched() else f"{spoiled.operand} {spoiled.code.says}: refused, but something had been written"

    def workspace_complaint(self) -> str | None:
        """One byte less than the plan asks for must be refused."""
        needed = self.plan.workspace_size
        if not needed:
            return None
        try:
            self.run(self.workspace_of(needed - 1))
        except WorkspaceTooSmall as refusal:
            if (refusal.needed, refusal.got) != (needed, needed - 1):
                return f"a workspace of {needed - 1} bytes was refused as one of {refusal.got}, wanted {refusal.needed}"
            return None if self.is_untouched() else "refused a workspace that is too small, but something had been written"
        return f"a workspace of {needed - 1} bytes was taken, though {needed} are asked for"


# --- ways to spoil one operand -------------------------------------------------------------------------------------------------


def missing(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    if operand.presence(situation.descriptor):
        yield Spoiled(operand.name, ReasonCode.MISSING_OPERAND, {operand.name: None})


def wrong_shape(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    placed = situation.placed[operand.name]
    for wrong in ((*placed.shape[:-1], placed.shape[-1] + 1), (*placed.shape, 1), placed.shape[1:]):
        if wrong not in operand.shapes(situation.descriptor):
            other = Placed(wrong, placed.element, "contiguous", device=placed.device)
            yield Spoiled(operand.name, ReasonCode.SHAPE, {operand.name: other.view()})


def wrong_element(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    placed = situation.placed[operand.name]
    for element in (ElementKind.F64, ElementKind.BF16, ElementKind.I32):
        if element is not placed.element:
            other = Placed(placed.shape, element, "contiguous", device=placed.device)
            yield Spoiled(operand.name, ReasonCode.ELEMENT, {operand.name: other.view()})


def wrong_device(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    placed = situation.placed[operand.name]
    elsewhere = Device.cuda(0) if placed.device.kind is DeviceKind.CPU else Device.cpu()
    layout = Layout.of(placed.element, placed.shape, row_major(placed.shape), elsewhere)
    # Nobody may look at what is there, so nothing has to be.
    yield Spoiled(operand.name, ReasonCode.DEVICE, {operand.name: TensorMut.over(1 << 40, layout, None)})


def misaligned(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    placed = situation.placed[operand.name]
    if placed.element.size > 1:
        room = situation.zeros(placed.bytes.size + 8)
        off = TensorMut.strided(room[1:], placed.shape, row_major(placed.shape), element=placed.element)
        yield Spoiled(operand.name, ReasonCode.MISALIGNED, {operand.name: off})


def no_array(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    for thing in ([1.0, 2.0], "text", 3.5, numpy.zeros(3, "U4"), numpy.zeros(3, ">f4"), object()):
        yield Spoiled(operand.name, ReasonCode.NOT_AN_ARRAY, {operand.name: thing})


def read_only(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    if operand.writes:
        yield Spoiled(operand.name, ReasonCode.READ_ONLY, {operand.name: situation.placed[operand.name].view(TensorRef)})
        frozen = numpy.zeros(situation.placed[operand.name].shape, numpy.float32)
        frozen.flags.writeable = False
        yield Spoiled(operand.name, ReasonCode.READ_ONLY, {operand.name: frozen})


def self_overlap(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    """All of an output in one place: an array of a framework, as only those can be made so."""
    if operand.writes and situation.placed[operand.name].shape:
        import torch

        repeated = torch.zeros(1, device=str(situation.plan.device)).expand(situation.placed[operand.name].shape)
        yield Spoiled(operand.name, ReasonCode.SELF_OVERLAP, {operand.name: repeated})


def overlap(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    """An output that lies in another operand's memory, a little further on or exactly."""
    if not operand.writes:
        return
    name, (shape, element) = operand.name, (situation.placed[operand.name].shape, situation.placed[operand.name].element)
    order = list(situation.placed)
    for other, placed in situation.placed.items():
        if other == name or placed.shape != shape or placed.element is not element:
            continue
        # Of two outputs the one declared first is named.
        named = min(name, other, key=order.index) if situation.operands[other].writes else name
        memory = placed.bytes if placed.on_device is None else placed.on_device
        shifted = TensorMut.strided(memory, shape, row_major(shape), placed.first + 1, element=element)
        yield Spoiled(named, ReasonCode.ALIAS, {name: shifted})
        if other not in operand.may_be and name not in situation.operands[other].may_be:
            yield Spoiled(named, ReasonCode.ALIAS, {name: placed.view()})


def layout_rule(situation: Situation, operand: Operand) -> Iterator[Spoiled]:
    """A layout that the op, or this kernel, says it does not take."""
    placed = situation.placed[operand.name]
    for layout in ("transposed", "every_second", "gaps"):
        other = Placed(placed.shape, placed.element, layout, device=placed.device)
        view = other.view()
        against: list[Reason] = [] if operand.layout_rule is None else list(operand.layout_rule(operand.name, view.layout))
        against += situation.plan.kernel.reasons_against_layout(operand.name, view.layout)
        if against:
            yield Spoiled(
                operand.name, min(against, key=lambda reason: _ORDER.index(reason.code.severity)).code, {operand.name: view}
            )


_ORDER = list(Severity)

WAYS: dict[str, Callable[[Situation, Operand], Iterator[Spoiled]]] = {
    way.__name__: way
    for way in (
        missing, wrong_shape, wrong_element, wrong_device, misaligned, no_array, read_only, self_overlap, overlap, layout_rule
    )
}  # fmt: skip


def spoilings(situation: Situation) -> Iterator[Spoiled]:
    """Every operand in every way."""
    for operand in situation.operands.values():
        for way in WAYS.values():
            yield from way(situation, operand)
