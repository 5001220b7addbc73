"""`with patched() as report:` functions of torch.nn.functional are served by plans, as far as there is one for the call.

Only what is looked up as `torch.nn.functional.softmax` while the context is open is replaced, in the thread that opened it;
`torch.softmax` and methods are not, nor is anything that is being compiled, since that outlives the context.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.call import planned
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, rejection
from baracuda_kernels.core.identity import identity
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.tensor import TensorRef
from baracuda_kernels.core.turns import Turn
from baracuda_kernels.torch import autocast
from baracuda_kernels.torch.operators import DETERMINISTIC, Operator, entry, is_plain, operator
from baracuda_kernels.torch.translations import TRANSLATIONS

__all__ = ["Report", "patched"]


@dataclass
class Report:
    """Which calls ran which kernel, and which were left to PyTorch and why."""

    served: dict[str, Counter[str]] = field(default_factory=dict)  # function to kernels
    left_alone: dict[str, Counter[str]] = field(default_factory=dict)  # function to reasons

    def note(self, of: dict[str, Counter[str]], function: str, what: str) -> None:
        """Counts one call in `served` or `left_alone`."""
        with _turn:
            of.setdefault(function, Counter())[what] += 1

    def __str__(self) -> str:
        lines = [f"{name}: {count} by {kernel}" for name, kernels in self.served.items() for kernel, count in kernels.items()]
        lines += [
            f"{name}: {count} left alone, {why}" for name, reasons in self.left_alone.items() for why, count in reasons.items()
        ]
        return "\n".join(lines) or "no calls"


_reports: ContextVar[tuple[Report, ...]] = ContextVar("reports", default=())
_originals: dict[str, Callable[..., Any]] = {}
_open = 0
_turn = Turn()
_kernels = Bounded(1024)


@contextlib.contextmanager
def patched() -> Iterator[Report]:
    """Replaces F.softmax, F.log_softmax, F.rms_norm and F.scaled_dot_product_attention within, and reports what became of each call."""
    report = Report()
    _install()
    before = _reports.set((*_reports.get(), report))
    try:
        yield report
    finally:
        _reports.reset(before)
        _remove()


def _install() -> None:
    global _open
    with _turn:
        _open += 1
        if _open == 1:
            for name in TRANSLATIONS:
                _originals[name] = getattr(F, name)
                setattr(F, name, _replacement(name, _originals[name]))


def _remove() -> None:
    global _open
    with _turn:
        _open -= 1
        if _open == 0:
            for name, original in _originals.items():
                if getattr(getattr(F, name), "replaces", None) is original:  # else somebody has put theirs over it
                    setattr(F, name, original)


def _replacement(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    translation = TRANSLATIONS[name]
    of, call = operator(translation.function), entry(translation.function)
    signature = inspect.signature(translation.values)

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        reports = () if torch.compiler.is_compiling() else _reports.get()
        if not reports or not _fits(signature, args, kwargs):
            return original(*args, **kwargs)
        try:
            values = translation.values(*args, **kwargs)
            kernel = _kernel_for(of, values)
        except Error as refusal:
            for report in reports:
                report.note(report.left_alone, name, "; ".join(map(str, refusal.reasons)))
            return original(*args, **kwargs)
        for report in reports:
            report.note(report.served, name, kernel)
        return call(**values)

    replacement.replaces = original  # type: ignore[attr-defined]
    return replacement


def _fits(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    """Whether PyTorch's function accepts such a call; if not, PyTorch raises the error."""
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return False
    kinds = {name: each.annotation for name, each in signature.parameters.items() if each.annotation in ("Tensor", "Tensor | None")}
    return all(
        isinstance(given.get(name), torch.Tensor) or (kind != "Tensor" and given.get(name) is None) for name, kind in kinds.items()
    )


def _kernel_for(of: Operator, values: dict[str, Any]) -> str:
    """The kernel that will run the call. Raises an error with the reasons if there is none."""
    given = {name: values[name] for name in of.schema.inputs if values.get(name) is not None}
    for name, tensor in given.items():
        if not is_plain(tensor):
            got = f"a {type(tensor).__name__}" if isinstance(tensor, torch.Tensor) else repr(tensor)
            raise rejection(of.name, [Reason(ReasonCode.WRONG_TYPE, name, got, "a tensor with memory of its own")])
    dtypes = autocast.dtypes(of.function, values)
    deterministic = torch.are_deterministic_algorithms_enabled()
    options = {name: value for name, value in values.items() if name not in of.schema.inputs}
    forms = [(name, tensor.shape, dtypes[name], tensor.device) for name, tensor in given.items()]
    key = (of.name, deterministic, *forms, identity((*options.items(),)))
    kernel: str | None = _kernels.get(key)
    if kernel is None:
        kernel = _selected(
            of, {name: _contiguous(name, tensor, dtypes[name]) for name, tensor in given.items()}, options, deterministic
        )
        _kernels.put(key, kernel)
    return kernel


def _selected(of: Operator, forms: dict[str, Layout], options: dict[str, Any], deterministic: bool) -> str:
    problem = of.describe({name: forms.get(name) for name in of.schema.inputs} | options)
    device = next(iter(forms.values())).device
    of.function.check_inputs(problem, forms, device)
    return planned(of.function.plan, problem, device, DETERMINISTIC if deterministic else None).sku.name


def _contiguous(name: str, tensor: torch.Tensor, dtype: torch.dtype) -> Layout:
    """The layout of a contiguous copy; operators copy inputs whose layout a plan refuses."""
    reasons, view = TensorRef.examine(tensor, name)
    if view is None:
        raise rejection("a call of torch.nn.functional", reasons)
    return Layout.of(ElementKind.of(dtype), view.shape, row_major(view.shape), view.device)
