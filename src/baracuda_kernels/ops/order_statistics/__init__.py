"""Order statistics along any axes, forward and backward: median, mode, quantiles.

On the CPU `bodies` and `keys` select; on CUDA lines that fit the registers are read once (`triton_registers`), others several times
(`triton_long`). Gradients are those of a reduction that chooses an element.
Start with `order_statistics.py`, the plans.
"""

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
