"""Ops on neighbours from their formulas, in NumPy float64."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded

__all__ = ["diff", "diff_backward"]


def diff(descriptor: Any, input: Any, prepend: Any = None, append: Any = None) -> Any:
    import numpy

    given = (prepend, input, append) if descriptor.n else (input,)
    every = numpy.concatenate([each for each in given if each is not None], descriptor.axis)
    for _ in range(descriptor.n):
        every = numpy.diff(every, axis=descriptor.axis)
    if descriptor.element.is_float:
        return every
    return rounded(every % 2 if descriptor.element is ElementKind.BOOL else every, descriptor.element)  # which wraps around


def diff_backward(descriptor: Any, d_result: Any, input: Any, prepend: Any = None, append: Any = None) -> Any:
    """Every difference gives its gradient to the later element, and takes it from the earlier one."""
    import numpy

    before, middle, behind = descriptor.extents
    slopes = numpy.moveaxis(d_result, descriptor.axis, -1)
    if not descriptor.n:
        slopes = numpy.pad(slopes, [(0, 0)] * (slopes.ndim - 1) + [(before, behind)])
    for _ in range(descriptor.n):
        wider = numpy.zeros((*slopes.shape[:-1], slopes.shape[-1] + 1))
        wider[..., 1:] += slopes
        wider[..., :-1] -= slopes
        slopes = wider
    slopes = numpy.moveaxis(slopes, -1, descriptor.axis)
    firsts = {"d_input": (before, middle), "d_prepend": (0, before), "d_append": (before + middle, behind)}
    wanted = {"d_input": True, "d_prepend": descriptor.has_prepend, "d_append": descriptor.has_append}
    return tuple(
        slopes.take(range(first, first + extent), descriptor.axis) if wanted[name] else None
        for name, (first, extent) in firsts.items()
    )
