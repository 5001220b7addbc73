"""Every function by name. What they take is declared in `functional.pyi`, which is generated from their declarations."""

from __future__ import annotations

from baracuda_kernels.core import registry


def __getattr__(name: str) -> object:
    if name not in registry.function_homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return registry.function(name)


def __dir__() -> list[str]:
    return [*globals(), *registry.function_homes()]
