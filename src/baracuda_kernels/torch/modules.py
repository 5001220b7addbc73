"""Modules over the operators. `RMSNorm` takes the place of torch.nn.RMSNorm, `Mamba2` loads what mamba_ssm's Mamba2 saves."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import member
from baracuda_kernels.ops.attention.rope.descriptor import RopeStyle
from baracuda_kernels.torch.functional import rms_norm, rope, ssd_chunk_scan
from baracuda_kernels.torch.translations import default_eps

__all__ = ["GatedRMSNorm", "Mamba2", "RMSNorm", "RotaryEmbedding"]


class RMSNorm(nn.RMSNorm):
    """A drop-in replacement for torch.nn.RMSNorm: the same arguments, state, repr and results."""

    def forward(self, x: Tensor) -> Tensor:
        """RMSNorm of x over the axes of `normalized_shape`, scaled by `weight`."""
        rank = len(self.normalized_shape)
        if x.shape[-rank:] != self.normalized_shape:
            wanted = f"[..., {', '.join(map(str, self.normalized_shape))}]"
            raise rejection("RMSNorm", [Reason(ReasonCode.SHAPE, "x", list(x.shape), wanted)])
        gamma = None if self.weight is None else self.weight.flatten()
        return _normed(x, gamma, tuple(range(-rank, 0)), self.eps)


def _normed(x: Tensor, gamma: Tensor | None, axes: tuple[int, ...], eps: float | None) -> Tensor:
    """As in PyTorch: with a gamma of another dtype, computed in the wider of both; the result has the dtype of x."""
    eps = default_eps(x) if eps is None else eps
    if gamma is not None and gamma.dtype != x.dtype and x.is_floating_point() and not torch.is_autocast_enabled(x.device.type):
        wide = torch.promote_types(x.dtype, gamma.dtype)
        return rms_norm(x.to(wide), gamma.to(wide), axes=axes, eps=eps).to(x.dtype)
    return rms_norm(x, gamma, axes=axes, eps=eps)


class RotaryEmbedding(nn.Module):
    """Rotary position embedding of queries or keys, [batch, heads, steps, features]. It has no parameters and stores no tables."""

    def __init__(
        self, base: float = 10000.0, style: RopeStyle | str = RopeStyle.INTERLEAVED, rotary_dim: int | None = None
    ) -> None:
        super().__init__()
        self.base, self.style, self.rotary_dim = base, member(RopeStyle, "style", style), rotary_dim

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """`positions` is [steps] or [batch, steps] of int64; left out, step s is at position s."""
        return rope(x, positions, base=self.base, style=self.style, rotary_dim=self.rotary_dim)

    def extra_repr(self) -> str:
        return f"base={self.base}, style={self.style.value}, rotary_dim={self.rotary_dim}"


class GatedRMSNorm(nn.Module):
    """RMSNorm of x · silu(gate), over each of `groups` equal parts of the features; the scale is one weight per feature."""

    def __init__(self, features: int, groups: int = 1, eps: float = 1e-5, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(features, device=device, dtype=dtype))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        """`x` and `gate` are [..., features]."""
        gated = x * F.silu(gate)
        if self.groups == 1:
            return _normed(gated, self.weight, (-1,), self.eps)
        parts = _normed(gated.unflatten(-1, (self.groups, -1)), None, (-1,), self.eps)
        return parts.flatten(-2) * self.weight.to(parts.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.numel()}, groups={self.groups}, eps={self.eps}"


class Mamba2(nn.Module):
    """The Mamba-2 mixer: [batch, steps, d_model] to the same. Arguments and parameters are named as in mamba_ssm, and mean the same."""

    def __init__(
        self,
        d_model: int,
        *,
        d_state: int = 128,
        d_conv: int = 4,
        expand: int = 2,
        headdim: int = 64,
        ngroups: int = 1,
        A_init_range: tuple[float, float] = (1, 16),
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        dt_init_floor: float = 1e-4,
        bias: bool = False,
        conv_bias: bool = True,
        chunk_size: int = 256,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = {
            "d_model": d_model,
            "d_state": d_state,
            "d_conv": d_conv,
            "expand": expand,
            "headdim": headdim,
            "ngroups": ngroups,
            "chunk_size": chunk_size,
        }
        odd = [name for name, size in sizes.items() if isinstance(size, bool) or not isinstance(size, int)]
        reasons = [Reason(ReasonCode.WRONG_TYPE, name, repr(sizes[name]), "a whole number") for name in odd]
        reasons = reasons or [
            Reason(ReasonCode.VALUE_OUT_OF_RANGE, name, size, "at least 1") for name, size in sizes.items() if size < 1
        ]
        inner = 0 if reasons else expand * d_model
        if not reasons and inner % headdim:
            reasons.append(Reason(ReasonCode.INCONSISTENT, "headdim", headdim, f"a divisor of expand · d_model = {inner}"))
        if not reasons and (inner // headdim) % ngroups:
            reasons.append(Reason(ReasonCode.INCONSISTENT, "ngroups", ngroups, f"a divisor of the {inner // headdim} heads"))
        if reasons:
            raise rejection("Mamba2", reasons)
        where = {"device": device, "dtype": dtype}
        self.d_state, self.d_conv, self.headdim, self.ngroups, self.chunk_size = d_state, d_conv, headdim, ngroups, chunk_size
        self.d_inner, self.nheads = inner, inner // headdim
        convolved = inner + 2 * ngroups * d_state
        self.in_proj = nn.Linear(d_model, inner + convolved + self.nheads, bias=bias, **where)
        self.conv1d = nn.Conv1d(convolved, convolved, d_conv, groups=convolved, padding=d_conv - 1, bias=conv_bias, **where)
        steps = torch.exp(torch.empty(self.nheads, **where).uniform_(math.log(dt_min), math.log(dt_max))).clamp(min=dt_init_floor)
        self.dt_bias = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))  # softplus of it is `steps`
        self.A_log = nn.Parameter(torch.empty(self.nheads, device=device).uniform_(*A_init_range).log().to(dtype))
        self.D = nn.Parameter(torch.ones(self.nheads, device=device))
        self.norm = GatedRMSNorm(inner, ngroups, **where)
        self.out_proj = nn.Linear(inner, d_model, bias=bias, **where)

    def forward(self, u: Tensor) -> Tensor:
        """`u` is [batch, steps, d_model]."""
        gate, features, steps = self.in_proj(u).split((self.d_inner, self.conv1d.in_channels, self.nheads), -1)
        width = self.ngroups * self.d_state
        x, b, c = F.silu(self.convolve(features)).split((self.d_inner, width, width), -1)
        x, b, c = x.unflatten(-1, (self.nheads, -1)), b.unflatten(-1, (self.ngroups, -1)), c.unflatten(-1, (self.ngroups, -1))
        wide = torch.promote_types(steps.dtype, torch.float32)  # a small step or rate would be lost in a 16-bit float
        dt = F.softplus(steps.to(wide) + self.dt_bias.to(wide))
        y = self.scan(x, dt, -torch.exp(self.A_log.to(wide)), b, c) + x * self.D.to(x.dtype)[:, None]
        return self.out_proj(self.norm(y.flatten(-2), gate))

    def convolve(self, features: Tensor) -> Tensor:
        """Each feature over the last d_conv steps; features stay innermost, as the scan wants them."""
        return self.conv1d(features.mT)[..., : features.shape[1]].mT.contiguous()

    def scan(self, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """The scan over the steps, by `ssd_chunk_scan`."""
        return ssd_chunk_scan(x, dt, a, b, c, chunk_size=self.chunk_size)

    def extra_repr(self) -> str:
        return f"d_state={self.d_state}, headdim={self.headdim}, ngroups={self.ngroups}, chunk_size={self.chunk_size}"
