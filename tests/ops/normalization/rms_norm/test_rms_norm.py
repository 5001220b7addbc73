"""What is particular to RMSNorm: masks, the saved rms, dgamma's sum over any number of rows, short rows, extreme numbers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core.element import FLOATS
from baracuda_kernels.ops.normalization.rms_norm import (
    RMSNormArgs,
    RMSNormBackwardArgs,
    RMSNormBackwardDescriptor,
    RMSNormBackwardPlan,
    RMSNormDescriptor,
    RMSNormPlan,
)
from baracuda_kernels.verify.bounds import relative_error
from baracuda_kernels.verify.memory import LAYOUTS
from baracuda_kernels.verify.trial import random_inputs, run_trial

from conftest import DEVICE, STREAM

CPU, NONE = bk.Stream.cpu(), bk.Workspace.none()
F32, F64, F16, BF16 = bk.ElementKind.F32, bk.ElementKind.F64, bk.ElementKind.F16, bk.ElementKind.BF16


def _workspace(plan: Any) -> bk.Workspace:
    """Full of NaN."""
    return bk.Workspace.borrowed(numpy.full(plan.workspace_size, 0xFF, numpy.uint8)) if plan.workspace_size else NONE


def _forward(x: Any, mask: int, eps: float = 1e-5, gamma: Any = None) -> tuple[Any, Any]:
    descriptor = RMSNormDescriptor(x.shape, mask, eps, gamma is not None, bk.ElementKind.of(x.dtype))
    y, rms = numpy.full_like(x, numpy.nan), numpy.full(descriptor.rms_shape, numpy.nan, x.dtype)
    RMSNormPlan.select(CPU, descriptor).run(CPU, NONE, RMSNormArgs(x=x, gamma=gamma, y=y, rms=rms))
    return y, rms


def _backward(dy: Any, x: Any, rms: Any, mask: int, gamma: Any = None) -> tuple[Any, Any]:
    element, kept = bk.ElementKind.of(x.dtype), bk.ElementKind.of(rms.dtype)
    plan = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor(x.shape, mask, gamma is not None, element, kept))
    dx, dgamma = numpy.full_like(x, numpy.nan), None if gamma is None else numpy.full_like(gamma, numpy.nan)
    plan.run(CPU, _workspace(plan), RMSNormBackwardArgs(dy=dy, x=x, gamma=gamma, rms=rms, dx=dx, dgamma=dgamma))
    return dx, dgamma


# --- the problem -------------------------------------------------------------------------------------------------------------


def test_shapes_that_follow_from_the_mask() -> None:
    for mask, rms_shape, extent in ((0b1000, (2, 3, 4, 1), 5), (0b1100, (2, 3, 1, 1), 20), (0b1111, (1, 1, 1, 1), 120)):
        for descriptor in (
            RMSNormDescriptor((2, 3, 4, 5), mask, 1e-5, True, F32),
            RMSNormBackwardDescriptor((2, 3, 4, 5), mask, True, F32),
        ):
            assert descriptor.rms_shape == rms_shape
            assert descriptor.norm_total_extent == extent


@pytest.mark.parametrize("mask", [0, 0b0001, 0b0011, 0b0111, 0b0101, 0b1010, 0b1001, 0b10000, 0b11000, -1, -8, 1 << 70])
def test_masks_that_are_no_suffix(mask: int) -> None:
    for build in (
        lambda: RMSNormDescriptor((2, 3, 4, 5), mask, 1e-5, True, F32),
        lambda: RMSNormBackwardDescriptor((2, 3, 4, 5), mask, True, F32),
    ):
        with pytest.raises(bk.InvalidProblem, match="norm_axes_mask"):
            build()


@pytest.mark.parametrize("eps", [-1e-9, float("nan"), float("inf"), "small", None])
def test_eps_out_of_range(eps: Any) -> None:
    with pytest.raises(bk.InvalidProblem, match="eps"):
        RMSNormDescriptor((4, 8), 2, eps, True, F32)


def test_rank() -> None:
    with pytest.raises(bk.InvalidProblem, match="input_shape"):
        RMSNormDescriptor((), 1, 1e-5, True, F32)
    RMSNormPlan.select(CPU, RMSNormDescriptor((1,) * 8, 1 << 7, 1e-5, True, F32))
    with pytest.raises(bk.Unsupported, match="rank"):
        RMSNormPlan.select(CPU, RMSNormDescriptor((1,) * 9, 1 << 8, 1e-5, True, F32))


def test_rms_element() -> None:
    for element in FLOATS:
        allowed = {element} | ({F32} if element in (F16, BF16) else set())
        for kept in bk.ElementKind:
            if kept in allowed:
                plan = RMSNormPlan.select(CPU, RMSNormDescriptor((4, 8), 2, 1e-5, True, element, kept))
                assert plan.sku.aux_element is kept
            else:
                with pytest.raises(bk.InvalidProblem, match="rms_element"):
                    RMSNormDescriptor((4, 8), 2, 1e-5, True, element, kept)
    assert RMSNormPlan.select(CPU, RMSNormDescriptor((4, 8), 2, 1e-5, True, BF16)).sku.aux_element is BF16


def test_gamma_is_there_exactly_when_the_problem_says_so() -> None:
    x, gamma, rms = numpy.ones((4, 8), "f4"), numpy.ones(8, "f4"), numpy.ones((4, 1), "f4")
    out, dgamma = numpy.empty_like(x), numpy.empty_like(gamma)
    for has_gamma, given, code in ((True, None, "MISSING_OPERAND"), (False, gamma, "UNEXPECTED_OPERAND")):
        forward = RMSNormPlan.select(CPU, RMSNormDescriptor((4, 8), 2, 1e-5, has_gamma, F32))
        verdict = forward.can_implement(RMSNormArgs(x=x, gamma=given, y=out, rms=rms))
        assert [(reason.where, reason.code.name) for reason in verdict.reasons] == [("gamma", code)]
        backward = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((4, 8), 2, has_gamma, F32))
        dgamma_given = None if given is None else dgamma
        verdict = backward.can_implement(RMSNormBackwardArgs(dy=x, x=x, gamma=given, rms=rms, dx=out, dgamma=dgamma_given))
        assert [(reason.where, reason.code.name) for reason in verdict.reasons] == [("gamma", code), ("dgamma", code)]
        with pytest.raises(bk.InvalidProblem):
            forward.run(CPU, NONE, RMSNormArgs(x=x, gamma=given, y=out, rms=rms))


def test_in_place_is_allowed_only_where_the_page_says() -> None:
    x, dy = numpy.ones((4, 8), "f4"), numpy.ones((4, 8), "f4")
    rms = numpy.ones((4, 1), "f4")
    plan = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((4, 8), 2, False, F32))
    assert plan.can_implement(RMSNormBackwardArgs(dy=dy, x=x, rms=rms, dx=dy))
    assert [reason.code.name for reason in plan.can_implement(RMSNormBackwardArgs(dy=dy, x=x, rms=rms, dx=x)).reasons] == ["ALIAS"]


def test_workspace_is_a_function_of_the_problem(threads: Any) -> None:
    """None without gamma; with it, at most 64 rows of partial sums, however many rows and cores there are."""
    sizes = {}
    for count in (1, 2, 7):
        threads(count)
        for rows in (0, 1, 8, 9, 4096, 10**6, 10**12):
            plan = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((rows, 100), 2, True, F32))
            assert sizes.setdefault(rows, plan.workspace_size) == plan.workspace_size
    assert sizes[0] == 0 and sizes[1] == 112 * 8 and sizes[10**12] == 64 * 112 * 8
    assert RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((50, 100), 2, False, F32)).workspace_size == 0
    plan = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((50, 100), 2, True, F32))
    x, gamma = numpy.ones((50, 100), "f4"), numpy.ones(100, "f4")
    args = {"dy": x, "x": x, "gamma": gamma, "rms": x[:, :1], "dx": numpy.empty_like(x), "dgamma": numpy.empty_like(gamma)}
    with pytest.raises(bk.WorkspaceTooSmall):
        plan.run(CPU, NONE, RMSNormBackwardArgs(**args))


# --- nothing to sum ----------------------------------------------------------------------------------------------------------


def test_no_rows_make_a_dgamma_of_zero() -> None:
    for shape in ((0, 5), (3, 0, 5), (0, 3000)):
        x, gamma = numpy.empty(shape, "f4"), numpy.ones(shape[-1], "f4")
        rms = numpy.empty((*shape[:-1], 1), "f4")
        dx, dgamma = _backward(x, x, rms, 1 << (len(shape) - 1), gamma)
        assert dx.size == 0 and (dgamma == 0).all()


def test_rows_of_nothing_have_the_root_of_eps() -> None:
    """The mean over nothing is taken as zero, so that what a framework saves and shows holds no NaN."""
    y, rms = _forward(numpy.empty((3, 0), "f8"), 2, eps=0.25)
    assert y.size == 0 and (rms == 0.5).all()
    dx, dgamma = _backward(y, y, rms, 2, numpy.empty(0))
    assert dx.size == 0 and dgamma.size == 0


# --- numbers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 8, 9, 513, 40_000, 1_000_000])
def test_dgamma_stays_accurate_for_any_number_of_rows(rows: int, rng: numpy.random.Generator) -> None:
    """Terms of one sign and of both, in f32 within 2e-6."""
    x, dy = rng.standard_normal((rows, 3), numpy.float32), rng.standard_normal((rows, 3), numpy.float32)
    rms, gamma = rng.uniform(0.5, 2.0, (rows, 1)).astype("f4"), numpy.ones(3, "f4")
    for left, right in ((dy, x), (numpy.abs(dy), numpy.abs(x))):
        _, dgamma = _backward(left, right, rms, 2, gamma)
        exact = (left.astype("f8") * right / rms).sum(axis=0)
        assert relative_error(dgamma, exact) < 2e-6


@pytest.mark.parametrize("op", [RMSNormPlan, RMSNormBackwardPlan])
def test_bits_do_not_depend_on_the_layout(op: Any, rng: numpy.random.Generator) -> None:
    for shape, count in (((37, 203), 1), ((3, 5, 70, 9), 2), ((2, 9001), 1), ((50, 3), 1), ((2, 61, 83), 2)):
        for element in FLOATS:
            descriptor = op.cases.problem(shape, count, True, element, None)
            plan = op.select(CPU, descriptor)
            inputs = random_inputs(op, descriptor, rng)
            layouts = [layout for layout in LAYOUTS if not layout.startswith("broadcast")]
            assert len({tuple(run_trial(plan, inputs, layout).bits.values()) for layout in layouts}) == 1


@pytest.mark.parametrize("gamma", [True, False])
@pytest.mark.parametrize("op", [RMSNormPlan, RMSNormBackwardPlan])
def test_a_row_that_no_program_of_a_gpu_holds(
    op: Any, gamma: bool, rng: numpy.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces, each operand with strides of its own; interpreted where there is no GPU."""
    pytest.importorskip("triton")
    if DEVICE.kind is bk.DeviceKind.CPU:
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    descriptor = RMSNormDescriptor((1, 5003), 2, 1e-5, gamma, F32)
    if op is RMSNormBackwardPlan:
        descriptor = RMSNormBackwardDescriptor((1, 5003), 2, gamma, F32)
    (kernel,) = (each.name for each in op.kernels if each.backend is bk.BackendKind.TRITON)
    plan = op.force(kernel, STREAM, descriptor)
    for first, others in (("every_second", "backwards"), ("backwards", "every_second")):
        layout = {"x": first, "dy": others, "gamma": others, "y": first, "dx": others, "dgamma": first}
        assert run_trial(plan, random_inputs(op, descriptor, rng), layout).errors


