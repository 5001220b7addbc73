"""One kernel on one problem with numbers of its own, the same whenever and wherever they are drawn."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

import numpy

from baracuda_kernels.core.descriptor import Descriptor, element_of
from baracuda_kernels.core.device import Device
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.preference import PlanPreference
from baracuda_kernels.core.registry import op_name
from baracuda_kernels.core.sku import PrecisionGuarantee
from baracuda_kernels.core.stream import Stream
from baracuda_kernels.verify.trial import AnyPlan, random_inputs

DRAWS = 100
SMALL_ENOUGH_TO_INTERPRET = 6_000  # elements of the largest operand


class Depth(Enum):
    """How much is tried."""

    QUICK = "quick"
    USUAL = "usual"
    FULL = "full"


class Origin(Enum):
    """Where a problem comes from."""

    CORNER = "corner"
    LARGE = "large"  # as the bench times it
    DRAWN = "drawn"


@dataclass(frozen=True)
class Case:
    """Plans and inputs are derived from it, so that it can be told to another process, or by a command."""

    plan_type: type[AnyPlan]
    kernel: Kernel
    descriptor: Descriptor
    device: Device
    number: int = 0
    origin: Origin = Origin.CORNER
    depth: Depth = Depth.USUAL

    @property
    def op(self) -> str:
        return op_name(self.plan_type)

    @property
    def element(self) -> ElementKind:
        return element_of(self.descriptor)

    @property
    def stream(self) -> Stream:
        return Stream.on(self.device)

    @property
    def plan(self) -> AnyPlan:
        return _plan(self)

    @property
    def guarantee(self) -> PrecisionGuarantee:
        return self.kernel.guarantee(self.descriptor)

    @property
    def is_served(self) -> bool:
        return not list(self.kernel.reasons_against(self.descriptor, self.device, PlanPreference(allow_tf32=True)))

    @property
    def is_feasible(self) -> bool:
        """What is only interpreted has to be small."""
        return self.is_native or (self.origin is not Origin.LARGE and self.largest_operand <= SMALL_ENOUGH_TO_INTERPRET)

    @property
    def is_native(self) -> bool:
        """Machine code on this device, and not interpreted."""
        return self.kernel.device is self.device.kind

    @property
    def largest_operand(self) -> int:
        """Elements of the largest operand."""
        return max(math.prod(operand.shapes(self.descriptor)[0]) for operand in self.plan_type.args_type.OPERANDS)

    @property
    def operand_bytes(self) -> list[int]:
        """The bytes of all operands, optional ones included."""
        every = self.plan_type.args_type.OPERANDS
        return [operand.size(self.descriptor) for operand in every if operand.presence(self.descriptor) is not False]

    @property
    def is_empty(self) -> bool:
        return not all(self.operand_bytes)

    def rng(self) -> numpy.random.Generator:
        return numpy.random.default_rng([self.number, *self.op.encode()])

    def inputs(self) -> dict[str, Any]:
        """Every second drawn problem goes without what may be left out."""
        with_optional = self.origin is not Origin.DRAWN or self.number % 2 == 0
        return random_inputs(self.plan_type, self.descriptor, self.rng(), with_optional)


@functools.lru_cache(maxsize=4)
def _plan(case: Case) -> AnyPlan:
    return case.plan_type.force(case.kernel.name, case.stream, case.descriptor)


def problems(plan_type: type[AnyPlan], element: ElementKind) -> tuple[tuple[Origin, Descriptor], ...]:
    """Every problem that is ever tried; its place among them is the number of its case."""
    cases, random = plan_type.cases, Random(f"{op_name(plan_type)} {element}")
    return (
        *((Origin.CORNER, problem) for problem in cases.corners(element)),
        (Origin.LARGE, cases.from_options({"element": element})),
        *((Origin.DRAWN, cases.draw(random, element)) for _ in range(DRAWS)),
    )


def all_cases(plan_type: type[AnyPlan], kernel: Kernel, element: ElementKind, device: Device, depth: Depth) -> list[Case]:
    """The cases that the kernel supports and that can be tried here."""
    every = (
        Case(plan_type, kernel, problem, device, number, origin, depth)
        for number, (origin, problem) in enumerate(problems(plan_type, element))
    )
    return [case for case in every if case.is_served and case.is_feasible]
