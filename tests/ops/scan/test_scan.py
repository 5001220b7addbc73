"""Scans: what they mean, beside PyTorch; how errors grow; bits that no number of threads changes."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.core.registry import plans
from baracuda_kernels.ops.scan import ScanBackwardDescriptor, ScanBackwardPlan, ScanDescriptor, ScanKind, ScanPlan, reference
from baracuda_kernels.ops.scan import functions as F
from baracuda_kernels.verify.trial import launched, random_inputs, run_trial

from conftest import DEVICE
from conftest import STREAM as TESTED

INF, NAN = float("inf"), float("nan")
STREAM = bk.Stream.cpu()
LINES = (((5, 33), 1), ((33, 19), 0), ((3, 20, 5), 1))
SINGLE = ("cumsum", "cumprod", "logcumsumexp")


def ours(name: str, x: torch.Tensor, dim: int, reverse: bool = False) -> Any:
    return getattr(F, name)(x, dim, reverse)


def theirs(name: str, x: torch.Tensor, dim: int, reverse: bool = False) -> Any:
    """PyTorch's; in reverse the same between two flips, indices counted from the other end."""
    if not reverse:
        return getattr(torch, name)(x, dim)
    found = getattr(torch, name)(x.flip(dim), dim)
    if isinstance(found, torch.Tensor):
        return found.flip(dim)
    return found[0].flip(dim), x.shape[dim] - 1 - found[1].flip(dim)


def same(mine: Any, other: Any) -> None:
    """Values within a few roundings, integers and places exactly."""
    if isinstance(mine, tuple):
        for each, wanted in zip(mine, other, strict=True):
            same(each, wanted)
        return
    close = {"rtol": 1e-12, "atol": 1e-12} if mine.dtype is torch.float64 else {}
    torch.testing.assert_close(mine, other, equal_nan=True, **close)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "dim"), LINES)
@pytest.mark.parametrize("name", [*SINGLE, "cummax", "cummin"])
def test_as_pytorch(name: str, shape: tuple[int, ...], dim: int, reverse: bool) -> None:
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        x = torch.randn(shape, dtype=torch.float64).to(dtype)
        same(ours(name, x, dim, reverse), theirs(name, x, dim, reverse))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool])
def test_integers_as_pytorch(name: str, dtype: torch.dtype, reverse: bool) -> None:
    """Sums and products are i64 and wrap around; equal elements give the last place."""
    torch.manual_seed(1)
    x = torch.randint(0, 2, (3, 70, 9)).bool() if dtype is torch.bool else torch.randint(-100, 100, (3, 70, 9)).to(dtype)
    for dim in range(3):
        same(ours(name, x, dim, reverse), theirs(name, x, dim, reverse))


def test_overflow_wraps_around() -> None:
    x = torch.full((5,), 2**62, dtype=torch.int64)
    assert torch.equal(ours("cumsum", x, 0), torch.cumsum(x, 0))
    assert torch.equal(ours("cumprod", x, 0), torch.cumprod(x, 0))


SPECIAL = ([1.0, NAN, 3.0, NAN, 2.0], [-INF, -INF, 1.0, INF, 2.0], [INF, 1.0, -INF, 2.0], [0.0, -0.0, 0.0], [NAN], [-INF] * 20)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("values", SPECIAL)
@pytest.mark.parametrize("name", [*SINGLE, "cummax", "cummin"])
def test_special_numbers_as_pytorch(name: str, values: list[float], reverse: bool) -> None:
    """Along a row and down columns."""
    x = torch.tensor(values)
    same(ours(name, x, 0, reverse), theirs(name, x, 0, reverse))
    columns = x[:, None].repeat(1, 17)
    same(ours(name, columns, 0, reverse), theirs(name, columns, 0, reverse))


def test_nan_is_left_out() -> None:
    x = numpy.array([2.0, NAN, 3.0, NAN, -1.0], numpy.float32)
    assert numpy.array_equal(F.nancumsum(x, 0), numpy.nancumsum(x))
    assert numpy.array_equal(F.nancumprod(x, 0), numpy.nancumprod(x))


