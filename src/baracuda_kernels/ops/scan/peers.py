"""What scans are compared with in the bench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, PeerCall, compiled, differentiated
from baracuda_kernels.ops.scan.descriptor import ABOUT_NAN, ScanBackwardDescriptor, ScanDescriptor


def scan(descriptor: ScanDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    if descriptor.kind in ABOUT_NAN or descriptor.reverse:
        return  # which PyTorch has not
    x, axis, function = operands["input"], descriptor.axis, getattr(torch, descriptor.kind.value)
    given = tuple(operands[name] for name in ("result", "indices") if operands.get(name) is not None)
    out = given if len(given) > 1 else given[0]
    yield ALLOCATING, lambda: function(x, axis)
    yield GIVEN, lambda: function(x, axis, out=out)
    if len(given) == 1:
        yield COMPILED, compiled(lambda x: function(x, axis), out, x)


def scan_backward(descriptor: ScanBackwardDescriptor, operands: dict[str, Any]) -> Iterator[tuple[str, PeerCall]]:
    import torch

    if descriptor.kind in ABOUT_NAN or descriptor.reverse:
        return
    d_result, axis, function = operands["d_result"], descriptor.axis, getattr(torch, descriptor.kind.value)
    if descriptor.reads_indices:  # what autograd calls; of the tensor it has but the shape
        yield ALLOCATING, lambda: torch.ops.aten.cummaxmin_backward(d_result, d_result, operands["indices"], axis)
        return
    # The gradient of a sum is the same for all elements.
    x = operands["input"] if descriptor.reads_input else torch.empty_like(d_result)
    yield ALLOCATING, differentiated(lambda x: function(x, axis), d_result, x)
