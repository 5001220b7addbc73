"""Order statistics along any axes: median, mode and quantiles, forward and backward."""

from baracuda_kernels.ops.order_statistics.descriptor import (
    Interpolation,
    OrderBackwardDescriptor,
    OrderDescriptor,
    OrderKind,
    QuantileBackwardDescriptor,
    QuantileDescriptor,
    QuantileKind,
)
from baracuda_kernels.ops.order_statistics.order_statistics import (
    OrderArgs,
    OrderBackwardArgs,
    OrderBackwardPlan,
    OrderPlan,
    QuantileArgs,
    QuantileBackwardArgs,
    QuantileBackwardPlan,
    QuantilePlan,
)

__all__ = [
    "Interpolation",
    "OrderArgs",
    "OrderBackwardArgs",
    "OrderBackwardDescriptor",
    "OrderBackwardPlan",
    "OrderDescriptor",
    "OrderKind",
    "OrderPlan",
    "QuantileArgs",
    "QuantileBackwardArgs",
    "QuantileBackwardDescriptor",
    "QuantileBackwardPlan",
    "QuantileDescriptor",
    "QuantileKind",
    "QuantilePlan",
]
