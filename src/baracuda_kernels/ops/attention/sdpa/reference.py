"""The formulas in NumPy float64, sharing nothing with any kernel. CuPy's arrays will do as well."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor


def sdpa(descriptor: SdpaDescriptor, q: Any, k: Any, v: Any, mask: Any = None) -> tuple[Any, Any]:
    import numpy

    k, v = _for_each_head(descriptor, k), _for_each_head(descriptor, v)
    with numpy.errstate(invalid="ignore", over="ignore", divide="ignore"):
        scores = q @ k.swapaxes(-1, -2) * descriptor.scale
        hidden = numpy.zeros_like(scores, dtype=bool)
        if mask is not None:
            hidden |= mask == -numpy.inf
            scores = scores + mask
        if descriptor.is_causal:
            keys, queries = (numpy.arange(extent, like=scores) for extent in (descriptor.key_len, descriptor.query_len))
            hidden |= keys > queries[:, None]
        scores = numpy.where(hidden, -numpy.inf, scores)
        top = scores.max(axis=-1, keepdims=True) if descriptor.key_len else 0.0
        weights = numpy.exp(scores - numpy.where(top == -numpy.inf, 0.0, top))
        total = weights.sum(axis=-1, keepdims=True)
        attn = numpy.where(total == 0.0, 0.0, weights / total)
        y = attn @ v
        for b, h in numpy.ndindex(*hidden.shape[:2]):
            spoiled = ~numpy.isfinite(v[b, h]).all(axis=-1)
            if spoiled.any():  # a hidden key is left out of the sum, not multiplied by zero
                for i in range(descriptor.query_len):
                    seen = ~hidden[b, h, i]
                    y[b, h, i] = attn[b, h, i, seen] @ v[b, h, seen]
    return y, attn


def sdpa_backward(descriptor: SdpaBackwardDescriptor, q: Any, k: Any, v: Any, attn: Any, dy: Any) -> tuple[Any, Any, Any]:
    import numpy

    with numpy.errstate(invalid="ignore", over="ignore"):
        dv = attn.swapaxes(-1, -2) @ dy
        dattn = dy @ _for_each_head(descriptor, v).swapaxes(-1, -2)
        dscores = attn * (dattn - (attn * dattn).sum(axis=-1, keepdims=True))
        dq = dscores @ _for_each_head(descriptor, k) * descriptor.scale
        dk = dscores.swapaxes(-1, -2) @ q * descriptor.scale
    return dq, _over_groups(descriptor, dk), _over_groups(descriptor, dv)


def _for_each_head(descriptor: SdpaDescriptor | SdpaBackwardDescriptor, x: Any) -> Any:
    return x.repeat(descriptor.num_heads // max(descriptor.kv_heads, 1), axis=1)


def _over_groups(descriptor: SdpaDescriptor | SdpaBackwardDescriptor, x: Any) -> Any:
    b, h, keys, width = x.shape
    return x.reshape(b, descriptor.kv_heads, h // max(descriptor.kv_heads, 1), keys, width).sum(axis=2)
