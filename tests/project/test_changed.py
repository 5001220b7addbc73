"""The map from a change to its tests: nothing that it can touch is left out, and much of the rest is."""

from __future__ import annotations

import pytest

from changed import OPS, SOURCES, Touched, files_since, imports, modules, ops_of
from conftest import PLANS

BODIES = {  # what a change of a body touches: ops, and files that name some of its functions; and files that do not
    "ops/softmax/rows.py": (
        ("softmax", "softmax_backward"),
        ("test_run", "test_functional", "test_jax"),
        ("test_order_statistics", "test_ssd"),
    ),
    "ops/softmax/triton.py": (("softmax", "softmax_backward"), ("test_gpu", "test_run"), ("test_order_statistics", "test_rope")),
    "ops/attention/ssd/rate_gradient.py": (
        ("ssd_chunk_scan", "ssd_chunk_scan_backward"),
        ("test_ssd",),
        ("test_order_statistics", "test_scan"),
    ),
    "ops/order_statistics/bodies.py": (("order", "quantile"), ("test_order_statistics",), ("test_rope", "test_ssd")),
}
OF_EACH_OP = ("test_kernels", "test_guarantees", "test_property", "test_errors")


@pytest.mark.parametrize("body", BODIES)
def test_a_body_touches_its_ops_and_who_calls_them(body: str) -> None:
    ops, callers, others = BODIES[body]
    touched = Touched([f"src/baracuda_kernels/{body}"])
    assert not touched.everything and not touched.has_op("rms_norm") and not touched.has_op("binary")
    for test in OF_EACH_OP:
        assert all(touched.selects(test, {op}) for op in ops) and not touched.selects(test, {"rms_norm"})
    assert all(touched.selects(test, set()) for test in callers)
    assert not any(touched._reached(test) for test in others)


@pytest.mark.parametrize(
    "file",
    [
        "src/baracuda_kernels/core/plan.py",
        "src/baracuda_kernels/targets/cpu/runtime/native.py",
        "tests/conftest.py",
        "pyproject.toml",
    ],
)
def test_what_all_stand_on_touches_all(file: str) -> None:
    touched = Touched([file])
    assert all(touched.selects(test, {op}) for op in PLANS for test in OF_EACH_OP)
    assert touched.selects("test_order_statistics", set()) and touched.selects("test_sdpa", set())


def test_a_test_a_page_and_nothing() -> None:
    touched = Touched(["tests/ops/order_statistics/test_order_statistics.py", "docs/plans.md"])
    assert touched.selects("test_order_statistics", set()) and touched.selects("test_docs", set())
    assert not touched.selects("test_scan", set()) and not touched.selects("test_kernels", {"order"})
    assert not any(Touched([]).selects(name, set()) for name in ("test_order_statistics", "test_docs", "test_kernels"))


def test_every_source_touches_some_test() -> None:
    """Those of an op its own, all others some file."""
    tests = [name for name in modules() if name.startswith("test_")]
    for name, path in modules().items():
        if not path.is_relative_to(SOURCES):
            continue
        touched = Touched([str(path.relative_to(SOURCES.parent))])
        if path.is_relative_to(OPS) and len(path.relative_to(OPS).parts) > 1 and path.stem != "__init__":
            assert any(map(touched.has_op, PLANS)), name
        assert any(touched.selects(test, set()) for test in tests), name


def test_entries_beside_an_op_and_names_in_scripts_are_imports() -> None:
    assert {"baracuda_kernels.ops.softmax.numba", "baracuda_kernels.ops.softmax.vendor"} <= imports(
        "baracuda_kernels.ops.softmax.softmax"
    )
    assert {"baracuda_kernels.verify.aot", "conftest"} <= imports("test_gpu")


def test_parameters_say_of_which_op_a_test_is() -> None:
    assert ops_of({"op": "softmax", "way": "missing"}) == {"softmax"} == ops_of({"name": "softmax.x"})
    assert ops_of({"plan": PLANS["rope"]}) == {"rope"} and ops_of({"shape": (3, 4)}) == set()


def test_what_differs_is_what_git_says() -> None:
    assert all(isinstance(file, str) and file for file in files_since("HEAD"))
