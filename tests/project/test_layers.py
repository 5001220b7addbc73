"""Imports go one way, as docs/architecture.md draws it. Every import counts, wherever it stands, and every module that is loaded by name."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import baracuda_kernels as bk

HOME = Path(bk.__file__).parent
NAME = HOME.name

# What each room may import.
MAY: dict[str, tuple[str, ...]] = {
    "core": (),
    "formula": ("core",),
    "targets": ("core", "formula"),
    "ops": ("core", "formula", "targets"),
    "arrays": ("core", "targets"),
    "torch": ("core", "formula", "targets", "ops", "arrays"),
    "verify": ("core", "targets", "ops"),
    "bench": ("core", "targets", "torch", "verify"),
    "cli": ("core", "verify", "bench", ""),
    "": ("core",),  # the package itself, which has the public names, and `functional`
}
# And what is allowed beside that: (who, whom) and why.
EXCEPTIONS = {
    ("core.registry", "ops"): "finds every declaration by walking through the folder of ops",
    ("core.framework", "arrays"): "loads a framework's arrays when the first one is seen",
    ("bench.__main__", "cli.bench"): "`python -m baracuda_kernels.bench` is another name of the command",
    ("__main__", "cli"): "`python -m baracuda_kernels` is another name of the command line",
}
LOADERS = {"imported", "import_module", "find_spec", "walk_packages", "files"}  # functions that take a module's name


@functools.cache
def modules() -> dict[str, Path]:
    """Every module by its name within the package."""
    found = {}
    for file in HOME.rglob("*.py"):
        parts = file.relative_to(HOME).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def within(name: str) -> str | None:
    """The module that a dotted name means: itself, or the one that defines what it names. None where it is not ours."""
    if name != NAME and not name.startswith(NAME + "."):
        return None
    inner = name.removeprefix(NAME).strip(".")
    while inner not in modules():
        inner = inner.rpartition(".")[0]
    return inner


def imports_of(module: str) -> Iterator[str]:
    file = modules()[module]
    folder = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = f"{NAME}.{folder}".rstrip(".").split(".")
            base = (
                ".".join([*above[: len(above) + 1 - node.level], *filter(None, [node.module])]) if node.level else node.module or ""
            )
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOADERS:
            names = [name for given in node.args for name in _texts(given)]
        elif isinstance(node, ast.Assign):  # a constant that such a name is made with
            names = [text for text in _texts(node.value) if re.fullmatch(rf"{NAME}(\.\w+)+", text)]
        yield from (found for name in names if (found := within(name)) is not None and found != module)


def _texts(node: ast.expr) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def room_of(module: str) -> str:
    top = module.partition(".")[0]
    return top if top in MAY else ""


def package_of(module: str) -> str:
    """The folder of a module; `core` is one, whatever folders it has."""
    folder = module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]
    return "core" if room_of(folder) == "core" else folder


def test_every_folder_is_a_room() -> None:
    assert {file.parent.name for file in HOME.glob("*/__init__.py")} == set(MAY) - {""}
    assert [folder for folder in HOME.rglob("*/") if any(folder.glob("*.py")) and not (folder / "__init__.py").exists()] == []


@pytest.mark.parametrize("room", MAY)
def test_a_room_imports_what_lies_below_it(room: str) -> None:
    allowed = {room, *MAY[room]}
    wrong = {
        (module, other)
        for module in modules()
        if room_of(module) == room
        for other in imports_of(module)
        if room_of(other) not in allowed and (module, other) not in EXCEPTIONS
    }
    assert not wrong


def test_every_exception_is_needed() -> None:
    assert {(module, other) for module, other in EXCEPTIONS if other not in imports_of(module)} == set()


def test_the_cpu_and_cuda_know_nothing_of_each_other() -> None:
    for one, other in (("cpu", "cuda"), ("cuda", "cpu")):
        own = [module for module in modules() if module.startswith(f"targets.{one}")]
        assert (
            own and [(module, each) for module in own for each in imports_of(module) if each.startswith(f"targets.{other}")] == []
        )


def test_packages_do_not_import_each_other_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for module in modules():
        others = {package_of(other) for other in imports_of(module) if (module, other) not in EXCEPTIONS}
        graph.setdefault(package_of(module), set()).update(others - {package_of(module)})
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def test_the_name_of_a_class_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for module, file in modules().items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
