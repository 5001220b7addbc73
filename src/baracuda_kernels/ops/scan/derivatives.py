"""Derivatives of scans: sums are linear, and the others are linear recurrences, which nothing is divided for."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule, part
from baracuda_kernels.core.function import Function

__all__ = ["composition", "exclusive", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _TANGENTS.get(function.name)


def composition(function: Function) -> Rule | None:
    return _COMPOSITIONS.get(function.name)


# --- recurrences ---------------------------------------------------------------------------------------------------------------------


def _shifted(f: Any, x: Any, axis: int, reverse: bool, fill: Any, count: int = 1) -> Any:
    """What comes so many elements before each, in the direction of the scan."""
    if reverse:
        return f.cat([part(x, axis, count, None), fill(part(x, axis, 0, count))], axis)
    return f.cat([fill(part(x, axis, 0, count)), part(x, axis, 0, x.shape[axis] - count)], axis)


def _recurrence(f: Any, factors: Any, terms: Any, axis: int, reverse: bool) -> Any:
    """s[i] = terms[i] + factors[i] s[i - 1], by spans that become twice as long with each step."""
    span = 1
    while span < terms.shape[axis]:
        terms = terms + factors * _shifted(f, terms, axis, reverse, f.zeros_like, span)
        factors = factors * _shifted(f, factors, axis, reverse, f.zeros_like, span)
        span *= 2
    return terms


def exclusive(f: Any, x: Any, axis: int, reverse: bool) -> Any:
    """The running product of all elements before each."""
    return _shifted(f, f("cumprod")(x, axis, reverse), axis, reverse, f.ones_like) if x.shape[axis] else x


# --- rules ---------------------------------------------------------------------------------------------------------------------------


def _cumsum(f: Any, t_input: Any, dim: int, reverse: bool, **_: Any) -> Any:
    return f("cumsum")(t_input, dim, reverse)


def _cumsum_backward(f: Any, d_result: Any, dim: int, reverse: bool) -> Any:
    return f("cumsum")(d_result, dim, not reverse)


def _present(f: Any, input: Any, value: Any) -> Any:
    """The value, and 0 where the input is NaN."""
    return f("where")(f("isnan")(f.constant(input)), 0.0, value)


def _nancumsum(f: Any, input: Any, t_input: Any, dim: int, reverse: bool, **_: Any) -> Any:
    return f("cumsum")(_present(f, input, t_input), dim, reverse)


def _nancumsum_backward(f: Any, d_result: Any, input: Any, dim: int, reverse: bool) -> Any:
    return _present(f, input, f("cumsum")(d_result, dim, not reverse))


def _cumprod(f: Any, input: Any, result: Any, t_input: Any, dim: int, reverse: bool, **_: Any) -> Any:
    if not input.shape[dim]:
        return t_input
    return _recurrence(f, input, _shifted(f, result, dim, reverse, f.ones_like) * t_input, dim, reverse)


def _cumprod_backward(f: Any, d_result: Any, input: Any, dim: int, reverse: bool) -> Any:
    if not input.shape[dim]:
        return d_result
    after = _shifted(f, input, dim, not reverse, f.zeros_like)
    return exclusive(f, input, dim, reverse) * _recurrence(f, after, d_result, dim, not reverse)


def _without_nan(f: Any, input: Any) -> Any:
    return f("where")(f("isnan")(f.constant(input)), 1.0, input)


def _nancumprod(f: Any, input: Any, result: Any, t_input: Any, dim: int, reverse: bool, **_: Any) -> Any:
    return _cumprod(f, _without_nan(f, input), result, _present(f, input, t_input), dim, reverse)


def _nancumprod_backward(f: Any, d_result: Any, input: Any, dim: int, reverse: bool) -> Any:
    return _present(f, input, _cumprod_backward(f, d_result, _without_nan(f, input), dim, reverse))


def _logcumsumexp(f: Any, input: Any, result: Any, t_input: Any, dim: int, reverse: bool, **_: Any) -> Any:
    if not input.shape[dim]:
        return t_input
    factors = f("exp")(_shifted(f, result, dim, reverse, lambda first: first) - result)
    return _recurrence(f, factors, f("exp")(input - result) * t_input, dim, reverse)


def _logcumsumexp_backward(f: Any, d_result: Any, input: Any, result: Any, dim: int, reverse: bool) -> Any:
    if not input.shape[dim]:
        return d_result
    factors = f("exp")(result - _shifted(f, result, dim, not reverse, lambda last: last))
    return f("exp")(input - result) * _recurrence(f, factors, d_result, dim, not reverse)


def _chosen(f: Any, t_input: Any, indices: Any, dim: int, **_: Any) -> Any:
    """Tangents of the elements that are the largest so far."""
    return f.taken(t_input, indices, dim)


def _chosen_backward(f: Any, d_result: Any, indices: Any, dim: int, reverse: bool) -> Any:
    return f.given(d_result, indices, dim)


_TANGENTS: dict[str, Rule] = {
    "cumsum": _cumsum, "nancumsum": _nancumsum, "cumprod": _cumprod, "nancumprod": _nancumprod, "logcumsumexp": _logcumsumexp,
    "cummax": _chosen, "cummin": _chosen,
}  # fmt: skip
_COMPOSITIONS: dict[str, Rule] = {
    "cumsum_backward": _cumsum_backward, "nancumsum_backward": _nancumsum_backward, "cumprod_backward": _cumprod_backward,
    "nancumprod_backward": _nancumprod_backward, "logcumsumexp_backward": _logcumsumexp_backward, "cummax_backward": _chosen_backward,
    "cummin_backward": _chosen_backward,
}  # fmt: skip
