"""Every Triton kernel on small problems, for compute-sanitizer to watch:

compute-sanitizer --tool memcheck --error-exitcode 9 python tests/tools/sanitized.py [PART OF A NAME ...]      (also racecheck, initcheck)

Operands are laid out with guards around them and, in every second problem, rows that are no whole number of vectors. `--share 3/16` runs
every 16th problem, from the fourth on: 16 processes with a share each take the time of the longest.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy

import baracuda_kernels as bk
from baracuda_kernels.verify.aot import triton_kernels
from baracuda_kernels.verify.trial import BrokenPromise, random_inputs, run_trial

ELEMENTS = (bk.ElementKind.F32, bk.ElementKind.BF16)
LARGEST = 100_000  # elements: the sanitizer slows every access down a hundredfold


def problems(parts: list[str]) -> Iterator[tuple[type[bk.Plan[Any, Any]], str, Any]]:
    """Of kernels whose name has one of the parts, every second of the problems each serves."""
    device = bk.Stream.cuda().device
    for plan_type, kernel in triton_kernels():
        if parts and not any(part in kernel.name for part in parts):
            continue
        for element in ELEMENTS:
            for problem in list(plan_type.cases.corners(element))[::2]:
                small = max(math.prod(operand.shapes(problem)[0]) for operand in plan_type.args_type.OPERANDS) <= LARGEST
                if small and not list(kernel.reasons_against(problem, device, bk.PlanPreference(allow_tf32=True))):
                    yield plan_type, kernel.name, problem


def main() -> int:
    """The sanitizer looks on whatever comes out, so a result past its bound is not the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of the names of kernels")
    parser.add_argument("--share", default="0/1", metavar="NUMBER/ALL")
    chosen = parser.parse_args()
    first, every = (int(number) for number in chosen.share.split("/"))
    watched, broken = 0, []
    for number, (plan_type, kernel, problem) in itertools.islice(enumerate(problems(chosen.parts)), first, None, every):
        plan = plan_type.force(kernel, bk.Stream.cuda(), problem)
        inputs = random_inputs(plan_type, problem, numpy.random.default_rng(number))
        try:
            run_trial(plan, inputs, "gaps" if number // every % 2 else "contiguous")
        except BrokenPromise as why:
            broken.append(str(why))
        watched += 1
        if watched % 25 == 0:
            print(f"{watched} launches, the last of {kernel}", flush=True)
    print(*broken, f"{watched} launches, {len(broken)} of them past their bounds", sep="\n")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
