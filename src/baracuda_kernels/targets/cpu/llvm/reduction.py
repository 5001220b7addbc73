"""A reduction as a native function, written in LLVM's own language, for operands of any layout.

The order is fixed by the number of elements that become one. Element i of a block belongs to lane i mod LANES; a lane takes its elements
one after the other; the lanes of a block become one as a binary tree, and so do the blocks: after every block, whatever is complete as
a subtree of the binary tree over all blocks is combined. So a segment of a power of two of blocks is a subtree as well, and the
segments of a long sum can be reduced by different threads, and combined later, without a change of any bit.

What is the same for all forms of it is here: the tree over blocks, and what becomes of its root.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from baracuda_kernels.formula.expression import Program, in_order
from baracuda_kernels.formula.reduction import Reduction
from baracuda_kernels.targets.cpu.llvm.loops import I64, PTR, Loops, number
from baracuda_kernels.targets.cpu.llvm.operations import Emitter, computed, stored_type
from baracuda_kernels.targets.cpu.llvm.reduction_launch import LANES, ReductionWord
from baracuda_kernels.targets.cpu.runtime.native import ENTRY

__all__ = ["ReductionWriter", "State"]

LEVELS = 48  # of the tree over blocks

State = list[ir.Value]


class ReductionWriter(Loops):
    """What the forms share: an item is one segment of a unit, which is one result, or a strip of them in chunks."""

    unit = 1  # results in a vector
    chunks = 1  # vectors in a unit

    def __init__(self, reduction: Reduction, lies: str, kept: int, reduced: int) -> None:
        self.reduction, self.lies, self.kept, self.reduced = reduction, lies, kept, reduced
        self.stored = [stored_type(element) for element in reduction.elements]

    def written(self, is_part: bool) -> str:
        module = ir.Module(name="reduction")
        operands, results = self.reduction.operands, len(self.reduction.results)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR] * (3 + operands + results)), ENTRY)
        self.words, counter, *pointers, self.workspace = function.args
        self.inputs, self.results = pointers[:operands], pointers[operands:]
        function.append_basic_block("buffer")  # for what is on the stack
        begin = function.append_basic_block("begin")
        self.builder = builder = ir.IRBuilder(begin)
        numbers = self.reduction.finish.parameters
        self.parameters = [builder.bitcast(self.word(ReductionWord.NUMBERS + place), ir.DoubleType()) for place in range(numbers)]
        self.steps_at = ReductionWord.NUMBERS + numbers
        self.reduced_at = self.steps_at + operands + results
        self.kept_at = self.reduced_at + (1 + operands) * self.reduced
        self.current, self.levels = self.states(self.unit, self.chunks), self.states(self.unit, self.chunks * LEVELS)
        self.prepare()
        per_task, items = self.word(ReductionWord.PER_TASK), self.word(ReductionWord.ITEMS)
        with self.tasks(counter, self.word(ReductionWord.TASKS)) as task:
            first = builder.mul(task, per_task)
            with self.counting(first, self.smaller(builder.add(first, per_task), items)) as item:
                self.item(item, is_part)
        builder.ret_void()
        with builder.goto_entry_block():
            builder.branch(begin)
        return str(module)

    def prepare(self) -> None:
        """Allocates the buffers of the form on the stack."""

    def item(self, item: ir.Value, is_part: bool) -> None:
        builder = self.builder
        rest, segment = self.divided(item, self.word(ReductionWord.SEGMENTS))
        outer, strip = self.divided(rest, self.word(ReductionWord.STRIPS))
        offsets = self.located(outer, self.kept_at, self.kept, len(self.inputs) + len(self.results))
        result = self.enter(outer, strip, offsets)
        length = self.word(ReductionWord.SEGMENT)
        first = builder.mul(segment, length)
        past = self.smaller(builder.add(first, length), self.word(ReductionWord.BLOCKS))
        with builder.if_then(builder.icmp_signed("<", first, past)):
            self.look_at_first()
        with self.counting(first, past) as block:
            self.block(block)
            with self.counting(number(0), self.count) as chunk:
                self.push(chunk, builder.sub(block, first))
        with self.counting(number(0), self.count) as chunk:
            state = self.folded(chunk, builder.sub(past, first))
            if is_part:
                self.leave(chunk, state, result, segment)
            else:
                self.finish(chunk, state)

    # --- what a form says ------------------------------------------------------------------------------------------------------

    count: ir.Value  # vectors of this unit
    sources: list[ir.Value]  # where its first elements are in each input
    targets: list[ir.Value]  # where its first results are

    def enter(self, outer: ir.Value, strip: ir.Value, offsets: list[ir.Value]) -> ir.Value:
        """Begins with a unit, given where it is in inputs and results; gives the number of its first result."""
        self.count, self.sources = number(1), offsets[: len(self.inputs)]
        kinds = map(stored_type, self.reduction.results)
        self.targets = [self.at(*each) for each in zip(self.results, offsets[len(self.inputs) :], kinds, strict=True)]
        return outer

    def look_at_first(self) -> None:
        """Remembers the first element of each sum."""

    def block(self, block: ir.Value) -> None:
        """Loads a block's inputs, which become `current`."""
        raise NotImplementedError

    def width(self, chunk: ir.Value) -> ir.Value:
        """How many results of a vector there are."""
        return number(1)

    # --- the tree over blocks --------------------------------------------------------------------------------------------------

    def push(self, chunk: ir.Value, place: ir.Value) -> None:
        """Every subtree that ends with this block is complete: one for each trailing one of its number."""
        builder = self.builder
        complete = builder.cttz(builder.not_(place), ir.Constant(ir.IntType(1), 0))
        with self.counting(number(0), complete) as level:
            combined = self.combine(self.unit, self.load(self.levels, self.entry(level, chunk)), self.load(self.current, chunk))
            self.store(combined, self.current, chunk)
        self.store(self.load(self.current, chunk), self.levels, self.entry(complete, chunk))

    def folded(self, chunk: ir.Value, blocks: ir.Value) -> State:
        """The subtrees that are left, from the smallest on."""
        builder = self.builder
        self.store(self.start(self.unit), self.current, chunk)
        height = builder.sub(number(64), builder.ctlz(blocks, ir.Constant(ir.IntType(1), 0)))
        with self.counting(number(0), height) as level:
            is_there = builder.trunc(builder.lshr(blocks, level), ir.IntType(1))
            with builder.if_then(is_there):
                combined = self.combine(self.unit, self.load(self.levels, self.entry(level, chunk)), self.load(self.current, chunk))
                self.store(combined, self.current, chunk)
        return self.load(self.current, chunk)

    def entry(self, level: ir.Value, chunk: ir.Value) -> ir.Value:
        return self.builder.add(self.builder.mul(level, number(self.chunks)), chunk)

    # --- results ---------------------------------------------------------------------------------------------------------------

    def finish(self, chunk: ir.Value, state: State) -> None:
        builder, emitter = self.builder, Emitter(self.builder, self.unit)
        values = self.apply(self.reduction.finish, self.unit, state)
        first = builder.mul(chunk, number(self.unit))
        for place, (value, element) in enumerate(zip(values, self.reduction.results, strict=True)):
            kind, step = stored_type(element), self.step(len(self.inputs) + place)
            buffer = self.variable(emitter.vector(kind))
            builder.store(emitter.stored(value, element), buffer)
            with self.counting(number(0), self.width(chunk)) as lane:
                builder.store(
                    builder.load(self.at(buffer, lane, kind), typ=kind),
                    self.at(self.targets[place], builder.mul(builder.add(first, lane), step), kind),
                )

    def leave(self, chunk: ir.Value, state: State, result: ir.Value, segment: ir.Value) -> None:
        """Puts a segment where the last form finds it."""
        builder = self.builder
        first = builder.add(result, builder.mul(chunk, number(self.unit)))
        for place, value in enumerate(state):
            buffer = self.variable(value.type)
            builder.store(value, buffer)
            with self.counting(number(0), self.width(chunk)) as lane:
                part = builder.load(self.at(buffer, lane, value.type.element), typ=value.type.element)
                builder.store(part, self.slot(place, builder.add(first, lane), segment))

    def slot(self, place: int, result: ir.Value, segment: ir.Value) -> ir.Value:
        builder = self.builder
        every = builder.mul(self.word(ReductionWord.PARTS), number(place))
        here = builder.add(builder.mul(result, self.word(ReductionWord.SLOTS)), segment)
        return self.at(self.workspace, builder.add(every, here), I64)

    # --- pieces ----------------------------------------------------------------------------------------------------------------

    def step(self, operand: int) -> ir.Value:
        """The step from one column to the next, in an input or a result."""
        return self.word(self.steps_at + operand)

    def at(self, address: ir.Value, place: ir.Value, kind: ir.Type) -> ir.Value:
        return self.builder.gep(address, [place], source_etype=kind)

    def states(self, lanes: int, count: int) -> list[tuple[ir.Value, ir.Type]]:
        """Room for so many contributions of so many lanes."""
        kinds = [Emitter(self.builder, lanes).register(element) for element in self.reduction.state]
        return [(self.variable(kind, count), kind) for kind in kinds]

    def load(self, states: list[tuple[ir.Value, ir.Type]], place: ir.Value) -> State:
        return [self.builder.load(self.at(buffer, place, kind), typ=kind) for buffer, kind in states]

    def store(self, values: State, states: list[tuple[ir.Value, ir.Type]], place: ir.Value) -> None:
        for value, (buffer, kind) in zip(values, states, strict=True):
            self.builder.store(value, self.at(buffer, place, kind))

    def apply(self, program: Program, lanes: int, inputs: Sequence[ir.Value]) -> State:
        emitter = Emitter(self.builder, lanes)
        parameters = [emitter.splat(value) for value in self.parameters]
        values = computed(emitter, in_order(program.results), list(inputs), parameters)
        return [values[result] for result in program.results]

    def start(self, lanes: int) -> State:
        return self.apply(self.reduction.start, lanes, ())

    def combine(self, lanes: int, a: State, b: State) -> State:
        return self.apply(self.reduction.combine, lanes, [*a, *b])

    def append(self, state: State, raw: Sequence[ir.Value], place: ir.Value, first: ir.Value | None) -> State:
        """LANES elements of each input with these numbers."""
        emitter, elements = Emitter(self.builder, LANES), self.reduction.elements
        value, *others = map(emitter.loaded, raw, elements)
        return self.apply(
            self.reduction.append,
            LANES,
            [*state, value, place, value if first is None else emitter.loaded(first, elements[0]), *others],
        )

    @property
    def numbered(self) -> ir.Type:
        """The integer type of an element's index."""
        return stored_type(self.reduction.place)

    def place(self, value: ir.Value) -> ir.Value:
        """The index of an element, in all lanes."""
        narrow = value if self.numbered == I64 else self.builder.trunc(value, self.numbered)
        return Emitter(self.builder, LANES).splat(narrow)

    def elements(self, operand: int, address: ir.Value) -> ir.Value:
        """LANES elements of an input as they are stored."""
        size = self.reduction.elements[operand].size
        return self.builder.load(address, typ=ir.VectorType(self.stored[operand], LANES), align=size)

    def copy(self, operand: int, source: ir.Value, step: ir.Value, count: ir.Value, buffer: ir.Value) -> None:
        """Elements of an input that are not contiguous, or are too few for a vector."""
        stored = self.stored[operand]
        with self.counting(number(0), count) as place:
            value = self.builder.load(self.at(source, self.builder.mul(place, step), stored), typ=stored)
            self.builder.store(value, self.at(buffer, place, stored))
