"""The tables' ops on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.targets.cpu.llvm.elementwise_launch import kernel
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.operand_views import OverViews, Strides, views_of_parts
from baracuda_kernels.targets.optional_operands import of_present

__all__ = ["elementwise", "of_complexes"]


def elementwise(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, problem.numbers))


def of_complexes(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem with complex numbers, which its program has as words, or as two operands each."""
    if problem.in_words:
        return elementwise(problem)
    of_parts = kernel(problem.program, problem.shape, problem.numbers)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        strides, views = views_of_parts(layouts)
        return OverViews(of_parts(list(map(Strides, strides))), views)

    return bind
