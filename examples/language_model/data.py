"""The text: the library's own source, one token per character."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

import baracuda_kernels as bk


class Text:
    def __init__(self) -> None:
        package = Path(bk.__file__).parent
        text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py")))
        self.alphabet = sorted(set(text))
        number = {character: index for index, character in enumerate(self.alphabet)}
        self.tokens = torch.tensor([number[character] for character in text])

    def batches(self, count: int, batch: int, length: int, seed: int) -> Iterator[torch.Tensor]:
        """[batch, length + 1] tokens from random places: each step reads all but the last of a row, and guesses all but the first."""
        chance = torch.Generator().manual_seed(seed)
        for _ in range(count):
            starts = torch.randint(len(self.tokens) - length, (batch,), generator=chance)
            yield self.tokens[starts[:, None] + torch.arange(length + 1)]
