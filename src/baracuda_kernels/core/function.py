"""Functions: an op as one call on arrays of any framework, declared by how its descriptor follows from them.

@function(SoftmaxPlan, gradient="softmax_backward")
def softmax(x: View, axis: int = -1) -> SoftmaxDescriptor:
    '''Softmax along one axis.'''
    return SoftmaxDescriptor(SoftmaxKind.SOFTMAX, x.shape, x.axis(axis), x.element)

The signature is the public one. Parameters named like an operand that the plan reads are arrays, all others options. An option
`return_rms` decides whether the output `rms` is among the results; other outputs always are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core import call, registry
from baracuda_kernels.core.args import Access, Operand
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.plan import Plan

__all__ = ["Function", "Gradient", "Option", "function"]

_RETURN = "return_"


@dataclass(frozen=True)
class Option:
    """A parameter that is no array."""

    name: str
    type: Any  # its annotation
    default: Any  # inspect.Parameter.empty where there is none


@dataclass(frozen=True)
class Gradient:
    """How a function's backward is fed and what it gives, as the names of its operands say."""

    function: Function  # the backward
    saved_inputs: tuple[str, ...]  # its inputs that are the forward's
    saved_outputs: tuple[str, ...]  # its inputs that are outputs of the forward
    upstream: Mapping[str, str]  # its other inputs, each with the output of the forward it is the gradient of
    results: Mapping[str, str]  # its outputs, each with the input of the forward it is the gradient of
    options: tuple[str, ...]  # of the forward that it takes too

    def saving(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The forward's options with all that the backward reads among the results."""
        flags = [f"{_RETURN}{name}" for name in self.saved_outputs]
        return {name: True if name in flags else value for name, value in options.items()}


class Function:
    """One op on arrays of NumPy, PyTorch, JAX or CuPy: makes the results, finds the plan or the one it had before, runs it."""

    def __init__(self, describe: Callable[..., Descriptor], plan: type[Plan[Any, Any]], gradient: str | None) -> None:
        self.describe, self.plan, self.gradient = describe, plan, gradient
        self.name = self.__name__ = self.__qualname__ = describe.__name__
        self.__doc__, self.__module__ = describe.__doc__, describe.__module__
        declared = inspect.signature(describe, eval_str=True)
        reads = {operand.name: operand for operand in plan.args_type.OPERANDS if not operand.writes}
        taken = [parameter for parameter in declared.parameters.values() if parameter.name in reads]
        others = [parameter for parameter in declared.parameters.values() if parameter.name not in reads]
        self.inputs: dict[str, Operand] = {parameter.name: reads[parameter.name] for parameter in taken}
        self.options = {each.name: Option(each.name, each.annotation, each.default) for each in others}
        missing = [name for name in reads if name not in self.inputs]
        if missing:
            raise TypeError(f"{self.name}: {plan.__name__} also reads {', '.join(missing)}")
        self.outputs: dict[str, Operand] = {
            operand.name: operand for operand in plan.args_type.OPERANDS if operand.access is Access.WRITE
        }
        self.declared = declared
        self.__signature__ = call.public_signature(declared, self.inputs)
        self._calls = call.Calls(self)
        registry.register_function(self)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._calls.answer(call.GUARDED, given, named)

    def compute(self, *given: Any, **named: Any) -> Any:
        """The same call for whoever takes care of gradients: tensors that require them are taken as they are."""
        return self._calls.answer(call.PLAIN, given, named)

    def optional(self, name: str) -> bool:
        """Whether that input may be None."""
        return self.inputs[name].present_rule is not True

    def returned(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The outputs that make up the result, in order. One that this problem does not have is None there."""
        return tuple(name for name in self.outputs if options.get(f"{_RETURN}{name}", True))

    def results(self, descriptor: Descriptor, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the returned outputs that this problem has."""
        return tuple(name for name in self.returned(options) if self.outputs[name].is_given(descriptor, True))

    def defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options: those given, and the default values of the others."""
        return {name: options.get(name, option.default) for name, option in self.options.items()}

    def backward(self) -> Gradient | None:
        """The gradient, found by names: `y` and `x` are what the forward has under these names, `dy` and `d_y` the gradient of y."""
        if self.gradient is None:
            return None
        back = registry.function(self.gradient)
        upstream, saved_inputs, saved_outputs = {}, [], []
        for name in back.inputs:
            if name in self.inputs:
                saved_inputs.append(name)
            elif name in self.outputs:
                saved_outputs.append(name)
            else:
                upstream[name] = _whose_gradient(name, self.outputs, back.name)
        results = {name: _whose_gradient(name, self.inputs, back.name) for name in back.outputs}
        options = tuple(name for name in back.options if name in self.options)
        return Gradient(back, tuple(saved_inputs), tuple(saved_outputs), upstream, results, options)

    def __repr__(self) -> str:
        return f"<function {self.name}{self.__signature__}>"


def _whose_gradient(name: str, candidates: Mapping[str, Operand], function: str) -> str:
    for candidate in candidates:
        if name in (f"d{candidate}", f"d_{candidate}"):
            return candidate
    raise TypeError(f"{function}: {name} is no gradient of {' or '.join(candidates)}")


def function(plan: type[Plan[Any, Any]], gradient: str | None = None) -> Callable[[Callable[..., Descriptor]], Function]:
    """Declares a function by its description. `gradient` is the name of the function that computes its gradient."""
    return lambda describe: Function(describe, plan, gradient)