def test_a_row_does_not_depend_on_its_batch(rng: numpy.random.Generator) -> None:
    for extent in (5, 203, 9001):
        x, dy, gamma = rng.standard_normal((41, extent)), rng.standard_normal((41, extent)), rng.standard_normal(extent)
        x, dy, gamma = x.astype("f4"), dy.astype("f4"), gamma.astype("f4")
        y, rms = _forward(x, 2, gamma=gamma)
        dx, _ = _backward(dy, x, rms, 2, gamma)
        for row in (0, 17, 40):
            alone = slice(row, row + 1)
            y_alone, rms_alone = _forward(x[alone], 2, gamma=gamma)
            assert numpy.array_equal(y_alone, y[alone]) and numpy.array_equal(rms_alone, rms[alone])
            assert numpy.array_equal(_backward(dy[alone], x[alone], rms[alone], 2, gamma)[0], dx[alone])


@pytest.mark.parametrize("element", FLOATS)
def test_rows_of_one_element_whose_gradient_all_but_vanishes(element: bk.ElementKind, rng: numpy.random.Generator) -> None:
    """With M = 1 the two terms of dx cancel down to eps; what remains is still within the bound."""
    descriptor = RMSNormBackwardDescriptor((500, 1), 2, True, element)
    x = rng.standard_normal((500, 1))
    inputs = random_inputs(RMSNormBackwardPlan, descriptor, rng) | {"x": x, "rms": numpy.sqrt(x * x + 1e-6)}
    from baracuda_kernels.core.encoding import rounded

    run_trial(RMSNormBackwardPlan.select(CPU, descriptor), {name: rounded(values, element) for name, values in inputs.items()})


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e-10, 1e10, 1e22, 1e30])
def test_squares_past_the_range_of_f32(size: float, rng: numpy.random.Generator) -> None:
    """x² would overflow or vanish in f32; rms and y do not."""
    x = (size * rng.standard_normal((5, 100))).astype("f4")
    y, rms = _forward(x, 2, eps=0.0)
    exact = numpy.sqrt((x.astype("f8") ** 2).mean(axis=1, keepdims=True))
    assert relative_error(rms, exact) < 2e-6 and relative_error(y, x / exact) < 2e-6


