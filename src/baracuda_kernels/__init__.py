"""baracuda-kernels: ops as plans. `import baracuda_kernels as bk`.

The public names are declared in `__init__.pyi`, which type checkers read, and are imported on first use: importing
the package needs no GPU and loads no backend.
"""

import ast
import re
from pathlib import Path

__version__ = "0.1.0"


def _declared() -> dict[str, str]:
    """Name to module, from the stub beside this file; a star stands for all functions in that module's stub."""
    names: dict[str, str] = {}
    for node in ast.parse(_stub("__init__")).body:
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                if alias.name == "*":  # a long stub, searched rather than parsed: this is most of what importing costs
                    functions = re.findall(r"^def (\w+)\(", _stub(module.rpartition(".")[2]), re.MULTILINE)
                    names |= dict.fromkeys(functions, module)
                else:
                    names[alias.asname or alias.name] = module
    return dict(sorted(names.items()))


def _stub(name: str) -> str:
    return Path(__file__).with_name(f"{name}.pyi").read_text(encoding="utf-8")


_MODULES = _declared()
__all__ = list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from baracuda_kernels.core.turns import imported

    value = globals()[name] = getattr(imported(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
