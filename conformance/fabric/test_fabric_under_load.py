"""Failures under numbered calls and events: one answer for each call, and nothing out of order."""

from __future__ import annotations

import signal

from rig.waiting import await_true

from fabric.stage import await_neighbours, node_config


def test_a_server_of_three_that_is_killed(nats, start, load) -> None:
    servers = nats(3)
    moves = start(node_config([server.url for server in servers]))
    # It begins with one of chance; the others stay on those that are left.
    on = moves.await_log(lambda line: "on NATS server" in line.text).text
    (doomed,) = (server for server in servers if f"'{server.name}'" in on)
    stay = [start(node_config([server.url])) for server in servers if server is not doomed]
    found = [moves, *stay]
    await_neighbours(found)
    driven = [load(found[0], found[1]), load(found[1], found[2])]
    for each in driven:
        each.goes_on()
    doomed.kill()
    await_true("it moves", lambda: moves.metric("fabric_attachments_total") == 2)
    await_true("it is there", lambda: moves.metric("fabric_attached") == 1)
    await_neighbours(found)
    for each in driven:
        each.goes_on()
    # The one whose nodes were on other servers has not been disturbed.
    assert driven[1].failed == {}
    for each in driven:
        each.end()


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
