"""Every function as PyTorch has it: by the same name, or as these steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from baracuda_kernels.core import registry

from conftest import DEVICE

GRADIENTS = {function.gradient for function in registry.functions().values()}
FUNCTIONS = {name: function for name, function in registry.functions().items() if name not in GRADIENTS}
ON_INTEGERS = (
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "clz", "gcd", "lcm", "mulhi",
    "population_count", "reduce_xor", "shift_right_logical",
)  # fmt: skip
# Functions with their options, and PyTorch's steps to the same result.
OPTIONS: dict[str, dict[str, Any]] = {
    "bitcast": {"dtype": torch.int16},
    "cast": {"dtype": torch.float32},
    "cummax": {"dim": 0},
    "cummin": {"dim": 0},
    "cumprod": {"dim": 0},
    "cumsum": {"dim": 0},
    "cosine_similarity": {"dim": 0},
    "gradient": {"dim": 0},
    "integer_pow": {"exponent": 3},
    "log_softmax": {"axis": 0},
    "logcumsumexp": {"dim": 0},
    "logmeanexp": {"dim": 0},
    "logsumexp": {"dim": 0},
    "max_with_indices": {"dim": 0},
    "min_with_indices": {"dim": 0},
    "mode": {"dim": 0},
    "nancumprod": {"dim": 0},
    "nancumsum": {"dim": 0},
    "nanpercentile": {"q": 30.0},
    "nanquantile": {"q": 0.3},
    "percentile": {"q": 30.0},
    "polygamma": {"n": 1},
    "quantile": {"q": 0.3},
    "reduce_precision": {"exponent_bits": 5, "mantissa_bits": 3},
    "round_decimals": {"decimals": 1},
    "softmax": {"axis": 0},
    "squareplus": {"b": 4.0},
    "ssd_chunk_scan": {"chunk_size": 2},
    "sum_to_size": {"size": (1, 1)},
    "threshold": {"threshold": 0.5, "value": 0.1},
}
STEPS: dict[str, Callable[..., Any]] = {
    "affine": lambda x, scale, shift: x * scale + shift,
    "average": lambda x, weights: (x * weights).sum() / weights.sum(),
    "beta": lambda x, y: (torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)).exp(),
    "betaln": lambda x, y: torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y),
    "cast": lambda x: x.float(),
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    "cosine_similarity": lambda x, y: F.cosine_similarity(x, y, dim=0),
    "cummax": lambda x: torch.cummax(x, 0),
    "cummin": lambda x: torch.cummin(x, 0),
    "cumprod": lambda x: torch.cumprod(x, 0),
    "cumsum": lambda x: torch.cumsum(x, 0),
    "diff": lambda x, before, behind: torch.diff(x, prepend=before, append=behind),
    "divmod": lambda x, y: (torch.floor_divide(x, y), torch.remainder(x, y)),
    "fma": lambda x, y, z: torch.addcmul(z, x, y),
    "gamma": lambda x: torch.lgamma(x).exp(),
    "geglu": lambda gate, up: F.gelu(gate) * up,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "glu": lambda x, gate: x * torch.sigmoid(gate),
    "gradient": lambda x, points: torch.gradient(x, spacing=(points,), dim=0)[0],
    "integer_pow": lambda x: x.pow(3),
    "l1_norm": lambda x: torch.linalg.vector_norm(x, 1),
    "l2_norm": torch.linalg.vector_norm,
    "linf_norm": lambda x: torch.linalg.vector_norm(x, float("inf")),
    "log1mexp": lambda x: torch.log1p(-torch.exp(-x)),
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 0),
    "logmeanexp": lambda x: torch.logsumexp(x, 0) - math.log(len(x)),
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "mantissa": lambda x: torch.frexp(x)[0],
    "matrix_norm": torch.linalg.matrix_norm,
    "max_with_indices": lambda x: torch.max(x, 0),
    "min_with_indices": lambda x: torch.min(x, 0),
    "mode": lambda x: torch.mode(x, 0),
    "modf": lambda x: (torch.frac(x), torch.trunc(x)),
    "nanargmax": lambda x: x.nan_to_num().argmax(),
    "nanargmin": lambda x: x.nan_to_num().argmin(),
    "nancumprod": lambda x: x.nan_to_num().cumprod(0),
    "nancumsum": lambda x: x.nan_to_num().cumsum(0),
    "nanmax": lambda x: x.nan_to_num().amax(),
    "nanmin": lambda x: x.nan_to_num().amin(),
    "nanpercentile": lambda x: torch.nanquantile(x, 0.3),
    "nanprod": lambda x: x.nan_to_num().prod(),
    "nanquantile": lambda x: torch.nanquantile(x, 0.3),
    "nanstd": torch.std,
    "nanvar": torch.var,
    "percentile": lambda x: torch.quantile(x, 0.3),
    "polygamma": lambda x: torch.polygamma(1, x),
    "ptp": lambda x: x.amax() - x.amin(),
    "quantile": lambda x: torch.quantile(x, 0.3),
    "reglu": lambda gate, up: torch.relu(gate) * up,
    "rel_entr": lambda x, y: torch.xlogy(x, x) - torch.xlogy(x, y),
    "rms_norm": lambda x, gamma: F.rms_norm(x, gamma.shape, gamma, 1e-6),
    "round_decimals": lambda x: torch.round(x, decimals=1),
    "sdpa": F.scaled_dot_product_attention,
    "softmax": lambda x: torch.softmax(x, 0),
    "squareplus": lambda x: (x + torch.sqrt(x * x + 4)) / 2,
    "sum_to_size": lambda x: x.sum_to_size(1, 1),
    "swiglu": lambda gate, up: F.silu(gate) * up,
    "threshold": lambda x: F.threshold(x, 0.5, 0.1),
    "trunc_divide": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "vector_norm": torch.linalg.vector_norm,
}  # fmt: skip
# Of which PyTorch has none, or not of floats.
WITHOUT = ("betainc", "bitcast", "imag", "iscomplex", "reduce_precision", "rope", "ssd_chunk_scan")
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "gradient": ((4, 6), (4,)),
    "prelu": ((4, 6), (6,)),
    "rms_norm": ((4, 6), (6,)),
    "sdpa": ((1, 2, 4, 6),) * 3 + ((1, 2, 4, 4),),
    "cov": ((4, 6),),
    "trapezoid": ((4, 6), (6,)),
    "cumulative_trapezoid": ((4, 6), (6,)),
}


def steps(name: str) -> Callable[..., Any]:
    """PyTorch's function, of tensors alone."""
    same: Callable[..., Any] | None = STEPS.get(name) or getattr(torch, name, None) or getattr(torch.special, name, None)
    return same or getattr(F, name)  # type: ignore[no-any-return]


def operands(name: str, dtypes: tuple[torch.dtype, torch.dtype]) -> list[torch.Tensor]:
    """Numbers that every function takes and no half has: one of the first element, all others of the second."""
    made, least = [], 1.25 if name in ("acosh", "zeta") else 0.25
    shapes = SHAPES.get(name) or ((4, 6),) * len(FUNCTIONS[name].inputs)
    for place, shape in enumerate(shapes):
        numbers = least + torch.rand(shape, generator=torch.Generator().manual_seed(place)) / 2
        numbers = numbers.cumsum(0) if len(shape) == 1 else numbers
        made.append(numbers.to(str(DEVICE), dtypes[min(place, 1)]))
    if name == "where":
        made = [made[0] > 0.5, made[1].to(dtypes[0]), made[2]]
    return made
