"""The tables' ops on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.formula.llvm_launch import kernel
from baracuda_kernels.formula.present import of_present
from baracuda_kernels.lang import parallel

__all__ = ["elementwise"]


def elementwise(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, problem.numbers))
