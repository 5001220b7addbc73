"""Derivatives of differences, slopes and integrals along an axis."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule, part
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _TANGENTS.get(function.name)


def composition(function: Function) -> Rule | None:
    return _COMPOSITIONS.get(function.name)


def _apart(f: Any, x: Any, axis: int) -> Any:
    """The differences of neighbours."""
    return part(x, axis, 1, None) - part(x, axis, None, -1)


def _around(f: Any, x: Any, axis: int) -> tuple[Any, Any]:
    """With a zero in front, and with one behind."""
    zero = f.zeros_like(part(x, axis, 0, 1))
    return f.cat([zero, x], axis), f.cat([x, zero], axis)


# --- differences ---------------------------------------------------------------------------------------------------------------------


def _diff(f: Any, n: int, dim: int, **given: Any) -> Any:
    def of(name: str) -> Any:
        if given[name] is None:
            return None
        return f.zeros_like(given[name]) if given[f"t_{name}"] is None else given[f"t_{name}"]

    return f("diff")(of("input"), n, dim, of("prepend"), of("append"))


def _diff_backward(f: Any, d_result: Any, input: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """Each difference goes to its two neighbours, with opposite signs."""
    if not n:  # the input itself
        return d_result, *(None if each is None else f.zeros_like(each) for each in (prepend, append))
    ends, whole = [0 if each is None else each.shape[dim] for each in (prepend, append)], d_result
    extent = ends[0] + input.shape[dim] + ends[1]
    if n >= extent:  # nothing is left of them
        return tuple(None if each is None else f.zeros_like(each) for each in (input, prepend, append))
    for _ in range(n):
        in_front, behind = _around(f, whole, dim)
        whole = in_front - behind
    first, last = ends[0], extent - ends[1]
    return (
        part(whole, dim, first, last),
        None if prepend is None else part(whole, dim, None, first),
        None if append is None else part(whole, dim, last, None),
    )


# --- integrals -----------------------------------------------------------------------------------------------------------------------


def _lined(points: Any, y: Any, axis: int) -> Any:
    """Points of one axis, as they lie along that of the integral."""
    return points if points.ndim > 1 or y.ndim == 1 else points.reshape([-1 if at == axis % y.ndim else 1 for at in range(y.ndim)])


def _areas(f: Any, dim: int, dx: float, y: Any, x: Any, t_y: Any, t_x: Any) -> Any:
    """How the areas between neighbours change."""
    parts = []
    if t_y is not None:
        width = dx if x is None else _apart(f, _lined(x, y, dim), dim)
        parts.append((part(t_y, dim, 1, None) + part(t_y, dim, None, -1)) * width)
    if t_x is not None:
        parts.append((part(y, dim, 1, None) + part(y, dim, None, -1)) * _apart(f, _lined(t_x, y, dim), dim))
    return f.added(parts) * 0.5


def _of_areas(f: Any, d: Any, dim: int, dx: float, y: Any, x: Any) -> tuple[Any, Any]:
    """The gradients of y and x from those of the areas."""
    half = d * 0.5
    if not y.shape[dim]:
        return f.zeros_like(y), None if x is None else f.zeros_like(x)
    in_front, behind = _around(f, half * (dx if x is None else _apart(f, _lined(x, y, dim), dim)), dim)
    d_y = in_front + behind
    if x is None:
        return d_y, None
    in_front, behind = _around(f, half * (part(y, dim, 1, None) + part(y, dim, None, -1)), dim)
    d_x = in_front - behind
    return d_y, d_x if x.ndim > 1 else f.summed(d_x, _lined(x, y, dim).shape).reshape(x.shape)


def _trapezoid(f: Any, y: Any, x: Any, t_y: Any, t_x: Any, dx: float, dim: int, **_: Any) -> Any:
    return f("sum")(_areas(f, dim, dx, y, x, t_y, t_x), dim)


def _trapezoid_backward(f: Any, d_result: Any, y: Any, x: Any, dx: float, dim: int) -> Any:
    axis = dim % y.ndim
    areas = tuple(max(extent - 1, 0) if at == axis else extent for at, extent in enumerate(y.shape))
    kept = tuple(1 if at == axis else extent for at, extent in enumerate(y.shape))
    return _of_areas(f, f.expand(d_result.reshape(kept), areas), dim, dx, y, x)


def _cumulative(f: Any, y: Any, x: Any, t_y: Any, t_x: Any, dx: float, dim: int, **_: Any) -> Any:
    return f("cumsum")(_areas(f, dim, dx, y, x, t_y, t_x), dim)


def _cumulative_backward(f: Any, d_result: Any, y: Any, x: Any, dx: float, dim: int) -> Any:
    return _of_areas(f, f("cumsum")(d_result, dim, True), dim, dx, y, x)


# --- slopes --------------------------------------------------------------------------------------------------------------------------
# Between neighbours there are slopes s. Inside, the result is s0 + q (s1 - s0), where q is the share of the first of two gaps; at the edges it is
# a slope, or of order 2 one from which the same is taken away again.


class _Gaps:
    """Gaps between neighbours, their slopes, and the shares of the first of two gaps."""

    def __init__(self, f: Any, input: Any, spacing: Any, spacing_value: Any, dim: int) -> None:
        is_given = spacing is not None
        self.gaps: Any = _apart(f, _lined(spacing, input, dim), dim) if is_given else spacing_value
        self.slopes = _apart(f, input, dim) / self.gaps
        self.first, self.second = (part(self.gaps, dim, *ends) if is_given else self.gaps for ends in ((None, -1), (1, None)))
        self.both = self.first + self.second
        self.shares = self.first / self.both
        self.bends = _apart(f, self.slopes, dim)


def _edges(f: Any, inside: Any, first: Any, last: Any, dim: int) -> Any:
    return f.cat([first, inside, last], dim)


def _slope(
    f: Any, input: Any, spacing: Any, spacing_value: float | None, dim: int, edge_order: int, t_input: Any, t_spacing: Any, **_: Any
) -> Any:
    at, parts = _Gaps(f, input, spacing, spacing_value, dim), []
    if t_input is not None:
        parts.append(
            f("gradient")(
                t_input, spacing=spacing_value if spacing is None else f.constant(spacing), dim=dim, edge_order=edge_order
            )
        )
    if t_spacing is not None:
        wider = _apart(f, _lined(t_spacing, input, dim), dim)
        parts.append(_joined(f, -at.slopes * wider / at.gaps, at, dim, edge_order))
        turn = (part(wider, dim, None, -1) * at.second - at.first * part(wider, dim, 1, None)) / (at.both * at.both) * at.bends
        zero = f.zeros_like(part(input, dim, 0, 1))
        ends = (-part(turn, dim, 0, 1), -part(turn, dim, -1, None)) if edge_order > 1 else (zero, zero)
        parts.append(_edges(f, turn, *ends, dim))
    return f.added(parts)


def _joined(f: Any, slopes: Any, at: _Gaps, dim: int, edge_order: int) -> Any:
    """The results for these slopes between neighbours."""
    bends = _apart(f, slopes, dim)
    inside, first, last = part(slopes, dim, None, -1) + at.shares * bends, part(slopes, dim, 0, 1), part(slopes, dim, -1, None)
    if edge_order > 1:
        shared = at.shares * bends
        first, last = first - part(shared, dim, 0, 1), last + part(bends - shared, dim, -1, None)
    return _edges(f, inside, first, last, dim)


def _slope_backward(f: Any, d_result: Any, input: Any, spacing: Any, spacing_value: float | None, dim: int, edge_order: int) -> Any:
    at = _Gaps(f, input, spacing, spacing_value, dim)
    first, inside, last = part(d_result, dim, 0, 1), part(d_result, dim, 1, -1), part(d_result, dim, -1, None)
    none = f.zeros_like(inside)
    d_slopes = f.cat([inside, last], dim) + f.cat([first, none], dim)
    d_bends, d_shares = inside * at.shares, inside * at.bends
    if edge_order > 1:
        rest = part(none, dim, 1, None)
        at_first, at_last = f.cat([first, rest], dim), f.cat([rest, last], dim)
        d_bends = d_bends - at_first * at.shares + at_last * (1 - at.shares)
        d_shares = d_shares - (at_first + at_last) * at.bends
    in_front, behind = _around(f, d_bends, dim)
    d_slopes = d_slopes + in_front - behind
    in_front, behind = _around(f, d_slopes / at.gaps, dim)
    if spacing is None:
        return in_front - behind, None
    square = at.both * at.both
    d_gaps = _around(f, d_shares * at.second / square, dim)[1] - _around(f, d_shares * at.first / square, dim)[0]
    d_gaps = f.summed(d_gaps - d_slopes * at.slopes / at.gaps, at.gaps.shape)
    before, after = _around(f, d_gaps, dim)
    return in_front - behind, (before - after).reshape(spacing.shape)


_TANGENTS: dict[str, Rule] = {"diff": _diff, "trapezoid": _trapezoid, "cumulative_trapezoid": _cumulative, "gradient": _slope}
_COMPOSITIONS: dict[str, Rule] = {
    "diff_backward": _diff_backward,
    "trapezoid_backward": _trapezoid_backward,
    "cumulative_trapezoid_backward": _cumulative_backward,
    "gradient_backward": _slope_backward,
}
