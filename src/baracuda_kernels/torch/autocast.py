"""Under `torch.autocast`: which element a function computes in. It is that of PyTorch's own operators.

PyTorch has lists of operators for each device. What is in none of them promotes its operands as ever: bf16 beside f32 is f32.
f64 and integers are in no list's reach.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import torch
from torch import _C

from baracuda_kernels.core.function import Function
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.torch import batching

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["COMPOSED", "LISTS", "Rule", "dtypes", "kernel", "mapped", "rule_of"]


class Rule(Enum):
    """What becomes of operands that are f32, f16 or bf16. The values are PyTorch's names of its lists."""

    LOWER = "lower_precision_fp"  # autocast's element
    FP32 = "fp32"
    FP32_UNLESS_ASKED = "fp32_set_opt_dtype"  # f32, unless the call names a dtype
    WIDEST = "promote"  # the widest of them, of whatever rank


LISTS: dict[str, dict[Rule, tuple[str, ...]]] = {  # by device, those of PyTorch's operators that there are functions of
    "cpu": {
        Rule.LOWER: ("matmul", "prelu", "scaled_dot_product_attention"),
        Rule.FP32: ("nanquantile", "polar", "prod", "quantile", "trace"),
    },
    "cuda": {
        Rule.LOWER: ("matmul", "prelu", "scaled_dot_product_attention"),
        Rule.FP32: (
            "acos", "asin", "cosh", "cosine_similarity", "dist", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "logsumexp",
            "pow", "reciprocal", "rms_norm", "rsqrt", "sinh", "softplus", "tan",
        ),
        Rule.FP32_UNLESS_ASKED: (
            "cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax", "norm", "prod", "softmax", "sum",
        ),
        Rule.WIDEST: ("addcdiv", "addcmul", "atan2"),
    },
}  # fmt: skip
COMPOSED = {  # functions that in PyTorch have another name or several steps: the operator that decides about the result
    "average": "sum", "beta": "exp", "cbrt": "pow", "corrcoef": "matmul", "cov": "matmul", "cumulative_trapezoid": "cumsum",
    "fma": "addcmul", "gamma": "exp", "integer_pow": "pow", "l1_norm": "linalg_vector_norm", "l2_norm": "linalg_vector_norm",
    "linf_norm": "linalg_vector_norm", "log1mexp": "log1p", "logmeanexp": "logsumexp", "matrix_norm": "linalg_matrix_norm",
    "nancumprod": "cumprod", "nancumsum": "cumsum", "nanpercentile": "nanquantile", "nanprod": "prod", "pairwise_distance": "norm",
    "percentile": "quantile", "sdpa": "scaled_dot_product_attention", "square": "pow", "ssd_chunk_scan": "matmul",
    "sum_to_size": "sum", "trapezoid": "sum", "vector_norm": "linalg_vector_norm",
}  # fmt: skip
_ENDING = ("corrcoef", "cov")  # whose operator comes at the end, so that the result alone follows its rule
_LIKE_FIRST = ("rms_norm",)  # whose result has the element of the first operand
_RULES = {(device, name): rule for device, lists in LISTS.items() for rule, names in lists.items() for name in names}
_REACHED = (torch.float32, torch.float16, torch.bfloat16)


def rule_of(function: str, device: str) -> Rule | None:
    """The rule of a function on a device; None where operands are promoted as usual."""
    return _RULES.get((device, COMPOSED.get(function, function)))


def kernel(operator: Operator, device: str, *given: Any) -> Any:
    """What the operator does while autocast is on."""
    values = dict(zip(operator.schema.arguments, given, strict=True))
    computed, result = _decided(operator.function, values)
    arguments = _converted(values, computed)
    with _C._ExcludeDispatchKeyGuard(_C.DispatchKeySet(getattr(_C.DispatchKey, f"Autocast{device}"))):
        outcome = operator.overload(*arguments)
    return _rounded(operator, outcome, result)


