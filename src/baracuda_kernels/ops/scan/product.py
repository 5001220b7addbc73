"""The gradient of a running product as a native function, in LLVM's own language.

By x[k] it is what precedes, x[0] ... x[k-1], times what follows: g[k] = d[k] + x[k+1] g[k+1]. Nothing is divided, so zeros are like all
others. What precedes is found walking forwards and kept at some places; then the walk goes back from one such place to the one before,
where it finds the products in between again.
"""

from __future__ import annotations

from llvmlite import ir

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.ops.scan.descriptor import ScanBackwardDescriptor, ScanKind
from baracuda_kernels.ops.scan.launch_words import CHECKPOINT, SLOT, ScanWord
from baracuda_kernels.ops.scan.rows import formulas_of
from baracuda_kernels.ops.scan.writer import ScanWriter, States
from baracuda_kernels.targets.cpu.llvm.loops import number

__all__ = ["body"]


def body(kind: str, element: str, lanes: str, rank: str) -> str:
    """The body for as many adjacent lines as there are lanes."""
    formulas = formulas_of(ScanBackwardDescriptor(ScanKind(kind), (1,), 0, ElementKind(element)))
    return _Writer(formulas, int(lanes), int(rank), streams=False).written()


class _Writer(ScanWriter):
    def written(self) -> str:
        with self.function() as item:
            self.line(item)
        return str(self.module)

    def prepare(self) -> None:
        self.kind = self.state_types()[0]
        self.before, self.down = self.variable(self.kind), self.variable(self.kind)
        self.products = self.variable(self.kind, CHECKPOINT)

    def line(self, item: ir.Value) -> None:
        builder, extent = self.builder, self.word(ScanWord.EXTENT)
        bases = self.bases(item)
        blocks = builder.sdiv(builder.add(extent, number(CHECKPOINT - 1)), number(CHECKPOINT))
        # The word that strips of columns have no use for here says how many numbers other launches keep before these.
        first = builder.add(self.word(ScanWord.COLUMNS), builder.mul(builder.mul(item, blocks), number(self.lanes)))

        def kept_at(block: ir.Value) -> ir.Value:
            place = builder.add(first, builder.mul(block, number(self.lanes)))
            return builder.gep(self.workspace, [builder.mul(place, number(SLOT))], source_etype=ir.IntType(8))

        def multiply(at: ir.Value) -> None:
            builder.store(builder.fmul(builder.load(self.before, typ=self.kind), self.terms_at(bases, at)[1]), self.before)

        def bounds(block: ir.Value) -> tuple[ir.Value, ir.Value]:
            begin = builder.mul(block, number(CHECKPOINT))
            return begin, self.smaller(builder.add(begin, number(CHECKPOINT)), extent)

        builder.store(self.emitter.constant(1, self.formulas.states[1]), self.before)
        with self.counting(number(0), blocks) as block:
            builder.store(builder.load(self.before, typ=self.kind), kept_at(block), align=SLOT)
            with self.counting(*bounds(block)) as at:
                multiply(at)
        builder.store(self.emitter.constant(0, self.formulas.states[0]), self.down)
        with self.counting(number(0), blocks) as done:
            block = builder.sub(builder.sub(blocks, number(1)), done)
            begin, past = bounds(block)
            builder.store(builder.load(kept_at(block), typ=self.kind, align=SLOT), self.before)
            with self.counting(begin, past) as at:
                builder.store(builder.load(self.before, typ=self.kind), self.product(builder.sub(at, begin)))
                multiply(at)
            with self.counting(number(0), builder.sub(past, begin)) as back:
                offset = builder.sub(builder.sub(builder.sub(past, begin), number(1)), back)
                self.step(bases, builder.add(begin, offset), builder.load(self.product(offset), typ=self.kind))

    def step(self, bases: list[ir.Value], at: ir.Value, before: ir.Value) -> None:
        builder = self.builder
        upstream, factor = self.terms_at(bases, at)
        gathered = builder.fadd(upstream, builder.load(self.down, typ=self.kind))
        builder.store(builder.fmul(gathered, factor), self.down)
        states = [builder.fmul(before, gathered), factor]
        (value,) = self.results(states, self.inputs_at(bases, at), self.emitter.splat(number(0)))
        place = self.reads
        self.store(self.elements[place], self.address(place, bases[place], builder.mul(at, self.steps[place])), value)

    def product(self, offset: ir.Value) -> ir.Value:
        return self.builder.gep(self.products, [offset], source_etype=self.kind)

    def inputs_at(self, bases: list[ir.Value], at: ir.Value) -> list[ir.Value]:
        return [
            self.load(element, self.address(place, bases[place], self.builder.mul(at, self.steps[place])))
            for place, element in enumerate(self.formulas.inputs)
        ]

    def terms_at(self, bases: list[ir.Value], at: ir.Value) -> States:
        return self.terms(self.inputs_at(bases, at), self.emitter.splat(number(0)))
