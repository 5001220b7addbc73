"""What importing costs and needs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import baracuda_kernels as bk
from baracuda_kernels.core import registry


def _python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


HEAVY = ("torch", "numba", "llvmlite", "triton", "jax", "numpy", "scipy", "rich", "matplotlib")


def test_importing_the_package_loads_one_module_and_asking_for_names_no_backend() -> None:
    program = f"""
import sys
before = set(sys.modules)
import baracuda_kernels as bk
loaded = set(sys.modules) - before
print(sorted(name for name in loaded if name.partition(".")[0] in {("baracuda_kernels", "email", "socket", *HEAVY)}))
for name in bk.__all__: getattr(bk, name)
bk.Stream.cpu(), bk.PlanPreference(), bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32)
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert _python(program).splitlines() == ["['baracuda_kernels']", "[]"]


def test_ops_do_not_know_who_tries_and_times_them() -> None:
    program = """
import sys
from baracuda_kernels.core import registry
for plan in registry.plans().values(): next(plan.cases.showcase())
print([name for name in sys.modules if name.split(".")[:2] in [["baracuda_kernels", room] for room in ("verify", "bench", "cli")]])
"""
    assert _python(program) == "[]"


FIRST_CALL = """
import sys
import numpy
before = set(sys.modules)
import baracuda_kernels as bk
bk.{name}(numpy.ones((4, 64), "f4"))
ours = [name.split(".") for name in set(sys.modules) - before if name.startswith("baracuda_kernels")]
print(len(ours), *sorted({{parts[2] for parts in ours if parts[1:2] == ["ops"] and len(parts) > 2}} - {{"homes"}}))
"""


@pytest.mark.parametrize(
    ("name", "families", "most_modules"),
    [
        ("softmax", "softmax", 70),
        ("rms_norm", "normalization", 75),
        ("gelu", "elementwise", 110),
        ("sum", "elementwise reduction", 135),
    ],
)
def test_the_first_call_of_a_function_imports_what_it_needs_and_no_more(name: str, families: str, most_modules: int) -> None:
    """One family more would be ten modules or more."""
    count, *loaded = _python(FIRST_CALL.format(name=name)).split()
    assert set(loaded) <= set(families.split()) and int(count) <= most_modules


def test_names_of_all_functions_are_known_before_any_is_declared() -> None:
    program = """
import sys, baracuda_kernels as bk
from baracuda_kernels.core import registry
print(len(registry.function_homes()), len(registry.plan_homes()), [name for name in sys.modules if "baracuda_kernels.ops." in name])
"""
    functions, plans = registry.functions(), registry.plans()
    assert _python(program) == f"{len(functions)} {len(plans)} ['baracuda_kernels.ops.homes']"
    for name, home in registry.function_homes().items():
        declared_in = importlib.import_module(f"{registry.OPS}.{home}.functions")
        assert vars(declared_in)[name] is functions[name] is registry.function(name)
    for name, home in registry.plan_homes().items():
        assert (
            plans[name] in vars(importlib.import_module(f"{registry.OPS}.{home}")).values() and registry.plan(name) is plans[name]
        )


def test_every_public_name_is_there() -> None:
    """All that ops declare, the functions, and whatever else the stub names: each under its own name, and told before it is loaded."""
    classes = {each for plan in registry.plans().values() for each in (plan, plan.descriptor_type, plan.args_type)}
    for each in (*classes, *registry.functions().values()):
        assert getattr(bk, each.__name__) is each and each.__name__ in bk.__all__
    assert [name for name in bk.__all__ if getattr(bk, name).__name__ != name] == []
    unloaded = "import baracuda_kernels as bk; print(sorted(set(bk.__all__) - set(dir(bk))), 'SoftmaxPlan' in vars(bk))"
    assert _python(unloaded) == "[] False"
    with pytest.raises(AttributeError, match="no attribute 'softmaxx'"):
        _ = bk.softmaxx


BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
whole = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {blocked} else whole(name, package)
import numpy
import baracuda_kernels as bk
descriptor = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32)
try:
    plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), descriptor)
    x, y = numpy.ones((4, 8), "f4"), numpy.zeros((4, 8), "f4")
    plan.run(bk.Stream.cpu(), bk.Workspace.none(), bk.SoftmaxArgs(x=x, y=y))
    assert numpy.array_equal(bk.softmax(x), y)
    print(plan.sku.name, float(y[0, 0]))
except bk.Unsupported as error:
    print(sorted({{reason.code.name for reason in error.reasons}}))
"""


def test_without_numba_pytorch_serves() -> None:
    assert _python(BLOCKED.format(blocked={"numba", "llvmlite"})) == "aten.softmax 0.125"


def test_without_torch_numba_serves() -> None:
    assert _python(BLOCKED.format(blocked={"torch"})) == "numba.softmax 0.125"


def test_without_either_there_are_reasons() -> None:
    assert _python(BLOCKED.format(blocked={"numba", "llvmlite", "torch"})) == "['BACKEND_MISSING', 'OTHER_DEVICE']"
