"""Functions that PyTorch has under the same name take their arguments by PyTorch's names, in its order."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry

MODULES = (F, torch, torch.special)  # of what is in two of them, the first has a signature
OURS = [name for name, each in registry.functions().items() if registry.family(each.plan) == "elementwise"]


def in_torch(name: str) -> Any:
    return next((getattr(module, name) for module in MODULES if callable(getattr(module, name, None))), None)


def documented(name: str) -> list[str]:
    """The names in the first line of its docs, or in its signature."""
    function = in_torch(name)
    line = re.search(rf"^\s*{name}\((.*?)\)", function.__doc__ or "", re.MULTILINE)
    if line is None:
        return list(inspect.signature(function).parameters)
    return [re.split("[=:]", part)[0].strip() for part in line.group(1).split(",") if part.strip() != "*"]


OTHERWISE = {
    "polygamma": "PyTorch has the order n first",
    "glu": "the gate may be a tensor of its own",
    "rsub": "PyTorch does not document it",
}


@pytest.mark.parametrize("name", [name for name in OURS if in_torch(name) is not None and name not in OTHERWISE])
def test_names(name: str) -> None:
    ours, theirs = list(registry.function(name).public.parameters), documented(name)
    assert [each for each in theirs if each in ours] == ours, f"PyTorch has {theirs}"


def test_the_approximation_of_gelu() -> None:
    x = torch.linspace(-3, 3, 50, dtype=torch.float64, requires_grad=True)
    for approximate in ("none", "tanh"):
        torch.testing.assert_close(bk.gelu(x.detach(), approximate), F.gelu(x.detach(), approximate=approximate))
        found = torch.autograd.grad(bt.gelu(x, approximate=approximate).sum(), x)[0]
        torch.testing.assert_close(found, torch.autograd.grad(F.gelu(x, approximate=approximate).sum(), x)[0])
    fused = bk.fuse(lambda x: bk.gelu(x, approximate="tanh") + 1)
    torch.testing.assert_close(fused(x.detach()), F.gelu(x.detach(), approximate="tanh") + 1)
    with pytest.raises(bk.InvalidProblem, match="approximate is out of range: got 'erf', wanted 'none' or 'tanh'"):
        bk.gelu(x.detach(), "erf")
