"""The command line: what it prints, and the exit status of every kind of answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels import cli
from baracuda_kernels.bench import engine
from baracuda_kernels.check import accuracy
from baracuda_kernels.cli.fields import reader
from baracuda_kernels.core import registry, wisdom
from baracuda_kernels.core.layout import Shape
from baracuda_kernels.core.machine import machine_of

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


def test_ops_lists_every_kernel_of_every_op(capsys: Capture) -> None:
    status, out, _ = ask(capsys, "ops")
    assert status == 0
    for op, plan in registry.plans().items():
        assert op in out
        assert all(kernel.name in out for kernel in plan.kernels)
    assert max(map(len, out.splitlines())) <= 100


def test_ops_as_markdown_says_nothing_of_this_machine(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _, here, _ = ask(capsys, "ops", "--markdown")
    monkeypatch.setattr("baracuda_kernels.core.kernel.missing_packages", lambda backend: ("something",))
    _, elsewhere, _ = ask(capsys, "ops", "--markdown")
    assert here == elsewhere
    assert "| cpu | `numba.softmax` | strided | 1 | 1 | 1 | 1 |" in here and "| cpu | `aten.softmax` | contiguous | 2 |" in here


def test_ops_says_why_a_kernel_is_not_available(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.core.kernel.missing_packages", lambda backend: (backend.value,))
    _, out, _ = ask(capsys, "ops")
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
    assert "Did you mean softmax_backward?" in err
    assert ask(capsys, "bench", "sofmax")[0] == 2


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


def test_the_demo_shows_every_op_with_its_kernel(tiny: dict[str, Any], capsys: Capture) -> None:
    status, out, _ = ask(capsys, "demo")
    assert status == 0
    for op, plan in tiny.items():
        assert op in out and plan.kernels[0].name in out
    assert "f32 [4,8]" in out and "bf16 [3,5]" in out and "4 of 4 results" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.usefixtures("tiny")
def test_the_demo_fails_on_a_wrong_result(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    right = engine.Problem.expected
    monkeypatch.setattr(engine.Problem, "expected", lambda self: {name: 2 * y for name, y in right(self).items()})
    status, out, _ = ask(capsys, "demo")
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
    assert "comes later" in answer["rejected"]["aten.softmax"][0]
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
    assert (status, complaint.strip()) == (130, "Stopped; measured were 1 of 2.")
    assert [each["op"] for each in json.loads(run.read_text())["ops"]] == ["exp"]


def test_accuracy_that_is_not_kept_and_questions_that_are_wrong(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, _, complaint = ask(capsys, "accuracy", "expp")
    assert status == 2 and complaint.startswith("There is no op 'expp' here. Did you mean exp?")
    status, _, complaint = ask(capsys, "accuracy", "exp", "--count", "0")
    assert status == 2 and "--count: got '0', wanted 1 or more" in complaint
    monkeypatch.setitem(accuracy.ALLOWED, bk.ElementKind.F32, 0.0)
    assert ask(capsys, "accuracy", "exp", "--element", "f32", "--count", "1000")[0] == 1
