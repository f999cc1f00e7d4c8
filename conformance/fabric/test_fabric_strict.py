"""A procedure for one callee has one, whatever becomes of nodes: `single` is `strict`."""

from __future__ import annotations

import json
import urllib.request

import pytest
from rig.nats import jetstream, stream_leader
from rig.ports import free_ports
from rig.relay import Relay
from rig.session import ERROR, REGISTERED
from rig.waiting import DEADLINE_S, await_true

from fabric.stage import Session, await_neighbours, node_config

STRICT = {"single": "strict", "single_replicas": 3}


def connections(monitor: int) -> set[int]:
    """Return the numbers that a server has given to its clients' connections."""
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/connz", timeout=DEADLINE_S) as page:
        return {each["cid"] for each in json.load(page)["connections"]}


def register(session: Session, procedure: str) -> str:
    """Register, and return why not, or nothing."""
    session.tell_register(procedure)
    answer = session.peer.hear_any()
    if answer[0] == REGISTERED:
        return ""
    assert answer[0] == ERROR, answer
    return answer[4]


def test_one_of_two_has_it(nats, nodes, session) -> None:
    here, there = nodes(2, nats(3, each=jetstream), **STRICT)
    first, second = session(here), session(there)
    registration = first.register("com.single")
    assert register(second, "com.single") == "wamp.error.procedure_already_exists"
    second.call("com.single", 1)
    first.answer(first.invocation(), "first")
    assert second.result()[3] == ["first"]
    first.unregister(registration)
    # It may be that what it had is given up a little later.
    assert register(second, "com.single") == ""
    for number in range(50):
        for each in (first, second):
            each.tell_register(f"com.race{number}")
        answers = [each.peer.hear_any()[0] for each in (first, second)]
        assert sorted(answers) == [ERROR, REGISTERED], number
    # Realms that do not need it work without.
    first.register("com.shared", invoke="roundrobin")
    second.register("com.shared", invoke="roundrobin")
    granted = sum(node.metric("fabric_claims_total", outcome="granted") for node in (here, there))
    assert granted == 52


def test_a_stopped_nodes_procedures_are_had_at_once(nats, nodes, session) -> None:
    here, stopped = nodes(2, nats(3, each=jetstream), **STRICT)
    heir, holder = session(here), session(stopped)
    for number in range(200):
        holder.register(f"com.single{number}")
    stopped.stop()
    for number in range(200):
        assert register(heir, f"com.single{number}") == ""


def test_a_dead_nodes_procedures_are_had_when_its_lease_is_over(nats, nodes, session) -> None:
    (port,) = free_ports(1)
    servers = nats(1, each=lambda name: jetstream(name, monitor=port))
    here, doomed = nodes(2, servers, single="strict", single_replicas=1)
    waiting = session(here)
    session(doomed).register("com.single")
    doomed.kill()
    await_neighbours([here], 0)
    connected = connections(port)
    refused = []

    def is_registered() -> bool:
        refused.append(register(waiting, "com.single"))
        return refused[-1] == ""

    # The REGISTER waits for that, unless the machine is too busy.
    await_true("its lease is over", is_registered, 40)
    # Its own has been renewed meanwhile, over the connection that it had.
    assert connections(port) == connected
    assert set(refused[:-1]) <= {"wamp.error.network_failure"}


def test_a_claim_without_a_server_waits_for_one(nats, nodes, session) -> None:
    (server,) = nats(1, each=jetstream)
    (node,) = nodes(1, [server], single="strict", single_replicas=1)
    holder = session(node)
    holder.register("com.single")
    server.kill()
    node.await_log(lambda line: "no NATS server is reached" in line.text)
    holder.tell_register("com.waiting")
    server.start()
    assert holder.peer.hear_any()[0] == REGISTERED


def test_a_registration_waits_for_an_election(nats, start, session) -> None:
    servers = nats(3, each=jetstream)
    node = start(node_config([server.url for server in servers], **STRICT))
    holder = session(node)
    holder.register("com.before")
    stream_leader(servers, "W1_realm1").kill()
    # A heartbeat of the lease comes later: the claim itself meets servers without a leader.
    for number in range(3):
        assert register(holder, f"com.during{number}") == ""


def test_a_registration_beside_a_renewal_without_an_answer_is_granted(nats, start, session) -> None:
    """A renewal gets no answer in time, so that the bucket is looked for; the next one does."""
    (server,) = nats(1, each=jetstream)
    sent = bytearray()
    relay = Relay((server.host, server.port), look=lambda _relayed, octets: sent.extend(octets))
    url = "nats://{}:{}".format(*relay.address)
    node = start(node_config([url], single="strict", single_replicas=1))
    holder = session(node)
    holder.register("com.before")
    relay.hold_answers()
    sent.clear()
    await_true("the lease is renewed", lambda: b"Nats-TTL" in sent)
    holder.tell_register("com.beside")
    await_true("the bucket is looked for", lambda: b"STREAM.MSG.GET" in sent)
    relay.go_on()
    assert holder.peer.hear_any()[0] == REGISTERED
    relay.close()


def test_without_a_majority_nothing_is_granted_and_nothing_kept(nats, nodes, session) -> None:
    servers = nats(3, each=jetstream)
    (node,) = nodes(1, servers, **STRICT)
    holder, other = session(node), session(node)
    holder.register("com.single")
    for server in servers[1:]:
        server.kill()
    assert register(other, "com.new") == "wamp.error.network_failure"
    other.register("com.shared", invoke="roundrobin")
    # After 15 seconds without a renewal another node might be granted it soon.
    assert holder.is_sent_away()
    status, text = node.health()
    assert (status, "no procedure is granted for one callee" in text) == (200, True)
    assert other.refused("com.single") == "wamp.error.no_such_procedure"
    for server in servers[1:]:
        server.start()
    await_true("it is granted again", lambda: register(other, "com.single") == "", 60)
    assert node.health() == (200, "ok\n")


@pytest.mark.parametrize("way", ["DELETE", "PURGE"])
def test_a_bucket_that_is_wiped_is_written_anew(way, nats, nodes, session) -> None:
    """A node loses the grants of a wiped bucket before another node gets one."""
    servers = nats(1, each=jetstream)
    here, there = nodes(2, servers, single="strict", single_replicas=1)
    holder, other = session(here), session(there)
    holder.register("com.single")
    with servers[0].client() as client:
        assert client.ask(f"$JS.API.STREAM.{way}.W1_realm1", {})["success"]
    assert holder.is_sent_away()
    await_true("it is had elsewhere", lambda: register(other, "com.single") == "", 30)
    third = session(here)
    assert register(third, "com.single") == "wamp.error.procedure_already_exists"
    await_true("others are granted", lambda: register(third, "com.other") == "", 30)


def test_one_node_that_serves_fast_beside_it(nats, start, session) -> None:
    (server,) = nats(1)
    node = start(node_config([server.url], single="fast"))
    session(node).register("com.single")
    assert node.metric("fabric_claims_total", outcome="granted") == 0
