"""Derivatives of softmax: its Jacobian is symmetric, so tangents change as gradients do."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _TANGENTS.get(function.name)


def composition(function: Function) -> Rule | None:
    return _COMPOSITIONS.get(function.name)


def _softmax(f: Any, t_x: Any, y: Any, axis: int, **_: Any) -> Any:
    return f("softmax_backward")(t_x, y, axis)


def _log_softmax(f: Any, t_x: Any, y: Any, axis: int, **_: Any) -> Any:
    return t_x - f("sum")(f("exp")(y) * t_x, axis, True)


def _softmax_backward(f: Any, dy: Any, y: Any, axis: int) -> Any:
    return y * (dy - f("sum")(y * dy, axis, True))


def _log_softmax_backward(f: Any, dy: Any, y: Any, axis: int) -> Any:
    return dy - f("exp")(y) * f("sum")(dy, axis, True)


_TANGENTS: dict[str, Rule] = {"softmax": _softmax, "log_softmax": _log_softmax}
_COMPOSITIONS: dict[str, Rule] = {"softmax_backward": _softmax_backward, "log_softmax_backward": _log_softmax_backward}
