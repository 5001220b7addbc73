"""Rotary embedding on CUDA: one pass over memory, the backward being the forward with the sines' sign turned.

A program takes some positions and some pairs of features. It makes their cosines and sines once and applies them to a group of
the heads that share the positions, those of all batches unless each batch has positions of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.attention.rope.angles import cos_sin, frequency
from baracuda_kernels.ops.attention.rope.descriptor import RopeDescriptor, RopeStyle
from baracuda_kernels.ops.attention.rope.frequencies import turns_by_digit
from baracuda_kernels.ops.attention.rope.tiles import RopeTile, tile_for
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import At, Count, Step, TritonLaunch, is_wide
from baracuda_kernels.targets.cuda.tiles import power_of_two
from baracuda_kernels.targets.cuda.triton.indexing import offset
from baracuda_kernels.targets.geometry import Dim, collapse

__all__ = ["backward", "forward"]


@triton.jit
def rotate(
    x, positions, y, rows, heads, pairs, rotated, width, each,
    row_extents, position_steps, x_row_steps, y_row_steps, head_extents, x_head_steps, y_head_steps, factors,
    BACKWARD: tl.constexpr, INTERLEAVED: tl.constexpr, GIVEN: tl.constexpr, RISING: tl.constexpr, SHIFT: tl.constexpr,
    ACC: tl.constexpr, HEADS: tl.constexpr, ROWS: tl.constexpr, PAIRS: tl.constexpr, PAIR_BLOCKS: tl.constexpr,
    TAIL: tl.constexpr, TOGETHER: tl.constexpr, STAGES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """`rows` are positions, `heads` are all that share them, `each` as many as a program takes. x and y may be the same memory."""
    program = tl.program_id(0)
    row_blocks = tl.cdiv(rows, ROWS).to(tl.int32)
    pair_block = program % PAIR_BLOCKS
    row = (program // PAIR_BLOCKS % row_blocks).to(tl.int64 if WIDE else tl.int32) * ROWS + tl.arange(0, ROWS)
    first_head = (program // PAIR_BLOCKS // row_blocks).to(tl.int64 if WIDE else tl.int32) * each
    pair = pair_block * PAIRS + tl.arange(0, PAIRS)

    if GIVEN:
        position = tl.load(positions + offset(row, row_extents, position_steps), mask=row < rows, other=0)
    else:
        position = row.to(tl.int64)
    high, low = frequency(pairs - 1 - pair if RISING else pair, factors, SHIFT)
    cos, sin = cos_sin(position[:, None], high[None, :], low[None, :], BACKWARD, ACC)
    cos, sin = cos[None, :, :], sin[None, :, :]

    x_row = offset(row, row_extents, x_row_steps)[None, :, None]
    y_row = offset(row, row_extents, y_row_steps)[None, :, None]
    present = (row < rows)[None, :, None]
    if INTERLEAVED:
        place = (pair_block * (2 * PAIRS) + tl.arange(0, 2 * PAIRS))[None, None, :]
        inside = present & (place < rotated)
    else:
        place = pair[None, None, :]
        inside = present & (place < pairs)
    for start in tl.range(first_head, tl.minimum(first_head + each, heads), TOGETHER * HEADS, num_stages=STAGES):
        first, second = (), ()  # loads come before all else, so that those of several heads are under way at a time
        for turn in tl.static_range(TOGETHER):
            head = _heads(start + turn * HEADS, HEADS)
            source = x + (offset(head, head_extents, x_head_steps) + x_row) + place
            first += (tl.load(source, mask=inside & (head < heads)),)  # type: ignore[assignment]
            if not INTERLEAVED:
                second += (tl.load(source + pairs, mask=inside & (head < heads)),)  # type: ignore[assignment]
        for turn in tl.static_range(TOGETHER):
            head = _heads(start + turn * HEADS, HEADS)
            target = y + (offset(head, head_extents, y_head_steps) + y_row) + place
            if INTERLEAVED:
                a, b = tl.split(tl.reshape(first[turn], (HEADS, ROWS, PAIRS, 2)))
                a, b = _turned(a, b, cos, sin, ACC)
                tl.store(target, tl.reshape(tl.join(a, b), (HEADS, ROWS, 2 * PAIRS)), mask=inside & (head < heads))
            else:
                a, b = _turned(first[turn], second[turn], cos, sin, ACC)
                tl.store(target, a, mask=inside & (head < heads))
                tl.store(target + pairs, b, mask=inside & (head < heads))
        if TAIL > 0:  # the blocks of pairs share the features that are copied
            for turn in tl.static_range(TOGETHER):
                head = _heads(start + turn * HEADS, HEADS)
                source = x + (offset(head, head_extents, x_head_steps) + x_row)
                target = y + (offset(head, head_extents, y_head_steps) + y_row)
                for begin in range(rotated + pair_block * TAIL, width, PAIR_BLOCKS * TAIL):
                    rest = (begin + tl.arange(0, TAIL))[None, None, :]
                    copied = tl.load(source + rest, mask=present & (head < heads) & (rest < width))
                    tl.store(target + rest, copied, mask=present & (head < heads) & (rest < width))


@triton.jit
def _heads(start, HEADS: tl.constexpr):
    return (start + tl.arange(0, HEADS))[:, None, None]


@triton.jit
def _turned(a, b, cos, sin, ACC: tl.constexpr):
    """A pair turned by its angle; which product is rounded by itself is said here, not left to the compiler."""
    wide_a, wide_b = a.to(ACC), b.to(ACC)
    return tl.fma(wide_a, cos, wide_b * sin * -1.0).to(a.dtype), tl.fma(wide_b, cos, wide_a * sin).to(a.dtype)


# --- launching ---------------------------------------------------------------------------------------------------------------


def forward(problem: RopeDescriptor, device: Device, tile: RopeTile | None = None) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, positions, y) -> launch."""
    return _kernel("forward", problem, device, tile)


