"""The scenarios of the specification, with their sessions on three nodes of one realm."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from rig import config
from rig.router import ROOT, Router, binary

from fabric.stage import await_neighbours, node_config

HISTORY = "com.history.topic"
TICKETS = {"type": "static", "principals": {"joe": {"ticket": "t1", "role": "anonymous"}}}
SECRETS = {"type": "static", "users": {"ann": {"secret": "s1", "role": "anonymous"}}}


def configuration(server: str) -> dict:
    """Return a node as `crosstie conformance` wants it, and of a realm of several."""
    realm = {
        "roles": [config.role("anonymous", config.permission("*", disclose=True))],
        "store": {"type": "memory", "event-history": [{"uri": HISTORY, "limit": 100}]},
        "options": {"request_id_check": "strict", "on_leave": "specified"},
    }
    auth = {**config.static("anonymous"), "ticket": TICKETS, "wampcra": SECRETS}
    node = node_config([server], realm)
    node["workers"][0]["transports"] = [
        config.universal(
            "tcp", config.tcp(), rawsocket={"auth": auth}, websocket={"ws": {"auth": auth}}
        )
    ]
    return node


def judged(nodes: list[Router], tmp_path: Path) -> dict:
    """Play all scenarios, and return what was found."""
    ticket = tmp_path / "ticket"
    ticket.write_text("t1\n")
    given = {"ticket_authid": "joe", "ticket": f"@{ticket}", "wampcra_authid": "ann"}
    given |= {"history_topic": HISTORY, "kill_all": "yes", "links": "yes"}
    first, *others = (
        next(url for url in node.urls("tcp") if url.startswith("ws:")) for node in nodes
    )
    command = [str(binary()), "conformance", first, "--patience", "3s", "--plays", "1", "--json"]
    command += [word for url in others for word in ("--also", url)]
    command += [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    ran = subprocess.run(command, text=True, capture_output=True, timeout=600)
    return json.loads(ran.stdout)


def documented() -> set[tuple[str, str]]:
    """Return what docs/fabric.md says that differs: files and sentences."""
    page = (ROOT / "docs/fabric.md").read_text()
    _, _, section = page.partition("## By the specification's scenarios")
    rows = re.findall(r"(?m)^\| (`.*`) \| (.*) \|$", section.partition("\n## ")[0])
    return {(file, why) for files, why in rows for file in re.findall(r"`([^`]+)`", files)}


def test_the_scenarios_over_three_nodes(nats, start, tmp_path: Path) -> None:
    (server,) = nats()
    nodes = [start(configuration(server.url)) for _ in range(3)]
    await_neighbours(nodes)
    judgement = judged(nodes, tmp_path)
    wrong, by_node = [], set()
    for feature in judgement["features"]:
        for scenario in feature["scenarios"]:
            if scenario["verdict"] in ("fails", "undecided"):
                wrong.append((feature["file"], scenario))
            elif scenario["verdict"] == "by-node":
                by_node.add((feature["file"], scenario["why"][0]))
    assert wrong == []
    assert by_node <= documented()
    assert len(judgement["also"]) == 2
    assert judgement["counts"]["passes"] + judgement["own_counts"]["passes"] > 160