@pytest.mark.parametrize("extent", [100, 4096, 100_000])
def test_rows_of_equal_numbers(extent: int, rng: numpy.random.Generator) -> None:
    """Their roundings all go one way, which long sums in f32 would show."""
    x = numpy.broadcast_to(rng.uniform(0.5, 2.0, (40, 1)).astype("f4"), (40, extent))
    y, rms = _forward(x, 2, eps=0.0)
    assert relative_error(rms, x[:, :1]) < 1e-6 and relative_error(y, numpy.ones_like(x)) < 1e-6


def test_special_numbers_stay_in_their_row() -> None:
    for extent in (5, 40, 5000):
        x = numpy.ones((6, extent), "f4")
        x[1, 3], x[3, 2], x[4] = numpy.nan, numpy.inf, 0.0
        with numpy.errstate(invalid="ignore"):
            y, rms = _forward(x, 2, eps=0.0)
        assert numpy.allclose(y[[0, 2, 5]], 1.0) and (rms[[0, 2, 5]] == 1.0).all()
        assert numpy.isnan(y[1]).all() and numpy.isnan(rms[1])
        assert numpy.isinf(rms[3]) and numpy.isnan(y[3, 2]) and (numpy.delete(y[3], 2) == 0.0).all()
        assert rms[4] == 0.0 and numpy.isnan(y[4]).all()