def backward(problem: RopeDescriptor, device: Device, tile: RopeTile | None = None) -> Bind:
    """The kernel for a backward problem: bind(layouts of dy, positions, dx) -> launch."""
    return _kernel("backward", problem, device, tile)


def _kernel(direction: str, problem: RopeDescriptor, device: Device, tile: RopeTile | None) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *calls(direction, problem, [layout and layout.stride for layout in layouts], tile))

    return bind


def calls(direction: str, problem: RopeDescriptor, strides: Sequence[Any], tile: RopeTile | None = None) -> list[TritonLaunch]:
    """What is launched for operands of these strides, positions None if left out; `tile` is for trying others than the chosen one."""
    shape, element, pairs = problem.input_shape, problem.element, problem.rotated // 2
    if 0 in shape:
        return []
    x, given, y = strides
    shared = given is None or len(given) == 1 or shape[0] == 1 or given[0] == 0
    row_axes, head_axes = ((2,), (0, 1)) if shared else ((0, 2), (1,))
    position_stride = (0, 0, 0) if given is None else (0 if shared else given[0], 0, given[-1])
    row_extents, row_steps = _over(row_axes, shape, (position_stride, x, y), (None, element, element))
    head_extents, head_steps = _over(head_axes, shape, (x, y), (element, element))
    rows, heads = (math.prod(shape[axis] for axis in axes) for axes in (row_axes, head_axes))
    factors, shift = turns_by_digit(problem.base, problem.rotated)
    interleaved = problem.style is RopeStyle.INTERLEAVED
    chosen = tile or tile_for(element, interleaved, heads, rows, pairs)
    pair_blocks, tail = -(-pairs // chosen.pairs), problem.head_dim - problem.rotated

    def call(used: RopeTile) -> TritonLaunch:
        return TritonLaunch(
            rotate,
            pair_blocks * -(-rows // used.positions) * -(-heads // used.each),
            (
                At(0, element),
                At(0, element) if given is None else At(1, ElementKind.I64),
                At(2, element),
                Count(rows),
                Count(heads),
                Count(pairs, None if interleaved else element),
                Count(problem.rotated, element),
                Count(problem.head_dim, element),
                Count(used.each),
                row_extents,
                *row_steps,
                head_extents,
                *head_steps,
                tuple(Step(word) for factor in factors for word in _words(factor)),
            ),
            {
                "BACKWARD": direction == "backward",
                "INTERLEAVED": interleaved,
                "GIVEN": given is not None,
                "RISING": problem.base < 1,
                "SHIFT": shift,
                "ACC": "tl.float64" if element.size == 8 else "tl.float32",
                "HEADS": used.heads,
                "ROWS": used.positions,
                "PAIRS": used.pairs,
                "PAIR_BLOCKS": pair_blocks,
                "TAIL": min(power_of_two(tail), 2 * used.pairs) if tail else 0,
                "TOGETHER": used.together,
                "STAGES": used.stages,
                "WIDE": is_wide(rows) or is_wide(heads),
            },
            used.warps,
        )

    # Where every element has an address of its own, registers are short: one load at a time.
    slow = chosen._replace(together=1, steps=chosen.steps * chosen.together)
    return [replace(call(chosen), otherwise=call(slow))]


def _over(
    axes: Sequence[int], shape: Sequence[int], strides: Sequence[Sequence[int]], elements: Sequence[ElementKind | None]
) -> tuple[tuple[Count, ...], list[tuple[Step, ...]]]:
    """Extents over these axes and each operand's steps, as `offset` takes them; vector loads are of operands with an element."""
    merged = collapse([shape[axis] for axis in axes], [[stride[axis] for axis in axes] for stride in strides])
    dims = merged[::-1] or [Dim(1, (0,) * len(strides))]
    steps = [tuple(Step(dim.steps[operand], element) for dim in dims) for operand, element in enumerate(elements)]
    return tuple(Count(dim.extent) for dim in dims), steps


def _words(factor: int) -> list[int]:
    """128 bits as two words, high and low, as signed numbers."""
    return [word - (1 << 64) if word >> 63 else word for word in (factor >> 64, factor & ((1 << 64) - 1))]
