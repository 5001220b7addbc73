"""The numerical guarantees of elementwise kernels."""

from __future__ import annotations

from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.sku import MathPrecision, PrecisionGuarantee
from baracuda_kernels.formula.expression import register

__all__ = ["computed_by_itself", "in_its_register"]


def computed_by_itself(computing: ElementKind) -> PrecisionGuarantee:
    """Every result depends on its own operands alone, by the same operations at every place."""
    precision = MathPrecision(computing.value) if computing.is_float else MathPrecision.EXACT
    return PrecisionGuarantee(precision, computing, True, True, True)


def in_its_register(descriptor: Any) -> PrecisionGuarantee:
    """As `computed_by_itself`, where the dtype alone decides what is computed in."""
    return computed_by_itself(register(descriptor.element))
