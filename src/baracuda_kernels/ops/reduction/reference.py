"""The reductions in NumPy float64, sharing nothing with any kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceChoiceBackwardDescriptor,
    ReduceDescriptor,
    ReducePairBackwardDescriptor,
    ReducePairDescriptor,
    ReduceToDescriptor,
)

__all__ = [
    "in_place", "lines", "norm", "per_line", "reduce", "reduce_backward", "reduce_choice_backward", "reduce_pair", "reduce_pair_backward",
    "reduce_to", "slope_of_norm",
]  # fmt: skip


def lines(descriptor: ReduceDescriptor, x: Any) -> Any:
    """The elements that become one, in order, along the last axis."""
    kept = [axis for axis in range(x.ndim) if axis not in descriptor.axes]
    return x.transpose(*kept, *descriptor.axes).reshape(*(x.shape[axis] for axis in kept), descriptor.count)


def norm(x: Any, power: float) -> Any:
    import numpy

    size = numpy.abs(x)
    if math.isinf(power):
        return size.max(-1) if power > 0 else size.min(-1)
    if power == 0:
        return (size != 0).sum(-1).astype(numpy.float64)
    return (size**power).sum(-1) ** (1.0 / power)


def _centred(x: Any) -> Any:
    return x - x.sum(-1, keepdims=True) / max(x.shape[-1], 1)


def _variance(x: Any, correction: float) -> Any:
    import numpy

    return (_centred(x) ** 2).sum(-1) / numpy.float64(max(x.shape[-1] - correction, 0.0))


def _logsumexp(x: Any) -> Any:
    import numpy

    top = x.max(-1, keepdims=True, initial=-math.inf)
    base = numpy.where(numpy.isfinite(top), top, 0.0)
    return numpy.log(numpy.exp(x - base).sum(-1)) + base[..., 0]


def _of_present(function: Callable[..., Any], start: float, of_none: float = math.nan) -> Callable[[Any], Any]:
    import numpy

    def compute(x: Any) -> Any:
        absent = numpy.isnan(x)
        return numpy.where(absent.all(-1), of_none, function(numpy.where(absent, start, x), axis=-1))

    return compute


def _place_of_present(x: Any, sign: float) -> Any:
    """The index of the largest of `sign` x, the first of several; -1 if there is none."""
    import numpy

    absent = numpy.isnan(x)
    # Among all that could be it, numbers that are there come before NaN, which is taken for the lowest.
    best = numpy.where(absent, -math.inf, sign * x).max(-1, keepdims=True)
    return numpy.where(absent.all(-1), -1, (~absent & (sign * x == best)).argmax(-1))


def _centred_present(x: Any) -> tuple[Any, Any]:
    """Distances from the mean of what is there, 0 where nothing is; and how many are there."""
    import numpy

    absent = numpy.isnan(x)
    present = (~absent).sum(-1, keepdims=True).astype(numpy.float64)
    mean = numpy.where(absent, 0.0, x).sum(-1, keepdims=True) / present
    return numpy.where(absent, 0.0, x - mean), present


def _variance_of_present(x: Any, correction: float) -> Any:
    centred, present = _centred_present(x)
    return (centred**2).sum(-1) / (present[..., 0] - correction).clip(0.0)


def _reduced(kind: str, x: Any, numbers: tuple[float, ...]) -> Any:
    import numpy

    present = ~numpy.isnan(x)
    formulas: dict[str, Callable[[Any], Any]] = {
        "sum": lambda x: x.sum(-1), "mean": lambda x: x.sum(-1) / numpy.float64(x.shape[-1]), "prod": lambda x: x.prod(-1),
        "amax": lambda x: x.max(-1), "amin": lambda x: x.min(-1), "argmax": lambda x: x.argmax(-1), "argmin": lambda x: x.argmin(-1),
        "any": lambda x: (x != 0).any(-1), "all": lambda x: (x != 0).all(-1), "count_nonzero": lambda x: (x != 0).sum(-1),
        "var": lambda x: _variance(x, *numbers), "std": lambda x: numpy.sqrt(_variance(x, *numbers)), "logsumexp": _logsumexp,
        "l1_norm": lambda x: norm(x, 1.0), "l2_norm": lambda x: norm(x, 2.0), "linf_norm": lambda x: norm(x, math.inf),
        "vector_norm": lambda x: norm(x, *numbers), "nansum": lambda x: numpy.where(present, x, 0.0).sum(-1),
        "nanmean": lambda x: numpy.where(present, x, 0.0).sum(-1) / present.sum(-1).astype(numpy.float64),
        "nanmax": _of_present(numpy.max, -math.inf), "nanmin": _of_present(numpy.min, math.inf),
        "ptp": lambda x: x.max(-1) - x.min(-1), "logmeanexp": lambda x: _logsumexp(x) - math.log(x.shape[-1]) if x.size else x.sum(-1) * math.nan,
        "reduce_xor": lambda x: numpy.bitwise_xor.reduce(x.astype(numpy.int64), -1), "nanprod": _of_present(numpy.prod, 1.0, 1.0),
        "nanargmax": lambda x: _place_of_present(x, 1.0), "nanargmin": lambda x: _place_of_present(x, -1.0),
        "nanvar": lambda x: _variance_of_present(x, *numbers), "nanstd": lambda x: numpy.sqrt(_variance_of_present(x, *numbers)),
    }  # fmt: skip
    with numpy.errstate(all="ignore"):
        return formulas[kind](x)


def reduce(descriptor: ReduceDescriptor, input: Any) -> Any:
    import numpy

    result = _reduced(descriptor.kind.value, lines(descriptor, input), descriptor.numbers)
    return numpy.asarray(result).reshape(descriptor.result_shape)


def reduce_pair(descriptor: ReducePairDescriptor, input: Any) -> tuple[Any, Any]:
    import numpy

    of_one, kind = lines(descriptor, input), descriptor.kind.value
    parts = {
        "max_with_indices": ("amax", "argmax"), "min_with_indices": ("amin", "argmin"), "aminmax": ("amin", "amax"),
        "var_mean": ("var", "mean"), "std_mean": ("std", "mean"),
    }[kind]  # fmt: skip
    result, second = (numpy.asarray(_reduced(part, of_one, descriptor.numbers)).reshape(descriptor.result_shape) for part in parts)
    return result, second


def reduce_to(descriptor: ReduceToDescriptor, input: Any) -> Any:
    return input.sum(descriptor.axes, keepdims=True).reshape(descriptor.target_shape)


def _product_of_others(x: Any) -> Any:
    """The product of all other elements, for every element, without a division."""
    import numpy

    before, after = numpy.ones_like(x), numpy.ones_like(x)
    before[..., 1:] = numpy.cumprod(x, -1)[..., :-1]
    after[..., :-1] = numpy.cumprod(x[..., ::-1], -1)[..., ::-1][..., 1:]
    return before * after


def _shared(is_one: Any) -> Any:
    """Equally among those that it is."""
    return is_one / is_one.sum(-1, keepdims=True).clip(1)


def slope_of_norm(x: Any, y: Any, power: float) -> Any:
    import numpy

    if math.isinf(power):
        return numpy.sign(x) * _shared(numpy.abs(x) == y)
    if power == 0:
        return x * 0.0
    slope = numpy.sign(x) * (numpy.abs(x) / y) ** (power - 1.0)
    return numpy.where((y == 0) | ((x == 0) & (power < 1)), 0.0, slope)


def _slope_of_present_variance(x: Any, factor: Any, correction: float) -> Any:
    """The gradient of nanvar, with 0 where the element is NaN."""
    import numpy

    centred, present = _centred_present(x)
    return numpy.where(numpy.isnan(x), 0.0, factor * centred / (present - correction))


def _slopes(kind: str, x: Any, y: Any, numbers: tuple[float, ...]) -> Any:
    import numpy

    count, centred, absent = numpy.float64(x.shape[-1]), _centred(x), numpy.isnan(x)
    formulas: dict[str, Callable[[], Any]] = {
        "sum": lambda: numpy.ones_like(x), "mean": lambda: numpy.ones_like(x) / count, "prod": lambda: _product_of_others(x),
        "amax": lambda: _shared(x == y), "amin": lambda: _shared(x == y), "nanmax": lambda: _shared(x == y),
        "nanmin": lambda: _shared(x == y), "var": lambda: 2.0 * centred / (count - numbers[0]),
        "std": lambda: numpy.where(y == 0, 0.0, centred / (y * (count - numbers[0]))), "logsumexp": lambda: numpy.exp(x - y),
        "l1_norm": lambda: slope_of_norm(x, y, 1.0), "l2_norm": lambda: slope_of_norm(x, y, 2.0),
        "linf_norm": lambda: slope_of_norm(x, y, math.inf), "vector_norm": lambda: slope_of_norm(x, y, *numbers),
        "nansum": lambda: 1.0 - absent, "nanmean": lambda: _shared(~absent), "logmeanexp": lambda: numpy.exp(x - y) / count,
        "nanprod": lambda: numpy.where(absent, 0.0, _product_of_others(numpy.where(absent, 1.0, x))),
        "nanvar": lambda: _slope_of_present_variance(x, 2.0, *numbers),
        "nanstd": lambda: numpy.where(y == 0, 0.0, _slope_of_present_variance(x, 1.0 / y, *numbers)),
        "ptp": lambda: _shared(x == x.max(-1, keepdims=True)) - _shared(x == x.min(-1, keepdims=True)),
    }  # fmt: skip
    with numpy.errstate(all="ignore"):
        return formulas[kind]()


def reduce_backward(descriptor: ReduceBackwardDescriptor, d_result: Any, input: Any, result: Any) -> Any:
    import numpy

    x = lines(descriptor, input)
    if not x.size:
        return numpy.zeros(descriptor.shape)
    upstream, result = (per_line(descriptor, each) for each in (d_result, result))
    with numpy.errstate(all="ignore"):
        return in_place(descriptor, upstream * _slopes(descriptor.kind.value, x, result, descriptor.numbers))


def reduce_pair_backward(
    descriptor: ReducePairBackwardDescriptor, d_result: Any, d_second: Any, input: Any, result: Any, second: Any
) -> Any:
    import numpy

    x = lines(descriptor, input)
    if not x.size:
        return numpy.zeros(descriptor.shape)
    d_result, d_second, result, second = (per_line(descriptor, each) for each in (d_result, d_second, result, second))
    first, other = {"aminmax": ("amin", "amax"), "var_mean": ("var", "mean"), "std_mean": ("std", "mean")}[descriptor.kind.value]
    with numpy.errstate(all="ignore"):
        gradient = d_result * _slopes(first, x, result, descriptor.numbers)
        return in_place(descriptor, gradient + d_second * _slopes(other, x, second, descriptor.numbers))


def reduce_choice_backward(descriptor: ReduceChoiceBackwardDescriptor, d_result: Any, input: Any, second: Any) -> Any:
    import numpy

    x = lines(descriptor, input)
    if not x.size:
        return numpy.zeros(descriptor.shape)
    is_chosen = numpy.arange(descriptor.count) == per_line(descriptor, second)
    return in_place(descriptor, numpy.where(is_chosen, per_line(descriptor, d_result), 0.0))


def per_line(descriptor: ReduceDescriptor, result: Any) -> Any:
    """A result beside the lines that it is of."""
    return result.reshape(*(extent for axis, extent in enumerate(descriptor.shape) if axis not in descriptor.axes), 1)


def in_place(descriptor: ReduceDescriptor, of_lines: Any) -> Any:
    """Lines, with their axes back in the order of the input's."""
    import numpy

    order = [*(axis for axis in range(len(descriptor.shape)) if axis not in descriptor.axes), *descriptor.axes]
    return of_lines.reshape([descriptor.shape[axis] for axis in order]).transpose(numpy.argsort(order))
