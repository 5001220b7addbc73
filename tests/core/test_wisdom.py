"""Measured times that are kept: what is chosen by them, and what a file may and may not do."""

from __future__ import annotations

import errno
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import baracuda_kernels as bk
from baracuda_kernels.core import files, race, wisdom
from baracuda_kernels.core.kernel import Kernel
from baracuda_kernels.core.machine import machine_of
from baracuda_kernels.core.wisdom import Wisdom

CPU = bk.Stream.cpu()
MEASURE = bk.PlanPreference(effort=bk.Effort.MEASURE)
PROBLEM = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (6, 40), 1, bk.ElementKind.F32)
MUTATIONS = 20_000
FEW_SECONDS = {"numba.softmax": 2e-6, "aten.softmax": 1e-6}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wisdom, "loaded", Wisdom())
    monkeypatch.setattr(wisdom, "measured", Wisdom())


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Times as given, and who was asked for them."""
    asked: list[str] = []

    def measure(plans: Any, stream: Any) -> dict[str, float]:
        asked.extend(plans)
        return {name: FEW_SECONDS[name] for name in plans}

    monkeypatch.setattr(race, "measure", measure)
    return asked


def _known(seconds: dict[str, float], problem: Any = PROBLEM) -> Wisdom:
    known = Wisdom()
    known.learn("softmax", problem, machine_of(bk.Device.cpu()), seconds)
    return known


def test_what_was_measured_can_be_saved_and_loaded(races: list[str], tmp_path: Path) -> None:
    file = tmp_path / "some" / "wisdom.json"
    assert bk.SoftmaxPlan.select(CPU, PROBLEM, MEASURE).sku.name == "aten.softmax"
    bk.save_wisdom(file)
    bk.forget_wisdom()
    races.clear()
    assert bk.SoftmaxPlan.select(CPU, PROBLEM).sku.name == "numba.softmax"  # nothing is read that was not asked for
    assert bk.load_wisdom(file) == 1
    plan = bk.SoftmaxPlan.select(CPU, PROBLEM)
    assert plan.sku.name == "aten.softmax" and plan.seconds == 1e-6
    (reason,) = plan.rejected["numba.softmax"]
    assert reason.code is bk.ReasonCode.SLOWER and "2.0 µs" in str(reason)
    assert bk.SoftmaxPlan.select(CPU, PROBLEM, MEASURE).sku.name == "aten.softmax"
    assert not races


def test_who_measures_what_is_known_prepares_none_but_the_fastest(races: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bk.SoftmaxPlan.select(CPU, PROBLEM, MEASURE)
    prepared: list[str] = []
    prepare = Kernel.prepare
    monkeypatch.setattr(Kernel, "prepare", lambda self, *given: [prepared.append(self.name), prepare(self, *given)][1])
    plan = bk.SoftmaxPlan.select(CPU, PROBLEM, MEASURE)
    assert (plan.sku.name, prepared) == ("aten.softmax", ["aten.softmax"])
    assert plan.rejected["numba.softmax"][0].code is bk.ReasonCode.SLOWER and plan.seconds == 1e-6


def test_a_candidate_of_which_nothing_is_known_has_all_race_again(races: list[str]) -> None:
    bk.SoftmaxPlan.select(CPU, PROBLEM, bk.PlanPreference(effort=bk.Effort.MEASURE, prefer_backend=bk.BackendKind.NUMBA))
    assert races == ["numba.softmax"]
    assert bk.SoftmaxPlan.select(CPU, PROBLEM, MEASURE).sku.name == "aten.softmax"
    assert sorted(races[1:]) == ["aten.softmax", "numba.softmax"]


def test_what_is_not_clearly_faster_does_not_take_the_first_one_s_place(tmp_path: Path) -> None:
    _known({"numba.softmax": 1e-6, "aten.softmax": 0.99e-6}).write(tmp_path / "w.json")
    bk.load_wisdom(tmp_path / "w.json")
    plan = bk.SoftmaxPlan.select(CPU, PROBLEM)
    assert plan.sku.name == "numba.softmax"
    assert plan.rejected["aten.softmax"][0].code is bk.ReasonCode.NOT_CLEARLY_FASTER


def test_a_preference_is_kept_whatever_wisdom_says(tmp_path: Path) -> None:
    _known(FEW_SECONDS).write(tmp_path / "w.json")
    bk.load_wisdom(tmp_path / "w.json")
    preference = bk.PlanPreference(batch_invariant=True)
    assert bk.SoftmaxPlan.select(CPU, PROBLEM, preference).sku.name == "numba.softmax"


@pytest.mark.parametrize("foreign", ["device", "kernels", "torch", "threads"])
def test_times_of_another_machine_or_version_are_kept_but_not_used(foreign: str, tmp_path: Path) -> None:
    known = Wisdom()
    known.learn("softmax", PROBLEM, machine_of(bk.Device.cpu()) | {foreign: "another"}, FEW_SECONDS)
    known.write(tmp_path / "w.json")
    assert bk.load_wisdom(tmp_path / "w.json") == 1
    assert bk.SoftmaxPlan.select(CPU, PROBLEM).sku.name == "numba.softmax"
    bk.save_wisdom(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == (tmp_path / "w.json").read_text()


def test_merging_takes_the_shorter_time_and_does_not_mind_the_order(tmp_path: Path) -> None:
    one, other = _known({"numba.softmax": 2e-6, "aten.softmax": 5e-6}), _known({"numba.softmax": 3e-6, "x": 1e-6})
    for first, second, file in ((one, other, "a.json"), (other, one, "b.json")):
        first.write(tmp_path / file)
        second.write(tmp_path / file)
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    (entry,) = json.loads((tmp_path / "a.json").read_text())["entries"]
    assert entry["seconds"] == {"aten.softmax": 5e-6, "numba.softmax": 2e-6, "x": 1e-6}


WRITER = """
import sys
import baracuda_kernels as bk
from baracuda_kernels.core.wisdom import Wisdom
path, number, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for turn in range(count):
    known = Wisdom()
    problem = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (number + 1, turn + 1), 1, bk.ElementKind.F32)
    known.learn("softmax", problem, {"kind": "cpu"}, {"numba.softmax": 1e-6})
    known.write(path)
