"""What a run leaves behind: one JSON file that says on what machine, with which versions, and every time."""

from __future__ import annotations

import datetime
import json
import math
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from baracuda_kernels.bench.engine import BenchRow, Settings
from baracuda_kernels.bench.host import HostRow
from baracuda_kernels.core.device import Device, DeviceKind
from baracuda_kernels.core.machine import cores, cpu_name, versions

SCHEMA = 1
_PACKAGES = ("baracuda-kernels", "torch", "triton", "numba", "numpy", "jax", "liger_kernel")


def as_record(rows: list[BenchRow], host_rows: list[HostRow], settings: Settings, survey: bool = False) -> dict[str, Any]:
    """The whole run as plain data. Names no machine but by its processor."""
    return {
        "schema": SCHEMA,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": str(settings.device.kind),
        **_accelerator(settings.device),
        "cpu": cpu_name(),
        "cores": cores(),
        "versions": {"python": platform.python_version()} | versions(_PACKAGES),
        "commit": _commit(),
        "rounds": settings.rounds,
        "rows": [_row(row) for row in rows],
        "host": [asdict(row) for row in host_rows],
    } | ({"survey": True} if survey else {})


def write(record: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def default_path() -> Path:
    return Path("bench", "out", f"{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}.json")


def _row(row: BenchRow) -> dict[str, Any]:
    derived = {
        "floor": row.floor and asdict(row.floor),
        "share_of_floor": row.share_of_floor,
        "times_faster_than": {name: row.times_faster_than(name) for name in row.others()},
    }
    record = asdict(row) | derived
    for error in record["errors"]:
        error["error"] = error["error"] if math.isfinite(error["error"]) else str(error["error"])
    return record


def _accelerator(device: Device) -> dict[str, str]:
    if device.kind is DeviceKind.CPU:
        return {}
    import torch

    return {"gpu": torch.cuda.get_device_name(device.index), "cuda": str(torch.version.cuda)}


def _commit() -> str | None:
    """The commit of the checkout this file belongs to, with "+" where it has changes; None outside one."""
    here = Path(__file__)
    if not _git("ls-files", here.name):
        return None
    return (_git("rev-parse", "HEAD") or "") + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
