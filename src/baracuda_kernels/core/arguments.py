"""What arguments are called in PyTorch, NumPy and JAX: said once for all functions, each of which keeps its own name for them.

bk.sum(x, axis=0, keepdims=True)        # bk.sum(x, dim=0, keepdim=True)
bk.var(x, ddof=0)                       # bk.var(x, correction=0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["SYNONYMS", "renamed", "synonyms_of"]

SYNONYMS: tuple[tuple[str, ...], ...] = (  # of each group a function has one name, or none
    ("dim", "axis"),
    ("keepdim", "keepdims"),
    ("correction", "ddof", "unbiased"),
    ("interpolation", "method"),
)


def synonyms_of(names: Iterable[str]) -> dict[str, str]:
    """What else the parameters of a function may be called, each with the function's own name."""
    own = [*names]
    return {other: name for name in own for group in SYNONYMS if name in group for other in group if other not in own}


def renamed(function: str, synonyms: Mapping[str, str], places: Sequence[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments `named` by the function's own names. `places` are the parameters that have a value by position."""
    result: dict[str, Any] = {}
    given = {own: own for own in places}  # what each was called
    for name, value in named.items():
        own = synonyms.get(name, name)
        if own in given and {name, given[own]} != {own}:
            wanted = f"one of {given[own]} and {name}"
            raise InvalidProblem(function, [Reason(ReasonCode.UNEXPECTED_OPERAND, name, repr(value), wanted)])
        given[own] = name
        if own != "correction":
            result[own] = value
        elif value is not None:  # which is PyTorch's and NumPy's word for the default
            result[own] = _correction(function, name, value)
    return result


def _correction(function: str, name: str, value: Any) -> Any:
    """`unbiased` says whether the correction is one or none."""
    if name != "unbiased":
        return value
    if value is True or value is False:
        return int(value)
    raise InvalidProblem(function, [Reason(ReasonCode.WRONG_TYPE, name, repr(value), "True or False")])
