"""Linear functions of arrays inside JAX's transformations, each with its transpose; and what rules of derivatives are written with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from baracuda_kernels.core import registry
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.function import Function
from baracuda_kernels.core.layout import Layout, row_major
from baracuda_kernels.core.view import View

__all__ = ["FUNCTIONS", "layouts_of", "linear"]

CPU = Device.cpu()
Arrays = Sequence[Any]
Map = Callable[[Arrays, Arrays], Arrays]  # of what it is fixed by and what it is linear in


def linear(forward: Map, transpose: Map, fixed: Arrays, along: Arrays, results: Arrays) -> list[Any]:
    """`forward` of these arrays, of which it is linear in the latter; its results are like `results`. `transpose` takes a gradient, or None,
    for each of them."""
    forms = tuple(jax.core.ShapedArray(each.shape, each.dtype) for each in results)
    found: list[Any] = _linear.bind(*fixed, *along, forward=forward, transpose=transpose, fixed=len(fixed), forms=forms)
    return found


def _run(*arrays: Any, forward: Map, fixed: int, **_: Any) -> Arrays:
    return forward(arrays[:fixed], arrays[fixed:])


def _transposed(upstream: Arrays, *arrays: Any, forward: Map, transpose: Map, fixed: int, forms: Arrays) -> Arrays:
    """Gradients that are zero are left out."""
    there = [type(each) is not ad.Zero for each in upstream]

    def back(given: Arrays, some: Arrays) -> Arrays:
        rest = iter(some)
        return transpose(given, [next(rest) if is_there else None for is_there in there])

    def forth(given: Arrays, along: Arrays) -> Arrays:
        return [each for each, is_there in zip(forward(given, along), there, strict=True) if is_there]

    given = [jax.numpy.asarray(each) for each, is_there in zip(upstream, there, strict=True) if is_there]
    found = linear(back, forth, arrays[:fixed], given, [each.aval for each in arrays[fixed:]])
    return [None] * fixed + found


def _tangents(arrays: Arrays, tangents: Arrays, **how: Any) -> tuple[Arrays, Arrays]:
    """By those arrays that have one."""
    places = [place for place, each in enumerate(tangents) if type(each) is not ad.Zero]

    def of(*some: Any) -> list[Any]:
        every = list(arrays)
        for place, each in zip(places, some, strict=True):
            every[place] = each
        return list(_run(*every, **how))

    if min(places) >= how["fixed"]:
        whole = [
            each if type(each) is not ad.Zero else jax.numpy.zeros_like(array) for array, each in zip(arrays, tangents, strict=True)
        ]
        return _linear.bind(*arrays, **how), _linear.bind(*arrays[: how["fixed"]], *whole[how["fixed"] :], **how)
    found = jax.jvp(of, [arrays[place] for place in places], [tangents[place] for place in places])
    return _linear.bind(*arrays, **how), found[1]


def _in_batches(arrays: Arrays, axes: Arrays, forward: Map, transpose: Map, fixed: int, forms: Arrays) -> tuple[Arrays, Arrays]:
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)

    def batched(array: Any, axis: int | None) -> Any:
        return jax.numpy.broadcast_to(array, (size, *array.shape)) if axis is None else jax.numpy.moveaxis(array, axis, 0)

    def of_each(one: Map) -> Map:
        # `None` stands for a gradient that is zero, and is no array.
        return lambda given, along: jax.vmap(lambda *both: list(one(*both)))(list(given), list(along))

    whole = [*map(batched, arrays, axes)]
    results = [jax.core.ShapedArray((size, *form.shape), form.dtype) for form in forms]
    found = linear(of_each(forward), of_each(transpose), whole[:fixed], whole[fixed:], results)
    return found, [0] * len(found)


_linear = Primitive("baracuda_linear")
_linear.multiple_results = True
_linear.def_impl(_run)
_linear.def_abstract_eval(lambda *arrays, forms, **_: list(forms))
mlir.register_lowering(_linear, mlir.lower_fun(_run, multiple_results=True))
ad.primitive_transposes[_linear] = _transposed
ad.primitive_jvps[_linear] = _tangents
batching.primitive_batchers[_linear] = _in_batches


def layouts_of(arrays: Mapping[str, Any]) -> dict[str, Layout]:
    """As a callback gets them."""
    return {
        name: Layout.of(ElementKind.of(array.dtype), array.shape, row_major(array.shape), CPU) for name, array in arrays.items()
    }


class JaxFunctions:
    """What rules are written with: our functions by name, and what arrays of every framework are put together with."""

    zeros_like, ones_like = staticmethod(jax.numpy.zeros_like), staticmethod(jax.numpy.ones_like)
    expand = staticmethod(jax.numpy.broadcast_to)
    constant = staticmethod(jax.lax.stop_gradient)

    def __call__(self, name: str) -> Function:
        return registry.function(name)

    @staticmethod
    def describe(function: Function, given: Mapping[str, Any]) -> Any:
        layouts = layouts_of({name: given[name] for name in function.inputs if given[name] is not None})
        views = {name: View(function.name, name, layouts[name]) if name in layouts else None for name in function.inputs}
        return function.describe(**views, **{name: given[name] for name in function.options})

    @staticmethod
    def cat(arrays: Arrays, axis: int) -> Any:
        return jax.numpy.concatenate(arrays, axis)

    @staticmethod
    def stack(arrays: Arrays, axis: int = 0) -> Any:
        return jax.numpy.stack(arrays, axis)

    @staticmethod
    def added(parts: Arrays) -> Any:
        return functools.reduce(jax.numpy.add, parts)

    @staticmethod
    def summed(x: Any, shape: Sequence[int]) -> Any:
        """Summed to a shape that broadcasts to that of x."""
        missing = x.ndim - len(shape)
        shared = [axis for axis, extent in enumerate(shape, start=missing) if extent != x.shape[axis]]
        return x if x.shape == tuple(shape) else x.sum((*range(missing), *shared)).reshape(shape)

    @staticmethod
    def permuted(x: Any, order: Sequence[int]) -> Any:
        return x.transpose(tuple(order))

    @staticmethod
    def taken(x: Any, indices: Any, axis: int) -> Any:
        """The elements at these places along an axis."""
        return jax.numpy.take_along_axis(x, indices, axis)

    @staticmethod
    def given(x: Any, indices: Any, axis: int) -> Any:
        """Zeros to which elements are added at these places along an axis."""
        places = [
            jax.numpy.arange(extent).reshape([-1 if at == place else 1 for at in range(x.ndim)])
            for place, extent in enumerate(x.shape)
        ]
        places[axis] = indices
        return jax.numpy.zeros_like(x).at[tuple(places)].add(x)

    @staticmethod
    def arange(count: int, like: Any) -> Any:
        return jax.numpy.arange(count)


FUNCTIONS = JaxFunctions()
