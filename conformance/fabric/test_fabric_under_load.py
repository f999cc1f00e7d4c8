"""Failures under numbered calls and events: one answer for each call, and nothing out of order."""

from __future__ import annotations

import signal

from rig.waiting import await_true

from fabric.load import moves_to_another_server, server_of
from fabric.stage import await_neighbours, node_config


def test_a_server_of_three_that_is_killed(nats, start, load) -> None:
    servers = nats(3)
    moves = start(node_config([server.url for server in servers]))
    doomed = servers[server_of(moves, servers)]
    stay = [start(node_config([server.url])) for server in servers if server is not doomed]
    moves_to_another_server(moves, stay, load, doomed.kill)


def test_a_node_that_stands_still(nats, nodes, load) -> None:
    here, there, other = nodes(3, nats(3))
    stopped, beside = load(here, there), load(here, other)
    for each in (stopped, beside):
        each.goes_on()
    there.signal(signal.SIGSTOP)
    # It is missed, and calls to it end; others go on meanwhile.
    failed = len(stopped.failed)
    await_true("it is missed", lambda: here.metric("fabric_neighbours", state="suspected") == 1)
    await_true("calls to it end", lambda: len(stopped.failed) > failed)
    beside.goes_on()
    there.signal(signal.SIGCONT)
    await_neighbours([here, there, other])
    for each in (stopped, beside):
        each.goes_on()
    for each in (stopped, beside):
        each.end()
    assert beside.failed == {}
