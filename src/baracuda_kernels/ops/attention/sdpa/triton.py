"""Attention on CUDA: what is launched for which problem, in which layouts. The bodies are in `triton_forward` and `triton_backward`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.attention.sdpa import tiles
from baracuda_kernels.ops.attention.sdpa.descriptor import AttentionShapes, SdpaBackwardDescriptor, SdpaDescriptor, slots_of
from baracuda_kernels.ops.attention.sdpa.tiles import HOPPER, Capability, SdpaBackwardTile, SdpaTile
from baracuda_kernels.ops.attention.sdpa.triton_backward import columns, columns_again, rows
from baracuda_kernels.ops.attention.sdpa.triton_forward import attend, mend_rows
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import MOST_REGISTERS, Argument, At, Count, Lent, Step, TritonLaunch

__all__ = ["backward", "backward_calls", "backward_exact", "forward", "forward_calls", "forward_exact"]

EXACT, TF32 = "ieee", "tf32"  # how f32 is multiplied; other elements are multiplied as they are
FAR = 1 << 23  # rows so many elements apart may be more than 2^31 from each other within a block
Layouts = Sequence[Layout | None]


def forward(problem: SdpaDescriptor, device: Device, tile: SdpaTile | None = None) -> Bind:
    """The kernel for a forward problem: bind(layouts of q, k, v, mask, y, attn) -> launch."""
    return _bound(device, lambda layouts: forward_calls(problem, layouts, TF32, tile, capability_of(device)))


def forward_exact(problem: SdpaDescriptor, device: Device) -> Bind:
    return _bound(device, lambda layouts: forward_calls(problem, layouts, EXACT, capability=capability_of(device)))


def backward(problem: SdpaBackwardDescriptor, device: Device, tile: SdpaBackwardTile | None = None) -> Bind:
    """The kernel for a backward problem: bind(layouts of q, k, v, attn, dy, dscores_ws, dq, dk, dv) -> launch."""
    rows, columns = tile or (None, None)
    return _bound(device, lambda layouts: backward_calls(problem, layouts, TF32, rows, columns, capability=capability_of(device)))


def backward_exact(problem: SdpaBackwardDescriptor, device: Device) -> Bind:
    return _bound(device, lambda layouts: backward_calls(problem, layouts, EXACT, capability=capability_of(device)))


def capability_of(device: Device) -> Capability:
    """The compute capability of a CUDA device; in the interpreter, that of the device everything was timed on."""
    return device.profile().capability if device.kind is DeviceKind.CUDA else HOPPER


def _bound(device: Device, calls: Callable[[Layouts], list[TritonLaunch]]) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *calls(layouts))

    return bind


def forward_calls(
    problem: SdpaDescriptor, layouts: Layouts, precision: str, tile: SdpaTile | None = None, capability: Capability = HOPPER
) -> list[TritonLaunch]:
    """What is launched for operands of these layouts; `tile` is for trying others than the chosen one."""
    chosen = tile or tiles.forward_tile(problem, precision == EXACT)
    attending = _in_forms(functools.partial(_forward_call, problem, layouts, precision, capability), chosen, precision)
    return [attending, *mend_calls(problem, layouts)]


def _forward_call(
    problem: SdpaDescriptor, layouts: Layouts, precision: str, capability: Capability, tile: SdpaTile
) -> TritonLaunch:
    q, k, v, mask, y, _ = layouts
    element = problem.element
    inner, width = _Features(problem.d_k, precision), _Features(problem.d_v, precision)
    blocks = -(-problem.query_len // tile.queries)
    return TritonLaunch(
        attend,
        problem.batch_size * problem.num_heads * blocks * width.parts,
        (
            *(At(place if layout is not None else 0, element) for place, layout in enumerate(layouts)),
            *_extents(problem, blocks),
            Count(problem.d_k, element),
            Count(problem.d_v, element),
            *(_steps(layout) for layout in (q, k, v)),
            mask_steps(mask),
            _steps(y),
        ),
        {
            **score_constants(problem, mask),
            **_numbers(problem, precision),
            **_shares(tile, inner, width),
            "ONCE": problem.key_len <= tile.keys,
            "WHOLE": _whole(problem, precision, tile, inner, width),
            "BY_THREAD": _in_registers(capability),
        },
        tile.warps,
        tile.registers,
    )


def _in_registers(capability: Capability) -> bool:
    """Where the tensor cores leave their sums; in later ones it is a memory of their own."""
    return capability[0] <= HOPPER[0]


def backward_calls(
    problem: SdpaBackwardDescriptor,
    layouts: Layouts,
    precision: str,
    tile: SdpaTile | None = None,
    columns_tile: SdpaTile | None = None,
    keep: bool | None = None,
    capability: Capability = HOPPER,
) -> list[TritonLaunch]:
    """Rows, then columns. With `keep` dscores is kept between them; otherwise, where all that share a key share a value, it is not."""
    _, _, v, _, _, _, _, dk, dv = layouts
    assert v is not None and dk is not None and dv is not None
    slots = slots_of(dk), slots_of(dv)
    again = precision != EXACT and slots[0] == slots[1] and (slots[1] == problem.kv_heads or v.stride[1] == 0)
    again = again and max(problem.d_k, problem.d_v) <= tiles.MOST_FEATURES and problem.element.size == 2
    keep = not again if keep is None else keep

    exact = precision == EXACT
    chosen = tile or tiles.rows_tile(problem, exact)
    by_rows = _in_forms(functools.partial(_rows_call, problem, layouts, precision, keep), chosen, precision)
    if not keep:
        chosen = columns_tile or tiles.columns_again_tile(problem, capability)
        build = functools.partial(_columns_again_call, problem, layouts, slots[0], precision)
        by_columns = _in_forms(build, chosen, precision)
        return [by_rows, by_columns if capability[0] == HOPPER[0] else replace(by_columns, registers=MOST_REGISTERS)]
    chosen = columns_tile or tiles.columns_tile(problem, exact)
    values = functools.partial(_columns_call, problem, (3, 4, 8), layouts, 1.0, precision)
    keys = functools.partial(_columns_call, problem, (5, 0, 7), layouts, problem.scale, precision)
    return [by_rows, *(_in_forms(build, chosen, precision) for build in (values, keys))]


def _rows_call(problem: SdpaBackwardDescriptor, layouts: Layouts, precision: str, keep: bool, tile: SdpaTile) -> TritonLaunch:
    _, k, v, _, dy, _, dq, _, _ = layouts
    element = problem.element
    inner, width = _Features(problem.d_v, precision), _Features(problem.d_k, precision)
    blocks = -(-problem.query_len // tile.queries)
    return TritonLaunch(
        rows,
        problem.batch_size * problem.num_heads * blocks * width.parts,
        (
            *(At(place, element) for place in (4, 2, 1, 3, 5)),
            At(0, element) if keep else _sums(problem),
            At(6, element),
            *_extents(problem, blocks),
            Count(problem.d_v, element),
            Count(problem.d_k, element),
            *(_steps(layout) for layout in (dy, v, k, dq)),
        ),
        {
            "SCALE": problem.scale,
            "KEEP": keep,
            **_numbers(problem, precision),
            **_shares(tile, inner, width),
            "ONCE": problem.key_len <= tile.keys,
            "WHOLE": _whole(problem, precision, tile, inner, width),
            "SUM_STAGES": tile.sum_stages,
        },
        tile.warps,
        tile.registers,
    )


def _columns_again_call(
    problem: SdpaBackwardDescriptor, layouts: Layouts, slots: int, precision: str, tile: SdpaTile
) -> TritonLaunch:
    q, _, v, _, dy, _, _, dk, dv = layouts
    element = problem.element
    inner, width = _Features(problem.d_v, precision), _Features(problem.d_k, precision)
    blocks = -(-problem.key_len // tile.keys)
    return TritonLaunch(
        columns_again,
        problem.batch_size * slots * blocks,
        (
            *(At(place, element) for place in (0, 2, 4, 3)),
            _sums(problem),
            At(7, element),
            At(8, element),
            *_column_extents(problem, blocks, slots),
            Count(problem.d_k, element),
            Count(problem.d_v, element),
            *(_steps(layout) for layout in (q, v, dy, dk, dv)),
        ),
        {
            "SCALE": problem.scale,
            **_numbers(problem, precision),
            "QUERIES": tile.queries,
            "KEYS": tile.keys,
            "CHUNK": inner.block,
            "OUT": width.block,
            "WHOLE": _whole(problem, precision, tile, inner, width),
            "STAGES": tile.stages,
        },
        tile.warps,
        tile.registers,
    )


def _columns_call(
    problem: SdpaBackwardDescriptor, places: tuple[int, int, int], layouts: Layouts, scale: float, precision: str, tile: SdpaTile
) -> TritonLaunch:
    """`places` of a matrix, of what it is multiplied with, and of the gradient."""
    x, out = layouts[places[1]], layouts[places[2]]
    assert out is not None
    element, features, slots = problem.element, out.shape[3], slots_of(out)
    width = _Features(features, precision)
    blocks = -(-problem.key_len // tile.keys)
    return TritonLaunch(
        columns,
        problem.batch_size * slots * blocks * width.parts if out.count else 0,
        (
            *(At(place, element) for place in places),
            *_column_extents(problem, blocks, slots),
            Count(features, element),
            _steps(x),
            _steps(out),
        ),
        {
            "SCALE": scale,
            **_numbers(problem, precision),
            "QUERIES": tile.queries,
            "KEYS": tile.keys,
            "OUT": width.block,
            "OUTS": width.parts,
            "WHOLE": _whole(problem, precision, tile, width),
            "STAGES": tile.stages,
        },
        tile.warps,
        tile.registers,
    )


def mend_calls(problem: SdpaDescriptor, layouts: Layouts) -> list[TritonLaunch]:
    """What hidden values have spoiled is summed again. A launch of its own: within the other, the compiler's loops got 1.5 times slower."""
    _, _, v, mask, y, _ = layouts
    if mask is None and not problem.is_causal:
        return []  # nothing is hidden
    width = _Features(problem.d_v, TF32)
    blocks = -(-problem.query_len // tiles.MENDED)
    hiding = score_constants(problem, mask)
    call = TritonLaunch(
        mend_rows,
        problem.batch_size * problem.num_heads * blocks * width.parts,
        (
            *(At(place, problem.element) for place in (4, 5, 2, 5 if mask is None else 3)),
            *_extents(problem, blocks),
            Count(problem.d_v, problem.element),
            _steps(v),
            mask_steps(mask),
            _steps(y),
        ),
        {name: hiding[name] for name in ("CAUSAL", "MASKED", "MASK_CONTIGUOUS")}
        | {"ACC": sums_type(problem), "QUERIES": tiles.MENDED, "OUT": width.block, "OUTS": width.parts},
        registers=MOST_REGISTERS,
    )
    return [call]


# --- what the calls share ------------------------------------------------------------------------------------------------------------


def _in_forms(build: Callable[[SdpaTile], TritonLaunch], tile: SdpaTile, precision: str) -> TritonLaunch:
    """The call for operands that allow vectors, and the one for any others; what is exact is the same code, and bits, for all."""
    call = build(tile)
    if precision == EXACT:
        return replace(call, arguments=tuple(map(_without_vectors, call.arguments)), registers=MOST_REGISTERS)
    return replace(call, otherwise=replace(build(tiles.WITHOUT_VECTORS), registers=MOST_REGISTERS))


def _without_vectors(argument: Argument) -> Argument:
    if isinstance(argument, tuple):
        return tuple(map(_without_vectors, argument))
    return replace(argument, element=None) if isinstance(argument, Step) else argument


class _Features:
    """An axis of features, `block` at a time, in that many `parts`."""

    def __init__(self, extent: int, precision: str) -> None:
        self.block = tiles.features(extent, precision == EXACT)
        self.parts = max(1, -(-extent // self.block))
        self.is_whole = extent == self.block


def _whole(problem: AttentionShapes, precision: str, tile: SdpaTile, *features: _Features) -> bool:
    """Whether no block reaches past the end. What is exact is the same code for any number of queries."""
    return (
        precision != EXACT
        and problem.query_len % tile.queries == 0
        and problem.key_len % tile.keys == 0
        and problem.key_len > 0
        and all(axis.is_whole for axis in features)
    )


def _shares(tile: SdpaTile, inner: _Features, width: _Features) -> dict[str, Any]:
    return {
        "QUERIES": tile.queries,
        "KEYS": tile.keys,
        "CHUNK": inner.block,
        "CHUNKS": inner.parts,
        "OUT": width.block,
        "OUTS": width.parts,
        "STAGES": tile.stages if inner.parts == 1 else 1,  # only innermost loops read ahead
    }


def _numbers(problem: AttentionShapes, precision: str) -> dict[str, Any]:
    return {"PRECISION": precision, "ACC": sums_type(problem)}


def score_constants(problem: SdpaDescriptor, mask: Layout | None) -> dict[str, Any]:
    powers = problem.element.size == 2
    return {
        "SCALE": problem.scale * math.log2(math.e) if powers else problem.scale,
        "POWERS": powers,
        "CAUSAL": problem.is_causal,
        "MASKED": mask is not None,
        "MASK_CONTIGUOUS": mask is not None and mask.stride[3] == 1,
    }


def sums_type(problem: AttentionShapes) -> str:
    return "tl.float64" if problem.element is ElementKind.F64 else "tl.float32"


def _extents(problem: AttentionShapes, blocks: int) -> tuple[Step, ...]:
    """Blocks, heads, heads to a group, queries and keys."""
    group = problem.num_heads // max(problem.kv_heads, 1)
    return (*map(Count, (blocks, problem.num_heads, group, problem.query_len)), _row_step(problem.key_len, problem.element))


def _column_extents(problem: AttentionShapes, blocks: int, slots: int) -> tuple[Step, ...]:
    """Blocks, heads, slots, heads to a slot, queries and keys."""
    extents = (blocks, problem.num_heads, slots, problem.num_heads // slots if slots else 0, problem.query_len)
    return (*map(Count, extents), _row_step(problem.key_len, problem.element))


def _sums(problem: AttentionShapes) -> At | Lent:
    """One number of every query; where there is none, any address will do."""
    return Lent(0, ElementKind.F32) if tiles.workspace_bytes(problem) else At(0, problem.element)


def _steps(layout: Layout | None) -> tuple[Step, ...]:
    """Along batch, heads and rows; of an axis of extent 1 they mean nothing."""
    assert layout is not None
    batch, head, row = (step if extent > 1 else 0 for extent, step in zip(layout.shape[:3], layout.stride, strict=False))
    return Step(batch, layout.element), Step(head, layout.element), _row_step(row, layout.element)


def _row_step(step: int, element: ElementKind) -> Step:
    """A row stride, in 32 bits if offsets within a block of rows fit."""
    return (Count if abs(step) < FAR else Step)(step, element)


def mask_steps(layout: Layout | None) -> tuple[Step, ...]:
    """The strides of a mask, which do not limit the vectors of other operands."""
    return tuple(map(Step, layout.stride if layout is not None else (0, 0, 0, 0)))
