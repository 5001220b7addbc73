"""A formula as a native function: a loop over the elements of any operands, written in LLVM's own language.

The function has the signature of all native bodies: words, a task counter, the operands. An item of work is a part of a row; along a row
every operand is contiguous, is the same everywhere, or has steps. What is not contiguous goes through a small buffer on the
stack, so that the formula itself is written once, for vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import Program, in_order
from baracuda_kernels.formula.fast_path import usual
from baracuda_kernels.targets.cpu.llvm.elementwise_launch import BROADCAST, CONTIGUOUS, COUNTED, DOWN
from baracuda_kernels.targets.cpu.llvm.loops import I32, PTR, Loops, number
from baracuda_kernels.targets.cpu.llvm.operations import Emitter, computed, operations_of, stored_type
from baracuda_kernels.targets.cpu.runtime.native import ENTRY

__all__ = ["ElementwiseWord", "body", "lanes_of"]

LINE = 64  # bytes
SMALL, LARGE = 12, 48  # operations from which on a formula needs more registers for every number


class ElementwiseWord:
    """Where a launch's numbers stand; after them the steps along a row, the parameters, and the extents and steps of the other dims."""

    TASKS, PER_TASK, ITEMS, EXTENT, BLOCK, BLOCKS, ROWS, STEPS = range(8)