def test_the_backward_reads_rms_as_it_was_saved(rng: numpy.random.Generator) -> None:
    """A bf16 rms is taken for what it is, not computed again; an f32 one beside bf16 operands costs less error."""
    x, dy = (torch.from_numpy(rng.standard_normal((64, 256))).to(torch.bfloat16) for _ in range(2))
    exact = x.double().square().mean(1, keepdim=True).sqrt()
    errors = {}
    for dtype in (torch.bfloat16, torch.float32):
        rms, dx = exact.to(dtype), torch.empty_like(x)
        descriptor = RMSNormBackwardDescriptor((64, 256), 2, False, BF16, bk.ElementKind.of(dtype))
        plan = RMSNormBackwardPlan.select(CPU, descriptor)
        plan.run(CPU, NONE, RMSNormBackwardArgs(dy=dy, x=x, rms=rms, dx=dx))
        arrays = {"dy": dy, "x": x, "rms": rms}
        expected, _ = plan.reference(descriptor, **{name: array.double().numpy() for name, array in arrays.items()})
        assert relative_error(dx.double().numpy(), expected) < 4e-3
        true, _ = plan.reference(descriptor, dy=dy.double().numpy(), x=x.double().numpy(), rms=exact.numpy())
        errors[dtype] = relative_error(dx.double().numpy(), true)
    assert errors[torch.float32] < errors[torch.bfloat16]


@pytest.mark.parametrize("pattern", [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000])
def test_any_nan_as_rms_makes_a_row_of_nan(pattern: int) -> None:
    """Also one that rounding to bf16 would carry over into a zero or an infinity."""
    x = torch.ones((2, 77), dtype=torch.bfloat16)
    rms = torch.tensor([[pattern], [0x3F800000]], dtype=torch.uint32).view(torch.float32)
    dx = torch.empty_like(x)
    plan = RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor((2, 77), 2, False, BF16, F32))
    plan.run(CPU, NONE, RMSNormBackwardArgs(dy=x, x=x, rms=rms, dx=dx))
    assert dx[0].isnan().all() and (dx[1] == 0.0).all()


