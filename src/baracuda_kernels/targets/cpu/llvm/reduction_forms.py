"""The forms of a reduction, by the layout of its elements.

Rows: the elements that become one are contiguous, or are brought together block by block; the lanes of the order are a vector. Columns:
results are contiguous, the elements of LANES of them are a vector, and every lane of the order has vectors of its own. Merge: the
blocks are segments that others have reduced.
"""

from __future__ import annotations

from llvmlite import ir

from baracuda_kernels.formula.reduction import FIRST, Reduction
from baracuda_kernels.targets.cpu.llvm.loops import I32, I64, PTR, number
from baracuda_kernels.targets.cpu.llvm.operations import Emitter
from baracuda_kernels.targets.cpu.llvm.reduction import ReductionWriter
from baracuda_kernels.targets.cpu.llvm.reduction_launch import BLOCK, LANES, Lies, ReductionForm, ReductionWord, chunks_of

__all__ = ["body"]

AHEAD = 12  # rows of columns to ask for before they are read: the hardware does not follow such strides
LINE = 64  # bytes


def body(text: str, form: str, lies: str, kept: str, reduced: str, is_part: str) -> str:
    """The native function in LLVM assembly: of the words, a task counter, the input, the result and the workspace.

    `kept` and `reduced` are numbers of dims. If it `is_part`, segments are left in the workspace.
    """
    reduction = Reduction.read(text)
    forms = {ReductionForm.ROWS: _Rows, ReductionForm.COLUMNS: _Columns, ReductionForm.MERGE: _Merge}
    return forms[form](reduction, lies, int(kept), int(reduced)).written(is_part == "True")


class _Rows(ReductionWriter):
    def prepare(self) -> None:
        size = LANES if self.lies == Lies.DIRECT else BLOCK
        self.buffers = [self.variable(stored, size) for stored in self.stored]
        self.first = self.variable(self.stored[0])
        self.lanes = self.states(LANES, 1)

    def look_at_first(self) -> None:
        if self.reduction.uses(FIRST):
            source = self.at(self.inputs[0], self.sources[0], self.stored[0])
            self.builder.store(self.builder.load(source, typ=self.stored[0]), self.first)

    def block(self, block: ir.Value) -> None:
        builder = self.builder
        begin = builder.mul(block, number(BLOCK))
        length = self.smaller(number(BLOCK), builder.sub(self.word(ReductionWord.COUNT), begin))
        first = None
        if self.reduction.uses(FIRST):
            first = Emitter(builder, LANES).splat(builder.load(self.first, typ=self.stored[0]))
        rows = self.gathered(begin, length)
        self.store(self.start(LANES), self.lanes, number(0))
        whole = builder.and_(length, number(-LANES))
        with self.counting(number(0), whole, LANES) as at:
            elements = [self.elements(operand, self.at(row, at, self.stored[operand])) for operand, row in enumerate(rows)]
            state = self.append(self.load(self.lanes, number(0)), elements, self.places(builder.add(begin, at)), first)
            self.store(state, self.lanes, number(0))
        with builder.if_then(builder.icmp_signed("<", whole, length)):
            left = [self.at(row, whole, stored) for row, stored in zip(rows, self.stored, strict=True)]
            self.rest(left, builder.add(begin, whole), builder.sub(length, whole), first)
        state, lanes = self.load(self.lanes, number(0)), LANES
        while lanes > 1:
            lanes //= 2
            state = self.combine(lanes, *([self.part(value, half * lanes, lanes) for value in state] for half in range(2)))
        self.store(state, self.current, number(0))

    def rest(self, addresses: list[ir.Value], begin: ir.Value, count: ir.Value, first: ir.Value | None) -> None:
        """The last elements, fewer than LANES."""
        builder, emitter = self.builder, Emitter(self.builder, LANES)
        if self.lies == Lies.DIRECT:
            for operand, (address, buffer) in enumerate(zip(addresses, self.buffers, strict=True)):
                self.copy(operand, address, number(1), count, buffer)
            addresses = self.buffers
        before = self.load(self.lanes, number(0))
        elements = [self.elements(operand, address) for operand, address in enumerate(addresses)]
        after = self.append(before, elements, self.places(begin), first)
        kind = self.numbered
        inside = builder.icmp_signed(
            "<", self.places(number(0)), emitter.splat(builder.trunc(count, kind) if kind != I64 else count)
        )
        self.store([builder.select(inside, *each) for each in zip(after, before, strict=True)], self.lanes, number(0))

    def places(self, first: ir.Value) -> ir.Value:
        lanes = ir.Constant(ir.VectorType(self.numbered, LANES), list(range(LANES)))
        return self.builder.add(self.place(first), lanes)

    def part(self, value: ir.Value, first: int, count: int) -> ir.Value:
        chosen = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
        return self.builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), chosen)

    def gathered(self, begin: ir.Value, length: ir.Value) -> list[ir.Value]:
        """Where a block of each input is contiguous: in place, or in the buffer, after it was copied run by run."""
        builder, operands = self.builder, len(self.inputs)
        if self.lies == Lies.DIRECT:
            every = zip(self.inputs, self.sources, self.stored, strict=True)
            return [self.at(input, builder.add(source, begin), stored) for input, source, stored in every]
        inner = self.reduced_at + (1 + operands) * (self.reduced - 1)
        extent = self.word(inner)
        with self.running(length) as (place, following):
            outer, here = self.divided(builder.add(begin, place), extent)
            run = self.smaller(builder.sub(extent, here), builder.sub(length, place))
            offsets = self.located(outer, self.reduced_at, self.reduced - 1, operands)
            for operand, offset in enumerate(offsets):
                step = number(1) if self.lies == Lies.RUNS else self.word(inner + 1 + operand)
                start = builder.add(builder.add(self.sources[operand], offset), builder.mul(here, step))
                source = self.at(self.inputs[operand], start, self.stored[operand])
                self.copy(operand, source, step, run, self.at(self.buffers[operand], place, self.stored[operand]))
            builder.store(builder.add(place, run), following)
        return self.buffers


