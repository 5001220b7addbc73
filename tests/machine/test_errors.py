"""Bad input, for every op and every operand: a typed error that names the operand, and nothing written."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core import registry
from baracuda_kernels.core.reason import Severity
from baracuda_kernels.verify.memory import Placed
from baracuda_kernels.verify.wrong_operands import WAYS, Situation, Spoiled

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


def situation_of(op: str) -> Situation:
    return Situation(OPS[op].select(bk.Stream.cpu(), _problem(OPS[op])))


@pytest.mark.parametrize(("op", "name"), OPERANDS, ids=[f"{op}.{name}" for op, name in OPERANDS])
@pytest.mark.parametrize("way", WAYS)
def test_a_spoiled_operand_is_refused_by_name(op: str, name: str, way: str) -> None:
    """A typed error that says what is wrong with which operand, and nothing written."""
    situation = situation_of(op)
    if name not in situation.views:
        pytest.skip("this operand must be left out of the problem tried")
    for spoiled in WAYS[way](situation, situation.operands[name]):
        assert situation.complaint(spoiled) is None
        with pytest.raises(spoiled.error, match=spoiled.operand) as caught:
            situation.run(**spoiled.changed)
        assert type(situation.plan).__name__.removesuffix("Plan") in str(caught.value)


@pytest.mark.parametrize("op", OPS)
def test_the_situation_itself_is_fine(op: str) -> None:
    situation = situation_of(op)
    assert situation.plan.can_implement(situation.args())
    situation.run()
    assert not situation.is_untouched(), "a run writes, so a refusal that wrote would be seen"


OPTIONAL = [(op, each.name) for op, plan in OPS.items() for each in plan.args_type.OPERANDS if each.present_rule is False]


@pytest.mark.parametrize(("op", "name"), OPTIONAL, ids=[f"{op}.{name}" for op, name in OPTIONAL])
def test_what_may_be_left_out(op: str, name: str) -> None:
    situation = situation_of(op)
    assert situation.plan.can_implement(situation.args(**{name: None}))


def test_every_way_to_spoil_an_operand_is_tried_on_some() -> None:
    situations = [situation_of(op) for op in OPS]
    for way in WAYS.values():
        assert any(list(way(situation, operand)) for situation in situations for operand in situation.operands.values())


@pytest.mark.parametrize("op", OPS)
def test_unknown_operand(op: str) -> None:
    spoiled = Spoiled("bogus", bk.ReasonCode.UNKNOWN_OPERAND, {"bogus": numpy.zeros(3)})
    assert situation_of(op).complaint(spoiled) is None


@pytest.mark.parametrize("op", OPS)
def test_every_reason_is_found_not_the_first(op: str) -> None:
    situation = situation_of(op)
    wrong = {name: Placed((3,), bk.ElementKind.C128, "contiguous").view() for name in situation.views}
    verdict = situation.plan.can_implement(situation.args(**wrong))
    assert not verdict
    found = {(reason.where, reason.code) for reason in verdict.reasons}
    assert found >= {(name, code) for name in wrong for code in (bk.ReasonCode.SHAPE, bk.ReasonCode.ELEMENT)}
    with pytest.raises(bk.InvalidProblem):
        verdict.raise_if_rejected()


@pytest.mark.parametrize("op", OPS)
def test_wrong_kinds_of_argument(op: str) -> None:
    situation = situation_of(op)
    args = situation.args()
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
            type(situation.plan).select(stream, descriptor, preference)
    assert situation.is_untouched()


def test_a_wrong_option_is_typed() -> None:
    """Of every function, also where it would be compared or converted."""
    x, raw = numpy.ones((2, 3), numpy.float32), []
    for name, function in registry.functions().items():
        usual = dict.fromkeys(function.inputs, x) | {each.name: 1 for each in function.options.values() if each.is_required}
        for option in function.options.keys() & function.public.parameters.keys():
            for wrong in (object(), [None], "text", 1j, numpy.float32(2) if option == "dim" else {}):
                try:
                    function(**usual | {option: wrong})
                except bk.Error:
                    continue
                except Exception as error:
                    raw.append((name, option, wrong, error))
    assert raw == []
    with pytest.raises(bk.InvalidProblem, match="abs is missing"):
        bk.polar_backward(x.astype(numpy.complex64), None, x)


def test_workspace_too_small() -> None:
    situation = situation_of("toy")
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
        assert situation.is_untouched()


def test_workspace_that_is_not_memory_of_its_own() -> None:
    situation = situation_of("toy")
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
    with pytest.raises(bk.Error, match=r"Workspace: view .*got ndarray, wanted Workspace\.borrowed"):
        bk.Workspace(numpy.zeros(16, numpy.uint8))  # type: ignore[arg-type]


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
    with pytest.raises(bk.KernelInternal, match=r"ToyPlan.*could not be timed") as caught:
        ToyPlan.force("toy.broken", bk.Stream.cpu(), descriptor, bk.PlanPreference(effort=bk.Effort.MEASURE))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_what_goes_wrong_while_a_layout_is_bound_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    descriptor = ToyDescriptor((4, 8), False, bk.ElementKind.F32)
    plan = ToyPlan.select(bk.Stream.cpu(), descriptor)
    args = ToyArgs(x=numpy.zeros((4, 8), "f4"), total=numpy.zeros(8, "f4"))

    def refuse(layouts: Any) -> Any:
        raise RuntimeError("Could not determine home directory.")

    with monkeypatch.context() as failing:
        failing.setattr(plan, "_bind", refuse)
        for use in (plan.admit, lambda args: plan.run(bk.Stream.cpu(), bk.Workspace.none(), args)):
            with pytest.raises(bk.KernelInternal, match=r"ToyPlan: .* could not be bound for .*: Could not determine") as caught:
                use(args)
            assert isinstance(caught.value.__cause__, RuntimeError)
    plan.run(bk.Stream.cpu(), bk.Workspace.none(), args)  # nothing of the failure is remembered


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
