"""Records of what a program selects and runs, and tuning from them."""

from __future__ import annotations

import json
import threading
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy
import pytest

import baracuda_kernels as bk
from baracuda_kernels import cli
from baracuda_kernels.core import race, recording, wisdom
from baracuda_kernels.core.recording import problems_in

from conftest import PLANS

CPU, NONE = bk.Stream.cpu(), bk.Workspace.none()
PROBLEM = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32)


def _args(shape: tuple[int, ...] = (4, 8)) -> Any:
    return bk.SoftmaxArgs(x=numpy.ones(shape, "f4"), y=numpy.empty(shape, "f4"))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wisdom, "loaded", wisdom.Wisdom())
    monkeypatch.setattr(wisdom, "measured", wisdom.Wisdom())


def test_everything_within_is_recorded_and_nothing_else(tmp_path: Path) -> None:
    before = bk.SoftmaxPlan.select(CPU, PROBLEM)
    before.run(CPU, NONE, _args())
    with bk.record(tmp_path / "deep" / "run.json") as outer:
        before.run(CPU, NONE, _args())
        with bk.record() as inner:
            again = bk.SoftmaxPlan.select(CPU, PROBLEM)
            for _ in range(3):
                again.run(CPU, NONE, _args())
        with pytest.raises(bk.InvalidProblem):
            before.run(CPU, NONE, _args((4, 9)))
    before.run(CPU, NONE, _args())
    assert recording.active == ()
    (mine,), (all_of_it,) = inner.entries(), outer.entries()
    assert (mine.selected, mine.runs, mine.failed) == (1, 3, 0)
    assert (all_of_it.selected, all_of_it.runs, all_of_it.failed) == (1, 4, 0)
    assert 0 < mine.nanoseconds < all_of_it.nanoseconds
    data = json.loads((tmp_path / "deep" / "run.json").read_text())
    (plan,) = data["plans"]
    assert plan["op"] == "softmax" and plan["problem"]["input_shape"] == [4, 8] and plan["runs"] == 4
    assert plan["sku"]["name"] == "numba.softmax" and plan["sku"]["precision_guarantee"]["deterministic"] is True
    assert "aten.softmax" in plan["rejected"] and data["machines"]["cpu"]["kind"] == "cpu"
    assert problems_in(tmp_path / "deep" / "run.json") == [("softmax", PROBLEM)]


def test_a_launch_that_fails_is_counted_and_the_record_still_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = bk.SoftmaxPlan.select(CPU, PROBLEM)

    def broken(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(plan, "_bind", lambda layouts: broken)
    with pytest.raises(bk.KernelInternal), bk.record(tmp_path / "run.json"):
        plan.run(CPU, NONE, _args())
    assert json.loads((tmp_path / "run.json").read_text())["plans"][0]["failed"] == 1


def test_threads_are_recorded_together() -> None:
    plan = bk.SoftmaxPlan.select(CPU, PROBLEM)

    def work() -> None:
        args = _args()
        for _ in range(200):
            plan.run(CPU, NONE, args)

    with bk.record() as watched:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert watched.entries()[0].runs == 800


@pytest.mark.parametrize("op", PLANS)
def test_every_descriptor_survives_the_way_through_json(op: str) -> None:
    for element in bk.ElementKind.F32, bk.ElementKind.BF16:
        for descriptor in PLANS[op].cases.corners(element):
            assert type(descriptor).of_plain(json.loads(json.dumps(descriptor.plain()))) == descriptor


@pytest.mark.parametrize("wrong", [{"input_shape": [4]}, {"kind": "no such"}, {"softmax_axis": "1"}, {"more": 1}])
def test_what_is_no_descriptor_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(bk.InvalidProblem):
        bk.SoftmaxDescriptor.of_plain(PROBLEM.plain() | wrong)
    with pytest.raises(bk.InvalidProblem, match="kind"):
        bk.SoftmaxDescriptor.of_plain({})


def test_tune_learns_from_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.001)
    record, out = tmp_path / "run.json", tmp_path / "wisdom.json"
    with bk.record(record):
        bk.SoftmaxPlan.select(CPU, PROBLEM)
    assert cli.main(["tune", "--record", str(record), "--out", str(out)]) == 0
    assert "softmax f32 [4,8]" in capsys.readouterr().out
    bk.forget_wisdom()
    assert bk.load_wisdom(out) == 1
    assert bk.SoftmaxPlan.select(CPU, PROBLEM).seconds is not None
    assert cli.main(["tune", "--out", str(out), "softmax", "--shape", "3,5"]) == 0
    assert bk.load_wisdom(out) == 2


def test_what_tune_compiles_is_found_by_the_race(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from baracuda_kernels.verify import precompile

    asked: list[Any] = []
    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.001)
    monkeypatch.setattr(
        precompile, "answers", lambda answer, questions, jobs: asked.append((jobs, len(questions))) or map(answer, questions)
    )
    record, out = tmp_path / "run.json", tmp_path / "wisdom.json"
    with bk.record(record):
        for rows in (4, 5, 6):
            bk.SoftmaxPlan.select(CPU, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (rows, 8), 1, bk.ElementKind.F32))
    assert cli.main(["tune", "--record", str(record), "--jobs", "2", "--out", str(out)]) == 0
    assert asked == [(2, 3)] and bk.load_wisdom(out) == 3
    assert cli.main(["tune", "--record", str(record), "--jobs", "1", "--out", str(out)]) == 0
    assert asked == [(2, 3)]


def test_a_compiling_process_that_is_killed_costs_only_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from baracuda_kernels.verify import precompile

    def broken(*asked: Any) -> Any:
        raise BrokenProcessPool("a process was terminated abruptly")

    monkeypatch.setattr(race, "_SECONDS_PER_CANDIDATE", 0.001)
    monkeypatch.setattr(precompile, "answers", lambda *asked: (broken(*asked) for _ in range(1)))
    record, out = tmp_path / "run.json", tmp_path / "wisdom.json"
    with bk.record(record):
        for rows in (4, 5):
            bk.SoftmaxPlan.select(CPU, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (rows, 8), 1, bk.ElementKind.F32))
    assert cli.main(["tune", "--record", str(record), "--jobs", "2", "--out", str(out)]) == 0
    assert bk.load_wisdom(out) == 2


def test_tune_refuses_what_it_cannot_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "wisdom.json"
    out.write_text("my notes")
    assert cli.main(["tune", "--out", str(out), "softmax"]) == 2
    assert "not a file of measured times" in capsys.readouterr().err and out.read_text() == "my notes"
    assert cli.main(["tune", "--out", str(tmp_path / "w.json"), "sofmax"]) == 2
    assert "Did you mean softmax, " in capsys.readouterr().err
    (tmp_path / "record.json").write_text("{}")
    assert cli.main(["tune", "--record", str(tmp_path / "record.json"), "--out", str(tmp_path / "w.json")]) == 2
    assert "record.json" in capsys.readouterr().err
    assert not (tmp_path / "w.json").exists()
