"""The tables' ops on CUDA."""

from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.kernel import Bind
from baracuda_kernels.formula.triton_launch import kernel
from baracuda_kernels.ops.elementwise.program import program_of

__all__ = ["elementwise"]


def elementwise(problem: Any, device: Device) -> Bind:
    """The kernel for a problem: bind(layouts of inputs and outputs) -> launch."""
    return kernel(program_of(problem), problem.shape, device, problem.numbers)
