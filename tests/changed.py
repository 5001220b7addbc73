"""Which tests a change can touch, by what they import: a plain map for working. CI runs all of them.

    python tests/changed.py [BASE] [-- OPTIONS OF PYTEST]      by default what differs from HEAD, and if nothing does, from the commit before

A test file is touched if it, or what it imports, has changed; of files that ask the registry for every op, the tests of ops that have, and
those that are of no op. Imports are read from the sources, with those by name: `bk.softmax`, "numba:forward" beside an op, and modules
named in strings, as in scripts for other processes.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCES, TESTS, PACKAGE = ROOT / "src", ROOT / "tests", "baracuda_kernels"
OPS = SOURCES / PACKAGE / "ops"
# What is looked at as a whole, and not by what it imports: by the beginnings of paths, the tests of it. Everything else touches all tests.
FOLDERS = {"docs/": "test_docs", "bench/": "test_bench", "examples/": "test_example", "CHANGELOG": "test_docs", "README": "test_docs",
           "CONTRIBUTING": "test_docs", "CITATION": "test_packaging", "SECURITY": "test_docs"}  # fmt: skip
BY_NAME = re.compile(rf"\b(?:bk|bt|functional|{PACKAGE}(?:\.torch)?)\.([A-Za-z_]\w*)")
IN_STRINGS = re.compile(rf"\b{PACKAGE}(?:\.\w+)+")
ENTRY = re.compile(r"(\w+):\w+")
REGISTRY = f"{PACKAGE}.core.registry"  # whose functions import all declarations


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package and of the tests, by its dotted name."""
    found = {}
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found | {
        path.stem: path for path in TESTS.rglob("*.py")
    }  # which pytest imports by these names, whatever folder they are in


def _module_of(name: str) -> str | None:
    """The module of that name, or that has it."""
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name or None


@functools.cache
def _names() -> dict[str, str]:
    """The public names and where they are, as the stub says; functions where they are declared."""
    found = {}
    for node in ast.parse((SOURCES / PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name != "*":
            found |= {alias.asname or alias.name: str(node.module) for alias in node.names}
    for name, path in modules().items():
        if path.is_relative_to(OPS) and path.stem == "functions":
            found |= {
                node.name: name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
            }
    return found


@functools.cache
def imports(name: str) -> frozenset[str]:
    """The modules that one imports, sooner or later, with the packages that these are in."""
    path = modules()[name]
    text = path.read_text(encoding="utf-8")
    found = set(IN_STRINGS.findall(text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (entry := ENTRY.fullmatch(node.value)):
            found.add(f"{name if path.stem == '__init__' else name.rpartition('.')[0]}.{entry[1]}")
    if path.is_relative_to(TESTS):  # the package itself names its functions in docstrings alone
        found |= {_names()[each] for each in BY_NAME.findall(text) if each in _names()}
    known = {module for each in found if (module := _module_of(each))}
    packages = {parent for each in known for parent in _parents(each)}
    return frozenset((known | packages) - {name})


def _parents(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


@functools.cache
def reach(*starts: str) -> frozenset[str]:
    """Those modules and all that they import, and so on."""
    seen, waiting = set(starts), list(starts)
    while waiting:
        new = imports(waiting.pop()) - seen
        seen |= new
        waiting += new
    return frozenset(seen)


def family(name: str) -> tuple[str, ...]:
    """The modules of a package, which stand beside each other: declaration, bodies, cases, peers."""
    return tuple(each for each, path in modules().items() if path.parent == modules()[name].parent)


class Touched:
    """What a list of changed files, relative to the root, can touch."""

    def __init__(self, files: Iterable[str]) -> None:
        paths = {path: name for name, path in modules().items()}
        self.changed, self.whole, self.everything = set[str](), set[str](), False
        for file in files:
            own = [test for start, test in FOLDERS.items() if file.startswith(start)]
            if (ROOT / file) in paths and Path(file).stem != "conftest":
                self.changed.add(paths[ROOT / file])
            elif own:
                self.whole.update(own)
            else:
                self.everything = True
        outside = [each for each in self.changed if not modules()[each].is_relative_to(OPS)]
        reached = [reach(name) for name in modules() if name.startswith("test_")] if outside else []
        self.everything |= any(not any(each in one for one in reached) for each in outside)  # such as `__main__`

    @functools.cache  # noqa: B019 # one for a process
    def has_op(self, op: str) -> bool:
        from baracuda_kernels.core import registry

        function = registry.functions().get(op)
        plan = registry.plans().get(op) if function is None else function.plan
        return plan is not None and (self.everything or not self.changed.isdisjoint(reach(*family(plan.__module__))))

    def selects(self, test: str, of: set[str]) -> bool:
        """Whether a test has to run that is in that module, and of those ops or functions."""
        if self.everything or test in self.whole:
            return True
        reached = self._reached(test)
        if of:
            return any(map(self.has_op, of)) or any(not modules()[each].is_relative_to(OPS) for each in reached)
        return bool(reached) or (REGISTRY in reach(test) and self._touches_some_op)

    def _reached(self, test: str) -> frozenset[str]:
        return reach(test) & self.changed

    @functools.cached_property
    def _touches_some_op(self) -> bool:
        from baracuda_kernels.core import registry

        return any(map(self.has_op, registry.plans()))


@functools.cache
def _registered() -> frozenset[str]:
    from baracuda_kernels.core import registry

    return frozenset({*registry.plans(), *registry.functions()})


def ops_of(parameters: dict[str, Any]) -> set[str]:
    """The ops and functions that a test's parameters name, themselves or as "op.operand"; a case or a plan has one."""
    from baracuda_kernels.core import registry

    named = set()
    for value in parameters.values():
        plan = getattr(value, "plan_type", value)
        named.add(registry.op_name(plan) if isinstance(plan, type) and plan.__name__.endswith("Plan") else str(value).split(".")[0])
    return named & _registered()


# A plugin of pytest, `-p changed`, in each of its workers.


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--touched-by", metavar="FILES", help="leave out what these cannot touch, separated by commas")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if config.getoption("--touched-by") is None:
        return
    touched = Touched(filter(None, config.getoption("--touched-by").split(",")))
    given = [ops_of(item.callspec.params) if hasattr(item, "callspec") else set() for item in items]
    is_kept = [touched.selects(item.module.__name__, ops) for item, ops in zip(items, given, strict=True)]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, is_kept, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, is_kept, strict=True) if kept]


def files_since(base: str) -> list[str]:
    """Changed since that commit, with those that git does not know yet."""
    run = functools.partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
    changed = run(["git", "diff", "--name-only", base]).stdout + run(["git", "ls-files", "--others", "--exclude-standard"]).stdout
    return sorted(set(changed.splitlines()))


def main(arguments: list[str]) -> int:
    import pytest

    bases, _, options = " ".join(arguments).partition("--")
    base = bases.strip() or "HEAD"
    files = files_since(base) or files_since("HEAD~1")
    print(f"{len(files)} files differ: {', '.join(files[:8])}{' ...' if len(files) > 8 else ''}")
    return int(pytest.main(["-p", "changed", "--touched-by", ",".join(files), *options.split()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
