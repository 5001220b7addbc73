"""What is to be computed: a state-space recurrence with one scalar decay per head, and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baracuda_kernels.core.descriptor import InBatches, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.reason import Reason, ReasonCode

_HALVES = (ElementKind.F16, ElementKind.BF16)


@dataclass(frozen=True)
class SsdChunkScanDescriptor(InBatches):
    """h[t] = exp(dt[t] A) h[t-1] + dt[t] x[t] ⊗ B[t], y[t] = h[t] C[t], in chunks of about `chunk_size` steps."""

    batch_size: int
    seq_len: int
    num_heads: int
    head_dim: int  # rows of a head's state
    state_dim: int  # columns of a head's state
    chunk_size: int  # steps from one stored state to the next, at least 1; a request, which a kernel may round
    element: ElementKind
    dt_element: ElementKind | None = None  # of dt, a and their gradients; by default `element`, else f32 beside f16 or bf16
    num_groups: int | None = None  # of b and c, a divisor of num_heads; by default one for each head
    has_initial_state: bool = False  # whether a state enters; else it is zero
    has_final_state: bool = False  # whether the last state is wanted, or its gradient given

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(
            batch_size=self.batch_size,
            seq_len=self.seq_len,
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            state_dim=self.state_dim,
        )
        if self.chunk_size < 1:
            yield Reason(ReasonCode.VALUE_OUT_OF_RANGE, "chunk_size", self.chunk_size, "at least 1")
        if self.dt_element not in (None, self.element) and not (self.dt_element is ElementKind.F32 and self.element in _HALVES):
            wanted = f"{self.element}, or f32 beside a 16-bit float"
            yield Reason(ReasonCode.INCONSISTENT, "dt_element", self.dt_element, wanted)
        if self.num_groups is not None and (self.num_groups < 1 or self.num_heads % self.num_groups):
            wanted = f"a divisor of the {self.num_heads} heads"
            yield Reason(ReasonCode.INCONSISTENT, "num_groups", self.num_groups, wanted)

    @property
    def groups(self) -> int:
        return self.num_heads if self.num_groups is None else self.num_groups

    @property
    def heads_per_group(self) -> int:
        return self.num_heads // max(self.groups, 1)

    @property
    def step_element(self) -> ElementKind:
        """The dtype of dt and a."""
        return self.element if self.dt_element is None else self.dt_element

    @property
    def state_element(self) -> ElementKind:
        return ElementKind.F64 if self.element is ElementKind.F64 else ElementKind.F32

    @property
    def x_shape(self) -> Shape:
        return (self.batch_size, self.seq_len, self.num_heads, self.head_dim)

    @property
    def dt_shape(self) -> Shape:
        return (self.batch_size, self.seq_len, self.num_heads)

    @property
    def a_shape(self) -> Shape:
        return (self.num_heads,)

    @property
    def b_shape(self) -> Shape:
        return (self.batch_size, self.seq_len, self.groups, self.state_dim)

    @property
    def state_shape(self) -> Shape:
        return (self.batch_size, self.num_heads, self.head_dim, self.state_dim)


@dataclass(frozen=True)
class SsdChunkScanBackwardDescriptor(SsdChunkScanDescriptor):
    """The gradients of the scan. States are recomputed from the inputs; no forward output is read."""