def test_a_product_with_a_zero_stays_zero() -> None:
    """However large the product of the others would be."""
    x = torch.full((40_000,), 1e30)
    x[3] = 0.0
    assert torch.equal(ours("cumprod", x, 0)[3:], torch.zeros(39_997))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 5)])
def test_nothing_to_do(shape: tuple[int, ...]) -> None:
    for dim in range(len(shape)):
        for name in ("cumsum", "cummax", "logcumsumexp"):
            same(
                ours(name, torch.zeros(shape), dim),
                tuple(theirs(name, torch.zeros(shape), dim)) if name == "cummax" else torch.zeros(shape),
            )


def test_what_is_refused() -> None:
    with pytest.raises(bk.InvalidProblem) as refusal:
        F.cumsum(numpy.zeros((2, 3), numpy.float32), 2)
    assert refusal.value.reasons[0].code is bk.ReasonCode.AXIS_OUT_OF_RANGE
    with pytest.raises(bk.InvalidProblem):
        F.cumsum(numpy.zeros((), numpy.float32), 0)
    with pytest.raises(bk.InvalidProblem) as rank:
        ScanDescriptor(ScanKind.CUMSUM, (), 0, bk.ElementKind.F32)
    assert bk.ReasonCode.RANK in {reason.code for reason in rank.value.reasons}
    with pytest.raises(bk.Unsupported) as unserved:
        F.logcumsumexp(numpy.zeros(3, numpy.int32), 0)
    assert any(reason.where == "element" for reason in unserved.value.reasons)


def test_indices_are_an_output_of_extrema_alone() -> None:
    x, result, indices = numpy.ones(3, numpy.float32), numpy.empty(3, numpy.float32), numpy.empty(3, numpy.int64)
    plan = ScanPlan.select(STREAM, ScanDescriptor(ScanKind.CUMSUM, (3,), 0, bk.ElementKind.F32))
    with pytest.raises(bk.Error):
        plan.run(STREAM, bk.Workspace.none(), plan.args_type(input=x, result=result, indices=indices))
    plan = ScanPlan.select(STREAM, ScanDescriptor(ScanKind.CUMMAX, (3,), 0, bk.ElementKind.F32, indices=False))
    plan.run(STREAM, bk.Workspace.none(), plan.args_type(input=x, result=result))
    assert result.tolist() == [1.0, 1.0, 1.0]


# --- errors and bits -------------------------------------------------------------------------------------------------------------


def _longest_error(values: Any, found: Any) -> float:
    """The largest error of a running sum, in units of its rounding; of terms that are all positive, so that errors show."""
    exact = numpy.cumsum(values.astype(numpy.longdouble))
    return float(numpy.max(numpy.abs(found.astype(numpy.longdouble) - exact) / exact)) / float(numpy.finfo(found.dtype).eps)


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float64])
def test_errors_grow_no_faster_than_the_root(dtype: Any, rng: numpy.random.Generator) -> None:
    """Half a unit for each rounding, as far as such errors are independent: the root of their number."""
    for count in (100, 10_000, 1_000_000):
        values = rng.random(count).astype(dtype)
        for x in (values, numpy.repeat(values[:, None], 8, axis=1)):
            found = F.cumsum(x, 0)
            assert _longest_error(values, found if found.ndim == 1 else found[:, 5]) <= 0.5 * math.sqrt(count)


def test_errors_do_not_pass_through_all_elements() -> None:
    """Of equal terms all errors of a sum in order point the same way, and it drifts away."""
    values = numpy.full(1_000_000, 0.1)
    in_order = _longest_error(values, numpy.cumsum(values))
    for x in (values, numpy.repeat(values[:, None], 8, axis=1)):
        found = F.cumsum(x, 0)
        assert _longest_error(values, found if found.ndim == 1 else found[:, 5]) < in_order / 16  # the elements of a group


def test_a_long_sum_of_floats_is_rounded_once(rng: numpy.random.Generator) -> None:
    """f32 is summed in f64."""
    values = rng.random(1_000_000).astype(numpy.float32)
    assert _longest_error(values, F.cumsum(values, 0)) <= 0.51


