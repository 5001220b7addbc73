"""The scan on CUDA: what is launched for which problem, in which layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.attention.ssd import tiles
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.tiles import Cut, SsdTile
from baracuda_kernels.ops.attention.ssd.triton_forward import pass_states, prepare, recur, walk
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import Argument, At, Count, Lent, Step, TritonLaunch, is_wide

_PRECISIONS = {ElementKind.F16: "tf32", ElementKind.F32: "tf32x3"}  # of products with f32 operands

__all__ = ["forward", "forward_calls", "forward_walk"]


def forward(problem: SsdChunkScanDescriptor, device: Device, tile: SsdTile | None = None) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, dt, a, b, c, initial_state, y, final_state) -> launch."""
    return _forward(problem, device, None, tile)


def forward_walk(problem: SsdChunkScanDescriptor, device: Device) -> Bind:
    """The same in one piece: what is computed for a sequence does not depend on how many there are."""
    return _forward(problem, device, tiles.IN_ONE_PIECE)


def _forward(problem: SsdChunkScanDescriptor, device: Device, cut: Cut | None, tile: SsdTile | None = None) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *forward_calls(problem, layouts, tile, cut))

    return bind


def forward_calls(
    problem: SsdChunkScanDescriptor, layouts: Sequence[Layout | None], tile: SsdTile | None = None, cut: Cut | None = None
) -> list[TritonLaunch]:
    """What is launched for operands of these layouts; `cut` and `tile` are for trying others than the chosen ones."""
    if cut is None:
        chosen, cut = tiles.forward_choice(problem)
        tile = tile or chosen
    elif tile is None:
        tile = tiles.forward_tile(problem, cut.is_prepared)
    sequences, size = problem.batch_size * problem.num_heads, problem.head_dim * problem.state_dim
    if sequences * problem.head_dim == 0:
        return []
    x, dt, a, b, c, initial, y, final = layouts
    assert dt is not None and a is not None
    element, sums, ends, room = problem.element, problem.state_element, cut.segments - 1, tiles.room(problem, tile, cut)
    unused = At(0, element)  # x stands in for what is neither read nor written
    states, decays = (Lent(room.states, sums), Lent(room.decays, sums)) if ends else (unused, unused)
    prepared = (Lent(room.prepared, sums), Lent(room.kept, sums)) if cut.is_prepared else (unused, unused)
    state_steps = _steps(sums, problem.num_heads * ends * size, ends * size, problem.state_dim, size)
    span, strips = tiles.segment_span(problem, tile, cut.segments), tiles.strip_count(problem, tile)
    precision = {"ACC": f"tl.float{8 * sums.size}", "PRECISE": element is ElementKind.F32}

    def common(segments: int, strips: int) -> tuple[Argument, ...]:
        return (
            *(At(0, element), At(1, dt.element), At(2, a.element), At(3, element), At(4, element)),
            *(At(5, sums) if initial else unused, states, At(6, element)),
            *(Count(problem.seq_len), Count(problem.num_heads), Count(problem.heads_per_group)),
            *(Count(problem.head_dim, element), Count(problem.state_dim, element)),
            *(Count(segments), Count(span, element), Count(strips), int(initial is not None)),
            *(_row_steps(x, element), _plain(dt), Step(a.stride[0]), _row_steps(b, element), _row_steps(c, element)),
            *(_state_steps(initial, sums), state_steps, _row_steps(y, element)),
        )

    def walks(outputs: bool, segments: int) -> TritonLaunch:
        target = ((At(7, sums) if final else unused), _state_steps(final, sums)) if outputs else (states, state_steps)

        def form(tile: SsdTile, is_prepared: bool, is_whole: bool) -> TritonLaunch:
            constants = {
                **precision,
                "OUTPUTS": outputs,
                "PRECISION": _PRECISIONS.get(element, "ieee"),
                "WHOLE": is_whole,
                "PREPARED": is_prepared,
                "TURNED": element is ElementKind.BF16,
                "CHUNK": tile.chunk,
                "COLS": tile.cols,
                "STATES": tiles.padded(problem.state_dim) // tile.pieces,
                "PIECES": tile.pieces,
                "STAGES": tile.stages,
            }
            strips = tiles.strip_count(problem, tile)
            arguments = (*common(segments, strips), target[0], decays, *prepared, int(final is not None), target[1])
            return TritonLaunch(walk, sequences * segments * strips, arguments, constants, tile.warps)

        whole = form(tile, cut.is_prepared, tiles.is_whole(problem, tile.cols))
        return replace(whole, otherwise=form(tiles.scalar_tile(problem), False, False))

    is_double = element is ElementKind.F64
    recurring = TritonLaunch(
        recur,
        sequences * cut.segments * strips if problem.seq_len or is_double else 0,
        (*common(cut.segments, strips), At(7, sums) if final else unused, int(final is not None), _state_steps(final, sums)),
        {
            **precision,
            "REPAIR": not is_double,
            "COLS": tile.cols,
            "STATES": tiles.padded(problem.state_dim),
            "STAGES": tile.stages if is_double else 1,
        },
        tiles.RECUR_WARPS,
    )
    if is_double:
        return [recurring]
    head_blocks, state_blocks = -(-problem.num_heads // tiles.PREPARED_HEADS), -(-size // tiles.PASS_BLOCK)
    preparing = TritonLaunch(
        prepare,
        problem.batch_size * tiles.chunk_count(problem, tile) * head_blocks * cut.is_prepared,
        (At(1, dt.element), At(2, a.element), *prepared, Count(problem.seq_len), Count(problem.num_heads), Count(head_blocks),
         _plain(dt), Step(a.stride[0])),
        {**precision, "CHUNK": tile.chunk, "HEADS": tiles.PREPARED_HEADS},
    )  # fmt: skip
    passing = TritonLaunch(
        pass_states,
        sequences * state_blocks if ends > 1 else 0,
        (states, decays, Count(ends), Count(size, sums), Count(state_blocks)),
        {"BLOCK": tiles.PASS_BLOCK, "STAGES": tiles.PASS_STAGES},
    )
    return [call for call in (preparing, walks(False, ends), passing, walks(True, cut.segments), recurring) if call.blocks]


def _steps(element: ElementKind, *steps: int) -> tuple[Step, ...]:
    return tuple(Step(step, element) for step in steps)


def _row_steps(layout: Any, element: ElementKind) -> tuple[Step, ...]:
    """The steps of batch, position and head."""
    batch, position, head = _steps(element, *layout.stride[:3])
    return batch, position if is_wide(tiles.MOST_STEPS * position.value) else Count(position.value, element), head


def _plain(layout: Any) -> tuple[Step, ...]:
    return tuple(Step(step) for step in layout.stride)


def _state_steps(layout: Layout | None, element: ElementKind) -> tuple[Step, ...]:
    """The steps of batch, head and row of a state; there is one segment."""
    return _steps(element, *((0, 0, 0) if layout is None else layout.stride[:3]), 0)
