"""Stops one thread of another process, as a debugger does."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
# waitpid() for threads, too.
WALL = 0x40000000


def thread(pid: int, name: str) -> int:
    """Return the id of the thread with this name."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise LookupError(f"process {pid} has no thread {name}")


@contextlib.contextmanager
def stopped(thread_id: int) -> Iterator[None]:
    """Keep a thread from running; to be left by the thread of the caller that entered."""
    trace(PTRACE_SEIZE, thread_id)
    try:
        trace(PTRACE_INTERRUPT, thread_id)
        os.waitpid(thread_id, WALL)
        yield
    finally:
        trace(PTRACE_DETACH, thread_id)


def trace(request: int, thread_id: int) -> None:
    """Make one request of ptrace(2)."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long
    if library.ptrace(request, thread_id, None, None) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace request {request:#x}")
