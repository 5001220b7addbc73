"""Every configuration of every Triton kernel, compiled without a GPU: what it uses, and whether that fits the device.

    python -m baracuda_kernels.verify.aot [KERNEL ...] [--arch sm_90] [--others]

One line of JSON per configuration; the exit status says whether all of them fit.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from baracuda_kernels.core import registry
from baracuda_kernels.core.device import CudaProfile, Device
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.layout import Layout, Shape, row_major
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import BackendKind
from baracuda_kernels.targets.cuda.runtime.compile import REGISTERS, Binary, compiled
from baracuda_kernels.targets.cuda.runtime.triton_launch import TritonLaunch
from baracuda_kernels.verify.machine_code import disassembled, run_tool, unwritten

KB = 1024
DOES_NOT_FIT = 2  # the exit status
PROFILES = {
    "sm_80": CudaProfile((8, 0), 108, 163 * KB, 40 * KB * KB),
    "sm_90": CudaProfile((9, 0), 132, 227 * KB, 50 * KB * KB),
    "sm_100": CudaProfile((10, 0), 148, 227 * KB, 126 * KB * KB),
}


@dataclass(frozen=True)
class Usage:
    """What one configuration was given by the compiler."""

    kernel: str
    body: str
    arch: str
    constants: str
    warps: int
    vectors: bool
    registers: int
    spilled: int  # bytes of local memory per thread, where they are needed
    shared: int
    unwritten: list[str]  # instructions that read a uniform register before anything has written it

    def complaints(self, declared: int) -> Iterator[str]:
        if self.spilled:
            yield f"{self.spilled} bytes of registers spilled per thread"
        if -(-self.registers // 8) * 8 * 32 * self.warps > REGISTERS:
            yield f"{self.registers} registers for each of {32 * self.warps} threads, and a multiprocessor has {REGISTERS}"
        if self.shared > declared:
            yield f"{self.shared} bytes of shared memory, declared are {declared}"
        if self.unwritten:
            yield f"compiled wrongly: {self.unwritten[0]} reads what nothing has written"


def triton_kernels() -> Iterator[tuple[type[Plan[Any, Any]], Kernel]]:
    for plan in registry.plans().values():
        for kernel in plan.kernels:
            if kernel.backend is BackendKind.TRITON:
                yield plan, kernel


def configurations(
    plan: type[Plan[Any, Any]], kernel: Kernel, profile: CudaProfile, others: bool = False
) -> Iterator[tuple[TritonLaunch, bool]]:
    """The calls of the problems that reach every tile, in the forms that ordinary operands lead to; each code once.

    With `others`, also the tiles that only effort=MEASURE can choose, instead of those of the rules.
    """
    seen = set()
    package = plan.__module__.rpartition(".")[0]
    for element in kernel.elements:
        for descriptor in plan.cases.tiles(element):
            tiles = kernel.other_tiles(descriptor) if others else (None,)
            binds = [kernel.prepare(package, descriptor, _Absent(profile), tile) for tile in tiles]
            for bind, layouts in itertools.product(binds, _layouts(plan, descriptor)):
                for call in bind(layouts).calls:  # type: ignore[attr-defined]
                    for vectors, form in call.forms().items():
                        key = (
                            form.body,
                            repr((form.signature(), sorted(form.constants.items()), form.warps, form.registers, vectors)),
                        )
                        if key not in seen:
                            seen.add(key)
                            yield form, vectors


class _Absent(Device):
    """A CUDA device of a given profile that need not exist."""

    def __init__(self, profile: CudaProfile) -> None:
        super().__init__(Device.cuda().kind, 0)
        object.__setattr__(self, "_profile", profile)

    def profile(self) -> CudaProfile:
        profile: CudaProfile = self._profile  # type: ignore[attr-defined]
        return profile


def _layouts(plan: type[Plan[Any, Any]], descriptor: Any) -> Iterator[tuple[Layout | None, ...]]:
    """Contiguous operands, and the same with every row a little further from the last."""
    for gap in (0, 64):
        layouts: list[Layout | None] = []
        for operand in plan.args_type.OPERANDS:
            if operand.presence(descriptor) is False:
                layouts.append(None)
                continue
            shape = operand.shapes(descriptor)[0]
            layouts.append(Layout.of(operand.element(descriptor), shape, _stride(shape, gap), Device.cuda()))
        yield tuple(layouts)


def _stride(shape: Shape, gap: int) -> Shape:
    return row_major((*shape[:-1], shape[-1] + gap)) if shape else ()


def usage(kernel: Kernel, call: TritonLaunch, arch: str, vectors: bool) -> Usage:
    binary = compiled(call, PROFILES[arch].capability, vectors)
    registers, spilled = _resources(binary)
    constants = ", ".join(f"{name}={value}" for name, value in call.constants.items())
    elements = ", ".join(dict.fromkeys(kind for kind in call.signature().values() if str(kind).startswith("*")))
    return Usage(
        kernel.name,
        call.body.__name__,
        arch,
        f"{elements}, {constants}",
        call.warps,
        vectors,
        registers,
        0 if call.may_spill else spilled,
        binary.shared,
        # To start the disassembler takes longer than to compile; what it is looked at for has been seen beside matrix products alone.
        unwritten(disassembled(binary.image)) if "mma" in binary.ptx else [],
    )


def _resources(binary: Binary) -> tuple[int, int]:
    """Registers per thread, and bytes of stack per thread, as the machine code's own table has them."""
    text = run_tool("cuobjdump", binary.image, "--dump-resource-usage")
    found = {name: int(value) for name, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}
    return found["REG"], found["STACK"] + found["LOCAL"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m baracuda_kernels.verify.aot", description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="such as triton.softmax; by default all")
    parser.add_argument("--arch", action="append", choices=list(PROFILES), help="by default all")
    parser.add_argument("--others", action="store_true", help="also the tiles that only effort=MEASURE can choose")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th configuration, for a quick look")
    parser.add_argument("--most", type=int, metavar="N", help="of each kernel, N configurations at most")
    chosen = parser.parse_args(arguments)
    last = None if chosen.most is None else chosen.most * chosen.every
    fits = True
    for arch in chosen.arch or PROFILES:
        for plan, kernel in triton_kernels():
            if chosen.kernels and kernel.name not in chosen.kernels:
                continue
            every = configurations(plan, kernel, PROFILES[arch], chosen.others)
            for call, vectors in itertools.islice(every, 0, last, chosen.every):
                used = usage(kernel, call, arch, vectors)
                complaints = list(used.complaints(kernel.shared_bytes))
                fits = fits and not complaints
                print(json.dumps(asdict(used) | {"complaints": complaints}), flush=True)
    return 0 if fits else DOES_NOT_FIT


if __name__ == "__main__":
    sys.exit(main())
