"""The API reference: every public class and function with its docstring and its declaration, a page for each category of ops."""

from __future__ import annotations

import csv
import dataclasses
import inspect
import itertools
import re
import types
from collections.abc import Iterable, Iterator
from enum import Enum
from inspect import Parameter
from pathlib import Path
from typing import Any, Generic

import baracuda_kernels as bk
import baracuda_kernels.torch as bt
from baracuda_kernels.bench.problems import field_types
from baracuda_kernels.core import registry
from baracuda_kernels.core.function import RETURN, Function
from baracuda_kernels.core.view import Dtype, Number
from generator import families
from generator.declared import field_notes, member_notes
from generator.families import AnyPlan
from generator.tables import code, table

# What is public and belongs to no category of ops, in the order of the page.
COMMON_NAMES = {
    "Plans": "Plan Verdict PlanPreference Determinism Effort",
    "Memory and devices": "ElementKind TensorRef TensorMut Workspace Stream Device DeviceKind",
    "Kernels and their guarantees": "KernelSku PrecisionGuarantee MathPrecision OpCategory BackendKind ArchSku LayoutSku EpilogueKind",
    "Errors and reasons": "Error InvalidProblem InvalidAxis InvalidType Unsupported MisalignedOperand WorkspaceTooSmall BufferTooSmall KernelInternal "
    "InvalidWisdom Reason ReasonCode",
    "Wisdom and records": "load_wisdom save_wisdom forget_wisdom Wisdom record Recording",
    "Threads": "get_num_threads set_num_threads",
    "Formulas of your own": "fuse",
}
BACKWARD = "_backward"
STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
MOST_IN_LINE = 88  # characters
# Options that many functions share.
OPTIONS = {
    "approximate": "`none`, or `tanh` for its approximation",
    "atol": "the absolute tolerance",
    "axes": "the normalized axes, the last ones; negative ones count from the end",
    "axis": "the axis; a negative one counts from the end",
    "correction": "subtracted from the count that a variance is divided by",
    "decimals": "how many decimals stay; below 0, how many digits before the point go",
    "dim": "the axis or axes; negative numbers count from the end",
    "dtype": "the dtype of the result: a framework's, or a name such as `bf16`",
    "edge_order": "the order of the formula at both edges: 1 or 2",
    "equal_nan": "whether NaN is close to NaN",
    "input_element": "the dtype of the forward's input",
    "is_causal": "whether key j is hidden from query i where j > i",
    "keepdim": "whether reduced axes stay, with an extent of 1",
    "max_val": "the upper bound",
    "min_val": "the lower bound",
    "nan": "what NaN becomes",
    "negative_slope": "the slope below 0",
    "q": "which quantiles: one, or several for a leading axis in the result",
    "reverse": "whether to go from the end to the start",
    "rounding_mode": "None for the quotient itself, `trunc` or `floor`",
    "rtol": "the relative tolerance",
    "size": "the shape of the result",
}


def pages(inventory: Path) -> dict[str, tuple[str, str]]:
    """Title and text of each page by its name, the categories in the order of the inventory."""
    with inventory.open(encoding="utf-8", newline="") as file:
        ordered = dict.fromkeys(row["category"] for row in csv.DictReader(file))
    found = {"common": ("Plans, memory, errors", _common())}
    for category in ordered:
        words = re.findall("[A-Z][a-z]+", category)
        plans = [each for each in registry.plans().values() if each.category.value == "_".join(words).lower()]
        if plans:
            title = " ".join(words).capitalize()
            found[plans[0].category.value] = (title, _category(title, plans))
    found["pytorch"] = ("PyTorch", _pytorch())
    return {"index": ("All names", _index(found)), **found}


def preference() -> str:
    """The fields of a preference, for the page about them."""
    return "\n".join([*_fields(bk.PlanPreference), ""])


def names_on(text: str) -> list[str]:
    """The public names that a page has a section for."""
    return [each for each in re.findall(r"^###? (\w+)$", text, re.MULTILINE) if hasattr(bk, each) or hasattr(bt, each)]


