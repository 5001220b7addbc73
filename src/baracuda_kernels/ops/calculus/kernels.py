"""The kernels that plans of ops on neighbours have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.kernel import Kernel, Limit, rank_at_most
from baracuda_kernels.core.sku import BackendKind, PrecisionGuarantee
from baracuda_kernels.ops.calculus.runs import Run, Scan, summed
from baracuda_kernels.ops.calculus.views import buffer_offsets
from baracuda_kernels.ops.scan import launch_words, tiles
from baracuda_kernels.targets.cpu.llvm import reduction_launch
from baracuda_kernels.targets.cuda.formulas import reduction_tiles

__all__ = ["RANK", "kernels"]

RANK = rank_at_most("shape", 8)
Guarantee = Callable[[Any], PrecisionGuarantee]


def kernels(
    name: str,
    guarantee: Guarantee,
    elements: tuple[ElementKind, ...],
    limits: tuple[Limit, ...] = (RANK,),
    on_cuda: Guarantee | None = None,
) -> tuple[Kernel, ...]:
    """The kernels of a plan whose problems are `runs`; the guarantee on CUDA is the same, unless another is given."""
    bytes_on_cpu = _bytes(reduction_launch.workspace_bytes, launch_words.split_bytes)
    bytes_on_cuda = _bytes(reduction_tiles.workspace_bytes, tiles.split_bytes, is_in_one=True)
    return (
        Kernel(f"llvm.{name}", BackendKind.NUMBA, "llvm:in_runs", guarantee, elements, limits, bytes_on_cpu),
        Kernel(f"triton.{name}", BackendKind.TRITON, "triton:in_runs", on_cuda or guarantee, elements, limits, bytes_on_cuda),
    )


def _bytes(of_sum: Callable[..., int], of_scan: Callable[..., int], is_in_one: bool = False) -> Callable[[Any], int]:
    """What the sums and scans among a problem's runs need, one after the other, besides the buffers; or what one scan does that is all of it."""

    def needed(problem: Any) -> int:
        if is_in_one and problem.running is not None and problem.running.is_inside:
            return of_scan(problem.scan_of(Scan(problem.running.output, problem.running.output, problem.count)))
        return buffer_offsets(problem)[-1] + max((of_run(problem, run) for run in problem.runs), default=0)

    def of_run(problem: Any, run: Run | Scan) -> int:
        if isinstance(run, Scan):
            return of_scan(problem.scan_of(run))
        shape, axes = problem.work_of(run)
        return of_sum(summed(run, problem.element_of(run.output)), shape, axes) if axes else 0

    return needed
