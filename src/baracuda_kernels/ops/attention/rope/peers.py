"""What the rotary embedding is compared with in the bench: the rotation as models write it in PyTorch, cos and sin made beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, LIGER, PeerCall, compiled, liger
from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle


def rope(descriptor: RopeDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    yield from _peers(descriptor, operands["x"], operands["positions"], operands["y"], 1.0)


def rope_backward(descriptor: RopeDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    """The rotation by the opposite angles: less than what autograd does."""
    yield from _peers(descriptor, operands["dy"], operands["positions"], operands["dx"], -1.0)


def _peers(descriptor: RopeDescriptor, x: Any, positions: Any, y: Any, direction: float) -> Iterator[tuple[str, PeerCall]]:
    rotate = _rotation(descriptor, positions, direction, x.dtype)
    yield ALLOCATING, lambda: rotate(x)
    yield COMPILED, compiled(rotate, y, x)
    if descriptor.style is RopeStyle.HALF and descriptor.rotated == descriptor.head_dim:
        yield from liger(x, lambda: _liger(descriptor, x, positions), LIGER_IN_PLACE)


LIGER_IN_PLACE = f"{LIGER}, in place"


def _liger(descriptor: RopeDescriptor, x: Any, positions: Any) -> PeerCall:
    """Its kernel turns queries and keys together, in place, from tables: all heads but one are given as queries."""
    import torch
    from liger_kernel.ops.rope import rope_backward

    steps = descriptor.base ** (-torch.arange(0, descriptor.rotated, 2, dtype=torch.float64, device=x.device) / descriptor.rotated)
    angles = positions.reshape(-1, descriptor.seq_len)[:1, :, None].double() * steps
    angles = torch.cat((angles, angles), -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    # As models have them: the heads of a position side by side, which spares its kernel a copy.
    parts = x.transpose(1, 2).split((descriptor.num_heads - 1, 1), 2)
    queries, keys = (part.contiguous().transpose(1, 2) for part in parts)
    return lambda: rope_backward(queries, keys, cos, sin)


def _rotation(descriptor: RopeDescriptor, positions: Any, direction: float, dtype: Any) -> Callable[[Any], Any]:
    import torch

    rotated = descriptor.rotated
    steps = descriptor.base ** (-torch.arange(0, rotated, 2, dtype=torch.float64, device=positions.device) / rotated)
    angles = positions.to(torch.float64)[..., None] * steps  # [S, R/2] or [B, S, R/2]
    angles = angles if angles.ndim == 2 else angles[:, None]
    interleaved = descriptor.style is RopeStyle.INTERLEAVED
    angles = angles.repeat_interleave(2, -1) if interleaved else torch.cat((angles, angles), -1)
    cos, sin = angles.cos().to(dtype), (direction * angles.sin()).to(dtype)

    def half_turned(part: Any) -> Any:
        if interleaved:
            return torch.stack((-part[..., 1::2], part[..., ::2]), -1).flatten(-2)
        return torch.cat((-part[..., rotated // 2 :], part[..., : rotated // 2]), -1)

    def rotate(x: Any) -> Any:
        part = x[..., :rotated]
        turned = part * cos + half_turned(part) * sin
        return turned if rotated == descriptor.head_dim else torch.cat((turned, x[..., rotated:]), -1)

    return rotate
