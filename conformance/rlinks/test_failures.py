"""Links whose other side goes, comes, refuses, or is no router at all."""

from __future__ import annotations

import json
import re
import socket

from rig import config
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, INVOCATION, RESULT
from rig.waiting import await_true

from rlinks.linked import (
    answered,
    await_there,
    call,
    everybody,
    hear_event,
    is_there,
    mirrors,
    node,
    open_at,
    publish,
    register,
    to,
)


def test_the_other_side_is_killed_and_comes_again(start_router, tmp_path):
    remote = start_router(node())
    port = remote.address("tcp")[1]
    local = start_router(node(to(remote.address("tcp"))))
    await_there(local)
    here, there = open_at(local), open_at(remote)
    register(there, "com.procedure")
    here.subscribe("com.topic")
    mirrors(local, "local", "registration", 1)
    pending = call(here, "com.procedure")
    there.hear(INVOCATION)
    since = len(local.log)
    remote.process.kill()
    remote.process.wait()
    remote.process.returncode = 0
    # Waiting callers get an error, and later calls fail at once.
    error = here.hear(ERROR)
    assert error[2] == pending
    mirrors(local, "local", "registration", 0)
    call(here, "com.procedure")
    assert here.hear(ERROR)[4] == "wamp.error.no_such_procedure"
    local.await_log(lambda line: "reconnects in" in line.text, since)

    again = start_router(node(port=port))
    await_there(local, since=since)
    there = open_at(again)
    register(there, "com.procedure")
    mirrors(local, "local", "registration", 1)
    answered(there, here, "com.procedure", 1)
    publish(there, "com.topic", "again")
    hear_event(here, "again")
    assert local.metric("rlink_restarts_total", link="rlink1") >= 1


def test_either_side_may_start_first(start_router, start_relay):
    remote = start_router(node())
    port = remote.address("tcp")[1]
    remote.stop()
    local = start_router(node(to(("127.0.0.1", port))))
    line = local.await_log(lambda line: "reconnects in" in line.text)
    assert "cannot reach" in line.text
    assert not is_there(local)()
    start_router(node(port=port))
    await_there(local)
    assert is_there(local)()


def test_a_refusal_names_its_cause(start_router):
    remote = start_router(node())
    local = start_router(node(to(remote.address("tcp"), realm="elsewhere")))
    line = local.await_log(lambda line: "reconnects in" in line.text)
    assert "wamp.error.no_such_realm" in line.text
    page = local.page("/")
    assert "<td>rlink1<td>elsewhere at " in page
    assert "not connected" in page
    assert "wamp.error.no_such_realm" in page

    little = config.role("anonymous", config.permission("com.*"))
    strict = start_router(node(roles=[little]))
    local = start_router(node(to(strict.address("tcp"))))
    line = local.await_log(lambda line: "reconnects in" in line.text)
    assert "wamp.error.not_authorized" in line.text
    assert "wamp.subscription" in line.text


def test_refusals_of_the_other_side_are_reported(start_router):
    able = {"call": True, "publish": True, "subscribe": True}
    some = [
        config.permission("wamp.*"),
        config.permission("crosstie.*"),
        config.permission("com.*", disclose=True, **able),
    ]
    remote = start_router(node(roles=[config.role("anonymous", *some)]))
    local = start_router(node(to(remote.address("tcp"))))
    await_there(local)
    since = len(local.log)
    register(open_at(local), "com.procedure")
    line = local.await_log(lambda line: "com.procedure" in line.text, since)
    assert "wamp.error.not_authorized" in line.text
    refused = {"link": "rlink1", "kind": "mirror", "outcome": "refused"}
    assert local.metric("rlink_messages_total", **refused) == 1


def test_a_link_of_a_node_to_itself_leads_between_realms(start_router, tmp_path):
    way = str(tmp_path / "own.sock")

    def own(realm: str) -> dict:
        endpoint = {"type": "unix", "path": way}
        transport = {"type": "rawsocket", "endpoint": endpoint, "serializer": "msgpack"}
        return {"realm": realm, "auth": {"anonymous": {}}, "transport": transport}

    realms = [
        {"name": "realm1", "roles": [everybody()], "rlinks": [own("realm2"), own("realm1")]},
        {"name": "realm2", "roles": [everybody()]},
    ]
    transports = [
        config.universal("tcp", config.tcp()),
        config.universal("own", {"type": "unix", "path": way}),
    ]
    router = start_router(config.node(realms, transports))
    await_there(router)
    line = router.await_log(lambda line: "'rlink2' reconnects in" in line.text)
    line = router.await_log(lambda line: "the realm that it begins in" in line.text)
    assert "'rlink2'" in line.text
    one, two = open_at(router), open_at(router, "realm2")
    register(two, "com.procedure")
    mirrors(router, "local", "registration", 1)
    answered(two, one, "com.procedure", 1)


def test_links_are_seen_started_and_stopped_by_management(start_router):
    remote = start_router(node())
    local = start_router(node())
    known = json.loads((local.directory / "node.pid").read_text())
    path = re.search(r"unix:/*(/[^:]*)", known["management"])[1]
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path)
    manager = RawSocket(connected).shake_hands("json").join("crossbar")

    def ask(procedure: str, *args: object) -> list:
        manager.ask(CALL, {}, f"crossbar.worker.worker1.{procedure}", list(args))
        return manager.hear(RESULT)[3][0]

    assert ask("get_router_realm_links", "realm1") == []
    link = to(remote.address("tcp"))
    link.pop("id")
    ask("start_router_realm_link", "realm1", "link_one", link)
    await_there(local, "link_one")
    assert ask("get_router_realm_links", "realm1") == ["link_one"]
    here, there = open_at(local), open_at(remote)
    register(there, "com.procedure")
    mirrors(local, "local", "registration", 1, "link_one")
    answered(there, here, "com.procedure")
    about = ask("get_router_realm_link", "realm1", "link_one")
    assert about["connected"]
    assert about["registrations"] == {"local": 1, "remote": 0}
    assert about["config"]["realm"] == "realm1"
    ask("stop_router_realm_link", "realm1", "link_one")
    await_true("both sessions have left", lambda: remote.metric("realm_sessions") == 1)
    assert ask("get_router_realm_links", "realm1") == []
    call(here, "com.procedure")
    assert here.hear(ERROR)[4] == "wamp.error.no_such_procedure"
