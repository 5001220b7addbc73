"""The tables' ops on CUDA."""

from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.targets.cuda.formulas.elementwise import calls, kernel
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.operand_views import OverViews, views_of_parts
from baracuda_kernels.targets.optional_operands import of_present

__all__ = ["elementwise", "of_complexes"]


def elementwise(problem: Any, device: Device) -> Bind:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, device, problem.numbers))


def of_complexes(problem: Any, device: Device) -> Bind:
    """The kernel for a problem with complex numbers, which its program has as words, or as two operands each."""
    if problem.in_words:
        return elementwise(problem, device)

    def bind(layouts: Sequence[Any]) -> Launch:
        strides, views = views_of_parts(layouts)
        return OverViews(launcher(device, *calls(problem.program, problem.shape, strides, problem.numbers)), views)

    return bind