class _Columns(ReductionWriter):
    unit = LANES

    def __init__(self, reduction: Reduction, lies: str, kept: int, reduced: int) -> None:
        super().__init__(reduction, lies, kept, reduced)
        self.chunks = chunks_of(reduction)
        direct = "1" * reduction.operands
        self.known = [
            int(step) for step in {Lies.DIRECT: direct, Lies.STRIDED: ""}.get(lies, lies)
        ]  # the operands' steps, if they are

    def prepare(self) -> None:
        self.buffers, self.first = [self.variable(vector) for vector in self.vectors], self.variable(self.vectors[0], self.chunks)
        self.lanes = self.states(LANES, LANES * self.chunks)
        for buffer, vector in zip(self.buffers, self.vectors, strict=True):
            self.builder.store(ir.Constant(vector, None), buffer)  # of a strip that is not full the rest is anything, but something

    def enter(self, outer: ir.Value, strip: ir.Value, offsets: list[ir.Value]) -> ir.Value:
        builder, columns = self.builder, self.word(ReductionWord.COLUMNS)
        first = builder.mul(strip, number(self.chunks * LANES))
        self.columns = self.smaller(number(self.chunks * LANES), builder.sub(columns, first))
        super().enter(outer, strip, [builder.add(at, builder.mul(first, self.step(place))) for place, at in enumerate(offsets)])
        self.count = builder.sdiv(builder.add(self.columns, number(LANES - 1)), number(LANES))
        return builder.add(builder.mul(outer, columns), first)

    def step(self, operand: int) -> ir.Value:
        return number(self.known[operand]) if operand < len(self.known) else super().step(operand)

    def width(self, chunk: ir.Value) -> ir.Value:
        return self.smaller(number(LANES), self.builder.sub(self.columns, self.builder.mul(chunk, number(LANES))))

    def look_at_first(self) -> None:
        if self.reduction.uses(FIRST):
            with self.counting(number(0), self.count) as chunk:
                self.builder.store(self.gathered(0, self.sources[0], chunk), self.at(self.first, chunk, self.vectors[0]))

    @property
    def vectors(self) -> list[ir.Type]:
        return [ir.VectorType(stored, LANES) for stored in self.stored]

    def gathered(self, operand: int, offset: ir.Value, chunk: ir.Value) -> ir.Value:
        """A vector of one row of columns, through the buffer."""
        step = self.step(operand)
        place = self.builder.add(offset, self.builder.mul(self.builder.mul(chunk, number(LANES)), step))
        source, buffer = self.at(self.inputs[operand], place, self.stored[operand]), self.buffers[operand]
        self.copy(operand, source, step, self.width(chunk), buffer)
        return self.elements(operand, buffer)

    def block(self, block: ir.Value) -> None:
        builder = self.builder
        begin = builder.mul(block, number(BLOCK))
        past = self.smaller(builder.add(begin, number(BLOCK)), self.word(ReductionWord.COUNT))
        with self.counting(number(0), builder.mul(self.count, number(LANES))) as place:
            self.store(self.start(LANES), self.lanes, place)
        whole = builder.sdiv(self.columns, number(LANES)) if self.known else number(0)
        with self.counting(begin, past) as row:
            located = self.located(row, self.reduced_at, self.reduced, len(self.inputs))
            offsets = [builder.add(source, offset) for source, offset in zip(self.sources, located, strict=True)]
            if self.known:
                with self.counting(number(0), whole) as chunk:
                    first = builder.mul(chunk, number(LANES))
                    self.take([self.direct(operand, offset, first) for operand, offset in enumerate(offsets)], row, chunk)
            with self.counting(whole, self.count) as chunk:
                self.take([self.gathered(operand, offset, chunk) for operand, offset in enumerate(offsets)], row, chunk)
        with self.counting(number(0), self.count) as chunk:
            self.fold(builder.mul(chunk, number(LANES)))
            self.store(self.load(self.lanes, builder.mul(chunk, number(LANES))), self.current, chunk)

    def direct(self, operand: int, offset: ir.Value, first: ir.Value) -> ir.Value:
        """A vector of one row of columns, or what is the same for all of them."""
        source, stored = self.inputs[operand], self.stored[operand]
        if self.known[operand] == 0:
            return Emitter(self.builder, LANES).splat(self.builder.load(self.at(source, offset, stored), typ=stored))
        address = self.at(source, self.builder.add(offset, first), stored)
        self.ask_ahead(operand, address)
        return self.elements(operand, address)

    def take(self, raw: list[ir.Value], row: ir.Value, chunk: ir.Value) -> None:
        builder = self.builder
        lane = builder.add(builder.mul(chunk, number(LANES)), builder.and_(row, number(LANES - 1)))
        first = self.elements(0, self.at(self.first, chunk, self.vectors[0])) if self.reduction.uses(FIRST) else None
        self.store(self.append(self.load(self.lanes, lane), raw, self.place(row), first), self.lanes, lane)

    def ask_ahead(self, operand: int, address: ir.Value) -> None:
        if self.reduced != 1:
            return
        builder, size = self.builder, self.reduction.elements[operand].size
        step = builder.mul(self.word(self.reduced_at + 1 + operand), number(AHEAD * size))
        kind = ir.FunctionType(ir.VoidType(), [PTR, I32, I32, I32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
        for line in range(0, LANES * size, LINE):
            there = self.at(address, builder.add(step, number(line)), ir.IntType(8))
            builder.call(prefetch, [there, ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)])

    def fold(self, first: ir.Value) -> None:
        """The lanes of one vector of columns, as a binary tree."""
        builder = self.builder
        with self.counting(number(1), number(LANES.bit_length())) as level:
            half = builder.lshr(number(LANES), level)
            with self.counting(number(0), half) as lane:
                place = builder.add(first, lane)
                other = self.load(self.lanes, builder.add(place, half))
                self.store(self.combine(LANES, self.load(self.lanes, place), other), self.lanes, place)


class _Merge(ReductionWriter):
    def enter(self, outer: ir.Value, strip: ir.Value, offsets: list[ir.Value]) -> ir.Value:
        self.number = super().enter(outer, strip, offsets)
        return self.number

    def block(self, block: ir.Value) -> None:
        slots = [self.slot(place, self.number, block) for place in range(len(self.current))]
        self.store(
            [self.builder.load(at, typ=kind) for at, (_, kind) in zip(slots, self.current, strict=True)], self.current, number(0)
        )
