"""Time reloads of 1,000 roles and 10,000 principals, and a witness's longest wait beside them.

CROSSTIE=PROGRAM PYTHONPATH=conformance target/venv/bin/python conformance/scripts/reload_figures.py

`--dry` reads, checks and compares the configurations, and applies nothing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

from rig.node import Node
from rig.rawsocket import RawSocket

ROLES, PRINCIPALS, RELOADS = 1_000, 10_000, 10
ALL = {"call": True, "register": True, "publish": True, "subscribe": True}


def configuration(number: int) -> dict:
    """Return one whose every role, and every second principal, differs by the number."""

    def role(name: str, uri: str) -> dict:
        return {"name": name, "permissions": [{"uri": uri, "allow": ALL}]}

    def transport(name: str, auth: dict) -> dict:
        endpoint = {"type": "unix", "path": f"{name}.sock"}
        return {"type": "rawsocket", "id": name, "endpoint": endpoint, "auth": auth}

    roles = [role(f"role{i}", f"com.r{i}.v{number}") for i in range(ROLES)]
    principals = {
        f"user{i}": {
            "ticket": f"secret{i}v{number if i % 2 else 0}",
            "role": f"role{i % ROLES}",
        }
        for i in range(PRINCIPALS)
    }
    router = {
        "type": "router",
        "realms": [{"name": "realm1", "roles": [*roles, role("anonymous", "*")]}],
        "transports": [
            transport("many", {"ticket": {"type": "static", "principals": principals}}),
            transport("node", {"anonymous": {"type": "static", "role": "anonymous"}}),
        ],
    }
    return {"version": 2, "workers": [router]}


def witness(path: Path, ended: multiprocessing.Event, longest: multiprocessing.Value) -> None:
    """Make round trips until the end, in a process that nothing of the operator's holds up."""
    peer = RawSocket.unix(path).shake_hands().join()
    while not ended.wait(0.001):
        begun = time.perf_counter()
        peer.round_trip()
        longest.value = max(longest.value, time.perf_counter() - begun)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true")
    is_dry = parser.parse_args().dry
    ended, longest = multiprocessing.Event(), multiprocessing.Value("d", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder), configuration(0))
        node.says("^Ready")
        beside = multiprocessing.Process(
            target=witness, args=(Path(folder) / "node.sock", ended, longest)
        )
        beside.start()
        operator = node.management()
        operator.socket.settimeout(60)
        took = []
        for number in range(1, RELOADS + 1):
            (Path(folder) / "config.json").write_text(json.dumps(configuration(number)))
            begun = time.perf_counter()
            told = operator.call("crossbar.reload", is_dry)
            took.append(time.perf_counter() - begun)
            assert told["applied"] != is_dry, told
        ended.set()
        beside.join()
        node.stop()
    print(f"changes {len(told['changes'])}; reload {statistics.median(took) * 1e3:.0f} ms", end="")
    print(f" (at most {max(took) * 1e3:.0f}); witness at most {longest.value * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