THREADED = (((70001,), 0), ((1, 200_000), 1), ((3, 40_000), 1), ((1000, 300), 0))


@pytest.mark.parametrize(("shape", "axis"), THREADED)
@pytest.mark.parametrize("kind", [ScanKind.CUMSUM, ScanKind.CUMPROD, ScanKind.CUMMAX, ScanKind.LOGCUMSUMEXP])
def test_threads_have_no_say(kind: ScanKind, shape: tuple[int, ...], axis: int, threads: Any, rng: Any) -> None:
    for plan_type, descriptor_type in ((ScanPlan, ScanDescriptor), (ScanBackwardPlan, ScanBackwardDescriptor)):
        for element in (bk.ElementKind.F32, bk.ElementKind.F64, bk.ElementKind.BF16):
            descriptor = descriptor_type(kind, shape, axis, element, reverse=element is bk.ElementKind.F64)
            plan = plan_type.select(STREAM, descriptor)
            inputs = random_inputs(plan_type, descriptor, rng)
            found = set()
            for count in (1, 2, 3, 5):
                threads(count)
                found.add(tuple(launched(plan, inputs).bits.values()))
            assert len(found) == 1


def test_layouts_have_no_say(rng: Any) -> None:
    """Rows, columns and strided lines join in the same order."""
    for kind in ScanKind:
        for element in FLOATS:
            descriptor = ScanDescriptor(kind, (20, 17000), 1, element)
            plan = ScanPlan.select(STREAM, descriptor)
            inputs = random_inputs(ScanPlan, descriptor, rng)
            bits = {tuple(launched(plan, inputs, layout).bits.values()) for layout in ("contiguous", "transposed", "every_second")}
            assert len(bits) == 1, descriptor


# --- on CUDA, or interpreted ---------------------------------------------------------------------------------------------------


def triton_scan() -> Any:
    from baracuda_kernels.ops.scan import triton

    return triton


def in_triton(descriptor: ScanDescriptor, x: Any) -> Any:
    plan = ScanPlan.force("triton.scan", TESTED, descriptor)
    given = torch.from_numpy(x).to(str(DEVICE))
    result, lent = torch.empty_like(given), torch.empty(plan.workspace_size, dtype=torch.uint8, device=given.device)
    plan.run(TESTED, bk.Workspace.borrowed(lent), plan.args_type(input=given, result=result))
    return result.cpu().numpy()


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("steps", [(1, 512), (1024, 2), (512, 0), (0, 0)], ids=str)
def test_operands_that_lie_across_columns_are_not_walked_in_strips(steps: tuple[int, int]) -> None:
    """Their elements would change threads one by one: machine code that took minutes to compile, and spilled thousands of bytes."""
    descriptor = ScanBackwardDescriptor(ScanKind.CUMSUM, (512, 512), 0, bk.ElementKind.F32)
    down = (512, 1)
    for strides, in_strips in (([down, down], True), ([steps, down], False)):
        (call,) = triton_scan().calls(descriptor, strides, is_back=True, given=(0, 1))
        assert bool(call.constants["VECTOR"]) is call.constants["AHEAD"] is in_strips


SEGMENTED = (((1, 400), 1, False), ((100, 3), 0, True), ((26, 100), 1, True), ((130, 40), 0, False), ((100, 12), 0, True))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("shape", "axis", "reverse"), SEGMENTED)
@pytest.mark.parametrize("kind", [ScanKind.CUMSUM, ScanKind.CUMPROD, ScanKind.CUMMAX, ScanKind.LOGCUMSUMEXP])
def test_segments(kind: ScanKind, shape: tuple[int, ...], axis: int, reverse: bool, rng: Any) -> None:
    """Of few long lines; many are walked from end to end. There and back."""
    for plan_type, descriptor_type, kernel, in_place in (
        (ScanPlan, ScanDescriptor, "triton.scan", ("result", "input")),
        (ScanBackwardPlan, ScanBackwardDescriptor, "triton.scan_backward", ("d_input", "d_result")),
    ):
        descriptor = descriptor_type(kind, shape, axis, bk.ElementKind.F32, reverse)
        plan = plan_type.force(kernel, TESTED, descriptor)
        assert plan.workspace_size
        run_trial(plan, random_inputs(plan_type, descriptor, rng), in_place=in_place)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", [ScanKind.CUMPROD, ScanKind.NANCUMPROD])
