"""Calls of functions whose names NumPy has and PyTorch has not, in NumPy's arguments, and what each comes to here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy
import torch

import baracuda_kernels as bk
from baracuda_kernels.core import registry

import judging
from deviations import Case
from judging import Verdict

PYTORCH = (torch, torch.nn.functional, torch.special, torch.linalg)
ELEMENTS = ("float64", "float32", "int64", "int8")
BESIDES = {"q": 30.0}  # what a call needs beside arrays


def _names() -> list[str]:
    functions = {name: each for name, each in registry.functions().items() if not name.endswith("_backward")}
    return [name for name in functions if hasattr(numpy, name) and not any(hasattr(module, name) for module in PYTORCH)]


NAMES = _names()


def judged(name: str, element: str) -> Iterator[Verdict]:
    """With every axis and none, keeping axes or not, where the function has such arguments; of floats with NaN among them too."""
    theirs = getattr(numpy, name)
    parameters = {} if isinstance(theirs, numpy.ufunc) else inspect.signature(theirs).parameters
    chance = numpy.random.default_rng(20240229)
    for shape in ((3, 4), (5,), ()):
        function = registry.function(name)
        arrays = [(chance.standard_normal(shape) * 3 + 5).astype(element) for _ in function.inputs]
        for operands in (arrays, [_with_nan(each) for each in arrays]) if element[0] == "f" and shape else (arrays,):
            besides = {option: value for option, value in BESIDES.items() if option in parameters}
            is_weighted = "weights" in function.inputs
            given, besides = operands[:1] if is_weighted else operands, besides | ({"weights": arrays[1]} if is_weighted else {})
            axes = (None, 0, -1) if "axis" in parameters and shape else (None,)
            for axis in axes:
                named = besides | ({} if axis is None else {"axis": axis})
                yield _judged(name, given, named)
                if "keepdims" in parameters:
                    yield _judged(name, given, named | {"keepdims": True})


def _with_nan(array: Any) -> Any:
    """The first and the last number left out, and never a whole row."""
    found = array.copy()
    found.flat[0] = found.flat[-1] = numpy.nan
    return found


def _judged(name: str, given: list[Any], named: dict[str, Any]) -> Verdict:
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(*given, **named)
    case = Case("NumPy", name, tuple(given), named)
    return judging.judged(case, partial(getattr(bk, name), *given, **named), lambda got: different(got, expected))


def different(got: Any, expected: Any) -> str:
    """What is not as expected, in words."""
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            return f"{len(got) if isinstance(got, tuple) else 1} results, NumPy {len(expected)}"
        return next(filter(None, map(different, got, expected)), "")
    ours, theirs = numpy.asarray(got), numpy.asarray(expected)
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, NumPy {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, NumPy {theirs.shape}"
    rtol = {"f": 1e-12 if ours.dtype.itemsize == 8 else 1e-5}.get(ours.dtype.kind, 0)
    same = numpy.allclose(ours, theirs, rtol=rtol, atol=rtol, equal_nan=ours.dtype.kind == "f")
    return "" if same else f"numbers: {ours.tolist()}, NumPy {theirs.tolist()}"
