"""A small language model: blocks of a mixer, attention or Mamba-2 in turns, and a gated feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

import baracuda_kernels.torch as bt
import plain


@dataclass(frozen=True)
class Ops:
    """Whose ops a model is built with. All else is PyTorch either way: linear layers, the convolution, the loss, the optimizer."""

    name: str
    RMSNorm: type[nn.Module]
    RotaryEmbedding: Callable[[], nn.Module]
    attention: Callable[[Tensor, Tensor, Tensor], Tensor]
    Mamba2: Callable[..., nn.Module]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return bt.sdpa(q, k, v, is_causal=True)


PYTORCH = Ops("PyTorch", nn.RMSNorm, plain.RotaryEmbedding, plain.attention, plain.Mamba2)
BARACUDA = Ops("baracuda-kernels", bt.RMSNorm, lambda: bt.RotaryEmbedding(style="half"), causal, bt.Mamba2)


@dataclass(frozen=True)
class Sizes:
    width: int  # features of a token
    layers: tuple[str, ...]  # mamba, attention or feed-forward, each with a norm before and the input added after it
    head: int = 64  # features of a head, of attention and of Mamba-2
    state: int = 64  # of Mamba-2
    chunk: int = 64


class Attention(nn.Module):
    def __init__(self, sizes: Sizes, ops: Ops) -> None:
        super().__init__()
        self.head, self.attend = sizes.head, ops.attention
        self.into = nn.Linear(sizes.width, 3 * sizes.width, bias=False)
        self.rotate = ops.RotaryEmbedding()
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (-1, self.head)).transpose(1, 2) for part in self.into(x).chunk(3, -1))
        return self.out(self.attend(self.rotate(q), self.rotate(k), v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.into(x).chunk(2, -1)
        return self.out(F.silu(gate) * value)


class Layer(nn.Module):
    """x plus what a part makes of its norm."""

    def __init__(self, width: int, part: nn.Module, ops: Ops) -> None:
        super().__init__()
        self.norm, self.part = ops.RMSNorm(width), part

    def forward(self, x: Tensor) -> Tensor:
        return x + self.part(self.norm(x))


class LanguageModel(nn.Module):
    """Tokens [batch, steps] to the score of each token to come, [batch, steps, alphabet]."""

    def __init__(self, alphabet: int, sizes: Sizes, ops: Ops) -> None:
        super().__init__()
        parts = {
            "mamba": lambda: ops.Mamba2(sizes.width, d_state=sizes.state, headdim=sizes.head, chunk_size=sizes.chunk),
            "attention": lambda: Attention(sizes, ops),
            "feed-forward": lambda: FeedForward(sizes.width),
        }
        self.embed = nn.Embedding(alphabet, sizes.width)
        self.layers = nn.Sequential(*(Layer(sizes.width, parts[name](), ops) for name in sizes.layers))
        self.norm, self.scores = ops.RMSNorm(sizes.width), nn.Linear(sizes.width, alphabet, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.scores(self.norm(self.layers(self.embed(tokens))))
