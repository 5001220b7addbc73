"""What attention is compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, PeerCall, compiled
from baracuda_kernels.ops.attention.sdpa.descriptor import SdpaBackwardDescriptor, SdpaDescriptor

BARE = "bare products"  # the matrix products alone, into given memory


def sdpa(descriptor: SdpaDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    q, k, v, y, attn = (operands[name] for name in ("q", "k", "v", "y", "attn"))
    mask = operands.get("mask")
    groups = descriptor.num_heads // max(descriptor.kv_heads, 1)
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k, v))
    causal, scale = descriptor.is_causal, descriptor.scale

    def math_attention() -> object:
        return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, mask, 0.0, causal, scale=scale)

    def products() -> None:
        torch.bmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), out=attn.view(-1, *attn.shape[2:]))
        torch.bmm(attn.flatten(0, 1), v.flatten(0, 1), out=y.view(-1, *y.shape[2:]))

    def formula(q: Any, k: Any, v: Any, mask: Any = None) -> tuple[Any, Any]:
        scores = q @ k.mT * scale if mask is None else q @ k.mT * scale + mask
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
        weights = torch.softmax(scores, -1)
        return weights @ v, weights

    yield ALLOCATING, math_attention
    yield BARE, products
    if q.is_cuda:
        yield COMPILED, compiled(formula, (y, attn), q, k, v, *([] if mask is None else [mask]))


def sdpa_backward(descriptor: SdpaBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    q, k, v, attn, dy, dscores, dq = (operands[name] for name in ("q", "k", "v", "attn", "dy", "dscores_ws", "dq"))
    groups = descriptor.num_heads // max(descriptor.kv_heads, 1)
    k, v = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (k, v))
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    graph: list[Any] = []

    def autograd() -> object:
        if not graph:  # the forward is not timed
            with torch.enable_grad():
                graph.append(torch.ops.aten._scaled_dot_product_attention_math(*leaves, scale=descriptor.scale)[0])
        return torch.autograd.grad(graph[0], leaves, dy, retain_graph=True)

    def products() -> None:
        heads = {"q": q, "k": k, "v": v, "attn": attn, "dy": dy, "ws": dscores, "dq": dq, "dk": dk, "dv": dv}
        flat = {name: x.view(-1, *x.shape[2:]) for name, x in heads.items()}
        torch.bmm(flat["dy"], flat["v"].transpose(1, 2), out=flat["ws"])
        torch.bmm(flat["ws"], flat["k"], out=flat["dq"])
        torch.bmm(flat["ws"].transpose(1, 2), flat["q"], out=flat["dk"])
        torch.bmm(flat["attn"].transpose(1, 2), flat["dy"], out=flat["dv"])

    def formula(q: Any, k: Any, v: Any, attn: Any, dy: Any) -> tuple[Any, Any, Any]:
        weights, dattn = attn.float(), (dy @ v.mT).float()
        dscores = (weights * (dattn - (weights * dattn).sum(-1, keepdim=True)) * descriptor.scale).to(attn.dtype)
        return dscores @ k, dscores.mT @ q, attn.mT @ dy

    yield ALLOCATING, autograd
    yield BARE, products
    if q.is_cuda:
        yield COMPILED, compiled(formula, (dq, dk, dv), q, k, v, attn, dy)
