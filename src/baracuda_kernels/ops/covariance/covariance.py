"""Covariances and correlations of the rows of a matrix.

c = x - mean, by weights w = fweights aweights ; cov = Σ_m w_m c_im c_jm / norm ; norm = Σ w - correction Σ w aweights / Σ w
corrcoef_ij = cov_ij / √(cov_ii cov_jj)
dx = w / norm · (dcov + dcovᵀ) c               ; the mean moves along, which does not show
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.kernel import Kernel, cublas_order
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind, OpCategory, PrecisionGuarantee
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.ops.covariance import reference
from baracuda_kernels.ops.covariance.cases import CovCases
from baracuda_kernels.ops.covariance.descriptor import CovBackwardDescriptor, CovDescriptor
from baracuda_kernels.ops.covariance.workspace import backward_bytes, forward_bytes

__all__ = ["CovArgs", "CovBackwardArgs", "CovBackwardPlan", "CovPlan"]


def mkl_order(descriptor: Descriptor) -> PrecisionGuarantee:
    """MKL does too, and by the number of threads."""
    return replace(cublas_order(descriptor), bit_stable_on_same_hardware=False)


def never_backwards(name: str, layout: Layout) -> Iterator[Reason]:
    """Any strides of at least 0: PyTorch has no others."""
    if layout.low < 0:
        yield Reason(ReasonCode.LAYOUT, name, f"stride {layout.stride}", "strides of at least 0")


FWEIGHTS = read(
    "weights_shape",
    "how often each observation was made",
    element="fweights_element",
    present="has_fweights",
    layout=never_backwards,
)
AWEIGHTS = read("weights_shape", "the weight of each observation", present="has_aweights", layout=never_backwards)


class CovArgs(Args):
    input: TensorRef = read("shape", "the variables, a row each", layout=never_backwards)
    fweights: TensorRef = FWEIGHTS
    aweights: TensorRef = AWEIGHTS
    result: TensorMut = write("result_shape", "the covariance, or correlation, of every two variables", layout=never_backwards)


class CovPlan(Plan[CovDescriptor, CovArgs]):
    """The covariances or the correlations of variables."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.cov)
    cases = CovCases(CovDescriptor)
    kernels = (
        Kernel("aten.cov", BackendKind.ATEN, "vendor:forward", mkl_order, workspace=forward_bytes),
        Kernel("aten.cov_cuda", BackendKind.ATEN, "vendor:forward", cublas_order, workspace=forward_bytes, on=DeviceKind.CUDA),
    )


class CovBackwardArgs(Args):
    d_result: TensorRef = read("result_shape", "the gradient of the result", layout=never_backwards)
    input: TensorRef = read("shape", "the variables, a row each", layout=never_backwards)
    fweights: TensorRef = FWEIGHTS
    aweights: TensorRef = AWEIGHTS
    d_input: TensorMut = write("shape", "the gradient of the variables", may_be=("input",), layout=never_backwards)


class CovBackwardPlan(Plan[CovBackwardDescriptor, CovBackwardArgs]):
    """The gradient of covariances or correlations."""

    category, op = OpCategory.REDUCTION, "kind"
    reference = staticmethod(reference.cov_backward)
    cases = CovCases(CovBackwardDescriptor)
    kernels = (
        Kernel("aten.cov_backward", BackendKind.ATEN, "vendor:backward", mkl_order, workspace=backward_bytes),
        Kernel(
            "aten.cov_backward_cuda",
            BackendKind.ATEN,
            "vendor:backward",
            cublas_order,
            workspace=backward_bytes,
            on=DeviceKind.CUDA,
        ),
    )
