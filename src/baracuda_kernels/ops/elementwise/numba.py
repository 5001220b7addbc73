"""The tables' ops on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.formula.llvm_launch import kernel
from baracuda_kernels.formula.present import of_present
from baracuda_kernels.formula.views import OverViews, Strides, views_of_parts
from baracuda_kernels.lang import parallel

__all__ = ["elementwise", "in_parts"]


def elementwise(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, problem.numbers))


def in_parts(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem whose program has the parts of complex numbers for operands."""
    elementwise = kernel(problem.program, problem.shape)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        strides, views = views_of_parts(layouts)
        return OverViews(elementwise(list(map(Strides, strides))), views)

    return bind
