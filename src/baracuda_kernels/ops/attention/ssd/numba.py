"""The scan on the CPU: which bodies run, in which order, on what.

Forward: the states at the starts of all spans, then the outputs span by span. Backward: those states, the gradients of the states at the
ends of all spans, then everything else span by span, and the sum of d_a, taken anew in f64 where it cancels. Nothing that is computed
depends on how tasks are cut or on threads.
"""

import functools
import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_int64
from typing import Any, NamedTuple

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.threads import get_num_threads
from baracuda_kernels.ops.attention.ssd.gradients import gradients_body
from baracuda_kernels.ops.attention.ssd.outputs import outputs_body
from baracuda_kernels.ops.attention.ssd.rate_gradient import CANCELS, exact_body, total_body
from baracuda_kernels.ops.attention.ssd.spans import span_count, span_length
from baracuda_kernels.ops.attention.ssd.states import BLOCK_ROWS, states_body
from baracuda_kernels.targets.cpu.runtime import parallel
from baracuda_kernels.targets.cpu.runtime.native import NativeFunction, build
from baracuda_kernels.targets.geometry import as_words

__all__ = ["backward", "forward"]

ENOUGH_TASKS = 16  # a few for each thread, so that they end together
SERIAL_WORK = 1 << 18  # numbers of all steps' states; with fewer, waking another thread costs more than it brings


class Stage(NamedTuple):
    """One native launch: its operands are positions in the args; the workspace comes last."""

    function: NativeFunction
    words: Any
    tasks: int
    operands: tuple[int, ...]
    is_correction: bool = False  # launched only if the stage before found that sums cancel


