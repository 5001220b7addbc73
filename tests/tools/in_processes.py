"""The suite in several processes that share a GPU: `python tests/tools/in_processes.py -n 15 [--limit SECONDS] [what pytest takes]`.

Tests of one kernel stay together, so that a kernel is compiled by one process and not by all. It needs nothing beside pytest, keeps
what it has found when time is up, and has the GPU shared by MPS where that is installed, which is several times as fast as taking turns.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHARED = "BARACUDA_SHARED_RUN"  # the directory that the processes of one run share
TOGETHER = 20  # tests, at most, that one process takes at once
ALL_RAN = (0, 5)  # pytest's status of tests that passed, and of none


# --- in every process: a plugin of pytest ------------------------------------------------------------------------------------------


def pytest_runtestloop(session: Any) -> bool:
    for group in _groups(session.items):
        if not _is_first(group):
            continue
        for item, following in itertools.pairwise([*group, None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return True


def pytest_runtest_logreport(report: Any) -> None:
    if report.when == "call" or report.outcome != "passed":
        says = report.longreprtext if report.failed else ""
        found = {"test": report.nodeid, "outcome": report.outcome, "seconds": report.duration, "says": says}
        with (_directory() / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")


def _groups(items: list[Any]) -> Iterator[list[Any]]:
    """Tests of a file that begin with the same parameter, which is the kernel where there is one."""

    def kernel(item: Any) -> tuple[str, str]:
        return str(item.path), item.name.partition("[")[2].partition("-")[0]

    for _, group in itertools.groupby(sorted(items, key=kernel), kernel):
        alike = list(group)
        yield from (alike[first : first + TOGETHER] for first in range(0, len(alike), TOGETHER))


def _is_first(group: list[Any]) -> bool:
    """Whether no other process has taken these tests."""
    name = hashlib.sha256("\n".join(item.nodeid for item in group).encode()).hexdigest()
    try:
        os.close(os.open(_directory() / f"{name}.taken", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _directory() -> Path:
    return Path(os.environ[SHARED])


# --- the run -----------------------------------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which what is left is not run")
    parser.add_argument("--json", type=Path, help="where to write the outcome of every test")
    chosen, given = parser.parse_known_args()
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as directory, _shared_gpu(Path(directory)) as sharing:
        environment = os.environ | sharing | {SHARED: directory, "PYTHONPATH": os.pathsep.join([str(here), *sys.path[1:]])}
        command = [sys.executable, "-m", "pytest", "-q", "-p", Path(__file__).stem, *given]
        logs = [(Path(directory) / f"{number}.log").open("w+") for number in range(chosen.n)]
        processes = [subprocess.Popen(command, cwd=here.parents[1], env=environment, stdout=log, stderr=log) for log in logs]
        is_late = _wait(processes, chosen.limit, Path(directory))
        outcomes = _outcomes(Path(directory))  # before any is killed: with MPS that is an illegal access in those beside it
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        broken = [log.name for log, process in zip(logs, processes, strict=True) if _is_broken(process, is_late)]
        for name in broken:
            print(Path(name).read_text()[-3000:])
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(outcomes, indent=1))
    failed = [each for each in outcomes if each["outcome"] == "failed"]
    for each in failed:
        print(f"FAILED {each['test']}\n{each['says'][-1500:]}\n")
    counts = Counter(each["outcome"] for each in outcomes)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), "(time was up)" if is_late else "")
    return int(bool(failed or broken or is_late or not counts["passed"]))


def _wait(processes: list[subprocess.Popen[Any]], limit: float, directory: Path) -> bool:
    """Until all have ended, or time is up, and which of these."""
    begin = shown = time.monotonic()
    while any(process.poll() is None for process in processes):
        time.sleep(0.5)
        now = time.monotonic()
        if now - begin > limit:
            return True
        if now - shown > 30:
            shown = now
            print(f"{now - begin:.0f} s: {len(_outcomes(directory))} tests", flush=True)
    return False


def _is_broken(process: subprocess.Popen[Any], is_late: bool) -> bool:
    """Whether it ended otherwise than by running tests; of those that fail there are outcomes."""
    return process.returncode not in (*ALL_RAN, 1) and not is_late


def _outcomes(directory: Path) -> list[dict[str, Any]]:
    lines = [line for file in directory.glob("*.jsonl") for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines if line.endswith("}")]  # the last may be cut off


@contextlib.contextmanager
def _shared_gpu(directory: Path) -> Iterator[dict[str, str]]:
    """What processes need in their environment to share the GPU, while the service for it runs."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        yield {}
        return
    sharing = {"CUDA_MPS_PIPE_DIRECTORY": str(directory / "pipe"), "CUDA_MPS_LOG_DIRECTORY": str(directory / "log")}
    for path in sharing.values():
        Path(path).mkdir()
    environment = os.environ | sharing
    subprocess.run([control, "-d"], env=environment, check=True)
    try:
        yield sharing
    finally:
        subprocess.run([control], input="quit\n", text=True, env=environment, check=False)


if __name__ == "__main__":
    sys.exit(main())
