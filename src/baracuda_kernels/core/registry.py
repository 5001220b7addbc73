"""All declared ops by name; the command line, tests, bench and docs are derived from it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.turns import LOADING, imported

if TYPE_CHECKING:
    from baracuda_kernels.core.function import Function
    from baracuda_kernels.core.plan import Plan

OPS = "baracuda_kernels.ops"

_plans: dict[str, type[Plan[Any, Any]]] = {}
_functions: dict[str, Function] = {}


def op_name(plan: type[Plan[Any, Any]]) -> str:
    """SoftmaxBackwardPlan is "softmax_backward", RMSNormPlan "rms_norm"."""
    stem = plan.__name__.removesuffix("Plan")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", stem).lower()


def family(plan: type[Plan[Any, Any]]) -> str:
    """The package that declares it, "rms_norm" for both directions: ops of one family share a page of the docs."""
    return plan.__module__.split(".")[-2]


def register(plan: type[Plan[Any, Any]]) -> None:
    _plans[op_name(plan)] = plan


def register_function(function: Function) -> None:
    _functions[function.name] = function


def plans() -> dict[str, type[Plan[Any, Any]]]:
    """All plans of the library; imports every declaration and no backend."""
    _import_declarations()
    return {name: plan for name, plan in sorted(_plans.items()) if plan.__module__.startswith("baracuda_kernels.")}


def functions() -> dict[str, Function]:
    """All functions of the library, by name."""
    _import_declarations()
    return {name: each for name, each in sorted(_functions.items()) if each.__module__.startswith("baracuda_kernels.")}


def plan(name: str) -> type[Plan[Any, Any]]:
    """A declared plan, of the library or not. For one of the library's its family is imported, and no other."""
    if name not in _plans:
        _import_family(plan_homes(), name)
    return _plans[name]


def function(name: str) -> Function:
    """A declared function, of the library or not. For one of the library's its family is imported, and no other."""
    if name not in _functions:
        _import_family(function_homes(), name, ".functions")
    return _functions[name]


def plan_homes() -> Mapping[str, str]:
    """The names of all plans of the library, each with its package below `ops`. Not one is imported."""
    return imported(f"{OPS}.homes").PLANS  # type: ignore[no-any-return]


def function_homes() -> Mapping[str, str]:
    """The names of all functions of the library, each with its package below `ops`. Not one is imported."""
    return imported(f"{OPS}.homes").FUNCTIONS  # type: ignore[no-any-return]


def _import_family(homes: Mapping[str, str], name: str, module: str = "") -> None:
    if name in homes:
        imported(f"{OPS}.{homes[name]}{module}")
    else:  # not the library's, or declared since the table was written
        _import_declarations()


@functools.cache
def _import_declarations() -> None:
    with LOADING:
        ops = importlib.import_module(OPS)
        for module in pkgutil.walk_packages(ops.__path__, f"{OPS}."):
            # A package declares its plans when imported, its module `functions` the functions; kernel bodies are plain modules.
            if module.ispkg or module.name.endswith(".functions"):
                importlib.import_module(module.name)
