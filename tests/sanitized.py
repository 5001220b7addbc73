"""Every Triton kernel on small problems, for compute-sanitizer to watch:

compute-sanitizer --tool memcheck --error-exitcode 9 python tests/sanitized.py      (also racecheck, initcheck, synccheck)

Operands are laid out with guards around them and, in every second problem, rows that are no whole number of vectors.
"""

from __future__ import annotations

import math

import numpy

import baracuda_kernels as bk
from baracuda_kernels.check.aot import triton_kernels
from baracuda_kernels.check.trial import random_inputs, run_trial

ELEMENTS = (bk.ElementKind.F32, bk.ElementKind.BF16)
LARGEST = 100_000  # elements: the sanitizer slows every access down a hundredfold


def main() -> None:
    stream, watched = bk.Stream.cuda(), 0
    for plan_type, kernel in triton_kernels():
        for element in ELEMENTS:
            for number, problem in enumerate(list(plan_type.cases.corners(element))[::2]):
                if max(math.prod(operand.shapes(problem)[0]) for operand in plan_type.args_type.OPERANDS) > LARGEST:
                    continue
                plan = plan_type.force(kernel.name, stream, problem)
                inputs = random_inputs(plan_type, problem, numpy.random.default_rng(number))
                run_trial(plan, inputs, "gaps" if number % 2 else "contiguous")
                watched += 1
    print(f"{watched} launches of {len(list(triton_kernels()))} kernels, all within their bounds")


if __name__ == "__main__":
    main()
