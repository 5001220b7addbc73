"""What the CPU bodies of the softmax family share: the words of a launch and the formulas."""

from collections.abc import Callable
from typing import NamedTuple

# The words of a launch; then come the axis's steps and the dims that lead to a row (or to the first of a strip of columns).
TASKS, PER_TASK, ITEMS, EXTENT, SEGMENT, STREAM, COLUMNS, STRIP, STEPS = range(9)
# The words of a split launch's counter; then come the segments' maxima and sums.
DONE, FIRST_ROW, ROWS, PARTS = 1, 2, 3, 4


def buffer_for(direction: str, element: str) -> int:
    """How many numbers of each input a body keeps on its stack: 256 KB in all."""
    return (32768 if element == "f64" else 65536) // (1 if direction == "forward" else 2)


class SoftmaxFormulas(NamedTuple):
    """What distinguishes the four operations. Inputs are `a` (x or dy) and `b` (y, backward only)."""

    has_top: bool  # the row's maximum is needed
    keeps: bool  # the summed term is kept for the value
    term: Callable  # a, top -> the summed term (forward)
    add: Callable  # accumulator, a, b, top -> accumulator
    scale: Callable  # lanes of sums in f64 -> what every value needs
    scale_one: Callable  # the same for one sum
    value: Callable  # a, b, top, scale -> result


def formulas_of(direction: str, kind: str, element: str) -> SoftmaxFormulas:
    from baracuda_kernels.targets.cpu.vectors.simd import extract, fma, inline, spread, to_f32, to_f64
    from baracuda_kernels.targets.cpu.vectors.vmath import exp, exp_nonpositive, exp_nonpositive_for_halves, log

    to_real = to_f64 if element == "f64" else to_f32
    exp_below = exp_nonpositive_for_halves if element in ("f16", "bf16") else exp_nonpositive

    @inline
    def term(a, top):
        return exp_below(a - top)

    formulas = {
        ("forward", "softmax"): (
            True,
            True,
            lambda acc, a, b, top: acc + term(a, top),
            lambda total: to_real(1.0 / total),
            lambda a, b, top, scale: term(a, top) * scale,
        ),
        ("forward", "log_softmax"): (
            True,
            False,
            lambda acc, a, b, top: acc + term(a, top),
            lambda total: to_real(log(total)),
            lambda a, b, top, scale: (a - top) - scale,
        ),
        ("backward", "softmax"): (
            False,
            False,
            lambda acc, a, b, top: fma(a, b, acc),
            lambda total: to_real(total),
            lambda a, b, top, scale: b * (a - scale),
        ),
        ("backward", "log_softmax"): (
            False,
            False,
            lambda acc, a, b, top: acc + a,
            lambda total: to_real(total),
            lambda a, b, top, scale: a - exp(b) * scale,
        ),
    }
    has_top, keeps, *functions = formulas[direction, kind]
    add, scale, value = (inline(function) for function in functions)

    @inline
    def scale_one(total):
        return extract(scale(spread(total)), 0)

    return SoftmaxFormulas(has_top, keeps, term, add, scale, scale_one, value)


def with_operands(core: Callable, direction: str, element: str) -> tuple[Callable, tuple]:
    from baracuda_kernels.targets.cpu.vectors import simd, tasks

    pointer = simd.pointer_to(element)

    def forward_body(words, counter, x, y):
        core(words, counter, x, x, y)

    def backward_body(words, counter, dy, y, dx):
        core(words, counter, dy, y, dx)

    if direction == "forward":
        return forward_body, (tasks.words, tasks.words, pointer, pointer)
    return backward_body, (tasks.words, tasks.words, pointer, pointer, pointer)
