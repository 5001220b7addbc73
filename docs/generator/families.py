"""The generated block of each plan on its family's page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from baracuda_kernels.bench.problems import field_types
from baracuda_kernels.cli import ops
from baracuda_kernels.core import registry
from baracuda_kernels.core.args import Operand
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.plan import Plan
from generator import promises
from generator.declared import default_text, derived, field_notes, first_line, formula, shape_text, type_text
from generator.tables import code, table

AnyPlan = type[Plan[Any, Any]]


def families() -> dict[str, list[AnyPlan]]:
    """The plans that each page describes, by the page's name; a forward stands before its backward."""
    plans = sorted(registry.plans().values(), key=registry.family)
    return {name: list(group) for name, group in itertools.groupby(plans, key=registry.family)}


def block(plan: AnyPlan) -> str:
    descriptor, operands, kernels = plan.descriptor_type, operands_of(plan), _kernels(plan)
    n = formula(type(plan.cases).summed_extent) or first_line(type(plan.cases).summed_extent)
    named = list(derived(descriptor, " ".join([*operands[2:], *kernels[2:], n])))
    lines = [f"## {plan.__name__}", "", f"{(plan.__doc__ or '').strip()} {_identity(plan)}", ""]
    lines += [f"`{descriptor.__name__}`: {first_line(descriptor)}.", "", *fields_of(plan), ""]
    lines += ["What follows from the fields:", "", *named, ""] if named else []
    lines += [f"`{plan.args_type.__name__}`:", "", *operands, ""]
    lines += ["Kernels, in the order in which they are tried on their device:", "", *kernels, ""]
    lines += ["Numerical guarantees:", "", *_guarantees(plan), ""]
    lines += [*_bounds(plan, n), ""]
    return "\n".join(lines)


def _identity(plan: AnyPlan) -> str:
    kind = f"in the field `{plan.op}`" if isinstance(plan.op, str) else f"`{type(plan.op).__name__}.{plan.op.name}`"
    return f"Category `OpCategory.{plan.category.name}`, kind {kind}; `{registry.op_name(plan)}` on the command line."


def fields_of(plan: AnyPlan) -> list[str]:
    descriptor = plan.descriptor_type
    notes, hints = field_notes(descriptor), field_types(descriptor)
    rows = []
    for field in fields(descriptor):
        rows.append((code(field.name), type_text(hints[field.name]), default_text(field), notes.get(field.name, "")))
    return table(("field", "type", "default", "what it says"), rows)


def operands_of(plan: AnyPlan) -> list[str]:
    rows = []
    for operand in plan.args_type.OPERANDS:
        names = (operand.shape_rule,) if isinstance(operand.shape_rule, str) else operand.shape_rule
        shapes = " or ".join(code(shape_text(plan.descriptor_type, name)) for name in names)
        element = str(operand.element_rule) if isinstance(operand.element_rule, ElementKind) else code(operand.element_rule)
        in_place = " or ".join(map(code, operand.may_be))
        access, presence, layout = operand.access.value, _presence(operand), _layout(operand)
        rows.append((code(operand.name), access, shapes, element, presence, layout, in_place, operand.doc))
    return table(("operand", "access", "shape", "dtype", "given", "layout", "may be exactly", "what it is"), rows)


def _presence(operand: Operand) -> str:
    if isinstance(operand.present_rule, str):
        return f"exactly when `{operand.present_rule}`"
    return "always" if operand.present_rule else "may be left out"


def _layout(operand: Operand) -> str:
    rule = "any strides" if operand.layout_rule is None else first_line(operand.layout_rule).partition(".")[0].partition(":")[0]
    shared = (f"; axis {axis} may have stride 0" for axis in operand.shared_axes)
    return rule + "".join(shared)


def _lines_of_matrix(plan: AnyPlan) -> Iterator[ops.OpLine]:
    return ops.lines([plan])


def _kernels(plan: AnyPlan) -> list[str]:
    rows = []
    for line in _lines_of_matrix(plan):
        kernel = line.kernel
        places: dict[int, list[ElementKind]] = {}
        for kind, place in line.places.items():
            places.setdefault(place, []).append(kind)
        order = "; ".join(f"{place} for {promises.elements(kinds)}" for place, kinds in sorted(places.items()))
        wants = "; ".join(promises.limits(plan, kernel)) or "none"
        size = promises.workspace(plan, kernel)
        needs = "; ".join(filter(None, [first_line(kernel.workspace), size])) if size != "none" else size
        rows.append((code(kernel.name), str(kernel.device), order, kernel.layout.value, wants, needs))
    return table(("kernel", "device", "place in the order", "layout", "limits", "workspace"), rows)


def _guarantees(plan: AnyPlan) -> list[str]:
    rows = []
    for kernel in plan.kernels:
        for promise, kinds in promises.guarantees(plan, kernel).items():
            kept = (promise.deterministic, promise.bit_stable_on_same_hardware, promise.batch_invariant)
            numbers = promise.math_precision.value, str(promise.accumulator)
            rows.append((code(kernel.name), promises.elements(kinds), *numbers, *("yes" if yes else "no" for yes in kept)))
    return table(("kernel", "dtypes", "math", "sums", "deterministic", "bit-stable", "batch-invariant"), rows)


def _bounds(plan: AnyPlan, n: str) -> list[str]:
    bounds = promises.bounds(plan)
    where = f", with n = `{n}`" if any("√n" in bound for bound in bounds.values()) else ""
    return [f"Relative error of an output, by its dtype{where}:", "", *table(list(map(str, bounds)), [list(bounds.values())])]
