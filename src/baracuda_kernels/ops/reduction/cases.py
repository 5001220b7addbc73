"""What reductions are tested and timed on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.cases import Cases, Part, places
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.encoding import rounded
from baracuda_kernels.formula.expression import read_by
from baracuda_kernels.ops.reduction import reference
from baracuda_kernels.ops.reduction.descriptor import (
    ReduceBackwardDescriptor,
    ReduceChoiceBackwardDescriptor,
    ReduceDescriptor,
    ReduceKind,
    ReducePairBackwardDescriptor,
    ReducePairKind,
    ReduceToDescriptor,
)
from baracuda_kernels.ops.reduction.program import gradient_program, helpers_of

__all__ = ["ReduceBackwardCases", "ReduceCases", "ReduceChoiceBackwardCases", "ReducePairBackwardCases", "ReduceToCases"]

# Shape and mask of axes: one number, nothing, no axis, rows, columns, short sums, several axes, past a block, a split sum, rank 8.
SHAPES = (
    ((), 0), ((7,), 1), ((5, 0, 3), 0b101), ((4, 3), 0), ((31, 33), 0b10), ((67, 65), 0b01), ((40, 3), 0b10), ((3, 40, 5), 0b010),
    ((3, 5, 17, 4), 0b1010), ((3, 2311), 0b10), ((2, 20_001), 0b11), ((2, 1, 3, 1, 2, 1, 5, 2), 0b10100101),
)  # fmt: skip
# What other kinds are tried on, one after the other.
FEW = (((31, 33), 0b10), ((67, 40), 0b01), ((3, 5, 17, 4), 0b1010))
# Kinds that stand for the others, from which shape on and in every how many; other elements than f32 in fewer.
TELLING = {"sum": (0, 1), "argmax": (0, 2), "var": (0, 3), "logsumexp": (5, 5), "max_with_indices": (4, 6), "var_mean": (4, 6)}
SHOWCASE = (((4096, 4096), 0b10), ((4096, 4096), 0b01), ((4096, 4096), 0b11))
CUDA_SHOWCASE = (((16384, 8192), 0b10), ((16384, 8192), 0b01), ((16384, 8192), 0b11))
SHOWN = ("sum", "amax", "argmax", "var", "logsumexp", "max_with_indices", "var_mean")
BY_WARPS = (
    "argmax",
    "nanargmax",
    "nanvar",
    "ptp",
    "aminmax",
    "var_mean",
)  # of which many rows of 16-bit floats are reduced by a warp each
MANY_ROWS = (8192, 8192)  # the longest that a program holds, for a gradient that needs to know what they come to
ORDERS = (0.0, 3.0, -math.inf, 0.5)
TRUTHS = (
    "any",
    "all",
    "count_nonzero",
    "argmax",
    "argmin",
    "nanargmax",
    "nanargmin",
    "max_with_indices",
    "min_with_indices",
    "reduce_xor",
)  # which zeros and equals are telling for


class ReduceCases(Cases[Any]):
    HOLDS_ROWS = False  # whether programs do, to know what they come to, as those of gradients do

    def __init__(self, descriptor: Any, every: Any) -> None:
        super().__init__(descriptor)
        self.every = every  # kind

    def kinds(self, element: ElementKind) -> list[Any]:
        """Those that make sense for the element."""
        return [kind for kind in self.every if element in self._row(kind).elements and self._serves(kind)]

    def _row(self, kind: Any) -> Any:
        return self.descriptor(kind, (1,), 1, ElementKind.F32).row

    def _serves(self, kind: Any) -> bool:
        return True

    def corners(self, element: ElementKind) -> Iterator[ReduceDescriptor]:
        kinds, is_f32 = self.kinds(element), element is ElementKind.F32
        telling = [kind for kind in kinds if kind.value in TELLING]
        for number, kind in enumerate(kinds if is_f32 else telling or kinds[:1]):
            first, every = TELLING.get(kind.value, (0, 0))
            every *= 1 if is_f32 else 4 if element.is_float else 6
            for place, (shape, mask) in enumerate(SHAPES[first::every] if every else (FEW[number % len(FEW)],), number):
                yield self.descriptor(kind, shape, mask, element, place % 2 == 1)
        for kind in [kind for kind in kinds if not self._row(kind).needs_elements][:: 4 if is_f32 else 16]:
            yield self.descriptor(kind, (3, 0), 0b10, element)
        yield from self._converted(element)

    def _converted(self, element: ElementKind) -> Iterator[ReduceDescriptor]:
        """Elements that count as others: wider, narrower, or floats where they are integers."""
        converting = [kind for kind in self.every if self._row(kind).converts and self._serves(kind)]
        others = (ElementKind.F32, ElementKind.F64, ElementKind.BF16) if element.is_float else (ElementKind.F32, ElementKind.I32)
        for number, dtype in enumerate(others):
            rows = [kind for kind in converting if dtype in self._row(kind).elements]
            for kind in rows[number :: len(others)] if dtype is not element else ():
                yield self.descriptor(kind, *FEW[number], element, as_element=dtype)

    def tiles(self, element: ElementKind) -> Iterator[ReduceDescriptor]:
        yield from self.corners(element)
        for kind in self.kinds(element):
            if self._row(kind).helpers if self.HOLDS_ROWS else kind.value in BY_WARPS:
                yield self.descriptor(kind, MANY_ROWS, 0b10, element)

    def draw(self, random: Random, element: ElementKind) -> ReduceDescriptor:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 16, 17, 31)) for _ in range(random.randint(0, 4)))
        mask, kind = random.randrange(1 << len(shape)), random.choice(self.kinds(element))
        if self._row(kind).needs_elements:
            shape = tuple(max(extent, 1) for extent in shape)
        parameters = (random.choice(ORDERS),) if kind.value == "vector_norm" else ()
        if parameters and math.isinf(parameters[0]):
            shape = tuple(max(extent, 1) for extent in shape)
        return self.descriptor(kind, shape, mask, element, random.random() < 0.5, parameters)

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        given = super().bytes_read(descriptor, operands)
        if not self.HOLDS_ROWS or helpers_of(descriptor):  # which need the elements
            return given
        return read_by(gradient_program(descriptor), given)

    def showcase(self) -> Iterator[ReduceDescriptor]:
        yield from self._shown(SHOWCASE)

    def cuda_showcase(self) -> Iterator[ReduceDescriptor]:
        yield from self._shown(CUDA_SHOWCASE)

    def _shown(self, problems: Any) -> Iterator[ReduceDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            for kind in self.kinds(element):
                for shape, mask in problems if kind.value in SHOWN else ():
                    yield self.descriptor(kind, shape, mask, element)

    def from_options(self, options: dict[str, Any]) -> ReduceDescriptor:
        if "shape" in options:
            options = {"axes_mask": (1 << len(options["shape"])) - 1} | options
        return super().from_options(options)

    def inputs(self, descriptor: ReduceDescriptor, rng: Any) -> dict[str, Any]:
        """Sums that do not cancel, and products that stay in range."""
        import numpy

        name, shape = descriptor.kind.value, descriptor.shape
        if name in ("prod", "nanprod") and descriptor.element.is_float:
            values = rng.choice([-1.0, 1.0], shape) * (1.0 + rng.standard_normal(shape) / (4.0 + descriptor.count))
        elif name == "prod":
            values = rng.choice([1.0, 1.0, 2.0], shape)
        elif name in TRUTHS:
            values = rng.uniform(-1.5, 2.0, shape).round()
        else:
            values = rng.uniform(-1.0, 3.0, shape)
        if name.startswith("nan") and descriptor.element.is_float:
            values = numpy.where(rng.random(shape) < 0.2, math.nan, values)
        return {"input": values if descriptor.element.is_float else abs(values).round()}

    def parts(self, descriptor: ReduceDescriptor) -> Iterator[Part]:
        """The elements that become one, as a problem of their own."""
        axes, shape = descriptor.axes, descriptor.shape
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        alone = replace(descriptor, shape=(descriptor.count,), axes_mask=1, keepdim=False)

        def take(name: str, values: Any, place: int) -> Any:
            if name in ("input", "d_input", "other", "d_other"):
                return values.transpose(*kept, *axes).reshape(-1, descriptor.count)[place]
            return values.reshape(-1)[place].reshape(())

        for place in places(math.prod(shape[axis] for axis in kept) if descriptor.count else 0):
            yield Part(alone, partial(take, place=place))

    def flops(self, descriptor: ReduceDescriptor) -> int:
        return math.prod(descriptor.shape)

    def summed_extent(self, descriptor: ReduceDescriptor) -> int:
        return descriptor.count


class ReduceBackwardCases(ReduceCases):
    HOLDS_ROWS = True

    def __init__(self) -> None:
        super().__init__(ReduceBackwardDescriptor, ReduceKind)

    def _serves(self, kind: Any) -> bool:
        return self._row(kind).gradient is not None

    def inputs(self, descriptor: ReduceDescriptor, rng: Any) -> dict[str, Any]:
        values = rounded(super().inputs(descriptor, rng)["input"], descriptor.element)
        return {"input": values, "result": reference.reduce(descriptor, values)}


class ReducePairBackwardCases(ReduceCases):
    HOLDS_ROWS = True

    def __init__(self) -> None:
        super().__init__(ReducePairBackwardDescriptor, ReducePairKind)

    def _serves(self, kind: Any) -> bool:
        return self._row(kind).gradient is not None

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        values = rounded(super().inputs(descriptor, rng)["input"], descriptor.element)
        result, second = reference.reduce_pair(descriptor, values)
        return {"input": values, "result": result, "second": second}


class ReduceChoiceBackwardCases(ReduceCases):
    def __init__(self) -> None:
        super().__init__(ReduceChoiceBackwardDescriptor, ReducePairKind)

    def _serves(self, kind: Any) -> bool:
        return bool(self._row(kind).is_choice)

    def bytes_read(self, descriptor: Any, operands: Sequence[Operand]) -> dict[str, int]:
        return super().bytes_read(descriptor, operands) | {"input": 0}

    def inputs(self, descriptor: Any, rng: Any) -> dict[str, Any]:
        return {"second": rng.integers(0, max(descriptor.count, 1), descriptor.result_shape).astype(float)}


class ReduceToCases(Cases[ReduceToDescriptor]):
    # Shape and target: nothing to do, one number, rows, columns, both, missing axes, nothing to sum.
    CORNERS = (
        ((), ()), ((3, 4), (3, 4)), ((31, 33), (1, 1)), ((31, 33), (31, 1)), ((67, 65), (65,)), ((3, 40, 5), (40, 1)),
        ((3, 5, 17, 4), (5, 1, 4)), ((0, 3), (3,)), ((5, 0, 3), (0, 1)), ((2, 20_001), ()),
    )  # fmt: skip

    def corners(self, element: ElementKind) -> Iterator[ReduceToDescriptor]:
        for shape, target in self.CORNERS:
            yield self.descriptor(shape, target, element)

    def draw(self, random: Random, element: ElementKind) -> ReduceToDescriptor:
        shape = tuple(random.choice((0, 1, 1, 2, 3, 5, 8, 17)) for _ in range(random.randint(0, 4)))
        target = tuple(random.choice((1, extent)) for extent in shape)[random.randint(0, len(shape)) :]
        return self.descriptor(shape, target, element)

    def showcase(self) -> Iterator[ReduceToDescriptor]:
        for element in (ElementKind.F32, ElementKind.BF16):
            yield self.descriptor((4096, 4096), (4096,), element)
            yield self.descriptor((4096, 4096), (4096, 1), element)

    def from_options(self, options: dict[str, Any]) -> ReduceToDescriptor:
        if "shape" in options:
            options = {"target_shape": tuple(options["shape"][1:])} | options
        return super().from_options(options)

    def inputs(self, descriptor: ReduceToDescriptor, rng: Any) -> dict[str, Any]:
        values = rng.uniform(-1.0, 3.0, descriptor.shape)
        return {"input": values if descriptor.element.is_float else (values > 1.0) * 1.0}

    def parts(self, descriptor: ReduceToDescriptor) -> Iterator[Part]:
        axes, shape = descriptor.axes, descriptor.shape
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        alone = replace(descriptor, shape=(descriptor.count,), target_shape=())

        def take(name: str, values: Any, place: int) -> Any:
            if name == "input":
                return values.transpose(*kept, *axes).reshape(-1, descriptor.count)[place]
            return values.reshape(-1)[place].reshape(())

        for place in places(math.prod(descriptor.target_shape) if descriptor.count else 0):
            yield Part(alone, partial(take, place=place))

    def flops(self, descriptor: ReduceToDescriptor) -> int:
        return math.prod(descriptor.shape)

    def summed_extent(self, descriptor: ReduceToDescriptor) -> int:
        return descriptor.count