def mapped(operator: Operator, info: Any, in_dims: Any, *given: Any) -> tuple[Any, Any]:
    """What the operator does under `torch.vmap`, which comes before autocast and gives axes to operands that have none of their own."""
    values = dict(zip(operator.schema.arguments, given, strict=True))
    batched = [name for name, axis in zip(values, in_dims, strict=True) if isinstance(axis, int)]
    computed, result = _decided(operator.function, values, batched)
    outcome, axes = batching.rule(operator, info, in_dims, *_converted(values, computed))
    return _rounded(operator, outcome, result), axes


def dtypes(function: Function, values: Mapping[str, Any]) -> dict[str, torch.dtype]:
    """The dtype that each input is computed in: its own while autocast is off."""
    return _decided(function, values)[0]


def _converted(values: Mapping[str, Any], wanted: Mapping[str, torch.dtype]) -> list[Any]:
    return [value.to(wanted[name]) if name in wanted else value for name, value in values.items()]


def _rounded(operator: Operator, outcome: Any, result: torch.dtype | None) -> Any:
    if result is None:
        return outcome
    results = outcome if type(outcome) is tuple else (outcome,)
    rules = [operand.element_rule for operand in operator.function.outputs.values()]
    rounded = tuple(each.to(result) if rule == "element" else each for each, rule in zip(results, rules, strict=True))
    return rounded if type(outcome) is tuple else rounded[0]


def _decided(
    function: Function, values: Mapping[str, Any], batched: Collection[str] = ()
) -> tuple[dict[str, torch.dtype], torch.dtype | None]:
    """What each input is computed in, and what results are rounded to, if they are."""
    given = {name: values[name] for name in function.inputs if values.get(name) is not None}
    own = {name: tensor.dtype for name, tensor in given.items()}
    device = next(iter(given.values())).device.type
    alike = [name for name in own if function.inputs[name].element_rule == "element"]
    known = set(own.values()).issubset(DTYPES.values())  # others the function refuses
    if not (alike and known and device in LISTS and torch.is_autocast_enabled(device)):
        return own, None
    wanted = _ruled(function, values, own, device)

    def common(elements: Mapping[str, torch.dtype]) -> torch.dtype:
        return _promoted(frozenset((elements[name], given[name].dim() > (name in batched)) for name in alike))

    computed = common(own if function.name in _ENDING else wanted)
    result = wanted[alike[0]] if function.name in _LIKE_FIRST else common(wanted)
    return wanted | dict.fromkeys(alike, computed), None if result == computed else result


def _ruled(function: Function, values: Mapping[str, Any], own: Mapping[str, torch.dtype], device: str) -> dict[str, torch.dtype]:
    """The dtypes of the inputs by the rule of the function, before promotion."""
    rule = rule_of(function.name, device)
    reached = [name for name, dtype in own.items() if dtype in _REACHED]
    if rule is None or not reached or (rule is Rule.FP32_UNLESS_ASKED and values.get("dtype") is not None):
        return dict(own)
    target = torch.float32
    if rule is Rule.LOWER:
        target = torch.get_autocast_dtype(device)
    elif rule is Rule.WIDEST:
        target = functools.reduce(torch.promote_types, (own[name] for name in reached))
    # What has an element of its own, such as a state, is f32 beside any 16-bit float.
    elements = {name: target if function.inputs[name].element_rule == "element" else torch.float32 for name in reached}
    return {**own, **elements}


@functools.cache
def _promoted(operands: frozenset[tuple[torch.dtype, bool]]) -> torch.dtype:
    """The dtype that PyTorch promotes to; operands of rank 0 count only if they are of a higher category."""
    groups = [[dtype for dtype, has_axes in operands if has_axes is wanted] for wanted in (True, False)]
    first, *rest = [functools.reduce(torch.promote_types, group) for group in groups if group]
    return first if not rest or _kind(first) >= _kind(rest[0]) else torch.promote_types(first, rest[0])


def _kind(dtype: torch.dtype) -> int:
    """The category of a dtype: boolean, integer, float or complex."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else int(dtype is not torch.bool)
