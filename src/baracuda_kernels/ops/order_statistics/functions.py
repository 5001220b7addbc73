"""Order statistics as functions, with PyTorch's names and arguments; `dim` may be several axes too."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.function import Function, function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import Axes, View, member
from baracuda_kernels.ops.order_statistics.descriptor import (
    Interpolation,
    OrderBackwardDescriptor,
    OrderDescriptor,
    OrderKind,
    QuantileBackwardDescriptor,
    QuantileDescriptor,
    QuantileKind,
)
from baracuda_kernels.ops.order_statistics.order_statistics import OrderBackwardPlan, OrderPlan, QuantileBackwardPlan, QuantilePlan
from baracuda_kernels.ops.reduction.descriptor import mask_of

__all__: list[str] = []  # what it declares is found by its name

Quantiles = float | tuple[float, ...]


def _mask(input: View, dim: Axes | None) -> int:
    axes = () if dim is None else input.axes(dim, "dim")
    return mask_of(axes or range(len(input.shape)))


# --- an element that is chosen ---------------------------------------------------------------------------------------------------


class Median(Function):
    """Along axes it tells values and indices, of all elements the value alone, if nothing else is said."""

    def __init__(self, describe: Any) -> None:
        super().__init__(describe, OrderPlan, f"{describe.__name__}_backward")

    def returned(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        asked = options.get("return_indices")
        tells = options.get("dim") not in (None, ()) if asked is None else asked
        return ("values", "indices") if tells else ("values",)


def _order(kind: OrderKind, input: View, dim: Axes | None, keepdim: bool) -> OrderDescriptor:
    return OrderDescriptor(kind, input.shape, _mask(input, dim), input.element, keepdim)


def _order_backward(kind: OrderKind, input: View, dim: Axes | None, keepdim: bool) -> OrderBackwardDescriptor:
    return OrderBackwardDescriptor(kind, input.shape, _mask(input, dim), input.element, keepdim)


@Median
def median(input: View, dim: Axes | None = None, keepdim: bool = False, *, return_indices: bool | None = None) -> OrderDescriptor:
    """The median, the lower of two middle elements, NaN if there is one; along axes also its index."""
    return _order(OrderKind.MEDIAN, input, dim, keepdim)


@function(OrderBackwardPlan)
def median_backward(
    d_values: View, input: View, indices: View, dim: Axes | None = None, keepdim: bool = False
) -> OrderBackwardDescriptor:
    """The gradient of median: it goes to the chosen element."""
    return _order_backward(OrderKind.MEDIAN, input, dim, keepdim)


@Median
def nanmedian(
    input: View, dim: Axes | None = None, keepdim: bool = False, *, return_indices: bool | None = None
) -> OrderDescriptor:
    """The median of the elements that are not NaN, the lower of two middle ones; along axes also its index."""
    return _order(OrderKind.NANMEDIAN, input, dim, keepdim)


@function(OrderBackwardPlan)
def nanmedian_backward(
    d_values: View, input: View, indices: View, dim: Axes | None = None, keepdim: bool = False
) -> OrderBackwardDescriptor:
    """The gradient of nanmedian: it goes to the chosen element."""
    return _order_backward(OrderKind.NANMEDIAN, input, dim, keepdim)


@function(OrderPlan, gradient="mode_backward")
def mode(input: View, dim: Axes | None = -1, keepdim: bool = False) -> OrderDescriptor:
    """The most frequent value, the smallest of several, and the index of its last occurrence."""
    return _order(OrderKind.MODE, input, dim, keepdim)


@function(OrderBackwardPlan)
def mode_backward(
    d_values: View, input: View, indices: View, dim: Axes | None = -1, keepdim: bool = False
) -> OrderBackwardDescriptor:
    """The gradient of mode: it goes to the chosen element."""
    return _order_backward(OrderKind.MODE, input, dim, keepdim)


# --- quantiles -------------------------------------------------------------------------------------------------------------------


class Quantile(Function):
    """A quantile function: of one q, or of several, whose results are stacked along a leading axis."""

    def spread(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call as an operator of PyTorch takes it: q always as several, and whether they are stacked."""
        place, rest = list(self.declared.parameters).index("q"), dict(named)
        q = given[place] if len(given) > place else rest.get("q")
        # No union of types: Dynamo of PyTorch 2.9 knows none.
        several = q if isinstance(q, (tuple, list)) else (q,) if isinstance(q, Real) else None
        if several is None:
            return given, rest  # which is refused
        if rest.get("stacked") is None:
            rest["stacked"] = several is q
        if len(given) > place:
            return (*given[:place], tuple(several), *given[place + 1 :]), rest
        return given, rest | {"q": tuple(several)}


def _described(descriptor: Any, name: str, given: dict[str, Any]) -> Any:
    input, q, stacked = given["input"], given["q"], given["stacked"]
    several = tuple(q) if isinstance(q, tuple | list) else (q,)
    if name.endswith("percentile"):
        if not all(isinstance(each, Real) and 0.0 <= float(each) <= 100.0 for each in several):
            wanted = "numbers from 0 to 100"
            raise InvalidProblem(input.function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "q", repr(q), wanted)])
        several = tuple(each / 100.0 for each in several)
    kind = QuantileKind.NANQUANTILE if name.startswith("nan") else QuantileKind.QUANTILE
    between = member(Interpolation, "interpolation", given["interpolation"])
    is_stacked = isinstance(q, tuple | list) if stacked is None else stacked
    return descriptor(kind, input.shape, _mask(input, given["dim"]), input.element, several, between, given["keepdim"], is_stacked)


def _declare(name: str, says: str) -> None:
    """The function of that name, and that of its gradient."""

    def forward(
        input: View,
        q: Quantiles,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        stacked: bool | None = None,
    ) -> QuantileDescriptor:
        return _described(QuantileDescriptor, name, locals())  # type: ignore[no-any-return]

    def backward(
        d_result: View,
        input: View,
        q: Quantiles,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        stacked: bool | None = None,
    ) -> QuantileBackwardDescriptor:
        return _described(QuantileBackwardDescriptor, name, locals())  # type: ignore[no-any-return]

    gradient = f"{name}_backward"
    forward.__name__, forward.__doc__ = name, says
    backward.__name__, backward.__doc__ = gradient, f"The gradient of {name}: it is shared between the neighbouring elements."
    globals()[name] = Quantile(forward, QuantilePlan, gradient)
    globals()[gradient] = Quantile(backward, QuantileBackwardPlan, None)


_declare("quantile", "The q-th quantile, q from 0 to 1; NaN if there is one.")
_declare("nanquantile", "The q-th quantile of the elements that are not NaN, q from 0 to 1.")
_declare("percentile", "Quantiles, q in percent.")
_declare("nanpercentile", "Quantiles of the elements that are not NaN, q in percent.")
