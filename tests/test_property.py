"""Random problems and operands, valid and not: a result within the bound or a typed error with reasons, never anything else."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import baracuda_kernels as bk
from baracuda_kernels.check.memory import LAYOUTS, Placed
from baracuda_kernels.check.trial import mixed_layouts, random_inputs, run_trial
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.layout import row_major

from conftest import DEVICE, KERNELS, PLANS, STREAM, interprets_products

MANY = settings(
    max_examples=150 if DEVICE.kind is bk.DeviceKind.CPU else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.integers(0, 2**32 - 1)
FLOATS_OF = {
    op: [element for element in FLOATS if any(op == served and element in kernel.elements for served, kernel in KERNELS)]
    for op in PLANS
}


@pytest.mark.parametrize("op", PLANS)
@MANY
@given(seed=seeds, element=st.sampled_from(FLOATS), backend=st.sampled_from([None, *bk.BackendKind]))
def test_valid(op: str, seed: int, element: bk.ElementKind, backend: Any) -> None:
    plan_type, rng = PLANS[op], numpy.random.default_rng(seed)
    descriptor = plan_type.cases.draw(random.Random(seed), element)
    try:
        plan = plan_type.select(STREAM, descriptor, bk.PlanPreference(prefer_backend=backend))
    except bk.Unsupported as refusal:
        assert backend is not None or element not in FLOATS_OF[op], refusal
        assert refusal.reasons
        return
    if interprets_products(op, plan.kernel.name) and seed % 8:
        return  # a second for each would be minutes for all
    inputs = random_inputs(plan_type, descriptor, rng, with_optional=bool(seed % 2))
    trial = run_trial(plan, inputs, mixed_layouts(plan_type, rng), may_cancel=True)
    if trial.declined:
        assert plan.kernel.layout is not bk.LayoutSku.STRIDED
        assert {reason.code for reason in trial.declined} == {bk.ReasonCode.LAYOUT}


NONSENSE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.integers(2**62, 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(-2, 5), max_size=10),
    st.tuples(st.floats(), st.integers()),
    st.sampled_from([*bk.ElementKind, *bk.SoftmaxKind, object]),
)


@pytest.mark.parametrize("op", PLANS)
@MANY
@given(seed=seeds, data=st.data())
def test_descriptors_of_anything(op: str, seed: int, data: Any) -> None:
    """Any value in any field: a descriptor that can be selected or refused, or `InvalidProblem` with reasons."""
    plan_type = PLANS[op]
    valid = plan_type.cases.draw(random.Random(seed), bk.ElementKind.F32)
    fields = {field.name: getattr(valid, field.name) for field in dataclasses.fields(valid)}
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(fields)), NONSENSE, min_size=1, max_size=3))
    try:
        descriptor = plan_type.descriptor_type(**(fields | changed))
    except bk.InvalidProblem as refusal:
        assert refusal.reasons
        assert {reason.where for reason in refusal.reasons} & set(fields)
        return
    assert hash(descriptor) == hash(dataclasses.replace(descriptor))
    try:
        plan_type.select(bk.Stream.cpu(), descriptor)
    except bk.Unsupported as refusal:
        assert all(refusal.candidates.values())


def _spoil(choice: str, placed: Placed, chance: random.Random) -> Any:
    shape, element = placed.shape, placed.element
    if choice == "missing":
        return None
    if choice == "shape":
        return Placed((*shape, chance.randint(0, 3)), element, "contiguous").view()
    if choice == "element":
        return Placed(shape, chance.choice([kind for kind in bk.ElementKind if kind is not element]), "contiguous").view()
    if choice == "misaligned":
        room = numpy.zeros(math.prod(shape) * element.size + 16, numpy.uint8)
        return bk.TensorMut.strided(room[1:], shape, row_major(shape), element=element) if element.size > 1 else "not an array"
    if choice == "nonsense":
        return chance.choice([3, "text", [1.0], b"bytes", object(), numpy.zeros(2, "M8[s]"), numpy.zeros(2, "V3")])
    raise AssertionError(choice)


@pytest.mark.parametrize("op", PLANS)
@MANY
@given(
    seed=seeds,
    element=st.sampled_from(FLOATS),
    choice=st.sampled_from(["missing", "shape", "element", "misaligned", "nonsense"]),
    layout=st.sampled_from(sorted(LAYOUTS)),
)
def test_spoiled_args(op: str, seed: int, element: bk.ElementKind, choice: str, layout: str) -> None:
    """One operand made wrong: a typed error that names it, and no byte written anywhere."""
    plan_type, chance = PLANS[op], random.Random(seed)
    element = element if element in FLOATS_OF[op] else bk.ElementKind.F32
    descriptor = plan_type.cases.draw(chance, element)
    plan = plan_type.select(bk.Stream.cpu(), descriptor)
    given_operands = [o for o in plan_type.args_type.OPERANDS if o.presence(descriptor) is not False]
    victim = chance.choice([o for o in given_operands if o.presence(descriptor)])
    placed, views = {}, {}
    for operand in given_operands:
        used = "contiguous" if operand.writes or operand.layout_rule else layout
        placed[operand.name] = Placed(operand.shapes(descriptor)[0], operand.element(descriptor), used)
        views[operand.name] = placed[operand.name].view(operand.view)
    views[victim.name] = _spoil(choice, placed[victim.name], chance)
    workspace = bk.Workspace.borrowed(numpy.zeros(max(plan.workspace_size, 1), numpy.uint8))
    with pytest.raises(bk.Error) as caught:
        plan.run(bk.Stream.cpu(), workspace, plan_type.args_type(**views))
    assert victim.name in {reason.where for reason in caught.value.reasons}
    assert all(item.is_untouched() for item in placed.values())


@MANY
@given(
    size=st.integers(0, 40),
    shape=st.lists(st.integers(-1, 6), max_size=4),
    stride=st.lists(st.integers(-8, 8), max_size=4),
    offset=st.integers(-3, 45),
    element=st.sampled_from([None, *bk.ElementKind]),
)
def test_strided_views(size: int, shape: list[int], stride: list[int], offset: int, element: Any) -> None:
    """A view either lies within its buffer, element for element, or is refused."""
    buffer = numpy.zeros(size, numpy.uint8)
    width = 1 if element is None else element.size
    try:
        view = bk.TensorRef.strided(buffer, shape, stride, offset, element=element)
    except bk.Error as refusal:
        assert refusal.reasons
        return
    first = view.address - buffer.ctypes.data
    for index in numpy.ndindex(*view.shape):
        at = first + width * sum(i * s for i, s in zip(index, stride, strict=True))
        assert 0 <= at <= size - width
