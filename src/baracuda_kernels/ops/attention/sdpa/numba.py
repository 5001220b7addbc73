"""Attention on the CPU, forward and backward: geometry and launches. The bodies are in `rows` and `columns`.

The forward is one launch. The backward goes through a few heads at a time, so that what its three launches share is still in
a cache when the next one reads it.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof
from typing import Any

from baracuda_kernels.ops.attention.sdpa.columns import BLOCK_KEYS, columns_body
from baracuda_kernels.ops.attention.sdpa.descriptor import slots_of
from baracuda_kernels.ops.attention.sdpa.rows import rows_body, segment_and_rows
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction, build
from baracuda_kernels.targets.geometry import as_words

__all__ = ["backward", "forward"]

SERIAL_PRODUCTS = 1 << 20  # below so many multiplications, waking another thread costs more than it brings
WAVE_BYTES = 32 << 20  # of weights and their gradients, for heads that go through the backward together

Bind = Callable[[Sequence[Any]], parallel.Launch]
Launches = Callable[[Sequence[int]], None]


def forward(problem: Any) -> Bind:
    """The kernel for a forward problem: bind(layouts of q, k, v, mask, y, attn) -> launch."""
    function = build(rows_body, 6, "forward", problem.element.value, "masked" if problem.has_mask else "plain")

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        q, k, v, mask, y, _ = layouts
        heads = problem.batch_size * problem.num_heads
        run = _rows(function, problem, (q, k, v, mask, y), problem.d_k, problem.d_v, problem.is_causal, 0, heads)

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            q, k, v, mask, y, attn = addresses
            run((q, k, v, mask, attn, y))

        return launch

    return bind


def backward(problem: Any) -> Bind:
    """The kernel for a backward problem: bind(layouts of q, k, v, attn, dy, dscores_ws, dq, dk, dv) -> launch."""
    element = problem.element.value
    by_rows, by_columns = build(rows_body, 6, "backward", element, "attn"), build(columns_body, 3, element)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        q, k, v, attn, dy, _, dq, dk, dv = layouts
        waves = []
        for first, count in _waves(problem, problem.num_heads // max(1, min(slots_of(dk), slots_of(dv)))):
            rows = _rows(by_rows, problem, (dy, v, k, attn, dq), problem.d_v, problem.d_k, False, first, count)
            values = _columns(by_columns, problem, dy, dv, 1.0, first, count)
            keys = _columns(by_columns, problem, q, dk, problem.scale, first, count)
            waves.append((rows, values, keys))

        def launch(addresses: tuple[int, ...], workspace: Any, stream: Any) -> None:
            q, k, v, attn, dy, dscores, dq, dk, dv = addresses
            for rows, values, keys in waves:
                rows((dy, v, k, attn, dscores, dq))
                values((attn, dy, dv))
                keys((dscores, q, dk))

        return launch

    return bind


def _waves(problem: Any, unit: int) -> Iterator[tuple[int, int]]:
    """First head and number of heads, all batches counted through; `unit` heads stay together."""
    heads = problem.batch_size * problem.num_heads
    head_bytes = 2 * problem.query_len * problem.key_len * problem.element.size
    step = max(1, WAVE_BYTES // max(1, head_bytes * unit)) * unit if heads else 1
    yield from ((first, min(step, heads - first)) for first in range(0, max(heads, 1), step))


def _rows(
    function: NativeFunction, problem: Any, layouts: Sequence[Any], inner: int, width: int, causal: bool, first: int, heads: int
) -> Launches:
    """The launch of a block of rows for `heads` heads from `first` on; operands a, b, c, what is saved, and the output."""
    queries, keys = problem.query_len, problem.key_len
    segment, rows = segment_and_rows(problem.element.value, keys)
    blocks = -(-queries // rows)
    group = problem.num_heads // max(problem.kv_heads, 1)
    saved_step = 0 if layouts[3] is None else layouts[3].stride[3]
    numbers = [heads * blocks, first, blocks, rows, segment, problem.num_heads, group, queries, keys, inner, width, causal]
    numbers += [_bits(problem.scale), saved_step]
    for layout in layouts:
        numbers += (0, 0, 0) if layout is None else layout.stride[:3]
    return _launches(function, numbers, heads * queries * keys * (inner + width))


def _columns(function: NativeFunction, problem: Any, x: Any, out: Any, scale: float, first: int, heads: int) -> Launches:
    """The launch of a gradient summed over queries, for the slots of `heads` heads from `first` on."""
    slots = max(1, slots_of(out))
    group = problem.num_heads // slots
    first, count = (first // group, heads // group) if group else (0, out.shape[0] * slots)
    blocks = -(-problem.key_len // BLOCK_KEYS)
    width = out.shape[3]
    tasks = count * blocks if out.count else 0
    numbers = [tasks, first, blocks, slots, group, problem.query_len, problem.key_len, width, _bits(scale)]
    numbers += [*x.stride[:3], *out.stride[:3]]
    return _launches(function, numbers, heads * problem.query_len * problem.key_len * width)


def _bits(number: float) -> int:
    """A float as the word that `tasks.as_f64` reads."""
    return int(struct.unpack("q", struct.pack("d", number))[0])


def _launches(function: NativeFunction, numbers: Sequence[int], products: int) -> Launches:
    words = as_words(numbers)
    address, tasks = addressof(words), numbers[0]

    def idle(pointers: Sequence[int]) -> None:
        """Nothing to do."""

    def serial(pointers: Sequence[int], alive: Any = words) -> None:
        function(address, None, *pointers)

    def shared(pointers: Sequence[int], alive: Any = words) -> None:
        parallel.launch(function, address, tasks, tuple(pointers))

    if tasks == 0:
        return idle
    return shared if tasks > 1 and products > SERIAL_PRODUCTS else serial
