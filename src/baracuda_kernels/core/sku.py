"""The identity of a kernel, and its numerical guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.element import ElementKind


class OpCategory(Enum):
    """What sort of op it is: the categories of the inventory."""

    GEMM = "gemm"
    UNARY_ELEMENTWISE = "unary_elementwise"
    BINARY_ELEMENTWISE = "binary_elementwise"
    TERNARY_ELEMENTWISE = "ternary_elementwise"
    GATED_ACTIVATION = "gated_activation"
    SHAPE_LAYOUT = "shape_layout"
    LINALG = "linalg"
    REDUCTION = "reduction"
    SCAN = "scan"
    RANDOM = "random"
    INDEXING = "indexing"
    CREATION = "creation"
    FFT = "fft"
    SORTING = "sorting"
    LOSS = "loss"
    POOLING = "pooling"
    CONTROL_FLOW = "control_flow"
    OPTIMIZER = "optimizer"
    QUANTIZATION = "quantization"
    IMAGE = "image"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    NORMALIZATION = "normalization"
    COLLECTIVE = "collective"
    SAMPLING = "sampling"
    SOFTMAX = "softmax"
    SEGMENT_OPS = "segment_ops"
    RECURRENT = "recurrent"
    MOE = "moe"
    EMBEDDING = "embedding"


class BackendKind(Enum):
    """What a kernel is written in, or which library it is from."""

    NUMBA = "numba"  # also where LLVM is written directly: llvmlite comes with Numba
    TRITON = "triton"
    ATEN = "aten"

    def __str__(self) -> str:
        return self.value


class ArchSku(Enum):
    """The architecture a kernel was built for. A CUDA device runs the newest one that is not newer than itself."""

    CPU = "cpu"
    X86_64 = "x86_64"
    AARCH64 = "aarch64"
    SM70 = "sm_70"
    SM75 = "sm_75"
    SM80 = "sm_80"
    SM86 = "sm_86"
    SM89 = "sm_89"
    SM90 = "sm_90"
    SM100 = "sm_100"
    SM103 = "sm_103"
    SM120 = "sm_120"

    @classmethod
    def cuda(cls, major: int, minor: int) -> ArchSku:
        """The one whose kernels a device of that compute capability runs."""
        capability = 10 * major + minor
        known = {int(arch.value[3:]): arch for arch in cls if arch.value.startswith("sm_")}
        return known[max((number for number in known if number <= capability), default=min(known))]


class MathPrecision(Enum):
    """The precision that products and functions are computed in."""

    F64 = "f64"
    F32 = "f32"
    TF32 = "tf32"
    F16 = "f16"
    BF16 = "bf16"
    EXACT = "exact"  # copies, integers, comparisons


class LayoutSku(Enum):
    """Which operand layouts the kernel supports."""

    STRIDED = "strided"
    CONTIGUOUS = "contiguous"
    UNIT_LAST_AXIS = "unit_last_axis"


class EpilogueKind(Enum):
    """What the kernel does to a result before it stores it."""

    NONE = "none"


@dataclass(frozen=True)
class PrecisionGuarantee:
    """The numerical guarantees of one kernel for one descriptor. The tests check each of them."""

    math_precision: MathPrecision
    accumulator: ElementKind
    deterministic: bool
    bit_stable_on_same_hardware: bool
    batch_invariant: bool

    def __str__(self) -> str:
        flags = ("deterministic", "bit_stable_on_same_hardware", "batch_invariant")
        kept = [name.removesuffix("_on_same_hardware").replace("_", "-") for name in flags if getattr(self, name)]
        return ", ".join([f"math {self.math_precision.value}", f"sums {self.accumulator}", *kept])


@dataclass(frozen=True)
class KernelSku:
    """The identity of a selected kernel."""

    category: OpCategory
    op: Enum
    element: ElementKind
    aux_element: ElementKind | None
    layout: LayoutSku
    epilogue: EpilogueKind
    arch: ArchSku
    backend: BackendKind
    precision_guarantee: PrecisionGuarantee
    name: str

    def __str__(self) -> str:
        return f"{self.category.value}/{self.op.name.lower()}/{self.element}/{self.arch.value}/{self.name}"
