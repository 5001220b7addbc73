"""Under `torch.vmap`: a batch of problems as one larger problem, where the op says which that is; else one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from baracuda_kernels.core.layout import Shape, broadcasts_to

if TYPE_CHECKING:
    from baracuda_kernels.core.args import Operand
    from baracuda_kernels.core.descriptor import Descriptor
    from baracuda_kernels.torch.operators import Operator

__all__ = ["rule"]

AXES = ("axes", "axis")  # options that name axes


def rule(operator: Operator, info: Any, in_dims: Any, *arguments: Any) -> tuple[Any, Any]:
    """The results of all problems, and their batch axis, which is the first."""
    values = dict(zip(operator.schema.arguments, arguments, strict=True))
    axes = {name: axis for name, axis in zip(values, in_dims, strict=True) if isinstance(axis, int)}
    values |= {name: values[name].movedim(axis, 0) for name, axis in axes.items()}
    batched = set(axes)
    results = _together(operator, info.batch_size, values, batched) or _one_by_one(operator, info.batch_size, values, batched)
    return (results, (0,) * len(results)) if len(results) > 1 else (results[0], 0)


def _one_by_one(operator: Operator, size: int, values: dict[str, Any], batched: set[str]) -> tuple[Any, ...]:
    if size == 0:  # what a problem of zeros gives, and none of it
        zeros = {name: values[name].sum(0, keepdim=True, dtype=values[name].dtype) for name in batched}
        return tuple(result[:0] for result in _one_by_one(operator, 1, values | zeros, batched))

    def one(index: int) -> tuple[Any, ...]:
        return _run(operator, {name: value[index] if name in batched else value for name, value in values.items()})

    return tuple(torch.stack(results) for results in zip(*map(one, range(size)), strict=True))


def _together(operator: Operator, size: int, values: dict[str, Any], batched: set[str]) -> tuple[Any, ...] | None:
    """Runs the problems as one larger problem; None if they cannot be one. The op says which it is, and the call must state exactly that one."""
    function, schema = operator.function, operator.schema
    shapes = {
        name: tuple(values[name].shape[1:] if name in batched else values[name].shape)
        for name in function.inputs
        if values[name] is not None
    }
    one = operator.describe(values | {name: operator.form(name, values[name], shape) for name, shape in shapes.items()})
    many = one.repeated(size)
    if many is None or not _is_served(operator, many, next(values[name].device for name in shapes)):
        return None
    whole = {name: _behind_another(value) if name in AXES else value for name, value in values.items()}
    for name, shape in shapes.items():
        whole[name] = _enlarged(function.inputs[name], values[name], shape, name in batched, one, many, size)
        if whole[name] is None:
            return None
    there = [schema.is_there(name, values) for name in schema.outputs]
    forms = [(operand.shapes(one)[0], operand.shapes(many)[0]) for operand in function.outputs.values()]
    follow = all(_is_repeated(*form, size) for form, is_there in zip(forms, there, strict=True) if is_there)
    if not follow or operator.describe(whole) != many:
        return None
    return tuple(
        result.reshape(size, *shape) if is_there else result.new_empty(size, 0)
        for result, (shape, _), is_there in zip(_run(operator, whole), forms, there, strict=True)
    )


def _is_served(operator: Operator, problem: Descriptor, device: torch.device) -> bool:
    kernels = [kernel for kernel in operator.function.plan.kernels if kernel.device.value == device.type]
    return any(not any(kernel.reasons_against_problem(problem)) for kernel in kernels)


def _enlarged(
    operand: Operand, value: torch.Tensor, shape: Shape, is_batched: bool, one: Descriptor, many: Descriptor, size: int
) -> torch.Tensor | None:
    """The larger problem's operand, of one that each problem has in that shape, or that is the same for all."""
    for small, large in zip(operand.shapes(one), operand.shapes(many), strict=True):
        if operand.broadcasts and broadcasts_to(shape, small) and large == (size, *small):
            return value.reshape(size, *(1,) * (len(small) - len(shape)), *shape) if is_batched else value
        if shape == small == large and not is_batched:
            return value
        if shape == small and _is_repeated(small, large, size):
            return (value if is_batched else value.expand(size, *shape)).reshape(large)
    return None


def _is_repeated(small: Shape, large: Shape, size: int) -> bool:
    """Whether shapes follow each other along a first axis, a new one or one that is so many times as long."""
    return large == (size, *small) or (len(small) > 0 and large == (size * small[0], *small[1:]))


def _behind_another(axes: Any) -> Any:
    """Axes that still are the same ones when there is another in front; from the last they are counted as before."""
    if isinstance(axes, tuple | list):
        return tuple(map(_behind_another, axes))
    return axes + 1 if axes >= 0 else axes


def _run(operator: Operator, values: dict[str, Any]) -> tuple[Any, ...]:
    outcome = operator.overload(*values.values())
    return outcome if isinstance(outcome, tuple) else (outcome,)
