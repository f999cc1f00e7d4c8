"""The kernel's data of a process, in the fields of Crossbar.io's `ProcessInfo`. Linux only."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_OCTETS = os.sysconf("SC_PAGE_SIZE")
STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk-sleep",
    "T": "stopped",
    "t": "tracing-stop",
    "Z": "zombie",
    "X": "dead",
    "I": "idle",
}
# Families and types of sockets by the files of /proc/<pid>/net that list them.
INTERNET = {"tcp": "tcp4", "tcp6": "tcp6", "udp": "udp4", "udp6": "udp6"}


class ProcessInfo:
    """Statistics of one process, by default of this."""

    def __init__(self, pid: int | None = None):
        self._pid = pid or os.getpid()
        self._folder = Path("/proc") / str(self._pid)
        self._stat()
        # The share of a processor is one between two questions.
        self._asked_s = time.monotonic()
        self._used_s = self._processor_s()

    @property
    def cpus(self) -> list[int]:
        """The processors that it may run on."""
        return sorted(os.sched_getaffinity(self._pid))

    def get_stats(self) -> dict:
        """Return what it has used so far."""
        stat, status = self._stat(), self._fields("status")
        user_s, system_s = self._times(stat)
        now_s, used_s = time.monotonic(), user_s + system_s
        elapsed_s = now_s - self._asked_s
        cpu_percent = 100 * (used_s - self._used_s) / elapsed_s if elapsed_s > 0 else 0.0
        self._asked_s, self._used_s = now_s, used_s
        resident = int(stat[21]) * PAGE_OCTETS
        io = self._io()
        return {
            "ts": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "time": time.time_ns(),
            "pid": self._pid,
            "status": STATES.get(stat[0], stat[0]),
            "voluntary": int(status["voluntary_ctxt_switches"]),
            "nonvoluntary": int(status["nonvoluntary_ctxt_switches"]),
            "user": user_s,
            "system": system_s,
            "cpu_percent": cpu_percent,
            "resident": resident,
            "virtual": int(stat[20]),
            "mem_percent": 100 * resident / (os.sysconf("SC_PHYS_PAGES") * PAGE_OCTETS),
            "reads": io.get("syscr"),
            "writes": io.get("syscw"),
        }

    def get_info(self) -> dict:
        """Return what it has open."""
        return {
            "descriptors": len(self._descriptors()),
            "threads": int(self._fields("status")["Threads"]),
            "files": self.open_files(),
            "sockets": self.open_sockets(),
        }

    def open_files(self) -> list[str]:
        """Return the paths of the files it has open."""
        return sorted(path for path in self._descriptors() if os.path.isfile(path))

    def open_sockets(self) -> list[dict]:
        """Return its sockets: type, addresses, state."""
        inodes = {path[8:-1] for path in self._descriptors() if path.startswith("socket:[")}
        found = []
        for file, kind in INTERNET.items():
            for row in self._rows(file):
                if row[9] in inodes:
                    local, remote = (address(text) for text in row[1:3])
                    state = TCP_STATES.get(row[3], "NONE") if file.startswith("tcp") else "NONE"
                    found.append({"type": kind, "local": local, "remote": remote, "status": state})
        for row in self._rows("unix"):
            if row[6] in inodes:
                path = row[7] if len(row) > 7 else ""
                found.append({"type": "unix", "local": path, "remote": "", "status": "NONE"})
        return found

    def _stat(self) -> list[str]:
        """Return the fields of `stat` from the third, the state, on."""
        # The name before it is in parentheses, and may have any in it.
        return (self._folder / "stat").read_text().rpartition(")")[2].split()

    def _times(self, stat: list[str]) -> tuple[float, float]:
        return int(stat[11]) / TICKS_PER_SECOND, int(stat[12]) / TICKS_PER_SECOND

    def _processor_s(self) -> float:
        return sum(self._times(self._stat()))

    def _fields(self, file: str) -> dict[str, str]:
        lines = (self._folder / file).read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def _io(self) -> dict[str, int]:
        try:
            return {name: int(value) for name, value in self._fields("io").items()}
        except PermissionError:
            # Another user's process; or a sandbox that keeps it to itself.
            return {}

    def _descriptors(self) -> list[str]:
        paths = []
        for link in (self._folder / "fd").iterdir():
            try:
                paths.append(os.readlink(link))
            except FileNotFoundError:
                # Closed meanwhile: most likely the one that lists this folder.
                continue
        return paths

    def _rows(self, file: str) -> list[list[str]]:
        try:
            lines = (self._folder / "net" / file).read_text().splitlines()[1:]
        except FileNotFoundError:
            return []
        return [line.split() for line in lines]


TCP_STATES = {
    f"{number:02X}": name
    for number, name in enumerate(
        [
            "ESTABLISHED",
            "SYN_SENT",
            "SYN_RECV",
            "FIN_WAIT1",
            "FIN_WAIT2",
            "TIME_WAIT",
            "CLOSE",
            "CLOSE_WAIT",
            "LAST_ACK",
            "LISTEN",
            "CLOSING",
        ],
        start=1,
    )
}


def address(text: str) -> str:
    """Turn the kernel's `0100007F:2328` into `127.0.0.1:9000`; nothing where there is no peer."""
    import ipaddress

    number, _, port = text.partition(":")
    # Words of 32 bits, each in the machine's own order of bytes.
    words = [bytes.fromhex(number[at : at + 8])[::-1] for at in range(0, len(number), 8)]
    if int(port, 16) == 0:
        return ""
    return f"{ipaddress.ip_address(b''.join(words))}:{int(port, 16)}"
