"""The entries of a native kernel, for the thread that leads a launch and for those that help it.

Python may raise (on Ctrl-C, say) between any two of its instructions, but not within a native call. So in one native call the leader
opens a gate, works, closes the gate and waits until everyone inside has left: when that call is over, no other thread touches the
operands any more, whatever is raised next. A helper that comes before the gate is open, or after it is closed, touches the gate alone.

Helpers take over the leader's floating-point mode (rounding, flush-to-zero) for as long as they are inside.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import c_int64
from typing import Any

__all__ = ["gate", "written"]

OPEN, CLOSED = 1 << 32, 1 << 33  # flags of the gate's first word; below them, how many helpers are inside
SPINS = 2000  # looks at the gate: some 50 µs
_Gate = c_int64 * 3  # the state, the leader's mode, a function that lets other threads run


def gate() -> Any:
    """The gate of one launch. Whoever may still look at it keeps it alive."""
    return _Gate(0, 0, _yield())


@functools.cache
def _yield() -> int:
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    of_system: Any = ctypes  # which has `windll` on Windows alone
    library = of_system.windll.kernel32 if sys.platform == "win32" else ctypes.CDLL(None)
    found = getattr(library, name, None)
    return 0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0


def written(body: str, parameters: int, triple: str) -> str:
    """The LLVM source of `<body>_lead` and `<body>_help`, which take a gate before the parameters of `body`."""
    names = [f"%a{each}" for each in range(parameters)]
    given = ", ".join(f"ptr {name}" for name in names)
    declarations, read, write, pause = _processor(triple)
    return f"""
{declarations}
declare void @{body}({", ".join(["ptr"] * parameters)})

define void @{body}_lead(ptr %gate, {given}) {{
begin:
  %mode.slot = alloca i64
  store i64 0, ptr %mode.slot
  {read.format(slot="%mode.slot", value="%mode")}
  %mode.word = load i64, ptr %mode.slot
  %mode.place = getelementptr i64, ptr %gate, i64 1
  store i64 %mode.word, ptr %mode.place
  %yield.place = getelementptr i64, ptr %gate, i64 2
  %yield = load ptr, ptr %yield.place
  %can.yield = icmp ne ptr %yield, null
  store atomic i64 {OPEN}, ptr %gate release, align 8
  call void @{body}({given}) #0
  %before = atomicrmw or ptr %gate, i64 {CLOSED} acq_rel
  br label %look
look:
  %looks = phi i64 [ 0, %begin ], [ %more, %again ]
  %state = load atomic i64, ptr %gate acquire, align 8
  %inside = trunc i64 %state to i32
  %is.empty = icmp eq i32 %inside, 0
  br i1 %is.empty, label %end, label %busy
busy:
  %more = add i64 %looks, 1
  %is.long = icmp ugt i64 %looks, {SPINS}
  %lets.others = and i1 %is.long, %can.yield
  br i1 %lets.others, label %others, label %spin
others:
  %ignored = call i32 %yield()
  br label %again
spin:
  {pause}
  br label %again
again:
  br label %look
end:
  ret void
}}

define void @{body}_help(ptr %gate, {given}) {{
begin:
  %own.slot = alloca i64
  %theirs.slot = alloca i64
  br label %look
look:
  %looks = phi i64 [ 0, %begin ], [ %more, %wait ]
  %state = load atomic i64, ptr %gate acquire, align 8
  %closed = and i64 %state, {CLOSED}
  %is.late = icmp ne i64 %closed, 0
  br i1 %is.late, label %end, label %early
early:
  %open = and i64 %state, {OPEN}
  %is.open = icmp ne i64 %open, 0
  br i1 %is.open, label %enter, label %again
again:
  %more = add i64 %looks, 1
  %is.over = icmp ugt i64 %more, {SPINS}
  br i1 %is.over, label %end, label %wait
wait:
  {pause}
  br label %look
enter:
  %before = atomicrmw add ptr %gate, i64 1 acq_rel
  %shut = and i64 %before, {CLOSED}
  %is.shut = icmp ne i64 %shut, 0
  br i1 %is.shut, label %leave, label %work
work:
  {read.format(slot="%own.slot", value="%own")}
  %mode.place = getelementptr i64, ptr %gate, i64 1
  %mode.word = load i64, ptr %mode.place
  store i64 %mode.word, ptr %theirs.slot
  {write.format(slot="%theirs.slot", value="%theirs")}
  call void @{body}({given}) #0
  {write.format(slot="%own.slot", value="%own.again")}
  br label %leave
leave:
  %last = atomicrmw sub ptr %gate, i64 1 acq_rel
  br label %end
end:
  ret void
}}

attributes #0 = {{ noinline }}
"""


def _processor(triple: str) -> tuple[str, str, str, str]:
    """What it takes to read and write a thread's floating-point mode, and to pause; nothing for processors that are not known here."""
    if triple.startswith(("x86_64", "i686", "i386")):
        declarations = (
            "declare void @llvm.x86.sse.stmxcsr(ptr)\ndeclare void @llvm.x86.sse.ldmxcsr(ptr)\ndeclare void @llvm.x86.sse2.pause()"
        )
        read, write = "call void @llvm.x86.sse.stmxcsr(ptr {slot})", "call void @llvm.x86.sse.ldmxcsr(ptr {slot})"
        return declarations, read, write, "call void @llvm.x86.sse2.pause()"
    if triple.startswith(("aarch64", "arm64")):
        declarations = (
            "declare i64 @llvm.aarch64.get.fpcr()\ndeclare void @llvm.aarch64.set.fpcr(i64)\ndeclare void @llvm.aarch64.hint(i32)"
        )
        read = "{value} = call i64 @llvm.aarch64.get.fpcr()\n  store i64 {value}, ptr {slot}"
        write = "{value} = load i64, ptr {slot}\n  call void @llvm.aarch64.set.fpcr(i64 {value})"
        return declarations, read, write, "call void @llvm.aarch64.hint(i32 1)"
    return "", "", "", ""