# --- pages -------------------------------------------------------------------------------------------------------------------


def _index(found: dict[str, tuple[str, str]]) -> str:
    lines = [
        "# API reference",
        "",
        "`import baracuda_kernels as bk` has every name below, `import baracuda_kernels.torch as bt` those of the last page, and every",
        "function as an operator that records gradients.",
        "",
    ]
    for page, (title, text) in found.items():
        links = ", ".join(f"[`{each}`]({page}.md#{each.lower()})" for each in names_on(text))
        lines += [f"## {title}", "", links, ""]
    return "\n".join(lines)


def _common() -> str:
    lines = ["# Plans, memory, errors", "", "What all ops share.", ""]
    for title, names in COMMON_NAMES.items():
        lines += [f"## {title}", ""]
        for name in names.split():
            lines += [*_entry(name, getattr(bk, name), "bk"), ""]
    return "\n".join(lines)


def _category(title: str, plans: list[AnyPlan]) -> str:
    lines = [
        f"# {title}",
        "",
        "Every function takes arrays of NumPy, PyTorch, JAX or CuPy, and the arguments",
        "[`out`, `preference` and `stream`](../functional.md). The [classes of the plans](#plans) follow the functions.",
        "",
    ]
    for each in registry.functions().values():
        if each.plan in plans and not each.name.endswith(BACKWARD):
            lines += [*_function(each, "##"), ""]
            gradient = each.backward()
            lines += [*_function(gradient.function, "###"), ""] if gradient else []
    lines += ["## Plans", ""]
    for plan in sorted(plans, key=registry.family):
        lines += [*_plan(plan), ""]
    for kind in dict.fromkeys(kind for plan in plans for kind in _kinds(plan)):
        lines += [*_entry(kind.__name__, kind, "bk", _meaning(kind, plans)), ""]
    return "\n".join(lines)


def _pytorch() -> str:
    lines = [
        "# PyTorch",
        "",
        "`import baracuda_kernels.torch as bt`; [in PyTorch](../pytorch.md) and [modules](../modules.md) say how these are used.",
        "",
        "Every function of the other pages is here too, as an operator that records gradients: `bt.softmax(x)` takes what",
        "`bk.softmax(x)` takes but `out`, `preference` and `stream`.",
        "",
    ]
    for name in sorted(set(bt.__all__) - set(registry.functions()), key=str.lower):
        lines += [*_entry(name, getattr(bt, name), "bt"), ""]
    return "\n".join(lines)


# --- functions of ops --------------------------------------------------------------------------------------------------------


def _function(each: Function, heading: str) -> list[str]:
    lines = [f"{heading} {each.name}", "", *_call(f"bk.{each.name}", inspect.signature(each).parameters.values()), ""]
    lines += [_text(each), "", *_parameters(each), ""]
    lines += [*table(("result", "what it is"), [(code(name), operand.doc) for name, operand in each.outputs.items()]), ""]
    gradient, name, page = each.backward(), each.plan.__name__, registry.family(each.plan)
    says = f"Plan: [`{name}`](#{name.lower()}); [kernels and guarantees](../{page}.md#{name.lower()})."
    return [*lines, says + (f" Gradient: [`{gradient.function.name}`](#{gradient.function.name})." if gradient else "")]


def _parameters(each: Function) -> list[str]:
    rows = []
    for parameter in each.public.parameters.values():
        name, default = parameter.name, _default(parameter)
        if name in each.inputs:
            kind = "array or number" if name in each.scalars else "array"
            rows.append((code(name), kind, default, each.inputs[name].doc))
        else:
            rows.append((code(name), code(_annotation(parameter.annotation)), default, _option(each, name)))
    return table(("parameter", "type", "default", "what it is"), rows)


