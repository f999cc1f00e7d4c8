"""Ids as people write them: taken where Crossbar.io takes them."""

from __future__ import annotations

import json
import subprocess

from rig.node import Node, component, container, node
from rig.router import binary


def test_ids_with_dashes_and_capitals_work(tmp_path):
    workers = [
        {"id": "my-guest", "type": "guest", "executable": "sleep", "arguments": ["1000"]},
        {"id": "-db sync/2.0", "type": "guest", "executable": "sleep", "arguments": ["1000"]},
        container(component("Echo", id="Device-1.main"), id="WampADCP"),
        container(component("Echo", id="9", extra={"prefix": "com.other"}), id="--ü-1"),
    ]
    configuration = node(*workers)
    realm = configuration["workers"][0]["realms"][0]
    realm["id"] = "My Realm"
    realm["roles"][0]["id"] = "Role 1"
    started = Node(tmp_path, configuration)
    try:
        started.says("Ready; to stop")
        with started.management() as session:
            ids = session.call("crossbar.get_workers")
            assert set(ids) == {"worker1", *(worker["id"] for worker in workers)}
            for worker, name in (("WampADCP", "Device-1.main"), ("--ü-1", "9")):
                about = session.call(f"crossbar.worker.{worker}.get_component", name)
                assert about["id"] == name
            stopped = session.call("crossbar.stop_worker", "my-guest")
            assert stopped["id"] == "my-guest"
        assert started.stop() == 0
    finally:
        started.close()


def test_an_id_that_crossbar_cannot_start_is_refused_by_name(tmp_path):
    configuration = node(container(component("Echo"), id="orders.v2"))
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    command = [binary(), "check", "--cbdir", tmp_path]
    checked = subprocess.run(command, text=True, capture_output=True, timeout=60)
    assert checked.returncode == 1
    assert "without whitespace, . and #" in checked.stderr
    assert 'found the text "orders.v2"' in checked.stderr
