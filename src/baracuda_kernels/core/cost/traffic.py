"""How many bytes an op has to move."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

from baracuda_kernels.core.args import Access, Operand
from baracuda_kernels.core.cost.layouts import Layouts, stored_shape
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.plan import Plan

__all__ = ["bytes_moved", "present_operands"]


def present_operands(plan: type[Plan[Any, Any]], descriptor: Descriptor) -> list[Operand]:
    """The operands of a bench run: all but those that must be left out."""
    return [operand for operand in plan.args_type.OPERANDS if operand.presence(descriptor) is not False]


def bytes_moved(plan: type[Plan[Any, Any]], descriptor: Descriptor, layouts: Layouts = MappingProxyType({})) -> int:
    """What kernels have to read once and to write once; of an input that is broadcast, what lies in memory."""
    moved = 0
    for name, size in plan.cases.bytes_read(descriptor, plan.args_type.OPERANDS).items():
        if name in layouts:
            (operand,) = (each for each in plan.args_type.OPERANDS if each.name == name)
            shape = operand.shapes(descriptor)[0]
            moved += size * math.prod(stored_shape(shape, layouts[name])) // max(1, math.prod(shape))
        else:
            moved += size
    return moved + sum(each.size(descriptor) for each in present_operands(plan, descriptor) if each.access is Access.WRITE)