@pytest.mark.parametrize("shape", [(9, 100), (2, 3, 64), (5, 33), (40, 8)], ids=str)  # of several tiles, of whole ones, and of one
def test_gradients_of_products_along_whole_lines(
    kind: ScanKind, shape: tuple[int, ...], rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baracuda_kernels.ops.scan.triton.ENOUGH_ROWS", 1)
    monkeypatch.setattr("baracuda_kernels.ops.scan.tiles.LANES", 2)
    for element in FLOATS:
        descriptor = ScanBackwardDescriptor(kind, shape, len(shape) - 1, element)
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        (call,) = triton_scan().calls(descriptor, [strides] * 3, False, (0, 1, 2))
        assert call.body.__name__ == "product_gradients_of_lines"
        plan = ScanBackwardPlan.force("triton.scan_backward", TESTED, descriptor)
        inputs = random_inputs(ScanBackwardPlan, descriptor, rng)
        factors = inputs["input"].reshape(-1, shape[-1])
        factors[0, 5], factors[1, 3] = 0, 0
        factors[1, 7] = numpy.nan if kind is ScanKind.NANCUMPROD else 0
        run_trial(plan, inputs, in_place=("d_input", "d_result"))
        run_trial(plan, inputs, in_place=("d_input", "input"))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", [ScanKind.CUMPROD, ScanKind.NANCUMPROD])
@pytest.mark.parametrize("element", [bk.ElementKind.BF16, bk.ElementKind.F16], ids=str)
@pytest.mark.parametrize("extent", [96, 77, 16, 8])  # of whole tiles, of others, and of several lines in one
def test_gradients_of_products_of_halves(
    kind: ScanKind, element: bk.ElementKind, extent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line on its own, by its own size: factors that f32 has room for, and others; gradients of all sizes."""
    monkeypatch.setattr("baracuda_kernels.ops.scan.triton.ENOUGH_ROWS", 1)
    monkeypatch.setattr("baracuda_kernels.ops.scan.tiles.LANES", 2)
    dtype = torch.bfloat16 if element is bk.ElementKind.BF16 else torch.float16
    random = torch.Generator().manual_seed(3)
    tiny = torch.finfo(dtype).smallest_normal * (
        1 if element is bk.ElementKind.BF16 else 0.25
    )  # the interpreter has none less of bf16
    ones, last = torch.ones(extent, dtype=torch.float64), extent - 1
    drawn = torch.randn(20, extent, generator=random, dtype=torch.float64)

    def factors(**others: float) -> torch.Tensor:
        x = torch.exp(drawn[0] / extent**0.5) * torch.sign(drawn[1])
        for place, value in others.items():
            x[int(place[1:])] = value
        return x

    middle = f"_{extent // 2}"
    sizes = 2.0 ** (torch.arange(extent, dtype=torch.float64) % 8 - 3.5)
    lines = [
        (drawn[2], factors()),
        (ones * (torch.arange(extent) == last), factors()),  # of the last product alone
        (drawn[3], factors(_0=0.0)),
        (drawn[4], factors(**{f"_{last}": 0.0})),
        (drawn[5], factors(**{middle: 0.0})),
        (drawn[6], factors(_1=0.0, **{middle: -0.0})),
        (drawn[7], factors(**{middle: NAN})),
        (drawn[8], factors(_0=NAN, **{f"_{last}": NAN})),
        (drawn[9].abs(), factors(**{middle: INF}).abs()),  # infinities of both signs would be none in the order of a tree
        (drawn[10], factors(_2=-INF, _5=0.0)),
        (drawn[11], factors(**{middle: tiny, "_1": 1.0 / 64})),
        (drawn[12] * 0.0, factors()),
        (torch.where(torch.arange(extent) == last // 2, NAN, drawn[13]), factors()),
        (torch.where(torch.arange(extent) == last // 2, INF, drawn[14]), factors()),
        (drawn[15], sizes),  # products that grow and shrink
        (drawn[16], torch.where(torch.arange(extent) % 16 < 8, 2.0**12, 2.0**-12) * ones),  # too far within a vector, and back
        (drawn[17], torch.rand(extent, generator=random, dtype=torch.float64)),  # down to zero
        (drawn[18] * 2.0**-12, 1.4 * ones),  # up, as far as a line goes
        (drawn[19] * 2.0**-10, torch.where(torch.arange(extent) % 64 < 32, 2.0**3, 2.0**-3) * ones),
        (tiny * ones, torch.where(torch.arange(extent) < extent // 2, 1.5, 0.75) * ones),
    ]
    d, x = (torch.stack(each).to(dtype) for each in zip(*lines, strict=True))
    descriptor = ScanBackwardDescriptor(kind, (len(lines), extent), 1, element)
    (call,) = triton_scan().calls(descriptor, [(extent, 1)] * 3, False, (0, 1, 2))
    assert call.body.__name__ == "product_gradients_of_lines"
    assert call.constants["IN_F32"] is (extent >= 16)
    plan = ScanBackwardPlan.force("triton.scan_backward", TESTED, descriptor)
    given, upstream = x.to(str(DEVICE)), d.clone().to(str(DEVICE))
    lent = torch.empty(plan.workspace_size, dtype=torch.uint8, device=given.device)
    plan.run(TESTED, bk.Workspace.borrowed(lent), plan.args_type(d_result=upstream, input=given, d_input=upstream))
    exact = torch.from_numpy(reference.scan_backward(descriptor, d.double().numpy(), x.double().numpy()))
    sizes_of_terms = torch.from_numpy(reference.scan_backward(descriptor, d.double().abs().numpy(), x.double().abs().numpy()))
    error = (upstream.cpu().double() - exact.to(dtype).double()).abs()
    # Terms of both signs cancel, and errors are of their sizes; the interpreter cuts bf16 off, and has none below the normal ones.
    allowed = 2 * torch.finfo(dtype).eps * exact.abs() + 1e-5 * sizes_of_terms + torch.finfo(dtype).smallest_normal
    is_same = (upstream.cpu() == exact.to(dtype)) | (upstream.cpu().isnan() & exact.isnan())
    wrong = ~(is_same | (error <= allowed))
    assert not wrong.any(), [
        (int(line), int(place), float(upstream[line, place]), float(exact[line, place])) for line, place in wrong.nonzero()
    ]


@pytest.mark.skipif(DEVICE.kind is not bk.DeviceKind.CPU, reason="a compiled body calls what it was compiled with")
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kind", [ScanKind.CUMPROD, ScanKind.NANCUMPROD])
def test_gradients_of_ordinary_halves_take_no_detour(kind: ScanKind, rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN that is left out, products down to nothing and small gradients are ordinary too."""

    def detour(*given: Any) -> None:
        raise AssertionError("in f64")

    monkeypatch.setattr("baracuda_kernels.ops.scan.triton.ENOUGH_ROWS", 1)
    monkeypatch.setattr("baracuda_kernels.ops.scan.tiles.LANES", 2)
    monkeypatch.setattr("baracuda_kernels.ops.scan.triton_product_lines.gradients", detour)
    monkeypatch.setattr("baracuda_kernels.ops.scan.triton_product_halves.product_of", detour)
    for element in (bk.ElementKind.BF16, bk.ElementKind.F16):
        descriptor = ScanBackwardDescriptor(kind, (6, 200), 1, element)
        plan = ScanBackwardPlan.force("triton.scan_backward", TESTED, descriptor)
        inputs = random_inputs(ScanBackwardPlan, descriptor, rng)
        factors, gradients = inputs["input"], inputs["d_result"]
        factors[factors == 0] = 1.0
        factors[1] = 0.5
        factors[2] = -1.125  # to 2^34
        factors[3, 100:], gradients[3, :-1] = 0.125, 0.0
        gradients[2], gradients[4] = gradients[2] * 2.0**-16, gradients[4] * 2.0**-8
        if kind is ScanKind.NANCUMPROD:
            factors[5, ::3] = NAN
        run_trial(plan, inputs, in_place=("d_input", "d_result"))


@pytest.mark.usefixtures("small_tiles")
def test_parts_of_products_do_not_overflow() -> None:
    """Whatever they are joined to: zeros and small numbers before large ones, subnormal ones, infinities."""
    for dtype, small in ((numpy.float32, 1e-45), (numpy.float64, 5e-324)):
        x = numpy.full((6, 130), 1e30, dtype)
        x[0, 3] = 0.0
        x[1, :10], x[1, 20:] = 1e-30, 1.0
        x[2, :30], x[2, 60:] = 2.0**-30, 1.0
        x[3] = small
        x[4, :2], x[4, 4:] = (small, -1e30), 1.0
        x[5, 1], x[5, 70] = -INF, 0.0
        result = in_triton(ScanDescriptor(ScanKind.CUMPROD, x.shape, 1, bk.TensorRef.of(x).element), x)
        with numpy.errstate(all="ignore"):
            numpy.testing.assert_allclose(result, numpy.cumprod(x.astype(numpy.float64), 1).astype(dtype), 1e-6)


# Of several tiles, in whole vectors and not; of short lines together; of one factor.
HALVES = (((24, 600), 1), ((24, 261), 1), ((2, 20, 12), 2), ((5, 1), 1))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), HALVES)
@pytest.mark.parametrize("kind", [ScanKind.CUMPROD, ScanKind.NANCUMPROD])
def test_products_of_halves(kind: ScanKind, shape: tuple[int, ...], axis: int, reverse: bool, rng: Any) -> None:
    for element in (bk.ElementKind.BF16, bk.ElementKind.F16):
        descriptor = ScanDescriptor(kind, shape, axis, element, reverse)
        strides = tuple(math.prod(shape[each + 1 :]) for each in range(len(shape)))
        (call,) = triton_scan().calls(descriptor, [strides] * 2, reverse, (0, 1))
        assert call.body.__name__ == "scan_factors"
        plan = ScanPlan.force("triton.scan", TESTED, descriptor)
        inputs = random_inputs(ScanPlan, descriptor, rng)
        if kind is ScanKind.NANCUMPROD:
            inputs["input"].reshape(-1)[::7] = NAN
        run_trial(plan, inputs, in_place=("result", "input"))
        run_trial(plan, inputs, "every_second")


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("element", [bk.ElementKind.BF16, bk.ElementKind.F16], ids=str)
def test_parts_of_products_of_halves_do_not_overflow(element: bk.ElementKind) -> None:
    """Tiles of factors of all sizes follow on tiles of moderate ones; products go beyond what halves have, and come back."""
    dtype, largest_power = {bk.ElementKind.BF16: (torch.bfloat16, 2.0**120), bk.ElementKind.F16: (torch.float16, 2.0**14)}[element]
    small, large = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    flushed = small if DEVICE.kind is bk.DeviceKind.CPU else 0.0  # the interpreter has no subnormal numbers of bf16
    tiny = small if flushed and element is bk.ElementKind.BF16 else small / 4
    x = torch.ones(24, 600, dtype=dtype)
    x[0, :300], x[0, 300:] = 2.0**12, 2.0**-12  # moderate, but for where they meet
    x[1, :200], x[1, 200:], x[1, 500] = large, 0.5, 0.0
    x[2, :40], x[2, 290:330] = 2.0**-14, 2.0**14
    x[3] = small
    x[4, :3], x[4, 3:6], x[4, 590:] = tiny, large / 2, -1.0
    x[5, 100], x[5, 400] = -INF, 0.0
    x[6, 20], x[6, 300] = INF, small
    x[7, 30], x[7, 31] = 0.0, NAN
    x[8, ::2], x[8, 1::2] = largest_power, 1 / largest_power
    x[9, :100], x[9, 100:200] = 1.25, 0.796875
    x[10, :20], x[10, 256::8], x[10, 511] = (2.0**12 if element is bk.ElementKind.BF16 else 1.0), 1.40625, 0.0
    plan = ScanPlan.force("triton.scan", TESTED, ScanDescriptor(ScanKind.CUMPROD, tuple(x.shape), 1, element))
    given = x.to(str(DEVICE))
    result = torch.empty_like(given)
    lent = torch.empty(plan.workspace_size, dtype=torch.uint8, device=given.device)
    plan.run(TESTED, bk.Workspace.borrowed(lent), plan.args_type(input=given, result=result))
    exact = torch.from_numpy(_products_without_overflow(x.double().numpy())).to(dtype)
    torch.testing.assert_close(
        result.cpu(), exact, rtol=torch.finfo(dtype).eps, atol=max(flushed, small * torch.finfo(dtype).eps), equal_nan=True
    )


