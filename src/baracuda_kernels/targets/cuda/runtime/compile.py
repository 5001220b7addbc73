"""Triton bodies compiled ahead of their launch, for a device that need not be present."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from baracuda_kernels.core import notice
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.targets.cuda.runtime.triton_launch import TritonLaunch

__all__ = ["REGISTERS", "Binary", "as_constant", "compiled"]


@dataclass(frozen=True)
class Binary:
    """Machine code for one architecture."""

    name: str
    image: bytes
    threads: int
    shared: int  # bytes per block
    ptx: str


REGISTERS = 1 << 16  # of a multiprocessor
_binaries: dict[Any, Binary] = {}


def compiled(call: TritonLaunch, capability: tuple[int, int], vectors: bool) -> Binary:
    """The call's machine code; the same for all calls that differ in numbers only."""
    signature = call.signature()
    hints = call.hints() if vectors else {}
    # Loops that read ahead say so themselves.
    options: dict[str, Any] = {"num_warps": call.warps, "num_stages": 1}
    if call.registers:
        options["maxnreg"] = min(call.registers, REGISTERS // (32 * call.warps))  # with more a program cannot be launched at all
    options |= {} if call.contracts else {"enable_fp_fusion": False}
    key = (call.body, repr((signature, sorted(call.constants.items()), hints, options, capability)))
    with LOADING:  # Triton's compiler is not said to be safe to enter twice
        if key not in _binaries:
            with notice.compiling():
                _binaries[key] = _compile(call, signature, hints, options, capability)
        return _binaries[key]


def _compile(call: TritonLaunch, signature: Any, hints: Any, options: dict[str, Any], capability: tuple[int, int]) -> Binary:
    import triton
    from triton.compiler import ASTSource

    constants = {name: as_constant(value) for name, value in call.constants.items()}
    source = ASTSource(fn=call.body, signature=signature, constexprs=constants, attrs=hints)
    kernel = triton.compile(source, target=_target(capability), options=options)
    metadata = kernel.metadata
    if getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0):
        raise NotImplementedError(f"{metadata.name} wants scratch memory of the runtime, and a launch has none to give")
    return Binary(metadata.name, kernel.asm["cubin"], 32 * metadata.num_warps, metadata.shared, kernel.asm["ptx"])


def as_constant(value: Any) -> Any:
    import triton.language as tl

    return getattr(tl, value.removeprefix("tl.")) if isinstance(value, str) and value.startswith("tl.") else value


@functools.cache
def _target(capability: tuple[int, int]) -> Any:
    from triton.backends.compiler import GPUTarget

    return GPUTarget("cuda", 10 * capability[0] + capability[1], 32)
