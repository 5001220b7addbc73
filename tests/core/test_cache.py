"""Machine code on disk: what is loaded, what is refused, what is kept and for how long. No obstacle stops a kernel."""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baracuda_kernels import cli
from baracuda_kernels.core import cache, element, files, machine
from baracuda_kernels.targets.cpu.runtime import native

CODE = b"code " * 50
NAME = "bk_0"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just begun."""
    monkeypatch.setattr(cache, "_said", set())
    monkeypatch.setattr(cache, "_next_look", 0.0)
    monkeypatch.delenv(cache.ROOM, raising=False)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder, which is not there yet."""
    folder = tmp_path / "some" / "cache"
    monkeypatch.setenv(cache.PLACE, str(folder))
    return folder


def kept(name: str = NAME, code: bytes = CODE) -> tuple[bytes, str]:
    """What is returned, and whether it was compiled or loaded. Nothing here may take long."""
    compiled: list[bytes] = []
    results: list[bytes] = []
    asking = threading.Thread(target=lambda: results.append(cache.kept(name, lambda: compiled.append(code) or code)), daemon=True)
    asking.start()
    asking.join(30)
    return results[0], "compiled" if compiled else "loaded"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning that was given."""
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    return record.getMessage()


# --- across processes ------------------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy, baracuda_kernels as bk
d = bk.SoftmaxDescriptor(bk.SoftmaxKind.SOFTMAX, (4, 8), 1, bk.ElementKind.F32)
plan = bk.SoftmaxPlan.select(bk.Stream.cpu(), d)
x, y = numpy.ones((4, 8), "f4"), numpy.zeros((4, 8), "f4")
plan.run(bk.Stream.cpu(), bk.Workspace.none(), bk.SoftmaxArgs(x=x, y=y))
assert (y == 0.125).all()
print("compiled" if "numba" in sys.modules else "loaded")
"""


