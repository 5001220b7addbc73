"""A formula on the CPU: how its elements are shared out, for operands of any layout."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any

from baracuda_kernels.core.layout import Shape
from baracuda_kernels.formula.expression import Program
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import build
from baracuda_kernels.targets.geometry import Dim, as_words, collapse

__all__ = ["kernel"]

BLOCK = 1 << 14  # elements of a row that are one item of work
NARROW = 64  # the same, where operands lie across each other: what is read of a cache line is used before it is gone
STREAM_BYTES = 32 << 20  # operands beyond this do not stay in a cache for the next reader
LINE = 64  # bytes that are written past the caches at once
CONTIGUOUS, BROADCAST, STRIDED, COUNTED = "1", "0", "s", "c"  # how an operand lies along a row, if it is in memory
ALONG, DOWN = "along", "down"  # which item follows: the next part of the row, or the same part of the next row


def kernel(
    program: Program, shape: Shape, parameters: Sequence[float] = (), counted: Collection[int] = ()
) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for operands of `shape`: bind(layouts of inputs and outputs) -> launch. Inputs that are `counted` are in no memory:
    each is its offset, and its address is 0."""
    text, elements = program.text(), (*program.inputs, *program.outputs)
    outputs = range(len(program.inputs), len(elements))
    numbers = [struct.unpack("q", struct.pack("d", value))[0] for value in parameters]
    work = math.prod(shape) * sum(elements[place].size for place in (*program.read_inputs(), *outputs))

    def launch_of(row: Dim, outer: Sequence[Dim], streams: bool) -> parallel.Launch:
        from baracuda_kernels.targets.cpu.llvm.elementwise import body

        pattern = "".join(
            COUNTED if place in counted else {1: CONTIGUOUS, 0: BROADCAST}.get(step, STRIDED)
            for place, step in enumerate(row.steps)
        )
        across = [dim for dim in outer if any(how == STRIDED and step == 1 for how, step in zip(pattern, dim.steps, strict=True))]
        outer = [*(dim for dim in outer if dim not in across), *across]
        block, order = (NARROW, DOWN) if across else (BLOCK, ALONG)
        function = build(body, len(elements), text, pattern, str(len(outer)), order, str(streams))
        blocks, rows = -(-row.extent // block), math.prod(dim.extent for dim in outer)
        items = blocks * rows
        per_task = parallel.per_task(items, -(-work // items))
        count = -(-items // per_task)
        dims = [word for dim in outer for word in (dim.extent, *dim.steps)]
        words = [count, per_task, items, row.extent, block, blocks, rows, *row.steps, *numbers, *dims]
        return parallel.launcher(function, as_words(words), count, work)

    def keeps_alignment(row: Dim, outer: Sequence[Dim]) -> bool:
        return all(
            row.steps[place] == 1 and all(dim.steps[place] * elements[place].size % LINE == 0 for dim in outer) for place in outputs
        )

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        if 0 in shape:
            return parallel.idle
        *outer, row = collapse(shape, [layout.stride for layout in layouts]) or [Dim(1, (1,) * len(elements))]
        plain = launch_of(row, outer, streams=False)
        if work <= STREAM_BYTES or not keeps_alignment(row, outer):
            return plain
        streamed = launch_of(row, outer, streams=True)

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            aligned = all(addresses[place] % LINE == 0 for place in outputs)
            (streamed if aligned else plain)(addresses, workspace, stream)

        return launch

    return bind
