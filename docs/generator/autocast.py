"""What autocast makes of the functions, as a table."""

from __future__ import annotations

from baracuda_kernels.core import registry
from baracuda_kernels.torch.autocast import LISTS, Rule, rule_of
from generator.tables import code, table

SAYS = {
    Rule.LOWER: "autocast's dtype",
    Rule.FP32: "f32",
    Rule.FP32_UNLESS_ASKED: "f32, unless `dtype` is given",
    Rule.WIDEST: "the widest dtype among the operands, also those of rank 0",
}


def text() -> str:
    headings = ("computed in", *(f"on {device.upper()}" for device in LISTS))
    rows = [(says, *(", ".join(_functions(rule, device)) for device in LISTS)) for rule, says in SAYS.items()]
    return "\n".join(table(headings, rows)) + "\n"


def _functions(rule: Rule, device: str) -> list[str]:
    return [code(name) for name in registry.functions() if rule_of(name, device) is rule]
