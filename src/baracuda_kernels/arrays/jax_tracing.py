"""Functions inside jax.jit, jax.grad and jax.vmap: a callback to the CPU, with the gradient that the function declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy
from jax.custom_derivatives import SymbolicZero

from baracuda_kernels.arrays import numpy_arrays
from baracuda_kernels.arrays.jax_arrays import FRAMEWORK
from baracuda_kernels.arrays.numpy_arrays import dtype_of
from baracuda_kernels.core.arrays import see
from baracuda_kernels.core.call import Call, planned
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.function import Function, Gradient
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View

_CPU = Device.cpu()


def trace(function: Function, arrays: Mapping[str, Any], options: Mapping[str, Any], out: Any, preference: Any, stream: Any) -> Any:
    """Traces a call. Errors in it are raised now, not when it runs."""
    _refuse_what_cannot_be_traced(function, out, stream)
    results = _recorded(function, tuple(arrays), tuple(options.items()), preference)(*arrays.values())
    return results[0] if len(results) == 1 else results


def _refuse_what_cannot_be_traced(function: Function, out: Any, stream: Any) -> None:
    reasons = []
    if out is not None:
        reasons.append(Reason(ReasonCode.READ_ONLY, "out", "an array", "None: JAX's arrays are not written to"))
    if stream is not None:
        reasons.append(Reason(ReasonCode.WRONG_TYPE, "stream", repr(stream), "None: JAX decides when a traced call runs"))
    chosen = getattr(jax.config, "jax_default_device", None)
    platform = jax.default_backend() if chosen is None else getattr(chosen, "platform", chosen)
    if platform != "cpu":
        wanted = 'a CPU: with jax.default_device(jax.devices("cpu")[0]), or outside of jit'
        reasons.append(Reason(ReasonCode.OTHER_DEVICE, "JAX", platform, wanted))
    if reasons:
        raise rejection(function.name, reasons)


@remembered(1024)
def _recorded(function: Function, names: tuple[str, ...], options: tuple[tuple[str, Any], ...], preference: Any) -> Any:
    """A function of the arrays of these names that returns the tuple of results; differentiable if the function is."""
    chosen = dict(options)

    def record(*arrays: Any) -> tuple[Any, ...]:
        return _callback(function, dict(zip(names, arrays, strict=True)), chosen, preference)

    gradient = function.backward()
    if gradient is None:
        return record
    returned, saving = function.returned(chosen), gradient.saving(chosen)

    def forward(*primals: Any) -> tuple[Any, Any]:
        given = dict(zip(names, primals, strict=True))
        _refuse_without_gradient(function, gradient, [name for name, primal in given.items() if primal.perturbed])
        arrays = {name: primal.value for name, primal in given.items()}
        outputs = dict(zip(function.returned(saving), _callback(function, arrays, saving, preference), strict=True))
        # The shapes and elements of the inputs, as arrays without numbers, since nothing else can be kept.
        forms = {name: jax.numpy.zeros((0, *array.shape), array.dtype) for name, array in arrays.items()}
        kept = {name: arrays.get(name) for name in gradient.saved_inputs} | {name: outputs[name] for name in gradient.saved_outputs}
        return tuple(outputs[name] for name in returned), (kept, forms)

    def backward(saved: tuple[dict[str, Any], dict[str, Any]], upstream: tuple[Any, ...]) -> tuple[Any, ...]:
        kept, forms = saved
        by_output = dict(zip(returned, upstream, strict=True))
        read = gradient.upstream.values()
        _refuse_without_gradient(
            function,
            gradient,
            [name for name, each in by_output.items() if name not in read and not isinstance(each, SymbolicZero)],
        )
        operands = kept | {name: _filled(by_output.get(output)) for name, output in gradient.upstream.items()}
        given = {name: operand for name, operand in operands.items() if operand is not None}
        back = gradient.function
        options = {name: chosen[name] for name in gradient.options} | {
            option: forms[name].dtype for option, name in gradient.elements.items()
        }
        results = _callback(back, given, back.defaults(options), preference)
        by_result = dict(zip(back.outputs, results, strict=True))
        by_input = {name: _conjugate(_summed(by_result[result], forms.get(name))) for result, name in gradient.results.items()}
        return tuple(by_input.get(name) for name in names)

    differentiable = jax.custom_vjp(record)
    differentiable.defvjp(forward, backward, symbolic_zeros=True)
    return differentiable


def _summed(gradient: Any, of: Any) -> Any:
    """The gradient of an input that was broadcast: summed over the broadcast axes."""
    if of is None or gradient.shape == of.shape[1:]:
        return gradient
    shape = of.shape[1:]
    missing = gradient.ndim - len(shape)
    shared = [axis for axis, extent in enumerate(shape, start=missing) if extent != gradient.shape[axis]]
    return gradient.sum((*range(missing), *shared)).reshape(shape)


def _conjugate(gradient: Any) -> Any:
    """What JAX hands down for complex numbers is the conjugate of what PyTorch does, and of what backwards take and give."""
    return None if gradient is None else gradient.conj()


def _filled(gradient: Any) -> Any:
    if isinstance(gradient, SymbolicZero):
        return jax.numpy.zeros(gradient.shape, gradient.dtype)
    return _conjugate(gradient)


def _refuse_without_gradient(function: Function, gradient: Gradient, names: Sequence[str]) -> None:
    reasons = [
        Reason(ReasonCode.NEEDS_GRADIENT, name, "a call that is differentiated", f"jax.lax.stop_gradient({name})")
        for name in names
        if name not in gradient.results.values()
    ]
    if reasons:
        raise rejection(function.name, reasons)


def _callback(function: Function, arrays: Mapping[str, Any], options: Mapping[str, Any], preference: Any) -> tuple[Any, ...]:
    """The results in order, None for those that this problem does not have."""
    layouts = {  # as the callback will get them
        name: Layout.of(ElementKind.of(array.dtype), array.shape, row_major(array.shape), _CPU) for name, array in arrays.items()
    }
    views = {name: View(function.name, name, layout, FRAMEWORK) for name, layout in layouts.items()}
    descriptor = function.describe(**{name: views.get(name) for name in function.inputs}, **options)
    plan = planned(function.plan, descriptor.for_any_numbers(), _CPU, preference)
    function.check_inputs(descriptor, layouts, _CPU)
    there = function.results(descriptor, options)
    made = {name: function.outputs[name].contiguous_layout(descriptor, _CPU) for name in there}
    shapes = {name: jax.ShapeDtypeStruct(layout.shape, dtype_of(layout.element)) for name, layout in made.items()}
    returned = function.returned(options)
    numbers = {function.names.get(name, name): number for name, number in descriptor.launch_numbers.items()}
    call = Call(function, numpy_arrays.FRAMEWORK, plan, function.broadcast(descriptor, layouts), returned, tuple(arrays), numbers)

    def on_the_host(*values: Any) -> tuple[Any, ...]:
        sources = [numpy.require(value, requirements=["C", "A"]) for value in values]
        result = call.run(sources, [see(source)[0] for source in sources], None, None)
        return result if isinstance(result, tuple) else (result,)

    results: tuple[Any, ...] = jax.pure_callback(
        on_the_host, tuple(map(shapes.get, returned)), *arrays.values(), vmap_method="sequential"
    )
    return results
