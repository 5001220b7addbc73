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
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.layout import row_major
from baracuda_kernels.verify.memory import LAYOUTS, Placed
from baracuda_kernels.verify.trial import mixed_layouts, random_inputs, run_trial

import conftest
from conftest import DEVICE, KERNEL_IDS, KERNELS, PLANS, STREAM, interprets_products
from refusals import is_known, is_refused_as_known

MANY = settings(
    max_examples=150 if DEVICE.kind is bk.DeviceKind.CPU and conftest.SLOW else 40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
seeds = st.integers(0, 2**32 - 1)
FLOATS_OF = {
    op: [element for element in FLOATS if any(op == served and element in kernel.elements for served, kernel in KERNELS)]
    for op in PLANS
}


def _examples(op: str, kernel: Kernel) -> int:
    """What is only interpreted has fewer, and products few, which would take minutes."""
    share = 2 if kernel.device is DEVICE.kind else 12 if interprets_products(op, kernel.name) else 6
    return MANY.max_examples // share


@pytest.mark.parametrize(("op", "kernel"), KERNELS, ids=KERNEL_IDS)
def test_valid(op: str, kernel: Kernel) -> None:
    plan_type = PLANS[op]

    @settings(MANY, max_examples=_examples(op, kernel))
    @given(seed=seeds, element=st.sampled_from(kernel.elements))
    def is_served(seed: int, element: bk.ElementKind) -> None:
        descriptor, rng = plan_type.cases.draw(random.Random(seed), element), numpy.random.default_rng(seed)
        try:
            plan = plan_type.force(kernel.name, STREAM, descriptor)
        except bk.Unsupported as refusal:
            assert is_known(kernel, element, refusal.reasons), refusal
            return
        inputs = random_inputs(plan_type, descriptor, rng, with_optional=bool(seed % 2))
        assert is_refused_as_known(kernel, run_trial(plan, inputs, mixed_layouts(plan_type, rng), may_cancel=True))

    is_served()


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
    axes=st.lists(st.tuples(st.integers(-1, 6), st.integers(-8, 8)), max_size=3),
    is_ragged=st.sampled_from([False, False, False, True]),
    offset=st.integers(-3, 45),
    spare=st.integers(-2, 2),
    more=st.integers(0, 7),
    element=st.sampled_from([None, *bk.ElementKind]),
)
def test_strided_views(axes: list[tuple[int, int]], is_ragged: bool, offset: int, spare: int, more: int, element: Any) -> None:
    """A view that lies within its buffer, element for element, is that view; any other is refused. Most end near the buffer's end."""
    width = 1 if element is None else element.size
    shape, stride = [extent for extent, _ in axes], [step for _, step in axes] + [1] * is_ragged
    indices = numpy.ndindex(*shape) if min(shape, default=0) >= 0 else ()
    places = [offset + sum(i * step for i, step in zip(index, stride, strict=False)) for index in indices]
    count = max(0, max(places, default=-1) + 1 + spare)
    buffer = numpy.zeros(count * width + more % width, numpy.uint8)
    is_within = min(places, default=offset) >= 0 and max(places, default=-1) < count
    if is_ragged or min(shape, default=0) < 0 or not is_within:
        with pytest.raises(bk.Error) as refusal:
            bk.TensorRef.strided(buffer, shape, stride, offset, element=element)
        assert refusal.value.reasons
        return
    view = bk.TensorRef.strided(buffer, shape, stride, offset, element=element)
    assert (view.shape, view.stride, view.element) == (tuple(shape), tuple(stride), element or bk.ElementKind.U8)
    assert view.address == buffer.ctypes.data + width * offset
