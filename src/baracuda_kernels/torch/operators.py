"""Every function as an operator of the namespace `baracuda`, and the way a call takes to it.

When no tracer, mode, functorch transform, autocast or profiler is active, a call goes straight to the function, where the dispatcher would end
some microseconds later. When one is active, it sees the operator.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Collection, Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import _C
from torch.autograd import forward_ad

from baracuda_kernels.core import descriptor, registry
from baracuda_kernels.core.arrays import glance
from baracuda_kernels.core.bounded import Bounded
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import Error, Unsupported, rejection
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.preference import Determinism, PlanPreference
from baracuda_kernels.core.reason import ABOUT_LAYOUT, Reason, ReasonCode
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.core.view import View
from baracuda_kernels.formula.expression import Expr
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.torch import autocast, gradients
from baracuda_kernels.torch.schema import Schema

__all__ = ["DETERMINISTIC", "Operator", "entry", "is_plain", "operator", "watched"]

NAMESPACE = "baracuda"
DEVICES = ("CPU", "CUDA")
MOST_LAYOUTS = 1024  # that each operator remembers to copy
DETERMINISTIC = PlanPreference(determinism=Determinism.RUN_TO_RUN)
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)

_library = torch.library.Library(NAMESPACE, "DEF")
descriptor.SYMBOLS.add(torch.SymInt)


class Operator:
    """One function as an operator: everything that is registered for it, derived from its declaration."""

    def __init__(self, function: Function) -> None:
        self.function, self.name = function, function.name
        self.schema = Schema(function)
        self._refused = Bounded(MOST_LAYOUTS)  # layouts of inputs by name
        _library.define(self.schema.text(), tags=(torch.Tag.pt2_compliant_tag,))
        self.overload = getattr(getattr(torch.ops, NAMESPACE), self.name).default
        self.recorder = gradients.recorder(self)
        self.recorder_of_transforms = gradients.recorder(self, for_transforms=True)
        self.recorder_of_tangents = gradients.recorder_of_tangents(self)
        for device in DEVICES:
            _library.impl(self.name, self.kernel, device)
            _library.impl(self.name, functools.partial(autocast.kernel, self, device), f"Autocast{device}")
        _library.impl(self.name, functools.partial(gradients.kernel, self), "Autograd", with_keyset=True)
        torch.library.register_fake(f"{NAMESPACE}::{self.name}", self.fake, lib=_library)
        torch.library.register_vmap(f"{NAMESPACE}::{self.name}", functools.partial(autocast.mapped, self), lib=_library)

    def kernel(self, *arguments: Any) -> Any:
        """The operator's implementation for devices, called by the dispatcher."""
        if self.schema.has_lists:  # which cannot be looked up
            arguments = tuple(tuple(value) if type(value) is list else value for value in arguments)
        return self._everything(*arguments)

    def _everything(self, *arguments: Any) -> Any:
        """All outputs, also those that were not requested."""
        schema, leading = self.schema, self.schema.leading
        results = self.compute(*arguments[:leading], **dict(zip(schema.named, arguments[leading:], strict=True)), **schema.always)
        if not schema.conditional:
            return results
        values = dict(zip(schema.arguments, arguments, strict=True))
        made = dict(zip(self.function.returned(values), results if type(results) is tuple else (results,), strict=True))
        return tuple(_nothing_beside(values) if made.get(name) is None else made[name] for name in schema.outputs)

    def compute(self, *given: Any, **named: Any) -> Any:
        """The function itself, deterministic where PyTorch is told to be. Inputs whose layout the plan refuses are copied; PyTorch's
        operators take any."""
        if _C._get_deterministic_algorithms() and "preference" not in named:
            return self._deterministic(given, named)
        if self._refused.kept:  # what was refused once need not be tried again
            given, named = (), self._copied(given, named, ())
        try:
            return self.function.compute(*given, **named)
        except Error as refusal:
            refused = {reason.where for reason in refusal.reasons if reason.code in ABOUT_LAYOUT}.intersection(self.schema.inputs)
            if not refused:
                raise
        return self.function.compute(**self._copied(given, named, refused))

    def _deterministic(self, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            return self.compute(*given, **named, preference=DETERMINISTIC)
        except Unsupported as refusal:
            if not torch.is_deterministic_algorithms_warn_only_enabled():
                raise
            warnings.warn(str(refusal), stacklevel=5)
        return self.compute(*given, **named, preference=None)

    def _copied(self, given: tuple[Any, ...], named: dict[str, Any], refused: Collection[str]) -> dict[str, Any]:
        """The arguments by name, with a contiguous copy of each input that is refused, or was with the same layout before."""
        values = dict(zip(self.schema.positional, given, strict=False)) | named
        for name in self.schema.inputs:
            seen = glance(values.get(name))
            if seen is not None and (name in refused or self._refused.get((name, seen[1]))):
                self._refused.put((name, seen[1]), True)
                values[name] = values[name].clone(memory_format=torch.contiguous_format)
        return values

    def fake(self, *arguments: Any) -> Any:
        """The fake (meta) implementation: results of the declared shapes and dtypes, without values."""
        schema = self.schema
        values = dict(zip(schema.arguments, arguments, strict=True))
        problem = self.describe(values)
        like = next(value for value in arguments if isinstance(value, torch.Tensor))
        results = [
            like.new_empty(operand.shapes(problem)[0], dtype=DTYPES[operand.element(problem)])
            if schema.is_there(name, values)
            else _nothing_beside(values)
            for name, operand in self.function.outputs.items()
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def describe(self, values: dict[str, Any]) -> Any:
        """The descriptor of a call, from tensors or their layouts; only shapes and dtypes matter."""
        given: dict[str, Any] = dict(self.schema.always)
        for name, value in values.items():
            form: Any = self.form(name, value, tuple(value.shape)) if isinstance(value, torch.Tensor) else value
            given[name] = View(self.name, name, form) if name in self.schema.inputs and form is not None else form
        return self.function.describe(**given)

    def form(self, name: str, tensor: torch.Tensor, shape: Shape) -> SimpleNamespace:
        """What `describe` looks at, of a tensor of that shape with such elements."""
        try:
            return SimpleNamespace(shape=shape, element=ElementKind.of(tensor.dtype))
        except ValueError as unknown:
            raise rejection(self.name, [Reason(ReasonCode.NOT_AN_ARRAY, name, unknown, "an array of a known dtype")]) from None

    def dispatch(self, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call by way of PyTorch's dispatcher; in a formula that is fused, what it comes to."""
        values = self.schema.bind(given, named)
        for name in self.schema.inputs:
            if not isinstance(values[name], torch.Tensor) and not (values[name] is None and self.function.optional(name)):
                if any(isinstance(value, Expr) for value in values.values()):
                    return self.function(*given, **named)
                raise rejection(self.name, [Reason(ReasonCode.NOT_AN_ARRAY, name, type(values[name]).__name__, "a torch.Tensor")])
        if not [name for name in self.schema.inputs if isinstance(values[name], torch.Tensor)]:
            raise rejection(
                self.name, [Reason(ReasonCode.MISSING_OPERAND, self.schema.inputs[0], "numbers alone", "a torch.Tensor")]
            )
        return self.schema.returned(self.overload(*self.schema.plain(values)), values)

    def called(self, **named: Any) -> Any:
        """The same with arguments as they stand in a call."""
        return self.dispatch((), named)

    def record(self, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call when no tracer, mode or profiler is active, with its gradient recorded."""
        values = self.schema.bind(given, named)
        arguments = map(values.__getitem__, self.schema.arguments)
        return self.schema.returned(self.recorder.apply(self._everything, *arguments), values)


def _nothing_beside(values: dict[str, Any]) -> torch.Tensor:
    """An empty tensor, in place of an output that a problem does not have."""
    return next(value for value in values.values() if isinstance(value, torch.Tensor)).new_empty(0)


def _entry(of: Operator) -> Callable[..., Any]:
    """The public function of an operator."""
    known = of.schema.known
    spread = getattr(of.function, "spread", None)  # of functions that make other arguments of those given
    others = [entry(name) for name in getattr(of.function, "CALLS", ())]  # by which they do so

    def call(*given: Any, **named: Any) -> Any:
        if spread is not None:
            given, named = spread(given, named, *others)
        if torch.compiler.is_dynamo_compiling() or watched() or not known.issuperset(named):
            return of.dispatch(given, named)
        recorded = _is_recorded((*given, *named.values()) if named else given)
        if recorded is None:
            return of.dispatch(given, named)  # which says what is wrong, if anything is
        if recorded and torch.is_grad_enabled():
            return of.record(given, named)
        return of.compute(*given, **named)

    call.__name__ = call.__qualname__ = of.name
    # A code object of its own, since torch.compile counts by it what it has compiled.
    call.__code__ = call.__code__.replace(co_name=of.name, co_qualname=of.name)
    call.__doc__ = of.function.__doc__
    arrays = [
        each.replace(annotation=inspect.Parameter.empty) if each.name in of.function.inputs else each
        for each in of.function.public.parameters.values()
    ]
    call.__signature__ = inspect.Signature(arrays)  # type: ignore[attr-defined] # as inspect looks for it
    return call


def _is_recorded(values: Iterable[Any]) -> bool | None:
    """Whether a gradient may be taken of one of the tensors among these; None where there is none, or one that is not plain."""
    recorded = None
    for value in values:
        if isinstance(value, torch.Tensor):
            if type(value) not in _PLAIN_TYPES or value.is_meta or value.is_conj() or value.is_neg():
                return None
            recorded = recorded or value.requires_grad
    return recorded


def is_plain(value: Any) -> bool:
    """Whether it is a tensor as PyTorch itself makes them, with memory that holds the numbers it shows."""
    return _is_recorded((value,)) is not None


def watched() -> bool:
    """Whether a tracer, mode, functorch transform, autocast or the profiler is active, so that a call must go through the dispatcher."""
    return bool(
        _C._len_torch_dispatch_stack()
        or _C._len_torch_function_stack()
        or _C._is_any_autocast_enabled()
        or _C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or _C._is_tracing()
        or _C._autograd._profiler_enabled()
    )


def _made_once(make: Callable[[str], Any]) -> Callable[[str], Any]:
    """Like `functools.cache`, but threads that ask together for the first time get the same: PyTorch takes no name twice."""
    made: dict[str, Any] = {}

    def find(name: str) -> Any:
        if name not in made:
            with LOADING:
                if name not in made:
                    made[name] = make(name)
        return made[name]

    return find


@_made_once
def operator(name: str) -> Operator:
    """The operator of that name, registered when first asked for."""
    return Operator(registry.function(name))


@_made_once
def entry(name: str) -> Callable[..., Any]:
    """The public function of that name."""
    return _entry(operator(name))
