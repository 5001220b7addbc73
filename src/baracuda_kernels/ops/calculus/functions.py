"""Ops on neighbours as functions, with PyTorch's names and arguments."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.function import function
from baracuda_kernels.core.view import Number, View, scalar_for
from baracuda_kernels.ops.calculus.cumulative import (
    CumulativeTrapezoidBackwardDescriptor,
    CumulativeTrapezoidBackwardPlan,
    CumulativeTrapezoidDescriptor,
    CumulativeTrapezoidPlan,
)
from baracuda_kernels.ops.calculus.diff import DiffBackwardDescriptor, DiffBackwardPlan, DiffDescriptor, DiffPlan
from baracuda_kernels.ops.calculus.gradient import (
    GradientBackwardDescriptor,
    GradientBackwardPlan,
    GradientDescriptor,
    GradientPlan,
)
from baracuda_kernels.ops.calculus.trapezoid import (
    TrapezoidBackwardDescriptor,
    TrapezoidBackwardPlan,
    TrapezoidDescriptor,
    TrapezoidPlan,
)

__all__ = [
    "cumulative_trapezoid", "cumulative_trapezoid_backward", "diff", "diff_backward", "gradient", "gradient_backward", "trapezoid",
    "trapezoid_backward",
]  # fmt: skip


def _extent(axis: int, rank: int, given: View | None) -> int | None:
    return None if given is None else given.of_rank(rank)[axis]


def _differences(kind: Any, input: View, n: int, dim: int, prepend: View | None, append: View | None) -> Any:
    axis, rank = input.axis(dim, "dim"), len(input.shape)
    return kind(input.shape, axis, input.element, n, _extent(axis, rank, prepend), _extent(axis, rank, append))


@function(DiffPlan, gradient="diff_backward")
def diff(input: View, n: int = 1, dim: int = -1, prepend: View | None = None, append: View | None = None) -> DiffDescriptor:
    """The n-th differences of neighbours along an axis, of the input between prepend and append."""
    return _differences(DiffDescriptor, input, n, dim, prepend, append)  # type: ignore[no-any-return]


@function(DiffBackwardPlan)
def diff_backward(
    d_result: View, input: View, n: int = 1, dim: int = -1, prepend: View | None = None, append: View | None = None
) -> DiffBackwardDescriptor:
    """The gradients of input, prepend and append, from that of their differences."""
    return _differences(DiffBackwardDescriptor, input, n, dim, prepend, append)  # type: ignore[no-any-return]


def _integral(kind: Any, y: View, x: View | None, dx: float, dim: int) -> Any:
    """Points of one axis are along that of the integral; others are broadcast to the integrand."""
    points = None if x is None else x.shape if len(x.shape) == 1 else y.shape
    return kind(y.shape, y.axis(dim, "dim"), y.element, points, dx)


@function(TrapezoidPlan, gradient="trapezoid_backward")
def trapezoid(y: View, x: View | None = None, *, dx: float = 1.0, dim: int = -1) -> TrapezoidDescriptor:
    """The integral of y along an axis by the trapezoidal rule, over the points x, or in steps of dx."""
    return _integral(TrapezoidDescriptor, y, x, dx, dim)  # type: ignore[no-any-return]


@function(TrapezoidBackwardPlan)
def trapezoid_backward(
    d_result: View, y: View, x: View | None = None, *, dx: float = 1.0, dim: int = -1
) -> TrapezoidBackwardDescriptor:
    """The gradients of y and x, from that of the integral."""
    return _integral(TrapezoidBackwardDescriptor, y, x, dx, dim)  # type: ignore[no-any-return]


@function(CumulativeTrapezoidPlan, gradient="cumulative_trapezoid_backward")
def cumulative_trapezoid(y: View, x: View | None = None, *, dx: float = 1.0, dim: int = -1) -> CumulativeTrapezoidDescriptor:
    """The integrals of y along an axis up to every point but the first, by the trapezoidal rule."""
    return _integral(CumulativeTrapezoidDescriptor, y, x, dx, dim)  # type: ignore[no-any-return]


@function(CumulativeTrapezoidBackwardPlan)
def cumulative_trapezoid_backward(
    d_result: View, y: View, x: View | None = None, *, dx: float = 1.0, dim: int = -1
) -> CumulativeTrapezoidBackwardDescriptor:
    """The gradients of y and x, from those of the integrals up to each point."""
    return _integral(CumulativeTrapezoidBackwardDescriptor, y, x, dx, dim)  # type: ignore[no-any-return]


def _slope(kind: Any, input: View, step: Any, dim: int, edge_order: int) -> Any:
    if step is not None and input.element.is_float:  # of others no kernel takes any
        step = scalar_for(input.element, input.function, "spacing", step)
    return kind(input.shape, input.axis(dim, "dim"), input.element, step, edge_order)


@function(GradientPlan, gradient="gradient_backward")
def gradient(
    input: View, *, spacing: View | float = 1.0, dim: int = -1, edge_order: int = 1, spacing_value: Number | None = None
) -> GradientDescriptor:
    """The slope along one axis by central differences; spacing is the step between elements, or their coordinates along the axis."""
    return _slope(GradientDescriptor, input, spacing_value, dim, edge_order)  # type: ignore[no-any-return]


@function(GradientBackwardPlan)
def gradient_backward(
    d_result: View,
    input: View,
    *,
    spacing: View | float = 1.0,
    dim: int = -1,
    edge_order: int = 1,
    spacing_value: Number | None = None,
) -> GradientBackwardDescriptor:
    """The gradients of the input, and of coordinates, from that of the slope."""
    return _slope(GradientBackwardDescriptor, input, spacing_value, dim, edge_order)  # type: ignore[no-any-return]
