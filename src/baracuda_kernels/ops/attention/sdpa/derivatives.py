"""Derivatives of attention, from its weights: what is masked has none."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.derivatives import Rule
from baracuda_kernels.core.function import Function

__all__ = ["composition", "tangent"]


def tangent(function: Function) -> Rule | None:
    return _sdpa if function.name == "sdpa" else None


def composition(function: Function) -> Rule | None:
    return _sdpa_backward if function.name == "sdpa_backward" else None


def _of_heads(f: Any, x: Any, heads: int) -> Any:
    """Keys or values for every head; several may share one."""
    batch_size, own, *rest = x.shape
    if own == heads:
        return x
    return f.expand(x.reshape(batch_size, own, 1, *rest), (batch_size, own, heads // own, *rest)).reshape(batch_size, heads, *rest)


def _of_shared_heads(f: Any, x: Any, own: int) -> Any:
    batch_size, heads, *rest = x.shape
    return x if own == heads else f("sum")(x.reshape(batch_size, own, heads // own, *rest), 2)


def _weights(f: Any, q: Any, k: Any, attn: Any, scale: float) -> Any:
    """The attention weights as they follow from q and k, with the numbers that they have: a mask need not be known."""
    scores = (q @ k.mT) * scale
    powers = attn * f("exp")(scores - f.constant(scores))
    total = f("sum")(powers, -1, True)
    return powers / f("where")(total == 0, 1.0, total)


def _inwards(f: Any, weights: Any, x: Any) -> Any:
    return weights * (x - f("sum")(weights * x, -1, True))


def _scale(q: Any, scale: float | None) -> float:
    return max(q.shape[-1], 1) ** -0.5 if scale is None else scale


def _sdpa(f: Any, q: Any, k: Any, v: Any, attn: Any, scale: float | None, t_q: Any, t_k: Any, t_v: Any, **_: Any) -> Any:
    heads, by = q.shape[1], _scale(q, scale)
    k, v = _of_heads(f, k, heads), _of_heads(f, v, heads)
    weights, parts = _weights(f, q, k, attn, by), []
    if t_q is not None:
        parts.append(_inwards(f, weights, (t_q @ k.mT) * by) @ v)
    if t_k is not None:
        parts.append(_inwards(f, weights, (q @ _of_heads(f, t_k, heads).mT) * by) @ v)
    if t_v is not None:
        parts.append(weights @ _of_heads(f, t_v, heads))
    return f.added(parts)


def _sdpa_backward(f: Any, q: Any, k: Any, v: Any, attn: Any, dy: Any, scale: float | None) -> Any:
    heads, own, by = q.shape[1], k.shape[1], _scale(q, scale)
    k, v = _of_heads(f, k, heads), _of_heads(f, v, heads)
    weights = _weights(f, q, k, attn, by)
    scores = _inwards(f, weights, dy @ v.mT) * by
    return scores @ k, _of_shared_heads(f, scores.mT @ q, own), _of_shared_heads(f, weights.mT @ dy, own)
