"""Options made from a descriptor's fields."""

from __future__ import annotations

import argparse
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from baracuda_kernels.bench.problems import field_types
from baracuda_kernels.core.descriptor import Descriptor, Numbers
from baracuda_kernels.core.element import ElementKind
from baracuda_kernels.core.layout import Shape


def add_field_options(parser: argparse.ArgumentParser, descriptor: type[Descriptor]) -> None:
    """One option per field; `--shape` is the field that is a shape, `--dtype` the element."""
    kinds = field_types(descriptor)
    shapes = [name for name, kind in kinds.items() if kind == Shape]
    group = parser.add_argument_group("the problem", f"fields of {descriptor.__name__}; those left out have a sensible value")
    for name, kind in kinds.items():
        flags = [f"--{name}"] if "_" not in name else [f"--{name.replace('_', '-')}", f"--{name}"]
        flags += ["--shape"] if shapes == [name] else []
        flags += ["--dtype"] if name == "element" else []
        group.add_argument(*flags, dest=name, type=reader(kind), default=argparse.SUPPRESS, metavar="VALUE", help=wanted(kind))


def given_fields(options: argparse.Namespace, descriptor: type[Descriptor]) -> dict[str, Any]:
    """The fields that the user named."""
    return {name: getattr(options, name) for name in field_types(descriptor) if hasattr(options, name)}


def fields_of(text: str, descriptor: type[Descriptor]) -> dict[str, Any]:
    """Fields written as "shape=64,1024 dtype=bf16". Raises `ValueError` for what cannot be read."""
    parser = _Strict(prog=f"{descriptor.__name__}", add_help=False)
    add_field_options(parser, descriptor)
    pairs = [pair.partition("=") for pair in text.split()]
    given = [argument for name, _, value in pairs for argument in (f"--{name}", value)]
    return given_fields(parser.parse_args(given), descriptor)


class _Strict(argparse.ArgumentParser):
    """Complains by raising: the program it serves has more to say."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def wanted(kind: Any) -> str:
    """What may be written for a field of this type."""
    if isinstance(kind, types.UnionType):
        return f"{wanted(_inner(kind))}, or none"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(member.name.lower() for member in kind)
    return {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "a text",
        Shape: "extents, such as 64,1024",
        Numbers: "numbers, such as 0.5,2",
    }[kind]


def reader(kind: Any) -> Callable[[str], Any]:
    """Text to a value of the field's type; what cannot be read is refused with what is wanted."""

    def read(text: str) -> Any:
        try:
            return _read(kind, text.strip())
        except (ValueError, KeyError):
            raise argparse.ArgumentTypeError(f"got {text!r}, wanted {wanted(kind)}") from None

    return read


def _inner(kind: types.UnionType) -> Any:
    return next(choice for choice in kind.__args__ if choice is not types.NoneType)


def _read(kind: Any, text: str) -> Any:
    if isinstance(kind, types.UnionType):
        return None if text.lower() == "none" else _read(_inner(kind), text)
    if kind is ElementKind:
        return ElementKind.of(text.lower())
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {str(key).lower(): member for member in kind for key in (member.value, member.name)}[text.lower()]
    if kind is bool:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[text.lower()]
    if kind == Shape:
        return tuple(int(extent) for extent in text.strip("[]()").split(",") if extent.strip())
    if kind == Numbers:
        return tuple(float(number) for number in text.strip("[]()").split(",") if number.strip())
    return kind(text)
