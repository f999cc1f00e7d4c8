"""Nodes of this build beside nodes of the build before, in one realm and one vhost.

No suite runs it, since it needs a program of an earlier build:
`CROSSTIE_BEFORE=PROGRAM python -m pytest conformance/versions/builds.py`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fabric.test_fabric_strict import register
from ledger.stage import crosstie, role
from rig.nats import cluster, jetstream
from rig.router import Router, binary
from rig.waiting import await_true

from versions.stage import PATIENCE_S, Cluster, loads, sessions

# A grant of a node that does not give it up.
LEASE_S = 40
# A program of an earlier build.
BEFORE = Path(os.environ.get("CROSSTIE_BEFORE", ""))


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Cluster]:
    """Three nodes of the build before, on three servers."""
    assert BEFORE.is_file(), f"CROSSTIE_BEFORE names no program of an earlier build: {BEFORE}"
    with contextlib.ExitStack() as closing:
        servers = cluster(tmp_path, 3, each=jetstream)
        for server in servers:
            closing.callback(server.close)
        made = Cluster(tmp_path, servers)
        closing.callback(made.close)
        made.begin(BEFORE)
        yield made


@pytest.mark.timeout(600)
def test_nodes_are_upgraded_one_by_one_and_back(whole: Cluster) -> None:
    for build in (binary(), BEFORE):
        for place in range(3):
            replace_under_load(whole, place, build)
            for node in whole.nodes:
                own(whole, node)
                whole.contents.change(whole.nodes)
                whole.go_on()
    whole.end()


def replace_under_load(whole: Cluster, place: int, build: Path) -> None:
    """Replace a node: calls between the others succeed, and each call to it is answered."""
    here, there = (other for other in range(3) if other != place)
    beside = loads(whole.nodes, [(here, there), (there, here)])
    to_it = loads(whole.nodes, [(here, place)], is_stopped=True)
    with sessions([whole.nodes[here]]) as (heir,):
        with sessions([whole.nodes[place]]) as (holder,):
            holder.register("com.held")
            assert heir.not_registered("com.held") == "wamp.error.procedure_already_exists"
            whole.replace(place, build)
        await_true("it is had elsewhere", lambda: register(heir, "com.held") == "", LEASE_S)
    for each in loads(whole.nodes, [(here, place), (place, here)]):
        each.end()
        assert each.failed == {}
    for each in beside:
        each.goes_on()
        each.end()
        assert each.failed == {}
    for each in to_it:
        each.end()
    whole.exchange()
    whole.go_on()


def own(whole: Cluster, node: Router) -> None:
    """Move the vhost to a node."""

    def is_owner() -> bool:
        for each in whole.nodes:
            if each is not node and role(each) == "owner":
                crosstie(each, "amqp", "move", "/", "--to", node.directory.name)
        return role(node) == "owner"

    await_true(f"{node.directory.name} owns the vhost", is_owner, PATIENCE_S)
