"""How calls of torch.nn.functional read as calls of this library's functions, or why they do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["TRANSLATIONS", "Translation", "default_eps"]


@dataclass(frozen=True)
class Translation:
    """`values` has PyTorch's signature and gives the arguments of `function`, or raises with a reason."""

    function: str
    values: Callable[..., dict[str, Any]]


def _require(holds: bool, name: str, got: object, wanted: object, code: ReasonCode = ReasonCode.VALUE_OUT_OF_RANGE) -> None:
    if not holds:
        raise rejection("a call of torch.nn.functional", [Reason(code, name, got, wanted)])


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> dict[str, Any]:
    _require(dim is not None, "dim", None, "an axis", ReasonCode.MISSING_OPERAND)
    _require(dtype is None, "dtype", dtype, None, ReasonCode.UNEXPECTED_OPERAND)
    return {"x": input, "axis": dim}


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> dict[str, Any]:
    rank, shape = len(normalized_shape), tuple(normalized_shape)
    _require(rank > 0 and tuple(input.shape[-rank:]) == shape, "normalized_shape", shape, "the last extents of the input")
    if weight is not None:
        _require(tuple(weight.shape) == shape, "weight", tuple(weight.shape), shape, ReasonCode.SHAPE)
        weight = weight.flatten()
    return {"x": input, "gamma": weight, "axes": tuple(range(-rank, 0)), "eps": default_eps(input) if eps is None else eps}


def default_eps(x: Tensor) -> float:
    """PyTorch's default eps: that of the dtype sums are taken in."""
    return torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> dict[str, Any]:
    _require(dropout_p == 0, "dropout_p", dropout_p, 0)
    _require(not (is_causal and attn_mask is not None), "attn_mask", "a mask beside is_causal", "one of them")
    for name, tensor in {"query": query, "key": key, "value": value}.items():
        _require(tensor.dim() == 4, name, f"rank {tensor.dim()}", "rank 4", ReasonCode.RANK)
    heads, key_heads = query.shape[1], key.shape[1]
    _require(enable_gqa or key_heads in (1, heads), "key", f"{key_heads} heads", f"{heads}, or enable_gqa", ReasonCode.SHAPE)
    return {"q": query, "k": key, "v": value, "mask": _additive(attn_mask, query, key), "scale": scale, "is_causal": is_causal}


def _additive(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """The mask as a term added to the scores, for every batch and head."""
    if mask is None:
        return None
    _require(not mask.requires_grad, "attn_mask", "requires_grad=True", "a detached tensor", ReasonCode.NEEDS_GRADIENT)
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, float("-inf"))
    shape = (*query.shape[:3], key.shape[2])
    fits = mask.dim() <= 4 and all(
        extent in (1, all_of_it) for extent, all_of_it in zip(mask.shape[::-1], shape[::-1], strict=False)
    )
    _require(fits, "attn_mask", tuple(mask.shape), f"what expands to {shape}", ReasonCode.SHAPE)
    return mask.expand(shape)


TRANSLATIONS = {
    "softmax": Translation("softmax", softmax),
    "log_softmax": Translation("log_softmax", softmax),
    "rms_norm": Translation("rms_norm", rms_norm),
    "scaled_dot_product_attention": Translation("sdpa", scaled_dot_product_attention),
}
