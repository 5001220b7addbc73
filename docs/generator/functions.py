"""The functions, as a table."""

from __future__ import annotations

from baracuda_kernels.core import registry
from baracuda_kernels.core.arguments import SYNONYMS
from baracuda_kernels.core.function import RETURN, Function
from generator.tables import code, table


def text() -> str:
    rows = [(code(each.call_text()), each.__doc__ or "", _results(each)) for each in registry.functions().values()]
    rows += [(code(each.call_text()), each.__doc__ or "", "as those of what is called") for each in registry.shared().values()]
    return "\n".join(table(("function", "what it computes", "results"), rows)) + "\n"


def _results(each: Function) -> str:
    """Those of the outputs that come with an option in brackets."""
    names = [f"[{code(name)}]" if f"{RETURN}{name}" in each.options else code(name) for name in each.outputs]
    return ", ".join(names)


def synonyms() -> str:
    """What arguments are called elsewhere, and how many functions have them."""
    rows = []
    for group in SYNONYMS:
        own = [name for each in registry.functions().values() for name in each.options if name in group]
        rows.append((", ".join(map(code, group)), str(len(own))))
    return "\n".join(table(("names of one argument", "functions that have it"), rows)) + "\n"
