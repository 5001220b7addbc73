"""Requirements on the choice of a kernel. None is ever ignored: what cannot be met is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.errors import rejection
from baracuda_kernels.core.reason import Reason, ReasonCode
from baracuda_kernels.core.sku import BackendKind


class Determinism(Enum):
    """Whether a repeated run has to give the same bits."""

    NOT_REQUIRED = "not_required"
    RUN_TO_RUN = "run_to_run"  # the same bits in every run of a process


class Effort(Enum):
    """How a kernel is found among those that serve the problem."""

    ESTIMATE = "estimate"  # the stated order, no timing
    MEASURE = "measure"  # race the candidates once, and remember


@dataclass(frozen=True)
class PlanPreference:
    """Requirements that a selected kernel must meet."""

    prefer_backend: BackendKind | None = None  # only kernels of this backend: NUMBA, TRITON or ATEN
    max_workspace_bytes: int | None = None  # only kernels that need no more scratch memory than this
    determinism: Determinism = Determinism.NOT_REQUIRED  # RUN_TO_RUN: only kernels that give the same bits in every run
    batch_invariant: bool = False  # only kernels whose bits of a row do not depend on how many other rows there are
    allow_tf32: bool = False  # whether products of f32 may be taken in TF32, which keeps 10 bits of 23
    effort: Effort = Effort.ESTIMATE  # MEASURE: time the candidates once and keep the fastest

    def __post_init__(self) -> None:
        for name, kind in (("prefer_backend", BackendKind), ("determinism", Determinism), ("effort", Effort)):
            value = getattr(self, name)  # the members' names are accepted too
            if isinstance(value, str) and value.upper() in kind.__members__:
                object.__setattr__(self, name, kind[value.upper()])
        wanted = {
            "prefer_backend": (BackendKind, type(None)),
            "max_workspace_bytes": (int, type(None)),
            "determinism": (Determinism,),
            "batch_invariant": (bool,),
            "allow_tf32": (bool,),
            "effort": (Effort,),
        }
        reasons = [
            Reason(ReasonCode.WRONG_TYPE, name, repr(getattr(self, name)), " or ".join(kind.__name__ for kind in kinds))
            for name, kinds in wanted.items()
            if not isinstance(getattr(self, name), kinds) or (kinds[0] is int and isinstance(getattr(self, name), bool))
        ]
        if not reasons and self.max_workspace_bytes is not None and self.max_workspace_bytes < 0:
            reasons = [Reason(ReasonCode.VALUE_OUT_OF_RANGE, "max_workspace_bytes", self.max_workspace_bytes, "at least 0")]
        if reasons:
            raise rejection(type(self).__name__, reasons)
