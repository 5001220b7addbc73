"""Gradients: what is kept for the backward, and how the backward is called. All of it follows from the operands' names."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

import torch
from torch import _C
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from baracuda_kernels.arrays.torch_arrays import in_forward_mode
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.function import Gradient
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.torch import derivatives

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["kernel", "recorder", "recorder_of_tangents"]

_DEVICES = (_C.DispatchKey.CPU, _C.DispatchKey.CUDA)


def kernel(operator: Operator, keyset: Any, *arguments: Any) -> Any:
    """What the operator does above the devices: records, where a gradient is wanted."""
    rest = keyset & _C._after_autograd_keyset
    recording, forward_mode = torch.is_grad_enabled(), _C._is_fwd_grad_enabled()

    def redispatch(*arguments: Any) -> Any:
        # An autograd function switches recording off, but functorch may have levels below this one, which record for themselves.
        with _C._AutoDispatchBelowAutograd(), torch.set_grad_enabled(recording), forward_ad._set_fwd_grad_enabled(forward_mode):
            return operator.overload.redispatch(rest, *arguments)

    # Where only the device is left, its kernel need not be looked for.
    below = operator.kernel if rest.highestPriorityTypeId() in _DEVICES else redispatch
    is_transformed = _C._are_functorch_transforms_active()
    if in_forward_mode() and derivatives.has_tangent(arguments):
        record = operator.recorder_of_tangents
    elif recording and _C._any_requires_grad(*arguments):
        record = operator.recorder_of_transforms if is_transformed else operator.recorder
    else:
        return below(*arguments)
    if not is_transformed:
        return record.apply(below, *arguments)
    with enable_single_level_autograd_function():  # functorch itself has come down to this level
        return record.apply(below, *arguments)


def recorder(operator: Operator, for_transforms: bool = False) -> Any:
    """The autograd function of an operator. It is applied to what computes the results, and to the operator's arguments."""
    gradient = operator.function.backward()
    methods = derivatives.of_gradient(operator) if gradient is None else _first_derivative(operator, gradient, for_transforms)
    # The public base class has a way of its own through functorch; operators are past that when they record.
    return _made(operator, torch.autograd.function._SingleLevelFunction, methods)


def recorder_of_tangents(operator: Operator) -> Any:
    """The same for arguments that have tangents."""
    return _made(operator, operator.recorder_of_transforms, derivatives.in_forward_mode(operator))


def _made(operator: Operator, base: Any, methods: dict[str, Any]) -> Any:
    return type(operator.name, (base,), {name: staticmethod(method) for name, method in methods.items()})


def _first_derivative(operator: Operator, gradient: Gradient, for_transforms: bool) -> dict[str, Any]:
    from baracuda_kernels.torch import operators

    schema, name = operator.schema, gradient.function.name
    # What a transform has wrapped and is kept may be met again when the transform is over: PyTorch's dispatcher unwraps it.
    call_backward = operators.operator(name).called if for_transforms else operators.entry(name)
    argument = {name: place for place, name in enumerate(schema.arguments)}
    output = {name: place for place, name in enumerate(schema.outputs)}
    # What is kept is picked from the arguments with the results behind them.
    kept = [argument[name] for name in gradient.saved_inputs]
    kept += [len(argument) + output[name] for name in gradient.saved_outputs]
    saved = gradient.saved_inputs + gradient.saved_outputs
    options = [argument[name] for name in gradient.options]
    elements = [argument[name] for name in gradient.elements.values()]
    taken = (*gradient.options, *gradient.elements)
    upstream_of = {name: (output[of], gradient.function.optional(name)) for name, of in gradient.upstream.items()}
    constant = tuple(argument[name] for name in schema.inputs if name not in gradient.results.values())
    result_for = {of: place for place, of in enumerate(gradient.results.values())}
    without_gradient = {place for name, place in output.items() if name not in gradient.upstream.values()}
    wanted = tuple(result_for.get(name, -1) for name in schema.arguments)  # behind the results stands None
    broadcast = any(operand.broadcasts for operand in operator.function.inputs.values())
    differentiated = [argument[name] for name in result_for]

    def forward(ctx: Any, below: Any, *arguments: Any) -> Any:
        for place in constant:
            _refuse_gradient(operator, place, arguments[place])
        outcome = below(*arguments)
        results = outcome if type(outcome) is tuple else (outcome,)
        everything = arguments + results
        ctx.save_for_backward(*map(everything.__getitem__, kept))
        ctx.options = [*map(arguments.__getitem__, options)]
        for place in elements:
            ctx.options.append(arguments[place].dtype)
        if broadcast:
            ctx.shapes = [None if arguments[place] is None else arguments[place].shape for place in differentiated]
        if len(results) > 1:
            tell_apart(ctx, results, arguments)
        return outcome

    def tell_apart(ctx: Any, results: tuple[Any, ...], arguments: tuple[Any, ...]) -> None:
        places = without_gradient
        if schema.conditional:
            values = dict(zip(schema.arguments, arguments, strict=True))
            places = {*places, *(place for name, place in output.items() if not schema.is_there(name, values))}
        ctx.mark_non_differentiable(*map(results.__getitem__, places))
        ctx.set_materialize_grads(False)
        if len(gradient.upstream) > 1:
            ctx.forms = [(result.shape, result.dtype, result.device) for result in results]

    def backward(ctx: Any, *upstream: Any) -> Any:
        if {*map(type, upstream)} == {NoneType}:
            return (None, *[None] * len(wanted))
        values = dict(zip(saved, ctx.saved_tensors, strict=True))
        for name, (place, optional) in upstream_of.items():
            given = upstream[place]
            if given is None and not optional:
                shape, dtype, device = ctx.forms[place]
                given = torch.zeros(shape, dtype=dtype, device=device)
            values[name] = given
        outcome = call_backward(**values, **dict(zip(taken, ctx.options, strict=True)))
        results = outcome if type(outcome) is tuple else (outcome,)
        if broadcast:
            results = tuple(map(_summed, results, ctx.shapes))
        return (None, *map((*results, None).__getitem__, wanted))

    return {"forward": forward, "backward": backward}


def _summed(gradient: Any, shape: Any) -> Any:
    """The gradient of an input that was broadcast: summed over the broadcast axes."""
    return gradient if shape is None or gradient.shape == shape else gradient.sum_to_size(shape)


def _refuse_gradient(operator: Operator, place: int, value: Any) -> None:
    if value is not None and value.requires_grad:
        reason = Reason(ReasonCode.NEEDS_GRADIENT, operator.schema.arguments[place], "requires_grad=True", "a detached tensor")
        raise rejection(operator.name, [reason])
