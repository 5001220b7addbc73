"""Derivatives of covariances and correlations, by products of matrices."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _TANGENTS.get(function.name)


def composition(function: Function) -> Rule | None:
    return _COMPOSITIONS.get(function.name)


def _weights(f: Any, rows: Any, fweights: Any, aweights: Any) -> Any:
    """How much each observation counts, as a row."""
    found = f.ones_like(f.constant(rows[:1]))
    for each in (fweights, aweights):
        found = found if each is None else found * f("cast")(f.constant(each), rows.dtype)
    return found


def _rows(x: Any) -> Any:
    return x if x.ndim == 2 else x.reshape(1, -1)


def _centred(f: Any, rows: Any, weights: Any) -> Any:
    return rows - f("sum")(rows * weights, 1, True) / f("sum")(weights)


def _freedom(f: Any, weights: Any, aweights: Any, correction: int) -> Any:
    """What sums of products are divided by; never less than none."""
    total = f("sum")(weights)
    share = (
        correction if aweights is None else correction * f("sum")(weights * f("cast")(f.constant(aweights), weights.dtype)) / total
    )
    return f("maximum")(total - share, 0.0)


def _cov(f: Any, input: Any, t_input: Any, fweights: Any, aweights: Any, correction: int, result: Any, **_: Any) -> Any:
    rows, along = _rows(input), _rows(t_input)
    weights = _weights(f, rows, fweights, aweights)
    half = (_centred(f, along, weights) * weights) @ _centred(f, rows, weights).mT / _freedom(f, weights, aweights, correction)
    return (half + half.mT).reshape(result.shape)


def _cov_backward(f: Any, d_result: Any, input: Any, fweights: Any, aweights: Any, correction: int) -> Any:
    rows = _rows(input)
    weights, d = _weights(f, rows, fweights, aweights), d_result.reshape(rows.shape[0], rows.shape[0])
    by = _centred(f, rows, weights) * weights / _freedom(f, weights, aweights, correction)
    return ((d + d.mT) @ by).reshape(input.shape)


def _directions(f: Any, rows: Any) -> tuple[Any, Any]:
    """Centred variables of length 1, and their lengths."""
    centred = _centred(f, rows, f.ones_like(f.constant(rows[:1])))
    lengths = f("sqrt")(f("sum")(centred * centred, 1, True))
    return centred / lengths, lengths


def _across(f: Any, x: Any, directions: Any) -> Any:
    """What of x changes no length and no mean."""
    centred = _centred(f, x, f.ones_like(f.constant(x[:1])))
    return centred - directions * f("sum")(centred * directions, 1, True)


def _corrcoef(f: Any, input: Any, t_input: Any, result: Any, **_: Any) -> Any:
    directions, lengths = _directions(f, _rows(input))
    half = (_across(f, _rows(t_input), directions) / lengths) @ directions.mT
    return (half + half.mT).reshape(result.shape)


def _corrcoef_backward(f: Any, d_result: Any, input: Any) -> Any:
    rows = _rows(input)
    directions, lengths = _directions(f, rows)
    d = d_result.reshape(rows.shape[0], rows.shape[0])
    return (_across(f, (d + d.mT) @ directions, directions) / lengths).reshape(input.shape)


_TANGENTS: dict[str, Rule] = {"cov": _cov, "corrcoef": _corrcoef}
_COMPOSITIONS: dict[str, Rule] = {"cov_backward": _cov_backward, "corrcoef_backward": _corrcoef_backward}
