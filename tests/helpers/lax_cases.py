"""JAX's own cases of lax, out of its wheel, and what each case of a function of ours comes to here."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import numpy
from jax import lax

import baracuda_kernels as bk
from baracuda_kernels.arrays.jax_arrays import wide_types
from baracuda_kernels.core import registry

import judging
from deviations import Case
from judging import Verdict

with wide_types():  # which elements there are cases of is decided when they are imported
    from jax._src.internal_test_util import lax_test_util, test_harnesses

SEED = 20240229
PLAIN = {
    "prim",
    "shape",
    "shapes",
    "lhs",
    "rhs",
    "op",
    "op_name",
    "lhs_shape",
    "rhs_shape",
}  # what says nothing beside the operands
RTOL = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-5, "complex64": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}


def _records() -> dict[str, list[Any]]:
    """Cases of functions with as many operands as ours: `lax.max` of two arrays is not our `max`."""
    ours: dict[str, list[Any]] = {}
    for record in lax_test_util.lax_ops():
        if record.op in registry.function_homes() and len(registry.function(record.op).inputs) == record.nargs:
            ours.setdefault(record.op, []).append(record)
    return ours


def _harnesses() -> dict[str, list[Any]]:
    """Cases that are calls of lax's function, or of its primitive with operands alone."""
    ours: dict[str, list[Any]] = {}
    for harness in test_harnesses.all_harnesses:
        name = harness.group_name
        is_call = harness.fun is getattr(lax, name, None) or ("prim" in harness.params and PLAIN.issuperset(harness.params))
        if is_call and name in registry.function_homes() and harness.filter("cpu"):
            ours.setdefault(name, []).append(harness)
    return ours


RECORDS, HARNESSES = _records(), _harnesses()


def recorded(name: str, few: bool = False) -> Iterator[Verdict]:
    """Every shape in every dtype; of few, every second dtype, and the last shapes that broadcast."""
    for record in RECORDS[name]:
        for dtype in record.dtypes[:: 2 if few else 1]:
            shapes = [
                each
                for group in lax_test_util.compatible_shapes
                for each in itertools.combinations_with_replacement(group, record.nargs)
            ]
            for several in shapes[-1:] if few else shapes:
                with wide_types():
                    make = record.rng_factory(numpy.random.RandomState(SEED))
                    given = [jax.numpy.asarray(make(shape, dtype)) for shape in several]
                    yield _judged(name, getattr(lax, name), given, {})


def harnessed(name: str, few: bool = False) -> Iterator[Verdict]:
    """Every case of the primitive; of few, the first ones."""
    for harness in HARNESSES[name][: 4 if few else None]:
        with wide_types():
            given = harness.args_maker(numpy.random.RandomState(SEED))
            theirs = getattr(lax, name) if harness.fun is getattr(lax, name, None) else harness.fun
            yield _judged(name, theirs, *_arguments(theirs, given))


def _arguments(theirs: Callable[..., Any], given: Any) -> tuple[list[Any], dict[str, Any]]:
    """Arrays by position; what else differs from the default of lax, by name."""
    parameters = list(inspect.signature(theirs).parameters.values())
    arrays, others = [], {}
    for parameter, value in zip(parameters, given, strict=False):
        if isinstance(value, numpy.ndarray | numpy.generic | jax.Array):
            arrays.append(jax.numpy.asarray(value))
        elif value != parameter.default:
            others[parameter.name] = value
    return arrays, others


def _judged(name: str, theirs: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> Verdict:
    expected = theirs(*given, **named)
    case = Case("JAX", name, tuple(given), named)
    return judging.judged(case, partial(getattr(bk, name), *given, **named), lambda got: _difference(theirs, case, got, expected))


def _difference(theirs: Callable[..., Any], case: Case, got: Any, expected: Any) -> str:
    says = different(got, expected)
    narrow = [each for each in case.given if each.dtype in (jax.numpy.float32, jax.numpy.float16, jax.numpy.bfloat16)]
    if not says.startswith("numbers") or len(narrow) < len(case.given):
        return says
    exact = theirs(*(each.astype(numpy.float64) for each in case.given), **case.named)
    return different(got, exact.astype(expected.dtype))


def different(got: Any, expected: Any) -> str:
    """What is not as expected, in words."""
    if not isinstance(got, jax.Array):
        return f"a {type(got).__name__}, JAX an array"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype}, JAX {expected.dtype}"
    if got.shape != expected.shape:
        return f"shape {got.shape}, JAX {expected.shape}"
    rtol = RTOL.get(str(got.dtype), 0)
    wide = numpy.complex128 if got.dtype.kind == "c" else numpy.float64 if rtol else got.dtype
    ours, theirs = (numpy.asarray(each).astype(wide) for each in (got, expected))
    if numpy.allclose(ours, theirs, rtol=rtol, atol=rtol * 1e-2, equal_nan=True):
        return ""
    place = numpy.unravel_index(numpy.argmin(numpy.isclose(ours, theirs, rtol, rtol * 1e-2, equal_nan=True)), ours.shape)
    return f"numbers: {ours[place]}, JAX {theirs[place]}"
