"""Elementwise ops, forward and backward: a row of a table each, from which kernels and gradients are made.

`*_rows` are the tables (`unary_rows`, `activation_rows`, `binary_rows`, ...), `rows` what a row can say; `reference_values` and
`reference_gradients` are the references. Conversions, complex numbers and `where` have modules of their own.
Start with `unary_rows.py` to add an op, with `elementwise.py` for the plans.
"""

from baracuda_kernels.ops.elementwise.cast import CastArgs, CastPlan
from baracuda_kernels.ops.elementwise.cast_descriptor import CastDescriptor, CastKind
from baracuda_kernels.ops.elementwise.complex import (
    ComplexArgs,
    ComplexBackwardArgs,
    ComplexBackwardDescriptor,
    ComplexBackwardPlan,
    ComplexDescriptor,
    ComplexKind,
    ComplexPlan,
)
from baracuda_kernels.ops.elementwise.descriptor import (
    BinaryBackwardDescriptor,
    BinaryDescriptor,
    BinaryKind,
    GatedActivationBackwardDescriptor,
    GatedActivationDescriptor,
    GatedActivationKind,
    TernaryBackwardDescriptor,
    TernaryDescriptor,
    TernaryKind,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
    UnaryKind,
)
from baracuda_kernels.ops.elementwise.elementwise import (
    BinaryArgs,
    BinaryBackwardArgs,
    BinaryBackwardPlan,
    BinaryPlan,
    GatedActivationArgs,
    GatedActivationBackwardArgs,
    GatedActivationBackwardPlan,
    GatedActivationPlan,
    TernaryArgs,
    TernaryBackwardArgs,
    TernaryBackwardPlan,
    TernaryPlan,
    UnaryArgs,
    UnaryBackwardArgs,
    UnaryBackwardPlan,
    UnaryPlan,
)
from baracuda_kernels.ops.elementwise.pairs import (
    BinaryPairArgs,
    BinaryPairDescriptor,
    BinaryPairKind,
    BinaryPairPlan,
    UnaryPairArgs,
    UnaryPairDescriptor,
    UnaryPairKind,
    UnaryPairPlan,
)
from baracuda_kernels.ops.elementwise.where import (
    WhereArgs,
    WhereBackwardArgs,
    WhereBackwardDescriptor,
    WhereBackwardPlan,
    WhereDescriptor,
    WhereKind,
    WherePlan,
)

__all__ = [
    "BinaryArgs", "BinaryBackwardArgs", "BinaryBackwardDescriptor", "BinaryBackwardPlan", "BinaryDescriptor", "BinaryKind",
    "BinaryPairArgs", "BinaryPairDescriptor", "BinaryPairKind", "BinaryPairPlan", "BinaryPlan", "CastArgs", "CastDescriptor",
    "CastKind", "CastPlan", "ComplexArgs", "ComplexBackwardArgs", "ComplexBackwardDescriptor", "ComplexBackwardPlan",
    "ComplexDescriptor", "ComplexKind", "ComplexPlan", "GatedActivationArgs", "GatedActivationBackwardArgs",
    "GatedActivationBackwardDescriptor", "GatedActivationBackwardPlan", "GatedActivationDescriptor", "GatedActivationKind",
    "GatedActivationPlan", "TernaryArgs", "TernaryBackwardArgs", "TernaryBackwardDescriptor", "TernaryBackwardPlan",
    "TernaryDescriptor", "TernaryKind", "TernaryPlan", "UnaryArgs", "UnaryBackwardArgs", "UnaryBackwardDescriptor",
    "UnaryBackwardPlan", "UnaryDescriptor", "UnaryKind", "UnaryPairArgs", "UnaryPairDescriptor", "UnaryPairKind", "UnaryPairPlan",
    "UnaryPlan", "WhereArgs", "WhereBackwardArgs", "WhereBackwardDescriptor", "WhereBackwardPlan", "WhereDescriptor", "WhereKind",
    "WherePlan",
]  # fmt: skip
