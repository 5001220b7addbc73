"""What the kernels of a plan promise and refuse, found by asking them about many problems."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from types import SimpleNamespace
from typing import Any

from baracuda_kernels.bench.problems import describe, field_types
from baracuda_kernels.core.args import Access
from baracuda_kernels.core.descriptor import Numbers, element_of
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.errors import InvalidProblem
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.plan import Plan
from baracuda_kernels.core.sku import PrecisionGuarantee
from baracuda_kernels.verify.bounds import error_bound

AnyPlan = type[Plan[Any, Any]]

HUGE, MANY_AXES, MANY_NUMBERS = 1 << 40, 64, 1000
MOST_TEXTS = 5  # of one limit that are told one by one


def elements(kinds: Iterable[ElementKind]) -> str:
    kinds = set(kinds)
    return ", ".join(str(kind) for kind in ElementKind if kind in kinds)


def served(plan: AnyPlan, kernel: Kernel, element: ElementKind) -> Iterator[Any]:
    """Problems that the kernel takes."""
    timed = (problem for problem in plan.cases.showcase() if problem.element is element)
    for problem in [*timed, *plan.cases.corners(element)]:
        if not any(reason for limit in kernel.limits for reason in limit(problem)):
            yield problem


def guarantees(plan: AnyPlan, kernel: Kernel) -> dict[PrecisionGuarantee, list[ElementKind]]:
    """Each guarantee that the kernel gives, and for which elements."""
    found: dict[PrecisionGuarantee, list[ElementKind]] = {}
    for element in kernel.elements:
        for guarantee in dict.fromkeys(kernel.guarantee(problem) for problem in served(plan, kernel, element)):
            found.setdefault(guarantee, []).append(element)
    return found


def workspace(plan: AnyPlan, kernel: Kernel) -> str:
    """ "none", or how many bytes a telling problem takes."""
    sizes = {problem: kernel.workspace(problem) for element in kernel.elements for problem in served(plan, kernel, element)}
    if not any(sizes.values()):
        return "none"
    shown = (problem for problem in plan.cases.showcase() if sizes.get(problem))
    example = next(shown, None) or max(sizes, key=lambda problem: sizes[problem])
    return f"{sizes[example]:,} bytes for {describe(example)}"


# --- limits ----------------------------------------------------------------------------------------------------------------


def limits(plan: AnyPlan, kernel: Kernel) -> list[str]:
    """What a problem has to keep to, in the words of the reasons that the kernel gives against problems that do not."""
    return [text for limit in kernel.limits for text in _limit(plan, kernel, limit)]


def _limit(plan: AnyPlan, kernel: Kernel, limit: Any) -> list[str]:
    broken: dict[str, set[ElementKind]] = {}
    for element in kernel.elements:
        for problem in _extremes(plan, element):
            for reason in limit(problem):
                broken.setdefault(f"`{reason.where}`: {reason.wanted}", set()).add(element)
    if not broken:
        raise LookupError(f"no problem was found that {kernel.name} refuses by {limit}")
    if len(broken) > MOST_TEXTS:  # a table of rows, each with dtypes of its own
        return [f"{where}: as its row says" for where in dict.fromkeys(text.partition(":")[0] for text in broken)]
    everywhere = set(kernel.elements)
    return [text if where == everywhere else f"{text} ({elements(where)})" for text, where in broken.items()]


@functools.cache
def _extremes(plan: AnyPlan, element: ElementKind) -> list[Any]:
    """Problems with one field changed to something unusual. Fields that have to fit it are changed where the cases know how."""
    found: dict[Any, None] = {}
    tried: set[tuple[str, Any]] = set()
    for base in plan.cases.showcase():
        for name, kind in field_types(plan.descriptor_type).items():
            for value in _unusual(kind, getattr(base, name)):
                with contextlib.suppress(InvalidProblem):
                    found[replace(base, **{"element": element, name: value})] = None
                if (name, value) not in tried:
                    tried.add((name, value))
                    with contextlib.suppress(InvalidProblem):
                        found[plan.cases.from_options({"element": element, name: value})] = None
    return list(found)


def _unusual(kind: Any, usual: Any) -> Iterable[Any]:
    if kind is ElementKind:
        return []
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind == Shape:
        return (3,) * MANY_AXES, (HUGE,) * len(usual)
    if kind == Numbers:
        return [usual * MANY_NUMBERS]
    if kind is bool:
        return False, True
    return [HUGE] if kind is int else []


# --- error bounds ----------------------------------------------------------------------------------------------------------


def bounds(plan: AnyPlan) -> dict[ElementKind, str]:
    """How far an output of each element may be from the reference."""
    kinds = {kind for kernel in plan.kernels for kind in kernel.elements}
    problems = {kind: next(iter(plan.cases.corners(kind))) for kind in kinds}
    outputs = [operand for operand in plan.args_type.OPERANDS if operand.access is Access.WRITE]
    stored = {output.element(problem): problem for output in outputs for problem in [*problems.values(), *plan.cases.showcase()]}
    return {kind: _bound(plan, stored[kind], kind) for kind in ElementKind if kind in stored}


def _bound(plan: AnyPlan, problem: Any, element: ElementKind) -> str:
    assert element_of(problem)
    at = [
        error_bound(SimpleNamespace(summed_extent=lambda _, n=n: n, is_long_chain=plan.cases.is_long_chain), problem, element)  # type: ignore[arg-type]
        for n in (1, 100)
    ]
    if at[0] == 0.0:
        return "exact"
    growth = {1: "", 10: "·√n"}[round(at[1] / at[0])]
    return re.sub(r"(\.0)?e-0*", "e-", f"{at[0]:.1e}") + growth
