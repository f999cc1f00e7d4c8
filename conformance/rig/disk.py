"""A traced process's disk: what it wrote and synced, when, and what a loss of power leaves of it.

`Trace` reads what strace wrote of a process that was started by `tracing`. `Trace.crash` writes
the files as a disk would have them that lost power at a moment: what was synced, and of the rest
whatever chance says, in sectors.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# A sector is written as a whole, or not at all.
SECTOR = 512
CALLS = (
    "openat,pwrite64,write,writev,fsync,fdatasync,ftruncate,link,linkat,rename,renameat,"
    "renameat2,unlink,unlinkat,sendto,sendmsg"
)
SYNCS = ("fsync", "fdatasync")
SENDS = ("sendto", "sendmsg", "write", "writev")
# A method frame on channel 1 with basic.ack, its tag, and whether it means those before, too.
ACK = re.compile(rb"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50(.{8})([\x00\x01])\xce", re.DOTALL)


def is_available() -> bool:
    """Whether processes can be traced here."""
    return shutil.which("strace") is not None


def tracing(directory: Path, program: Path) -> tuple[Path, Path]:
    """Return a program that is `program` under strace, and where the trace goes.

    The tracer is a child of the traced process, which so keeps its number.
    """
    wrapper, trace = directory / "traced", directory / "trace"
    wrapper.write_text(
        "#!/bin/sh\n"
        f"exec strace -D -f -y -xx -s 10000000 -e trace={CALLS} -o '{trace}' '{program}' \"$@\"\n"
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return wrapper, trace


@dataclass
class Call:
    """A system call that succeeded: the lines of the trace where it began and ended."""

    name: str
    began: int
    ended: int
    arguments: str
    result: int

    @property
    def path(self) -> str:
        """The file whose descriptor comes first."""
        found = re.match(r"\w+<([^>]*)>", self.arguments)
        return plain(found[1]).decode() if found else ""

    @property
    def texts(self) -> list[bytes]:
        """Every text among the arguments."""
        return [plain(text) for text in re.findall(r'"([^"]*)"', self.arguments)]

    @property
    def last_number(self) -> int:
        """The last argument."""
        return int(self.arguments.rsplit(",", 1)[1])


@dataclass
class File:
    """A file: what is on the disk for sure, and the writes since."""

    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """Everything is on the disk."""
        self.synced = self.content(lambda _sector: True)
        self.unsynced.clear()

    def content(self, survives) -> bytearray:
        """Return it with those sectors of its unsynced writes that survive."""
        content = bytearray(self.synced)
        for offset, data in self.unsynced:
            if data is None:
                if survives(offset):
                    del content[offset:]
                continue
            for start, piece in sectors(offset, data):
                if survives(start):
                    content.extend(bytes(max(0, start + len(piece) - len(content))))
                    content[start : start + len(piece)] = piece
        return content


class Trace:
    """Everything that a process did to its disk and said to its peers."""

    def __init__(self, path: Path):
        self.calls = list(parse(path.read_text()))

    def confirms(self) -> list[tuple[int, int, bool]]:
        """Return each confirm: the line where its sending began, its tag, whether for several."""
        found = []
        for call in self.calls:
            if call.name in SENDS and not call.path.startswith("/"):
                for match in ACK.finditer(b"".join(call.texts)):
                    tag = int.from_bytes(match[1], "big")
                    found.append((call.began, tag, match[2] == b"\1"))
        return found

    def synced_at(self, marker: bytes, store: str) -> int:
        """Return the line where a sync of a write ended that has `marker`; such a write was first.

        That the sync began after the write ended is what makes it a sync of it.
        """
        written, file = min(
            (call.ended, call.path)
            for call in self.calls
            if call.name == "pwrite64" and call.path.startswith(store) and marker in call.texts[0]
        )
        return min(
            call.ended
            for call in self.calls
            if call.name in SYNCS and call.path == file and call.began > written
        )

    def moments(self, store: str) -> list[int]:
        """Return the lines right before and after each call that changes the store's disk."""
        lines = set()
        for call in self.calls:
            is_zeros = call.path.endswith(".spare")
            if call.name in ("pwrite64", *SYNCS) and call.path.startswith(store) and not is_zeros:
                lines |= {call.began, call.ended}
        return sorted(lines)

    def crash(self, moment: int, store: str, into: Path, chance: random.Random) -> None:
        """Write the store's files as they would be if the power had gone at that line.

        Chance decides which unsynced writes survive, and which names of unsynced directories.
        """
        files: dict[str, File] = {}
        # Names in the directory: those on the disk, and those of the system.
        names: dict[str, File] = {}
        synced_names: dict[str, File] = {}
        for call in self.calls:
            if call.began >= moment:
                break
            is_done = call.ended < moment
            self._replay(call, is_done, store, files, names, synced_names)
        surviving = names if chance.random() < 0.5 else synced_names
        odds = chance.choice([0.0, 0.5, 0.9, 1.0])
        into.mkdir(parents=True, exist_ok=True)
        for name, file in surviving.items():
            content = file.content(lambda _sector: chance.random() < odds)
            place = into / os.path.relpath(name, os.path.dirname(store))
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)

    def _replay(self, call, is_done, store, files, names, synced_names) -> None:
        paths = [text.decode(errors="replace") for text in call.texts[:2]]
        if call.name == "openat" and paths[0].startswith(store) and "O_CREAT" in call.arguments:
            names.setdefault(paths[0], files.setdefault(paths[0], File()))
        elif call.name == "pwrite64" and call.path.startswith(store):
            file = names.setdefault(call.path, File())
            file.unsynced.append((call.last_number, call.texts[0]))
        elif call.name == "ftruncate" and call.path.startswith(store):
            names.setdefault(call.path, File()).unsynced.append((call.last_number, None))
        elif call.name in SYNCS and is_done and call.path in names:
            names[call.path].sync()
        elif call.name in SYNCS and is_done and call.path.startswith(os.path.dirname(store)):
            for known in (synced_names, names):
                of_directory = [name for name in known if os.path.dirname(name) == call.path]
                for name in of_directory:
                    synced_names.pop(name, None)
                    if known is names:
                        synced_names[name] = names[name]
        elif call.name in ("link", "linkat") and paths[0].startswith(store):
            names[paths[1]] = names[paths[0]]
        elif call.name.startswith("rename") and paths[0] in names:
            names[paths[1]] = names.pop(paths[0])
        elif call.name.startswith("rename") and paths[0].startswith(store):
            # A directory, which takes its files along: all of them, or none.
            for known in (names, synced_names):
                for name in [name for name in known if os.path.dirname(name) == paths[0]]:
                    known[os.path.join(paths[1], os.path.basename(name))] = known.pop(name)
        elif call.name.startswith("unlink") and paths[0].startswith(store):
            names.pop(paths[0], None)
            files.pop(paths[0], None)


