"""The bench: what a row holds, and that a wrong kernel gets no time."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
import torch

import baracuda_kernels as bk
from baracuda_kernels.bench import engine
from baracuda_kernels.bench.engine import PRODUCT, BenchRow, Settings, Task, measure, showcase
from baracuda_kernels.bench.host import ARGS_EACH_CALL, ARGS_ONCE, FUNCTION, OPERATOR, RECORDED, measure_host
from baracuda_kernels.bench.problems import Problem, describe
from baracuda_kernels.cli import bench as command
from baracuda_kernels.cli.names import named
from baracuda_kernels.core import peers, registry
from baracuda_kernels.core.cost.copies import COPIES
from baracuda_kernels.core.cost.timing import Times, interleaved
from baracuda_kernels.core.cost.traffic import bytes_moved
from baracuda_kernels.core.peers import ALLOCATING, COMPILED, GIVEN, JAX, PeerUnavailable, installed, peers_of

QUICK = Settings(rounds=2, without=frozenset({COMPILED, JAX}))
SMALL = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (6, 40), 1, bk.ElementKind.BF16)
SMALL_BACKWARD = bk.SoftmaxBackwardDescriptor(bk.SoftmaxKind.LOG_SOFTMAX, (6, 40), 0, bk.ElementKind.F32)


def wrong_reference(descriptor: Any, **inputs: Any) -> Any:
    return next(iter(inputs.values())) + 1.0


def test_a_problem_is_described_by_its_fields() -> None:
    assert describe(SMALL) == "softmax bf16 [6,40] axis 1"


def test_a_user_s_problem_with_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, out = tmp_path / "deep" / "roof.svg", tmp_path / "run.json"
    asked = ["softmax", "--problem", "shape=6,40 dtype=bf16", "--problem", "shape=3,5", "--no-compile", "--no-jax", "--rounds", "1"]
    assert command.main([*asked, "--picture", str(picture), "--out", str(out)]) == 0
    assert [row["problem"] for row in json.loads(out.read_text())["rows"]] == [
        "softmax bf16 [6,40] axis 1",
        "softmax f32 [3,5] axis 1",
    ]
    drawn = ElementTree.fromstring(picture.read_text())
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert sum("softmax bf16 [6,40] axis 1" in str(title) for title in titles) == 2 and any(
        "GB/s" in str(title) for title in titles
    )
    assert command.main(["gelu", "--problem", "shape=3,5", *asked[5:], "--out", str(out)]) == 0
    assert [(row["op"], row["problem"]) for row in json.loads(out.read_text())["rows"]] == [("unary", "gelu f32 [3,5]")]
    assert command.main(["gelu", "--every-kind"]) == 2 and "unary, and got one of its functions" in capsys.readouterr().err
    for wrong, why in (("shape=a", "extents"), ("no_such=1", "no_such"), ("shape=0x", "shape")):
        assert command.main(["softmax", "--problem", wrong]) == 2
        assert why in capsys.readouterr().err
    assert command.main(["softmax", "rope", "--problem", "shape=3,5"]) == 2


def test_every_kind_of_an_op() -> None:
    """That has the element; of an op without kinds its first problem."""
    kinds = [task.descriptor.kind.value for task in engine.of_every_kind(["unary"], engine.CPU)]  # type: ignore[attr-defined]
    assert kinds.count("sin") == kinds.count("integer_pow") == 2  # in f32 and bf16
    assert "population_count" not in kinds
    assert list(engine.of_every_kind(["rms_norm"], engine.CPU)) == list(engine.showcase(["rms_norm"], 1))


def test_one_field_can_be_varied(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = list(engine.varied(["ssd_chunk_scan", "ssd_chunk_scan_backward"], "seq_len=128,512"))
    assert [(task.op, task.descriptor.seq_len) for task in tasks] == [
        (op, length) for op in ("ssd_chunk_scan", "ssd_chunk_scan_backward") for length in (128, 512)
    ]
    assert command.main(["ssd_chunk_scan", "--vary", "no_such_field=1"]) == 2
    assert "no_such_field" in capsys.readouterr().err


def test_several_fields_unchecked_and_without_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "expected", lambda problem: pytest.fail("the reference was asked for"))
    out = tmp_path / "run.json"
    sizes = ["--vary", "batch_size=1", "--vary", "num_heads=1"]
    asked = ["rope", *sizes, "--unchecked", "--without", "PyTorch", "--no-compile", "--no-jax", "--rounds", "1", "--out", str(out)]
    assert command.main(asked) == 0
    rows = json.loads(out.read_text())["rows"]
    assert rows[0]["descriptor"]["batch_size"] == rows[1]["descriptor"]["num_heads"] == 1 and len(rows) == 2
    for row in rows:
        assert "not compared with the reference" in row["notes"] and not row["errors"] and "PyTorch" not in row["times"]


def test_inputs_may_lie_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.json"
    asked = ["binary", "--problem", "kind=mul shape=6,40", "--no-compile", "--no-jax", "--rounds", "1", "--out", str(out)]
    for other, moved in (("transposed", 3 * 240), ("row", 2 * 240 + 40), ("column", 2 * 240 + 6)):
        assert command.main([*asked, "--layout", f"other={other}"]) == 0
        (row,) = json.loads(out.read_text())["rows"]
        assert row["problem"].endswith(f", other {other}") and row["layouts"] == {"other": other} and row["bytes"] == 4 * moved
        assert row["errors"] and row["share_of_floor"]
    for wrong in ("others=row", "other=rows", "result=row", "other"):
        assert command.main([*asked, "--layout", wrong]) == 2
        assert "There is no" in capsys.readouterr().err


@pytest.mark.parametrize("cause", [KeyboardInterrupt, signal.SIGTERM, RuntimeError])
def test_what_is_measured_is_kept_whatever_happens_next(cause: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = command.measure

    def failing(task: Task, settings: Any) -> Any:
        if task.descriptor.input_shape == (3, 5):  # type: ignore[attr-defined]
            if cause is signal.SIGTERM:
                signal.raise_signal(cause)
            raise cause
        return measured(task, settings)

    monkeypatch.setattr(command, "measure", failing)
    out = tmp_path / "run.json"
    asked = ["softmax", "--problem", "shape=6,40", "--problem", "shape=3,5", "--no-compile", "--no-jax", "--rounds", "1"]
    if cause is not RuntimeError:
        assert command.main([*asked, "--out", str(out)]) == 130
    else:
        with pytest.raises(cause):
            command.main([*asked, "--out", str(out)])
    assert [row["problem"] for row in json.loads(out.read_text())["rows"]] == ["softmax f32 [6,40] axis 1"]


def test_a_package_that_fails_is_a_note() -> None:
    def make() -> Any:
        def call() -> None:
            raise RuntimeError("wrong results here\nsee the issue")

        return call

    on_cuda = type("Tensor", (), {"is_cuda": True})()
    for package, why in (("json", "RuntimeError: wrong results here$"), ("no_such_package", "no_such_package is not installed")):
        ((name, call),) = installed(package, on_cuda, make, "theirs")
        with pytest.raises(PeerUnavailable, match=why):
            call()
        assert name == "theirs"


def test_the_floor_is_the_longer_of_copy_and_product() -> None:
    row = BenchRow("op", "problem", {}, 1, 1, kernel="ours", times={COPIES[0]: Times(2.0, 1.0), "ours": Times(4.0, 4.0)})
    assert row.share_of_floor == 0.5
    row.times[PRODUCT] = Times(1.0, 1.0)
    assert row.share_of_floor == 0.5
    row.times[PRODUCT] = Times(1.0, 1.0).scaled(3.0)
    assert row.share_of_floor == 0.75 and row.others() == []


def test_bytes_count_every_operand_once() -> None:
    assert bytes_moved(bk.SoftmaxPlan, SMALL) == 2 * 6 * 40 * 2
    assert bytes_moved(bk.SoftmaxBackwardPlan, SMALL_BACKWARD) == 3 * 6 * 40 * 4


@pytest.mark.parametrize(
    ("function", "floats"),
    [
        ("gelu", 2 * 48), ("add", 3 * 48), ("mul_backward", 5 * 48), ("add_backward", 3 * 48), ("floor_backward", 48),
        ("sum_backward", 48 + 1), ("amax_backward", 2 * 48 + 2), ("max_with_indices_backward", 48 + 3), ("trace", 6 + 1),
        ("trace_backward", 48 + 1), ("diff", 48 + 42), ("diff_backward", 48 + 42), ("trapezoid_backward", 48 + 6),
    ],
)  # fmt: skip
def test_what_no_result_depends_on_is_not_moved(function: str, floats: int) -> None:
    asked = named(function)
    assert bytes_moved(asked.plan, asked.problem({"shape": (6, 8)})) == 4 * floats


def test_inputs_are_exact_in_their_element_and_outputs_start_as_nan() -> None:
    problem = Problem(bk.SoftmaxPlan, SMALL)
    assert numpy.array_equal(problem.exact_inputs(numpy)["x"], problem.operands["x"].double().numpy())
    assert problem.operands["y"].isnan().all()
    expected = torch.softmax(problem.operands["x"].double(), 1).numpy()
    assert numpy.allclose(problem.expected()["y"], expected, rtol=1e-12)


@pytest.mark.parametrize(("plan", "descriptor"), [(bk.SoftmaxPlan, SMALL), (bk.SoftmaxBackwardPlan, SMALL_BACKWARD)])
def test_a_row_times_ours_the_floor_every_kernel_and_the_peers(plan: type[bk.Plan[Any, Any]], descriptor: Any) -> None:
    row = measure(Task("op", plan, descriptor), QUICK)
    kernels = {kernel.name for kernel in plan.kernels if kernel.device is bk.DeviceKind.CPU}
    assert row.kernel == plan.kernels[0].name
    assert set(row.times) == {*COPIES, *kernels, ALLOCATING, GIVEN}
    assert all(0 < times.minimum <= times.median for times in row.times.values())
    assert row.ours is not None and row.floor is not None
    assert row.floor.median == min(row.times[name].median for name in COPIES)
    assert row.share_of_floor == row.floor.median / row.ours.median
    assert row.times_faster_than(GIVEN) == row.times[GIVEN].median / row.ours.median
    assert row.flops == plan.cases.flops(descriptor)
    assert not row.wrong and row.errors[0].is_right


def test_a_peer_without_such_an_element_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise NotImplementedError("not implemented for 'BFloat16'")

    monkeypatch.setattr(engine, "peers_of", lambda *given: [("PyTorch", refuse)])
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), QUICK)
    assert "PyTorch: not implemented for 'BFloat16'" in row.notes and "PyTorch" not in row.times and row.ours is not None


def test_what_a_race_chooses_is_timed_beside_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "baracuda_kernels.core.race.measure", lambda plans, stream: dict.fromkeys(plans, 1.0) | {"aten.softmax": 0.5}
    )
    monkeypatch.setattr("baracuda_kernels.core.wisdom.measured", bk.Wisdom())
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), dataclasses.replace(QUICK, measured=True))
    assert row.kernel == "numba.softmax" and engine.MEASURED in row.times and not row.wrong
    assert f"{engine.MEASURED}: aten.softmax" in row.notes


def test_a_wrong_kernel_gets_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bk.SoftmaxPlan, "reference", staticmethod(wrong_reference))
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), QUICK)
    assert set(row.wrong) == {"numba.softmax", "aten.softmax"}
    assert row.times == {} and row.ours is None
    assert "allowed is 4.00e-03" in row.wrong["numba.softmax"]


def test_another_kernel_that_is_wrong_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = engine._run_and_compare

    def spoiled(plan: Any, problem: Problem, expected: dict[str, Any]) -> Any:
        if plan.kernel.name.startswith("aten"):
            expected = {name: value + 1.0 for name, value in expected.items()}
        return right(plan, problem, expected)

    monkeypatch.setattr(engine, "_run_and_compare", spoiled)
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), QUICK)
    assert list(row.wrong) == ["aten.softmax"]
    assert "aten.softmax" not in row.times and "numba.softmax" in row.times


def test_a_kernel_that_leaves_something_unwritten_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bk.SoftmaxPlan, "run", lambda self, stream, workspace, args: None)
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), QUICK)
    assert row.errors[0].error == math.inf and row.times == {}


def test_a_kernel_that_breaks_is_named_and_the_bench_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(problem: Any) -> Any:
        raise OSError("no such library")

    monkeypatch.setattr("baracuda_kernels.ops.softmax.vendor.forward", broken)
    monkeypatch.setattr(bk.SoftmaxPlan, "kernels", bk.SoftmaxPlan.kernels[1:])
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), QUICK)
    assert row.times == {}
    assert "no such library" in row.wrong["select"]


def test_a_problem_that_no_kernel_serves_is_noted() -> None:
    sparse = bk.SoftmaxDescriptor(bk.SoftmaxKind.SPARSEMAX, (6, 40), 1, bk.ElementKind.F32)
    row = measure(Task("softmax", bk.SoftmaxPlan, sparse), QUICK)
    assert row.kernel is None and row.times == {}
    assert "no kernel serves this problem" in row.notes[0]


def test_contenders_take_turns() -> None:
    calls: list[str] = []

    def contender(name: str) -> Any:
        def call() -> None:
            calls.append(name)
            time.sleep(0.001)

        return call

    times = interleaved({"a": contender("a"), "b": contender("b")}, rounds=3)
    assert calls[-12:] == ["a", "a", "b", "b"] * 3
    assert all(0.001 <= result.minimum <= result.median for result in times.values())


def test_quick_calls_are_timed_many_at_a_time() -> None:
    calls = []
    interleaved({"a": lambda: calls.append(None)}, rounds=2)
    assert len(calls) > 500


@pytest.mark.parametrize("op", ["softmax", "softmax_backward"])
def test_host_time_is_measured_beside_pytorch(op: str) -> None:
    threads = torch.get_num_threads()
    row = measure_host(op, registry.plans()[op], Settings(rounds=1))
    assert row is not None and "[4,8]" in row.problem
    recorded = {RECORDED} if op == "softmax" else set()
    assert {ARGS_ONCE, ARGS_EACH_CALL, FUNCTION, OPERATOR, ALLOCATING, GIVEN} | recorded == set(row.times)
    assert torch.get_num_threads() == threads


def test_host_time_of_an_op_whose_function_needs_more_than_arrays() -> None:
    row = measure_host("quantile", registry.plans()["quantile"], Settings(rounds=1))
    assert row is not None and {ARGS_ONCE, ARGS_EACH_CALL} <= set(row.times) and FUNCTION not in row.times


def test_the_showcase_can_be_cut_down() -> None:
    everything = [task.descriptor for task in showcase(["softmax"])]
    assert sorted(map(str, everything)) == sorted(map(str, bk.SoftmaxPlan.cases.showcase()))
    first = [task.descriptor for task in showcase(["softmax"], 1)]
    assert [descriptor.element for descriptor in first] == [bk.ElementKind.F32, bk.ElementKind.BF16]
    two = [task.descriptor for task in showcase(["softmax"], 2)]
    assert first[0] == two[0] and len(two) == 4 and len(set(two)) == 4


@pytest.mark.parametrize("kind", [bk.SoftmaxKind.SOFTMAX, bk.SoftmaxKind.LOG_SOFTMAX])
@pytest.mark.parametrize("plan", [bk.SoftmaxPlan, bk.SoftmaxBackwardPlan])
def test_pytorch_as_a_peer_computes_the_same(plan: type[bk.Plan[Any, Any]], kind: bk.SoftmaxKind) -> None:
    problem = Problem(plan, plan.descriptor_type(kind, (6, 40), 1, bk.ElementKind.F32))
    (expected,) = problem.expected().values()
    (output,) = problem.outputs().values()
    calls = dict(peers_of(plan, problem.descriptor, problem.operands))
    assert list(calls) == [ALLOCATING, GIVEN, COMPILED, JAX]
    assert numpy.allclose(calls[ALLOCATING]().numpy(), expected, rtol=1e-4, atol=1e-6)
    assert output.isnan().all()
    calls[GIVEN]()
    assert numpy.allclose(output.numpy(), expected, rtol=1e-4, atol=1e-6)


FEW = {"shape": (6, 40), "element": bk.ElementKind.F32}


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("cast", None), ("where", None), ("unary_pair", "frexp"), ("gated_activation", "geglu"), ("gated_activation", "glu"), ("gated_activation_backward", "swiglu"),
        ("unary_backward", "tanh"), ("binary_backward", "atan2"), ("ternary_backward", "lerp"), ("reduce_pair", "max_with_indices"),
        ("reduce_pair", "var_mean"), ("reduce_joint", "cosine_similarity"), ("reduce_backward", "logsumexp"), ("scan_backward", "cumprod"),
        ("scan_backward", "cumsum"), ("scan_backward", "cummax"), ("scan_backward", "cummin"), ("scan_backward", "logcumsumexp"),
    ],
)  # fmt: skip
def test_pytorch_as_a_peer_of_ops_from_tables_computes_the_same(op: str, kind: str | None) -> None:
    plan = registry.plans()[op]
    first = next(iter(plan.cases.showcase()))
    given = {} if kind is None else {"kind": type(first.kind)(kind)}
    fields = {"axes_mask": 2, "axis": 1, "result_element": bk.ElementKind.BF16}
    given |= {name: value for name, value in fields.items() if name in first.__dataclass_fields__}
    problem = Problem(plan, plan.cases.from_options(FEW | given))
    expected = list(problem.expected().values())
    call = dict(peers_of(plan, problem.descriptor, problem.operands))[ALLOCATING]
    found = call()
    found = list(found) if isinstance(found, tuple) else [found]
    for each, wanted in zip(found, expected, strict=True):
        assert numpy.allclose(
            each.double().numpy(), numpy.asarray(wanted, dtype=float), rtol=1e-2 if op == "cast" else 1e-4, atol=1e-5
        )


def test_peers_that_cannot_be_set_up_leave_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "jax" else real(name, *rest))
    row = measure(Task("softmax", bk.SoftmaxPlan, SMALL), Settings(rounds=1))
    assert row.notes == ["torch.compile: no C++ compiler found", "JAX: jax is not installed"]
    with pytest.raises(PeerUnavailable):
        peers.compiled(torch.exp, torch.ones(1), torch.ones(1))()


def test_what_torch_compile_cannot_compile_leaves_a_note_and_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(function: Any, **options: Any) -> Any:
        def call(*arguments: Any) -> Any:
            raise torch._dynamo.exc.BackendCompilerFailed(function, ValueError("no such instruction\nand a long tale"), None)

        return call

    call = peers.compiled_when_called(torch.exp)
    with monkeypatch.context() as patched:
        patched.setattr(torch, "compile", broken)
        with pytest.raises(PeerUnavailable, match=r"no such instruction$"):
            call(torch.zeros(1))
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    assert call(torch.zeros(1)).item() == call(torch.zeros(1)).item() == 1.0


def test_a_run_writes_a_record_without_naming_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bk.SoftmaxPlan.cases, "showcase", lambda: iter([SMALL]))
    path = tmp_path / "new" / "result.json"
    status = command.main(["softmax", "--quick", "--no-compile", "--no-jax", "--rounds", "1", "--out", str(path)])
    record = json.loads(path.read_text())
    assert status == 0
    assert record["schema"] == 1 and record["device"] == "cpu" and record["cores"] >= 1
    assert {"python", "torch", "numba", "numpy"} <= set(record["versions"])
    assert record["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", record["commit"])
    (row,) = record["rows"]
    assert row["op"] == "softmax" and row["bytes"] == 960 and row["descriptor"]["input_shape"] == [6, 40]
    assert row["share_of_floor"] > 0 and row["times_faster_than"]["PyTorch"] > 0
    assert record["host"][0]["op"] == "softmax"
    assert str(Path.home()) not in path.read_text() and str(tmp_path) not in path.read_text()
    out = capsys.readouterr().out
    assert "softmax by numba.softmax" in out and "softmax bf16 [6,40] axis 1" in out


def test_a_run_with_a_wrong_kernel_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bk.SoftmaxPlan.cases, "showcase", lambda: iter([SMALL]))
    monkeypatch.setattr(bk.SoftmaxPlan, "reference", staticmethod(lambda descriptor, x: numpy.full_like(x, numpy.nan)))
    path = tmp_path / "result.json"
    assert command.main(["softmax", "--no-compile", "--no-jax", "--rounds", "1", "--out", str(path)]) == 1
    assert "WRONG softmax, softmax bf16 [6,40] axis 1" in capsys.readouterr().out
    (row,) = json.loads(path.read_text())["rows"]
    assert row["times"] == {} and row["errors"][0]["error"] == "inf" and row["share_of_floor"] is None


def test_an_unknown_op_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["sofmax"]) == 2
    assert "Did you mean softmax, " in capsys.readouterr().err


def test_a_gradient_that_is_not_written_is_no_peer() -> None:
    from baracuda_kernels.core.peers import PeerUnavailable, differentiated

    up, a, b = torch.ones(3), torch.ones(3), torch.ones(3)
    assert len(differentiated(torch.mul, up, a, b)()) == 2  # type: ignore[arg-type]
    for function, *operands in ((torch.add, a, b), (torch.sub, a, b), (torch.sgn, a)):
        with pytest.raises(PeerUnavailable, match="the given one itself"):
            differentiated(function, up, *operands)()
