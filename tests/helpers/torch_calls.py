"""Calls of every function on tensors, which the tests of the PyTorch operators share."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import registry
from baracuda_kernels.torch.operators import operator

from conftest import DEVICE, TELLING, own_functions

WHERE = str(DEVICE)
FUNCTIONS = own_functions(TELLING)
FORWARD = [name for name, function in FUNCTIONS.items() if function.gradient]


def tensor(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(WHERE, dtype)


def _scan(dtype: torch.dtype, **more: Any) -> dict[str, Any]:
    x, b, c = tensor(2, 5, 4, 3, dtype=dtype), tensor(2, 5, 2, 6, dtype=dtype), tensor(2, 5, 2, 6, dtype=dtype)
    dt, a = tensor(2, 5, 4, dtype=dtype).sigmoid(), -tensor(4, dtype=dtype).exp()
    return {"x": x, "dt": dt, "a": a, "b": b, "c": c, "chunk_size": 2, **more}


# Calls that between them have every optional input and every optional output.
CALLS: dict[str, Callable[[torch.dtype], list[dict[str, Any]]]] = {
    "softmax": lambda dtype: [{"x": tensor(3, 4, 5, dtype=dtype)}, {"x": tensor(3, 4, 5, dtype=dtype), "axis": 1}],
    "log_softmax": lambda dtype: [{"x": tensor(3, 4, 5, dtype=dtype), "axis": 0}],
    "rms_norm": lambda dtype: [
        {"x": tensor(3, 4, 5, dtype=dtype), "gamma": tensor(5, dtype=dtype), "return_rms": True},
        {"x": tensor(3, 4, 5, dtype=dtype), "axes": (1, 2), "eps": 0.5},
    ],
    "rope": lambda dtype: [
        {"x": tensor(2, 3, 5, 8, dtype=dtype), "positions": torch.tensor([3, 1, -4, 1, 5], device=WHERE)},
        {"x": tensor(2, 3, 5, 8, dtype=dtype), "style": bk.RopeStyle.HALF, "rotary_dim": 4, "base": 100.0},
    ],
    "sdpa": lambda dtype: [
        {"q": tensor(2, 4, 3, 6, dtype=dtype), "k": tensor(2, 2, 5, 6, dtype=dtype), "v": tensor(2, 2, 5, 7, dtype=dtype),
         "mask": tensor(2, 4, 3, 5, dtype=dtype), "return_attn": True},
        {"q": tensor(2, 4, 5, 6, dtype=dtype), "k": tensor(2, 4, 5, 6, dtype=dtype), "v": tensor(2, 4, 5, 7, dtype=dtype),
         "is_causal": True, "scale": 0.3},
    ],
    "cov": lambda dtype: [
        {"input": tensor(3, 8, dtype=dtype), "correction": 0},
        {"input": tensor(3, 8, dtype=dtype), "fweights": torch.tensor([1, 0, 2, 1, 1, 3, 1, 1], device=WHERE),
         "aweights": tensor(8, dtype=dtype).sigmoid()},
    ],
    "corrcoef": lambda dtype: [{"input": tensor(3, 8, dtype=dtype)}],
    "gelu": lambda dtype: [{"input": tensor(3, 4, dtype=dtype)}],
    "mul": lambda dtype: [{"input": tensor(3, 4, dtype=dtype), "other": tensor(3, 4, dtype=dtype)}],
    "sum": lambda dtype: [{"input": tensor(3, 4, 5, dtype=dtype), "dim": (1,)}],
    "lerp": lambda dtype: [{"input": tensor(3, 4, dtype=dtype), "end": tensor(4, dtype=dtype), "weight": tensor(3, 1, dtype=dtype)}],
    "swiglu": lambda dtype: [{"gate": tensor(3, 4, dtype=dtype), "up": tensor(3, 4, dtype=dtype) + 1}],
    "modf": lambda dtype: [{"input": tensor(3, 4, dtype=dtype)}],
    "where": lambda dtype: [
        {"condition": tensor(3, 1) > 0, "input": tensor(3, 4, dtype=dtype), "other": tensor(4, dtype=dtype)},
    ],
    "cosine_similarity": lambda dtype: [
        {"x1": tensor(3, 4, 5, dtype=dtype), "x2": tensor(4, 5, dtype=dtype)},
        {"x1": tensor(3, 4, dtype=dtype), "x2": tensor(3, 4, dtype=dtype).sigmoid(), "dim": 0, "eps": 3.0},
    ],
    "var_mean": lambda dtype: [{"input": tensor(3, 4, 5, dtype=dtype), "dim": (0, 2), "correction": 0}],
    "trace": lambda dtype: [{"input": tensor(2, 4, 5, dtype=dtype)}],
    "cumsum": lambda dtype: [{"input": tensor(3, 4, dtype=dtype), "dim": 1}],
    "diff": lambda dtype: [
        {"input": tensor(3, 6, dtype=dtype), "n": 2},
        {"input": tensor(3, 4, dtype=dtype), "dim": 0, "prepend": tensor(2, 4, dtype=dtype), "append": tensor(1, 4, dtype=dtype)},
    ],
    "trapezoid": lambda dtype: [
        {"y": tensor(3, 4, dtype=dtype), "x": tensor(4, dtype=dtype)},
        {"y": tensor(3, 4, dtype=dtype), "dx": 0.5, "dim": 0},
        {"y": tensor(3, 4, dtype=dtype), "x": tensor(3, 4, dtype=dtype), "dim": 0},
    ],
    "cumulative_trapezoid": lambda dtype: [
        {"y": tensor(3, 4, dtype=dtype), "x": tensor(4, dtype=dtype)},
        {"y": tensor(3, 4, dtype=dtype), "dx": 0.5, "dim": 0},
    ],
    "gradient": lambda dtype: [
        {"input": tensor(3, 4, dtype=dtype), "spacing": tensor(4, dtype=dtype).exp().cumsum(0)},
        {"input": tensor(3, 4, dtype=dtype), "spacing": 0.5, "dim": 0, "edge_order": 2},
    ],
    "median": lambda dtype: [{"input": tensor(3, 4, 5, dtype=dtype), "dim": (1,)}, {"input": tensor(3, 5, dtype=dtype)}],
    "quantile": lambda dtype: [
        {"input": tensor(3, 4, 5, dtype=dtype), "q": (0.2, 0.6), "dim": (1,)},
        {"input": tensor(3, 5, dtype=dtype), "q": (0.4,), "interpolation": "midpoint", "stacked": False},
    ],
    "ssd_chunk_scan": lambda dtype: [
        _scan(dtype),
        _scan(dtype, initial_state=tensor(2, 4, 3, 6, dtype=torch.float32 if dtype.itemsize == 2 else dtype), return_final_state=True),
    ],
}  # fmt: skip
FIRST_CALLS = [pytest.param(name, 0, id=name) for name in FORWARD]
ALL_CALLS = [
    pytest.param(name, place, id=f"{name}-{place}") for name in FORWARD for place in range(len(CALLS[name](torch.float64)))
]


def call_of(name: str, place: int, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    return CALLS[name](dtype)[place]


def differentiable(name: str, values: dict[str, Any]) -> dict[str, torch.Tensor]:
    """The inputs of a call that have a gradient."""
    gradient = FUNCTIONS[name].backward()
    return {of: values[of] for of in gradient.results.values() if isinstance(values.get(of), torch.Tensor)}


def with_gradients(name: str, values: dict[str, Any]) -> dict[str, Any]:
    return values | {of: value.detach().requires_grad_() for of, value in differentiable(name, values).items()}


def backward_call(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """A call of the backward, as a call of the forward leads to it."""
    function = FUNCTIONS[name]
    gradient = function.backward()
    flags = {flag: True for flag in function.options if flag.startswith("return_")}
    outputs = getattr(bk, name)(**(values | flags))
    everything = dict(zip(function.outputs, outputs if isinstance(outputs, tuple) else (outputs,), strict=True))
    saved = {of: values.get(of) for of in gradient.saved_inputs} | {of: everything[of] for of in gradient.saved_outputs}
    upstream = {of: torch.ones_like(everything[output]) for of, output in gradient.upstream.items()}
    return saved | upstream | {option: values[option] for option in gradient.options if option in values}


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda given: given.contiguous(),
    "permuted": lambda given: given.transpose(0, -1).contiguous().transpose(0, -1),
    "expanded": lambda given: given[..., :1].expand(given.shape) if given.is_floating_point() else given,
}


def laid_out(name: str, values: dict[str, Any], layout: str) -> dict[str, Any]:
    if name in ("corrcoef", "gradient") and layout == "expanded":
        pytest.skip("what does not vary has no correlations, nor any slope over it, and NaN is not the same as NaN")
    return {of: LAYOUTS[layout](value) if isinstance(value, torch.Tensor) else value for of, value in values.items()}


def flat(results: Any) -> list[torch.Tensor]:
    return [each for each in (results if isinstance(results, tuple) else (results,)) if each is not None]


def objective(results: Any) -> torch.Tensor:
    """A number to differentiate, with another derivative by every element, that depends on it."""
    parts = [each for each in flat(results) if each.requires_grad]
    weights = (torch.linspace(1, 2, each.numel(), device=each.device).view(each.shape) for each in parts)
    return torch.stack([(each.float() ** 2 * weight).sum() for each, weight in zip(parts, weights, strict=True)]).sum()


# What runs under `torch.vmap` in one launch: families, with the operands that a larger problem has once and not for each of its parts.
TOGETHER = {
    "elementwise": (),
    "rms_norm": ("gamma", "dgamma"),
    "rope": ("positions",),
    "sdpa": (),
    "softmax": (),
    "ssd": ("a", "d_a"),
}


def launches(name: str, values: dict[str, Any], batched: Collection[str], size: int) -> int:
    """How many there are of so many calls that differ in these operands."""
    function, schema = registry.function(name), operator(name).schema
    family = registry.family(function.plan)
    written = [each for each in schema.outputs if schema.is_there(each, dict.fromkeys(schema.arguments) | values)]
    return 1 if family in TOGETHER and {*TOGETHER[family]}.isdisjoint([*batched, *written]) else size


def runs(recording: bk.Recording) -> int:
    """How many launches were recorded."""
    return sum(each.runs for each in recording.entries())
