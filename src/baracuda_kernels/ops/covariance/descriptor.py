"""What is to be computed: how variables vary together, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from baracuda_kernels.core.descriptor import Descriptor, Shape, extents_not_negative
from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

__all__ = ["CovBackwardDescriptor", "CovDescriptor", "CovKind"]


class CovKind(Enum):
    COV = "cov"
    CORRCOEF = "corrcoef"


@dataclass(frozen=True)
class CovDescriptor(Descriptor):
    """The covariances, or correlations, of the rows of a matrix of `shape`: a row is a variable, a column an observation of all."""

    kind: CovKind
    shape: Shape
    element: ElementKind
    correction: int = 1  # subtracted from the number of observations to get the divisor; correlations do not depend on it
    fweights_element: ElementKind | None = None  # dtype of fweights; None without them
    has_aweights: bool = False  # whether there are weights of observations

    def check(self) -> Iterator[Reason]:
        if len(self.shape) > 2:
            yield Reason(ReasonCode.RANK, "shape", f"rank {len(self.shape)}", "a rank of at most 2")
        yield from extents_not_negative(shape=self.shape)
        if self.fweights_element not in (None, *LIMITS):
            wanted = " or ".join(map(str, LIMITS))
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "fweights_element", self.fweights_element, wanted)

    @property
    def variables(self) -> int:
        """How many rows there are."""
        return self.shape[0] if len(self.shape) == 2 else 1

    @property
    def observations(self) -> int:
        """How many columns there are."""
        return self.shape[-1] if self.shape else 1

    @property
    def weights_shape(self) -> Shape:
        return (self.observations,)

    @property
    def result_shape(self) -> Shape:
        return () if self.variables == 1 else (self.variables, self.variables)

    @property
    def has_fweights(self) -> bool:
        return self.fweights_element is not None

    @property
    def is_weighted(self) -> bool:
        return self.has_fweights or self.has_aweights


@dataclass(frozen=True)
class CovBackwardDescriptor(CovDescriptor):
    """The gradient of covariances, or of correlations, by the matrix of observations."""
