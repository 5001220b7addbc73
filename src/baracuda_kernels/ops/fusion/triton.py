"""Formulas of the caller's on CUDA."""

from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind
from baracuda_kernels.targets.cuda.formulas.elementwise import kernel
from baracuda_kernels.targets.optional_operands import of_present

__all__ = ["fused"]


def fused(problem: Any, device: Device) -> Bind:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return of_present(kernel(problem.program, problem.shape, device, problem.numbers))
