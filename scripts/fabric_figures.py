"""Memory of topics and procedures of a realm on two nodes, on the nodes and on NATS servers.

    target/venv/bin/python scripts/fabric_figures.py topics [--count 96000] [--servers 3]
    target/venv/bin/python scripts/fabric_figures.py procedures

Sessions of the one node ask for so many, of 30 bytes; then each process's resident memory is looked
at, and how much of it there was before is taken away. CROSSTIE is the binary
(target/debug/crosstie); `make test` has installed the server of NATS.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "conformance"))

from fabric.stage import Session, await_neighbours, node_config  # noqa: E402
from rig.nats import cluster  # noqa: E402
from rig.router import Router  # noqa: E402
from rig.session import REGISTER, REGISTERED, SUBSCRIBE, SUBSCRIBED  # noqa: E402

# A session may have 10,000 of them.
EACH = 6_000
WINDOW = 256
ASKED = {"topics": (SUBSCRIBE, SUBSCRIBED), "procedures": (REGISTER, REGISTERED)}


def main() -> None:
    """Measure one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=ASKED)
    parser.add_argument("--count", type=int, default=96_000)
    parser.add_argument("--servers", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(asked, Path(name))


def measure(asked: argparse.Namespace, directory: Path) -> None:
    """Start everything, ask, and say what that took."""
    servers = cluster(directory, asked.servers)
    nodes = []
    try:
        for number in range(2):
            place = directory / f"node{number}"
            place.mkdir()
            nodes.append(Router(place, config=node_config([servers[number % len(servers)].url])))
        await_neighbours(nodes)
        processes = {"its node": nodes[0].process, "the other": nodes[1].process}
        processes |= {server.name: server.process for server in servers}
        before = {who: resident(process.pid) for who, process in processes.items()}
        begun = time.monotonic()
        sessions = []
        for first in range(0, asked.count, EACH):
            sessions.append(Session(nodes[0]))
            ask(sessions[-1], asked.what, range(first, min(first + EACH, asked.count)))
        taken_s = time.monotonic() - begun
        print(f"{asked.count} {asked.what}, {asked.count / taken_s:.0f} a second; bytes for each:")
        for who, process in processes.items():
            print(f"  {who}: {(resident(process.pid) - before[who]) / asked.count:.0f}")
    finally:
        for node in nodes:
            node.stop()
        for server in servers:
            server.close()


def ask(session: Session, what: str, numbers: range) -> None:
    """Subscribe or register so many, a window of them unanswered."""
    kind, answer = ASKED[what]
    for first in range(0, len(numbers), WINDOW):
        framed = []
        for request, number in enumerate(numbers[first : first + WINDOW], first + 1):
            name = f"com.example.device.n{number:06d}.x"
            octets = json.dumps([kind, request, {}, name]).encode()
            framed.append(len(octets).to_bytes(4, "big") + octets)
        session.peer.socket.sendall(b"".join(framed))
        for _ in framed:
            session.peer.hear(answer)


def resident(process: int) -> int:
    """Return bytes of a process's memory."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    os.environ.setdefault("CROSSTIE", str(ROOT / "target/debug/crosstie"))
    main()
