"""Formulas of the caller's on the CPU."""

from collections.abc import Callable, Sequence
from typing import Any

from baracuda_kernels.targets.cpu.llvm.elementwise_launch import kernel
from baracuda_kernels.targets.optional_operands import of_present

__all__ = ["fused"]


def fused(problem: Any) -> Callable[[Sequence[Any]], Any]:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, problem.numbers))
