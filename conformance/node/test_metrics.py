"""`/metrics`: what is told, in which form, and that the documentation says what it means."""

from __future__ import annotations

import re
import socket

import pytest
from rig import certificates, config
from rig.amqp_peer import Peer
from rig.rawsocket import RawSocket
from rig.router import ROOT
from rig.scraped import ask, described, everything
from rig.session import CALL, ERROR, GOODBYE

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SAMPLE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")


def test_every_metric_is_in_the_documentation_and_the_other_way_round(start_router, tmp_path):
    node = everything()
    certificates.write(tmp_path)
    node["workers"][0]["transports"].append(config.universal("secure", config.tls(tmp_path)))
    router = start_router(node)
    documented = re.findall(r"(?m)^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text())
    assert len(documented) == len(set(documented))
    with Peer(socket.create_connection(router.address("amqp"))).open("guest", "guest") as client:
        client.channel()
        client.call("queue.declare", queue="watched")
        client.expect("queue.declare-ok")
        _, text = ask(router, None)
    # Those of realms and vhosts of several nodes are compared where there are such.
    shared = ("crosstie_fabric_", "crosstie_ledger_")
    documented = [name for name in documented if not name.startswith(shared)]
    assert set(documented) == set(described(text))


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("text/plain;version=0.0.4", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", OPENMETRICS),
    ],
)
def test_the_form_is_the_one_that_is_asked_for(start_router, accept, expected):
    router = start_router(everything())
    kind, text = ask(router, accept)
    assert kind == expected
    assert text.endswith("# EOF\n") == (expected == OPENMETRICS)
    types = described(text)
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = SAMPLE.fullmatch(line)[1]
        if expected == TEXT:
            # Every sample has the name that describes it, and none a type that 0.0.4 lacks.
            family = re.sub("_(bucket|sum|count)$", "", name)
            assert types.get(name) in ("counter", "gauge") or types[family] == "histogram", line
        else:
            family = re.sub("_(total|info|bucket|sum|count)$", "", name)
            assert name in types or family in types, line


def test_every_type_of_message_is_there_from_the_start(start_router):
    router = start_router(everything())
    _, text = ask(router, None)
    for name in ("received", "sent"):
        lines = [line for line in text.splitlines() if f"messages_{name}_total{{" in line]
        assert all(line.endswith(" 0") for line in lines), lines
        by_realm = {
            (re.search('realm="(.*?)"', line)[1], re.search('type="(.*?)"', line)[1])
            for line in lines
        }
        assert {("realm1", "CALL"), ("realm1", "EVENT"), ("", "HELLO")} <= by_realm
        assert len(by_realm) == 25


def test_messages_are_counted_for_their_realm(start_router):
    router = start_router(everything())
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.register("com.example.echo")
        peer.ask(CALL, {}, "com.example.nobody")
        peer.hear(ERROR)
        peer.round_trip()
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
    in_realm = {"worker": "worker1", "realm": "realm1"}
    assert router.metric("messages_received_total", type="CALL", **in_realm) >= 1
    assert router.metric("messages_sent_total", type="ERROR", **in_realm) >= 1
    assert router.metric("messages_sent_total", type="REGISTERED", **in_realm) >= 1
    of_sessions = {"worker": "worker1", "realm": ""}
    for name, kind in [("received", "HELLO"), ("sent", "WELCOME"), ("sent", "GOODBYE")]:
        assert router.metric(f"messages_{name}_total", type=kind, **of_sessions) == 1


def test_the_process_and_its_octets(start_router):
    router = start_router(everything())
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.round_trip()
        assert router.metric("sent_bytes_total") > 0
        assert router.metric("received_bytes_total") > 0
    _, text = ask(router, None)
    samples = filter(None, map(SAMPLE.fullmatch, text.splitlines()))
    values = {sample[1]: float(sample[3]) for sample in samples}
    assert values["process_open_fds"] <= values["process_max_fds"]
    assert values["process_resident_memory_bytes"] > 1 << 20
    assert values["process_start_time_seconds"] > 1e9
    assert "process_cpu_seconds_total" in values


def test_the_status_page(start_router):
    router = start_router(everything())
    page = router.page("/")
    assert '<meta name=viewport content="width=device-width,initial-scale=1">' in page
    assert '<meta name=color-scheme content="light dark">' in page
    for transport in ("tcp", "testee", "amqp"):
        for url in router.urls(transport):
            assert f"<code>{url}</code>" in page
    assert "<p>Up for " in page
    assert "<tr><td>worker1<td>router<td>started" in page
