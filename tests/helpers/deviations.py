"""What is meant to differ from the framework whose name a function has: the one table, which docs/deviations.md shows.

What is only missing yet is no line here. Tests judge that each line is needed: some case fails without it.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A call as another library's tests make it."""

    judge: str  # PyTorch, JAX or NumPy
    function: str  # our name of it
    given: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)
    fails: bool = False  # in their library it is an error


@dataclass(frozen=True)
class Deviation:
    judge: str
    of: tuple[str, ...]  # functions; none are all
    when: str
    reason: str
    hits: Callable[[Case], bool] = lambda case: True
    reads: Callable[[Any, Case], Any] | None = None  # what theirs is, as it follows from ours: then it is still judged

    def is_about(self, case: Case) -> bool:
        return case.judge == self.judge and (not self.of or case.function in self.of) and self.hits(case)


def about(case: Case) -> Deviation | None:
    return next((line for line in DEVIATIONS if line.is_about(case)), None)


def _number_for_array(case: Case) -> bool:
    return case.fails and any(isinstance(value, numbers.Number) for value in case.given) and any(map(_is_array, case.given))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape")


def _any_of_the_mode(got: Any, case: Case) -> Any:
    """The places of PyTorch's, where ours are places of the same values."""
    values, places = got
    along, keepdim = (*case.given[1:], -1)[0], (*case.given[2:], case.named.get("keepdim", False))[0]
    along = case.named.get("dim", along)
    theirs = case.given[0].mode(along, keepdim)
    picked = (
        case.given[0]
        if not case.given[0].ndim
        else case.given[0].take_along_dim(places if keepdim else places.unsqueeze(along), along)
    )
    return values, theirs.indices if (picked.reshape(values.shape) == values).all() else places


DEVIATIONS = (
    Deviation(
        "PyTorch", ("allclose", "equal"), "always",
        "The result is a tensor of one bool, so that nothing waits for the device; PyTorch reads it on the host.",
        lambda case: not case.fails, lambda got, case: bool(got),
    ),
    Deviation(
        "PyTorch", ("all", "any"), "of uint8",
        "The result is bool, as it is of every other dtype, in NumPy and in JAX; PyTorch keeps uint8, its masks of old.",
        lambda case: str(case.given[0].dtype) == "torch.uint8", lambda got, case: got.to(case.given[0].dtype),
    ),
    Deviation(
        "PyTorch", ("mode",), "more than sixteen elements along the axis",
        "The index is that of the last of the equal elements; PyTorch's is that of any, since its sort of long rows is not stable.",
        lambda case: max(case.given[0].shape, default=1) > 16, _any_of_the_mode,
    ),
    Deviation(
        "PyTorch", (), "a number in place of a tensor, beside a tensor",
        "Numbers may stand for operands of every function of elements, as in NumPy and JAX; PyTorch takes them in some functions and places only.",
        _number_for_array,
    ),
    Deviation(
        "PyTorch", ("cov",), "negative weights",
        "Weights are numbers on the device, which no function waits to look at.",
        lambda case: case.fails and any(name in case.named for name in ("fweights", "aweights")),
    ),
    Deviation(
        "PyTorch", ("trace",), "more than two axes",
        "The traces of a batch of matrices, along the last two axes, where PyTorch has an error.",
        lambda case: case.fails,
    ),
)  # fmt: skip