"""


def test_eight_processes_writing_one_file_lose_nothing(tmp_path: Path) -> None:
    file, count = tmp_path / "w.json", 12
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), str(n), str(count)]) for n in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    assert len(Wisdom.read(file)) == 8 * count
    assert {path.name for path in tmp_path.iterdir()} == {"w.json", ".w.json.lock"}


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_a_new_file_has_the_mode_that_open_would_give_it(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        _known(FEW_SECONDS).write(tmp_path / "w.json")
    finally:
        os.umask(before)
    assert (tmp_path / "w.json").stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    for mode in (0o600, 0o666):
        _known(FEW_SECONDS).write(tmp_path / "w.json")
        (tmp_path / "w.json").chmod(mode)
        _known({"x": 1e-6}).write(tmp_path / "w.json")
        assert (tmp_path / "w.json").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_leads_where_it_did(is_there: bool, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target.json", tmp_path / "w.json"
    link.symlink_to("there/target.json")
    if is_there:
        _known({"x": 1e-6}).write(target)
    _known(FEW_SECONDS).write(link)
    assert os.readlink(link) == "there/target.json"
    assert Wisdom.read(target).text() == _known(FEW_SECONDS | ({"x": 1e-6} if is_there else {})).text()
    assert sorted(os.listdir(tmp_path / "there")) == [".target.json.lock", "target.json"]
    assert sorted(os.listdir(tmp_path)) == ["there", "w.json"]


@pytest.mark.parametrize("kind", ["pipe", "loop", "folder"])
def test_what_is_no_file_is_not_written_to(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    {"pipe": os.mkfifo, "folder": os.mkdir, "loop": lambda path: path.symlink_to(path)}[kind](path)
    before = path.lstat().st_ino
    with pytest.raises(bk.InvalidWisdom, match="not a regular file"):
        _known(FEW_SECONDS).write(path)
    assert path.lstat().st_ino == before


def test_a_lock_is_no_link_and_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / ".w.json.lock"
    (tmp_path / "victim").write_text("victim")
    lock.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        _known(FEW_SECONDS).write(tmp_path / "w.json")
    lock.unlink()
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    held, why = files.turn("held", files.open_plain(str(lock), os.O_RDWR | os.O_CREAT)), r"held the lock for 0\.2 s.*w\.json\.lock"
    with held, pytest.raises(TimeoutError, match=why):
        _known(FEW_SECONDS).write(tmp_path / "w.json")
    _known(FEW_SECONDS).write(tmp_path / "w.json")
    assert len(Wisdom.read(tmp_path / "w.json")) == 1 and (tmp_path / "victim").read_text() == "victim"


def test_what_cannot_be_written_leaves_the_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    _known(FEW_SECONDS).write(tmp_path / "w.json")
    before = (tmp_path / "w.json").read_bytes()
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        _known({"x": 1e-6}).write(tmp_path / "w.json")
    assert (tmp_path / "w.json").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == [".w.json.lock", "w.json"]


def _refused(content: bytes, tmp_path: Path) -> str:
    file = tmp_path / "w.json"
    file.write_bytes(content)
    before = sorted(os.listdir(tmp_path))
    for use in (bk.load_wisdom, bk.save_wisdom):
        with pytest.raises(bk.InvalidWisdom) as refusal:
            use(file)
        assert refusal.value.reasons[0].code is bk.ReasonCode.NOT_WISDOM and str(file) in str(refusal.value)
    assert file.read_bytes() == content and sorted(set(os.listdir(tmp_path)) - {".w.json.lock"}) == before
    assert not len(wisdom.loaded)
    return str(refusal.value)


ENTRY = {"op": "softmax", "problem": {"n": 1}, "machine": {"kind": "cpu"}, "seconds": {"numba.softmax": 1e-6}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe\x00", "not text"),
        (b"[" * 100_000, "without end"),
        (b"{}", "schema"),
        (b"[]", "schema"),
        (json.dumps({"schema": "baracuda-kernels wisdom 2", "entries": []}).encode(), "wisdom 2"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": {}}).encode(), "list of entries"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [], "run": "rm"}).encode(), "fields"),
        (b'{"schema": "baracuda-kernels wisdom 1", "entries": [], "entries": []}', "twice"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"more": 1}]}).encode(), "entry 0"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"op": 3}]}).encode(), "op"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY, ENTRY | {"problem": {"n": {"m": 1}}}]}).encode(), "entry 1"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"machine": {"kind": 1}}]}).encode(), "machine"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"seconds": {}}]}).encode(), "seconds"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"seconds": {"k": -1}}]}).encode(), "positive"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"seconds": {"k": True}}]}).encode(), "positive"),
        (json.dumps({"schema": wisdom.SCHEMA, "entries": [ENTRY | {"seconds": {"k": float("nan")}}]}).encode(), "NaN"),
        (b'{"schema": "baracuda-kernels wisdom 1", "entries": [{"op": "a", "problem": {}, "machine": {}, "seconds": {"k": 1e999}}]}', "pos"),
        (b'{"schema": "baracuda-kernels wisdom 1", "entries": [{"op": "a", "problem": {}, "machine": {}, "seconds": {"k": 1%s}}]}'
         % (b"0" * 5000), ""),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_and_left_as_it_is(content: bytes, why: str, tmp_path: Path) -> None:
    assert why in _refused(content, tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(bk.InvalidWisdom, match="not a plain file"):
        bk.load_wisdom(tmp_path / "pipe")


def test_a_missing_file_a_folder_and_one_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(bk.InvalidWisdom, match="cannot be read"):
            bk.load_wisdom(path)
    monkeypatch.setattr(wisdom, "LARGEST_FILE", 10)
    assert "too large" in _refused(b" " * 11, tmp_path)


@pytest.mark.parametrize("count", [MUTATIONS, pytest.param(5 * MUTATIONS, marks=pytest.mark.slow)])
def test_mutated_files_are_refused_or_valid(count: int) -> None:
    chance = random.Random(3)
    known = _known(FEW_SECONDS)
    known.merge(_known({"numba.softmax": 1e-6}, bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (7,), 0, bk.ElementKind.BF16)))
    good, loads = known.text(), 0
    pieces = [
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\u0000",
        "NaN",
        "1e999",
        "null",
        "true",
        "-",
        "\\",
        "\x00",
        "softmax",
        "entries",
        "9" * 400,
    ]
    for _ in range(count):
        text = good
        for _ in range(chance.randint(1, 4)):
            at, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
            end = min(end, at + chance.choice((0, 1, 1, 2, 20)))
            text = text[:at] + chance.choice(("", chance.choice(pieces), chr(chance.randrange(1, 0x250)))) + text[end:]
        try:
            read = Wisdom.of(text)
        except bk.InvalidWisdom as refusal:
            assert refusal.reasons
        else:
            loads += 1
            assert Wisdom.of(read.text()).text() == read.text()
    assert 0 < loads < count


def test_numbers_that_are_not_finite_are_kept(tmp_path: Path) -> None:
    """JSON has no numbers for them, and a problem may have them."""
    path = tmp_path / "wisdom.json"
    problems = [
        bk.BinaryDescriptor(bk.BinaryKind.MUL, (3,), bk.ElementKind.F32, other_value=value)
        for value in (math.nan, math.inf, -math.inf, 0.0, -0.0)
    ]
    for problem in problems:
        assert bk.BinaryDescriptor.of_plain(json.loads(json.dumps(problem.plain(), allow_nan=False))) == problem
        bk.BinaryPlan.select(CPU, problem, MEASURE)
    bk.save_wisdom(path)
    bk.forget_wisdom()
    assert bk.load_wisdom(path) == len(problems)
