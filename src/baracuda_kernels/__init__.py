"""baracuda-kernels: ops as plans. `import baracuda_kernels as bk`.

The public names are declared in `__init__.pyi`, which type checkers read, and are imported on first use: importing
the package needs no GPU and loads no backend.
"""

import ast
import importlib
from importlib import metadata
from pathlib import Path


def _declared() -> dict[str, str]:
    """Name to module, from the stub beside this file."""
    tree = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: node.module or "" for node in imports for alias in node.names}


_MODULES = _declared()
__all__ = sorted(_MODULES)
try:
    __version__ = metadata.version("baracuda-kernels")
except metadata.PackageNotFoundError:  # used from a source tree that was never installed
    __version__ = "0+source"


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