def forward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a forward problem: bind(layouts of the args) -> launch."""
    x, dt, a, b, c, initial, y, final = range(8)
    static = (problem.element.value, problem.step_element.value)
    states, outputs = build(states_body, 7, *static), build(outputs_body, 9, *static)
    operands = (x, dt, a, b, c, initial, final, y)

    def outputs_stage(layouts: Sequence[Any], walks: bool, enough: int) -> Stage:
        span, spans = (problem.seq_len, 1) if walks else (span_length(problem), span_count(problem))
        share, runs = problem.heads_per_group, problem.batch_size * problem.groups * spans
        per_task = max(share, 1)
        while per_task > 1 and runs * -(-share // per_task) < enough:
            per_task = -(-per_task // 2)
        tasks = runs * -(-share // per_task)
        flags = (walks, layouts[initial] is not None, walks and layouts[final] is not None)
        strides = (*_strides(layouts, x, dt, b, c, y, initial, final), *_stride(layouts[a], 1))
        return Stage(outputs, as_words([tasks, *_extents(problem), span, spans, per_task, *flags, *strides]), tasks, operands)

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        passing = _states(states, problem, layouts, (x, dt, a, b, initial, final), backwards=False, kept=1)
        if span_count(problem) == 0:
            return _launch(problem, passing)
        spread = _launch(problem, passing, outputs_stage(layouts, False, ENOUGH_TASKS))
        walk = functools.cache(lambda threads: _launch(problem, outputs_stage(layouts, True, 2 * threads)))
        return _by_threads(problem.batch_size * problem.num_heads, walk, spread)

    return bind


def backward(problem: Any) -> Callable[[Sequence[Any]], parallel.Launch]:
    """The kernel for a backward problem: bind(layouts of the args) -> launch."""
    x, dt, a, b, c, dy, initial, d_final, dx, d_b, d_c, d_dt, d_a, d_initial = range(14)
    static = (problem.element.value, problem.step_element.value)
    states, gradients, total = build(states_body, 7, *static), build(gradients_body, 13, *static), build(total_body, 10, *static)
    # A d_a of 16 bits holds less than an f32 sum is good for, and f64 has more bits to spare than its bound asks for.
    exact = build(exact_body, 10, *static) if problem.step_element is ElementKind.F32 else None
    operands = (x, dt, a, b, c, dy, d_final, dx, d_b, d_c, d_dt, d_initial)

    def gradients_stage(layouts: Sequence[Any], walks: bool) -> Stage:
        tasks = problem.batch_size * problem.groups * (1 if walks else span_count(problem))
        flags = (walks, layouts[d_final] is not None, walks and layouts[d_initial] is not None)
        strides = _strides(layouts, x, dt, b, c, dy, dx, d_b, d_c, d_dt, d_final, d_initial)
        words = [tasks, *_extents(problem), *_spans(problem), problem.batch_size, *flags, *strides, *_stride(layouts[a], 1)]
        return Stage(gradients, as_words(words), tasks, operands)

    def rate_stages(layouts: Sequence[Any]) -> list[Stage]:
        """The sum of d_a, and the correction where there is one; the last task of each adds up."""
        pairs, block = problem.batch_size * problem.num_heads, _block_rows(problem)
        flags = (layouts[initial] is not None, layouts[d_final] is not None)
        strides = (*_strides(layouts, x, dt, b, c, dy, initial, d_final), *_stride(layouts[a], 1), *_stride(layouts[d_a], 1))
        rest = (*_extents(problem), span_count(problem), problem.batch_size, block, *flags, *strides)
        has_sums = _work(problem) > 0
        sizes, blocks = (pairs, pairs * -(-problem.head_dim // block)) if exact is not None and has_sums else (0, 0)
        operands = (x, dt, a, b, c, dy, initial, d_final, d_a)
        stages = [Stage(total, as_words([sizes + 1, *rest]), sizes + 1, operands)]
        if exact is not None and has_sums:
            stages.append(Stage(exact, as_words([blocks + 1, *rest]), blocks + 1, operands, is_correction=True))
        return stages

    def bind(layouts: Sequence[Any]) -> parallel.Launch:
        passing = _states(states, problem, layouts, (x, dt, a, b, initial, -1), backwards=False, kept=2)
        passing_back = _states(states, problem, layouts, (dy, dt, a, c, d_final, d_initial), backwards=True, kept=2)
        rate = rate_stages(layouts)
        spread = _launch(problem, passing, passing_back, gradients_stage(layouts, False), *rate)
        if span_count(problem) == 0:
            return spread
        walk = _launch(problem, passing, gradients_stage(layouts, True), *rate)
        return _by_threads(problem.batch_size * problem.groups, lambda threads: walk, spread)

    return bind


def _by_threads(sequences: int, walk: Callable[[int], parallel.Launch], spread: parallel.Launch) -> parallel.Launch:
    """Where every thread has sequences of its own, each is walked along, state in hand; otherwise states come first and spans are
    shared out. Both compute the same numbers in the same order."""

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        threads = get_num_threads()
        chosen = walk(threads) if threads == 1 or sequences >= 2 * threads else spread
        chosen(addresses, workspace, stream)

    return launch


def _extents(problem: Any) -> tuple[int, ...]:
    return problem.seq_len, problem.num_heads, problem.head_dim, problem.state_dim, problem.heads_per_group


def _spans(problem: Any) -> tuple[int, int]:
    return span_length(problem), span_count(problem)


def _stride(layout: Any, count: int) -> tuple[int, ...]:
    """The first strides of an operand, zeros where it is left out."""
    return (0,) * count if layout is None else layout.stride[:count]


def _strides(layouts: Sequence[Any], *operands: int) -> list[int]:
    return [step for operand in operands for step in _stride(layouts[operand], 3)]


def _block_rows(problem: Any) -> int:
    """How many rows of a state make a task."""
    pairs, block = problem.batch_size * problem.num_heads, BLOCK_ROWS
    while block > 16 and pairs * -(-problem.head_dim // block) < ENOUGH_TASKS:
        block //= 2
    return block


def _work(problem: Any) -> int:
    return math.prod((problem.batch_size, problem.seq_len, problem.num_heads, problem.head_dim, problem.state_dim))


def _states(
    function: NativeFunction, problem: Any, layouts: Sequence[Any], operands: tuple[int, ...], backwards: bool, kept: int
) -> Stage:
    """`operands` are the rows, dt, a, the columns, the first and the last state; -1 where there is no last one to write."""
    rows, dt, a, columns, start, end = operands
    block = _block_rows(problem)
    tasks = problem.batch_size * problem.num_heads * -(-problem.head_dim // block)
    last = None if end < 0 else layouts[end]
    flags = (backwards, layouts[start] is not None, last is not None, kept, kept - 1 if backwards else 0)
    strides = (*_strides(layouts, rows, dt, columns, start), *_stride(last, 3), *_stride(layouts[a], 1))
    words = as_words([tasks, *_extents(problem), *_spans(problem), block, *flags, *strides])
    return Stage(function, words, tasks, operands)


def _launch(problem: Any, *stages: Stage) -> parallel.Launch:
    serial = _work(problem) < SERIAL_WORK
    ready = [stage for stage in stages if stage.tasks]

    def launch(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
        places = (*addresses, 0)  # position -1: nothing
        counter = (c_int64 * 3)()
        for function, words, tasks, operands, is_correction in ready:
            if is_correction and not counter[CANCELS]:
                continue
            pointers = (*(places[operand] for operand in operands), workspace)
            counter = (c_int64 * 3)()
            if serial:
                function(addressof(words), addressof(counter), *pointers)
            else:
                parallel.launch(function, addressof(words), tasks, pointers, counter)

    return launch
