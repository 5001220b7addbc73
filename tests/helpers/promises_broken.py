"""An op, y = 2x, with a kernel that keeps its promises, and others that each break one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random
from typing import Any

from baracuda_kernels.core.args import Args, read, write
from baracuda_kernels.core.cases import Cases, Extreme, Part, entry, places
from baracuda_kernels.core.descriptor import Descriptor, Shape, extents_not_negative
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, exact_order
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.core.sku import BackendKind, LayoutSku, OpCategory
from baracuda_kernels.core.tensor import TensorMut, TensorRef
from baracuda_kernels.core.threads import get_num_threads

WORKSPACE = 64
LARGE = 32 << 20  # bytes


class DoubleKind(Enum):
    DOUBLE = "double"


@dataclass(frozen=True)
class DoubleDescriptor(Descriptor):
    shape: Shape
    element: ElementKind

    def check(self) -> Iterator[Reason]:
        yield from extents_not_negative(shape=self.shape)


class DoubleArgs(Args):
    x: TensorRef = read("shape", "the numbers")
    y: TensorMut = write("shape", "twice the numbers", may_be=("x",))


class DoubleCases(Cases[DoubleDescriptor]):
    extremes = tuple(Extreme)

    def corners(self, element: ElementKind) -> Iterator[DoubleDescriptor]:
        for shape in ((3, 8), (5, 7)):
            yield DoubleDescriptor(shape, element)

    def draw(self, random: Random, element: ElementKind) -> DoubleDescriptor:
        return DoubleDescriptor((random.randint(0, 5), random.randint(0, 5)), element)

    def showcase(self) -> Iterator[DoubleDescriptor]:
        yield DoubleDescriptor((512, 512), ElementKind.F32)

    def summed_extent(self, descriptor: DoubleDescriptor) -> int:
        return 1

    def parts(self, descriptor: DoubleDescriptor) -> Iterator[Part]:
        for row in places(descriptor.shape[0]):
            yield Part(replace(descriptor, shape=(1, descriptor.shape[1])), partial(entry, number=row))


Launch = Callable[[Any, Any, int], None]  # of x and y as tensors, and the workspace's address
runs = 0


def kept(x: Any, y: Any, workspace: int) -> None:
    import torch

    torch.mul(x, 2, out=y)


def _nudged(x: Any, y: Any) -> None:
    """Within every bound, with other bits."""
    y.mul_(1 + 2.0**-23)


def off(x: Any, y: Any, workspace: int) -> None:
    y.copy_(2.001 * x)


def unsteady(x: Any, y: Any, workspace: int) -> None:
    global runs
    runs += 1
    kept(x, y, workspace)
    if runs % 2:
        _nudged(x, y)


def threaded(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    if get_num_threads() == 3:
        _nudged(x, y)


def parochial(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    if "pytest" in sys.modules:
        _nudged(x, y)


def sociable(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    if x.shape[0] > 1:
        _nudged(x, y)


def astray(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    ctypes.memset(y.data_ptr() - 4, 0, 4)


def meddling(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    x[0, 0] += 1


def overrunning(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    ctypes.memset(workspace + WORKSPACE, 0, 4)


def lazy(x: Any, y: Any, workspace: int) -> None:
    y[1:].copy_(2 * x[1:])


def greedy(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    bytearray(1 << 20)


def hoarding(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    room = libc.malloc(LARGE)
    ctypes.memset(room, 1, LARGE)
    libc.free(room)


def hiding(x: Any, y: Any, workspace: int) -> None:
    kept(x, y, workspace)
    y.nan_to_num_(posinf=float("inf"), neginf=float("-inf"))


def failing(x: Any, y: Any, workspace: int) -> None:
    raise ZeroDivisionError("the backend broke")


KERNELS = {
    launch.__name__: launch
    for launch in (
        kept, off, unsteady, threaded, parochial, sociable, astray, meddling, overrunning, lazy, greedy, hoarding, hiding, failing
    )
}  # fmt: skip


def bind(launch: Launch) -> Callable[[Any], Any]:
    from baracuda_kernels.targets.aten import as_torch

    def bound(layouts: Any) -> Any:
        def run(addresses: tuple[int, ...], workspace: int, stream: Any) -> None:
            launch(*as_torch(addresses, layouts), workspace)

        return run

    return bound


def __getattr__(name: str) -> Any:
    """A kernel's entry is found by the name of its launch."""
    launch = KERNELS.get(name.removeprefix("enter_"))
    if launch is None:
        raise AttributeError(name)
    return lambda descriptor: bind(launch)


class DoublePlan(Plan[DoubleDescriptor, DoubleArgs]):
    category, op = OpCategory.UNARY_ELEMENTWISE, DoubleKind.DOUBLE
    cases = DoubleCases(DoubleDescriptor)
    kernels = tuple(
        Kernel(
            f"toy.{name}",
            BackendKind.ATEN,
            f"promises_broken:enter_{name}",
            exact_order,
            (ElementKind.F32,),
            workspace=lambda descriptor: WORKSPACE,
            layout=LayoutSku.CONTIGUOUS,
        )
        for name in KERNELS
    )

    @staticmethod
    def reference(descriptor: DoubleDescriptor, x: Any) -> Any:
        return 2 * x


class CarelessPlan(Plan[DoubleDescriptor, DoubleArgs]):
    """Does not look where its output lies."""

    category, op = OpCategory.UNARY_ELEMENTWISE, DoubleKind.DOUBLE
    cases = DoublePlan.cases
    kernels = DoublePlan.kernels[:1]
    reference = staticmethod(DoublePlan.reference)

    def _reasons_against_overlap(self, args: Args) -> list[Reason]:
        return []
