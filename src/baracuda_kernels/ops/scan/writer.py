"""What the bodies of scans share: formulas on vectors of states, and operands read and written as vectors, in any layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.formula.expression import in_order
from baracuda_kernels.ops.scan.launch_words import BACKWARDS, SIDE_BY_SIDE, ScanWord
from baracuda_kernels.ops.scan.rows import ScanFormulas
from baracuda_kernels.targets.cpu.llvm.loops import I32, PTR, Loops, number
from baracuda_kernels.targets.cpu.llvm.operations import Emitter, computed, stored_type
from baracuda_kernels.targets.cpu.runtime.native import ENTRY

__all__ = ["GROUP", "ScanWriter", "States"]

GROUP = 16  # elements whose states are joined as a tree
LARGE = 24  # operations from which a formula is a function of its own, and not written wherever it is needed
LINE = 64  # bytes

States = list[ir.Value]


class ScanWriter(Loops):
    """Writes one native function: of the words, a task counter, the operands and the workspace."""

    def __init__(self, formulas: ScanFormulas, lanes: int, rank: int, streams: bool) -> None:
        self.formulas, self.lanes, self.rank, self.streams = formulas, lanes, rank, streams
        self.elements = (*formulas.inputs, *formulas.outputs)
        self.count = len(self.elements)
        self.reads = len(formulas.inputs)
        self.module = ir.Module(name="scan")
        self.joining = self._joining() if len(in_order(formulas.combine)) > LARGE else None

    # --- formulas ---------------------------------------------------------------------------------------------------------------

    @property
    def emitter(self) -> Emitter:
        return Emitter(self.builder, self.lanes)

    def state_types(self) -> list[ir.Type]:
        return [Emitter(None, self.lanes).register(element) for element in self.formulas.states]

    def _joining(self) -> ir.Function:
        kinds = self.state_types()
        function = ir.Function(self.module, ir.FunctionType(ir.LiteralStructType(kinds), kinds + kinds), "combine")
        function.linkage = "internal"
        builder = ir.IRBuilder(function.append_basic_block())
        values = computed(Emitter(builder, self.lanes), in_order(self.formulas.combine), list(function.args), [])
        builder.ret(self._packed(builder, [values[each] for each in self.formulas.combine]))
        return function

    def _packed(self, builder: ir.IRBuilder, states: States) -> ir.Value:
        packed = ir.Constant(ir.LiteralStructType(self.state_types()), ir.Undefined)
        for place, state in enumerate(states):
            packed = builder.insert_value(packed, state, place)
        return packed

    def combined(self, earlier: States, later: States) -> States:
        if self.joining is None or earlier[0].type.count != self.lanes:
            emitter = Emitter(self.builder, earlier[0].type.count)
            values = computed(emitter, in_order(self.formulas.combine), [*earlier, *later], [])
            return [values[each] for each in self.formulas.combine]
        packed = self.builder.call(self.joining, [*earlier, *later])
        return [self.builder.extract_value(packed, place) for place in range(len(earlier))]

    def terms(self, inputs: Sequence[ir.Value], place: ir.Value) -> States:
        values = computed(self.emitter, in_order(self.formulas.term), [*inputs, place], [])
        return [values[each] for each in self.formulas.term]

    def results(self, states: States, inputs: Sequence[ir.Value], place: ir.Value) -> list[ir.Value]:
        values = computed(self.emitter, in_order(self.formulas.value), [*states, *inputs, place], [])
        return [values[each] for each in self.formulas.value]

    def start(self) -> States:
        return [
            self.emitter.constant(value, element) for value, element in zip(self.formulas.start, self.formulas.states, strict=True)
        ]

    # --- states that live longer than a step --------------------------------------------------------------------------------------

    def kept(self, count: int = 1) -> list[ir.Value]:
        """Stack memory for vectors of states."""
        buffers = [self.variable(kind, count) for kind in self.state_types()]
        for buffer in buffers:
            buffer.align = LINE
        return buffers

    def keep(self, buffers: Sequence[ir.Value], states: States, at: ir.Value | None = None) -> None:
        for buffer, state in zip(buffers, states, strict=True):
            self.builder.store(state, buffer if at is None else self.builder.gep(buffer, [at], source_etype=state.type))

    def states_in(self, buffers: Sequence[ir.Value], at: ir.Value | None = None) -> States:
        pairs = zip(buffers, self.state_types(), strict=True)
        return [
            self.builder.load(buffer if at is None else self.builder.gep(buffer, [at], source_etype=kind), typ=kind)
            for buffer, kind in pairs
        ]

    def lane(self, states: States, lane: int) -> States:
        """One lane's states in all lanes."""
        mask = ir.Constant(ir.VectorType(I32, self.lanes), [lane] * self.lanes)
        return [self.builder.shuffle_vector(state, ir.Constant(state.type, ir.Undefined), mask) for state in states]

    # --- the function -------------------------------------------------------------------------------------------------------------

    @contextmanager
    def function(self) -> Iterator[ir.Value]:
        """Gives the number of each item of work."""
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [PTR] * (3 + self.count)), ENTRY)
        self.words, self.counter, *self.operands, self.workspace = function.args
        function.append_basic_block("buffer")  # for what is on the stack
        begin = function.append_basic_block("begin")
        self.builder = builder = ir.IRBuilder(begin)
        self.steps = [self.word(ScanWord.STEPS + place) for place in range(self.count)]
        self.prepare()
        with self.items() as item:
            yield item
        if self.streams:
            builder.fence("seq_cst")  # so that other threads see what went past the caches
        builder.ret_void()
        ir.IRBuilder(function.entry_basic_block).branch(begin)

    @contextmanager
    def items(self) -> Iterator[ir.Value]:
        builder = self.builder
        with self.tasks(self.counter, self.word(ScanWord.TASKS)) as task:
            first = builder.mul(task, self.word(ScanWord.PER_TASK))
            past = self.smaller(builder.add(first, self.word(ScanWord.PER_TASK)), self.word(ScanWord.ITEMS))
            with self.counting(first, past) as item:
                yield item

    def prepare(self) -> None:
        """Allocates the buffers on the stack."""

    def bases(self, line: ir.Value) -> list[ir.Value]:
        """Where the walk along a line begins in every operand."""
        offsets = self.located(line, ScanWord.STEPS + 2 * self.count, self.rank, self.count)
        starts = [self.word(ScanWord.STEPS + self.count + place) for place in range(self.count)]
        return [
            self.builder.gep(operand, [self.builder.add(offset, start)], source_etype=stored_type(element))
            for operand, offset, start, element in zip(self.operands, offsets, starts, self.elements, strict=True)
        ]

    def address(self, place: int, base: ir.Value, offset: ir.Value) -> ir.Value:
        return self.builder.gep(base, [offset], source_etype=stored_type(self.elements[place]))

    def place_of(self, at: ir.Value) -> ir.Value:
        """Along the axis, of a step of the walk."""
        return self.builder.add(self.word(ScanWord.FIRST), self.builder.mul(at, self.word(ScanWord.DIRECTION)))

    def load(self, element: ElementKind, address: ir.Value, how: str = SIDE_BY_SIDE) -> ir.Value:
        """A vector of elements from there on, or from there backwards."""
        if how == BACKWARDS:
            address = self.builder.gep(address, [number(1 - self.lanes)], source_etype=stored_type(element))
        raw = self.builder.load(address, typ=self.emitter.vector(stored_type(element)), align=element.size)
        return self.emitter.loaded(self._turned(raw) if how == BACKWARDS else raw, element)

    def store(
        self, element: ElementKind, address: ir.Value, value: ir.Value, how: str = SIDE_BY_SIDE, streams: bool = False
    ) -> None:
        raw = self.emitter.stored(value, element)
        if how == BACKWARDS:
            raw = self._turned(raw)
            address = self.builder.gep(address, [number(1 - self.lanes)], source_etype=stored_type(element))
        stored = self.builder.store(raw, address, align=min(LINE, self.lanes * element.size) if streams else element.size)
        if streams:
            stored.set_metadata("nontemporal", self.module.add_metadata([ir.Constant(I32, 1)]))

    def _turned(self, raw: ir.Value) -> ir.Value:
        mask = ir.Constant(ir.VectorType(I32, self.lanes), list(reversed(range(self.lanes))))
        return self.builder.shuffle_vector(raw, ir.Constant(raw.type, ir.Undefined), mask)

    def buffer_for(self, place: int, vectors: int = 1) -> ir.Value:
        """Where a few elements of an operand are brought together; what nobody writes there is zero."""
        kind = stored_type(self.elements[place])
        buffer = self.variable(kind, vectors * self.lanes)
        buffer.align = LINE
        for vector in range(vectors):
            address = self.builder.gep(buffer, [number(vector * self.lanes)], source_etype=kind)
            self.builder.store(ir.Constant(self.emitter.vector(kind), None), address)
        return buffer

    def copy(self, place: int, buffer: ir.Value, base: ir.Value, step: ir.Value | None, count: ir.Value) -> None:
        """Copies elements of an operand into the buffer if it is read, out of it if it is written."""
        builder, kind = self.builder, stored_type(self.elements[place])
        with self.counting(number(0), count) as at:
            here = builder.gep(buffer, [at], source_etype=kind)
            there = builder.gep(base, [at if step is None else builder.mul(at, step)], source_etype=kind)
            source, target = (there, here) if place < self.reads else (here, there)
            builder.store(builder.load(source, typ=kind), target)
