"""The functions, as a table."""

from __future__ import annotations

from baracuda_kernels.core import registry
from baracuda_kernels.core.function import RETURN, Function
from generator.tables import code, table


def text() -> str:
    rows = [(code(each.call_text()), each.__doc__ or "", _results(each)) for each in registry.functions().values()]
    return "\n".join(table(("function", "what it computes", "results"), rows)) + "\n"


def _results(each: Function) -> str:
    """Those of the outputs that come with an option in brackets."""
    names = [f"[{code(name)}]" if f"{RETURN}{name}" in each.options else code(name) for name in each.outputs]
    return ", ".join(names)
