"""Derivatives of rms_norm, which divides by what depends on its input."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _rms_norm if function.name == "rms_norm" else None


def composition(function: Function) -> Rule | None:
    return _rms_norm_backward if function.name == "rms_norm_backward" else None


def _mean(f: Any, x: Any, axes: Any) -> Any:
    return f("mean")(x, axes, True)


def _root(f: Any, x: Any, rms: Any, axes: Any) -> Any:
    """The root mean squares as they follow from x; what was added to the squares is found again."""
    squares = _mean(f, x * x, axes)
    return f("sqrt")(squares + f.constant(rms * rms - squares))


def _rms_norm(f: Any, x: Any, gamma: Any, rms: Any, axes: Any, t_x: Any, t_gamma: Any, **_: Any) -> Any:
    root = _root(f, _wide(f, x, rms), rms, axes)
    parts, whole = [], _wide(f, x, rms) / root
    if t_x is not None:
        along = _wide(f, t_x, rms)
        slope = (along - whole * _mean(f, whole * along, axes)) / root
        parts.append(slope if gamma is None else slope * gamma)
    if t_gamma is not None:
        parts.append(whole * t_gamma)
    return _wide(f, f.added(parts), x)


def _rms_norm_backward(f: Any, dy: Any, x: Any, gamma: Any, rms: Any, axes: Any) -> Any:
    root, upstream = _root(f, _wide(f, x, rms), rms, axes), _wide(f, dy, rms)
    whole, along = _wide(f, x, rms) / root, upstream if gamma is None else upstream * gamma
    dx = (along - whole * _mean(f, whole * along, axes)) / root
    dgamma = None if gamma is None else _wide(f, f.summed(upstream * whole, gamma.shape), gamma)
    return _wide(f, dx, x), dgamma


def _wide(f: Any, x: Any, like: Any) -> Any:
    """In the element of another array: root mean squares of 16-bit floats are f32."""
    return x if x.dtype == like.dtype else f("cast")(x, like.dtype)
