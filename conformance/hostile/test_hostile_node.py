"""Requests to a node without a login: pages, and places to connect to."""

from __future__ import annotations

import threading
import urllib.request
from pathlib import Path

from rig.rawsocket import RawSocket
from rig.router import binary


def test_pages_that_are_long_to_make(attacked):
    """Endless requests for them do not delay others' calls."""
    stage = attacked()
    with stage.peer() as peer:
        for number in range(1000):
            peer.call("queue.declare", queue=f"many{number}", exclusive=True, nowait=True)
        peer.round_trip()
        ending = threading.Event()
        faults: list[BaseException] = []

        def ask() -> None:
            host, port = stage.router.address("tcp")
            while not ending.is_set():
                try:
                    with urllib.request.urlopen(
                        f"http://{host}:{port}/metrics", timeout=40
                    ) as page:
                        assert page.read()
                except BaseException as error:
                    faults.append(error)
                    return

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for _ in range(2):
            stage.everybody_else_is_served()
        ending.set()
        for asker in askers:
            asker.join()
        assert not faults, faults
    stage.grew_at_most(64)


def test_more_connections_than_descriptors(attacked, tmp_path, monkeypatch):
    """Open sessions stay, and a free place goes to a new one."""
    few = tmp_path / "few"
    few.write_text(f'#!/bin/sh\nulimit -n 256 && exec {binary().resolve()} "$@"\n')
    few.chmod(0o755)
    monkeypatch.setenv("CROSSTIE", str(few))
    stage = attacked()
    kept = stage.session()
    idle = []
    while len(idle) < 300:
        # One address has only a part of what there is, so they have one of their own.
        connection = RawSocket.tcp(stage.router.address("tcp"), source="127.0.0.2")
        connection.socket.settimeout(5)
        idle.append(connection)
        try:
            connection.shake_hands()
        except Exception:
            break
    assert len(idle) < 300, "so many connections need more descriptors than there are"
    kept.round_trip()
    whys = ("for_descriptors", "of_address")
    assert sum(stage.metric(f"connections_refused_{why}_total") for why in whys) > 0
    for connection in idle:
        connection.close()
    assert len(list(Path(f"/proc/{stage.router.process.pid}/fd").iterdir())) <= 256
    stage.session().round_trip()
