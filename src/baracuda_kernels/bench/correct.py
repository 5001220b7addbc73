"""Whether the results of a run are right: each output against the float64 reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baracuda_kernels.bench.problems import widened
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.verify.bounds import error_bound, relative_error


@dataclass(frozen=True)
class Comparison:
    """One output of one run."""

    output: str
    error: float
    bound: float

    @property
    def is_right(self) -> bool:
        return self.error <= self.bound

    def __str__(self) -> str:
        return f"{self.output} has a relative error of {self.error:.2e}, allowed is {self.bound:.2e}"


def compare(plan: Plan[Any, Any], outputs: dict[str, Any], expected: dict[str, Any]) -> list[Comparison]:
    """Every output of a run, PyTorch tensors by name, against the reference's."""
    descriptor = plan.descriptor
    elements = {operand.name: operand.element(descriptor) for operand in plan.args_type.OPERANDS}
    return [
        Comparison(
            name,
            relative_error(_beside(tensor, expected[name]), expected[name]),
            error_bound(plan.cases, descriptor, elements[name], plan.precision_guarantee),
        )
        for name, tensor in outputs.items()
    ]


def _beside(tensor: Any, expected: Any) -> Any:
    """The tensor as an array of the expected one's kind."""
    wide = widened(tensor)
    if type(expected).__module__.startswith("cupy"):
        import cupy

        return cupy.from_dlpack(wide)
    return wide.cpu().numpy()
