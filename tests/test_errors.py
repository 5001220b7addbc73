"""Bad input, for every op and every operand: a typed error that names the operand, and nothing written."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.check.memory import Placed
from baracuda_kernels.check.trial import random_inputs
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.reason import Severity

from conftest import PLANS
from toy import ToyArgs, ToyDescriptor, ToyPlan

OPS = {**PLANS, "toy": ToyPlan}
OPERANDS = [(op, operand.name) for op, plan in OPS.items() for operand in plan.args_type.OPERANDS]


def _problem(plan_type: Any) -> Any:
    """Of the corners with something in every operand, the first with the most operands."""
    present = {
        descriptor: [operand for operand in plan_type.args_type.OPERANDS if operand.presence(descriptor) is not False]
        for descriptor in plan_type.cases.corners(bk.ElementKind.F32)
    }
    large = [descriptor for descriptor, operands in present.items() if all(operand.size(descriptor) > 8 for operand in operands)]
    return max(large, key=lambda descriptor: len(present[descriptor]))


class Situation:
    """A valid plan and its operands, to be spoiled."""

    def __init__(self, op: str) -> None:
        self.plan_type = OPS[op]
        self.plan = self.plan_type.select(bk.Stream.cpu(), _problem(self.plan_type))
        self.descriptor = self.plan.descriptor
        inputs = random_inputs(self.plan_type, self.descriptor, numpy.random.default_rng(3))
        self.placed: dict[str, Placed] = {}
        for operand in self.plan_type.args_type.OPERANDS:
            if operand.presence(self.descriptor) is not False:
                shape, element = operand.shapes(self.descriptor)[0], operand.element(self.descriptor)
                self.placed[operand.name] = Placed(shape, element, "contiguous", inputs.get(operand.name))
        self.views = {name: placed.view() for name, placed in self.placed.items()}
        self.workspace = bk.Workspace.borrowed(numpy.zeros(max(self.plan.workspace_size, 1), numpy.uint8))

    def refuse(self, name: str, error: type[Exception], code: bk.ReasonCode, **changed: Any) -> bk.Error:
        """Runs with some operands changed: it must raise, name the operand and leave all memory as it was."""
        with pytest.raises(error) as caught:
            self.plan.run(bk.Stream.cpu(), self.workspace, self.plan_type.args_type(**(self.views | changed)))
        problem = caught.value
        assert isinstance(problem, bk.Error)
        assert code in {reason.code for reason in problem.reasons}
        assert any(reason.where == name for reason in problem.reasons), problem
        assert name in str(problem)
        assert self.plan_type.__name__.removesuffix("Plan") in str(problem)
        for placed in self.placed.values():
            assert placed.is_untouched()
        return problem

    def operand(self, name: str) -> Any:
        (operand,) = (o for o in self.plan_type.args_type.OPERANDS if o.name == name)
        return operand


@pytest.fixture(params=OPERANDS, ids=[f"{op}.{name}" for op, name in OPERANDS])
def spoiled(request: Any) -> tuple[Situation, str]:
    op, name = request.param
    situation = Situation(op)
    if name not in situation.views:
        pytest.skip("this operand must be left out of the problem tried")
    return situation, name


def test_the_situation_itself_is_fine(spoiled: Any) -> None:
    situation, _ = spoiled
    args = situation.plan_type.args_type(**situation.views)
    assert situation.plan.can_implement(args)
    situation.plan.run(bk.Stream.cpu(), situation.workspace, args)


def test_missing(spoiled: Any) -> None:
    situation, name = spoiled
    if situation.operand(name).presence(situation.descriptor) is None:
        args = situation.plan_type.args_type(**(situation.views | {name: None}))
        assert situation.plan.can_implement(args)
    else:
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.MISSING_OPERAND, **{name: None})


def test_wrong_shape(spoiled: Any) -> None:
    situation, name = spoiled
    shape = situation.placed[name].shape
    for wrong in ((*shape[:-1], shape[-1] + 1), (*shape, 1), shape[1:]):
        other = Placed(wrong, situation.placed[name].element, "contiguous")
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.SHAPE, **{name: other.view()})


def test_wrong_element(spoiled: Any) -> None:
    situation, name = spoiled
    for element in (bk.ElementKind.F64, bk.ElementKind.BF16, bk.ElementKind.I32):
        if element is not situation.placed[name].element:
            other = Placed(situation.placed[name].shape, element, "contiguous")
            situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.ELEMENT, **{name: other.view()})


def test_wrong_device(spoiled: Any) -> None:
    situation, name = spoiled
    placed = situation.placed[name]
    elsewhere = bk.TensorMut.__new__(bk.TensorMut)
    elsewhere.address, elsewhere.data = 1 << 40, None
    elsewhere.layout = Layout.of(placed.element, placed.shape, row_major(placed.shape), bk.Device.cuda(0))
    situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.DEVICE, **{name: elsewhere})


def test_misaligned(spoiled: Any) -> None:
    situation, name = spoiled
    placed = situation.placed[name]
    room = numpy.zeros(placed.bytes.size + 8, numpy.uint8)
    off = bk.TensorMut.strided(room[1:], placed.shape, row_major(placed.shape), element=placed.element)
    situation.refuse(name, bk.MisalignedOperand, bk.ReasonCode.MISALIGNED, **{name: off})


def test_no_array(spoiled: Any) -> None:
    situation, name = spoiled
    for thing in ([1.0, 2.0], "text", 3.5, numpy.zeros(3, "U4"), numpy.zeros(3, ">f4"), object()):
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.NOT_AN_ARRAY, **{name: thing})


def test_read_only_output(spoiled: Any) -> None:
    situation, name = spoiled
    if situation.operand(name).writes:
        frozen = numpy.zeros(situation.placed[name].shape, numpy.float32)
        frozen.flags.writeable = False
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.READ_ONLY, **{name: frozen})
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.READ_ONLY, **{name: bk.TensorRef.of(frozen)})


def test_output_that_overlaps_itself(spoiled: Any) -> None:
    situation, name = spoiled
    if situation.operand(name).writes:
        import torch

        repeated = torch.zeros(1).expand(situation.placed[name].shape)
        situation.refuse(name, bk.InvalidProblem, bk.ReasonCode.SELF_OVERLAP, **{name: repeated})


def test_output_that_overlaps_another_operand(spoiled: Any) -> None:
    situation, name = spoiled
    operand = situation.operand(name)
    if not operand.writes:
        return
    shape, element = situation.placed[name].shape, situation.placed[name].element
    for other, placed in situation.placed.items():
        if other == name or placed.shape != shape or placed.element is not element:
            continue
        # Of two outputs the one declared first is named.
        named = min(name, other, key=list(situation.placed).index) if situation.operand(other).writes else name
        shifted = bk.TensorMut.strided(placed.bytes, shape, row_major(shape), placed.first + 1, element=element)
        situation.refuse(named, bk.InvalidProblem, bk.ReasonCode.ALIAS, **{name: shifted})
        if other not in operand.may_be and name not in situation.operand(other).may_be:
            situation.refuse(named, bk.InvalidProblem, bk.ReasonCode.ALIAS, **{name: placed.view()})


@pytest.mark.parametrize("op", OPS)
def test_unknown_operand(op: str) -> None:
    Situation(op).refuse("bogus", bk.InvalidProblem, bk.ReasonCode.UNKNOWN_OPERAND, bogus=numpy.zeros(3))


@pytest.mark.parametrize("op", OPS)
def test_every_reason_is_found_not_the_first(op: str) -> None:
    situation = Situation(op)
    wrong = {name: Placed((3,), bk.ElementKind.C128, "contiguous").view() for name in situation.views}
    verdict = situation.plan.can_implement(situation.plan_type.args_type(**wrong))
    assert not verdict
    found = {(reason.where, reason.code) for reason in verdict.reasons}
    assert found >= {(name, code) for name in wrong for code in (bk.ReasonCode.SHAPE, bk.ReasonCode.ELEMENT)}
    with pytest.raises(bk.InvalidProblem):
        verdict.raise_if_rejected()


@pytest.mark.parametrize("op", OPS)
def test_wrong_kinds_of_argument(op: str) -> None:
    situation = Situation(op)
    args = situation.plan_type.args_type(**situation.views)
    run = situation.plan.run
    for stream, workspace, operands, name in (
        (None, situation.workspace, args, "stream"),
        (bk.Stream.cuda(0), situation.workspace, args, "stream"),
        (bk.Stream.cpu(), None, args, "workspace"),
        (bk.Stream.cpu(), situation.workspace, {"x": 1}, "args"),
        (bk.Stream.cpu(), situation.workspace, None, "args"),
    ):
        with pytest.raises(bk.InvalidProblem, match=name):
            run(stream, workspace, operands)
    for stream, descriptor, preference, name in (
        ("cpu", situation.descriptor, None, "stream"),
        (bk.Stream.cpu(), "problem", None, "descriptor"),
        (bk.Stream.cpu(), situation.descriptor, "fast", "preference"),
    ):
        with pytest.raises(bk.InvalidProblem, match=name):
            situation.plan_type.select(stream, descriptor, preference)
    for placed in situation.placed.values():
        assert placed.is_untouched()


def test_workspace_too_small() -> None:
    situation = Situation("toy")
    args = ToyArgs(**situation.views)
    assert situation.plan.workspace_size > 0
    for workspace, got in (
        (bk.Workspace.none(), 0),
        (bk.Workspace.borrowed(numpy.zeros(situation.plan.workspace_size - 1, numpy.uint8)), situation.plan.workspace_size - 1),
    ):
        with pytest.raises(bk.WorkspaceTooSmall) as caught:
            situation.plan.run(bk.Stream.cpu(), workspace, args)
        assert (caught.value.needed, caught.value.got) == (situation.plan.workspace_size, got)
        assert isinstance(caught.value, ValueError)
        assert "ToyPlan" in str(caught.value)
        assert all(placed.is_untouched() for placed in situation.placed.values())


def test_workspace_that_is_not_memory_of_its_own() -> None:
    situation = Situation("toy")
    args = ToyArgs(**situation.views)
    inside = bk.Workspace.borrowed(situation.placed["x"].bytes)
    with pytest.raises(bk.InvalidProblem, match="workspace overlaps another operand"):
        situation.plan.run(bk.Stream.cpu(), inside, args)
    off = numpy.zeros(situation.plan.workspace_size + 64, numpy.uint8)
    start = (-off.ctypes.data) % 16 + 1
    with pytest.raises(bk.MisalignedOperand, match="workspace"):
        situation.plan.run(bk.Stream.cpu(), bk.Workspace.borrowed(off[start:]), args)
    for buffer in (numpy.zeros(100, numpy.float32), numpy.zeros((10, 10), numpy.uint8), numpy.zeros(100, numpy.uint8)[::2]):
        with pytest.raises(bk.InvalidProblem, match="buffer"):
            bk.Workspace.borrowed(buffer)


def test_operand_that_must_be_left_out() -> None:
    descriptor = ToyDescriptor((4, 8), False, bk.ElementKind.F32)
    plan = ToyPlan.select(bk.Stream.cpu(), descriptor)
    verdict = plan.can_implement(ToyArgs(x=numpy.zeros((4, 8), "f4"), bias=numpy.zeros(8, "f4"), total=numpy.zeros(8, "f4")))
    assert [reason.code for reason in verdict.reasons] == [bk.ReasonCode.UNEXPECTED_OPERAND]


def test_backend_failure_is_chained() -> None:
    descriptor = ToyDescriptor((4, 8), False, bk.ElementKind.F32)
    plan = ToyPlan.force("toy.broken", bk.Stream.cpu(), descriptor)
    args = ToyArgs(x=numpy.zeros((4, 8), "f4"), total=numpy.zeros(8, "f4"))
    with pytest.raises(bk.KernelInternal, match=r"ToyPlan.*toy.broken") as caught:
        plan.run(bk.Stream.cpu(), bk.Workspace.none(), args)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(bk.KernelInternal, match="could not be prepared") as caught:
        ToyPlan.force("toy.unbuildable", bk.Stream.cpu(), descriptor)
    assert isinstance(caught.value.__cause__, ImportError)


def test_errors_survive_pickling() -> None:
    reason = bk.Reason(bk.ReasonCode.SHAPE, "x", (1,), (2,))
    for error in (
        bk.InvalidProblem("plan", [reason]),
        bk.Unsupported("plan", [reason], {"kernel": (reason,)}),
        bk.WorkspaceTooSmall(10, 3, "plan"),
        bk.BufferTooSmall(10, 3, "view", [reason]),
        bk.KernelInternal("plan"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
        assert copy.reasons == error.reasons


def test_classes_are_what_the_contract_says() -> None:
    assert issubclass(bk.InvalidProblem, ValueError)
    assert issubclass(bk.Unsupported, NotImplementedError)
    for kind in (bk.MisalignedOperand, bk.WorkspaceTooSmall, bk.BufferTooSmall):
        assert issubclass(kind, ValueError)
    assert issubclass(bk.KernelInternal, RuntimeError)
    assert {code.severity for code in bk.ReasonCode} == set(Severity)
