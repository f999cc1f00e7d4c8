"""HAProxy, as a load balancer in front of the router under test."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

from rig.waiting import await_true

PROGRAM = shutil.which("haproxy") or "/usr/sbin/haproxy"


def obstacle() -> str:
    """Why there is none; empty where it can run."""
    return "" if Path(PROGRAM).exists() else "there is no haproxy"


CHECKS = ["option httpchk GET /ws", "http-check expect status 200"]


class HAProxy:
    """One process, which has a port for each list of words on a `server` line."""

    def __init__(self, directory: Path, server: tuple[str, int], *words: str, mode: str = "http"):
        self.ports: dict[str, int] = {}
        parts = ["defaults", f"mode {mode}"]
        parts += [f"timeout {of} 60s" for of in ("connect", "client", "server", "tunnel")]
        for number, each in enumerate(words):
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.ports[each] = free.getsockname()[1]
            parts += [
                f"listen l{number}",
                f"bind 127.0.0.1:{self.ports[each]}",
                *(CHECKS if mode == "http" else []),
                f"server one {server[0]}:{server[1]} {each}",
            ]
        configuration = directory / "haproxy.cfg"
        configuration.write_text("\n".join([*parts, ""]))
        self.process = subprocess.Popen(
            [PROGRAM, "-f", str(configuration)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for port in self.ports.values():
            await_true("haproxy listens", lambda port=port: is_open(port))

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


def is_open(port: int) -> bool:
    """Whether a server listens at a port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
