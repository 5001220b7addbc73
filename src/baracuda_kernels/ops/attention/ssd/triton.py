"""The scan on CUDA: what is launched for which problem, in which layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.gpu.call import At, Call, Count, Lent, Step
from baracuda_kernels.gpu.launch import launcher
from baracuda_kernels.ops.attention.ssd import tiles
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.tiles import Tile
from baracuda_kernels.ops.attention.ssd.triton_forward import pass_states, walk

__all__ = ["forward", "forward_calls", "forward_walk"]


def forward(problem: SsdChunkScanDescriptor, device: Device) -> Bind:
    """The kernel for a forward problem: bind(layouts of x, dt, a, b, c, initial_state, y, final_state) -> launch."""
    return _forward(problem, device, None)


def forward_walk(problem: SsdChunkScanDescriptor, device: Device) -> Bind:
    """The same, in one piece: what is computed for a sequence does not depend on how many there are."""
    return _forward(problem, device, 1)


def _forward(problem: SsdChunkScanDescriptor, device: Device, segments: int | None) -> Bind:
    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *forward_calls(problem, layouts, segments=segments))

    return bind


def forward_calls(
    problem: SsdChunkScanDescriptor, layouts: Sequence[Layout | None], tile: Tile | None = None, segments: int | None = None
) -> list[Call]:
    """What is launched for operands of these layouts; `tile` and `segments` are for trying others than the chosen ones."""
    tile = tile or tiles.forward_tile(problem)
    segments = segments or tiles.segment_count(problem, tile)
    span = tiles.segment_span(problem, tile, segments)
    sequences, size = problem.batch_size * problem.num_heads, problem.head_dim * problem.state_dim
    if sequences * problem.head_dim == 0:
        return []
    x, dt, a, b, c, initial, y, final = layouts
    assert dt is not None and a is not None
    element, sums, kept = problem.element, problem.state_element, segments - 1
    unused = At(0, element)  # x stands in for what is neither read nor written
    slots = Lent(0, sums) if kept else unused
    decays = Lent(sequences * kept * size * sums.size, sums) if kept else unused
    slot_steps = _steps(sums, problem.num_heads * kept * size, kept * size, problem.state_dim, size)

    def walks(outputs: bool, count: int) -> Call:
        strips = tiles.strip_count(problem, tile)
        return Call(
            walk,
            sequences * count * strips,
            (
                *(At(0, element), At(1, dt.element), At(2, a.element), At(3, element), At(4, element)),
                *(At(5, sums) if initial else unused, slots, At(6, element)),
                *((At(7, sums) if final else unused) if outputs else slots, decays),
                *(Count(problem.seq_len), Count(problem.num_heads), Count(problem.heads_per_group)),
                *(Count(problem.head_dim, element), Count(problem.state_dim, element), Count(count), Count(span), Count(strips)),
                *(int(initial is not None), int(final is not None)),
                *(_row_steps(x, element), _plain(dt), Step(a.stride[0]), _row_steps(b, element), _row_steps(c, element)),
                *(_state_steps(initial, sums), slot_steps, _row_steps(y, element)),
                _state_steps(final, sums) if outputs else slot_steps,
            ),
            {
                "OUTPUTS": outputs,
                "ACC": f"tl.float{8 * sums.size}",
                "PRECISION": "tf32" if element is ElementKind.F16 else "ieee",
                "PRECISE": element is ElementKind.F32,
                "CHUNK": tile.chunk,
                "COLS": tile.cols,
                "STATES": tiles.padded(problem.state_dim),
                "STAGES": tile.stages,
            },
            tile.warps,
            tile.registers,
        )

    if not kept:
        return [walks(True, 1)]
    blocks = -(-size // tiles.PASS_BLOCK)
    passing = Call(
        pass_states,
        sequences * blocks if kept > 1 else 0,
        (slots, decays, Count(kept), Count(size, sums), Count(blocks)),
        {"BLOCK": tiles.PASS_BLOCK, "STAGES": tiles.PASS_STAGES},
    )
    return [call for call in (walks(False, kept), passing, walks(True, segments)) if call.blocks]


def _steps(element: ElementKind, *steps: int) -> tuple[Step, ...]:
    return tuple(Step(step, element) for step in steps)


def _row_steps(layout: Any, element: ElementKind) -> tuple[Step, ...]:
    """From one batch, one position and one head to the next."""
    return _steps(element, *layout.stride[:3])


def _plain(layout: Any) -> tuple[Step, ...]:
    return tuple(Step(step) for step in layout.stride)


def _state_steps(layout: Layout | None, element: ElementKind) -> tuple[Step, ...]:
    """From one batch, one head and one row of a state to the next; there is one segment."""
    return _steps(element, *((0, 0, 0) if layout is None else layout.stride[:3]), 0)
