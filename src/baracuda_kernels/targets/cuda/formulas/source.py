"""From a program to a Triton function: its numbers one after the other, for blocks of whatever shape."""

from __future__ import annotations

import functools
import hashlib
import linecache
import struct
from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Expr, Program, in_order
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.targets.cuda.formulas.operations import NAMES, TYPES, text_of

__all__ = ["formula", "function", "inputs_of", "name_of", "source_of", "taking", "usual_formula"]


def inputs_of(program: Program) -> tuple[int, ...]:
    """The places of the inputs that results depend on."""
    return tuple(sorted(int(each.value or 0) for each in in_order(program.results) if each.operation == "input"))


@functools.cache
def formula(program: Program) -> Any:
    """A function of two tuples: the numbers of those inputs that are used, and the parameters, each as the 64 bits of an f64."""
    name = name_of("formula", program)
    return function(name, source_of(program, name, inputs_of(program)), NAMES)


@functools.cache
def usual_formula(program: Program) -> Any:
    """The fast path of a function: without its `rarely` choices; its last result says whether any is taken. None if it has none."""
    without = usual(program)
    if without is None:
        return None
    name = name_of("usual", without)
    return function(name, source_of(without, name, inputs_of(program)), NAMES)


@functools.cache
def taking(program: Program, *counts: int) -> Any:
    """A function of so many tuples as there are counts: one after the other, they hold the program's inputs."""
    tuples = [f"inputs{number}" for number in range(len(counts))]
    every = [f"{each}[{place}]" for each, count in zip(tuples, counts, strict=True) for place in range(count)]
    name = f"{name_of('taking', program)}_{'_'.join(map(str, counts))}"
    given = "".join(f"{every[place]}, " for place in inputs_of(program))
    return function(name, f"def {name}({', '.join(tuples)}):\n    return FORMULA(({given}), ())\n", {"FORMULA": formula(program)})


def name_of(what: str, program: Program) -> str:
    """Kernels are told apart by the names of their functions."""
    return f"{what}_{hashlib.sha256(program.text().encode()).hexdigest()[:16]}"


def function(name: str, source: str, names: dict[str, Any]) -> Any:
    """A Triton function of its text, in which other functions have these names."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # where Triton looks for it
    everything: dict[str, Any] = names | {"tl": tl, "__name__": __name__}
    exec(compile(source, file, "exec"), everything)
    return triton.jit(everything[name])


def source_of(program: Program, name: str, inputs: Sequence[int]) -> str:
    """The source of the function, of the inputs at these places."""
    order = in_order(program.results)
    names = {each: f"v{number}" for number, each in enumerate(order)}
    places = {place: argument for argument, place in enumerate(inputs)}
    lines = [f"def {name}(inputs, numbers):"]
    for each in order:
        if each.operation == "input":
            text = f"inputs[{places[int(each.value or 0)]}].to({TYPES[each.element]})"
        elif each.operation == "parameter":
            # The interpreter makes a small number 32 bits wide.
            text = f"numbers[{each.value}].to(tl.int64).to(tl.float64, bitcast=True)"
        elif each.operation == "constant":
            text = _constant(each)
        else:
            text = text_of(each, *(names[arg] for arg in each.args))
        lines.append(f"    {names[each]} = {text}")
    lines.append(f"    return ({''.join(names[result] + ', ' for result in program.results)})")
    return "\n".join([*lines, ""])


def _constant(here: Expr) -> str:
    """Floats by their bits: Triton takes a Python float for an f32, and loses the sign of zero."""
    if not here.element.is_float:
        return f"tl.full((), {here.value}, {TYPES[here.element]})"
    number, bits = ("d", "q") if here.element is ElementKind.F64 else ("f", "i")
    (word,) = struct.unpack(bits, struct.pack(number, here.value))
    return f"tl.full((), {word}, tl.int{8 * here.element.size}).to({TYPES[here.element]}, bitcast=True)  # {here.value}"