def _option(each: Function, name: str) -> str:
    if name.startswith(RETURN):
        return f"whether `{name.removeprefix(RETURN)}` is among the results"
    row = getattr(each.plan.descriptor_type, "TABLE", {}).get(each.name.removesuffix(BACKWARD))
    of_row = {parameter.name: parameter.doc for parameter in getattr(row, "parameters", ())}
    return of_row.get(name) or OPTIONS.get(name) or field_notes(each.plan.descriptor_type).get(name, "")


# --- classes of ops ----------------------------------------------------------------------------------------------------------


def _plan(plan: AnyPlan) -> list[str]:
    """The three classes of an op."""
    name, descriptor, args = plan.__name__, plan.descriptor_type, plan.args_type
    more = (
        f"It has the methods of [`Plan`](common.md#plan); [kernels and guarantees](../{registry.family(plan)}.md#{name.lower()})."
    )
    lines = [f"### {name}", "", *_class(name, plan, "bk"), "", f"{_text(plan)} {more}", ""]
    lines += [f"### {descriptor.__name__}", "", *_class(descriptor.__name__, descriptor, "bk"), "", _text(descriptor), ""]
    lines += [*families.fields_of(plan), "", f"### {args.__name__}", ""]
    operands = [Parameter(each.name, Parameter.KEYWORD_ONLY) for each in args.OPERANDS]
    lines += [*_call(f"bk.{args.__name__}", operands), "", f"The operands of one launch of [`{name}`](#{name.lower()}).", ""]
    return [*lines, *families.operands_of(plan)]


def _kinds(plan: AnyPlan) -> list[type[Enum]]:
    """The enums that fields of its descriptor have, and that of its kind."""
    hints = [*field_types(plan.descriptor_type).values(), type(plan.op)]
    common = " ".join(COMMON_NAMES.values()).split()
    return [each for each in hints if isinstance(each, type) and issubclass(each, Enum) and each.__name__ not in common]


def _meaning(kind: type[Enum], plans: list[AnyPlan]) -> str:
    whose = [f"[`{plan.__name__}`](#{plan.__name__.lower()})" for plan in plans if kind in _kinds(plan)]
    return f"Which op it is, for {' and '.join(whose)}."


# --- any class and function --------------------------------------------------------------------------------------------------


def _entry(name: str, value: Any, module: str, otherwise: str = "") -> list[str]:
    """One class or function; `otherwise` stands in for a docstring."""
    lines = [f"### {name}", ""]
    if not inspect.isclass(value):
        return [*lines, *_called(f"{module}.{name}", value), "", _text(value)]
    lines += [*_class(name, value, module), "", _text(value) or otherwise, ""]
    if issubclass(value, Enum):
        lines += [*_members(value), ""]
    elif dataclasses.is_dataclass(value):
        lines += [*_fields(value), ""]
    else:
        lines += [*_attributes(value), ""]
    for method, attribute in vars(value).items():
        if not method.startswith("_") and _is_method(value, method, attribute):
            lines += [f"#### {name}.{method}", "", *_method(name, method, attribute), ""]
    return lines


def _class(name: str, cls: type, module: str) -> list[str]:
    bases = [base.__name__ for base in cls.__bases__ if base not in (object, Generic) and not base.__name__.startswith("_")]
    lines = _fenced(f"class {module}.{name}" + (f"({', '.join(bases)})" if bases else ""))
    is_made = "__init__" in vars(cls) and not dataclasses.is_dataclass(cls) and not issubclass(cls, Exception | Enum)
    return [*lines, "", *_call(f"{module}.{name}", inspect.signature(cls).parameters.values())] if is_made else lines


def _is_method(cls: type, name: str, attribute: Any) -> bool:
    """Also a property, but not what a framework's base class asks for and only that calls."""
    if not (inspect.isfunction(attribute) or isinstance(attribute, staticmethod | classmethod | property)):
        return False
    return bool(attribute.__doc__) or not any(hasattr(base, name) for base in cls.__bases__)


