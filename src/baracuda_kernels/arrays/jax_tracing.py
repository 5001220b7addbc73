"""Functions inside jax.jit, jax.grad and jax.vmap: a callback to the CPU, with the gradient that the function declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy
from jax.custom_derivatives import SymbolicZero

from baracuda_kernels.arrays.jax_linear import CPU, FUNCTIONS, layouts_of, linear
from baracuda_kernels.arrays.numpy_arrays import dtype_of
from baracuda_kernels.core import derivatives
from baracuda_kernels.core.call import planned
from baracuda_kernels.core.errors import Unsupported, rejection
from baracuda_kernels.core.function import Function, Gradient
from baracuda_kernels.core.identity import remembered
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.view import View


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
def _recorded(
    function: Function, names: tuple[str, ...], options: tuple[tuple[str, Any], ...], preference: Any, for_backward: bool = False
) -> Any:
    """A function of the arrays of these names that returns the tuple of results; differentiable if the function is. Where a backward alone
    reads what has no gradient, nothing is asked of that."""
    chosen = dict(options)

    def record(*arrays: Any) -> tuple[Any, ...]:
        return _callback(function, dict(zip(names, arrays, strict=True)), chosen, preference)

    differentiable = jax.custom_jvp(record)
    gradient = function.backward()
    if gradient is None:
        rule = _rule_of_gradient(function, differentiable, names, chosen)
    else:
        rule = _rule_of_function(function, gradient, names, chosen, preference, for_backward)
    differentiable.defjvp(rule, symbolic_zeros=True)
    return differentiable


def _rule_of_function(
    function: Function, gradient: Gradient, names: tuple[str, ...], chosen: Mapping[str, Any], preference: Any, for_backward: bool
) -> Any:
    """The tangents of results are a linear function, whose transpose is the backward."""
    returned, saving, along = function.returned(chosen), gradient.saving(chosen), derivatives.tangent(function)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        arrays = dict(zip(names, primals, strict=True))
        moved = [name for name, each in zip(names, tangents, strict=True) if not isinstance(each, SymbolicZero)]
        _refuse_without_gradient(function, gradient, moved)
        results = _recorded(function, names, tuple(saving.items()), preference, True)(*primals)
        outputs = dict(zip(function.returned(saving), results, strict=True))
        told = [name for name in returned if outputs[name] is not None and _is_float(outputs[name])]
        told = [name for name in told if not for_backward or name in gradient.upstream.values()]
        kept = arrays | {name: each for name, each in outputs.items() if each is not None}

        def forward(fixed: Sequence[Any], some: Sequence[Any]) -> list[Any]:
            _refuse_tangents(function, along, [name for name in told if name not in gradient.upstream.values()])
            assert along is not None
            given = dict.fromkeys((*function.inputs, *outputs)) | dict(chosen) | dict(zip(kept, fixed, strict=True))
            given |= dict.fromkeys(f"t_{name}" for name in gradient.results.values())
            found = along(FUNCTIONS, **given | {f"t_{name}": each for name, each in zip(moved, some, strict=True)})
            of = dict.fromkeys(gradient.upstream.values())
            by_output = dict(zip(of, found if isinstance(found, tuple) else (found,), strict=True))
            return [by_output[name] for name in told]

        def backward(fixed: Sequence[Any], upstream: Sequence[Any]) -> list[Any]:
            by_output = dict(zip(told, upstream, strict=True))
            read = gradient.upstream.values()
            heard = [name for name, each in by_output.items() if name not in read and each is not None]
            _refuse_without_gradient(function, gradient, heard)
            given = dict(zip(kept, fixed, strict=True))
            operands = {name: given.get(name) for name in (*gradient.saved_inputs, *gradient.saved_outputs)}
            for name, output in gradient.upstream.items():
                if by_output.get(output) is not None:
                    operands[name] = by_output[output].conj()  # of what JAX hands down, backwards take and give the conjugate
                elif output in given and not gradient.function.optional(name):
                    operands[name] = jax.numpy.zeros_like(given[output])
            back = gradient.function
            options = {name: chosen[name] for name in gradient.options}
            options |= {option: given[name].dtype for option, name in gradient.elements.items()}
            there = tuple(name for name, operand in operands.items() if operand is not None)
            results = _recorded(back, there, tuple(back.defaults(options).items()), preference)(*map(operands.get, there))
            by_result = dict(zip(back.outputs, results, strict=True))
            by_input = {name: by_result[result] for result, name in gradient.results.items()}
            return [FUNCTIONS.summed(by_input[name], given[name].shape).conj() for name in moved]

        some = [each for each in tangents if not isinstance(each, SymbolicZero)]
        found = dict(zip(told, linear(forward, backward, [*kept.values()], some, [*map(outputs.get, told)]), strict=True))
        of_returned = {name: outputs[name] for name in returned}
        return tuple(of_returned.values()), tuple(found.get(name, _still(each)) for name, each in of_returned.items())

    return rule


def _rule_of_gradient(function: Function, itself: Any, names: tuple[str, ...], chosen: Mapping[str, Any]) -> Any:
    """The tangents of results are those of the same results by functions that are differentiable; whole numbers have none."""
    again = derivatives.composition(function)

    def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        results = itself(*primals)
        if not any(each is not None and _is_float(each) for each in results):
            return results, tuple(map(_still, results))
        _refuse_tangents(function, again, ())
        assert again is not None
        given = dict.fromkeys(function.inputs) | dict(chosen) | dict(zip(names, primals, strict=True))
        moved = {name: each for name, each in zip(names, tangents, strict=True) if not isinstance(each, SymbolicZero)}

        def compose(some: dict[str, Any]) -> dict[str, Any]:
            found = again(FUNCTIONS, **given | some)
            by_output = dict(zip(function.outputs, found if isinstance(found, tuple) else (found,), strict=True))
            both = zip(function.returned(chosen), results, strict=True)
            return {name: by_output[name] for name, each in both if each is not None}

        _, found = jax.jvp(compose, ({name: given[name] for name in moved},), (moved,))
        return results, tuple(map(found.get, function.returned(chosen)))

    return rule


def _is_float(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _still(array: Any) -> Any:
    """The tangent of what does not change; JAX has an element of its own for those of whole numbers."""
    if array is None:
        return None
    return jax.numpy.zeros_like(array) if _is_float(array) else numpy.zeros(array.shape, jax.dtypes.float0)


def _refuse_tangents(function: Function, rule: Any, outputs: Sequence[str]) -> None:
    if rule is None:
        wanted = "derivatives in reverse mode" if function.gradient is not None else "first derivatives"
        raise Unsupported(function.name, [Reason(ReasonCode.NEEDS_GRADIENT, "its result", "a derivative of it", wanted)])
    if outputs:
        reasons = [Reason(ReasonCode.NEEDS_GRADIENT, name, "a tangent of it", "a call that does not return it") for name in outputs]
        raise Unsupported(function.name, reasons)


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
    layouts = layouts_of(arrays)
    views = {name: View(function.name, name, layout) for name, layout in layouts.items()}
    descriptor = function.describe(**{name: views.get(name) for name in function.inputs}, **options)
    planned(function.plan, descriptor, CPU, preference)
    function.check_inputs(descriptor, layouts, CPU)
    there = function.results(descriptor, options)
    made = {name: function.outputs[name].contiguous_layout(descriptor, CPU) for name in there}
    shapes = {name: jax.ShapeDtypeStruct(layout.shape, dtype_of(layout.element)) for name, layout in made.items()}
    returned = function.returned(options)

    def on_the_host(*values: Any) -> tuple[Any, ...]:
        given = dict.fromkeys(function.inputs) | dict(zip(arrays, map(numpy.asarray, values), strict=True))
        result = function(**given, **options, preference=preference)
        return result if isinstance(result, tuple) else (result,)

    results: tuple[Any, ...] = jax.pure_callback(
        on_the_host, tuple(map(shapes.get, returned)), *arrays.values(), vmap_method="sequential"
    )
    return results
