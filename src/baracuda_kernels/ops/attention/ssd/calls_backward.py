"""The gradients of the scan on CUDA: what is launched for which problem, in which layouts.

States at the starts of all spans, gradients of the states at their ends unless a walk has them on chip, everything else chunk by chunk,
and the sums of what programs have shared out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.core.layout import Layout
from baracuda_kernels.ops.attention.ssd import tiles_backward as tiles
from baracuda_kernels.ops.attention.ssd.descriptor import SsdChunkScanDescriptor
from baracuda_kernels.ops.attention.ssd.tiles import PREPARED_HEADS, padded
from baracuda_kernels.ops.attention.ssd.tiles_backward import BackwardCut, SsdBackwardTile, SsdBlock
from baracuda_kernels.ops.attention.ssd.triton_backward import (
    add_groups,
    add_rates,
    gradients_of_groups,
    gradients_of_heads,
    gradients_of_lone_heads,
)
from baracuda_kernels.ops.attention.ssd.triton_carry import pass_segments, walk_states
from baracuda_kernels.ops.attention.ssd.triton_forward import prepare
from baracuda_kernels.ops.attention.ssd.triton_whole import gradients_of_chunks
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import Argument, At, Count, Lent, Step, TritonLaunch, is_wide

__all__ = ["backward", "backward_calls"]

CHUNK_CONSTANTS = ("ALONE", "PREPARED", "CHUNK", "ROWS", "COLS", "ACC", "PRECISE", "PRECISION", "EXACT")
LONE_CONSTANTS = ("PREPARED", "CHUNK", "ROWS", "ROW_BLOCKS", "COLS", "COL_BLOCKS", "ACC", "PRECISE", "PRECISION", "EXACT")
WALK_SCATTERED, HEAD_SCATTERED, GROUP_SCATTERED = (32, 64), (16, 32), (32, 64)  # the most of a state without vector loads
X, DT, A, B, C, DY, INITIAL, D_FINAL, DX, D_B, D_C, D_DT, D_A, D_INITIAL = range(14)
STATES = (INITIAL, D_FINAL, D_INITIAL)


def backward(problem: SsdChunkScanDescriptor, device: Device, tile: SsdBackwardTile | None = None) -> Bind:
    """The kernel for a backward problem: bind(layouts of the backward's args) -> launch."""

    def bind(layouts: tuple[Layout | None, ...]) -> Launch:
        return launcher(device, *backward_calls(problem, layouts, tile))

    return bind


def backward_calls(
    problem: SsdChunkScanDescriptor,
    layouts: Sequence[Layout | None],
    tile: SsdBackwardTile | None = None,
    cut: BackwardCut | None = None,
) -> list[TritonLaunch]:
    """What is launched for operands of these layouts; `tile` and `cut` are for trying others than the chosen ones."""
    tile = tile or tiles.backward_tile(problem)
    build = _Calls(problem, layouts, tile, cut or tiles.cut(problem, tile))
    return [call for call in build.all() if call.blocks]


class _Calls:
    def __init__(self, problem: Any, layouts: Sequence[Layout | None], tile: SsdBackwardTile, cut: BackwardCut) -> None:
        self.problem, self.layouts, self.tile, self.cut = problem, layouts, tile, cut
        self.element, self.sums, self.kept = problem.element, problem.state_element, tiles.kept_element(problem)
        self.first, self.families, self.first_pair, self.pairs = 0, 0, 0, 0  # of a round
        self.has_states = problem.head_dim * problem.state_dim > 0
        self.segmented = cut.segments > 1
        self.places = tiles.regions(problem, tile, cut)

    def all(self) -> list[TritonLaunch]:
        rounds = range(0, self.problem.batch_size * self.problem.groups, max(1, tiles.families(self.problem, self.cut)))
        sums = [self.sums_of_slices()] if self.cut.slices > 1 else []
        return [self.preparing(), *(call for first in rounds for call in self.round(first)), *sums, self.rates()]

    def round(self, first: int) -> list[TritonLaunch]:
        """What is launched for some groups from `first` on."""
        last = self.problem.batch_size * self.problem.groups
        self.first, self.families = first, min(tiles.families(self.problem, self.cut), last - first)
        self.first_pair, self.pairs = first * self.problem.heads_per_group, self.families * self.problem.heads_per_group
        passing = [self.passing(backwards) for backwards in (False, True)] if self.segmented or not self.cut.chunks else []
        simple = self.tile.fits and self.has_simple_states
        groups = [] if simple and self.problem.heads_per_group == 1 else [self.of_groups()]
        gradients = [self.of_chunks() if simple else self.of_heads(), *groups]
        return [self.states(), *passing, *gradients]

    @property
    def has_simple_states(self) -> bool:
        """Whether every chunk finds its states as they are."""
        return self.has_states and self.cut.span == self.cut.slot == 1 and not self.segmented

    # --- what bodies are given

    def at(self, operand: int, otherwise: int = X) -> At:
        """An operand; where there is none, another stands in for it, and is neither read nor written."""
        layout = self.layouts[operand]
        return At(operand, layout.element) if layout is not None else self.at(otherwise)

    def lent(self, name: str, element: ElementKind | None = None) -> Argument:
        """A place in the workspace; x stands in for one that is not needed."""
        after = list(self.places)[list(self.places).index(name) + 1]
        is_empty = self.places[after] <= self.places[name]
        return At(X, self.element) if is_empty else Lent(self.places[name], element or self.sums)

    def steps(self, operand: int) -> tuple[Step, ...]:
        """The steps of batch, position and head, or, for a state, of batch, head and row."""
        layout = self.layouts[operand]
        if layout is None:
            return (Step(0), Step(0), Step(0))
        if operand in (DT, D_DT):
            return tuple(Step(step) for step in layout.stride)
        first, second, third = (Step(step, layout.element) for step in layout.stride[:3])
        has_steps = operand not in STATES
        if has_steps and not is_wide(self.tile.chunk * second.value):
            second = Count(second.value, layout.element)  # offsets within a chunk need no more
        return first, second, third

    def step(self, operand: int) -> Step:
        layout = self.layouts[operand]
        assert layout is not None
        return Step(layout.stride[0])

    @property
    def sizes(self) -> tuple[Count, Count]:
        return Count(self.problem.head_dim, self.element), Count(self.problem.state_dim, self.element)

    @property
    def cuts(self) -> tuple[Count, ...]:
        return Count(self.first_pair), Count(self.cut.spans), Count(self.cut.segments), Count(self.cut.segment)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return tuple(map(self.at, (X, DT, A, B, C, DY)))

    @property
    def input_steps(self) -> tuple[Argument, ...]:
        return self.steps(X), self.steps(DT), self.step(A), self.steps(B), self.steps(C), self.steps(DY)

    @property
    def records(self) -> tuple[Argument, ...]:
        """Operands that hold what forward walks have stored."""
        forwards = self.lent("kept", self.kept), self.lent("ends"), self.lent("fades")
        prepared = self.lent("prepared"), self.lent("keeps")
        return *prepared, *forwards, self.lent("kept_back", self.kept), self.lent("ends_back"), self.lent("fades_back")

    def constants(self, block: SsdBlock) -> dict[str, Any]:
        return {
            "PREPARED": self.cut.is_prepared,
            "SEGMENTED": self.segmented,
            "CHUNK": self.tile.chunk,
            "SPAN": self.cut.span,
            "ROWS": block.rows,
            "ROW_BLOCKS": tiles.blocks(self.problem, block)[0],
            "COLS": block.cols,
            "COL_BLOCKS": tiles.blocks(self.problem, block)[1],
            "ACC": f"tl.float{8 * self.sums.size}",
            "PRECISE": self.element is ElementKind.F32,
            "PRECISION": "tf32" if self.element is ElementKind.F16 else "ieee",
        }

    def forms(self, call: Callable[[SsdBlock], TritonLaunch], block: SsdBlock, rows: int, cols: int) -> TritonLaunch:
        """A launch with this block; where operands allow no vector loads, with one of at most `rows` and `cols`."""
        if self.element is ElementKind.F64:  # its blocks are small already
            return call(block)
        return replace(call(block), otherwise=call(tiles.scattered(block, rows, cols)))

    # --- what is launched

    def preparing(self) -> TritonLaunch:
        """What depends on dt and a alone."""
        problem, heads = self.problem, -(-self.problem.num_heads // PREPARED_HEADS)
        return TritonLaunch(
            prepare,
            problem.batch_size * self.cut.chunks * heads * self.cut.is_prepared,
            (
                *(self.at(DT), self.at(A), self.lent("prepared"), self.lent("keeps")),
                *(Count(problem.seq_len), Count(problem.num_heads), Count(heads), self.steps(DT), self.step(A)),
            ),
            {"ACC": f"tl.float{8 * self.sums.size}", "PRECISE": False, "CHUNK": self.tile.chunk, "HEADS": PREPARED_HEADS},
        )

    def states(self) -> TritonLaunch:
        """States before every span, and gradients of the states after it."""
        return self.forms(self.walks, self.tile.walk, *WALK_SCATTERED)

    def walks(self, block: SsdBlock) -> TritonLaunch:
        row_blocks, col_blocks = tiles.blocks(self.problem, block)
        a_state = next((state for state in STATES if self.layouts[state] is not None), X)  # of one type, one is chosen from
        programs = 2 * self.pairs * self.cut.segments * row_blocks * col_blocks
        return TritonLaunch(
            walk_states,
            programs if self.cut.chunks and self.has_states else 0,
            (
                *(*self.inputs, *(self.at(state, a_state) for state in STATES), *self.records),
                *(Count(self.problem.seq_len), Count(self.problem.num_heads), Count(self.problem.heads_per_group)),
                *(*self.sizes, *self.cuts, *self.input_steps, *map(self.steps, STATES)),
            ),
            self.constants(block)
            | {
                "HAS_INITIAL": self.layouts[INITIAL] is not None,
                "HAS_FINAL": self.layouts[D_FINAL] is not None,
                "STAGES": block.stages,
                "BY_PAIRS": block.by_pairs,
            },
            block.warps,
            block.registers,
        )

    def passing(self, backwards: bool) -> TritonLaunch:
        """Passes states from segment to segment; without any, the gradient of the last state becomes that of the first."""
        start, end, suffix = (D_FINAL, D_INITIAL, "_back") if backwards else (INITIAL, INITIAL, "")
        strips = -(-self.problem.head_dim * self.problem.state_dim // tiles.PASS_PLACES)
        has_end = backwards and self.layouts[end] is not None
        segments = self.cut.segments if self.segmented else 0
        fades = self.lent("fades" + suffix)
        if isinstance(fades, Lent):
            fades = Lent(fades.offset + self.pairs * self.cut.spans * self.sums.size, self.sums)
        return TritonLaunch(
            pass_segments,
            self.pairs * strips if segments or has_end else 0,
            (
                *(self.at(start), self.at(end), self.lent("ends" + suffix), fades, Count(self.problem.num_heads)),
                *(*self.sizes, Count(self.first_pair), Count(segments), Count(strips), self.steps(start), self.steps(end)),
            ),
            {
                "BACKWARDS": backwards,
                "HAS_START": self.layouts[start] is not None,
                "HAS_END": has_end,
                "ACC": f"tl.float{8 * self.sums.size}",
                "PLACES": tiles.PASS_PLACES,
            },
        )

    def of_chunks(self) -> TritonLaunch:
        """dx, d_dt and shares of d_a; where no head shares its group, also d_b and d_c."""
        block, outputs, is_alone = self.tile.head, (DX, D_B, D_C, D_DT), self.problem.heads_per_group == 1
        constants = self.constants(block) | {"ALONE": is_alone, "EXACT": self.element.size > 2}
        scattered = tiles.scattered(block, *HEAD_SCATTERED)
        return TritonLaunch(
            gradients_of_chunks,
            self.pairs * self.cut.chunks,
            (
                *(*self.inputs, self.lent("prepared"), self.lent("keeps")),
                *(self.lent("kept", self.kept), self.lent("kept_back", self.kept)),
                *(*map(self.at, outputs), self.lent("shares")),
                *(Count(self.problem.seq_len), Count(self.problem.num_heads), Count(self.problem.heads_per_group)),
                *(*self.sizes, Count(self.first_pair), Count(self.pairs), Count(self.cut.chunks)),
                *(*self.input_steps, *map(self.steps, outputs)),
            ),
            {name: constants[name] for name in CHUNK_CONSTANTS},
            block.warps,
            block.registers,
            otherwise=self.of_lone_heads(scattered) if is_alone else self.heads(scattered),
        )

    def of_lone_heads(self, block: SsdBlock) -> TritonLaunch:
        """The same where no head shares its group, in three programs or more for every chunk."""
        outputs, constants = (DX, D_B, D_C, D_DT), self.constants(block) | {"EXACT": self.element.size > 2}
        return TritonLaunch(
            gradients_of_lone_heads,
            self.pairs * self.cut.chunks * (1 + 2 * constants["COL_BLOCKS"]),
            (
                *(*self.inputs, *self.records, *map(self.at, outputs), self.lent("shares")),
                *(Count(self.problem.seq_len), Count(self.problem.num_heads), *self.sizes),
                *(Count(self.first_pair), Count(self.pairs), Count(self.cut.chunks)),
                *(*self.input_steps, *map(self.steps, outputs)),
            ),
            {name: constants[name] for name in LONE_CONSTANTS},
            block.warps,
            block.registers,
        )

    def of_heads(self) -> TritonLaunch:
        """dx, d_dt and shares of d_a."""
        return self.forms(self.heads, tiles.narrowed(self.tile, self.cut, adds=False), *HEAD_SCATTERED)

    def heads(self, block: SsdBlock) -> TritonLaunch:
        return TritonLaunch(
            gradients_of_heads,
            self.pairs * self.cut.slots,
            (
                *(*self.inputs, *self.records, self.at(DX), self.at(D_DT), self.lent("shares")),
                *(Count(self.problem.seq_len), Count(self.problem.num_heads), Count(self.problem.heads_per_group)),
                *(*self.sizes, *self.cuts, Count(self.pairs), Count(self.cut.slots), Count(self.cut.slot)),
                *(*self.input_steps, self.steps(DX), self.steps(D_DT)),
            ),
            self.constants(block) | {"HAS_RATE": self.has_states, "SINGLE": self.cut.slot == 1, "EXACT": self.element.size > 2},
            block.warps,
            block.registers,
        )

    def of_groups(self) -> TritonLaunch:
        """d_b and d_c, or what each slice of a group's heads comes to."""
        return self.forms(self.groups, tiles.narrowed(self.tile, self.cut, adds=True), *GROUP_SCATTERED)

    def groups(self, block: SsdBlock) -> TritonLaunch:
        problem, cut = self.problem, self.cut
        sliced, col_blocks = cut.slices > 1, tiles.blocks(problem, block)[1]
        targets = (self.lent("shares_b"), self.lent("shares_c")) if sliced else (self.at(D_B), self.at(D_C))
        return TritonLaunch(
            gradients_of_groups,
            2 * self.families * cut.chunks * cut.slices * col_blocks,
            (
                *(*self.inputs, *self.records, *targets),
                *(Count(problem.seq_len), Count(problem.num_heads), Count(problem.groups), Count(problem.heads_per_group)),
                *(*self.sizes, *self.cuts, Count(self.first), Count(self.families), Count(cut.slices)),
                Count(-(-problem.heads_per_group // cut.slices)),
                *(Step(self.slice_step() if sliced else 0, self.sums), *self.input_steps),
                *((self.share_steps(),) * 2 if sliced else (self.steps(D_B), self.steps(D_C))),
            ),
            self.constants(block) | {"STAGES": block.stages},
            block.warps,
            block.registers,
        )

    def slice_step(self) -> int:
        """The step from one slice's sums of d_b or d_c to the next."""
        return int(self.problem.batch_size * self.problem.seq_len * self.problem.groups * self.problem.state_dim)

    def share_steps(self) -> tuple[Step, ...]:
        length, groups, state_dim = self.problem.seq_len, self.problem.groups, self.problem.state_dim
        return tuple(Step(step, self.sums) for step in (length * groups * state_dim, groups * state_dim, state_dim))

    def sums_of_slices(self) -> TritonLaunch:
        problem = self.problem
        rows = problem.batch_size * problem.seq_len * problem.groups

        def outer(operand: int) -> tuple[Step, ...]:
            return tuple(reversed(self.steps(operand)))

        return TritonLaunch(
            add_groups,
            -(-rows // tiles.SUM_ROWS),
            (
                *(self.lent("shares_b"), self.lent("shares_c"), self.at(D_B), self.at(D_C)),
                *(Count(rows), self.sizes[1], Count(self.cut.slices), Step(self.slice_step(), self.sums)),
                (Count(problem.groups), Count(problem.seq_len), Count(problem.batch_size)),
                *(outer(D_B), outer(D_C)),
            ),
            {"ACC": f"tl.float{8 * self.sums.size}", "ROWS": tiles.SUM_ROWS, "COLS": padded(problem.state_dim)},
        )

    def rates(self) -> TritonLaunch:
        problem = self.problem
        slots = self.cut.slots if self.has_states else 0
        return TritonLaunch(
            add_rates,
            problem.num_heads,
            (
                *(self.lent("shares"), self.at(D_A), Count(problem.batch_size), Count(problem.num_heads), Count(slots)),
                self.step(D_A),
            ),
            {"PLACES": tiles.RATE_PLACES},
        )
