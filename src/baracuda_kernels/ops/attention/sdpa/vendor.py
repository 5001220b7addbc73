"""Attention with cuBLAS's products, through PyTorch; scores become weights, or their gradients, in place between them.

PyTorch copies matrices that cuBLAS does not take as they lie, so where there are such, or nothing to multiply, the products are
those of the Triton kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.ops.attention.sdpa import tiles, triton
from baracuda_kernels.ops.attention.sdpa.descriptor import AttentionShapes, SdpaBackwardDescriptor, SdpaDescriptor, slots_of
from baracuda_kernels.ops.attention.sdpa.triton_backward import dscores_rows
from baracuda_kernels.ops.attention.sdpa.triton_forward import softmax_rows
from baracuda_kernels.targets.aten import as_torch, exactly_on
from baracuda_kernels.targets.cuda.runtime.launcher import Queued, launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, Count, TritonLaunch

__all__ = ["backward", "forward"]

Q, K, V, MASK, Y, ATTN = range(6)  # of a forward
WEIGHTS, DY, DSCORES, DQ, DK, DV = range(3, 9)  # of a backward, after q, k and v


def forward(problem: SdpaDescriptor) -> Bind:
    """The kernel for a forward problem: bind(layouts of q, k, v, mask, y, attn) -> launch."""

    def steps(layouts: Sequence[Layout]) -> list[Step]:
        slots = problem.kv_heads
        return [
            *_products(problem, layouts, (Q, False), (K, True), ATTN, slots),
            _softmax_call(problem, layouts),
            *_products(problem, layouts, (ATTN, False), (V, False), Y, slots),
            *triton.mend_calls(problem, layouts),
        ]

    return _bound(
        steps,
        lambda layouts, device: triton.forward_calls(problem, layouts, triton.EXACT, capability=triton.capability_of(device)),
        (MASK,),
    )


def backward(problem: SdpaBackwardDescriptor) -> Bind:
    """The kernel for a backward problem: bind(layouts of q, k, v, attn, dy, dscores_ws, dq, dk, dv) -> launch."""

    def steps(layouts: Sequence[Layout]) -> list[Step]:
        slots = problem.kv_heads
        return [
            *_products(problem, layouts, (DY, False), (V, True), DSCORES, slots),
            _dscores_call(problem),
            *_products(problem, layouts, (DSCORES, False), (K, False), DQ, slots),
            *_products(problem, layouts, (DSCORES, True), (Q, False), DK, slots_of(layouts[DK])),
            *_products(problem, layouts, (WEIGHTS, True), (DY, False), DV, slots_of(layouts[DV])),
        ]

    precision = triton.EXACT if problem.element.size > 2 else triton.TF32
    return _bound(
        steps,
        lambda layouts, device: triton.backward_calls(problem, layouts, precision, capability=triton.capability_of(device)),
    )


def _softmax_call(problem: SdpaDescriptor, layouts: Sequence[Layout | None]) -> TritonLaunch:
    """Products of queries and keys become weights."""
    _, _, _, mask, _, _ = layouts
    block = tiles.row_block(problem.key_len)
    return TritonLaunch(
        softmax_rows,
        problem.batch_size * problem.num_heads * problem.query_len,
        (
            At(5, problem.element),
            At(5 if mask is None else 3, problem.element),
            *map(Count, (problem.num_heads, problem.query_len)),
            Count(problem.key_len, problem.element),
            triton.mask_steps(mask),
        ),
        {**triton.score_constants(problem, mask), "ACC": triton.sums_type(problem), "KEYS": block},
        tiles.row_warps(block),
    )


def _dscores_call(problem: SdpaBackwardDescriptor) -> TritonLaunch:
    """Gradients of weights become those of scores, scaled."""
    block = tiles.row_block(problem.key_len)
    return TritonLaunch(
        dscores_rows,
        problem.batch_size * problem.num_heads * problem.query_len,
        (At(3, problem.element), At(5, problem.element), Count(problem.key_len, problem.element)),
        {"SCALE": problem.scale, "ACC": triton.sums_type(problem), "KEYS": block},
        tiles.row_warps(block),
    )


# --- products and calls in turn ----------------------------------------------------------------------------------------------------


class ScratchMatrices(NamedTuple):
    """Some matrices of an operand, as PyTorch's bmm takes them."""

    operand: int
    shape: tuple[int, int, int]
    stride: tuple[int, int, int]
    offset: int
    transposed: bool

    def of(self, tensors: Sequence[Any]) -> Any:
        whole = tensors[self.operand]
        view = whole.as_strided(self.shape, self.stride, whole.storage_offset() + self.offset)
        return view.transpose(1, 2) if self.transposed else view