def sectors(offset: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Cut a write where sectors end."""
    at = 0
    while at < len(data):
        length = SECTOR - (offset + at) % SECTOR
        yield offset + at, data[at : at + length]
        at += length


def plain(text: str) -> bytes:
    """Return what a text in the trace's hexadecimal form is."""
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()


def parse(text: str) -> Iterator[Call]:
    """Read a trace, in the order in which the calls began; those that failed are left out."""
    open_calls: dict[str, tuple[str, int, str]] = {}
    found = []
    for number, line in enumerate(text.splitlines()):
        process, _, rest = line.partition(" ")
        rest = rest.strip()
        if resumed := re.match(r"<\.\.\. (\w+) resumed>(.*)", rest):
            name, began, arguments = open_calls.pop(process, (resumed[1], number, ""))
            rest = resumed[2]
        elif called := re.match(r"(\w+)\((.*)", rest):
            name, began, arguments = called[1], number, ""
            rest = called[2]
        else:
            continue
        if rest.endswith("<unfinished ...>"):
            open_calls[process] = (name, began, rest.removesuffix("<unfinished ...>"))
            continue
        ended = re.match(r"(.*)\)\s+= (-?\d+)", rest)
        if ended and int(ended[2]) >= 0:
            found.append(Call(name, began, number, arguments + ended[1], int(ended[2])))
    # What never ended was under way when the process was killed: it may have had its effect.
    for name, began, arguments in open_calls.values():
        found.append(Call(name, began, 1 << 60, arguments.strip().rstrip(","), 0))
    return iter(sorted(found, key=lambda call: call.began))
