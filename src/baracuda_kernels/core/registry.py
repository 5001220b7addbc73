"""All declared ops by name; the command line, tests, bench and docs are derived from it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from typing import TYPE_CHECKING, Any

from baracuda_kernels.core.turns import LOADING

if TYPE_CHECKING:
    from baracuda_kernels.core.function import Function
    from baracuda_kernels.core.plan import Plan

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


def function(name: str) -> Function:
    """A declared function, of the library or not."""
    if name not in _functions:
        _import_declarations()
    return _functions[name]


@functools.cache
def _import_declarations() -> None:
    with LOADING:
        ops = importlib.import_module("baracuda_kernels.ops")
        for module in pkgutil.walk_packages(ops.__path__, "baracuda_kernels.ops."):
            # A package declares its plans when imported, its module `functions` the functions; kernel bodies are plain modules.
            if module.ispkg or module.name.endswith(".functions"):
                importlib.import_module(module.name)
