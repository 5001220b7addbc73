"""Scans as functions, with PyTorch's names and arguments; `reverse` scans from the last element on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import Dtype, View, element_from
from baracuda_kernels.ops.scan.descriptor import ScanBackwardDescriptor, ScanDescriptor, ScanKind
from baracuda_kernels.ops.scan.scan import ScanBackwardPlan, ScanPlan

__all__ = [
    "cummax", "cummax_backward", "cummin", "cummin_backward", "cumprod", "cumprod_backward", "cumsum", "cumsum_backward",
    "logcumsumexp", "logcumsumexp_backward", "nancumprod", "nancumprod_backward", "nancumsum", "nancumsum_backward",
]  # fmt: skip


class _OfKind(Function):
    """A function with those of the plan's operands that its kind has."""

    def __init__(self, describe: Callable[..., ScanDescriptor], plan: Any, kind: ScanKind, gradient: str | None) -> None:
        sample = plan.descriptor_type(kind, (1,), 0, ElementKind.F32)
        had = tuple(replace(each, present_rule=True) for each in plan.args_type.OPERANDS if each.presence(sample))
        of_kind: Any = SimpleNamespace(__name__=plan.__name__, args_type=SimpleNamespace(OPERANDS=had))
        super().__init__(describe, of_kind, gradient)
        self.plan = plan


class _Converting(_OfKind):
    """A sum or product whose elements may be cast first, by a separate call."""

    CALLS = ("cast",)

    def __call__(self, *given: Any, **named: Any) -> Any:
        if "dtype" in named:
            given, named = self.spread(given, named, registry.function("cast"))
        return super().__call__(*given, **named)

    def spread(
        self, given: tuple[Any, ...], named: Mapping[str, Any], cast: Callable[..., Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call with elements of that `dtype`, which it still names: autocast leaves them as they were asked for."""
        if named.get("dtype") is None:
            return given, dict(named)
        element = _element(self.name, named["dtype"])
        if given:
            return (cast(given[0], element), *given[1:]), dict(named)
        return given, {**named, **({"input": cast(named["input"], element)} if "input" in named else {})}


def _element(function: str, dtype: object) -> ElementKind:
    element = element_from(function, "dtype", dtype)
    if not element.is_float and element is not ElementKind.I64:
        raise InvalidProblem(
            function, [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "dtype", element, "a float, or i64 as integers add up to")]
        )
    return element


def _converted(kind: ScanKind) -> Callable[[Callable[..., ScanDescriptor]], Function]:
    return lambda describe: _Converting(describe, ScanPlan, kind, f"{kind.value}_backward")


def _described(kind: ScanKind, input: View, dim: int, reverse: bool, dtype: object) -> ScanDescriptor:
    element = input.element if dtype is None else _element(input.function, dtype)
    return ScanDescriptor(kind, input.shape, input.axis(dim, "dim"), element, reverse)


def _scan(kind: ScanKind) -> Callable[[Callable[..., ScanDescriptor]], Function]:
    return lambda describe: _OfKind(describe, ScanPlan, kind, f"{kind.value}_backward")


def _gradient(kind: ScanKind) -> Callable[[Callable[..., ScanDescriptor]], Function]:
    return lambda describe: _OfKind(describe, ScanBackwardPlan, kind, None)


def _back(kind: ScanKind, d_result: View, dim: int, reverse: bool) -> ScanBackwardDescriptor:
    return ScanBackwardDescriptor(kind, d_result.shape, d_result.axis(dim, "dim"), d_result.element, reverse)


@_converted(ScanKind.CUMSUM)
def cumsum(input: View, dim: int, reverse: bool = False, *, dtype: Dtype | None = None) -> ScanDescriptor:
    """The running sum; i64 for integers."""
    return _described(ScanKind.CUMSUM, input, dim, reverse, dtype)


@_gradient(ScanKind.CUMSUM)
def cumsum_backward(d_result: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of cumsum."""
    return _back(ScanKind.CUMSUM, d_result, dim, reverse)


@_converted(ScanKind.NANCUMSUM)
def nancumsum(input: View, dim: int, reverse: bool = False, *, dtype: Dtype | None = None) -> ScanDescriptor:
    """The running sum, with NaN as 0."""
    return _described(ScanKind.NANCUMSUM, input, dim, reverse, dtype)


@_gradient(ScanKind.NANCUMSUM)
def nancumsum_backward(d_result: View, input: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of nancumsum; 0 at NaN."""
    return _back(ScanKind.NANCUMSUM, d_result, dim, reverse)


@_converted(ScanKind.CUMPROD)
def cumprod(input: View, dim: int, reverse: bool = False, *, dtype: Dtype | None = None) -> ScanDescriptor:
    """The running product; i64 for integers."""
    return _described(ScanKind.CUMPROD, input, dim, reverse, dtype)


@_gradient(ScanKind.CUMPROD)
def cumprod_backward(d_result: View, input: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of cumprod; zeros are handled."""
    return _back(ScanKind.CUMPROD, d_result, dim, reverse)


@_converted(ScanKind.NANCUMPROD)
def nancumprod(input: View, dim: int, reverse: bool = False, *, dtype: Dtype | None = None) -> ScanDescriptor:
    """The running product, with NaN as 1."""
    return _described(ScanKind.NANCUMPROD, input, dim, reverse, dtype)


@_gradient(ScanKind.NANCUMPROD)
def nancumprod_backward(d_result: View, input: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of nancumprod; 0 at NaN."""
    return _back(ScanKind.NANCUMPROD, d_result, dim, reverse)


@_scan(ScanKind.CUMMAX)
def cummax(input: View, dim: int, reverse: bool = False) -> ScanDescriptor:
    """The running maximum and its index, the last of equals; NaN is larger than everything."""
    return ScanDescriptor(ScanKind.CUMMAX, input.shape, input.axis(dim, "dim"), input.element, reverse)


@_gradient(ScanKind.CUMMAX)
def cummax_backward(d_result: View, indices: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of cummax, from its indices."""
    return _back(ScanKind.CUMMAX, d_result, dim, reverse)


@_scan(ScanKind.CUMMIN)
def cummin(input: View, dim: int, reverse: bool = False) -> ScanDescriptor:
    """The running minimum and its index, the last of equals; NaN is smaller than everything."""
    return ScanDescriptor(ScanKind.CUMMIN, input.shape, input.axis(dim, "dim"), input.element, reverse)


@_gradient(ScanKind.CUMMIN)
def cummin_backward(d_result: View, indices: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of cummin, from its indices."""
    return _back(ScanKind.CUMMIN, d_result, dim, reverse)


@_scan(ScanKind.LOGCUMSUMEXP)
def logcumsumexp(input: View, dim: int, reverse: bool = False) -> ScanDescriptor:
    """The running logsumexp: the logarithm of the sum of exponentials so far."""
    return ScanDescriptor(ScanKind.LOGCUMSUMEXP, input.shape, input.axis(dim, "dim"), input.element, reverse)


@_gradient(ScanKind.LOGCUMSUMEXP)
def logcumsumexp_backward(d_result: View, input: View, result: View, dim: int, reverse: bool = False) -> ScanBackwardDescriptor:
    """The gradient of logcumsumexp, from its result."""
    return _back(ScanKind.LOGCUMSUMEXP, d_result, dim, reverse)
