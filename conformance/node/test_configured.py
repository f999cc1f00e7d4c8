"""Configuration files and their effects."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from rig import config
from rig.plain import Plain
from rig.rawsocket import RawSocket
from rig.session import CALL, ERROR, INVOCATION, PUBLISH, REGISTER, REGISTERED, SUBSCRIBE
from rig.websocket import WebSocket


def test_a_websocket_transport_speaks_nothing_else(start_router):
    router = start_router(
        config.plain({"type": "websocket", "id": "tcp", "endpoint": config.tcp()})
    )
    with WebSocket.tcp(router.address("tcp")).open(path="/any/path") as peer:
        peer.join().round_trip()
    with RawSocket.tcp(router.address("tcp")) as peer:
        peer.send(b"\x7f\xf1\0\0")
        assert not peer.receive_all().startswith(b"\x7f\xf1")
        router.await_fault(0, peer.name)


def test_a_rawsocket_transport_speaks_nothing_else(start_router):
    router = start_router(
        config.plain({"type": "rawsocket", "id": "tcp", "endpoint": config.tcp()})
    )
    with RawSocket.tcp(router.address("tcp")).shake_hands("cbor").join() as peer:
        peer.round_trip()
    with Plain.tcp(router.address("tcp")) as peer:
        peer.send(b"GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"101" not in peer.receive_all()
        router.await_fault(0, peer.name)


def test_serializers_that_are_left_out(start_router):
    paths = {"ws": {"serializers": ["cbor"]}}
    router = start_router(config.plain(config.universal("tcp", config.tcp(), websocket=paths)))
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade("wamp.2.json")[0] == 400
    with WebSocket.tcp(router.address("tcp")) as peer:
        assert peer.upgrade("wamp.2.json, wamp.2.cbor.batched")[0] == 101


def test_no_subprotocol_counts_as_json_where_it_is_not_required(start_router):
    paths = {"ws": {"options": {"require_websocket_subprotocol": False}}}
    router = start_router(config.plain(config.universal("tcp", config.tcp(), websocket=paths)))
    with WebSocket.tcp(router.address("tcp")) as peer:
        status, headers, _ = peer.upgrade(None)
        assert status == 101
        assert "sec-websocket-protocol" not in headers
        peer.join().round_trip()


def test_too_many_connections_over_websocket(start_router):
    transport = config.universal("tcp", config.tcp(), max_connections=1)
    router = start_router(config.plain(transport))
    with (
        WebSocket.tcp(router.address("tcp")).open().join() as first,
        WebSocket.tcp(router.address("tcp")) as second,
    ):
        assert second.upgrade()[0] == 503
        first.round_trip()


def test_a_strict_realm(start_router):
    realms = [
        {"name": "realm1", "roles": [config.role("anonymous")], "options": {"uri_check": "strict"}}
    ]
    router = start_router(config.node(realms, [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for uri, accepted in [("com.my_app.2", True), ("com.MyApp", False), ("com.ü", False)]:
            peer.ask(REGISTER, {}, uri)
            if accepted:
                peer.hear(REGISTERED)
            else:
                assert peer.hear(ERROR)[4] == "wamp.error.invalid_uri"


def test_anonymous_sessions_of_one_realm_only(start_router):
    realms = [
        {"name": name, "roles": [config.role("guest", config.permission("com.guest.*"))]}
        for name in ("realm1", "realm2")
    ]
    auth = {"anonymous": {"type": "static", "role": "guest", "realm": "realm2", "authid": "guest"}}
    transport = config.universal("tcp", config.tcp(), rawsocket={"auth": auth})
    router = start_router(config.node(realms, [transport]))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(1, "realm1", {"roles": {"caller": {}}})
        abort = peer.hear(3)
        assert abort[2].startswith("wamp.error."), abort
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(1, "realm2", {"roles": {"caller": {}}, "authid": "somebody else"})
        details = peer.hear(2)[2]
        assert (details["authid"], details["authrole"]) == ("guest", "guest")


def test_a_role_that_the_realm_does_not_have(start_router):
    auth = config.static("nobody")
    transport = config.universal("tcp", config.tcp(), rawsocket={"auth": auth})
    router = start_router(config.plain(transport))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(1, "realm1", {"roles": {"caller": {}}})
        assert peer.hear(3)[2] == "wamp.error.no_such_role"


PERMISSIONS = [
    config.permission("com.app.*", call=True, publish=True, subscribe=True, register=True),
    config.permission("com.app.admin.*", call=False),
    config.permission("com.app.admin.status", call=True),
    config.permission("com.*.on_change", subscribe=True),
]


@pytest.mark.parametrize(
    ("kind", "uri", "allowed"),
    [
        (CALL, "com.app.do", True),
        (CALL, "com.app.admin.do", False),
        (CALL, "com.app.admin.status", True),
        (PUBLISH, "com.app.admin.status", False),
        (CALL, "com.other", False),
        (SUBSCRIBE, "com.other.on_change", True),
        (SUBSCRIBE, "com.other.on_delete", False),
        (PUBLISH, "com.other.on_change", False),
        (REGISTER, "com.app.do", True),
        (REGISTER, "com.app.admin.do", False),
    ],
)
def test_the_most_specific_permission_counts(permitted, kind, uri, allowed):
    options = {"acknowledge": True} if kind == PUBLISH else {}
    with RawSocket.tcp(permitted.address("tcp")).shake_hands().join() as peer:
        peer.ask(kind, options, uri)
        # Allowed calls find no callee.
        refused = "wamp.error.not_authorized" in peer.receive_octets().decode()
        assert refused is not allowed


@pytest.fixture
def permitted(start_router):
    """A router with these permissions."""
    realms = [{"name": "realm1", "roles": [config.role("anonymous", *PERMISSIONS)]}]
    return start_router(config.node(realms, [config.universal("tcp", config.tcp())]))


def test_a_pattern_needs_the_permission_for_all_it_matches(permitted):
    with RawSocket.tcp(permitted.address("tcp")).shake_hands().join() as peer:
        for options, uri, allowed in [
            ({"match": "prefix"}, "com.app.x", True),
            ({"match": "prefix"}, "com.", False),
            ({"match": "wildcard"}, "com..on_delete", False),
        ]:
            peer.ask(SUBSCRIBE, options, uri)
            refused = "wamp.error.not_authorized" in peer.receive_octets().decode()
            assert refused is not allowed, uri


def test_limits_of_one_session(start_router):
    limits = {"subscriptions_max": 2, "registrations_max": 2, "calls_pending_max": 2}
    router = start_router(config.plain(limits=limits))
    with (
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer,
        RawSocket.tcp(router.address("tcp")).shake_hands().join() as caller,
    ):
        for number in range(2):
            peer.subscribe(f"com.limit.n{number}")
            peer.register(f"com.limit.n{number}")
        peer.ask(SUBSCRIBE, {}, "com.limit.more")
        assert peer.hear(ERROR)[4] == "crosstie.error.subscriptions_max"
        peer.ask(REGISTER, {}, "com.limit.more")
        assert peer.hear(ERROR)[4] == "crosstie.error.registrations_max"
        for _ in range(3):
            caller.ask(CALL, {}, "com.limit.n0")
        assert caller.hear(ERROR)[4] == "crosstie.error.calls_max"
        peer.hear(INVOCATION)
        peer.hear(INVOCATION)


def test_a_depth_of_ones_own(start_router):
    router = start_router(config.plain(limits={"depth_max": 8}))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.send_frame(b'[16,1,{"acknowledge":true},"com.x",' + b"[" * 6 + b"]" * 6 + b"]")
        peer.hear(17)
        peer.send_frame(b'[16,2,{},"com.x",' + b"[" * 9 + b"]" * 9 + b"]")
        peer.expect_abort()


def test_admin_pages_on_a_port_of_their_own(start_router):
    admin = {"endpoint": config.tcp(), "pages": ["health", "metrics"]}
    transport = config.universal("tcp", config.tcp(), pages=[])
    router = start_router(config.plain(transport, admin=admin))
    line = router.await_log(lambda line: line.text.startswith("Admin pages started at"))
    url = line.text.split()[-1].rstrip("/")
    with urllib.request.urlopen(f"{url}/health", timeout=30) as response:
        assert response.read().strip() == b"ok"
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as response:
        assert b"crosstie_connections" in response.read()
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(f"{url}/", timeout=30)
    assert raised.value.code == 404


def test_two_routers_workers_in_one_node(start_router):
    def worker(name: str) -> dict:
        return {
            "type": "router",
            "realms": [{"name": name, "roles": [config.role("anonymous")]}],
            "transports": [config.universal(name, config.tcp())],
        }

    router = start_router({"version": 2, "workers": [worker("north"), worker("south")]})
    for name in ("north", "south"):
        with RawSocket.tcp(router.address(name)).shake_hands().join(name) as peer:
            peer.round_trip()


def test_values_from_the_environment(start_router, monkeypatch):
    monkeypatch.setenv("ROUTER_PORT", "0")
    endpoint = {**config.tcp(), "port": "$ROUTER_PORT"}
    router = start_router(config.plain(config.universal("tcp", endpoint)))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.round_trip()


def test_subscriptions_to_an_absent_meta_api_are_logged(start_router):
    realm = {"name": "realm1", "options": {"enable_meta_api": False}}
    realm["roles"] = [config.role("anonymous")]
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        for topic, match in [("wamp.session.on_join", "exact"), ("wamp.", "prefix")]:
            peer.subscribe(topic, match=match)
            text = f"subscription to {topic}: no event"
            said = router.await_log(lambda line, text=text: text in line.text)
            assert peer.name in said.fields["peer"]
        since = len(router.log)
        for _ in range(100):
            peer.subscribe("wamp.session.on_leave")
        peer.subscribe("com.example.topic")
        peer.round_trip()
    router.stop()
    assert sum("no event will come" in line.text for line in router.log[since:]) <= 14