@pytest.mark.parametrize("shape", [(4096, 2048), (4099, 2001)])
def test_large_results_that_go_past_the_cache(shape: tuple[int, int], rng: numpy.random.Generator) -> None:
    """Streaming stores, where alignment allows them and where it does not, beside the same rows a few at a time."""
    for dtype in (torch.float32, torch.bfloat16):
        element = bk.ElementKind.of(dtype)
        x, dy = (torch.from_numpy(rng.standard_normal(shape, numpy.float32)).to(dtype) for _ in range(2))
        gamma, room = x[0].clone(), torch.empty(x.numel() + 8, dtype=dtype)
        few = (shape[0] // 8, shape[1])
        plans = [RMSNormPlan.select(CPU, RMSNormDescriptor(each, 2, 1e-5, True, element, F32)) for each in (shape, few)]
        backs = [RMSNormBackwardPlan.select(CPU, RMSNormBackwardDescriptor(each, 2, True, element, F32)) for each in (shape, few)]
        for offset in (0, 1):
            y, rms = room[offset : offset + x.numel()].view(shape), torch.empty(shape[0], 1)
            plans[0].run(CPU, NONE, RMSNormArgs(x=x, gamma=gamma, y=y, rms=rms))
            some_y, some_rms = torch.empty(few, dtype=dtype), torch.empty(few[0], 1)
            plans[1].run(CPU, NONE, RMSNormArgs(x=x[: few[0]], gamma=gamma, y=some_y, rms=some_rms))
            assert torch.equal(y[: few[0]], some_y) and torch.equal(rms[: few[0]], some_rms)
            dx, some_dx, dgamma = y, some_y, torch.empty_like(gamma)
            args = {"gamma": gamma, "dgamma": dgamma}
            backs[0].run(CPU, _workspace(backs[0]), RMSNormBackwardArgs(dy=dy, x=x, rms=rms, dx=dx, **args))
            exact = (dy.double() * x.double() / rms.double()).sum(0)
            assert relative_error(dgamma.double().numpy(), exact.numpy()) < (2e-6 if element is F32 else 4e-3)
            top = slice(0, few[0])
            backs[1].run(CPU, _workspace(backs[1]), RMSNormBackwardArgs(dy=dy[top], x=x[top], rms=rms[top], dx=some_dx, **args))
            assert torch.equal(dx[top], some_dx)


def test_like_pytorch(rng: numpy.random.Generator) -> None:
    x = torch.from_numpy(rng.standard_normal((7, 3, 40))).requires_grad_()
    gamma, dy = torch.from_numpy(rng.standard_normal((3, 40))).requires_grad_(), torch.from_numpy(rng.standard_normal((7, 3, 40)))
    theirs = torch.nn.functional.rms_norm(x, (3, 40), gamma, 1e-3)
    dx, dgamma = torch.autograd.grad(theirs, [x, gamma], dy)
    plain, scale = x.detach().numpy(), gamma.detach().numpy().reshape(-1)
    y, rms = _forward(plain, 0b110, 1e-3, scale)
    ours = _backward(dy.numpy(), plain, rms, 0b110, scale)
    assert numpy.allclose(y, theirs.detach().numpy(), rtol=1e-12)
    assert numpy.allclose(ours[0], dx.numpy(), rtol=1e-10) and numpy.allclose(ours[1], dgamma.numpy().reshape(-1), rtol=1e-10)


@pytest.mark.parametrize(("shape", "mask"), [((4, 3), 2), ((2, 3, 5), 0b110), ((3, 20), 2), ((4, 1), 2)])
def test_backward_is_the_derivative_of_forward(shape: tuple[int, ...], mask: int, rng: numpy.random.Generator) -> None:
    """Central differences of the forward kernel in f64, independent of the backward's formula."""
    eps, extent = 0.1, numpy.prod(shape[1:]).item()
    x, dy, gamma = rng.standard_normal(shape), rng.standard_normal(shape), rng.standard_normal(extent)

    def loss(point: numpy.ndarray, scale: numpy.ndarray) -> float:
        return float((_forward(point, mask, eps, scale)[0] * dy).sum())

    dx, dgamma = _backward(dy, x, _forward(x, mask, eps, gamma)[1], mask, gamma)
    for array, gradient, other in ((x, dx, False), (gamma, dgamma, True)):
        for index in numpy.ndindex(array.shape):
            step = numpy.zeros_like(array)
            step[index] = 1e-5
            up, down = (loss(x, gamma + s) if other else loss(x + s, gamma) for s in (step, -step))
            assert gradient[index] == pytest.approx((up - down) / 2e-5, abs=1e-8)
