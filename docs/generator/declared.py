"""What a declaration says, as text: types, notes beside fields, shapes in terms of the fields, formulas of properties."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field
from enum import Enum
from typing import Any

from baracuda_kernels.bench.problems import field_types
from baracuda_kernels.core.descriptor import Descriptor, Numbers
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape

_NOTE = re.compile(r"^    (\w+): [^#\n]+#\s*(?!type: ignore)(.+)$", re.MULTILINE)


def first_line(documented: Any) -> str:
    """The first line of a docstring as the end of a sentence: no capital, no full stop."""
    line = (documented.__doc__ or "").strip().partition("\n")[0].removesuffix(".")
    return line[:1].lower() + line[1:] if line[1:2].islower() or line[1:2] == " " else line


def type_text(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return " or ".join("None" if kind is types.NoneType else type_text(kind) for kind in hint.__args__)
    if hint in (Shape, Numbers):
        return "ints" if hint == Shape else "numbers"
    if issubclass(hint, Enum) and hint is not ElementKind:
        return f"`{hint.__name__}`: {', '.join(member.name for member in hint)}"
    return f"`{hint.__name__}`"


def default_text(field: Field[Any]) -> str:
    if field.default is MISSING:
        return "required"
    return field.default.name if isinstance(field.default, Enum) else str(field.default)


def field_notes(descriptor: type[Descriptor]) -> dict[str, str]:
    """The comments beside the fields, a subclass's before its bases'."""
    notes: dict[str, str] = {}
    for cls in descriptor.__mro__[:-1]:
        notes = dict(_NOTE.findall(inspect.getsource(cls))) | notes
    return notes


# --- shapes ----------------------------------------------------------------------------------------------------------------


class _Name:
    """A number that is known by name only: nothing can be computed or decided with it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __bool__(self) -> bool:
        raise TypeError(self.name)

    __eq__ = __hash__ = None  # type: ignore[assignment]


class _Named:
    """Stands in for a descriptor: shapes are computed, numbers are their names."""

    def __init__(self, descriptor: type[Descriptor]) -> None:
        self._descriptor = descriptor

    def __getattr__(self, name: str) -> Any:
        getter = property_of(self._descriptor, name)
        if getter is not None and typing.get_type_hints(getter)["return"] == Shape:
            return getter(self)
        if isinstance(field_types(self._descriptor).get(name), types.UnionType):
            raise TypeError(name)  # what is optional is decided on
        return _Name(name)


def property_of(descriptor: type[Descriptor], name: str) -> Callable[[Any], Any] | None:
    attribute = inspect.getattr_static(descriptor, name, None)
    return attribute.fget if isinstance(attribute, property) else None


def shape_text(descriptor: type[Descriptor], rule: str) -> str:
    """The extents by name where the shape is a plain list of them, else the name of the shape."""
    getter = property_of(descriptor, rule)
    if getter is None:
        return rule
    try:
        return f"[{', '.join(map(str, getter(_Named(descriptor))))}]"
    except TypeError:
        return rule


# --- formulas --------------------------------------------------------------------------------------------------------------


class _Plain(ast.NodeTransformer):
    """Fields without the descriptor they belong to, local names replaced by what they stand for."""

    def __init__(self) -> None:
        self.locals: dict[str, ast.expr] = {}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        owner = node.value
        return ast.Name(node.attr) if isinstance(owner, ast.Name) and owner.id in ("self", "descriptor") else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.locals.get(node.id, node)


def formula(function: Callable[..., Any]) -> str | None:
    """What a function of a descriptor returns, in terms of the descriptor's fields; None where that is not one expression."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    plain = _Plain()
    for statement in definition.body[1 if ast.get_docstring(definition) else 0 :]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                plain.locals[name] = plain.visit(value)
            case ast.Return(value=ast.expr() as value):
                return ast.unparse(plain.visit(value))
            case _:
                return None
    return None


def derived(descriptor: type[Descriptor], text: str) -> Iterator[str]:
    """The properties that a text names, and those that their formulas name, a line each."""
    waiting, seen = [text], set()
    while waiting:
        for name in re.findall(r"\b[a-z_]+\b", waiting.pop(0)):
            getter = property_of(descriptor, name)
            if getter is None or name in seen:
                continue
            seen.add(name)
            stands_for, says = formula(getter), first_line(getter)
            waiting.append(stands_for or "")
            yield f"- `{name}`" + (f" = `{stands_for}`" if stands_for else "") + (f": {says}" if says else "")
