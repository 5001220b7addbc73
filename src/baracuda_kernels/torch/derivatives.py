"""Derivatives of gradients, and tangents in forward mode: by the rules of `core.derivatives`, with operators and PyTorch's own functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from baracuda_kernels.core import derivatives
from baracuda_kernels.core.errors import Unsupported
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.reason import Reason, ReasonCode

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["has_tangent", "in_forward_mode", "of_gradient"]


class TorchFunctions:
    """What rules are written with: our functions by name, and what arrays of every framework are put together with."""

    zeros_like, ones_like = staticmethod(torch.zeros_like), staticmethod(torch.ones_like)
    cat, stack = staticmethod(torch.cat), staticmethod(torch.stack)
    expand = staticmethod(torch.broadcast_to)

    def __call__(self, name: str) -> Callable[..., Any]:
        from baracuda_kernels.torch.operators import entry

        return entry(name)

    @staticmethod
    def describe(function: Function, given: Mapping[str, Any]) -> Any:
        from baracuda_kernels.torch.operators import operator

        of = operator(function.name)
        return of.describe({name: given[name] for name in of.schema.arguments})

    @staticmethod
    def constant(x: torch.Tensor) -> torch.Tensor:
        """The same numbers, through which nothing is differentiated."""
        return x.detach()

    @staticmethod
    def summed(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
        """Summed to a shape that broadcasts to that of x."""
        return x.sum_to_size(tuple(shape))

    @staticmethod
    def added(parts: Sequence[torch.Tensor]) -> torch.Tensor:
        return functools.reduce(torch.add, parts)

    @staticmethod
    def permuted(x: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
        return x.permute(tuple(order))

    @staticmethod
    def taken(x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
        """The elements at these places along an axis."""
        return x.gather(axis, indices)

    @staticmethod
    def given(x: torch.Tensor, indices: torch.Tensor, axis: int) -> torch.Tensor:
        """Zeros to which elements are added at these places along an axis."""
        return torch.zeros_like(x).scatter_add(axis, indices, x)

    @staticmethod
    def arange(count: int, like: torch.Tensor) -> torch.Tensor:
        return torch.arange(count, device=like.device)


FUNCTIONS = TorchFunctions()


def has_tangent(arguments: Sequence[Any]) -> bool:
    return any(_tangent(each) is not None for each in arguments)


def _tangent(value: Any) -> torch.Tensor | None:
    return forward_ad.unpack_dual(value).tangent if isinstance(value, torch.Tensor) else None


def _primal(value: Any) -> Any:
    return forward_ad.unpack_dual(value).primal if isinstance(value, torch.Tensor) else value


def in_forward_mode(operator: Operator) -> dict[str, Any]:
    """What an autograd function has besides its gradient where arguments have tangents."""
    base = operator.recorder

    def forward(ctx: Any, below: Any, *arguments: Any) -> Any:
        outcome = base.forward(ctx, below, *arguments)
        ctx.call = arguments, outcome if type(outcome) is tuple else (outcome,)
        return outcome

    def jvp(ctx: Any, *_: Any) -> Any:
        arguments, results = ctx.call
        del ctx.call
        found: dict[str, Any] = {}
        if any(each.is_floating_point() or each.is_complex() for each in results):
            of = _of_function if operator.function.gradient is not None else _of_gradient
            with forward_ad._set_fwd_grad_enabled(True):  # which PyTorch has switched off, but functorch may have levels below
                found = of(operator, dict(zip(operator.schema.arguments, arguments, strict=True)), results)
        tangents = tuple(map(found.get, operator.schema.outputs))
        return tangents if len(tangents) > 1 else tangents[0]

    return {"forward": forward, "jvp": jvp}


def _of_function(operator: Operator, values: dict[str, Any], results: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The tangents of results by a rule."""
    gradient, rule = operator.function.backward(), derivatives.tangent(operator.function)
    if gradient is None or rule is None:
        raise _refusal(operator, "its result", "a tangent of it", "derivatives in reverse mode")
    tangents = {name: _tangent(value) for name, value in values.items()}
    for name, tangent in tangents.items():
        if tangent is not None and name not in gradient.results.values():
            raise _refusal(operator, name, "a tangent of it", "none, as there is no gradient of it")
    given = {name: _primal(value) for name, value in values.items()} | dict(zip(operator.schema.outputs, results, strict=True))
    found = rule(FUNCTIONS, **given, **{f"t_{name}": tangents[name] for name in gradient.results.values()})
    return dict(zip(dict.fromkeys(gradient.upstream.values()), found if isinstance(found, tuple) else (found,), strict=True))


def _of_gradient(operator: Operator, values: dict[str, Any], results: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The tangents of results by those of a composition."""
    rule = derivatives.composition(operator.function)
    if rule is None:
        raise _refusal(operator, "its result", "a tangent of it", "derivatives in reverse mode")
    found = rule(FUNCTIONS, **values)
    again = dict(zip(operator.schema.outputs, found if isinstance(found, tuple) else (found,), strict=True))
    tangents = {name: _tangent(each) for name, each in again.items() if each is not None}
    return {name: torch.zeros_like(again[name]) if tangent is None else tangent for name, tangent in tangents.items()}


def of_gradient(operator: Operator) -> dict[str, Any]:
    """The methods of an autograd function that records a gradient, or what has none."""
    schema = operator.schema
    inputs = len(schema.inputs)
    rule = derivatives.composition(operator.function)

    def forward(ctx: Any, below: Any, *arguments: Any) -> Any:
        ctx.save_for_backward(*arguments[:inputs])
        ctx.options = arguments[inputs:]
        ctx.set_materialize_grads(False)
        outcome = below(*arguments)
        if schema.conditional:
            values = dict(zip(schema.arguments, arguments, strict=True))
            both = zip(schema.outputs, outcome, strict=True)
            ctx.mark_non_differentiable(*(result for name, result in both if not schema.is_there(name, values)))
        return outcome

    def backward(ctx: Any, *upstream: Any) -> Any:
        if rule is None:
            raise _refusal(operator, "its result", "a derivative of it", "first derivatives")
        recording = torch.is_grad_enabled()
        given = dict(zip(schema.arguments, (*ctx.saved_tensors, *ctx.options), strict=True))
        places = [place for place, name in enumerate(schema.inputs) if ctx.needs_input_grad[1 + place]]
        chosen = [name for name, d in zip(schema.outputs, upstream, strict=True) if d is not None]
        slopes: list[Any] = [None] * (1 + len(schema.arguments))
        if not chosen:
            return tuple(slopes)

        def results(*differentiated: torch.Tensor) -> tuple[torch.Tensor, ...]:
            names = map(schema.inputs.__getitem__, places)
            found = rule(FUNCTIONS, **(given | dict(zip(names, differentiated, strict=True))))
            again = dict(zip(schema.outputs, found if isinstance(found, tuple) else (found,), strict=True))
            return tuple(map(again.__getitem__, chosen))

        # A level of its own, as there may be others already: under `vmap` gradients come in batches.
        with torch.enable_grad():
            pull = torch.func.vjp(results, *(given[schema.inputs[place]] for place in places))[1]
        with torch.set_grad_enabled(recording):
            pulled = pull(tuple(d for d in upstream if d is not None))
        for place, slope in zip(places, pulled, strict=True):
            slopes[1 + place] = slope
        return tuple(slopes)

    return {"forward": forward, "backward": backward}


def _refusal(operator: Operator, name: str, got: str, wanted: str) -> Unsupported:
    return Unsupported(operator.name, [Reason(ReasonCode.NEEDS_GRADIENT, name, got, wanted)])
