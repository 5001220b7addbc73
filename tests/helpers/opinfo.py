"""PyTorch's own database of samples, and what each sample of a function that PyTorch has and we have comes to here."""

from __future__ import annotations

import importlib
import types
import unittest.mock
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.autograd.gradcheck import GradcheckError
from torch.testing._internal.common_methods_invocations import op_db

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.core import registry

import judging
from deviations import Case
from judging import Verdict

DTYPES = (
    torch.float64, torch.int64, torch.bool, torch.complex128, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int16,
    torch.int8, torch.uint8, torch.complex64,
)  # fmt: skip # the first of them that a function takes is its telling one
NARROW = (torch.float16, torch.bfloat16, torch.float32)  # where PyTorch rounds in between, what it computes in f64 is as right
EXACT = (torch.float64, torch.complex128)
SEED = 20240229


def last(name: str) -> str:
    return name.rpartition(".")[2]


def _entries() -> dict[str, Any]:
    """Those about functions that we have. Where another entry has our very name, `linalg.norm` and `masked.sum` are not ours."""
    ours, theirs = registry.function_homes(), {entry.name for entry in op_db}
    found = [entry for entry in op_db if last(entry.name) in ours and (entry.name in ours or last(entry.name) not in theirs)]
    return {entry.name + (f" {entry.variant_test_name}" if entry.variant_test_name else ""): entry for entry in found}


ENTRIES = _entries()


def dtypes_of(entry: Any) -> list[torch.dtype]:
    return [dtype for dtype in DTYPES if dtype in entry.dtypes]


def forward(entry: Any, dtype: torch.dtype) -> Iterator[Verdict]:
    """Every sample of that dtype, judged by PyTorch's result."""
    return (_judged(entry, sample) for sample in _samples(entry, dtype, False))


def gradients(entry: Any, dtype: torch.dtype, second: bool = False) -> Iterator[Verdict]:
    """Every sample of that dtype whose result is there, judged by differences."""
    for sample in _samples(entry, dtype, True):
        if _judged(entry, sample).outcome is not judging.Outcome.REFUSED:
            yield _gradient_judged(entry, sample, second)


def errors(entry: Any) -> Iterator[Verdict]:
    """Every call that is an error in PyTorch."""
    torch.manual_seed(SEED)
    for wrong in entry.error_inputs("cpu") if entry.error_inputs_func else ():
        sample = wrong.sample_input
        yield judging.raised(_case(entry, sample, fails=True), lambda sample=sample: _call(entry, bk, sample), wrong.error_type)


def _samples(entry: Any, dtype: torch.dtype, requires_grad: bool) -> Iterator[Any]:
    torch.manual_seed(SEED)
    return iter(entry.sample_inputs("cpu", dtype, requires_grad=requires_grad))


def _case(entry: Any, sample: Any, fails: bool = False) -> Case:
    return Case("PyTorch", last(entry.name), (sample.input, *sample.args), sample.kwargs, fails)


def _call(entry: Any, functions: Any, sample: Any) -> Any:
    return _called(entry, getattr(functions, last(entry.name)))(sample.input, *sample.args, **sample.kwargs)


def _called(entry: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the arguments that samples of the entry have: some entries are lambdas around PyTorch's function."""
    if not isinstance(entry.op, types.FunctionType) or not entry.op.__module__.startswith("torch.testing"):
        return function
    home, _, name = f"torch.{entry.name}".rpartition(".")
    owner = importlib.import_module(home)

    def call(*given: Any, **named: Any) -> Any:
        with unittest.mock.patch.object(owner if hasattr(owner, name) else torch.Tensor, name, function):
            return entry.op(*given, **named)

    return call


def _judged(entry: Any, sample: Any) -> Verdict:
    with torch.no_grad():
        expected = entry.op(sample.input, *sample.args, **sample.kwargs)
        plain = sample.transform(lambda value: value.detach() if isinstance(value, torch.Tensor) else value)
        return judging.judged(
            _case(entry, plain), lambda: _call(entry, bk, plain), lambda got: _difference(entry, plain, got, expected)
        )


def _difference(entry: Any, sample: Any, got: Any, expected: Any) -> str:
    says = different(got, expected)
    if not says.startswith("numbers") or not isinstance(sample.input, torch.Tensor) or sample.input.dtype not in NARROW:
        return says
    wide = sample.transform(lambda value: value.double() if isinstance(value, torch.Tensor) and value.dtype in NARROW else value)
    exact = entry.op(wide.input, *wide.args, **wide.kwargs)
    return different(got, pytree.tree_map(lambda value, like: value.to(like.dtype), exact, expected))


def _gradient_judged(entry: Any, sample: Any, second: bool) -> Verdict:
    leaves, form = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    function = _called(entry, getattr(bt, last(entry.name)))

    def of_leaves(*given: torch.Tensor) -> Any:
        replaced = dict(zip(places, given, strict=True))
        values = [replaced.get(place, leaf) for place, leaf in enumerate(leaves)]
        first, args, kwargs = pytree.tree_unflatten(values, form)
        result = function(first, *args, **kwargs)
        result = sample.output_process_fn_grad(result) if callable(sample.output_process_fn_grad) else result
        flat = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        return tuple(each for each in flat if each.is_floating_point() or each.is_complex())

    check = torch.autograd.gradgradcheck if second else torch.autograd.gradcheck
    given = tuple(leaves[place] for place in places)

    def call() -> str:
        try:
            check(of_leaves, given, fast_mode=True, nondet_tol=0.0)
        except GradcheckError as wrong:
            return str(wrong)
        return ""

    return judging.judged(_case(entry, sample), call, lambda says: says)


def different(got: Any, expected: Any) -> str:
    """What is not as expected, in words."""
    if isinstance(expected, tuple | list):
        if not isinstance(got, tuple | list) or len(got) != len(expected):
            return f"{len(got) if isinstance(got, tuple | list) else 1} results, PyTorch {len(expected)}"
        return next(filter(None, map(different, got, expected)), "")
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor):
        same = type(got) is type(expected) and got == expected
        return "" if same else f"a {type(got).__name__}, PyTorch a {type(expected).__name__}"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype}, PyTorch {expected.dtype}"
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)}, PyTorch {tuple(expected.shape)}"
    try:
        torch.testing.assert_close(got, expected, equal_nan=True)
    except AssertionError as numbers:
        return f"numbers: {numbers}"
    return ""