def lanes_of(program: Program) -> int:
    """How many numbers are computed at a time: two cache lines of the smallest element, if the formula leaves registers for so many."""
    smallest = min(element.size for element in (*program.inputs, *program.outputs))
    operations = operations_of(usual(program) or program)
    return max(16, 2 * LINE // smallest) if operations <= SMALL else 32 if smallest <= 2 and operations <= LARGE else 16


def body(text: str, pattern: str, rank: str, order: str, streams: str) -> str:
    """The native function for the program of this text, in LLVM assembly.

    `pattern` says of each operand how it lies along a row, `rank` how many other dims there are, `order` whether the parts of a row
    follow each other or the same parts of all rows, and `streams` whether results are written with non-temporal stores.
    """
    writer = _Writer(Program.read(text), pattern, int(rank), order == DOWN, streams == "True")
    return str(writer.module)


class _Writer(Loops):
    def __init__(self, program: Program, pattern: str, rank: int, goes_down: bool, streams: bool) -> None:
        self.program, self.pattern, self.rank, self.goes_down = program, pattern, rank, goes_down
        self.elements = (*program.inputs, *program.outputs)
        self.lanes = lanes_of(program)
        self.module = ir.Module(name="formula")
        without = usual(program)
        rare = None if without is None else self.formula(program, "rare", streams=False)
        plain = self.formula(without or program, "plain", False, rare)
        self.loop(self.formula(without or program, "streamed", True, rare) if streams else plain, plain)

    # --- the formula ---------------------------------------------------------------------------------------------------------

    def formula(self, program: Program, name: str, streams: bool, rare: ir.Function | None = None) -> ir.Function:
        """Computes as many elements as there are lanes, all contiguous. Where the program's last result says so of any of them,
        the `rare` function does it instead."""
        count = len(self.elements)
        kind = ir.FunctionType(ir.VoidType(), [PTR] * count + [ir.DoubleType()] * self.program.parameters)
        function = ir.Function(self.module, kind, name)
        function.linkage = "internal"
        function.attributes.add("noinline" if name == "rare" else "alwaysinline")
        builder = ir.IRBuilder(function.append_basic_block())
        emitter = Emitter(builder, self.lanes)
        inputs = []
        for element, address in zip(self.program.inputs, function.args, strict=False):
            raw = builder.load(address, typ=emitter.vector(stored_type(element)), align=element.size)
            inputs.append(emitter.loaded(raw, element))
        parameters = [emitter.splat(value) for value in function.args[count:]]
        values = computed(emitter, in_order(program.results), inputs, parameters)
        if rare is not None:
            asked = builder.bitcast(values[program.results[-1]], ir.IntType(self.lanes))
            with builder.if_then(builder.icmp_unsigned("!=", asked, ir.Constant(asked.type, 0)), likely=False):
                builder.call(rare, function.args)
                builder.ret_void()
        for result, element, address in zip(program.results, self.program.outputs, function.args[len(inputs) :], strict=False):
            raw = emitter.stored(values[result], element)
            stored = builder.store(raw, address, align=min(LINE, self.lanes * element.size) if streams else element.size)
            if streams:
                stored.set_metadata("nontemporal", self.module.add_metadata([ir.Constant(I32, 1)]))
        builder.ret_void()
        return function

    # --- the loop ------------------------------------------------------------------------------------------------------------

    def loop(self, whole: ir.Function, part: ir.Function) -> None:
        count = len(self.elements)
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [PTR] * (2 + count)), ENTRY)
        self.words, counter, *self.operands = function.args
        self.builder = builder = ir.IRBuilder(function.append_basic_block())
        self.buffers = [self.buffer(element) for element in self.elements]
        at = ElementwiseWord.STEPS + count
        self.steps = [self.word(ElementwiseWord.STEPS + place) for place in range(count)]
        self.parameters = [builder.bitcast(self.word(at + place), ir.DoubleType()) for place in range(self.program.parameters)]
        self.dims_at = at + self.program.parameters
        tasks, per_task, items = (
            self.word(ElementwiseWord.TASKS),
            self.word(ElementwiseWord.PER_TASK),
            self.word(ElementwiseWord.ITEMS),
        )
        with self.tasks(counter, tasks) as task:
            first = builder.mul(task, per_task)
            past = self.smaller(builder.add(first, per_task), items)
            with self.counting(first, past) as item:
                self.item(item, whole, part)
        if whole is not part:
            builder.fence("seq_cst")  # so that other threads see what went past the caches
        builder.ret_void()

    def item(self, item: ir.Value, whole: ir.Function, rest: ir.Function) -> None:
        """A part of a row."""
        builder = self.builder
        extent, block = self.word(ElementwiseWord.EXTENT), self.word(ElementwiseWord.BLOCK)
        if self.goes_down:
            rows = self.word(ElementwiseWord.ROWS)
            part, row = self.divided(item, rows)
        else:
            blocks = self.word(ElementwiseWord.BLOCKS)
            row, part = self.divided(item, blocks)
        start = builder.mul(part, block)
        length = builder.sub(self.smaller(builder.add(start, block), extent), start)
        offsets = self.located(row, self.dims_at, self.rank, len(self.elements))
        starts = [builder.add(at, builder.mul(start, step)) for at, step in zip(offsets, self.steps, strict=True)]
        bases = [
            builder.gep(operand, [at], source_etype=self.spaced(place))
            for place, (operand, at) in enumerate(zip(self.operands, starts, strict=True))
        ]
        for place, how in enumerate(self.pattern):
            if how == BROADCAST and place < len(self.program.inputs):
                self.fill(place, builder.load(bases[place], typ=stored_type(self.elements[place])))
        full = builder.and_(length, number(-self.lanes))
        with self.counting(number(0), full, self.lanes) as at:
            self.compute(whole, bases, at, number(self.lanes), CONTIGUOUS)
        with builder.if_then(builder.icmp_signed("<", full, length)):
            self.compute(rest, bases, full, builder.sub(length, full), None)

    def compute(self, formula: ir.Function, bases: Sequence[Any], at: Any, count: Any, direct: str | None) -> None:
        """`count` elements from `at` on: in place where they are contiguous (`direct`), else through the buffer on the stack."""
        addresses = []
        for place, (how, base) in enumerate(zip(self.pattern, bases, strict=True)):
            if how == direct:
                addresses.append(self.builder.gep(base, [at], source_etype=stored_type(self.elements[place])))
                continue
            if how != BROADCAST and place < len(self.program.inputs):
                self.copy(place, base, at, count, into_buffer=True)
            addresses.append(self.buffers[place])
        self.builder.call(formula, [*addresses, *self.parameters])
        for place in range(len(self.program.inputs), len(self.elements)):
            if self.pattern[place] != direct:
                self.copy(place, bases[place], at, count, into_buffer=False)

    # --- pieces --------------------------------------------------------------------------------------------------------------

    def buffer(self, element: ElementKind) -> ir.Value:
        buffer = self.builder.alloca(stored_type(element), size=number(self.lanes))
        buffer.align = LINE
        return buffer

    def fill(self, place: int, value: ir.Value) -> None:
        for lane in range(self.lanes):
            self.builder.store(value, self.slot(place, number(lane)))

    def slot(self, place: int, lane: ir.Value) -> ir.Value:
        return self.builder.gep(self.buffers[place], [lane], source_etype=stored_type(self.elements[place]))

    def copy(self, place: int, base: Any, at: Any, count: Any, into_buffer: bool) -> None:
        """Between a row and the buffer on the stack, element by element."""
        builder, kind = self.builder, stored_type(self.elements[place])
        with self.counting(number(0), count) as lane:
            offset = builder.mul(builder.add(at, lane), self.steps[place])
            there, here = builder.gep(base, [offset], source_etype=self.spaced(place)), self.slot(place, lane)
            if self.pattern[place] == COUNTED:
                builder.store(builder.ptrtoint(there, kind), here)
            else:
                source, target = (there, here) if into_buffer else (here, there)
                builder.store(builder.load(source, typ=kind), target)

    def spaced(self, place: int) -> ir.Type:
        """What an operand is in steps of: an address that counts is its number itself."""
        return ir.IntType(8) if self.pattern[place] == COUNTED else stored_type(self.elements[place])
