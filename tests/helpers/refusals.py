"""What kernels are known to refuse of the problems and the layouts that they are tried on. Everything else has to be served."""

from __future__ import annotations

from collections.abc import Iterable

import baracuda_kernels as bk
from baracuda_kernels.core.descriptor import Descriptor
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.reason import Reason
from baracuda_kernels.verify.trial import Trial

F32, F16, BF16 = bk.ElementKind.F32, bk.ElementKind.F16, bk.ElementKind.BF16

# Of the corner problems in a kernel's elements: what the reasons against them are about, in which element, and how many there are.
PROBLEMS: dict[str, dict[tuple[str, bk.ElementKind], int]] = {
    "aten.softmax": {("extent", F32): 4, ("element", F16): 12, ("element", BF16): 12},
    "aten.softmax_backward": {("extent", F32): 4},
    "aten.softmax_cuda": {("extent", F32): 4, ("extent", F16): 6},
    "aten.sdpa_backward_wide_cuda": {("d_k and d_v", BF16): 19, ("num_kv_heads", BF16): 5},
}
CONTIGUOUS_ALONE = {"aten.softmax", "aten.softmax_backward", "aten.softmax_cuda"}  # kernels that take no other layout


def reasons_against(kernel: Kernel, problem: Descriptor) -> list[Reason]:
    """What is to be said against it on whatever machine, those that lack the kernel's device among them."""
    here = bk.Device.cpu()
    beside = list(kernel.reasons_against_machine(here))
    return [each for each in kernel.reasons_against(problem, here, bk.PlanPreference(allow_tf32=True)) if each not in beside]


def is_known(kernel: Kernel, element: bk.ElementKind, reasons: Iterable[Reason]) -> bool:
    """Whether the kernel refuses corner problems for such reasons too."""
    return {(reason.where, element) for reason in reasons} <= set(PROBLEMS.get(kernel.name, ()))


def is_refused_as_known(kernel: Kernel, trial: Trial) -> bool:
    """Whether layouts were refused that the kernel is known to refuse, or else served."""
    is_contiguous = all(placed.view(bk.TensorRef).layout.is_contiguous for placed in trial.operands.values())
    refused = {bk.ReasonCode.LAYOUT} if kernel.name in CONTIGUOUS_ALONE and not is_contiguous else set()
    return {reason.code for reason in trial.declined} == refused