def run(folder: Path, **more: str) -> str:
    environment = os.environ | {cache.PLACE: str(folder)} | more
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_compiled_once_then_loaded_and_never_trusted_blindly(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run(folder) == "compiled"
    objects = sorted(folder.iterdir())
    assert objects and all(path.suffix == ".o" for path in objects)
    assert run(folder) == "loaded"
    whole = objects[0].read_bytes()
    for damage in (b"", b"not an object", whole[:-100], whole[:-1] + b"\0\0"):
        objects[0].write_bytes(damage)
        assert run(folder) == "compiled"
    assert run(folder) == "loaded"
    assert sorted(folder.iterdir()) == objects


def test_settings_of_numba_change_nothing(tmp_path: Path) -> None:
    settings = {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "+sse2", "NUMBA_DEBUGINFO": "1",
                "NUMBA_DISABLE_JIT": "1", "NUMBA_SLP_VECTORIZE": "1", "NUMBA_DEBUG_JIT": "1",
                "NUMBA_EXTEND_VARIABLE_LIFETIMES": "1", "NUMBA_BOUNDSCHECK": "1"}  # fmt: skip
    for folder, more in (("usual", {}), ("set", settings)):
        assert run(tmp_path / folder, **more) == "compiled"
    usual, changed = ({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} for folder in ("usual", "set"))
    assert usual == changed


def test_settings_of_numba_are_the_caller_s_again_afterwards() -> None:
    from numba.core import config, registry

    before = {name: getattr(config, name) for name in (*native._SETTINGS, "OPT")}
    codegen = registry.cpu_target.target_context.codegen()
    with pytest.raises(ZeroDivisionError), native._numba_as_shipped():
        assert registry.cpu_target.target_context.codegen() is not codegen
        raise ZeroDivisionError
    assert {name: getattr(config, name) for name in before} == before
    assert registry.cpu_target.target_context.codegen() is codegen


# --- what the key covers ------------------------------------------------------------------------------------------------------------------


def test_the_key_covers_sources_and_parameters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from baracuda_kernels.ops.softmax import numba as softmax_bodies

    def key(*static: str) -> str:
        return native._key(softmax_bodies.columns_body, static)

    first = key("forward", "softmax", "f32")
    assert first == key("forward", "softmax", "f32")
    assert first != key("forward", "softmax", "f64")
    (tmp_path / "element.py").write_text("LIMITS = {}")
    with monkeypatch.context() as changed:
        changed.setattr(element, "__file__", str(tmp_path / "element.py"))
        assert first != key("forward", "softmax", "f32")
    monkeypatch.setattr(native, "digest_of_sources", lambda place: b"another version of the sources")
    assert first != key("forward", "softmax", "f32")


def test_the_key_covers_everything_that_bodies_on_the_cpu_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    from baracuda_kernels.ops.softmax import numba as softmax_bodies

    covered: list[Path] = []
    monkeypatch.setattr(native, "digest_of_sources", lambda place: covered.append(place) or b"")
    native._key(softmax_bodies.columns_body, ("forward", "softmax", "f32"))
    package = Path(element.__file__).parents[1]
    sources = {file for folder in ("formula", "targets", "ops/softmax") for file in (package / folder).rglob("*.py")}
    left_out = {file for file in sources if not any(file == place or place in file.parents for place in covered)}
    assert left_out == set((package / "targets" / "cuda").rglob("*.py"))


@pytest.mark.parametrize("place", ["one.py", "deeper/one.py", "deeper/and/deeper/one.py"])
def test_sources_count_however_deep_they_lie(place: str, tmp_path: Path) -> None:
    def digest() -> bytes:
        machine.digest_of_sources.cache_clear()
        return machine.digest_of_sources(tmp_path)

    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    before = digest()
    file.write_text("x = 1")
    first = digest()
    file.write_text("x = 2")
    second = digest()
    file.rename(file.with_name("two.py"))
    assert len({before, first, second, digest()}) == 4


# --- whose it is -------------------------------------------------------------------------------------------------------------------------


def factory_of(number: int) -> Callable[[], str]:
    def factory() -> str:
        return f"define void @{native.ENTRY}(ptr %w, ptr %c, ptr %y) {{\n store i32 {number}, ptr %y\n ret void\n}}"

    return factory


def planted(folder: Path) -> Callable[[], int]:
    """Puts code that writes 2 where that of a kernel which writes 1 is looked for. Returns what runs the kernel."""
    symbol = "bk_" + native._key(factory_of(1), ())
    foreign = native._compile(factory_of(2), (), symbol, 1)
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{symbol}.o").write_bytes(cache._header(f"{symbol}.o", foreign) + foreign)

    def result() -> int:
        native._built.pop(symbol, None)
        number = ctypes.c_int32(0)
        native.build(factory_of(1), 1)(0, None, ctypes.addressof(number))
        return number.value

    return result


def test_code_is_found_where_it_would_be_planted(place: Path) -> None:
    """What the refusals below are worth."""
    assert planted(place)() == 2


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
def test_a_folder_that_others_may_write_is_refused(mode: int, place: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = planted(place)
    place.chmod(mode)
    before = names(place)
    assert [result(), result()] == [1, 1]
    assert names(place) == before
    assert str(place) in said(caplog) and f"others may write it (chmod go-w), as its mode is {mode:o}" in said(caplog)


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_may_write_is_refused(mode: int, place: Path, caplog: pytest.LogCaptureFixture) -> None:
    result = planted(place)
    (file,) = place.iterdir()
    file.chmod(mode)
    assert result() == 1
    assert str(file) in said(caplog) and "others may write it" in said(caplog)


@pytest.mark.parametrize("own_folder", [False, True])
def test_what_belongs_to_somebody_else_is_refused(
    own_folder: bool, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    result, user = planted(place), os.geteuid()
    users = itertools.chain([user] * own_folder, itertools.repeat(user + 1))
    monkeypatch.setattr(os, "geteuid", lambda: next(users))
    assert result() == 1
    assert f"owned by user {user}, not by {user + 1}" in said(caplog)
    assert (".o:" in said(caplog)) is own_folder


def test_code_goes_by_no_other_name(place: Path) -> None:
    kept("bk_1", b"one")
    (place / "bk_1.o").rename(place / "bk_2.o")
    assert kept("bk_2", b"two") == (b"two", "compiled")


def test_folders_are_made_for_the_user_alone(place: Path) -> None:
    before = os.umask(0)
    try:
        kept()
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (place.parent, place, place / f"{NAME}.o")]
    assert modes == [0o700, 0o700, 0o600]


def test_a_link_to_a_folder_of_one_s_own_is_followed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    place.parent.mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    assert [kept(), kept()] == [(CODE, "compiled"), (CODE, "loaded")]


def test_a_system_that_knows_neither_owners_nor_folders_by_descriptor(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "geteuid")
    monkeypatch.setattr(os, "supports_dir_fd", set())
    assert [kept(), kept()] == [(CODE, "compiled"), (CODE, "loaded")]
    an_old_file(place / f"{NAME}.o", days=2)
    assert kept()[1] == "loaded" and time.time() - (place / f"{NAME}.o").stat().st_mtime < 60
    assert [file.name for file in cache.clear()] == [f"{NAME}.o"] and names(place) == []


# --- what is in the way ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["lock", "o"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_nothing_but_plain_files_is_touched(
    kind: str, suffix: str, place: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place.mkdir(parents=True, mode=0o700)
    victim, obstacle = tmp_path / "victim", place / f"{NAME}.{suffix}"
    if kind == "link":
        victim.write_bytes(cache._header(f"{NAME}.o", b"foreign") + b"foreign")
        victim.chmod(0o600)
    before = victim.read_bytes() if kind == "link" else None
    if kind == "pipe":
        os.mkfifo(obstacle, 0o600)
    elif kind == "folder":
        obstacle.mkdir(0o700)
    else:
        obstacle.symlink_to(victim)
    status = obstacle.lstat()
    assert kept() == (CODE, "compiled")
    assert kept() == (CODE, "compiled")
    assert (obstacle.lstat().st_mode, obstacle.lstat().st_ino) == (status.st_mode, status.st_ino)
    assert (victim.read_bytes() if victim.exists() else None) == before
    assert str(obstacle) in said(caplog)


def test_a_file_where_the_folder_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file" / "cache", tmp_path / "file"):
        monkeypatch.setenv(cache.PLACE, str(path))
        assert kept() == (CODE, "compiled")
    assert (tmp_path / "file").read_text() == "in the way"
    assert "Not a directory" in said(caplog)


def test_a_link_that_leads_nowhere_where_the_folder_should_be(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    place.parent.symlink_to(place.parent.with_name("absent"))
    assert kept() == (CODE, "compiled")
    assert "compiled kernels are not kept" in said(caplog)


def test_what_is_kept_is_loaded_from_a_folder_that_cannot_be_written(place: Path) -> None:
    kept()
    an_old_file(place / f"{NAME}.o", days=2)
    place.chmod(0o500)
    assert kept() == (CODE, "loaded")
    assert kept("bk_1")[0] == CODE
    place.chmod(0o700)


@pytest.mark.parametrize("problem", [errno.EACCES, errno.EROFS, errno.EIO])
def test_a_file_that_cannot_be_opened(
    problem: int, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(name: str, *rest: Any) -> int:
        raise OSError(problem, os.strerror(problem), name)

    monkeypatch.setattr(files, "open_plain", refuse)
    assert [kept(), kept("bk_1")] == [(CODE, "compiled")] * 2
    assert os.strerror(problem) in said(caplog)


@pytest.mark.parametrize("failing", ["write", "replace"])
def test_a_full_disk_leaves_no_part_behind(
    failing: str, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*given: Any, **named: Any) -> Any:
        assert any(name.endswith(".part") for name in names(place))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*{"write": (cache, "_header"), "replace": (os, "replace")}[failing], refuse)
    assert [kept(), kept("bk_1")] == [(CODE, "compiled")] * 2
    assert names(place) == []
    assert "No space left" in said(caplog)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def unknown(user: int) -> Any:
        raise KeyError(user)

    for name in (cache.PLACE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert [kept(), kept()] == [(CODE, "compiled")] * 2
    assert "no home directory" in said(caplog) and cache.PLACE in said(caplog)
    assert cli.main(["cache"]) == 1


def test_a_place_relative_to_wherever_one_is_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.PLACE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.directory() == tmp_path / ".cache" / "baracuda-kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "baracuda-kernels"


# --- in turn --------------------------------------------------------------------------------------------------------------------------------

HOLDER = """
import os, signal, sys
from baracuda_kernels.core import cache
def stop():
    print("here", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    return b"compiled by the one that was stopped"
cache.kept(sys.argv[1], stop)
"""


def test_a_stopped_process_stops_nobody_else(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.3)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, NAME], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"here\n"
        start = time.monotonic()
        assert kept() == (CODE, "compiled")
        assert 0.3 <= time.monotonic() - start < 20
        assert names(place) == [f"{NAME}.lock"]
        assert "another process has held the lock" in said(caplog)
        assert [kept("bk_1"), kept("bk_1")] == [(CODE, "compiled"), (CODE, "loaded")]
    finally:
        holder.send_signal(signal.SIGCONT)
        holder.communicate(timeout=60)
    assert kept() == (b"compiled by the one that was stopped", "loaded")


def test_who_waits_finds_what_the_other_has_compiled(place: Path) -> None:
    begun, over = threading.Event(), threading.Event()

    def compile_slowly() -> bytes:
        begun.set()
        over.wait(30)
        return CODE

    first = threading.Thread(target=cache.kept, args=(NAME, compile_slowly))
    first.start()
    begun.wait(30)
    threading.Timer(0.2, over.set).start()
    assert kept(code=b"other") == (CODE, "loaded")
    first.join()
    assert names(place) == [f"{NAME}.o"]


def test_a_child_that_was_forked_in_a_turn_does_not_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.3)
    lock = str(tmp_path / "lock")
    handle = files.open_plain(lock, os.O_RDWR | os.O_CREAT)
    with files.turn(lock, handle):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(handle,))
        with pytest.raises(TimeoutError), files.turn(lock, files.open_plain(lock, os.O_RDWR)):
            pass
    with files.turn(lock, files.open_plain(lock, os.O_RDWR)):
        assert child.poll() is None
    child.communicate(b"\n")


def test_a_failing_compiler_leaves_nothing_behind(place: Path) -> None:
    def fail() -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.kept(NAME, fail)
    assert names(place) == []


# --- for how long -----------------------------------------------------------------------------------------------------------------------------


def an_old_file(path: Path, days: float, size: int = 0) -> None:
    if not path.exists():
        path.write_bytes(b"\0" * size)
    then = time.time() - days * cache.DAY
    os.utime(path, (then, then))


def test_what_was_used_longest_ago_goes_where_there_is_too_much(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir(parents=True, mode=0o700)
    for days in range(1, 9):
        an_old_file(place / f"bk_{days}.o", days, size=1000)
    (place / "notes.txt").write_bytes(b"\0" * 5000)
    monkeypatch.setenv(cache.ROOM, "4500")
    kept()
    assert names(place) == ["bk_0.o", "bk_1.o", "bk_2.o", "bk_3.o", "bk_4.o", "notes.txt"]
    kept("bk_9")  # a moment later it is not looked at again
    assert "bk_4.o" in names(place)
    monkeypatch.setattr(cache, "_next_look", 0.0)
    assert kept("bk_9")[1] == "loaded" and "bk_4.o" in names(place)  # nor by who compiles nothing
    kept("bk_10")
    assert names(place) == ["bk_0.o", "bk_1.o", "bk_10.o", "bk_2.o", "bk_3.o", "bk_9.o", "notes.txt"]


def test_what_nobody_has_used_for_long_goes(place: Path) -> None:
    place.mkdir(parents=True, mode=0o700)
    (place / "bk_folder.o").mkdir()
    for name, days in {"bk_1.o": 89, "bk_2.o": 91, "bk_3.lock": 0.9, "bk_4.lock": 1.1, ".bk_5.o.0a.part": 0.9,
                       ".bk_6.o.0a.part": 1.1, "notes.txt": 1000, "bk_folder.o": 1000}.items():  # fmt: skip
        an_old_file(place / name, days)
    kept()
    assert names(place) == [".bk_5.o.0a.part", "bk_0.o", "bk_1.o", "bk_3.lock", "bk_folder.o", "notes.txt"]


@pytest.mark.parametrize(("days", "touched"), [(2.0, True), (0.5, False)])
def test_use_is_noted_once_a_day(days: float, touched: bool, place: Path) -> None:
    kept()
    file = place / f"{NAME}.o"
    an_old_file(file, days)
    before = file.stat().st_mtime
    assert kept()[1] == "loaded"
    assert (file.stat().st_mtime != before) is touched
    assert not touched or time.time() - file.stat().st_mtime < 60


def test_room_for_nothing_keeps_nothing(place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv(cache.ROOM, "0")
    assert kept() == (CODE, "compiled")
    assert not place.exists() and not caplog.records


@pytest.mark.parametrize("wish", ["much", "-1", "²", "1e9", "9" * 5000])
def test_a_limit_that_is_no_number_is_said_and_the_usual_one_taken(
    wish: str, place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(cache.ROOM, wish)
    assert [kept(), kept()] == [(CODE, "compiled"), (CODE, "loaded")]
    assert cache.most_bytes() == 256_000_000
    assert f"got {wish[:40]!r}, wanted a number of bytes" in said(caplog)


# --- the command ------------------------------------------------------------------------------------------------------------------------------


def test_the_command_shows_and_clears(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out == f"0 compiled kernels kept in {place}: 0 bytes of at most 256 MB\n"
    assert not place.exists()
    for number in range(3):
        kept(f"bk_{number}", CODE * 10)
    size = sum(file.stat().st_size for file in place.iterdir())
    for other in ("notes.txt", "bk_3.lock", ".bk_4.o.0a.part"):
        (place / other).write_text("other")
    assert cli.main(["cache"]) == 0
    assert capsys.readouterr().out == f"3 compiled kernels kept in {place}: {size / 1000:.3g} kB of at most 256 MB\n"
    assert cli.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"3 compiled kernels removed from {place}: {size / 1000:.3g} kB\n"
    assert names(place) == ["notes.txt"]


@pytest.mark.parametrize("options", [["cache"], ["cache", "--clear"]])
def test_the_command_refuses_what_others_may_write(options: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept()
    place.chmod(0o777)
    assert cli.main(options) == 1
    assert "others may write it" in capsys.readouterr().err
    assert names(place) == [f"{NAME}.o"]
