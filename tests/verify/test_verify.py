"""`verify` itself: a kernel that keeps its promises passes, and each one that breaks a promise is found, with the command that shows it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels import cli
from baracuda_kernels.core import registry
from baracuda_kernels.verify.case import Depth, problems
from baracuda_kernels.verify.promises import BINS, PROMISES
from baracuda_kernels.verify.suite import Question, WrongQuestion, answer, answer_all, lines, tasks

from conftest import PLANS
from promises_broken import KERNELS, CarelessPlan, DoublePlan

Capture = pytest.CaptureFixture[str]
BROKEN = {  # the check that finds it, and what it says
    "off": ("accuracy", "y has a relative error of 0.0005"),
    "unsteady": ("repeats", "run 2 on 2 threads"),
    "threaded": ("repeats", "on 3 threads"),
    "parochial": ("processes", "another process has other bits"),
    "sociable": ("batch", "y of part 0 has other bits alone"),
    "astray": ("memory", "wrote outside y"),
    "meddling": ("memory", "wrote its input x"),
    "overrunning": ("memory", "wrote outside its workspace of 64 bytes"),
    "lazy": ("memory", "elements of y were not written"),
    "greedy": ("allocation", "bytes of Python memory"),
    "hoarding": ("allocation", "bytes of host memory"),
    "hiding": ("extremes", "NaN in x: 0 NaN too many and 3 missing in y"),
    "failing": ("accuracy", "the backend broke"),
}


def results_of(kernel: str | None, plan: Any = DoublePlan, **asked: Any) -> list[Any]:
    return [answer(task) for task in tasks(Question((plan,), bk.Device.cpu(), kernel=kernel, **asked))]


def ask(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and complaints."""
    try:
        status = cli.main(["verify", *arguments])
    except SystemExit as left:  # how argparse leaves
        status = int(left.code or 0)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of one op."""
    monkeypatch.setattr(registry, "plans", lambda: {"double": DoublePlan})
    monkeypatch.setattr(registry, "plan_homes", lambda: {"double": "double"})


@pytest.mark.parametrize("depth", Depth)
def test_a_kernel_that_keeps_its_promises(depth: Depth) -> None:
    results = results_of("toy.kept", depth=depth)
    assert [result.says for result in results if not result.held] == []
    assert {result.check for result in results} == set(PROMISES) - (set() if depth is Depth.FULL else {"extremes"})
    assert all(result.findings for result in results)
    assert any(errors.rms_ulp == 0.0 and sum(errors.histogram) for result in results for errors in result.errors)


def test_every_broken_kernel_is_expected_to_be_found() -> None:
    assert set(BROKEN) == set(KERNELS) - {"kept"}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found_and_its_command_finds_it_again(name: str) -> None:
    check, says = BROKEN[name]
    failed = [result for result in results_of(f"toy.{name}", check=check) if not result.held]
    assert failed and any(says in each for each in failed[0].says), failed
    number = failed[0].case
    assert failed[0].command == (
        f"baracuda-kernels verify double --kernel toy.{name} --element f32 --check {check} --case {number}"
    )
    (again,) = results_of(f"toy.{name}", check=check, case=number, element=bk.ElementKind.F32)
    assert not again.held


def test_what_a_plan_takes_though_it_should_not() -> None:
    failed = [result for result in results_of("toy.kept", CarelessPlan) if not result.held]
    assert {result.check for result in failed} == {"rejections"}
    assert any("y overlaps another operand, but was taken" in says for says in failed[0].says)


def test_a_promise_that_is_not_made_is_not_checked() -> None:
    asked = Question((PLANS["softmax"],), bk.Device.cpu(), kernel="aten.softmax", element=bk.ElementKind.F32)
    assert {task.promise.name for task in tasks(asked)} == {"accuracy", "memory", "repeats", "allocation", "rejections"}
    with pytest.raises(WrongQuestion, match="makes that promise there: element f32, check batch"):
        tasks(Question((PLANS["softmax"],), bk.Device.cpu(), Depth.USUAL, "aten.softmax", bk.ElementKind.F32, "batch"))


def test_numbers_of_problems_do_not_depend_on_how_much_is_tried() -> None:
    every = problems(PLANS["softmax"], bk.ElementKind.BF16)
    for depth in Depth:
        for case, _ in tasks(Question((PLANS["softmax"],), bk.Device.cpu(), depth, "numba.softmax", bk.ElementKind.BF16)):
            assert every[case.number][1] == case.descriptor


def test_errors_are_summed_up_by_kernel_and_element() -> None:
    (line,) = lines(results_of("toy.off", check="accuracy"))
    assert (line.kernel, line.element, line.verdict("accuracy"), line.verdict("batch")) == ("toy.off", "f32", False, None)
    assert line.closest is not None and line.closest.relative == pytest.approx(5e-4, rel=1e-3)
    assert 0 < line.rms_ulp <= line.worst_ulp and line.histogram[-1] > 0 and len(line.histogram) == len(BINS) + 1


# --- the command ---------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("double")
def test_the_command_says_that_all_is_well(capsys: Capture, tmp_path: Path) -> None:
    kept = ("double", "--kernel", "toy.kept", "--quick")
    status, out, err = ask(capsys, *kept, "--json", str(tmp_path / "run.json"), "--html", str(tmp_path / "run.html"))
    assert (status, err) == (0, "1 of 1: toy.kept f32, 12 of 12 kept\n")
    assert "toy.kept f32" in out and "FAILED" not in out and "promises kept by 1 kernels" in out
    assert max(map(len, out.splitlines())) <= 100
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["depth"] == "quick" and all(result["held"] for result in record["results"])
    page = (tmp_path / "run.html").read_text()
    assert "every promise was kept" in page and "<svg" in page and "http" not in page


@pytest.mark.usefixtures("double")
def test_the_command_names_what_failed_and_how_to_see_it(capsys: Capture, tmp_path: Path) -> None:
    asked = ("double", "--kernel", "toy.off", "--check", "accuracy")
    status, out, _ = ask(capsys, *asked, "--json", str(tmp_path / "run.json"), "--html", str(tmp_path / "run.html"))
    assert status == 1
    assert "FAILED toy.off accuracy, f32 [3,8]" in out
    (line, *_) = [line for line in out.splitlines() if line.startswith("  baracuda-kernels verify")]
    assert ask(capsys, *shlex.split(line)[2:])[0] == 1
    assert json.loads((tmp_path / "run.json").read_text())["results"][0]["says"]
    assert line.strip() in (tmp_path / "run.html").read_text()


def test_infinite_errors_can_be_written_down(double: None, capsys: Capture, tmp_path: Path) -> None:
    status, out, _ = ask(capsys, "--kernel", "toy.lazy", "--check", "accuracy", "--json", str(tmp_path / "run.json"))
    assert status == 1 and "inf" in out
    assert json.loads((tmp_path / "run.json").read_text())["results"][0]["errors"][0]["relative"] == "inf"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("sofmax",), "Did you mean softmax, "),
        (("softmax", "--kernel", "numba.sofmax"), "Did you mean numba.softmax?"),
        (("softmax", "--kernel", "triton.softmax"), "triton.softmax cannot run"),
        (("softmax", "--element", "f12"), "no dtype corresponds to 'f12'"),
        (("softmax", "--element", "i8"), "makes that promise there: element i8"),
        (("softmax", "--check", "repeat"), "There is no check 'repeat' here. Did you mean repeats?"),
        (("softmax", "--case", "5000"), "makes that promise there: case 5000"),
        (("softmax", "--quick", "--full"), "not allowed with"),
        (("softmax", "--jobs", "0"), "got '0', wanted 1 or more"),
    ],
)
def test_a_wrong_question(asked: tuple[str, ...], says: str, capsys: Capture) -> None:
    status, out, err = ask(capsys, *asked)
    assert (status, out) == (2, "")
    assert says in " ".join(err.split()) and "Traceback" not in err


def test_a_device_that_is_not_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baracuda_kernels.core.device.cuda_device_count", lambda: 0)
    status, _, err = ask(capsys, "softmax", "--device", "cuda")
    assert status == 2 and "cuda:0 is not there" in err


def test_several_kernels_at_a_time_find_the_same(capsys: Capture, tmp_path: Path) -> None:
    asked = ("softmax", "--kernel", "numba.softmax", "--check", "accuracy", "--quick")
    found = []
    for jobs in ("1", "2"):
        status, _, err = ask(capsys, *asked, "--jobs", jobs, "--json", str(tmp_path / "run.json"))
        results = json.loads((tmp_path / "run.json").read_text())["results"]
        assert status == 0 and "4 of 4: numba.softmax bf16, 6 of 6 kept" in err
        found.append([result | {"seconds": 0} for result in results])
    assert found[0] == found[1]


@pytest.mark.usefixtures("double")
def test_what_was_found_before_an_interruption_is_shown(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(answer: Any, questions: list[Question], jobs: int) -> Iterator[list[Any]]:
        yield answer_all(questions[0])
        raise KeyboardInterrupt

    monkeypatch.setattr("baracuda_kernels.verify.processes.answers", interrupted)
    status, out, err = ask(capsys, "--check", "accuracy")
    assert status == 130 and "promises kept by 1 kernels" in out and "Stopped; checked were 1 of" in err
