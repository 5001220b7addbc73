"""The example: a small model learns the same with these ops as with PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "language_model"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, threads: Any) -> Iterator[Any]:
    """Imports its files by name."""
    before = torch.get_num_threads()
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    torch.set_num_threads(before)


def train(example: Any, tmp_path: Path, *arguments: str) -> tuple[Any, ElementTree.Element]:
    module: ModuleType = example("train")
    picture = tmp_path / "pictures" / "loss.svg"
    outcome = module.main(["--quick", "--threads", "1", "--picture", str(picture), *arguments])
    return outcome, ElementTree.fromstring(picture.read_text(encoding="utf-8"))


def test_both_runs_learn_the_same(example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome, picture = train(example, tmp_path)
    losses = outcome.ours.losses
    assert len(losses) == len(outcome.pytorch.losses) == 12
    assert outcome.apart < 1e-5
    assert losses[-1] < losses[0] - 0.5
    curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(curve.get("points", "").split()) for curve in curves] == [12, 12]
    printed = capsys.readouterr().out
    ran = {entry.plan.sku.name for entry in outcome.recording.entries() if entry.runs}
    ops = ("rms_norm", "rope", "sdpa", "ssd_chunk_scan")
    assert ran == {f"numba.{op}{direction}" for op in ops for direction in ("", "_backward")}
    assert all(name in printed for name in ran) and "tokens per second" in printed


def test_a_short_training_is_the_same_model_with_fewer_tokens(
    example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, asked = example("train"), []
    monkeypatch.setattr(module, "train", lambda job, console: asked.append(job))
    monkeypatch.setattr(module, "show", lambda *_: None)
    for option in ((), ("--short",), ("--short", "--steps", "5")):
        module.main([*option, "--picture", str(tmp_path / "loss.svg")])
    whole, short, shorter = asked
    assert short.sizes == whole.sizes and 2 * short.tokens == whole.tokens and 2 * short.steps < whole.steps
    assert shorter.steps == 5
    with pytest.raises(SystemExit):
        module.main(["--short", "--quick"])


def test_by_autocast_too(example: Any, tmp_path: Path) -> None:
    outcome, _ = train(example, tmp_path, "--element", "bf16")
    assert outcome.apart < 0.05
    assert outcome.ours.losses[-1] < outcome.ours.losses[0] - 0.5


def test_the_same_run_gives_the_same_losses(example: Any, tmp_path: Path) -> None:
    first, second = (train(example, tmp_path, "--steps", "4")[0].ours.losses for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("option", "value", "wanted"),
    [("--steps", "0", "more than 3"), ("--steps", "3", "more than 3"), ("--threads", "0", "at least 1")],
)
def test_nonsense_is_refused(
    example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, wanted: str
) -> None:
    with pytest.raises(SystemExit):
        train(example, tmp_path, option, value)
    assert f"{option}: got {value}, wanted {wanted}" in capsys.readouterr().err


def test_the_scan_in_pytorch_is_the_op(example: Any) -> None:
    plain = example("plain")
    import baracuda_kernels.torch as bt

    torch.manual_seed(0)
    x, dt, a = torch.randn(2, 24, 3, 4), torch.rand(2, 24, 3), -torch.rand(3)
    b, c = torch.randn(2, 24, 5), torch.randn(2, 24, 5)
    wanted = bt.ssd_chunk_scan(x, dt, a, b[:, :, None], c[:, :, None], chunk_size=8)
    torch.testing.assert_close(plain.chunked_scan(x, dt, a, b, c, 8), wanted)
