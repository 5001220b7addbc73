"""What is particular to the rotary embedding: its rules, exact angles at any position, both layouts of positions, the way back."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.ops.attention.rope import (
    RopeArgs,
    RopeBackwardArgs,
    RopeBackwardDescriptor,
    RopeBackwardPlan,
    RopeDescriptor,
    RopePlan,
    RopeStyle,
)
from baracuda_kernels.ops.attention.rope.frequencies import quarter_turns
from baracuda_kernels.ops.attention.rope.reference import rope as reference
from baracuda_kernels.verify.bounds import relative_error
from baracuda_kernels.verify.trial import run_trial

from conftest import DEVICE, STREAM

CPU, NONE = bk.Stream.cpu(), bk.Workspace.none()
F32, F64, BF16 = bk.ElementKind.F32, bk.ElementKind.F64, bk.ElementKind.BF16


def _run(x: Any, positions: Any, **fields: Any) -> Any:
    batch, heads, length, width = x.shape
    descriptor = RopeDescriptor(batch, heads, length, width, fields.pop("base", 10000.0), bk.ElementKind.of(x.dtype), **fields)
    y = numpy.full_like(x, numpy.nan)
    RopePlan.select(CPU, descriptor).run(CPU, NONE, RopeArgs(x=x, positions=positions, y=y))
    return y


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"head_dim": 7}, "head_dim"),
        ({"head_dim": 0}, "head_dim"),
        ({"head_dim": -2}, "head_dim"),
        ({"rotary_dim": 3}, "rotary_dim"),
        ({"rotary_dim": 0}, "rotary_dim"),
        ({"rotary_dim": -2}, "rotary_dim"),
        ({"rotary_dim": 10}, "rotary_dim"),
        ({"batch_size": -1}, "batch_size"),
        ({"num_heads": -1}, "num_heads"),
        ({"seq_len": -1}, "seq_len"),
        ({"base": 0.0}, "base"),
        ({"base": -1.0}, "base"),
        ({"base": float("inf")}, "base"),
        ({"base": float("nan")}, "base"),
        ({"style": "half"}, "style"),
    ],
)
@pytest.mark.parametrize("kind", [RopeDescriptor, RopeBackwardDescriptor])
def test_nonsense_is_refused(kind: type[RopeDescriptor], changed: dict[str, Any], field: str) -> None:
    fine = {"batch_size": 2, "num_heads": 3, "seq_len": 4, "head_dim": 8, "base": 10000.0, "element": F32}
    kind(**fine)
    with pytest.raises(bk.InvalidProblem) as caught:
        kind(**(fine | changed))
    assert field in {reason.where for reason in caught.value.reasons}


def test_defaults() -> None:
    descriptor = RopeDescriptor(1, 2, 3, 8, 10000.0, F32)
    assert (descriptor.style, descriptor.rotary_dim, descriptor.rotated) == (RopeStyle.INTERLEAVED, None, 8)
    plan = RopePlan.select(CPU, descriptor)
    assert plan.workspace_size == 0
    guarantee = plan.precision_guarantee
    assert guarantee.deterministic and guarantee.bit_stable_on_same_hardware and guarantee.batch_invariant


def test_the_last_axis_has_stride_one() -> None:
    plan = RopePlan.select(CPU, RopeDescriptor(1, 2, 3, 8, 10000.0, F32))
    fine, apart = numpy.zeros((1, 2, 3, 8), "f4"), numpy.zeros((1, 2, 3, 16), "f4")[..., ::2]
    for x, y, name in ((apart, fine, "x"), (fine, apart, "y")):
        with pytest.raises(bk.InvalidProblem, match="stride") as caught:
            plan.run(CPU, NONE, RopeArgs(x=x, y=y))
        assert {reason.where for reason in caught.value.reasons} == {name}
    back = RopeBackwardPlan.select(CPU, RopeBackwardDescriptor(1, 2, 3, 8, 10000.0, F32))
    with pytest.raises(bk.InvalidProblem, match="dx"):
        back.run(CPU, NONE, RopeBackwardArgs(dy=fine, dx=apart))


def test_positions_of_the_wrong_kind() -> None:
    plan = RopePlan.select(CPU, RopeDescriptor(2, 1, 3, 8, 10000.0, F32))
    x, y = numpy.zeros((2, 1, 3, 8), "f4"), numpy.zeros((2, 1, 3, 8), "f4")
    for positions in (
        numpy.zeros(4, "i8"),
        numpy.zeros((3, 2), "i8"),
        numpy.zeros((2, 1, 3), "i8"),
        numpy.zeros(3, "i4"),
        numpy.zeros(3),
    ):
        with pytest.raises(bk.InvalidProblem, match="positions"):
            plan.run(CPU, NONE, RopeArgs(x=x, positions=positions, y=y))


def test_pairs_and_direction() -> None:
    """By hand: position 1 turns pair 0 by one radian, from the first feature towards the second."""
    x = numpy.zeros((1, 1, 1, 6))
    x[..., 0] = 1.0
    cos, sin = numpy.cos(1.0), numpy.sin(1.0)
    for style, partner in ((RopeStyle.INTERLEAVED, 1), (RopeStyle.HALF, 2)):
        y = _run(x, numpy.array([1]), style=style, rotary_dim=4)
        expected = numpy.zeros(6)
        expected[0], expected[partner] = cos, sin
        assert numpy.allclose(y[0, 0, 0], expected, atol=1e-15)
    x[...] = 0.0
    x[..., 1] = 1.0  # the first of pair 1 of halves: base^(-2/4) = 1/100
    y = _run(x, numpy.array([3]), style=RopeStyle.HALF, rotary_dim=4)
    assert numpy.allclose(y[0, 0, 0], [0.0, numpy.cos(0.03), 0.0, numpy.sin(0.03), 0.0, 0.0], atol=1e-15)


def test_both_styles_are_one_rotation_of_permuted_features(rng: numpy.random.Generator) -> None:
    x, positions = rng.standard_normal((2, 3, 37, 40)), rng.integers(-(1 << 20), 1 << 20, 37)
    order = numpy.arange(40).reshape(20, 2).T.reshape(-1)  # even features first
    neighbours = _run(x, positions, style=RopeStyle.INTERLEAVED)
    assert numpy.array_equal(neighbours[..., order], _run(numpy.ascontiguousarray(x[..., order]), positions, style=RopeStyle.HALF))


@pytest.mark.parametrize("style", RopeStyle)
@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("position", [1, 1 << 20, -(1 << 20), (1 << 20) - 1, 1 << 40, (1 << 52) + 1])
def test_angles_are_as_good_far_out_as_near(style: RopeStyle, element: bk.ElementKind, position: int, rng: Any) -> None:
    """Within the error bound of the plan contract, in every element, at positions past any context there is."""
    plan = RopePlan.select(CPU, RopeDescriptor(1, 2, 3, 128, 10000.0, element, style))
    inputs = {"x": rounded(rng.standard_normal((1, 2, 3, 128)), element), "positions": numpy.full(3, position)}
    run_trial(plan, inputs)


@pytest.mark.parametrize("kernel", ["numba.rope", "triton.rope"])
@pytest.mark.parametrize(("element", "bound"), [(F64, 1e-15), (F32, 1.2e-7)], ids=str)
def test_a_point_of_the_unit_circle_is_where_mpmath_has_it(
    kernel: str, element: bk.ElementKind, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The angles themselves, on both devices. A product of position and frequency in f64 would be off by 1e-10 at 2^20."""
    if kernel == "triton.rope":
        pytest.importorskip("triton")
        if DEVICE.kind is bk.DeviceKind.CPU:
            monkeypatch.setenv("TRITON_INTERPRET", "1")
    elif DEVICE.kind is not bk.DeviceKind.CPU:
        pytest.skip("a kernel of the CPU")
    positions = [4095, 131071, (1 << 20) - 1, 1 << 20, -(1 << 20), (1 << 31) + 7, (1 << 53) - 1]
    for base, rotated in ((10000.0, 64), (500000.0, 16), (0.3, 10)):
        plan = RopePlan.force(kernel, STREAM, RopeDescriptor(1, 1, len(positions), rotated, base, element))
        x = numpy.tile([1.0, 0.0], (1, 1, len(positions), rotated // 2))
        y = run_trial(plan, {"x": x, "positions": numpy.array(positions)}).operands["y"].values[0, 0].astype(float)
        with mpmath.workdps(60):
            for i in range(rotated // 2):
                frequency = mpmath.power(mpmath.mpf(base), mpmath.mpf(-2 * i) / rotated)
                for place, position in enumerate(positions):
                    cos, sin = mpmath.cos_sin(position * frequency)
                    assert abs(y[place, 2 * i] - cos) < bound and abs(y[place, 2 * i + 1] - sin) < bound


def test_the_reference_and_the_frequencies_are_exact() -> None:
    """Both against mpmath, which shares nothing with either."""
    with mpmath.workdps(80):
        for base, rotated in ((10000.0, 128), (500000.0, 64), (0.3, 10), (1.0, 4)):
            high, low = quarter_turns(base, rotated)
            for i in (0, 1, rotated // 4, rotated // 2 - 1):
                exact = mpmath.power(mpmath.mpf(base), mpmath.mpf(-2 * i) / rotated)
                assert abs(mpmath.mpf(high[i]) + mpmath.mpf(low[i]) - exact * 2 / mpmath.pi) < exact * mpmath.mpf(2) ** -104
                for position in (3, -5, 1 << 20, (1 << 62) + 7):
                    x = numpy.zeros((1, 1, 1, rotated))
                    x[..., 2 * i] = 1.0
                    y = reference(RopeDescriptor(1, 1, 1, rotated, base, F64), x, numpy.array([position]))[0, 0, 0]
                    assert abs(y[2 * i] - float(mpmath.cos(position * exact))) < 1e-15
                    assert abs(y[2 * i + 1] - float(mpmath.sin(position * exact))) < 1e-15


def test_positions_that_no_float_can_hold_still_turn(rng: numpy.random.Generator) -> None:
    """Past 2^53 a position is rounded; the result is still a rotation, for any base."""
    x = rng.standard_normal((1, 1, 4, 8))
    positions = numpy.array([2**63 - 1, -(2**63), 2**62 + 1, -(2**60) - 3])
    for base in (10000.0, 1.0, 1e-3, 1e300):
        for style in RopeStyle:
            y = _run(x, positions, base=base, style=style)
            assert numpy.allclose(numpy.linalg.norm(y, axis=-1), numpy.linalg.norm(x, axis=-1), rtol=1e-12)


@pytest.mark.parametrize("style", RopeStyle)
def test_positions_left_out_shared_or_of_each_batch(style: RopeStyle, rng: numpy.random.Generator) -> None:
    """Three ways to say the same positions give the same bits, whatever their strides."""
    x = rng.standard_normal((3, 2, 50, 24)).astype("f4")
    counted = _run(x, None, style=style)
    shared = numpy.arange(50)
    each = numpy.tile(shared, (3, 1))
    for positions in (shared, each, numpy.asfortranarray(each), numpy.broadcast_to(shared, (3, 50)), each[:, ::-1][:, ::-1]):
        assert numpy.array_equal(_run(x, positions, style=style), counted)
    different = rng.integers(-9999, 9999, (3, 50))
    together = _run(x, different, style=style)
    for batch in range(3):
        assert numpy.array_equal(_run(x[batch : batch + 1], different[batch], style=style), together[batch : batch + 1])


@pytest.mark.parametrize("style", RopeStyle)
def test_a_row_does_not_depend_on_its_batch(style: RopeStyle, rng: numpy.random.Generator) -> None:
    x, positions = rng.standard_normal((4, 9, 130, 66)).astype("f4"), rng.integers(0, 1 << 20, 130)
    together = _run(x, positions, style=style)
    alone = _run(numpy.ascontiguousarray(x[2:3, 5:6, 77:78]), positions[77:78], style=style)
    assert numpy.array_equal(alone, together[2:3, 5:6, 77:78])


@pytest.mark.parametrize("element", FLOATS)
def test_features_past_rotary_dim_are_copied_bit_by_bit(element: bk.ElementKind) -> None:
    """A signalling NaN with its payload included."""
    size = element.size
    pattern = {2: 0x7C01 if element is bk.ElementKind.F16 else 0x7F81, 4: 0x7F800123, 8: 0x7FF0000000000123}[size]
    words = numpy.full((1, 2, 3, 40), pattern, f"u{size}")
    target = numpy.zeros_like(words)
    plan = RopePlan.select(CPU, RopeDescriptor(1, 2, 3, 40, 10000.0, element, rotary_dim=6))
    shape, stride = (1, 2, 3, 40), (240, 120, 40, 1)
    views = [bk.TensorMut.strided(array.reshape(-1).view("u1"), shape, stride, element=element) for array in (words, target)]
    plan.run(CPU, NONE, RopeArgs(x=views[0], y=views[1]))
    assert (target[..., 6:] == pattern).all()


@pytest.mark.parametrize("style", RopeStyle)
@pytest.mark.parametrize("element", FLOATS)
def test_backward_of_forward_is_the_input(style: RopeStyle, element: bk.ElementKind, rng: numpy.random.Generator) -> None:
    fields = (2, 3, 33, 70, 500000.0, element, style, 66)
    there, back = RopePlan.select(CPU, RopeDescriptor(*fields)), RopeBackwardPlan.select(CPU, RopeBackwardDescriptor(*fields))
    x, positions = rounded(rng.standard_normal((2, 3, 33, 70)), element), rng.integers(-(1 << 20), 1 << 20, (2, 33))
    turned = run_trial(there, {"x": x, "positions": positions}).operands["y"].values
    returned = run_trial(back, {"dy": turned, "positions": positions}).operands["dx"].values
    bound = {"f64": 1e-15, "f32": 4e-7, "f16": 1e-3, "bf16": 6e-3}[element.value]
    assert relative_error(returned, x) < bound


@pytest.mark.parametrize("style", RopeStyle)
def test_backward_is_the_derivative_of_forward(style: RopeStyle, rng: numpy.random.Generator) -> None:
    """Central differences of the forward kernel in f64; it is linear, so a wide step is exact up to rounding."""
    fields = (2, 1, 3, 10, 100.0, F64, style, 8)
    forward = RopePlan.select(CPU, RopeDescriptor(*fields))
    positions, dy, dx = rng.integers(0, 1 << 20, (2, 3)), rng.standard_normal((2, 1, 3, 10)), numpy.empty((2, 1, 3, 10))
    RopeBackwardPlan.select(CPU, RopeBackwardDescriptor(*fields)).run(
        CPU, NONE, RopeBackwardArgs(dy=dy, positions=positions, dx=dx)
    )
    x = rng.standard_normal(dy.shape)

    def loss(point: numpy.ndarray) -> float:
        y = numpy.empty_like(point)
        forward.run(CPU, NONE, RopeArgs(x=point, positions=positions, y=y))
        return float((y * dy).sum())

    for index in numpy.ndindex(x.shape):
        step = numpy.zeros_like(x)
        step[index] = 0.5
        assert dx[index] == pytest.approx(loss(x + step) - loss(x - step), abs=1e-12)


@pytest.mark.parametrize("style", RopeStyle)
@pytest.mark.parametrize("shape", [(1, 40, 700, 128), (1, 33, 1111, 96)])
def test_large_results_that_go_past_the_cache(style: RopeStyle, shape: tuple[int, ...], rng: numpy.random.Generator) -> None:
    """Streaming stores, where alignment allows them and where it does not, beside the same numbers computed head by head."""
    x = torch.from_numpy(rng.standard_normal(shape, dtype=numpy.float32))
    for dtype in (torch.float32, torch.bfloat16):
        source = x.to(dtype)
        room = torch.full((source.numel() + 8,), torch.nan, dtype=dtype)
        element = bk.ElementKind.of(dtype)
        plan = RopePlan.select(CPU, RopeDescriptor(*shape, 10000.0, element, style))
        small = RopePlan.select(CPU, RopeDescriptor(1, 1, *shape[2:], 10000.0, element, style))
        expected = torch.empty_like(source)
        for head in range(shape[1]):
            small.run(CPU, NONE, RopeArgs(x=source[:, head : head + 1], y=expected[:, head : head + 1]))
        for offset in (0, 1):
            y = room[offset : offset + source.numel()].view(shape)
            plan.run(CPU, NONE, RopeArgs(x=source, y=y))
            assert torch.equal(y, expected)
        plan.run(CPU, NONE, RopeArgs(x=source, y=source))
        assert torch.equal(source, expected)


def test_infinities_stay_in_their_pair() -> None:
    x = numpy.ones((1, 1, 2, 8), "f4")
    x[0, 0, 1, 2] = numpy.inf
    y = _run(x, numpy.array([1, 1]))
    assert numpy.isfinite(y[0, 0, 0]).all()
    assert numpy.isfinite(y[0, 0, 1, [0, 1, 4, 5, 6, 7]]).all() and not numpy.isfinite(y[0, 0, 1, [2, 3]]).any()


def test_strides_past_2_31() -> None:
    """A view whose heads lie 2^31 elements apart, over memory that is reserved but hardly touched."""
    import mmap

    apart = (1 << 31) + 64
    reserved = mmap.mmap(
        -1, 2 * (apart + 4096), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    )
    try:
        buffer = numpy.frombuffer(reserved, numpy.uint8)
        view = bk.TensorMut.strided(buffer, (1, 2, 3, 32), (0, apart, 32, 1), element=BF16)
        plan = RopePlan.select(CPU, RopeDescriptor(1, 2, 3, 32, 10000.0, BF16))
        for head in range(2):
            buffer[2 * head * apart : 2 * head * apart + 192].view(numpy.uint16)[:] = 0x3F80
        plan.run(CPU, NONE, RopeArgs(x=view, y=view))
        words = [buffer[2 * head * apart : 2 * head * apart + 192].view(numpy.uint16).copy() for head in range(2)]
        assert numpy.array_equal(*words) and (words[0][32:] != 0x3F80).any()
    finally:
        del buffer, view