def _products_without_overflow(x: Any) -> Any:
    """Of numbers that f64 has room for only by their logarithms, in the sense of the formula: zero times infinity is NaN."""
    with numpy.errstate(all="ignore"):
        sizes = numpy.exp2(numpy.cumsum(numpy.where((x == 0) | ~numpy.isfinite(x), 0.0, numpy.log2(numpy.abs(x))), 1))
        marked = numpy.cumprod(numpy.where((x == 0) | ~numpy.isfinite(x), x, numpy.sign(x)), 1)
        return numpy.where(numpy.isfinite(marked) & (marked != 0), marked * sizes, marked)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("shape", [(8, 300), (8, 30)])  # in segments, and not
def test_powers_far_from_each_other(shape: tuple[int, int], rng: Any) -> None:
    """Tiles whose numbers are near each other are summed otherwise than others, and follow on each other."""
    x = rng.standard_normal(shape)
    x[1] *= 100.0
    x[2] = numpy.linspace(-900.0, 900.0, shape[1])
    x[3] = -x[2]
    x[4, 10:20] = -INF
    x[5] = -INF
    x[6, 25], x[6, 2] = NAN, -1000.0
    x[7, 20:] = INF
    result = in_triton(ScanDescriptor(ScanKind.LOGCUMSUMEXP, shape, 1, bk.ElementKind.F64), x)
    with numpy.errstate(all="ignore"):
        numpy.testing.assert_allclose(result, numpy.logaddexp.accumulate(x, 1), 1e-12)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("shape", "axis"), [((7, 80), 1), ((80, 7), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_powers_far_from_each_other(shape: tuple[int, int], axis: int, reverse: bool, rng: Any) -> None:
    x = rng.standard_normal((7, 80))
    x[1] *= 100.0
    x[2] = numpy.linspace(-900.0, 900.0, 80)
    x[3] = -x[2]
    x[4, 10:20] = -INF
    x[5, :30] = -INF
    x[6, 25] = 1000.0
    x = numpy.ascontiguousarray(x.T if axis == 0 else x)
    d = numpy.maximum(rng.standard_normal(shape), 0.0)
    descriptor = ScanBackwardDescriptor(ScanKind.LOGCUMSUMEXP, shape, axis, bk.ElementKind.F64, reverse)
    y = reference.scan(ScanDescriptor(ScanKind.LOGCUMSUMEXP, shape, axis, bk.ElementKind.F64, reverse), x)
    plan = ScanBackwardPlan.force("triton.scan_backward", TESTED, descriptor)
    run_trial(plan, {"d_result": d, "input": x, "result": y}, in_place=("d_input", "d_result"))


@pytest.mark.usefixtures("small_tiles")
def test_gradients_of_powers_are_as_small_as_those_that_come_from_above() -> None:
    """Nothing is lost on the way, though the sum beside the smallest power in a tile is far smaller still."""
    x = numpy.outer(numpy.geomspace(30.0, 2000.0, 12), numpy.linspace(0.0, 1.0, 80)).astype("float32")  # in tiles of any length
    d = numpy.ones_like(x)
    problem = ScanDescriptor(ScanKind.LOGCUMSUMEXP, x.shape, 1, bk.ElementKind.F32)
    y = reference.scan(problem, x.astype(float)).astype("float32")
    plan = ScanBackwardPlan.force("triton.scan_backward", TESTED, ScanBackwardDescriptor(problem.kind, x.shape, 1, problem.element))

    def slopes(scale: float) -> Any:
        given = [torch.from_numpy(each).to(str(DEVICE)) for each in (d * numpy.float32(scale), x, y)]
        result = torch.empty_like(given[0])
        names = ("d_result", "input", "result", "d_input")
        lent = torch.empty(plan.workspace_size, dtype=torch.uint8, device=result.device)
        plan.run(TESTED, bk.Workspace.borrowed(lent), plan.args_type(**dict(zip(names, (*given, result), strict=True))))
        return result.cpu().numpy() / numpy.float32(scale)

    numpy.testing.assert_allclose(slopes(2.0**-66), slopes(1.0), rtol=1e-5)


# --- gradients ---------------------------------------------------------------------------------------------------------------------


def _gradient(name: str, d: torch.Tensor, x: torch.Tensor, dim: int, reverse: bool) -> torch.Tensor:
    found = ours(name, x, dim, reverse)
    saved = {"input": x, "result": found[0] if isinstance(found, tuple) else found}
    if isinstance(found, tuple):
        saved["indices"] = found[1]
    back = getattr(F, f"{name}_backward")
    return back(d, **{each: value for each, value in saved.items() if each in back.inputs}, dim=dim, reverse=reverse)  # type: ignore[no-any-return]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "dim"), LINES)
@pytest.mark.parametrize("name", [*SINGLE, "cummax", "cummin"])
def test_gradients_as_pytorch(name: str, shape: tuple[int, ...], dim: int, reverse: bool) -> None:
    torch.manual_seed(2)
    x, d = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    if name.startswith("cumm"):
        x = x.round()  # with many that are equal
    wanted = x.clone().requires_grad_()
    found = theirs(name, wanted, dim, reverse)
    (found if isinstance(found, torch.Tensor) else found[0]).backward(d)
    same(_gradient(name, d, x, dim, reverse), wanted.grad)


@pytest.mark.parametrize("zeros", [(0,), (7,), (32,), (4, 20), (0, 1, 2), tuple(range(33))])
def test_gradient_of_a_product_with_zeros(zeros: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    for shape, dim in LINES[:2]:
        x, d = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
        x.select(1 - dim, 2).index_fill_(0, torch.tensor(zeros), 0.0)
        wanted = x.clone().requires_grad_()
        torch.cumprod(wanted, dim).backward(d)
        same(_gradient("cumprod", d, x, dim, False), wanted.grad)


def test_gradient_of_powers_that_overflow() -> None:
    x = torch.tensor([-1000.0, 3.0, 1000.0, 2000.0, -5.0], dtype=torch.float64)
    wanted = x.clone().requires_grad_()
    torch.logcumsumexp(wanted, 0).backward(torch.ones(5, dtype=torch.float64))
    same(_gradient("logcumsumexp", torch.ones(5, dtype=torch.float64), x, 0, False), wanted.grad)


def test_every_kind_is_a_function() -> None:
    for kind in ScanKind:
        forward = getattr(F, kind.value)
        assert forward.plan is ScanPlan and forward.backward().function is getattr(F, f"{kind.value}_backward")
    assert {"scan", "scan_backward"} <= set(plans())


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_products_along_several_lines_are_those_of_each(lines: int) -> None:
    """In place too, where lines that are walked along together must not meet."""
    x = torch.rand(lines, 1003, generator=torch.Generator().manual_seed(3)) + 0.5
    alone = torch.cat([ours("cumprod", line[None], 1) for line in x])
    assert torch.equal(ours("cumprod", x, 1), alone)
    torch.testing.assert_close(alone, torch.cumprod(x.double(), 1).float())
    F.cumprod(x, 1, out=x)
    assert torch.equal(x, alone)
