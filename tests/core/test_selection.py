"""Choosing a kernel: every reason kept, every preference honoured."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import kernel as kernel_module
from baracuda_kernels.core import race, wisdom
from baracuda_kernels.core.sku import MathPrecision

from conftest import DEVICE, PLANS, STREAM
from toy import ToyDescriptor, ToyPlan

CPU = bk.Stream.cpu()
PROBLEM = ToyDescriptor((5, 8), True, bk.ElementKind.F32)


def _softmax(**changed: Any) -> bk.SoftmaxDescriptor:
    fields = {"kind": bk.SoftmaxKind.SOFTMAX, "input_shape": (4, 8), "softmax_axis": 1, "element": bk.ElementKind.F32}
    return bk.SoftmaxDescriptor(**(fields | changed))


def test_stated_order_and_every_reason() -> None:
    plan = ToyPlan.select(CPU, PROBLEM)
    assert plan.sku.name == "toy.sum"
    assert set(plan.rejected) == {"toy.cuda", "toy.few", "toy.racy", "toy.broken", "toy.unbuildable"}
    assert [reason.code for reason in plan.rejected["toy.few"]] == [bk.ReasonCode.LIMIT]
    assert bk.ReasonCode.OTHER_DEVICE in {reason.code for reason in plan.rejected["toy.cuda"]}
    assert [reason.code for reason in plan.rejected["toy.racy"]] == [bk.ReasonCode.LATER_IN_ORDER]


def test_all_of_a_candidates_reasons() -> None:
    preference = bk.PlanPreference(bk.BackendKind.TRITON, 0, bk.Determinism.RUN_TO_RUN, True)
    with pytest.raises(bk.Unsupported) as caught:
        ToyPlan.select(CPU, PROBLEM, preference)
    codes = {name: {reason.code for reason in reasons} for name, reasons in caught.value.candidates.items()}
    assert codes["toy.sum"] == {bk.ReasonCode.NOT_PREFERRED, bk.ReasonCode.WORKSPACE_LIMIT}
    assert codes["toy.few"] == {bk.ReasonCode.NOT_PREFERRED, bk.ReasonCode.LIMIT}
    assert codes["toy.racy"] >= {bk.ReasonCode.NOT_DETERMINISTIC, bk.ReasonCode.NOT_BATCH_INVARIANT}
    assert all(codes.values())
    for name in codes:
        assert name in str(caught.value)


@pytest.mark.parametrize(("op", "kernel"), [("sdpa", "triton.sdpa_tf32"), ("sdpa_backward", "triton.sdpa_backward_tf32")])
def test_products_in_tf32_are_for_those_who_allow_them(op: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    problem = next(PLANS[op].cases.corners(bk.ElementKind.F32))
    asked = bk.PlanPreference(bk.BackendKind.TRITON)
    plan = PLANS[op].select(STREAM, problem, asked)
    (reason,) = plan.rejected[kernel]
    assert reason.code is bk.ReasonCode.REDUCED_PRECISION and "TF32" in str(reason) and "allow_tf32" in str(reason)
    assert plan.precision_guarantee.math_precision is MathPrecision.F32
    with pytest.raises(bk.Unsupported) as refusal:
        PLANS[op].force(kernel, STREAM, problem, asked)
    assert refusal.value.candidates[kernel] == (reason,)
    for coarse in (
        PLANS[op].select(STREAM, problem, dataclasses.replace(asked, allow_tf32=True)),
        PLANS[op].force(kernel, STREAM, problem),
    ):
        assert coarse.sku.name == kernel and coarse.precision_guarantee.math_precision is MathPrecision.TF32


def test_sku_says_who_it_is() -> None:
    plan = bk.SoftmaxPlan.select(CPU, _softmax(element=bk.ElementKind.BF16))
    sku = plan.sku
    assert (sku.category, sku.op, sku.element) == (bk.OpCategory.SOFTMAX, bk.SoftmaxKind.SOFTMAX, bk.ElementKind.BF16)
    assert (sku.backend, sku.aux_element, sku.name) == (bk.BackendKind.NUMBA, None, "numba.softmax")
    assert sku == bk.SoftmaxPlan.select(CPU, _softmax(element=bk.ElementKind.BF16)).sku
    assert len({sku, plan.sku}) == 1
    with pytest.raises(AttributeError):
        plan.sku = sku  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        sku.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("backend", [bk.BackendKind.NUMBA, bk.BackendKind.ATEN, "aten"])
def test_prefer_backend(backend: Any) -> None:
    plan = bk.SoftmaxPlan.select(CPU, _softmax(), bk.PlanPreference(prefer_backend=backend))
    assert plan.sku.backend is bk.BackendKind(str(backend))


def test_prefer_backend_that_is_not_here() -> None:
    with pytest.raises(bk.Unsupported, match="is not the preferred backend"):
        bk.SoftmaxPlan.select(CPU, _softmax(), bk.PlanPreference(prefer_backend=bk.BackendKind.TRITON))


def test_workspace_limit() -> None:
    needed = ToyPlan.select(CPU, PROBLEM).workspace_size
    assert needed == 64
    assert ToyPlan.select(CPU, PROBLEM, bk.PlanPreference(max_workspace_bytes=needed)).sku.name == "toy.sum"
    below = ToyPlan.select(CPU, PROBLEM, bk.PlanPreference(max_workspace_bytes=needed - 1))
    assert below.sku.name == "toy.racy"
    assert [reason.code for reason in below.rejected["toy.sum"]] == [bk.ReasonCode.WORKSPACE_LIMIT]


def test_determinism_and_batch_invariance() -> None:
    wide = ToyDescriptor((5, 8), True, bk.ElementKind.F64)
    assert ToyPlan.select(CPU, wide).sku.name == "toy.racy"
    for preference in (bk.PlanPreference(determinism=bk.Determinism.RUN_TO_RUN), bk.PlanPreference(batch_invariant=True)):
        with pytest.raises(bk.Unsupported):
            ToyPlan.select(CPU, wide, preference)
        assert ToyPlan.select(CPU, PROBLEM, preference).precision_guarantee.deterministic


@pytest.mark.parametrize(
    "wrong",
    [
        {"effort": 3},
        {"determinism": "sometimes"},
        {"batch_invariant": 1},
        {"max_workspace_bytes": -1},
        {"max_workspace_bytes": True},
    ],
)
def test_nonsense_preferences(wrong: Any) -> None:
    with pytest.raises(bk.InvalidProblem, match=next(iter(wrong))):
        bk.PlanPreference(**wrong)


def test_measure_takes_the_fastest_and_remembers(monkeypatch: Any) -> None:
    asked = []

    def seconds(plans: Any, stream: Any) -> dict[str, float]:
        asked.extend(plans)
        return {name: {"numba.softmax": 2e-6, "aten.softmax": 1e-6}[name] for name in plans}

    monkeypatch.setattr(race, "measure", seconds)
    monkeypatch.setattr(wisdom, "measured", wisdom.Wisdom())
    preference = bk.PlanPreference(effort=bk.Effort.MEASURE)
    for _ in range(3):
        plan = bk.SoftmaxPlan.select(CPU, _softmax(), preference)
        assert plan.sku.name == "aten.softmax"
        (reason,) = plan.rejected["numba.softmax"]
        assert reason.code is bk.ReasonCode.SLOWER
        assert "2.0 µs" in str(reason)
    assert sorted(asked) == ["aten.softmax", "numba.softmax"]
    assert bk.SoftmaxPlan.select(CPU, _softmax()).sku.name == "numba.softmax"


@pytest.mark.parametrize("op", PLANS)
def test_measure_runs_for_real(op: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.005)
    plan_type = PLANS[op]
    element = bk.ElementKind.BF16 if bk.ElementKind.BF16 in plan_type.kernels[0].elements else bk.ElementKind.F32
    descriptor = next(
        d for d in plan_type.cases.corners(element) if all(o.size(d) for o in plan_type.args_type.OPERANDS if o.is_given(d, True))
    )
    plan = plan_type.select(CPU, descriptor, bk.PlanPreference(effort=bk.Effort.MEASURE))
    assert plan.rejected and all(reasons for reasons in plan.rejected.values())
    assert plan.sku.name not in plan.rejected and plan.seconds is not None and plan.seconds > 0


def test_a_tile_that_does_not_fit_is_left_out_of_the_race(monkeypatch: Any) -> None:
    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.005)
    monkeypatch.setattr(wisdom, "measured", wisdom.Wisdom())
    own = bk.SoftmaxPlan.kernels[0]  # whose entry takes no tile at all
    monkeypatch.setattr(bk.SoftmaxPlan, "kernels", (dataclasses.replace(own, other_tiles=lambda _: ["odd"]),))
    plan = bk.SoftmaxPlan.select(CPU, _softmax(), bk.PlanPreference(effort="MEASURE"))
    assert plan.tile is None
    (reason,) = plan.rejected["numba.softmax odd"]
    assert reason.code is bk.ReasonCode.CANNOT_MEASURE


def test_measure_without_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr(race, "_random_operand", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(bk.Unsupported, match="could not be timed here"):
        bk.SoftmaxPlan.select(CPU, _softmax(input_shape=(5, 7)), bk.PlanPreference(effort="MEASURE"))


@pytest.mark.parametrize(("cause", "extent"), [(MemoryError(), 77), (torch.OutOfMemoryError("CUDA out of memory"), 78)])
def test_measure_that_runs_out_of_memory_midway(cause: Exception, extent: int, monkeypatch: Any) -> None:
    launches = []

    def seconds(launch: Any, stream: Any) -> float:
        launches.append(launch)
        if len(launches) == 4:
            raise cause
        return 1.0

    monkeypatch.setattr(race, "_seconds", seconds)
    with pytest.raises(bk.Unsupported, match=r"could not be timed here: got .*memory") as caught:
        bk.SoftmaxPlan.select(CPU, _softmax(input_shape=(5, extent)), bk.PlanPreference(effort="MEASURE"))
    assert caught.value.__cause__ is cause
    assert len(launches) == 4
    monkeypatch.undo()
    bk.SoftmaxPlan.select(
        CPU, _softmax(input_shape=(5, extent)), bk.PlanPreference(effort="MEASURE")
    )  # nothing of it was remembered


def test_cuda_is_a_device_that_is_not_there(monkeypatch: Any) -> None:
    from baracuda_kernels.core import device

    monkeypatch.setattr(device, "cuda_device_count", lambda: 0)
    with pytest.raises(bk.Unsupported) as caught:
        bk.SoftmaxPlan.select(bk.Stream.cuda(0), _softmax())
    for reasons in caught.value.candidates.values():
        assert bk.ReasonCode.DEVICE_ABSENT in {reason.code for reason in reasons}
    with pytest.raises(bk.InvalidProblem, match="index"):
        bk.Stream.cuda(-1)


def test_a_backend_that_is_not_installed_is_a_reason(monkeypatch: Any) -> None:
    missing = {bk.BackendKind.NUMBA: ("numba",)}
    monkeypatch.setattr(kernel_module, "missing_packages", lambda backend: missing.get(backend, ()))
    plan = bk.SoftmaxPlan.select(CPU, _softmax())
    assert plan.sku.backend is bk.BackendKind.ATEN
    (reason,) = plan.rejected["numba.softmax"]
    assert reason.code is bk.ReasonCode.BACKEND_MISSING
    assert "pip install numba" in str(reason)


@pytest.mark.parametrize(
    ("changed", "error", "match"),
    [
        ({"input_shape": ()}, bk.InvalidProblem, "rank"),
        ({"input_shape": (4, -1)}, bk.InvalidProblem, "negative extent"),
        ({"softmax_axis": 2}, bk.InvalidProblem, "axis"),
        ({"softmax_axis": -1}, bk.InvalidProblem, "axis"),
        ({"softmax_axis": 1.0}, bk.InvalidProblem, "wrong type"),
        ({"softmax_axis": True}, bk.InvalidProblem, "wrong type"),
        ({"input_shape": 4}, bk.InvalidProblem, "wrong type"),
        ({"input_shape": "44"}, bk.InvalidProblem, "wrong type"),
        ({"input_shape": (4.0, 8)}, bk.InvalidProblem, "wrong type"),
        ({"element": "f32"}, bk.InvalidProblem, "ElementKind"),
        ({"kind": "softmax"}, bk.InvalidProblem, "SoftmaxKind"),
        ({"input_shape": (1,) * 9}, bk.Unsupported, "rank 9"),
        ({"element": bk.ElementKind.I32}, bk.Unsupported, "does not support this dtype"),
        ({"kind": bk.SoftmaxKind.SPARSEMAX}, bk.Unsupported, "SPARSEMAX"),
    ],
)
@pytest.mark.parametrize(
    "direction", [(bk.SoftmaxDescriptor, bk.SoftmaxPlan), (bk.SoftmaxBackwardDescriptor, bk.SoftmaxBackwardPlan)]
)
def test_softmax_problems_that_are_refused(direction: Any, changed: Any, error: Any, match: str) -> None:
    descriptor, plan = direction
    with pytest.raises(error, match=match):
        plan.select(CPU, descriptor(**({f.name: getattr(_softmax(), f.name) for f in dataclasses.fields(_softmax())} | changed)))


def test_descriptors_are_plain_hashable_data() -> None:
    first = _softmax(input_shape=[numpy.int64(4), 8])
    assert first == _softmax()
    assert hash(first) == hash(_softmax())
    assert first.input_shape == (4, 8)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.softmax_axis = 0  # type: ignore[misc]


def test_force_needs_a_kernel_of_that_name() -> None:
    with pytest.raises(bk.InvalidProblem, match=r"numba\.softmax or triton\.softmax or "):
        bk.SoftmaxPlan.force("cutlass.softmax", CPU, _softmax())
