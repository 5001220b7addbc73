"""Scans as native functions, in LLVM's own language.

The order of joining is fixed by the length of a line. The states of sixteen elements become running ones as a tree: in step d, those in the
upper half of every 2d are joined to the last of the lower half. They are joined to what ran before them in their segment, and that to
what ran before the segment. So different threads can scan the segments of a long line, and a rounding error passes through some
sixteenth of a segment's length and the number of segments, never through all elements. Rows have sixteen elements of one line in a
vector, columns one element of each of several lines; both join in the same order, and give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.scan.descriptor import ScanBackwardDescriptor, ScanDescriptor, ScanKind
from baracuda_kernels.ops.scan.launch_words import CHAINS, SLOTS, STRIDED, WIDEST, ScanForm, ScanWord, Wave
from baracuda_kernels.ops.scan.rows import ScanFormulas, formulas_of
from baracuda_kernels.ops.scan.writer import GROUP, ScanWriter, States
from baracuda_kernels.targets.cpu.llvm.loops import I32, I64, number
from baracuda_kernels.targets.cpu.llvm.operations import Emitter

__all__ = ["body"]

BIT = ir.IntType(1)


def body(direction: str, kind: str, element: str, indices: str, form: str, lies: str, rank: str, streams: str) -> str:
    """The native function of a scan of such elements. `lies` says how each operand lies along the walk, `rank` how many other dims
    there are, and `streams` whether the results of rows go past the caches."""
    descriptor = ScanDescriptor if direction == "forward" else ScanBackwardDescriptor
    formulas = formulas_of(descriptor(ScanKind(kind), (1,), 0, ElementKind(element), indices=indices == "True"))
    if form == ScanForm.COLUMNS:
        return _Columns(formulas, int(rank)).written()
    of_rows = _Chains if formulas.chain else _Rows
    return (of_rows if form == ScanForm.ROWS else _Segments)(formulas, int(rank), streams == "True", form, lies).written()


class _Rows(ScanWriter):
    """Along one line, sixteen elements at a time."""

    def __init__(self, formulas: ScanFormulas, rank: int, streams: bool, form: str, lies: str) -> None:
        super().__init__(formulas, GROUP, rank, streams)
        self.form, self.lies = form, lies

    def written(self) -> str:
        with self.function() as item:
            self.whole_line(item)
        return str(self.module)

    def prepare(self) -> None:
        self.buffers = [self.buffer_for(place) for place in range(self.count)]
        self.local, self.carry = self.kept(), self.kept()

    def whole_line(self, line: ir.Value) -> None:
        bases = self.bases(line)
        self.keep(self.carry, self.start())
        with self.counting(number(0), self.word(ScanWord.SEGMENTS)) as segment:
            self.walk(bases, segment)
            self.keep(self.carry, self.combined(self.states_in(self.carry), self.states_in(self.local)))

    def walk(self, bases: Sequence[ir.Value], segment: ir.Value, writes: bool = True) -> None:
        builder, length = self.builder, self.word(ScanWord.SEGMENT)
        first = builder.mul(segment, length)
        past = self.smaller(builder.add(first, length), self.word(ScanWord.EXTENT))
        self.keep(self.local, self.start())
        full = builder.sub(past, builder.srem(builder.sub(past, first), number(GROUP)))
        with self.counting(first, full, GROUP) as at:
            self.step(bases, at, None, writes)
        with builder.if_then(builder.icmp_signed("<", full, past)):
            self.step(bases, full, builder.sub(past, full), writes)

    def step(self, bases: Sequence[ir.Value], at: ir.Value, count: ir.Value | None, writes: bool) -> None:
        """Sixteen elements, or the last few of a line: those go through the buffers, as do elements that are not contiguous."""
        builder = self.builder
        addresses = [
            self.address(place, base, builder.mul(at, step))
            for place, (base, step) in enumerate(zip(bases, self.steps, strict=True))
        ]
        inputs = []
        for place, element in enumerate(self.formulas.inputs):
            if self.is_direct(place, count):
                inputs.append(self.load(element, addresses[place], self.lies[place]))
            else:
                self.copy(
                    place, self.buffers[place], addresses[place], self.steps[place], number(GROUP) if count is None else count
                )
                inputs.append(self.load(element, self.buffers[place]))
        lanes = ir.Constant(ir.VectorType(I64, GROUP), list(range(GROUP)))
        along = builder.mul(lanes, self.emitter.splat(self.word(ScanWord.DIRECTION)))
        where = builder.add(self.emitter.splat(self.place_of(at)), along)
        states = self.joined(self.states_in(self.local), self.terms(inputs, where))
        self.keep(self.local, self.lane(states, GROUP - 1))
        if not writes:
            return
        for offset, value in enumerate(self.results(self.carried(states), inputs, where)):
            place = self.reads + offset
            if self.is_direct(place, count):
                self.store(self.elements[place], addresses[place], value, self.lies[place], self.streams)
            else:
                self.store(self.elements[place], self.buffers[place], value)
                self.copy(
                    place, self.buffers[place], addresses[place], self.steps[place], number(GROUP) if count is None else count
                )

    def is_direct(self, place: int, count: ir.Value | None) -> bool:
        return count is None and self.lies[place] != STRIDED

    def as_tree(self, states: States) -> States:
        builder, distance = self.builder, 1
        while distance < GROUP:
            last = [(lane // (2 * distance)) * 2 * distance + distance - 1 if lane & distance else lane for lane in range(GROUP)]
            mask = ir.Constant(ir.VectorType(I32, GROUP), last)
            below = [builder.shuffle_vector(state, ir.Constant(state.type, ir.Undefined), mask) for state in states]
            is_upper = ir.Constant(ir.VectorType(BIT, GROUP), [bool(lane & distance) for lane in range(GROUP)])
            pairs = zip(self.combined(below, states), states, strict=True)
            states = [builder.select(is_upper, joined, state) for joined, state in pairs]
            distance *= 2
        return states

    def joined(self, before: States, terms: States) -> States:
        """The running states of a group, from what ran before it in its segment."""
        return self.combined(before, self.as_tree(terms))

    def carried(self, states: States) -> States:
        """The running states, given what ran before the segment."""
        return self.combined(self.states_in(self.carry), states)


class _Chains(_Rows):
    """One element after the other, along several lines, which do not have to wait for each other. Each line is one segment."""

    def prepare(self) -> None:
        super().prepare()
        self.locals = [self.kept() for _ in range(CHAINS)]

    def whole_line(self, item: ir.Value) -> None:
        builder, extent = self.builder, self.word(ScanWord.EXTENT)
        lines = [builder.add(builder.mul(item, number(CHAINS)), number(place)) for place in range(CHAINS)]
        is_there = [builder.icmp_signed("<", line, self.word(ScanWord.COLUMNS)) for line in lines]
        bases = [self.bases(line) for line in lines]
        for local in self.locals:
            self.keep(local, self.start())
        full = builder.sub(extent, builder.srem(extent, number(GROUP)))

        def step(at: ir.Value, count: ir.Value | None) -> None:
            for there, base, local in zip(is_there, bases, self.locals, strict=True):
                self.local = local
                with builder.if_then(there):
                    self.step(base, at, count, writes=True)

        with self.counting(number(0), full, GROUP) as at:
            step(at, None)
        with builder.if_then(builder.icmp_signed("<", full, extent)):
            step(full, builder.sub(extent, full))

    def joined(self, before: States, terms: States) -> States:
        builder, single = self.builder, Emitter(self.builder, 1)

        def lane_of(states: States, lane: int) -> States:
            return [single.splat(builder.extract_element(state, ir.Constant(I32, lane))) for state in states]

        state, joined = lane_of(before, 0), terms
        for lane in range(GROUP):
            state = self.combined(state, lane_of(terms, lane))
            joined = [
                builder.insert_element(vector, builder.extract_element(each, ir.Constant(I32, 0)), ir.Constant(I32, lane))
                for vector, each in zip(joined, state, strict=True)
            ]
        return joined

    def carried(self, states: States) -> States:
        return states


class _Segments(_Rows):
    """A wave of segments of one line: first the totals of all of them, then each from what comes before it, which is still in a cache."""

    def written(self) -> str:
        with self.function() as segment:
            bases, line = self.bases(self.told(Wave.LINE)), self.builder.mul(self.told(Wave.LINE), self.word(ScanWord.SEGMENTS))
            if self.form == ScanForm.TOTALS:
                self.walk(bases, segment, writes=False)
                self.leave(self.states_in(self.local), self.builder.add(line, segment), 0)
            else:
                self.go_on(bases, line, segment)
        return str(self.module)

    @contextmanager
    def items(self) -> Iterator[ir.Value]:
        with self.tasks(self.counter, self.told(Wave.COUNT)) as task:
            yield self.builder.add(self.told(Wave.FIRST), task)

    def told(self, place: int) -> ir.Value:
        """What the launch says of the wave, beside the count of its tasks."""
        return self.builder.load(self.builder.gep(self.counter, [number(place)], source_etype=I64), typ=I64)

    def go_on(self, bases: Sequence[ir.Value], line: ir.Value, segment: ir.Value) -> None:
        builder, first = self.builder, self.told(Wave.FIRST)
        self.keep(self.carry, self.start())
        with builder.if_then(builder.icmp_signed("<", number(0), first)):
            self.keep(self.carry, self.left(builder.add(line, builder.sub(first, number(1))), 1))
        with self.counting(first, segment) as before:
            self.keep(self.carry, self.combined(self.states_in(self.carry), self.left(builder.add(line, before), 0)))
        self.walk(bases, segment)
        self.leave(self.combined(self.states_in(self.carry), self.states_in(self.local)), builder.add(line, segment), 1)

    def slots(self, segment: ir.Value, which: int) -> list[ir.Value]:
        """Slots in the workspace: for every segment its total, and the state up to its end."""
        builder = self.builder
        first = builder.add(builder.mul(segment, number(SLOTS)), number(which * SLOTS // 2))
        return [
            builder.gep(self.workspace, [builder.add(first, number(place))], source_etype=I64)
            for place in range(len(self.formulas.states))
        ]

    def leave(self, states: States, segment: ir.Value, which: int) -> None:
        for state, slot in zip(states, self.slots(segment, which), strict=True):
            self.builder.store(self.builder.extract_element(state, ir.Constant(I32, 0)), slot)

    def left(self, segment: ir.Value, which: int) -> States:
        pairs = zip(self.slots(segment, which), self.state_types(), strict=True)
        return [self.emitter.splat(self.builder.load(slot, typ=kind.element)) for slot, kind in pairs]


class _Columns(ScanWriter):
    """Down several adjacent lines, sixteen elements of each at a time."""

    def __init__(self, formulas: ScanFormulas, rank: int) -> None:
        # Sixteen vectors of states have to fit into the registers.
        super().__init__(formulas, 64 // max(element.size for element in formulas.states), rank, streams=False)

    def written(self) -> str:
        with self.function() as item:
            self.strip(item)
        return str(self.module)

    def prepare(self) -> None:
        self.buffers = [self.buffer_for(place, GROUP) for place in range(self.count)]
        self.local, self.carry = self.kept(WIDEST // self.lanes), self.kept(WIDEST // self.lanes)

    def strip(self, item: ir.Value) -> None:
        builder = self.builder
        line, strip = self.divided(item, self.word(ScanWord.STRIPS))
        column = builder.mul(strip, self.word(ScanWord.STRIP))
        width = builder.sub(self.smaller(builder.add(column, self.word(ScanWord.STRIP)), self.word(ScanWord.COLUMNS)), column)
        bases = [self.address(place, base, column) for place, base in enumerate(self.bases(line))]
        vectors = builder.sdiv(builder.add(width, number(self.lanes - 1)), number(self.lanes))
        with self.counting(number(0), vectors) as vector:
            self.keep(self.carry, self.start(), vector)
        with self.counting(number(0), self.word(ScanWord.SEGMENTS)) as segment:
            with self.counting(number(0), vectors) as vector:
                self.keep(self.local, self.start(), vector)
            self.segment(bases, segment, width)
            with self.counting(number(0), vectors) as vector:
                joined = self.combined(self.states_in(self.carry, vector), self.states_in(self.local, vector))
                self.keep(self.carry, joined, vector)

    def segment(self, bases: Sequence[ir.Value], segment: ir.Value, width: ir.Value) -> None:
        builder, length = self.builder, self.word(ScanWord.SEGMENT)
        first = builder.mul(segment, length)
        past = self.smaller(builder.add(first, length), self.word(ScanWord.EXTENT))
        full_width = builder.sub(width, builder.srem(width, number(self.lanes)))
        with self.counting(first, past, GROUP) as at:
            rows = self.smaller(builder.sub(past, at), number(GROUP))
            whole = builder.select(builder.icmp_signed("==", rows, number(GROUP)), full_width, number(0))
            vectors = builder.sdiv(whole, number(self.lanes))
            with self.counting(number(0), vectors) as vector:
                self.tile(bases, at, vector)
            with self.counting(whole, width, self.lanes) as column:
                count = self.smaller(builder.sub(width, column), number(self.lanes))
                self.small_tile(bases, at, column, rows, count)

    def addresses(self, bases: Sequence[ir.Value], place: int, at: ir.Value, column: ir.Value) -> ir.Value:
        return self.address(place, bases[place], self.builder.add(self.builder.mul(at, self.steps[place]), column))

    def tile(self, bases: Sequence[ir.Value], at: ir.Value, vector: ir.Value) -> None:
        builder, column = self.builder, self.builder.mul(vector, number(self.lanes))
        addresses = [
            [self.addresses(bases, place, builder.add(at, number(row)), column) for place in range(self.count)]
            for row in range(GROUP)
        ]
        self.compute(addresses, at, vector)

    def small_tile(self, bases: Sequence[ir.Value], at: ir.Value, column: ir.Value, rows: ir.Value, count: ir.Value) -> None:
        """Fewer rows or columns, through the buffers."""
        inside = [
            [self.address(place, self.buffers[place], number(row * self.lanes)) for place in range(self.count)]
            for row in range(GROUP)
        ]

        def copy(places: range) -> None:
            with self.counting(number(0), rows) as row:
                for place in places:
                    buffer = self.address(place, self.buffers[place], self.builder.mul(row, number(self.lanes)))
                    there = self.addresses(bases, place, self.builder.add(at, row), column)
                    self.copy(place, buffer, there, None, count)

        copy(range(self.reads))
        self.compute(inside, at, self.builder.sdiv(column, number(self.lanes)))
        copy(range(self.reads, self.count))

    def compute(self, addresses: Sequence[Sequence[ir.Value]], at: ir.Value, vector: ir.Value) -> None:
        inputs = [[self.load(element, row[place]) for place, element in enumerate(self.formulas.inputs)] for row in addresses]
        places = [self.emitter.splat(self.place_of(self.builder.add(at, number(row)))) for row in range(GROUP)]
        terms = [self.terms(each, where) for each, where in zip(inputs, places, strict=True)]
        before = self.states_in(self.local, vector)
        in_turn = self.formulas.chain or self.formulas.exact
        states = self.chained(before, terms) if in_turn else [self.combined(before, each) for each in self.as_tree(terms)]
        self.keep(self.local, states[-1], vector)
        if not self.formulas.chain:
            carry = self.states_in(self.carry, vector)
            states = [self.combined(carry, each) for each in states]
        for row in range(GROUP):
            for offset, value in enumerate(self.results(states[row], inputs[row], places[row])):
                place = self.reads + offset
                self.store(self.elements[place], addresses[row][place], value)

    def chained(self, before: States, terms: Sequence[States]) -> list[States]:
        joined = []
        for term in terms:
            before = self.combined(before, term)
            joined.append(before)
        return joined

    def as_tree(self, terms: list[States]) -> list[States]:
        distance = 1
        while distance < GROUP:
            terms = [
                self.combined(terms[row // (2 * distance) * 2 * distance + distance - 1], term) if row & distance else term
                for row, term in enumerate(terms)
            ]
            distance *= 2
        return terms
