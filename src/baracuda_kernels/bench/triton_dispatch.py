"""The same kernel through Triton's own dispatcher, to compare what a launch costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.plan import Plan
from baracuda_kernels.targets.aten import DTYPES
from baracuda_kernels.targets.cuda.runtime.compile import as_constant
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, Step
from baracuda_kernels.targets.operand_views import OverViews

__all__ = ["through_triton"]


def through_triton(plan: Plan[Any, Any], args: Any, operands: dict[str, Any]) -> Callable[[], object]:
    """`kernel[grid](...)` for the first of the plan's calls, on PyTorch tensors by name."""
    launch: Any = plan.admit(args)
    call, declared = launch.calls[0], plan.args_type.OPERANDS
    names = [operand.name for operand in declared]
    if isinstance(launch, OverViews):
        tensors = [_from(operands[names[view.operand]], view.offset) for view in launch.views]
    else:
        tensors = [operands.get(names[place]) for place in getattr(launch, "places", range(len(declared)))]

    def given(argument: Any) -> Any:
        if isinstance(argument, tuple):
            return tuple(map(given, argument))
        if isinstance(argument, At):
            tensor = tensors[argument.operand]
            return tensor.view(DTYPES[argument.element]) if tensor.is_complex() else tensor  # which a kernel has as words
        return argument.value if isinstance(argument, Step) else argument

    arguments = [given(argument) for argument in call.arguments]
    constants = {name: as_constant(value) for name, value in call.constants.items()}
    return lambda: call.body[(call.blocks,)](*arguments, **constants, num_warps=call.warps)


def _from(tensor: Any, offset: int) -> Any:
    """What begins so many bytes after a contiguous one, of a complex one in its parts."""
    import torch

    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.reshape(-1)[offset // tensor.element_size() :]
