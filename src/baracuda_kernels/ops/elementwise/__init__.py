"""Elementwise ops, forward and backward."""

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