def _method(owner: str, name: str, attribute: Any) -> list[str]:
    if isinstance(attribute, property):
        hint = inspect.signature(attribute.fget).return_annotation
        return [*_fenced(f"{name}: {_annotation(hint)}"), "", _text(attribute.fget)]
    on = f"{owner}." if isinstance(attribute, staticmethod | classmethod) else ""
    function = inspect.unwrap(getattr(attribute, "__func__", attribute))
    return [*_called(f"{on}{name}", function, has_self=not isinstance(attribute, staticmethod)), "", _text(function)]


def _attributes(cls: type) -> list[str]:
    """What instances are annotated to have."""
    notes, hints = field_notes(cls), vars(cls).get("__annotations__", {})
    rows = [
        (code(name), code(_annotation(hint)), notes.get(name, ""))
        for name, hint in hints.items()
        if not name.startswith("_") and not str(hint).startswith("ClassVar")
    ]
    return table(("attribute", "type", "what it is"), rows) if rows else []


def _members(kind: type[Enum]) -> list[str]:
    notes = member_notes(kind)
    rows = [(code(each.name), getattr(each, "says", "") or code(each.value), notes.get(each.name, "")) for each in kind]
    return table(("member", "value", "what it means"), rows)


def _fields(cls: type) -> list[str]:
    notes, rows = field_notes(cls), []
    for field in dataclasses.fields(cls):
        is_required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = "required" if is_required else "empty" if field.default is dataclasses.MISSING else code(_shown(field.default))
        rows.append((code(field.name), code(_annotation(field.type)), default, notes.get(field.name, "")))
    return table(("field", "type", "default", "what it says"), rows)


# --- text --------------------------------------------------------------------------------------------------------------------


def _text(documented: Any) -> str:
    """The docstring of its own, without what dataclasses write where there is none."""
    own = str(vars(documented).get("__doc__") or "") if inspect.isclass(documented) else documented.__doc__ or ""
    return "" if own.startswith(f"{documented.__name__}(") else inspect.cleandoc(own)


def _fenced(text: str) -> list[str]:
    return ["```python", text, "```"]


def _called(name: str, function: Any, has_self: bool = False) -> list[str]:
    """A function that is no op's, as its own signature says."""
    signature = inspect.signature(function)
    gives = "" if signature.return_annotation is inspect.Signature.empty else f" -> {_annotation(signature.return_annotation)}"
    return _call(name, list(signature.parameters.values())[int(has_self) :], gives)


def _call(name: str, parameters: Iterable[Parameter], gives: str = "") -> list[str]:
    """In one line where that is short."""
    shown = list(_signature(parameters))
    line = f"{name}({', '.join(shown)}){gives}"
    short = len(line) <= MOST_IN_LINE
    return _fenced(line if short else "\n".join([f"{name}(", *(f"    {each}," for each in shown), f"){gives}"]))


def _signature(parameters: Iterable[Parameter]) -> Iterator[str]:
    for keyword_only, group in itertools.groupby(parameters, key=lambda each: each.kind is Parameter.KEYWORD_ONLY):
        if keyword_only:
            yield "*"
        for each in group:
            typed = each.annotation is not Parameter.empty
            text = STARS.get(each.kind, "") + each.name + (f": {_annotation(each.annotation)}" if typed else "")
            equals = " = " if typed else "="
            yield text if each.default is Parameter.empty else f"{text}{equals}{_shown(each.default)}"


def _default(parameter: Parameter) -> str:
    return "required" if parameter.default is Parameter.empty else code(_shown(parameter.default))


def _shown(value: Any) -> str:
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def _annotation(hint: Any) -> str:
    """A type as it is written, without the modules it is from."""
    if isinstance(hint, types.UnionType):
        return " | ".join(_annotation(each) for each in hint.__args__)
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return {Dtype: "dtype", Number: "float", types.NoneType: "None"}.get(hint, hint.__name__)
    return re.sub(r"(?:\w+\.)+(\w+)", r"\1", str(hint))
