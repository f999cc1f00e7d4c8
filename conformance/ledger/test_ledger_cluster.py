"""What `crosstie cluster init --vhost` makes is enough to start servers and nodes from."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rig.nats import NatsServer, free_ports
from rig.router import Router, binary

from ledger.stage import node_config, survives_its_owner


def test_what_is_made_works(tmp_path: Path, request) -> None:
    """Three servers, two nodes, keys of their own; servers are asked whether they write at once."""
    settings = node_config([])
    del settings["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    (tmp_path / "nodes.json").write_text(json.dumps(settings))
    ports = free_ports(6)
    made = tmp_path / "cluster"
    arguments = ["init", made, "--config", tmp_path / "nodes.json", "--vhost", "/"]
    arguments += ["--node", "a", "--node", "b"]
    for port, route in zip(ports[:3], ports[3:], strict=True):
        arguments += ["--server", f"127.0.0.1:{port}", "--route-port", route]
    command = [str(binary()), "cluster", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for place, port in enumerate(ports[:3], 1):
        server = NatsServer.configured(made / f"nats{place}", port)
        request.addfinalizer(server.close)
    nodes = []
    for name in "ab":
        nodes.append(Router(made / name, "--cbdir", "."))
        request.addfinalizer(nodes[-1].kill)
    survives_its_owner(nodes, Router.kill)
    replicated = json.loads((made / "a/config.json").read_text())
    replicated = replicated["workers"][0]["amqp"]["vhosts"][0]["replicated"]
    assert replicated["monitor"] == [f"http://127.0.0.1:{port + 4000}" for port in ports[:3]]
