"""Under `torch.vmap`: a batch of problems as one larger problem, where the op allows it; else one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import torch

from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.layout import Shape

if TYPE_CHECKING:
    from baracuda_kernels.torch.operators import Operator

__all__ = ["rule"]

MOST_AXES = 8  # that kernels of ops on elements take


def rule(operator: Operator, info: Any, in_dims: Any, *arguments: Any) -> tuple[Any, Any]:
    """The results of all problems, and where their batch axis is: in front."""
    values = dict(zip(operator.schema.arguments, arguments, strict=True))
    axes = {name: axis for name, axis in zip(values, in_dims, strict=True) if isinstance(axis, int)}
    values |= {name: values[name].movedim(axis, 0) for name, axis in axes.items()}
    batched = set(axes)
    results = _together(operator, info.batch_size, values, batched) or _one_by_one(operator, info.batch_size, values, batched)
    return (results, (0,) * len(results)) if len(results) > 1 else (results[0], 0)


def _one_by_one(operator: Operator, size: int, values: dict[str, Any], batched: set[str]) -> tuple[Any, ...]:
    def one(index: int) -> tuple[Any, ...]:
        return _run(operator, {name: value[index] if name in batched else value for name, value in values.items()})

    return tuple(torch.stack(results) for results in zip(*map(one, range(size)), strict=True))


def _together(operator: Operator, size: int, values: dict[str, Any], batched: set[str]) -> tuple[Any, ...] | None:
    """None where the problems cannot be one."""
    one = operator.describe({name: value[0] if name in batched else value for name, value in values.items()})
    given = {field.name for field in fields(one)}
    if "shape" in given and all(operand.broadcasts for operand in operator.function.inputs.values()):
        return _broadcast(operator, size, values, batched, len(one.shape))  # type: ignore[attr-defined]
    if "batch_size" in given:
        folds, many = True, replace(one, batch_size=size * one.batch_size)
    elif "input_shape" in given:
        folds = False
        values = {name: _from_the_end(name, value, len(one.input_shape)) for name, value in values.items()}
        fronted = {name: _in_front(operator, name, value, size, name in batched) for name, value in values.items()}
        many = operator.describe(fronted)
    else:
        return None

    def grown(shape: Shape) -> Shape:
        return (size * shape[0], *shape[1:]) if folds else (size, *shape)

    whole = dict(values)
    for name, operand in operator.function.inputs.items():
        value = values[name]
        if value is None:
            continue
        shape = tuple(value.shape[1:] if name in batched else value.shape)
        if _grows(operand, shape, one, many, grown):
            value = value if name in batched else value.expand(size, *shape)
            whole[name] = value.flatten(0, 1) if folds else value
        elif name in batched:
            return None
    there = [operator.schema.is_there(name, values) for name in operator.schema.outputs]
    shapes = [operand.shapes(one)[0] for operand in operator.function.outputs.values()]
    for operand, is_there, shape in zip(operator.function.outputs.values(), there, shapes, strict=True):
        if is_there and not _grows(operand, shape, one, many, grown):
            return None
    return tuple(
        result.reshape(size, *shape) if is_there else result.new_empty(size, 0)
        for result, is_there, shape in zip(_run(operator, whole), there, shapes, strict=True)
    )


def _broadcast(operator: Operator, size: int, values: dict[str, Any], batched: set[str], rank: int) -> tuple[Any, ...] | None:
    """Operands that are broadcast anyway have the batch as one more axis in front, those that are not batched without it."""
    if rank == MOST_AXES:
        return None
    fronted = {
        name: value.reshape(size, *(1,) * (rank + 1 - value.ndim), *value.shape[1:])
        for name, value in values.items()
        if name in batched
    }
    there = [operator.schema.is_there(name, values) for name in operator.schema.outputs]
    results = _run(operator, values | fronted)
    return tuple(result if is_there else result.new_empty(size, 0) for result, is_there in zip(results, there, strict=True))


def _grows(operand: Any, shape: Shape, one: Descriptor, many: Descriptor, grown: Callable[[Shape], Shape]) -> bool:
    """Whether an operand of that shape has the larger problem's batch axis."""
    pairs = zip(operand.shapes(one), operand.shapes(many), strict=True)
    return any(small == shape and small != large == grown(small) for small, large in pairs)


def _from_the_end(name: str, value: Any, rank: int) -> Any:
    """Axes that still name the same ones when there is another in front."""
    if name == "axis":
        return value - rank if value >= 0 else value
    if name == "axes":
        return tuple(axis - rank if axis >= 0 else axis for axis in value)
    return value


def _in_front(operator: Operator, name: str, value: Any, size: int, is_batched: bool) -> Any:
    """A tensor of the op's own shape with the batch in front of it; all else as it is."""
    operand = operator.function.inputs.get(name)
    if value is None or operand is None or is_batched or operand.shape_rule != "input_shape":
        return value
    return value.expand(size, *value.shape)


def _run(operator: Operator, values: dict[str, Any]) -> tuple[Any, ...]:
    outcome = operator.overload(*values.values())
    return outcome if isinstance(outcome, tuple) else (outcome,)
