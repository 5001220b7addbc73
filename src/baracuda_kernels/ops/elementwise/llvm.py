"""The tables' ops on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.targets.cpu.llvm.elementwise_launch import kernel
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.optional_operands import of_present

__all__ = ["elementwise"]


def elementwise(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, None), problem.program.parameters)
