"""What the model needs, by PyTorch's own ops."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import baracuda_kernels.torch as bt


class RotaryEmbedding(nn.Module):
    """Features i and i + D/2 turned together, by tables of sines and cosines that are made once per length."""

    def __init__(self, base: float = 10000.0) -> None:
        super().__init__()
        self.base = base
        self.tables: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        steps, features = x.shape[-2:]
        if self.tables is None or self.tables[0].shape != (steps, features):
            rates = self.base ** (-torch.arange(0, features, 2, device=x.device).double() / features)
            angles = torch.arange(steps, device=x.device)[:, None] * torch.cat((rates, rates))
            self.tables = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        cos, sin = self.tables
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class GatedRMSNorm(bt.GatedRMSNorm):
    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        gated = (x * F.silu(gate)).to(self.weight.dtype)  # PyTorch has no fused kernel for two types
        return F.rms_norm(gated, (x.shape[-1],), self.weight, self.eps)


class Mamba2(bt.Mamba2):
    """The same mixer, with the scan and the norm by PyTorch."""

    def __init__(self, d_model: int, **options: int) -> None:
        super().__init__(d_model, **options)
        self.norm = GatedRMSNorm(self.d_inner, eps=self.norm.eps)

    def scan(self, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return chunked_scan(x, dt, a, b[:, :, 0], c[:, :, 0], min(self.chunk_size, x.shape[1]))


def chunked_scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, chunk: int) -> Tensor:
    """The scan in matrix products, as the Mamba-2 paper's short listing has it: within chunks, into states, between states, out of states.

    x is [batch, steps, heads, features], dt [batch, steps, heads], a [heads], and b and c, which all heads share, [batch, steps, state].
    The chunk divides the steps.
    """
    x, logs, b, c = (each.unflatten(1, (-1, chunk)) for each in (x * dt[..., None], dt * a, b, c))  # [batch, chunks, chunk, ...]
    logs = logs.permute(0, 3, 1, 2)  # [batch, heads, chunks, chunk]
    sums = logs.cumsum(-1)
    within = torch.einsum("ztis,ztjs,zhtij,ztjhp->ztihp", c, b, _decays(logs), x)
    entering = torch.einsum("ztjs,zhtj,ztjhp->zthps", b, torch.exp(sums[..., -1:] - sums), x)
    # States at the start of each chunk: what entered in all chunks before, decayed since then.
    states = torch.einsum("zhtu,zuhps->zthps", _decays(F.pad(sums[..., -1], (1, 0)))[..., :-1, 1:], entering)
    across = torch.einsum("ztis,zthps,zhti->ztihp", c, states, torch.exp(sums))
    return (within + across).flatten(1, 2)


def _decays(logs: Tensor) -> Tensor:
    """exp of the sum of logs after j up to and with i, at [..., i, j]; zero where j > i. Sums are taken per j, since differences lose bits."""
    size = logs.shape[-1]
    ones = torch.ones(size, size, dtype=torch.bool, device=logs.device)
    sums = logs[..., None].expand(*logs.shape, size).masked_fill(~ones.tril(-1), 0).cumsum(-2)
    return torch.exp(sums.masked_fill(~ones.tril(), -torch.inf))
