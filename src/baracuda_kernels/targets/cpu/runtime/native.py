"""From a body factory to a C function in this process, compiled at most once per machine.

A kernel is a factory: called with static parameters (element, kind, ...) it returns a Python body and its Numba argument
types, or LLVM assembly with a function ENTRY. On first use that is compiled, the object code goes to the `cache`, and every later
process loads it with llvmlite alone: no Numba import, no compilation.

The key of an entry covers the sources of the factory's package, of `targets` but CUDA's and of `formula`, the static parameters, the versions of Python and
the compilers, and the processor, so stale code cannot be picked up. Numba's settings are not in it: code is the same whatever they are.
"""

import contextlib
import ctypes
import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from baracuda_kernels.core import cache, element
from baracuda_kernels.core.machine import digest_of_sources
from baracuda_kernels.core.turns import LOADING
from baracuda_kernels.targets.cpu.runtime import entries

__all__ = ["ENTRY", "NativeFunction", "build"]

ENTRY = "body"  # what a factory that writes assembly calls its function


class NativeFunction(Protocol):
    """The kernel called alone. `lead` and `help` take a gate in front: see `entries`."""

    lead: Callable[..., None]
    help: Callable[..., None]

    def __call__(self, words: int, counter: int | None, *pointers: int) -> None: ...


# Of all kernels on the CPU, whatever they are: everything below `cpu`, what lies beside it for all targets, and formulas.
_CPU = Path(__file__).parents[1]
_SHARED = (_CPU, *sorted(_CPU.parent.glob("*.py")), _CPU.parents[1] / "formula")

_built: dict[str, NativeFunction] = {}
_engines: list[Any] = []  # they own the code


def build(factory: Callable[..., tuple[Callable[..., None], tuple[Any, ...]] | str], pointers: int, *static: str) -> NativeFunction:
    """The C function for `factory(*static)`. It takes words, a task counter (None: serial) and `pointers` addresses."""
    with LOADING:
        symbol = "bk_" + _key(factory, static)
        function = _built.get(symbol)
        if function is None:
            function = _built[symbol] = _load(
                symbol, pointers, cache.kept(symbol, lambda: _compile(factory, static, symbol, pointers))
            )
        return function


# --- identity ----------------------------------------------------------------------------------------------------------


@functools.cache
def _machine() -> str:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    versions = [f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite")]
    versions.append(f"python {sys.implementation.cache_tag}")
    return "\n".join([llvm.get_process_triple(), llvm.get_host_cpu_name(), features, *versions])


def _key(factory: Callable[..., Any], static: tuple[str, ...]) -> str:
    from baracuda_kernels.targets.cpu import float16

    digest = hashlib.sha256()
    name = f"{factory.__module__}.{factory.__qualname__}"
    for part in (_machine(), f"integer f16: {float16.uses_integer_f16()}", name, *static):
        digest.update(part.encode() + b"\0")
    home = Path(inspect.getfile(factory)).parent
    for sources in dict.fromkeys((*_SHARED, home, Path(element.__file__))):
        digest.update(digest_of_sources(sources))
    return digest.hexdigest()[:32]


# --- compiler and loader -------------------------------------------------------------------------------------------------


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    options = {"opt": 3, "reloc": "pic", "codemodel": "jitdefault", "jit": True}
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, **options)


def _compile(factory: Callable[..., Any], static: tuple[str, ...], symbol: str, pointers: int) -> bytes:
    import llvmlite.binding as llvm

    # A factory that says it writes assembly needs no Numba, whose import takes longer than the rest.
    writes = inspect.signature(factory).return_annotation in (str, "str")
    with contextlib.nullcontext() if writes else _numba_as_shipped():
        made = factory(*static)
        if isinstance(made, str):
            module = llvm.parse_assembly(made)
            module.get_function(ENTRY).name = symbol
        else:
            numba_body, arguments = made
            module = _compiled_by_numba(numba_body, arguments, symbol)
    module.link_in(llvm.parse_assembly(entries.written(symbol, 2 + pointers, llvm.get_process_triple())))
    # Only the entries stay visible, so that the wrapper which would call into Python goes away with what it references.
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith(symbol):
            function.linkage = "internal"
    machine = _target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    if isinstance(made, str):
        passes = builder.getModulePassManager()
    else:  # Numba has optimised what it compiled
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    module.verify()
    return bytes(machine.emit_object(module))


