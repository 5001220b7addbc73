"""Every Triton kernel on small problems, for compute-sanitizer to watch:

compute-sanitizer --tool memcheck --error-exitcode 9 python tests/sanitized.py [PART OF A NAME ...]      (also racecheck, initcheck)

Operands are laid out with guards around them and, in every second problem, rows that are no whole number of vectors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy

import baracuda_kernels as bk
from baracuda_kernels.check.aot import triton_kernels
from baracuda_kernels.check.trial import BrokenPromise, random_inputs, run_trial

ELEMENTS = (bk.ElementKind.F32, bk.ElementKind.BF16)
LARGEST = 100_000  # elements: the sanitizer slows every access down a hundredfold


def plans(parts: list[str]) -> Iterator[bk.Plan[Any, Any]]:
    """Of kernels whose name has one of the parts, each with every second of the problems it serves."""
    stream = bk.Stream.cuda()
    for plan_type, kernel in triton_kernels():
        if parts and not any(part in kernel.name for part in parts):
            continue
        for element in ELEMENTS:
            for problem in list(plan_type.cases.corners(element))[::2]:
                small = max(math.prod(operand.shapes(problem)[0]) for operand in plan_type.args_type.OPERANDS) <= LARGEST
                if small and not list(kernel.reasons_against(problem, stream.device, bk.PlanPreference(allow_tf32=True))):
                    yield plan_type.force(kernel.name, stream, problem)


def main(parts: list[str]) -> int:
    """The sanitizer looks on whatever comes out, so a result past its bound is not the end."""
    watched, broken = 0, []
    for number, plan in enumerate(plans(parts)):
        inputs = random_inputs(type(plan), plan.descriptor, numpy.random.default_rng(number))
        try:
            run_trial(plan, inputs, "gaps" if number % 2 else "contiguous")
        except BrokenPromise as why:
            broken.append(str(why))
        watched += 1
    print(*broken, f"{watched} launches, {len(broken)} of them past their bounds", sep="\n")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
