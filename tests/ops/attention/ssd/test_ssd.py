"""What is particular to the SSD chunk scan: its rules, its extremes, its derivative, its order of computation."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.ops.attention.ssd import (
    SsdChunkScanArgs,
    SsdChunkScanBackwardArgs,
    SsdChunkScanBackwardDescriptor,
    SsdChunkScanBackwardPlan,
    SsdChunkScanDescriptor,
    SsdChunkScanPlan,
)
from baracuda_kernels.verify.trial import random_inputs, run_trial

CPU = bk.Stream.cpu()
F16, F32, F64 = bk.ElementKind.F16, bk.ElementKind.F32, bk.ElementKind.F64
BOTH = (SsdChunkScanPlan, SsdChunkScanBackwardPlan)


def _problem(plan: Any, *extents: int, element: bk.ElementKind = F32, **rest: Any) -> Any:
    """Batch, length, heads, head_dim, state_dim, chunk."""
    return plan.descriptor_type(*extents, element, **rest)


def _outputs(plan_type: Any, descriptor: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """What a plan computes, as float64, checked against the reference on the way."""
    trial = run_trial(plan_type.select(CPU, descriptor), inputs)
    return {name: trial.operands[name].values for name in trial.errors}


# --- rules ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("descriptor_type", [SsdChunkScanDescriptor, SsdChunkScanBackwardDescriptor])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_size", -1), ("seq_len", -1), ("num_heads", -1), ("head_dim", -2), ("state_dim", -3), ("chunk_size", 0),
        ("chunk_size", -64), ("num_groups", 3), ("num_groups", 0), ("num_groups", -1), ("num_groups", 8), ("dt_element", F64),
        ("dt_element", F16), ("dt_element", bk.ElementKind.I32), ("has_initial_state", 1), ("seq_len", 2.0),
    ],
)  # fmt: skip
def test_nonsense_is_refused(descriptor_type: Any, field: str, value: Any) -> None:
    fields = {"batch_size": 2, "seq_len": 9, "num_heads": 4, "head_dim": 5, "state_dim": 3, "chunk_size": 4, "element": F32}
    with pytest.raises(bk.InvalidProblem) as refusal:
        descriptor_type(**(fields | {field: value}))
    assert [reason.where for reason in refusal.value.reasons] == [field]


def test_step_lengths_may_be_f32_beside_halves() -> None:
    for element in (F16, bk.ElementKind.BF16):
        descriptor = SsdChunkScanDescriptor(1, 4, 2, 3, 5, 4, element, dt_element=F32)
        assert SsdChunkScanPlan.select(CPU, descriptor).sku.aux_element is F32
    assert SsdChunkScanPlan.select(CPU, SsdChunkScanDescriptor(1, 4, 2, 3, 5, 4, F16)).sku.aux_element is F16
    with pytest.raises(bk.InvalidProblem):
        SsdChunkScanDescriptor(1, 4, 2, 3, 5, 4, F16, dt_element=bk.ElementKind.BF16)


@pytest.mark.parametrize("plan_type", BOTH)
@pytest.mark.parametrize("field", ["head_dim", "state_dim"])
def test_wider_than_served(plan_type: Any, field: str) -> None:
    descriptor = replace(_problem(plan_type, 1, 4, 1, 256, 256, 64), **{field: 257})
    with pytest.raises(bk.Unsupported, match=f"{field} is beyond what this kernel supports: got 257, wanted at most 256"):
        plan_type.select(CPU, descriptor)


@pytest.mark.parametrize("plan_type", BOTH)
def test_states_are_there_exactly_when_the_descriptor_says(plan_type: Any) -> None:
    without, given = (_problem(plan_type, 1, 4, 2, 3, 5, 4, has_initial_state=h, has_final_state=h) for h in (False, True))
    names = [operand.name for operand in plan_type.args_type.OPERANDS if "state" in operand.name]
    arrays = {operand.name: numpy.zeros(operand.shapes(given)[0], numpy.float32) for operand in plan_type.args_type.OPERANDS}
    no_states = {name: array for name, array in arrays.items() if name not in names}
    assert plan_type.select(CPU, given).can_implement(plan_type.args_type(**arrays))
    assert plan_type.select(CPU, without).can_implement(plan_type.args_type(**no_states))
    missing = plan_type.select(CPU, given).can_implement(plan_type.args_type(**no_states))
    assert [(r.where, r.code) for r in missing.reasons] == [(name, bk.ReasonCode.MISSING_OPERAND) for name in names]
    unexpected = plan_type.select(CPU, without).can_implement(plan_type.args_type(**arrays))
    assert [(r.where, r.code) for r in unexpected.reasons] == [(name, bk.ReasonCode.UNEXPECTED_OPERAND) for name in names]


@pytest.mark.parametrize("plan_type", BOTH)
def test_last_axis_must_be_side_by_side(plan_type: Any) -> None:
    descriptor = _problem(plan_type, 1, 4, 2, 3, 5, 4, has_initial_state=True, has_final_state=True)
    plan = plan_type.select(CPU, descriptor)
    arrays = {o.name: numpy.zeros(o.shapes(descriptor)[0], numpy.float32) for o in plan_type.args_type.OPERANDS}
    for name, array in arrays.items():
        spread = numpy.zeros((*array.shape[:-1], 2 * array.shape[-1]), numpy.float32)[..., ::2]
        verdict = plan.can_implement(plan_type.args_type(**(arrays | {name: spread})))
        allowed = name in ("dt", "a", "d_dt", "d_a")
        assert [(r.where, r.code) for r in verdict.reasons] == ([] if allowed else [(name, bk.ReasonCode.STRIDE)])


def test_workspace_is_at_most_a_state_per_chunk_and_three_backwards() -> None:
    for plan_type, allowed in ((SsdChunkScanPlan, 1), (SsdChunkScanBackwardPlan, 3)):
        drawn = [plan_type.cases.draw(random.Random(seed), random.Random(seed).choice(FLOATS)) for seed in range(300)]
        corners = [descriptor for element in FLOATS for descriptor in plan_type.cases.corners(element)]
        large = [_problem(plan_type, 2, 10_000, 6, 64, 128, chunk) for chunk in (1, 63, 64, 65, 100, 128, 256, 1000, 20_000)]
        for descriptor in (*drawn, *corners, *large):
            chunks = -(-descriptor.seq_len // descriptor.chunk_size)
            state = descriptor.head_dim * descriptor.state_dim * (8 if descriptor.element is F64 else 4)
            bound = allowed * descriptor.batch_size * descriptor.num_heads * chunks * state
            for kernel in plan_type.kernels:
                assert kernel.workspace(descriptor) <= bound, (kernel.name, descriptor)


# --- what is computed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan_type", BOTH)
def test_no_steps(plan_type: Any, rng: Any) -> None:
    """The state goes through, and so does its gradient; d_a is a sum over nothing."""
    descriptor = _problem(plan_type, 2, 0, 3, 4, 5, 16, has_initial_state=True, has_final_state=True)
    inputs = random_inputs(plan_type, descriptor, rng)
    result = _outputs(plan_type, descriptor, inputs)
    if plan_type is SsdChunkScanPlan:
        assert numpy.array_equal(result["final_state"], inputs["initial_state"])
        del inputs["initial_state"]
        assert not _outputs(plan_type, replace(descriptor, has_initial_state=False), inputs)["final_state"].any()
    else:
        assert numpy.array_equal(result["d_initial_state"], inputs["d_final_state"])
        assert not result["d_a"].any()


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("plan_type", BOTH)
def test_extreme_decays(plan_type: Any, element: bk.ElementKind, rng: Any) -> None:
    """dt·|A| = 50 beside 0.01 in one chunk, steps that all forget, and A = 0: every output within the bound."""
    descriptor = _problem(plan_type, 1, 300, 5, 8, 16, 128, element=element, has_initial_state=True, has_final_state=True)
    a = numpy.array([-50.0, -1.0, 0.0, -8.0, -0.5])
    dt = numpy.where(rng.random((1, 300, 5)) < 0.1, 50.0, 0.01) / numpy.where(a == 0, 1.0, -a)
    dt[..., 3] = 50.0 / 8.0
    dt[..., 4] = rng.uniform(0.0, 0.02, (1, 300))
    inputs = random_inputs(plan_type, descriptor, rng) | {"a": a, "dt": dt}
    inputs = {
        operand.name: rounded(inputs[operand.name], operand.element(descriptor))
        for operand in plan_type.args_type.OPERANDS
        if operand.name in inputs
    }
    _outputs(plan_type, descriptor, inputs)
    # Each head alone: no other head's size hides its error.
    for head in range(5):
        alone = {name: value[head : head + 1] if name == "a" else _one_head(name, value, head) for name, value in inputs.items()}
        _outputs(plan_type, replace(descriptor, num_heads=1), alone)


def test_gradients_of_a_single_head(rng: Any) -> None:
    """d_a is one number then, which cancels by chance in some of these problems; every output holds the bound in all of them."""
    for _ in range(300):
        length, head_dim, state_dim = rng.integers((2, 3, 3), (80, 25, 25)).tolist()
        states = dict.fromkeys(("has_initial_state", "has_final_state"), bool(rng.random() < 0.5))
        descriptor = _problem(SsdChunkScanBackwardPlan, 1, length, 1, head_dim, state_dim, 64, **states)
        _outputs(SsdChunkScanBackwardPlan, descriptor, random_inputs(SsdChunkScanBackwardPlan, descriptor, rng))


@pytest.mark.parametrize("element", [F32, bk.ElementKind.BF16])
@pytest.mark.parametrize("extents", [(1, 9, 1, 1, 1, 64), (2, 70, 3, 5, 4, 64), (2, 150, 2, 70, 33, 128), (1, 20, 1, 256, 256, 64)])
def test_rates_whose_gradients_cancel(extents: Any, element: bk.ElementKind, rng: Any) -> None:
    """Two gradients of the output, weighed so that nothing is left of d_a but what their rounding leaves."""
    plan_type = SsdChunkScanBackwardPlan
    options = {"element": element, "dt_element": F32, "num_groups": 1, "has_initial_state": True, "has_final_state": True}
    descriptor = _problem(plan_type, *extents, **options)
    one = random_inputs(plan_type, descriptor, rng)
    other = one | {name: random_inputs(plan_type, descriptor, rng)[name] for name in ("dy", "d_final_state")}
    left, right = (plan_type.reference(descriptor, **each)[4] for each in (one, other))
    for name, kind, by_head in (("dy", element, (-1, 1)), ("d_final_state", F32, (-1, 1, 1))):
        mixed = one[name] * (right / numpy.hypot(left, right)).reshape(by_head)
        mixed -= other[name] * (left / numpy.hypot(left, right)).reshape(by_head)
        one[name] = rounded(mixed, kind)
    assert numpy.linalg.norm(plan_type.reference(descriptor, **one)[4]) < 1e-2 * numpy.linalg.norm((left, right))
    for layout in ("contiguous", "gaps"):
        run_trial(plan_type.select(CPU, descriptor), one, layout)


def _one_head(name: str, value: Any, head: int) -> Any:
    return value[:, head : head + 1] if name.endswith("state") else value[:, :, head : head + 1]


@pytest.mark.parametrize("rate", [None, 0.0])
@pytest.mark.parametrize("plan_type", BOTH)
def test_long_sequences(plan_type: Any, rate: float | None, rng: Any) -> None:
    descriptor = _problem(plan_type, 1, 65_536, 2, 3, 5, 128, has_initial_state=True, has_final_state=True)
    inputs = random_inputs(plan_type, descriptor, rng)
    if rate is not None:
        inputs["a"] = numpy.full(2, rate)
    _outputs(plan_type, descriptor, inputs)


def test_backward_is_the_derivative_of_forward(rng: Any) -> None:
    """Central differences of the forward kernel in f64, independent of the backward's formulas."""
    extents = (2, 70, 4, 3, 2, 64)
    options = {"element": F64, "num_groups": 2, "has_initial_state": True, "has_final_state": True}
    forward, backward = (_problem(plan, *extents, **options) for plan in BOTH)
    inputs = random_inputs(SsdChunkScanPlan, forward, rng)
    upstream = {"dy": rng.standard_normal(forward.x_shape), "d_final_state": rng.standard_normal(forward.state_shape)}
    gradients = _outputs(SsdChunkScanBackwardPlan, backward, inputs | upstream)
    plan = SsdChunkScanPlan.select(CPU, forward)
    workspace = bk.Workspace.borrowed(numpy.empty(plan.workspace_size, numpy.uint8))
    y, state = numpy.empty(forward.x_shape), numpy.empty(forward.state_shape)

    def loss(**changed: Any) -> float:
        plan.run(CPU, workspace, SsdChunkScanArgs(**(inputs | changed), y=y, final_state=state))
        return float((y * upstream["dy"]).sum() + (state * upstream["d_final_state"]).sum())

    names = {"x": "dx", "b": "d_b", "c": "d_c", "dt": "d_dt", "a": "d_a", "initial_state": "d_initial_state"}
    for name, gradient in names.items():
        for _ in range(6):  # along random directions, which every element takes part in
            direction = rng.standard_normal(inputs[name].shape)
            step = 1e-6 * direction
            slope = (loss(**{name: inputs[name] + step}) - loss(**{name: inputs[name] - step})) / 2e-6
            assert slope == pytest.approx(float((gradients[gradient] * direction).sum()), rel=1e-6, abs=1e-6), name
    for index in ((0, 0, 0), (1, 63, 3), (0, 64, 1), (1, 69, 2)):
        step = numpy.zeros(inputs["dt"].shape)
        step[index] = 1e-6
        slope = (loss(dt=inputs["dt"] + step) - loss(dt=inputs["dt"] - step)) / 2e-6
        assert slope == pytest.approx(gradients["d_dt"][index], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("plan_type", BOTH)
def test_chunk_size_changes_nothing_but_rounding(plan_type: Any, rng: Any) -> None:
    descriptor = _problem(plan_type, 1, 333, 2, 9, 7, 1, has_initial_state=True, has_final_state=True)
    inputs = random_inputs(plan_type, descriptor, rng)
    first = _outputs(plan_type, descriptor, inputs)
    for chunk in (16, 64, 65, 128, 200, 333, 5000):
        for name, value in _outputs(plan_type, replace(descriptor, chunk_size=chunk), inputs).items():
            assert numpy.linalg.norm(value - first[name]) <= 4e-6 * numpy.linalg.norm(first[name])


@pytest.mark.parametrize("plan_type", BOTH)
def test_heads_of_a_group_share_b_and_c(plan_type: Any, rng: Any) -> None:
    """Head h reads group h // (H/G): the same as with b and c repeated, and their gradients summed."""
    grouped = _problem(plan_type, 2, 70, 6, 5, 4, 64, element=F64, num_groups=2)
    inputs = random_inputs(plan_type, grouped, rng)
    repeated = inputs | {name: inputs[name].repeat(3, axis=2) for name in ("b", "c")}
    together = _outputs(plan_type, grouped, inputs)
    apart = _outputs(plan_type, replace(grouped, num_groups=None), repeated)
    for name, value in apart.items():
        wanted = value.reshape(2, 70, 2, 3, 4).sum(axis=3) if name in ("d_b", "d_c") else value
        assert numpy.allclose(together[name], wanted, rtol=1e-12, atol=1e-12), name


def test_special_numbers_do_not_go_back_in_time(rng: Any) -> None:
    """A NaN at one step reaches that head's later outputs and no others; of gradients, the earlier ones."""
    forward, backward = (_problem(plan, 1, 150, 2, 5, 20, 128) for plan in BOTH)
    for step in (0, 2, 63, 64, 101):
        for name in ("x", "b", "c"):
            inputs = random_inputs(SsdChunkScanPlan, forward, rng)
            inputs[name][0, step, 1, 3] = numpy.nan
            bad = numpy.isnan(_outputs(SsdChunkScanPlan, forward, inputs)["y"]).any(axis=-1)[0]
            reached = numpy.arange(150) == step if name == "c" else numpy.arange(150) >= step
            assert numpy.array_equal(bad[:, 1], reached)
            assert not bad[:, 0].any()
        inputs = random_inputs(SsdChunkScanBackwardPlan, backward, rng)
        inputs["dy"][0, step, 1, 3] = numpy.nan
        result = _outputs(SsdChunkScanBackwardPlan, backward, inputs)
        for name in ("dx", "d_b"):
            bad = numpy.isnan(result[name]).any(axis=-1)[0]
            assert numpy.array_equal(bad[:, 1], numpy.arange(150) <= step)
            assert not bad[:, 0].any()
        assert numpy.array_equal(numpy.isnan(result["d_a"]), [False, True])


def test_infinite_rates_forget_at_once(rng: Any) -> None:
    descriptor = _problem(SsdChunkScanPlan, 1, 70, 1, 3, 4, 64)
    inputs = random_inputs(SsdChunkScanPlan, descriptor, rng) | {"a": numpy.array([-numpy.inf])}
    _outputs(SsdChunkScanPlan, descriptor, inputs)


# --- order ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, 1, 2])
@pytest.mark.parametrize("plan_type", BOTH)
def test_bits_do_not_depend_on_threads(plan_type: Any, groups: int | None, rng: Any, threads: Any) -> None:
    """Few threads walk along the sequence head by head, many share its spans: the same bits."""
    descriptor = _problem(plan_type, 1, 700, 4, 40, 33, 128, num_groups=groups, has_initial_state=True, has_final_state=True)
    plan, inputs = plan_type.select(CPU, descriptor), random_inputs(plan_type, descriptor, rng)
    seen = set()
    for count in (1, 2, 3, 8, 70):
        threads(count)
        seen.add(tuple(run_trial(plan, inputs).bits.values()))
    assert len(seen) == 1


@pytest.mark.parametrize("plan_type", BOTH)
def test_a_sequence_does_not_depend_on_its_batch(plan_type: Any, rng: Any) -> None:
    descriptor = _problem(plan_type, 3, 130, 4, 17, 19, 64, num_groups=2, has_initial_state=True, has_final_state=True)
    inputs = random_inputs(plan_type, descriptor, rng)
    together = _outputs(plan_type, descriptor, inputs)
    for number in range(3):
        single = {name: value if name == "a" else value[number : number + 1] for name, value in inputs.items()}
        for name, value in _outputs(plan_type, replace(descriptor, batch_size=1), single).items():
            if name != "d_a":  # a sum over the batch
                assert numpy.array_equal(value[0], together[name][number]), name


@pytest.mark.parametrize("plan_type", BOTH)
def test_the_thread_keeps_its_subnormal_numbers(plan_type: Any, rng: Any) -> None:
    """Kernels flush numbers too small to be normal, but only while they run."""
    descriptor = _problem(plan_type, 1, 70, 2, 3, 4, 64)
    _outputs(plan_type, descriptor, random_inputs(plan_type, descriptor, rng))
    assert numpy.float32(1e-38) * numpy.float32(0.1) > 0


def test_args_of_the_backward_are_checked_as_fully() -> None:
    descriptor = _problem(SsdChunkScanBackwardPlan, 1, 4, 2, 3, 5, 4)
    wrong = {o.name: numpy.zeros((1,), numpy.int32) for o in SsdChunkScanBackwardArgs.OPERANDS if o.presence(descriptor)}
    verdict = SsdChunkScanBackwardPlan.select(CPU, descriptor).can_implement(SsdChunkScanBackwardArgs(**wrong))
    for code in (bk.ReasonCode.SHAPE, bk.ReasonCode.ELEMENT):
        assert {reason.where for reason in verdict.reasons if reason.code is code} == set(wrong)


@pytest.mark.parametrize(("groups", "others"), [(None, "gradients_of_lone_heads"), (1, "gradients_of_heads")])
def test_operands_without_vectors_have_bodies_of_their_own_on_cuda(
    groups: int | None, others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a chunk is one program; interpreted, in f16, as the interpreter cannot multiply the bf16 that is computed so."""
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    from baracuda_kernels.ops.attention.ssd import tiles_backward
    from baracuda_kernels.targets.cuda.runtime import interpret

    block = tiles_backward.SsdBlock(16, 16, 4, 3)
    monkeypatch.setattr(tiles_backward, "backward_tile", lambda _: tiles_backward.SsdBackwardTile(64, block, block, block, True))
    taken, form_for = [], interpret._form_for

    def watched(*arguments: Any) -> Any:
        taken.append(form_for(*arguments).body.__name__)
        return form_for(*arguments)

    monkeypatch.setattr(interpret, "_form_for", watched)
    problem = SsdChunkScanBackwardDescriptor(1, 130, 2, 16, 16, 64, F16, F32, groups)
    inputs = random_inputs(SsdChunkScanBackwardPlan, problem, numpy.random.default_rng(1))
    plan = SsdChunkScanBackwardPlan.force("triton.ssd_chunk_scan_backward", CPU, problem)
    for layout, body in (("contiguous", "gradients_of_chunks"), ("every_second", others)):
        taken.clear()
        run_trial(plan, inputs, layout)
        assert body in taken