# What changes the code that Numba writes, as it is where nobody has set it.
_SETTINGS = {"BOUNDSCHECK": None, "CPU_FEATURES": None, "CPU_NAME": None, "DEBUGINFO_DEFAULT": 0, "DEBUG_JIT": 0, "DISABLE_JIT": 0,
             "ENABLE_AVX": 1, "ENABLE_PROFILING": 0, "EXTEND_VARIABLE_LIFETIMES": 0, "LLVM_REFPRUNE_FLAGS": "all", "LLVM_REFPRUNE_PASS": 1,
             "LOOP_VECTORIZE": 1, "SLP_VECTORIZE": 0}  # fmt: skip


@contextlib.contextmanager
def _numba_as_shipped() -> Iterator[None]:
    """Compiles with Numba's default settings, whatever the user's are. Holds the lock of compilation."""
    from numba.core import compiler_lock, config, registry

    with compiler_lock.global_compiler_lock, contextlib.ExitStack() as restored:

        def put(where: Any, name: str, value: Any) -> None:
            restored.callback(setattr, where, name, getattr(where, name))
            setattr(where, name, value)

        config.reload_config()  # or else the next compilation does, where the environment has changed
        for name, value in _SETTINGS.items():
            put(config, name, value)
        put(config, "OPT", config._OptLevel(3))
        put(registry.cpu_target.target_context, "_internal_codegen", _codegen())
        yield


@functools.cache
def _codegen() -> Any:
    """Where Numba optimises what is ours: the first one of a process heeds settings for good.

    It loads nothing: helpers are linked into the body that calls them, and machine code is emitted of that alone, which takes a third less
    time.
    """
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

    class Optimised(JITCodeLibrary):
        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # not loaded

        def _finalize_specific(self) -> None:
            pass

    class Codegen(JITCPUCodegen):
        _library_class = Optimised

        def _add_module(self, module: Any) -> None:
            pass

        def set_env(self, env_name: str, env: Any) -> None:
            pass

    return Codegen("baracuda_kernels")


def _compiled_by_numba(body: Callable[..., None], arguments: tuple[Any, ...], symbol: str) -> Any:
    import llvmlite.binding as llvm
    from numba import cfunc, types

    compiled = cfunc(types.void(*arguments), error_model="numpy")(body)
    module = llvm.parse_assembly(compiled.inspect_llvm())
    inner = _inner_function(module)
    module.link_in(llvm.parse_assembly(_entry(symbol, inner.name, len(arguments))))
    return module


def _inner_function(module: Any) -> Any:
    """The function proper, which Numba's wrapper `cfunc.<name>` calls as (return slot, exception slot, arguments...)."""
    names = {function.name for function in module.functions if not function.is_declaration}
    (name,) = (name[len("cfunc.") :] for name in names if name.startswith("cfunc."))
    return module.get_function(name)


def _entry(symbol: str, inner: str, count: int) -> str:
    parameters = ", ".join(f"ptr %a{i}" for i in range(count))
    declared = ", ".join(["ptr"] * (count + 2))
    return (
        f'declare i32 @"{inner}"({declared})\n'
        f"define void @{symbol}({parameters}) {{\n"
        "  %result = alloca ptr\n"
        f'  %status = call i32 @"{inner}"(ptr %result, ptr null, {parameters})\n'
        "  ret void\n}\n"
    )


def _load(symbol: str, pointers: int, code: bytes) -> Any:
    import llvmlite.binding as llvm

    # One engine per object: MCJIT does not take another object once it has been asked for an address.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    alone, among_others = (ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count) for count in (2 + pointers, 3 + pointers))
    function: Any = alone(engine.get_function_address(symbol))
    function.lead, function.help = (among_others(engine.get_function_address(f"{symbol}_{name}")) for name in ("lead", "help"))
    return function