class Product(NamedTuple):
    left: ScratchMatrices
    right: ScratchMatrices
    out: ScratchMatrices
    adds: bool  # to what is there

    def __call__(self, tensors: Sequence[Any]) -> None:
        left, right, out = (matrices.of(tensors) for matrices in self[:3])
        if self.adds:
            out.baddbmm_(left, right)
        else:
            torch.bmm(left, right, out=out)


Step = Product | TritonLaunch


class ProductsInTurn:
    """Products and Triton calls, one after the other on the same stream."""

    def __init__(self, steps: Sequence[Product | Queued], layouts: Sequence[Layout | None]) -> None:
        self.steps = steps
        multiplied = {matrices.operand for step in steps if isinstance(step, Product) for matrices in step[:3]}
        self.layouts = [layout if place in multiplied else None for place, layout in enumerate(layouts)]

    def get_ready(self) -> None:
        for step in self.steps:
            if isinstance(step, Queued):
                step.get_ready()

    def __call__(self, addresses: tuple[int, ...], workspace: int, stream: Stream) -> None:
        # All are compiled before the first is queued: where a capture refuses one, nothing has been written.
        forms = [step if isinstance(step, Product) else step.form_for(addresses, workspace, stream) for step in self.steps]
        with exactly_on(stream):
            tensors = as_torch(addresses, self.layouts)
            for form in forms:
                if isinstance(form, Product):
                    form(tensors)
                else:
                    form.launch(addresses, workspace, stream)


def _bound(steps: Callable[..., list[Step]], otherwise: Callable[..., list[TritonLaunch]], others: tuple[int, ...] = ()) -> Bind:
    """`others` are operands that are not multiplied."""

    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        matrices = [layout for place, layout in enumerate(layouts) if layout is not None and place not in others]
        device = matrices[0].device
        if not all(map(_is_taken, matrices)):
            return launcher(device, *otherwise(layouts, device))
        return ProductsInTurn([step if isinstance(step, Product) else Queued(device, step) for step in steps(layouts)], layouts)

    return bind


def _is_taken(layout: Layout) -> bool:
    """Whether cuBLAS takes its matrices as they lie: rows apart from each other, elements contiguous, and no negative strides."""
    (_, _, rows, cols), (*outer, row, col) = layout.shape, layout.stride
    apart = rows <= 1 or row >= cols
    return layout.count > 0 and apart and (cols == 1 or col == 1) and min(*outer, row) >= 0


def _products(
    problem: AttentionShapes, layouts: Sequence[Layout], left: tuple[int, bool], right: tuple[int, bool], out: int, slots: int
) -> Iterator[Product]:
    """out = left right for all heads. Those that share one of `slots` come one after the other, and add up where they write there."""
    places = (left[0], right[0], out)
    together = all(_batches_join(layouts[place]) for place in places)
    for member in range(problem.num_heads // slots):
        for batch in range(1 if together else problem.batch_size):
            a, b, c = (
                _matrices(layouts[place], place, slots, member, None if together else batch, transposed)
                for place, transposed in (left, right, (out, False))
            )
            yield Product(a, b, c, adds=member > 0 and slots_of(layouts[out]) == slots)


def _batches_join(layout: Layout) -> bool:
    batch, head = layout.stride[:2]
    return layout.shape[0] == 1 or batch == head * layout.shape[1]


def _matrices(layout: Layout, operand: int, slots: int, member: int, batch: int | None, transposed: bool) -> ScratchMatrices:
    """One head's matrix of every slot, in one batch or in all."""
    (batches, heads, rows, cols), (batch_step, head_step, row_step, _) = layout.shape, layout.stride
    each = heads // slots
    count = slots if batch is not None else slots * batches
    offset = (batch or 0) * batch_step + (member * head_step if each > 1 else 0)
    return ScratchMatrices(operand, (count, rows, cols), (each * head_step, row_step if rows > 1 else cols, 1), offset, transposed)
