"""The command line: what it prints, and the exit status of every kind of answer."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels import cli
from baracuda_kernels.bench import engine
from baracuda_kernels.cli import bench as command
from baracuda_kernels.cli import demo
from baracuda_kernels.cli.fields import reader
from baracuda_kernels.cli.names import named
from baracuda_kernels.core import race, registry, wisdom
from baracuda_kernels.core.cost import prediction
from baracuda_kernels.core.cost.copies import COPIES
from baracuda_kernels.core.cost.timing import Times
from baracuda_kernels.core.cost.traffic import bytes_moved
from baracuda_kernels.core.device import DeviceKind
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.machine import machine_of
from baracuda_kernels.verify import accuracy, precompile

Capture = pytest.CaptureFixture[str]


def ask(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and complaints."""
    try:
        status = cli.main(list(arguments))
    except SystemExit as left:  # how argparse leaves
        status = int(left.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A registry of one family with tiny showcases."""
    plans = {"softmax": bk.SoftmaxPlan, "softmax_backward": bk.SoftmaxBackwardPlan}
    monkeypatch.setattr(registry, "plans", lambda: plans)
    for plan in plans.values():
        small = [plan.cases.from_options({"input_shape": (4, 8)}),
                 plan.cases.from_options({"input_shape": (3, 5), "softmax_axis": 0, "element": bk.ElementKind.BF16})]  # fmt: skip
        monkeypatch.setattr(plan.cases, "showcase", lambda small=small: iter(small))
    return plans


def test_ops_is_a_line_an_op_under_its_category(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    status, out, _ = ask(capsys, "ops")
    assert status == 0
    category, found = "", {}
    for line in out.splitlines():
        if line and not line.startswith(" "):
            category = line
        elif line:
            found[line.split()[0]] = category
    assert found == {op: plan.category.value for op, plan in registry.plans().items()}
    assert "…" not in out and max(map(len, out.splitlines())) > 60  # a pipe has no width


@pytest.mark.parametrize(
    ("named", "op"), [("binary_backward", "binary_backward"), ("add_backward", "binary_backward"), ("sdpa", "sdpa")]
)
def test_ops_of_one_shows_its_kernels_and_functions(named: str, op: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    status, out, _ = ask(capsys, "ops", named)
    plan = registry.plans()[op]
    assert status == 0 and out.startswith(f"{op}: ")
    assert all(f" {kernel.name} " in out for kernel in plan.kernels)  # whole names
    functions = [function.name for function in registry.functions().values() if function.plan is plan]
    assert set(functions) <= set(re.findall(r"\w+", out))


def test_ops_as_markdown_says_nothing_of_this_machine(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _, here, _ = ask(capsys, "ops", "--markdown")
    monkeypatch.setattr("baracuda_kernels.core.kernel.missing_packages", lambda backend: ("something",))
    _, elsewhere, _ = ask(capsys, "ops", "--markdown")
    assert here == elsewhere
    assert "| cpu | `numba.softmax` | strided | 1 | 1 | 1 | 1 |" in here and "| cpu | `aten.softmax` | contiguous | 2 |" in here


def test_ops_says_why_a_kernel_is_not_available(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.core.kernel.missing_packages", lambda backend: (backend.value,))
    _, out, _ = ask(capsys, "ops", "softmax")
    assert "no package" in " ".join(out.split())


def test_explain_shows_the_chosen_kernel_and_the_reasons_against_every_other(capsys: Capture) -> None:
    status, out, _ = ask(capsys, "explain", "softmax_backward", "--shape", "64,1024", "--dtype", "bf16")
    problem = bk.SoftmaxBackwardDescriptor(bk.SoftmaxKind.SOFTMAX, (64, 1024), 1, bk.ElementKind.BF16)
    plan = bk.SoftmaxBackwardPlan.select(bk.Stream.cpu(), problem)
    assert status == 0
    assert str(plan.sku) in out and "0 bytes" in out and "sums in f32" in out and "batch-invariant: yes" in out
    for name, reasons in plan.rejected.items():
        assert name in out
        assert all(reason.code.says in out for reason in reasons)


def test_explain_takes_every_field_and_every_preference(capsys: Capture) -> None:
    fields = ("--kind", "LOG_softmax", "--input_shape", "[3,4,5]", "--softmax-axis", "0", "--element", "float64")
    wishes = ("--backend", "ATEN", "--max-workspace", "0", "--deterministic", "--measure", "--device", "cpu")
    status, out, _ = ask(capsys, "explain", "softmax", *fields, *wishes)
    assert status == 0
    assert "softmax/log_softmax/f64" in out and "(3, 4, 5)" in out and "softmax_axis = 0" in out
    assert "is not the preferred backend: got numba, wanted aten" in out


def test_explain_without_a_kernel_lists_every_candidate(capsys: Capture) -> None:
    status, out, _ = ask(capsys, "explain", "softmax", "--shape", "2,2,2,2,2,2,2,2,2")
    assert status == 1
    assert all(line == line.rstrip() for line in out.splitlines()) and "\x1b" not in out
    for kernel in bk.SoftmaxPlan.kernels:
        assert kernel.name in out
    assert out.count("got rank 9, wanted a rank of at most 8") == len(bk.SoftmaxPlan.kernels)


def test_explain_on_a_device_that_is_not_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.core.device.cuda_device_count", lambda: 0)
    status, out, _ = ask(capsys, "explain", "softmax", "--device", "cuda")
    assert status == 1
    assert out.count("cuda:0 is not there") == len(bk.SoftmaxPlan.kernels)


def test_an_unknown_op_is_answered_with_the_nearest(capsys: Capture) -> None:
    status, out, err = ask(capsys, "explain", "sofmax_bakward")
    assert (status, out) == (2, "")
    assert "Did you mean softmax_backward, " in err and "rms_norm" not in err  # not all there are
    assert "Did you mean gelu, " in ask(capsys, "explain", "gellu")[2]
    for asking in ("bench", "verify", "tune", "ops"):
        assert ask(capsys, asking, "sofmax")[0] == 2


def test_a_function_is_its_plan_with_the_kind_filled_in(capsys: Capture) -> None:
    for name, kind in (("gelu", "GELU"), ("add", "ADD"), ("norm", "VECTOR_NORM"), ("polar_backward", "POLAR")):
        status, out, _ = ask(capsys, "explain", name, "--no-times", "--shape", "6,8")
        assert status == 0 and f"kind = {kind}\n" in out and "(6, 8)" in out
    assert "kind = BITCAST" in ask(capsys, "explain", "bitcast", "--no-times", "--dtype", "f32")[1]
    status, out, _ = ask(capsys, "explain", "gelu", "--help")
    assert status == 0 and out.startswith("usage: baracuda-kernels explain gelu")


def test_a_function_stands_for_its_plan_where_kernels_are_checked(capsys: Capture) -> None:
    status, out, _ = ask(capsys, "verify", "gelu", "neg", "--quick", "--element", "f32", "--check", "accuracy", "--case", "0")
    assert status == 0 and "\n unary\n" in out and "1 of 1 promises kept by 1 kernels" in out


def test_every_function_has_a_problem_of_its_plan() -> None:
    for name, function in registry.functions().items():
        asked = named(name)
        assert asked.plan is function.plan and isinstance(asked.problem({}), function.plan.descriptor_type)
    assert {problem.kind.value for name in ("gelu", "neg") for problem in named(name).showcase(DeviceKind.CPU)} == {"gelu", "neg"}
    x = numpy.ones((2, 3), "float32")
    assert named("gelu").fields["kind"] is bk.gelu.select(x).descriptor.kind
    assert named("log_softmax").fields["kind"] is bk.log_softmax.select(x).descriptor.kind


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--shape", "4,8", "--softmax-axis", "2"), "softmax_axis is not an axis: got 2"),
        (("--shape=-4,8",), "has a negative extent"),
        (("--shape", ""), "wrong rank"),
        (("--shape", "4,x"), "got '4,x', wanted extents"),
        (("--dtype", "f12"), "got 'f12', wanted f32"),
        (("--kind", "hardmax"), "wanted softmax, log_softmax"),
        (("--softmax-axis", "first"), "wanted a whole number"),
        (("--max-workspace", "-1"), "max_workspace_bytes is out of range"),
        (("--colour", "red"), "unrecognized arguments"),
    ],
)
def test_a_wrong_question_is_refused_in_a_sentence(options: tuple[str, ...], says: str, capsys: Capture) -> None:
    status, out, err = ask(capsys, "explain", "softmax", *options)
    assert (status, out) == (2, "")
    assert says in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "-3", -3), (float, "1e-5", 1e-5), (bool, "True", True), (bool, "no", False), (Shape, "64,1024", (64, 1024)),
        (bk.ElementKind, "BFloat16", bk.ElementKind.BF16), (bk.SoftmaxKind, "Softmax", bk.SoftmaxKind.SOFTMAX),
        (int | None, "none", None), (float | None, "2", 2.0),
    ],
)  # fmt: skip
def test_fields_are_read_by_their_type(kind: object, text: str, value: object) -> None:
    assert reader(kind)(text) == value


@pytest.mark.parametrize("option", [(), ("--all",), ("--problems", "2")])
def test_the_demo_shows_every_op_with_its_kernel(option: tuple[str, ...], tiny: dict[str, Any], capsys: Capture) -> None:
    status, out, _ = ask(capsys, "demo", *option)
    assert status == 0
    for op, plan in tiny.items():
        assert f"\n{op}: right, " in out and plan.kernels[0].name in out
    assert "f32 [4,8]" in out and ("bf16 [3,5]" in out) is bool(option)
    assert ("4 of 4 results" if option else "2 of 2 results") in out
    told = " ".join(out.split())
    assert ("Left out: 2 of the bench's 4 problems" in told and "`baracuda-kernels demo --all` shows" in told) is not bool(option)
    assert max(map(len, out.splitlines())) <= 100


def test_the_demo_takes_a_smaller_problem_of_each_op_one_of_each_family_first() -> None:
    tasks = list(demo._telling(registry.plans()))
    assert sorted(task.op for task in tasks) == list(registry.plans())
    families = [registry.family(task.plan) for task in tasks]
    assert len(set(families[: len(set(families))])) == len(set(families))
    for task in tasks:
        first = next(task.plan.cases.showcase())
        smaller, whole = (bytes_moved(task.plan, each) for each in (task.descriptor, first))
        assert type(task.descriptor) is type(first) and smaller <= min(whole, 128 << 20)


def test_what_is_compiled_by_others_meanwhile_comes_once_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32)
    assert list(precompile.compiled_meanwhile([(bk.SoftmaxPlan, problem)] * 3, bk.Device.cpu(), 1)) == [0, 1, 2]

    def broken(*_: Any) -> Any:
        yield 1, None
        raise BrokenProcessPool

    monkeypatch.setattr(precompile, "answers_meanwhile", broken)
    assert list(precompile.compiled_meanwhile([(bk.SoftmaxPlan, problem)] * 3, bk.Device.cpu(), 2)) == [1, 0, 2]


@pytest.mark.usefixtures("tiny")
def test_the_demo_fails_on_a_wrong_result(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    right = engine.Problem.expected
    monkeypatch.setattr(engine.Problem, "expected", lambda self: {name: 2 * y for name, y in right(self).items()})
    status, out, _ = ask(capsys, "demo", "--all")
    assert status == 1
    assert "WRONG" in out and "0 of 4 results" in out


def test_it_runs_as_a_module_and_names_its_version() -> None:
    done = subprocess.run([sys.executable, "-m", "baracuda_kernels", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"baracuda-kernels {bk.__version__}\n"


def test_explain_tells_what_it_will_cost_and_says_it_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["explain", "softmax", "--shape", "512,1024"]
    assert cli.main(question) == 0
    text = capsys.readouterr().out
    assert "4.19 MB here" in text and "% of the floor" in text
    assert cli.main([*question, "--no-times"]) == 0
    assert "floor" not in capsys.readouterr().out
    assert cli.main([*question, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kernel"] == "numba.softmax" and answer["problem"]["input_shape"] == [512, 1024]
    assert answer["moved_bytes"] == 2 * 512 * 1024 * 4 and answer["guarantee"]["deterministic"] is True
    assert answer["floor_seconds"] > 0 and answer["predicted_seconds"] == pytest.approx(
        answer["floor_seconds"] / answer["predicted_share"]
    )
    assert "lower priority" in answer["rejected"]["aten.softmax"][0]
    assert cli.main([*question, "--json", "--backend", "triton"]) == 1
    assert json.loads(capsys.readouterr().out)["kernel"] is None


def test_explain_with_measured_times(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wisdom, "loaded", wisdom.Wisdom())
    plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (6, 40), 1, bk.ElementKind.F32))
    assert plan.explain(with_times=False).costs() == {}
    assert "numba.softmax" in str(plan.explain())
    known = wisdom.Wisdom()
    known.learn("softmax", plan.descriptor, machine_of(plan.device), {"numba.softmax": 5e-6, "aten.softmax": 3e-6})
    known.write(tmp_path / "w.json")
    assert cli.main(["explain", "softmax", "--shape", "6,40", "--wisdom", str(tmp_path / "w.json")]) == 0
    text = capsys.readouterr().out
    assert "aten.softmax" in text and "3 µs" in text and "was slower when measured" in text
    (tmp_path / "w.json").write_text("[]")
    assert cli.main(["explain", "softmax", "--wisdom", str(tmp_path / "w.json")]) == 2


def test_floors_are_copies_of_the_problem_s_size_that_no_prediction_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan_of(count: int) -> Any:
        problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (count, 40), 1, bk.ElementKind.F32)
        return bk.SoftmaxPlan.select(bk.Stream.cpu(), problem)

    def quicker_in_caches(contenders: Any, *_: Any) -> dict[str, Times]:
        (size,) = sizes[-1:]
        return {name: Times(1.0, size * (1e-9 if size < 1000 else 1e-8) * (2 - place / 2)) for place, name in enumerate(contenders)}

    sizes: list[int] = []
    monkeypatch.setattr(prediction, "copies", lambda size, device: sizes.append(size) or dict.fromkeys(COPIES))
    monkeypatch.setattr(prediction, "interleaved", quicker_in_caches)
    monkeypatch.setattr(prediction, "_shares", lambda: {"cpu": {"numba.softmax": [{"problem": {}, "share": 1.53}]}})
    prediction._copy_time.cache_clear()
    few, many = plan_of(3), plan_of(30)
    assert few.explain().floor_seconds == pytest.approx(960e-9) and many.explain().floor_seconds == pytest.approx(9600e-8)
    assert sizes == [960, 9600]
    assert many.explain().predicted_seconds == many.explain().floor_seconds and "100% of the floor" in str(many.explain())
    many.seconds = 19200e-8
    assert many.explain().costs()["measured"].endswith(", 50% of the floor")
    many.seconds = 5000e-8
    assert many.explain().costs()["measured"].endswith(", less than a copy of as many bytes takes")
    prediction._copy_time.cache_clear()


def test_numbers_are_whole_on_narrow_terminals(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    asked = ("--quick", "--kernel", "numba.softmax", "--element", "f32", "--check", "accuracy", "--case", "0")
    status, out, _ = ask(capsys, "verify", "softmax", *asked)
    assert status == 0 and "…" not in out and re.search(r" \d\.\de[+-]\d\d +\d+% ", out)


@pytest.mark.parametrize(
    ("question", "status"),
    [
        (("ops", "--markdown"), 0),
        (("explain", "softmax", "--no-times"), 0),
        (("explain", "softmax", "--no-times", "--json"), 0),
        (("explain", "softmax", "--shape", "2,2,2,2,2,2,2,2,2"), 1),
    ],
)
def test_the_status_is_the_same_when_nobody_reads(question: tuple[str, ...], status: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as unread, contextlib.redirect_stdout(unread):
        assert cli.main(list(question)) == status


def test_an_interruption_is_no_traceback(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "plan_homes", lambda: signal.raise_signal(signal.SIGINT))
    assert ask(capsys, "explain", "softmax") == (130, "", "Interrupted.\n")
    assert command.main(["softmax"]) == 130


def test_interrupted_processes_say_nothing() -> None:
    program = """
import sys, time
from baracuda_kernels.cli.stopping import exit_status
from baracuda_kernels.verify.processes import answers

def ask():
    for _ in answers(time.sleep, [0, 60, 0], 3):
        print("answered", flush=True)

if __name__ == "__main__":
    sys.exit(exit_status(ask))
"""
    options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", program], **options) as asking:
        assert asking.stdout.readline() == "answered\n"  # the others are still starting, at work, or have nothing to do
        os.killpg(asking.pid, signal.SIGINT)
        _, said = asking.communicate(timeout=30)
    assert (asking.returncode, said) == (130, "Interrupted.\n")


def test_tune_wants_to_know_what(capsys: Capture, tmp_path: Path) -> None:
    for question in ((), ("--all", "softmax"), ("--record", "run.json", "softmax")):
        status, _, err = ask(capsys, "tune", "--out", str(tmp_path / "w.json"), *question)
        assert status == 2 and "wanted one of these: an OP, --record FILE, or --all" in err


@pytest.mark.usefixtures("tiny")
def test_tune_all_leaves_out_what_has_one_candidate(
    tiny: dict[str, Any], capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.001)
    monkeypatch.setattr(wisdom, "measured", wisdom.Wisdom())
    alone = bk.UnaryPlan.cases.from_options({"shape": (3, 5)})
    monkeypatch.setattr(bk.UnaryPlan.cases, "showcase", lambda: iter([alone]))
    tiny["unary"] = bk.UnaryPlan
    out = tmp_path / "w.json"
    status, said, complaints = ask(capsys, "tune", "--all", "--jobs", "1", "--out", str(out))
    assert status == 0 and said.count("softmax f32 [4,8]") == 2 and "unary" not in said
    assert "1 problem has one candidate only, nothing to race:\n  unary, exp f32 [3,5]: llvm.unary\n" in complaints
    assert len(wisdom.Wisdom.read(out)) == 4
    out.unlink()
    assert ask(capsys, "tune", "--out", str(out), "gelu", "--shape", "3,5")[:2] == (0, "") and not out.exists()


def test_accuracy(capsys: Capture, tmp_path: Path) -> None:
    status, output, _ = ask(capsys, "accuracy", "exp", "--element", "f32", "--count", "1000", "--json", str(tmp_path / "run.json"))
    assert status == 0 and "exp" in output and "1 of 1 within" in output
    (found,) = json.loads((tmp_path / "run.json").read_text())["ops"]
    assert found["op"] == "exp" and found["count"] == 1000 and 0 < found["ulp"] <= 4


def test_accuracy_that_is_interrupted(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measure = accuracy.measure

    def once(question: Any) -> Any:
        if question.op != "exp":
            signal.raise_signal(signal.SIGTERM)
        return measure(question)

    monkeypatch.setattr(accuracy, "measure", once)
    run = tmp_path / "run.json"
    status, _, complaint = ask(capsys, "accuracy", "exp", "log", "--element", "bf16", "--json", str(run))
    assert (status, complaint) == (130, "Stopped; measured were 1 of 2.\n")
    assert [each["op"] for each in json.loads(run.read_text())["ops"]] == ["exp"]


def test_accuracy_that_is_not_kept_and_questions_that_are_wrong(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, complaint = ask(capsys, "accuracy", "expp")
    assert status == 2 and complaint.startswith("There is no op 'expp' here. Did you mean exp, ")
    status, _, complaint = ask(capsys, "accuracy", "exp", "--count", "0")
    assert status == 2 and "--count: got '0', wanted 1 or more" in complaint
    monkeypatch.setitem(accuracy.ALLOWED, bk.ElementKind.F32, 0.0)
    assert ask(capsys, "accuracy", "exp", "--element", "f32", "--count", "1000")[0] == 1
