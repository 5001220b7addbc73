"""Plants faults in copies of the sources, one at a time, and says whether the tests find them.

    python tests/tools/planted.py [--only NAME ...] [--slow] [--jobs N]

Of the tests run those that can touch the file, as `changed` has them, the ones that force every kernel first, until one fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src", "baracuda_kernels")
FORCING = ("test_kernels.py", "test_guarantees.py", "test_errors.py", "test_property.py")
COPIED = ("src", "tests", "docs", "bench", "examples", "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
          "CITATION.cff", "mkdocs.yml", "SECURITY.md", "LICENSE", "constraints.txt")  # fmt: skip


class Fault(NamedTuple):
    """One line made wrong."""

    name: str
    file: str  # below the package
    right: str  # occurs once
    wrong: str


FAULTS = (
    # Rows and columns.
    Fault("softmax: what lies behind a row is summed too", "ops/softmax/rows.py",
          "acc = simd.where(simd.first_lanes(rest), add(acc, u, v, top), acc)", "acc = add(acc, u, v, top)"),
    Fault("softmax: bits of a strided row in another order", "ops/softmax/rows.py",
          "total += kept_block(a, at + i * step, step, min(BLOCK, count - i), top, kept, i, ahead)",
          "total = kept_block(a, at + i * step, step, min(BLOCK, count - i), top, kept, i, ahead) + total * 1.0000001"),
    Fault("softmax: the gradient of the logarithm takes y for exp(y)", "ops/softmax/bodies.py",
          "lambda a, b, top, scale: a - exp(b) * scale", "lambda a, b, top, scale: a - b * scale"),
    Fault("softmax on CUDA: an element past the end", "ops/softmax/triton.py",
          'x + along(place, x_step, CONTIGUOUS), mask=place < extent, other=float("-inf")',
          'x + along(place, x_step, CONTIGUOUS), mask=place <= extent, other=float("-inf")'),
    Fault("softmax on CUDA: part of an output is not written", "ops/softmax/triton.py",
          "tl.store(y + held_row.to(tl.int64) * y_step + col, result, mask=held_inside",
          "tl.store(y + held_row.to(tl.int64) * y_step + col, result, mask=held_inside & (held_row > 0)"),
    Fault("softmax: a refusal of PyTorch's kernel is dropped", "ops/softmax/softmax.py",
          "ATEN_CPU_LIMITS = (*ATEN_LIMITS, exact_logs_of_sums)", "ATEN_CPU_LIMITS = ATEN_LIMITS"),
    Fault("rms_norm: eps is added to the root", "ops/normalization/rms_norm/numba.py",
          "root = math.sqrt(total / count + eps)", "root = math.sqrt(total / count) + eps"),
    Fault("rms_norm: the last columns of dgamma come of one row", "ops/normalization/rms_norm/numba.py",
          "simd.store(partials, share + i, 1, acc + to_sums(u * (v * inverse)))", "simd.store(partials, share + i, 1, to_sums(u * (v * inverse)))"),
    Fault("rms_norm: dgamma is summed in as many groups as there are threads", "ops/normalization/rms_norm/groups.py",
          "    return max(FEWEST_ROWS, -(-rows // MOST_GROUPS))",
          "    return max(FEWEST_ROWS, -(-rows // __import__('baracuda_kernels').get_num_threads()))"),
    Fault("rms_norm on CUDA: long rows without their scale's stride", "ops/normalization/rms_norm/triton_bodies.py",
          "result *= tl.load(gamma + _places(place, gamma_row, CONTIGUOUS)", "result *= tl.load(gamma + _places(place, x_row, CONTIGUOUS)"),
    # Attention.
    Fault("rope: the backward turns forwards", "ops/attention/rope/numba.py",
          "simd.store(sines, place + i, 1, s * sign)", "simd.store(sines, place + i, 1, s)"),
    Fault("sdpa: a query does not see its own key", "ops/attention/sdpa/rows.py",
          "reach = min(keys, row + rows) if words[CAUSAL] != 0 else keys", "reach = min(keys, row + rows - 1) if words[CAUSAL] != 0 else keys"),
    Fault("sdpa on CUDA: whole blocks of keys are left out", "ops/attention/sdpa/triton_forward.py",
          "stop = tl.minimum(keys, first + QUERIES) if CAUSAL else keys", "stop = tl.minimum(keys, first) if CAUSAL else keys"),
    Fault("ssd: the last chunk of a span is one step short", "ops/attention/ssd/states.py",
          "steps = min(CHUNK, stop - t)", "steps = min(CHUNK, max(stop - t - 1, 1))"),
    # Scans.
    Fault("scan: halves of a group are joined one off", "ops/scan/body.py",
          "last = [(lane // (2 * distance)) * 2 * distance + distance - 1 if lane & distance",
          "last = [(lane // (2 * distance)) * 2 * distance + distance - 2 * (distance > 1) if lane & distance"),
    Fault("scan on CUDA: in reverse from behind the end", "ops/scan/triton_bodies.py",
          "along(extent - 1, axis_steps[i], ALONG[i]) if REVERSE", "along(extent, axis_steps[i], ALONG[i]) if REVERSE"),
    # Reductions.
    Fault("reductions: the highest subtree is left out", "targets/cpu/llvm/reduction.py",
          "height = builder.sub(number(64), builder.ctlz(", "height = builder.sub(number(63), builder.ctlz("),
    Fault("reductions on CUDA: a result's stride is ignored", "targets/cuda/formulas/reduction.py",
          "tl.store(targets[i] + offset(result, extents, result_steps[i]), value, mask=is_there)",
          "tl.store(targets[i] + result, value, mask=is_there)"),
    Fault("reductions: the gradient of a variance takes the count for the degrees of freedom", "ops/reduction/rows.py",
          "scaled(d, x - mean, (count - correction) * 0.5)", "scaled(d, x - mean, count * 0.5)"),
    Fault("gradients of rows on CUDA: elements past the end", "targets/cuda/formulas/rows.py",
          "inside = is_there & (place < count)", "inside = is_there & (place <= count)"),
    # Order statistics.
    Fault("median: the upper of two", "ops/order_statistics/bodies.py",
          "rank = (count - 1) // 2", "rank = count // 2"),
    Fault("quantile: from the middle to the lower neighbour", "ops/order_statistics/bodies.py",
          "goes_up = share > 0.5 or (share == 0.5 and below % 2 == 1)", "goes_up = share > 0.5"),
    # Neighbours.
    Fault("gradient along an axis: the parabola at the edges", "ops/calculus/slopes.py",
          "(rises[0] * 3.0 - rises[1]) / (step * 2.0)", "(rises[0] + rises[1]) / (step * 2.0)"),
    Fault("trapezoid: half of what it is where points have places", "ops/calculus/trapezoid.py",
          "return ElementKind.F64 if has_x and element is ElementKind.F32 else register(element)", "return register(element)"),
    # Elementwise.
    Fault("elementwise: the strides of a block's first element", "targets/cpu/llvm/elementwise.py",
          "starts = [builder.add(at, builder.mul(start, step)) for", "starts = [builder.add(at, start) for"),
    Fault("elementwise: the gradient of hardswish", "ops/elementwise/activation_rows.py",
          "d * fma(x, 1 / 3, 0.5)", "d * fma(x, 1 / 6, 0.5)"),
    Fault("where: the gradients of both operands are one", "ops/elementwise/where.py",
          "(where(condition, 0, d), has_other)", "(where(condition, d, 0), has_other)"),
    Fault("covariance: weights are left out of the gradient", "ops/covariance/vendor.py",
          "            buffer.scaled.mul_(buffer.weights)", "            pass"),
    # What all ops stand on.
    Fault("operands: another element of the same size is taken", "core/args.py",
          "if layout.element is not element:", "if layout.element.size != element.size:"),
    Fault("operands: the same memory in another order is taken for working in place", "core/plan.py",
          "if at == other and may_be_same and _same_view(first, second):", "if at == other and may_be_same:"),
    Fault("workspace: one byte too few is enough", "core/plan.py",
          "if workspace.size < self._workspace_size or", "if workspace.size < self._workspace_size - 1 or"),
    Fault("in CUDA's vectors: addresses that are no whole vectors", "targets/cuda/runtime/launcher.py",
          "if not together % VECTOR_BYTES:", "if not together % (VECTOR_BYTES // 2):"),
)  # fmt: skip


def planted(fault: Fault, place: Path) -> None:
    """Copies what the tests need there, with the fault."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__", "out"))
        else:
            shutil.copy(source, place / name)
    file = place / PACKAGE / fault.file
    text = file.read_text(encoding="utf-8")
    assert text.count(fault.right) == 1, f"{fault.name}: {fault.file} has {fault.right!r} {text.count(fault.right)} times"
    file.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")


