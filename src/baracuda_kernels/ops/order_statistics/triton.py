"""Order statistics on CUDA: what is launched for operands of any layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import triton.language as tl

from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import LIMITS, ElementKind
from baracuda_kernels.core.kernel import Bind, Launch
from baracuda_kernels.ops.order_statistics.descriptor import OrderDescriptor, OrderKind, QuantileDescriptor
from baracuda_kernels.ops.order_statistics.geometry import Lines, patterns, unstacked
from baracuda_kernels.ops.order_statistics.tiles import (
    LONG_TILE,
    RegisterTile,
    buffers_of,
    fits_registers,
    queries_of,
    register_tile,
    sorted_tile,
    split_for,
    spread_tile,
)
from baracuda_kernels.ops.order_statistics.triton_long import count_digits, count_equals, find, join, pick
from baracuda_kernels.ops.order_statistics.triton_registers import (
    choose_in_registers,
    choose_sorted,
    quantiles_in_registers,
    spread,
)
from baracuda_kernels.ops.reduction import triton as reduction
from baracuda_kernels.ops.reduction.geometry import kept_stride
from baracuda_kernels.targets.cuda.runtime.launcher import launcher
from baracuda_kernels.targets.cuda.runtime.triton_launch import (
    Argument,
    At,
    Count,
    Lent,
    Step,
    TritonLaunch,
    is_wide,
)
from baracuda_kernels.targets.cuda.tiles import power_of_two
from baracuda_kernels.targets.cuda.triton.indexing import dims
from baracuda_kernels.targets.geometry import Dim, kept_axes, merged

__all__ = ["order", "order_backward", "quantile", "quantile_backward"]

I32, I64, U8 = ElementKind.I32, ElementKind.I64, ElementKind.U8
INTEGERS = {1: ElementKind.I8, 2: ElementKind.I16, 4: I32, 8: I64}  # as which elements are read, by their size
INFINITY = {ElementKind.F16: 0x7C00, ElementKind.BF16: 0x7F80, ElementKind.F32: 0x7F800000, ElementKind.F64: 0x7FF0000000000000}
REALS = {ElementKind.F16: tl.float16, ElementKind.BF16: tl.bfloat16, ElementKind.F32: tl.float32, ElementKind.F64: tl.float64}
LONG_WARPS = 8

order_backward = reduction.reduce_choice_backward


class Frame(NamedTuple):
    """How lines lie in operands, the first of which is walked along."""

    lines: Lines
    along: list[Dim]
    element: ElementKind  # as which it is read

    @property
    def is_row(self) -> bool:
        """Whether a line is contiguous."""
        return len(self.along) == 1 and self.along[0].steps == (1,)

    @property
    def by_columns(self) -> bool:
        return not self.is_row and self.lines.beside.steps[0] == 1

    def blocks(self, tile: RegisterTile) -> int:
        """How many tiles lie beside each other."""
        return -(-self.lines.beside.extent // tile.lines)

    def programs(self, tile: RegisterTile) -> int:
        return self.blocks(tile) * math.prod(dim.extent for dim in self.lines.others)

    def lines_beside(self) -> Count:
        return Count(self.lines.beside.extent)

    def steps(self) -> tuple[Argument, ...]:
        """To each line and what belongs to it: other extents, and of every operand the steps along them and between neighbours."""
        operands, element = len(self.lines.beside.steps), self.element if self.is_row else None
        extents, every = dims(self.lines.others, operands, None)
        first = tuple(Step(step.value, element) for step in every[0])
        moves = self.lines.beside.extent > 1
        beside = [Step(step if moves else 0, None if place else element) for place, step in enumerate(self.lines.beside.steps)]
        return extents, (first, *every[1:]), tuple(beside)

    def line(self) -> tuple[Argument, ...]:
        extents, (steps,) = dims(self.along, 1, None)
        return extents, steps

    def extent(self, extent: int) -> Count:
        """The extent along a line."""
        return Count(extent, self.element if self.is_row else None)

    def constants(self) -> dict[str, Any]:
        return {"ALONG": self.is_row, "BESIDE": tuple(step == 1 for step in self.lines.beside.steps)}


def _keys(element: ElementKind) -> dict[str, Any]:
    """What bodies are told of keys."""
    least, largest = LIMITS[_integer(element)]
    key = tl.int64 if element.size == 8 else tl.int32
    return {"KEY": key, "LEAST": least, "LARGEST": largest, "INFINITY": INFINITY.get(element)}


def _integer(element: ElementKind) -> ElementKind:
    return U8 if element is U8 else INTEGERS[element.size]


def _real(element: ElementKind) -> dict[str, Any]:
    return {"ELEMENT": REALS[element], "REAL": REALS[element.accumulator]}


# --- an element that is chosen -----------------------------------------------------------------------------------------------------


def order(problem: OrderDescriptor, device: Device) -> Bind:
    """The kernel for an element chosen by its order: bind(layouts of input, values, indices) -> launch."""
    integer = _integer(problem.element)
    operands = (At(0, integer), At(1, integer), At(2, I64))

    def bind(layouts: Sequence[Any]) -> Launch:
        if not problem.lines:
            return launcher(device)
        input, *results = (layout.stride for layout in layouts)
        strides = [kept_axes(input, problem.axes), *(kept_stride(problem, stride) for stride in results)]
        frame = Frame(Lines.of(problem, strides), merged(problem.shape, [input], problem.axes), integer)
        if problem.kind is OrderKind.MODE:
            return launcher(device, _held(problem, frame, choose_sorted, operands, sorted_tile(problem)))
        if fits_registers(problem):
            tile = register_tile(problem, frame.lines.beside.extent, frame.by_columns)
            more = {"KIND": problem.kind.value, "BITS": 8 * problem.element.size}
            return launcher(device, _held(problem, frame, choose_in_registers, operands, tile, more))
        return launcher(device, *_selection(problem, frame, operands[0]), *_find(problem, frame, operands[0], operands[1:]))

    return bind


def _held(
    problem: Any, frame: Frame, body: Any, leading: tuple[Argument, ...], tile: RegisterTile, more: dict[str, Any] | None = None
) -> TritonLaunch:
    """A body that holds whole lines."""
    programs = frame.programs(tile)
    return TritonLaunch(
        body,
        programs,
        (*leading, frame.lines_beside(), Count(frame.blocks(tile)), frame.extent(problem.count), *frame.steps(), *frame.line()),
        _keys(problem.element)
        | frame.constants()
        | {"LINES": tile.lines, "COLS": tile.cols, "WIDE": is_wide(max(programs * tile.lines, problem.count))}
        | (more or {}),
        tile.warps,
        contracts=False,
    )


# --- quantiles ---------------------------------------------------------------------------------------------------------------------


def quantile(problem: QuantileDescriptor, device: Device) -> Bind:
    """The kernel for quantiles: bind(layouts of input, result) -> launch."""
    integer = _integer(problem.element)

    def bind(layouts: Sequence[Any]) -> Launch:
        if not problem.lines:
            return launcher(device)
        input, result = (layout.stride for layout in layouts)
        q_step, result = unstacked(problem, result)
        frame = Frame(
            Lines.of(problem, [kept_axes(input, problem.axes), result]), merged(problem.shape, [input], problem.axes), integer
        )
        operands = (At(0, integer), At(1, problem.element))
        if fits_registers(problem):
            return launcher(device, _quantiles(problem, frame, operands, (), q_step))
        return launcher(device, *_selection(problem, frame, operands[0]), _join(problem, frame, operands[1], q_step))

    return bind


def quantile_backward(problem: QuantileDescriptor, device: Device) -> Bind:
    """The kernel for the gradient of quantiles: bind(layouts of d_result, input, d_input) -> launch."""
    integer, buffers = _integer(problem.element), buffers_of(problem)
    neighbours_at = (Lent(buffers.places, I64), Lent(buffers.shares, ElementKind.F64))

    def bind(layouts: Sequence[Any]) -> Launch:
        if not problem.lines:
            return launcher(device)
        d_result, input, d_input = (layout.stride for layout in layouts)
        q_step, d_result = unstacked(problem, d_result)
        # Both have the lines in the same order, which is that of the gradients: by its number a line finds its neighbours again.
        lines = Lines.of(problem, [kept_axes(input, problem.axes), kept_axes(d_input, problem.axes), d_result])
        frame = Frame(lines, merged(problem.shape, [input], problem.axes), integer)
        slopes = Frame(_without_first(lines), merged(problem.shape, [d_input], problem.axes), problem.element)
        source = At(1, integer)
        if fits_registers(problem):
            first = [_quantiles(problem, frame, (source, At(0, problem.element)), neighbours_at, q_step)]
        else:
            first = [*_selection(problem, frame, source), *_find(problem, frame, source, ())]
        return launcher(device, *first, _spread(problem, slopes, neighbours_at, q_step))

    return bind


def _without_first(lines: Lines) -> Lines:
    """The lines of all operands but the first."""

    def without(dim: Dim) -> Dim:
        return Dim(dim.extent, dim.steps[1:])

    return Lines(without(lines.beside), [without(dim) for dim in lines.others])


def _quantiles(
    problem: QuantileDescriptor, frame: Frame, operands: tuple[At, At], neighbours_at: tuple[Argument, ...], q_step: int
) -> TritonLaunch:
    tile = register_tile(problem, frame.lines.beside.extent, frame.by_columns)
    more = {"KIND": problem.kind.value, "INTERPOLATION": problem.interpolation.value, "BITS": 8 * problem.element.size}
    more["PER_QUANTILE"] = queries_of(problem) // problem.quantiles
    leading = (*operands, neighbours_at, tuple(map(Step, patterns(problem.q))), Step(q_step))
    return _held(problem, frame, quantiles_in_registers, leading, tile, more | _real(problem.element))


def _spread(problem: QuantileDescriptor, frame: Frame, neighbours_at: tuple[Argument, ...], q_step: int) -> TritonLaunch:
    tile = spread_tile(problem, frame.lines.beside.extent, frame.by_columns)
    tiles = -(-problem.count // tile.cols)
    programs = tiles * frame.programs(tile)
    quantiles = len(problem.q)
    return TritonLaunch(
        spread,
        programs,
        (
            At(2, problem.element),
            At(0, problem.element),
            *neighbours_at,
            Count(quantiles),
            Step(q_step),
            frame.lines_beside(),
            Count(frame.blocks(tile)),
            Count(tiles),
            frame.extent(problem.count),
            *frame.steps(),
            *frame.line(),
        ),
        {"PER_QUANTILE": queries_of(problem) // quantiles, "REAL": _real(problem.element)["REAL"]}
        | frame.constants()
        | {"LINES": tile.lines, "COLS": tile.cols, "WIDE": is_wide(max(programs * tile.lines, tiles * tile.cols))},
        tile.warps,
        contracts=False,
    )


# --- longer lines ------------------------------------------------------------------------------------------------------------------


def _buffers(problem: Any) -> dict[str, Lent]:
    """The buffers of the workspace by name."""
    kinds = {"shares": ElementKind.F64, "digits": I32}
    return {name: Lent(start, kinds.get(name, I64)) for name, start in buffers_of(problem)._asdict().items()}


def _selection(problem: Any, frame: Frame, source: At) -> list[TritonLaunch]:
    """Digit after digit, until the keys of all ranks are known."""
    split, queries, bits, buffers = split_for(problem), queries_of(problem), 8 * problem.element.size, _buffers(problem)
    is_quantile = isinstance(problem, QuantileDescriptor)
    q = tuple(map(Step, patterns(problem.q))) if is_quantile else ()
    calls = []
    for shift in range(bits - 8, -8, -8):
        calls.append(
            TritonLaunch(
                count_digits,
                problem.lines * queries * split.segments,
                (source, buffers["prefixes"], buffers["nans"], buffers["digits"], *_walked(problem, frame)),
                _long(problem, frame) | {"QUERIES": queries, "SHIFT": shift, "BITS": bits},
                LONG_WARPS,
            )
        )
        given = tuple(buffers[name] for name in ("prefixes", "ranks", "shares", "nans", "digits"))
        calls.append(
            TritonLaunch(
                pick,
                problem.lines * queries,
                (*given, q, Count(split.segments), Count(problem.count)),
                {"KIND": problem.kind.value, "INTERPOLATION": problem.interpolation.value if is_quantile else None}
                | {"QUERIES": queries, "IS_FIRST": shift == bits - 8, "HAS_NAN": problem.element.is_float}
                | {"SEGMENTS": power_of_two(split.segments)},
                contracts=False,
            )
        )
    return calls


def _walked(problem: Any, frame: Frame) -> tuple[Argument, ...]:
    """What bodies that walk along segments are told last."""
    split = split_for(problem)
    sizes = (Count(split.segments), frame.extent(split.length), frame.lines_beside(), frame.extent(problem.count))
    return (*sizes, *frame.steps(), *frame.line())


def _long(problem: Any, frame: Frame) -> dict[str, Any]:
    return _keys(problem.element) | frame.constants() | {"COLS": LONG_TILE, "WIDE": is_wide(problem.count)}


def _find(problem: Any, frame: Frame, source: At, results: tuple[Argument, ...]) -> list[TritonLaunch]:
    """Where the elements of these keys are: first how many equals every segment has, then which of them it is."""
    split, queries, buffers = split_for(problem), queries_of(problem), _buffers(problem)
    quantiles = len(problem.q) if isinstance(problem, QuantileDescriptor) else 1
    constants = _long(problem, frame) | {"QUERIES": queries}
    given = tuple(buffers[name] for name in ("places", "prefixes", "ranks", "shares", "equals"))
    return [
        TritonLaunch(
            count_equals,
            problem.lines * queries * split.segments,
            (source, buffers["prefixes"], buffers["equals"], *_walked(problem, frame)),
            constants,
            LONG_WARPS,
        ),
        TritonLaunch(
            find,
            problem.lines * queries,
            (source, results, *given, *_walked(problem, frame)),
            constants | {"PER_QUANTILE": queries // quantiles, "SEGMENTS": power_of_two(split.segments)},
            LONG_WARPS,
        ),
    ]


def _join(problem: QuantileDescriptor, frame: Frame, result: At, q_step: int) -> TritonLaunch:
    quantiles = len(problem.q)
    buffers = _buffers(problem)
    return TritonLaunch(
        join,
        problem.lines * quantiles,
        (result, buffers["prefixes"], buffers["shares"], Count(quantiles), Step(q_step), frame.lines_beside(), *frame.steps()),
        {name: value for name, value in _keys(problem.element).items() if name in ("KEY", "LEAST")}
        | _real(problem.element)
        | {"PER_QUANTILE": queries_of(problem) // quantiles, "BESIDE": frame.constants()["BESIDE"]},
        warps=1,
        contracts=False,
    )
