"""Functions: an op as one call on arrays of any framework, declared by how its descriptor follows from them.

@function(SoftmaxPlan, gradient="softmax_backward")
def softmax(x: View, axis: int = -1) -> SoftmaxDescriptor:
    '''Softmax along one axis.'''
    return SoftmaxDescriptor(SoftmaxKind.SOFTMAX, x.shape, x.axis(axis), x.element)

The signature is the public one. Parameters named like an operand that the plan reads are arrays, all others options. An option
`return_rms` decides whether the output `rms` is among the results; other outputs always are. `names` are those that a function has
for operands of its plan, where they are not the plan's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.calls import Calls
from baracuda_kernels.core.described import RETURN, Option
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.plan import Plan

__all__ = ["Function", "Gradient", "Option", "function"]


@dataclass(frozen=True)
class Gradient:
    """The inputs and results of a function's backward, derived from the names of its operands."""

    function: Function  # the backward
    saved_inputs: tuple[str, ...]  # its inputs that are the forward's
    saved_outputs: tuple[str, ...]  # its inputs that are outputs of the forward
    upstream: Mapping[str, str]  # its other inputs, each with the output of the forward it is the gradient of
    results: Mapping[str, str]  # its outputs, each with the input of the forward it is the gradient of
    options: tuple[str, ...]  # of the forward that it takes too
    elements: Mapping[str, str]  # its options `x_element`, each with the input of the forward that has this element

    def saving(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The forward's options, so that everything the backward reads is among the results."""
        flags = [f"{RETURN}{name}" for name in self.saved_outputs]
        return {name: True if name in flags else value for name, value in options.items()}


class Function(Calls):
    """One op on arrays of NumPy, PyTorch, JAX or CuPy: allocates the results, finds the plan, which it caches, and runs it."""

    def __init__(
        self,
        describe: Callable[..., Descriptor],
        plan: type[Plan[Any, Any]],
        gradient: str | None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(describe, plan, names)
        self.gradient = gradient
        registry.register_function(self)

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
        elements = {f"{name}_element": name for name in self.inputs if f"{name}_element" in back.options}
        return Gradient(back, tuple(saved_inputs), tuple(saved_outputs), upstream, results, options, elements)


def _whose_gradient(name: str, candidates: Mapping[str, Operand], function: str) -> str:
    for candidate in candidates:
        if name in (f"d{candidate}", f"d_{candidate}"):
            return candidate
    raise TypeError(f"{function}: {name} is no gradient of {' or '.join(candidates)}")


def function(
    plan: type[Plan[Any, Any]], gradient: str | None = None, names: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Descriptor]], Function]:
    """Declares a function by its description. `gradient` is the name of the function that computes its gradient, `names` are the
    function's own for operands, each with the plan's."""
    return lambda describe: Function(describe, plan, gradient, names)
