"""Loops, tasks and places in operands, written in LLVM's own language: what native bodies share, whatever they compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llvmlite import ir

__all__ = ["I32", "I64", "PTR", "Loops", "number"]

I32, I64, PTR = ir.IntType(32), ir.IntType(64), ir.PointerType()


def number(value: int) -> ir.Constant:
    return ir.Constant(I64, value)


class Loops:
    """Writes a function that reads its geometry from words of 64 bits."""

    builder: ir.IRBuilder
    words: ir.Value

    def word(self, place: int) -> ir.Value:
        return self.builder.load(self.builder.gep(self.words, [number(place)], source_etype=I64), typ=I64)

    def smaller(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def divided(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The quotient and the remainder."""
        return self.builder.sdiv(a, b), self.builder.srem(a, b)

    def located(self, place: ir.Value, words: int, rank: int, operands: int) -> list[ir.Value]:
        """The offset of a place in every operand; from `words` on stand the extent and the steps of each dim, the outermost first."""
        offsets: list[ir.Value] = [number(0)] * operands
        for dim in reversed(range(rank)):
            at = words + dim * (operands + 1)
            here = place
            if dim:
                place, here = self.divided(place, self.word(at))
            steps = [self.word(at + 1 + operand) for operand in range(operands)]
            offsets = [self.builder.add(offset, self.builder.mul(here, step)) for offset, step in zip(offsets, steps, strict=True)]
        return offsets

    @contextmanager
    def counting(self, first: ir.Value, past: ir.Value, step: int | ir.Value = 1) -> Iterator[ir.Value]:
        builder, before = self.builder, self.builder.block
        head, inside, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        here = builder.phi(I64)
        here.add_incoming(first, before)
        builder.cbranch(builder.icmp_signed("<", here, past), inside, after)
        builder.position_at_end(inside)
        yield here
        following = builder.add(here, number(step) if isinstance(step, int) else step)
        here.add_incoming(following, builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def running(self, past: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
        """A loop from 0 with strides of any length: yields the place, and where to store the next one."""
        builder = self.builder
        place = self.variable(I64)
        builder.store(number(0), place)
        head, inside, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        here = builder.load(place, typ=I64)
        builder.cbranch(builder.icmp_signed("<", here, past), inside, after)
        builder.position_at_end(inside)
        yield here, place
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def tasks(self, counter: ir.Value, count: ir.Value) -> Iterator[ir.Value]:
        """All tasks, or those that no other thread has claimed."""
        builder = self.builder
        is_alone = builder.icmp_unsigned("==", counter, ir.Constant(PTR, None))
        last = self.variable(I64)
        builder.store(number(-1), last)
        head, inside, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        with builder.if_else(is_alone) as (alone, shared):
            with alone:
                builder.store(builder.add(builder.load(last, typ=I64), number(1)), last)
            with shared:
                builder.store(builder.atomic_rmw("add", counter, number(1), "monotonic"), last)
        here = builder.load(last, typ=I64)
        builder.cbranch(builder.icmp_signed("<", here, count), inside, after)
        builder.position_at_end(inside)
        yield here
        builder.branch(head)
        builder.position_at_end(after)

    def variable(self, kind: ir.Type, count: int = 1) -> ir.Value:
        """Buffer on the stack, which is taken once wherever it is asked for."""
        builder = self.builder
        with builder.goto_entry_block():
            buffer = builder.alloca(kind, size=number(count))
        buffer.type = PTR  # of anything
        return buffer