def verdict(fault: Fault, slow: bool) -> str:
    """The first test that fails, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        planted(fault, place)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(
                map(str, (place / "src", *(place / "tests" / each for each in ("", "helpers", "tools"))))
            ),
            "OPENBLAS_NUM_THREADS": "1",
        }
        touched = [
            "-p",
            "changed",
            "--touched-by",
            str(PACKAGE / fault.file),
            "-p",
            "no:cacheprovider",
            "-x",
            "-q",
            *["--slow"] * slow,
        ]
        tests = sorted(path.name for path in (place / "tests").rglob("test_*.py"))
        first = [str(path) for path in (place / "tests").rglob("test_*.py") if path.name in FORCING]
        rest = [f"--ignore={path}" for path in first]
        assert len(tests) > len(first) == len(FORCING)
        forced = sorted(first, key=lambda path: FORCING.index(Path(path).name))
        # These first: others have to be compiled anew.
        device = "triton" if any(part in fault.file for part in ("triton", "cuda/")) else "not triton"
        for chosen in ([*forced, "-k", device], forced, rest):
            program = [sys.executable, "-m", "pytest", *touched, *chosen]
            done = subprocess.run(program, cwd=place, env=environment, capture_output=True, text=True, check=False)
            failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if failed:
                return failed[0][:200]
            if done.returncode not in (0, 5):  # 5: none was touched
                raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="faults whose names contain this")
    parser.add_argument("--slow", action="store_true", help="with the tests that take many minutes")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many faults at once")
    chosen = parser.parse_args(arguments)
    faults = [fault for fault in FAULTS if not chosen.only or any(part in fault.name for part in chosen.only)]

    def told(fault: Fault) -> bool:
        began = time.monotonic()
        found = verdict(fault, chosen.slow)
        print(f"{'found ' if found else 'MISSED'} {time.monotonic() - began:6.0f} s  {fault.name}: {found}", flush=True)
        return bool(found)

    with ThreadPoolExecutor(chosen.jobs) as pool:
        found = list(pool.map(told, faults))
    print(f"{sum(found)} of {len(faults)} faults found")
    return int(not all(found))


if __name__ == "__main__":
    sys.exit(main())
