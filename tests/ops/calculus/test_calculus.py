"""Ops on neighbours: what they mean, beside PyTorch and NumPy; their edges; their gradients."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch

import baracuda_kernels as bk
import baracuda_kernels.torch as recorded
from baracuda_kernels.ops.calculus import functions as F
from baracuda_kernels.verify.trial import random_inputs, run_trial

from conftest import DEVICE
from conftest import STREAM as TESTED

INF, NAN = float("inf"), float("nan")
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool)


close = functools.partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)  # of f64


def beside(shape: tuple[int, ...], dim: int, extent: int | None, **options: Any) -> torch.Tensor | None:
    """Something to put before or behind a tensor of that shape."""
    return None if extent is None else torch.randn([*shape[:dim], extent, *shape[dim + 1 :]], **options)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
@pytest.mark.parametrize(("before", "behind"), [(None, None), (1, None), (None, 3), (2, 9), (0, 0)])
def test_differences_as_pytorch(n: int, before: int | None, behind: int | None) -> None:
    """Bit by bit in f32 and f64: the same subtractions."""
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        for dim in range(3):
            x = torch.randn(3, 7, 12, dtype=dtype)
            more = [beside((3, 7, 12), dim, extent, dtype=dtype) for extent in (before, behind)]
            assert torch.equal(F.diff(x, n, dim, *more), torch.diff(x, n, dim, *more))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_differences_of_integers_as_pytorch(dtype: torch.dtype) -> None:
    """They wrap around; of truths it is the exclusive or."""
    torch.manual_seed(1)
    x = torch.randint(-100, 100, (5, 40)).to(dtype)
    for n in (1, 2, 8):
        assert torch.equal(F.diff(x, n), torch.diff(x, n))
        assert torch.equal(F.diff(x, n, 0, prepend=x[:2], append=x), torch.diff(x, n, 0, x[:2], x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once(dtype: torch.dtype) -> None:
    x = (torch.randn(3, 50) * 100).to(dtype)
    assert torch.equal(F.diff(x, 3), torch.diff(x.float(), 3).to(dtype))


def test_differences_at_the_edges_of_numbers() -> None:
    x = torch.tensor([1.0, NAN, 2.0, INF, INF, -INF, 0.0, -0.0, 0.0])
    for n in (1, 2):
        assert torch.equal(F.diff(x, n).isnan(), torch.diff(x, n).isnan())
        torch.testing.assert_close(F.diff(x, n), torch.diff(x, n), equal_nan=True, rtol=0, atol=0)
    assert torch.equal(torch.signbit(F.diff(x[-3:])), torch.signbit(torch.diff(x[-3:])))


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (1, 1)])
def test_differences_of_too_few(shape: tuple[int, ...]) -> None:
    for n in (0, 1, 3):
        x = numpy.zeros(shape, numpy.float32)
        assert F.diff(x, n).shape == numpy.diff(x, n).shape


@pytest.mark.parametrize("n", [0, 1, 3, 7])
@pytest.mark.parametrize(("before", "behind"), [(None, None), (1, None), (2, 4)])
def test_gradients_of_differences_as_pytorch(n: int, before: int | None, behind: int | None) -> None:
    torch.manual_seed(2)
    for dim in range(2):
        wanting = {"dtype": torch.float64, "requires_grad": True}
        x, more = torch.randn(5, 6, **wanting), [beside((5, 6), dim, extent, **wanting) for extent in (before, behind)]
        inputs = [each for each in (x, *more) if each is not None]
        theirs = torch.diff(x, n, dim, *more)
        slope = torch.randn_like(theirs)
        found = torch.autograd.grad(recorded.diff(x, n, dim, *more), inputs, slope)
        wanted = torch.autograd.grad(theirs, inputs, slope, allow_unused=True)
        for mine, other in zip(found, wanted, strict=True):
            close(mine, torch.zeros_like(mine) if other is None else other)


POINTS = ("none", "line", "rows", "full")


def points(how: str, shape: tuple[int, ...], dim: int, **options: Any) -> torch.Tensor | None:
    """Of one line, as the broadcast rows of a matrix, or for every element."""
    along = [extent if axis == dim else 1 for axis, extent in enumerate(shape)]
    shapes = {"line": (shape[dim],), "rows": along, "full": shape}
    return None if how == "none" else torch.randn(shapes[how], **options)


@pytest.mark.parametrize("name", ["trapezoid", "cumulative_trapezoid"])
@pytest.mark.parametrize("how", POINTS)
@pytest.mark.parametrize("shape", [(5, 7), (3, 40, 33), (9,), (4, 1), (3, 0), (0, 4)])
def test_integrals_and_gradients_as_pytorch(shape: tuple[int, ...], how: str, name: str) -> None:
    torch.manual_seed(3)
    wanting = {"dtype": torch.float64, "requires_grad": True}
    for dim in range(len(shape)):
        y, x = torch.randn(shape, **wanting), points(how, shape, dim, **wanting)
        spaced = {"dx": 0.3} if x is None else {"x": x}
        mine = getattr(recorded, name)(y, dim=dim, **spaced)
        theirs = getattr(torch, name)(y, dim=dim, **spaced) if shape[dim] else mine.detach()
        close(mine, theirs)
        inputs, slope = [y] if x is None else [y, x], torch.randn_like(theirs)
        # Of an integral over nothing PyTorch records none.
        wanted = torch.autograd.grad(theirs, inputs, slope, allow_unused=True) if theirs.requires_grad else [None] * len(inputs)
        for ours, other in zip(torch.autograd.grad(mine, inputs, slope), wanted, strict=True):
            close(ours, torch.zeros_like(ours) if other is None else other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_integrals_are_rounded_once(dtype: torch.dtype) -> None:
    """Each is the f64 integral to within half a unit, and the error of the sums beyond it."""
    torch.manual_seed(4)
    y, x = torch.rand(3, 3000).to(dtype), torch.rand(3000).sort()[0].to(dtype)
    exact = torch.trapezoid(y.double(), x.double())
    assert ((F.trapezoid(y, x).double() - exact).abs() <= (0.5 + 1e-3) * torch.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_running_integrals_are_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(6)
    y = torch.rand(2, 20_000).to(dtype) / 8
    exact = torch.cumulative_trapezoid(y.double(), dx=0.25)
    assert ((F.cumulative_trapezoid(y, dx=0.25).double() - exact).abs() <= 0.51 * torch.finfo(dtype).eps * exact).all()


# Rows in whole vectors and not, of one tile and of several, short lines together; columns; lines that are split, as rows and as columns.
RUNNING = [
    ((24, 140), 1),
    ((24, 131), 1),
    ((2, 3, 20), 2),
    ((7, 3), 1),
    ((7, 2), 1),
    ((2, 9), 0),
    ((65, 70), 0),
    ((1, 200), 1),
    ((200, 3), 0),
]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("element", [bk.ElementKind.F32, bk.ElementKind.BF16], ids=str)
@pytest.mark.parametrize(("shape", "axis"), RUNNING, ids=str)
def test_running_integrals(shape: tuple[int, ...], axis: int, element: bk.ElementKind, rng: Any) -> None:
    for name, plan_type, points in (
        ("triton.cumulative_trapezoid", bk.CumulativeTrapezoidPlan, None),
        ("triton.cumulative_trapezoid", bk.CumulativeTrapezoidPlan, (shape[axis],)),
        ("triton.cumulative_trapezoid_backward", bk.CumulativeTrapezoidBackwardPlan, None),
    ):
        descriptor = plan_type.descriptor_type(shape, axis, element, points, 1.0 if points else 0.3)
        plan = plan_type.force(name, TESTED, descriptor)
        for layout in ("contiguous", "every_second", "backwards"):
            run_trial(plan, random_inputs(plan_type, descriptor, rng), layout)


# Columns in strips: rows in whole vectors and not, fewer and more than a tile, several columns of tiles, and several such planes.
STRIPS = [((65, 32), 0), ((131, 72), 0), ((98, 45), 0), ((2, 70, 40), 1)]


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("element", [bk.ElementKind.F32, bk.ElementKind.BF16, bk.ElementKind.F64], ids=str)
@pytest.mark.parametrize(("shape", "axis"), STRIPS, ids=str)
def test_running_integrals_down_columns(
    shape: tuple[int, ...], axis: int, element: bk.ElementKind, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from baracuda_kernels.ops.calculus.triton_columns import scan_columns

    monkeypatch.setattr("baracuda_kernels.ops.scan.tiles.UNIT", 4096)  # no lines are split
    for name, plan_type, points in (
        ("triton.cumulative_trapezoid", bk.CumulativeTrapezoidPlan, None),
        ("triton.cumulative_trapezoid", bk.CumulativeTrapezoidPlan, (shape[axis],)),
        ("triton.cumulative_trapezoid", bk.CumulativeTrapezoidPlan, shape),
        ("triton.cumulative_trapezoid_backward", bk.CumulativeTrapezoidBackwardPlan, None),
    ):
        descriptor = plan_type.descriptor_type(shape, axis, element, points, 1.0 if points else 0.3)
        (call,) = calls_of(plan_type, descriptor)
        assert call.body is scan_columns
        plan = plan_type.force(name, TESTED, descriptor)
        for layout in ("contiguous", "gaps", "offset"):
            run_trial(plan, random_inputs(plan_type, descriptor, rng), layout)


def calls_of(plan_type: Any, descriptor: Any) -> Any:
    """What is launched for contiguous operands."""
    from baracuda_kernels.core.layout import row_major
    from baracuda_kernels.ops.calculus.triton_running import running_calls

    operands = plan_type.args_type.OPERANDS
    shapes = [None if each.presence(descriptor) is False else each.shapes(descriptor)[0] for each in operands]
    found = running_calls(descriptor, [None if shape is None else SimpleNamespace(stride=row_major(shape)) for shape in shapes])
    assert found is not None
    return found[0]


@pytest.mark.usefixtures("small_tiles")
def test_rows_that_begin_anywhere_leave_others_their_vectors() -> None:
    """The rows of a result are one shorter than those of what is integrated, so that hardly any of them begins with a whole vector."""
    from baracuda_kernels.ops.calculus.triton_running import running_calls

    problem = bk.CumulativeTrapezoidPlan.descriptor_type((64, 128), 1, bk.ElementKind.F32)
    found = running_calls(problem, [SimpleNamespace(stride=(128, 1)), None, SimpleNamespace(stride=(127, 1))])
    assert found is not None
    ((call,), _) = found
    in_vectors, one_by_one = call.forms()[True], call.forms()[False]
    assert (in_vectors.constants["VECTORS"], one_by_one.constants["VECTORS"]) == ((True,), (False,))
    (y,), result = in_vectors.arguments[:2]
    assert (y.is_whole, result.is_whole) == (True, False)
    assert (0, 0) in in_vectors.hints() and (1,) not in in_vectors.hints()


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_stay_where_integrals_have_them(axis: int, rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.ops.scan.tiles.UNIT", 4096)  # no lines are split
    y = rng.standard_normal((40, 140)).astype(numpy.float32)
    y[0, 50], y[1, 70], y[1, 90], y[2, 139] = INF, INF, -INF, NAN
    y = numpy.ascontiguousarray(y if axis else y.T)
    plan_type = bk.CumulativeTrapezoidPlan
    plan = plan_type.force(
        "triton.cumulative_trapezoid", TESTED, plan_type.descriptor_type(y.shape, axis, bk.ElementKind.F32, None, 0.5)
    )
    given = torch.from_numpy(y).to(str(DEVICE))
    wanted = torch.cumulative_trapezoid(torch.from_numpy(y), dx=0.5, dim=axis)
    result = torch.empty(wanted.shape, device=given.device)
    lent = torch.empty(plan.workspace_size, dtype=torch.uint8, device=given.device)
    plan.run(TESTED, bk.Workspace.borrowed(lent), plan.args_type(y=given, result=result))
    torch.testing.assert_close(result.cpu(), wanted, equal_nan=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dim", [0, 1])
def test_integrals_do_not_depend_on_threads(dim: int) -> None:
    y, x, d = torch.randn(3000, 700), torch.randn((3000, 700)[dim]), torch.randn((700, 3000)[dim])
    found = []
    before = bk.get_num_threads()
    for threads in (1, 3):
        bk.set_num_threads(threads)
        running = F.cumulative_trapezoid(y, x, dim=dim)
        gradients = (*F.trapezoid_backward(d, y, x, dim=dim), *F.cumulative_trapezoid_backward(running, y, x, dim=dim))
        found.append((F.trapezoid(y, x, dim=dim), running, *gradients))
    bk.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("how", ["default", "step", "coordinates"])
@pytest.mark.parametrize("shape", [(5, 7), (3, 40, 33), (9,), (3, 3), (2, 4), (0, 4)])
def test_slopes_and_gradients_as_pytorch(shape: tuple[int, ...], how: str, edge_order: int) -> None:
    torch.manual_seed(5)
    for dim in range(len(shape)):
        if shape[dim] <= edge_order:
            continue
        x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        at = (0.1 + torch.rand(shape[dim], dtype=torch.float64)).cumsum(0).requires_grad_()
        mine = recorded.gradient(
            x, dim=dim, edge_order=edge_order, **{"step": {"spacing": -0.3}, "coordinates": {"spacing": at}}.get(how, {})
        )
        given: Any = {"step": {"spacing": -0.3}, "coordinates": {"spacing": (at,)}}.get(how, {})
        (theirs,) = torch.gradient(x, dim=dim, edge_order=edge_order, **given)
        close(mine, theirs)
        inputs, slope = [x, at] if how == "coordinates" else [x], torch.randn_like(theirs)
        for ours, other in zip(torch.autograd.grad(mine, inputs, slope), torch.autograd.grad(theirs, inputs, slope), strict=True):
            close(ours, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_slopes_that_cancel(dtype: torch.dtype) -> None:
    """Beside a parabola that is far from 0 they are as exact as its values."""
    at = torch.tensor([0, 1, 3, 4, 8, 9, 11.0], dtype=dtype)
    x = at * at + 64
    slope = 2 * at
    assert torch.equal(F.gradient(x, spacing=at, edge_order=2), slope)
    assert torch.equal(F.gradient(x, spacing=at)[1:-1], slope[1:-1])
    assert numpy.array_equal(F.gradient(numpy.arange(5.0) ** 2, spacing=0.5, edge_order=2), 4 * numpy.arange(5.0))


def test_slopes_beside_nan() -> None:
    """Only those are NaN whose formula has it: not the one at its own place, where neighbours are evenly spaced."""
    x = numpy.zeros(7, numpy.float32)
    x[3] = NAN
    assert numpy.isnan(F.gradient(x)).tolist() == [False, False, True, False, True, False, False]
    at = numpy.arange(7, dtype=numpy.float32)
    assert numpy.isnan(F.gradient(x, spacing=at)).tolist() == [False, False, True, True, True, False, False]


def refusal(kind: type[bk.Error], call: Any) -> bk.Reason:
    with pytest.raises(kind) as found:
        call()
    return found.value.reasons[0]


def test_what_differences_refuse() -> None:
    x = numpy.zeros((3, 4), numpy.float32)
    assert "at most 8" in str(refusal(bk.Unsupported, lambda: F.diff(x, 9)))
    assert refusal(bk.InvalidProblem, lambda: F.diff(x, -1)).where == "n"
    assert refusal(bk.InvalidProblem, lambda: F.diff(x, 1, 2)).code is bk.ReasonCode.AXIS_OUT_OF_RANGE
    assert refusal(bk.InvalidProblem, lambda: F.diff(numpy.zeros((), numpy.float32))).where == "dim"
    assert refusal(bk.InvalidProblem, lambda: F.diff(x, prepend=x[0])).where == "prepend"
    assert refusal(bk.InvalidProblem, lambda: F.diff(x, append=x[:2])).code is bk.ReasonCode.SHAPE
    assert refusal(bk.InvalidProblem, lambda: F.diff(x, append=x.astype(numpy.float64))).code is bk.ReasonCode.ELEMENT


def test_what_integrals_refuse() -> None:
    y = numpy.zeros((3, 4), numpy.float32)
    assert refusal(bk.InvalidProblem, lambda: F.trapezoid(y, y[0], dim=0)).where == "x_shape"
    assert refusal(bk.InvalidProblem, lambda: F.trapezoid(y, y[0], dx=0.5)).where == "dx"
    assert refusal(bk.InvalidProblem, lambda: F.trapezoid(y, y[:2])).code is bk.ReasonCode.SHAPE
    assert refusal(bk.InvalidProblem, lambda: F.trapezoid(y, dim=2)).code is bk.ReasonCode.AXIS_OUT_OF_RANGE
    assert refusal(bk.Unsupported, lambda: F.trapezoid(y.astype(numpy.int32))).code is bk.ReasonCode.ELEMENT_NOT_SERVED


def test_what_slopes_refuse() -> None:
    x = numpy.zeros((3, 4), numpy.float32)
    assert refusal(bk.InvalidProblem, lambda: F.gradient(x[:, :2], edge_order=2)).where == "shape"
    assert refusal(bk.InvalidProblem, lambda: F.gradient(x, edge_order=3)).where == "edge_order"
    assert refusal(bk.InvalidProblem, lambda: F.gradient(x, spacing=x[0], dim=0)).where == "spacing"
    assert refusal(bk.InvalidProblem, lambda: F.gradient(x, spacing=None)).code is bk.ReasonCode.MISSING_OPERAND
    assert refusal(bk.InvalidProblem, lambda: F.gradient(x, spacing=x[0].astype(numpy.float64))).code is bk.ReasonCode.ELEMENT
    assert refusal(bk.Unsupported, lambda: F.gradient(x.astype(numpy.int32), spacing=1)).code is bk.ReasonCode.ELEMENT_NOT_SERVED


def test_slopes_of_integers_are_refused_for_their_element() -> None:
    with pytest.raises(bk.Unsupported, match="i32"):
        bk.gradient(numpy.arange(8, dtype=numpy.int32))
