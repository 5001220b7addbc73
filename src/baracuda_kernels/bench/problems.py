"""One problem ready to run: its operands as PyTorch tensors, what they weigh, and how it is called in a table."""

from __future__ import annotations

import importlib
import importlib.util
import typing
from dataclasses import fields
from enum import Enum
from types import MappingProxyType
from typing import Any

from baracuda_kernels.core.args import Access
from baracuda_kernels.core.cost.layouts import Layouts, place
from baracuda_kernels.core.cost.traffic import present_operands
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.plan import Plan


def describe(descriptor: Descriptor) -> str:
    """A short text from the fields, such as "softmax bf16 [4096,4096] axis 1"."""
    kinds, elements, shapes, rest = [], [], [], []
    for field in fields(descriptor):
        value = getattr(descriptor, field.name)
        short = (
            "axis" if field.name.endswith("_axis") else field.name.removeprefix("num_").removesuffix("_size").removesuffix("_len")
        )
        if isinstance(value, ElementKind):
            elements.append(value.value if field.name == "element" else f"{field.name.removesuffix('_element')} {value}")
        elif isinstance(value, Enum):
            kinds.append(value.name.lower())
        elif isinstance(value, tuple):
            shapes += [f"[{','.join(map(str, value))}]"] if value or field.name.endswith("shape") else []
        elif isinstance(value, str):
            rest.append(f"{short} {value.partition(chr(10))[0]}")  # of a program the first line, which names its elements
        elif value is True:
            rest.append(field.name)
        elif value is not None and value is not False:
            rest.append(f"{short} {value:g}" if isinstance(value, float) else f"{short} {value}")
    return " ".join([*kinds, *elements, *shapes, *rest])


def field_types(descriptor: type[Descriptor]) -> dict[str, Any]:
    """The descriptor's fields and their types, in order."""
    hints = typing.get_type_hints(descriptor)
    return {field.name: hints[field.name] for field in fields(descriptor)}


class Problem:
    """A descriptor with random operands that are exact in their element. The result it should have is computed when asked for."""

    def __init__(
        self,
        plan: type[Plan[Any, Any]],
        descriptor: Any,
        seed: int = 0,
        device: Device | None = None,
        layouts: Layouts = MappingProxyType({}),
    ) -> None:
        import torch

        from baracuda_kernels.targets.aten import DTYPES

        self.plan, self.descriptor = plan, descriptor
        self.arrays = _array_module(device)
        rng = self.arrays.random.default_rng(seed)
        where = "cpu" if device is None else str(device)
        special = _special_inputs(plan, descriptor, rng, seed)
        self.inputs: dict[str, Any] = {}
        self.operands: dict[str, Any] = {}
        for operand in present_operands(plan, descriptor):
            values = special.get(operand.name)
            shape = operand.shapes(descriptor)[0] if values is None else values.shape
            dtype = DTYPES[operand.element(descriptor)]
            if operand.access is Access.READ:
                values = rng.standard_normal(shape, "float32") if values is None else values
                tensor = self.inputs[operand.name] = place(values, shape, layouts.get(operand.name), dtype, where)
            else:
                tensor = torch.empty(shape, dtype=dtype, device=where)
                poison(tensor)
            self.operands[operand.name] = tensor

    def exact_inputs(self, arrays: Any) -> dict[str, Any]:
        """Exactly what the elements hold, as float64 arrays."""
        wide = {name: widened(tensor) for name, tensor in self.inputs.items()}
        if arrays.__name__ == "cupy":
            return {name: arrays.from_dlpack(tensor) for name, tensor in wide.items()}
        return {name: tensor.cpu().numpy() for name, tensor in wide.items()}

    def outputs(self) -> dict[str, Any]:
        return {name: self.operands[name] for name in self.plan.outputs() if name in self.operands}

    def expected(self) -> dict[str, Any]:
        """The reference's outputs, in float64, by name."""
        try:
            results = self.plan.reference(self.descriptor, **self.exact_inputs(self.arrays))
        except (TypeError, AttributeError, NotImplementedError):  # a reference that mixes in arrays of the host
            import numpy

            if self.arrays is numpy:
                raise
            results = self.plan.reference(self.descriptor, **self.exact_inputs(numpy))
        results = results if isinstance(results, tuple) else (results,)
        return dict(zip(self.outputs(), (result for result in results if result is not None), strict=True))


def _special_inputs(plan: type[Plan[Any, Any]], descriptor: Any, rng: Any, seed: int) -> dict[str, Any]:
    try:
        return plan.cases.inputs(descriptor, rng)
    except (TypeError, AttributeError, NotImplementedError):  # what CuPy's generator does not have
        import numpy

        return plan.cases.inputs(descriptor, numpy.random.default_rng(seed))


def _array_module(device: Device | None) -> Any:
    """NumPy; on CUDA CuPy where it is installed, since a large reference would keep the device waiting for minutes."""
    if device is not None and device.kind is DeviceKind.CUDA and importlib.util.find_spec("cupy") is not None:
        return importlib.import_module("cupy")
    return importlib.import_module("numpy")


def widened(tensor: Any) -> Any:
    """The values in f64, or as complex numbers of f64."""
    return tensor.cdouble() if tensor.is_complex() else tensor.double()


def poison(tensor: Any) -> None:
    """All bits set: NaN in every float element, so that what a kernel leaves out shows."""
    import torch

    if tensor.numel():
        tensor.reshape(-1).view(torch.uint8).fill_(0xFF)
