"""Machine code read back, for what a compiler can get wrong.

ptxas 12.8 has been seen to compute the shared-memory address of a matrix product from uniform registers that nothing had written: the
result was wrong on every run, or the launch failed. Such a read can be found without a GPU.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

__all__ = ["disassembled", "run_tool", "unwritten"]

_LABEL = re.compile(r"^(\.L\w+):")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:(@\S+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TARGET = re.compile(r"`\((\.L\w+)\)")
_UNIFORM = re.compile(r"\bUR(\d+)\b")
_WRITERS = ("R2UR", "S2UR", "CS2UR", "LDCU", "VOTEU", "REDUX", "CREDUX")  # besides those whose name begins with U
_ENDS = ("EXIT", "RET", "BRA", "JMP", "BRX", "JMX", "KILL")


def run_tool(name: str, image: bytes, *options: str) -> str:
    """What one of the tools beside Triton's compiler says of machine code."""
    from triton.backends import nvidia

    tool = os.path.join(os.path.dirname(nvidia.__file__), "bin", name)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        return subprocess.run([tool, *options, file.name], capture_output=True, text=True, check=True).stdout


def disassembled(image: bytes) -> str:
    return run_tool("nvdisasm", image, "--print-code")


def unwritten(text: str) -> list[str]:
    """The instructions that read a uniform register which no way from the entry to them has written."""
    program = _parsed(text)
    labels = {label: place for place, (labels, *_) in enumerate(program) for label in labels}
    anything = set[int]().union(*(_writes(name, operands) for _, _, name, operands in program))
    written: list[set[int] | None] = [None] * len(program)
    waiting: list[tuple[int, set[int]]] = [(0, set())]
    while waiting:
        place, before = waiting.pop()
        while place < len(program):
            known = written[place]
            if known is not None and before <= known:
                break
            written[place] = before = before | (known or set())
            _, guard, name, operands = program[place]
            before = before | _writes(name, operands)
            waiting.extend((labels[target], before) for target in _TARGET.findall(operands) if target in labels)
            if name.startswith("CALL"):
                before = anything  # as far as one can tell without following it
            if name.split(".")[0] in _ENDS and guard is None:
                break
            place += 1
    return [
        f"{name} {operands}"
        for (_, _, name, operands), before in zip(program, written, strict=True)
        if before is not None and _reads(name, operands) - before
    ]


def _parsed(text: str) -> list[tuple[list[str], str | None, str, str]]:
    """Every instruction: the labels before it, its guard, name and operands."""
    program, labels = [], []
    for line in text.splitlines():
        if found := _LABEL.match(line):
            labels.append(found[1])
        elif found := _INSTRUCTION.match(line):
            program.append((labels, found[1], found[2], found[3].strip()))
            labels = []
    return program


def _target(name: str, operands: str) -> re.Match[str] | None:
    """The uniform register that an instruction writes: its first operand, or the second after a predicate."""
    if name.startswith("U") or name.split(".", maxsplit=1)[0] in _WRITERS:
        return re.match(r"(?:U?P\w+,\s*)?UR(\d+)\b", operands)
    return None


def _writes(name: str, operands: str) -> set[int]:
    if not (found := _target(name, operands)):
        return set()
    width = 4 if ".128" in name else 2 if "64" in name or ".WIDE" in name else 1
    return set(range(int(found[1]), int(found[1]) + width))


def _reads(name: str, operands: str) -> set[int]:
    found = _target(name, operands)
    rest = operands[found.end() :] if found else operands
    registers = {int(number) for number in _UNIFORM.findall(rest)}
    if name.startswith("HGMMA") and (place := re.search(r"gdesc\[UR(\d+)\]", rest)):
        # On Hopper, where both operands of a product lie, or only the second one.
        first, is_second_alone = int(place[1]), re.match(r"R\d+,\s*R\d+", rest) is not None
        registers = registers - {first} | set(range(first + 2 * is_second_alone, first + 4))
    return registers
