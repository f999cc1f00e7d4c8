"""MQTT beside WAMP in one realm: events and messages, permissions, the meta API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from rig import config, mqtt_broker
from rig import mqtt_wire as wire
from rig.links import Link, available
from rig.mqtt_broker import Broker
from rig.mqtt_peer import plain
from rig.mqtt_wire import V5, V31, V311, Publish, Will
from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.session import CALL, ERROR, EVENT, INVOCATION, PUBLISH, RESULT, SUBSCRIBE, YIELD
from rig.waiting import await_true

LINKS = available([Link("asyncio", "ws", "tcp", "cbor"), Link("javascript", "ws", "tcp", "json")])


@pytest.fixture
def wamp(shared_node: Router) -> Iterator[Callable[..., RawSocket]]:
    """Join the realm of the shared node by hand."""
    joined = []

    def join(serializer: str = "json") -> RawSocket:
        joined.append(RawSocket.tcp(shared_node.address("tcp")).shake_hands(serializer).join())
        return joined[-1]

    yield join
    for each in joined:
        each.close()


def publish(session: RawSocket, topic: str, *args: object, **options: object) -> None:
    """Publish, and wait for the acknowledgement; `kwargs` are keyword arguments."""
    kwargs = options.pop("kwargs", {})
    session.ask(PUBLISH, {"acknowledge": True, **options}, topic, list(args), kwargs)
    session.hear(17)


def event(session: RawSocket) -> tuple[list, dict, dict]:
    """Return arguments, keyword arguments and details of the next event."""
    heard = session.hear(EVENT)
    args = heard[4] if len(heard) > 4 else []
    kwargs = heard[5] if len(heard) > 5 else {}
    return args, kwargs, heard[3]


def call(session: RawSocket, procedure: str, *args: object) -> object:
    """Call; return the first result."""
    session.ask(CALL, {}, procedure, list(args))
    answer = session.hear_any()
    while answer[0] == EVENT:
        answer = session.hear_any()
    assert answer[0] == RESULT, answer
    return answer[3][0] if len(answer) > 3 else None


EVENTS = [
    pytest.param([], {}, b"", id="nothing"),
    pytest.param(["ä"], {}, "ä".encode(), id="a text"),
    pytest.param([b"\xff\0"], {}, b"\xff\0", id="octets"),
    pytest.param([21.5], {}, b"[21.5]", id="a number"),
    pytest.param(["a", 1, None], {}, b'["a",1,null]', id="a list"),
    pytest.param([], {"t": [1]}, b'{"t":[1]}', id="keywords"),
    pytest.param([1], {"t": 2}, b'{"args":[1],"kwargs":{"t":2}}', id="both"),
]


@pytest.mark.parametrize("filter_", ["a/b", "a/#", "a/+", "+/b", "#", "+/#", "a/b/#"])
def test_an_event_comes_to_each_kind_of_filter(crosstie: Broker, wamp, names, filter_) -> None:
    client, session = crosstie.client(names.client()), wamp()
    client.subscribe(names.topic(filter_))
    publish(session, f"{names.root}.a.b", "heard")
    # The space adds no more than it can tell, and its QoS lets kept sessions keep it.
    assert plain(client.message()) == Publish(names.topic("a/b"), b"heard", 1)
    publish(session, f"{names.root}.c", "unheard")
    publish(session, f"{names.root}.a.b", "end")
    heard = [client.message().payload]
    while heard[-1] != b"end":
        heard.append(client.message().payload)
    assert heard in ([b"end"], [b"unheard", b"end"])
    assert (len(heard) == 2) == (filter_ in ("#", "+/#"))


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize(("args", "kwargs", "payload"), EVENTS)
def test_arguments_as_a_payload(
    crosstie: Broker, wamp, names, args: list, kwargs: dict, payload: bytes, serializer: str
) -> None:
    if serializer == "json" and any(isinstance(each, bytes) for each in args):
        pytest.skip("JSON has no octets of its own")
    client, session = crosstie.client(names.client()), wamp(serializer)
    client.subscribe(names.topic())
    publish(session, f"{names.root}.topic", *args, kwargs=kwargs)
    found = client.message().payload
    if payload[:1] in (b"[", b"{"):
        assert json.loads(found) == json.loads(payload)
    else:
        assert found == payload


PAYLOADS = [
    pytest.param(b"", [], {}, id="nothing"),
    pytest.param("ä".encode(), ["ä"], {}, id="a text"),
    pytest.param(b"21.5", ["21.5"], {}, id="a number is a text"),
    pytest.param(b"\xff\0", [b"\xff\0"], {}, id="octets"),
    pytest.param(b' ["a", 1] ', ["a", 1], {}, id="a list"),
    pytest.param(b'{"t": [1]}', [], {"t": [1]}, id="an object"),
    pytest.param(b'{"args": [1], "kwargs": {"t": 2}}', [1], {"t": 2}, id="both"),
    pytest.param(b'{"args": [1], "x": 2}', [], {"args": [1], "x": 2}, id="nearly both"),
    pytest.param(b"{oops", ["{oops"], {}, id="nearly an object"),
]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
@pytest.mark.parametrize(("payload", "args", "kwargs"), PAYLOADS)
def test_a_payload_as_arguments(
    crosstie: Broker, wamp, names, payload: bytes, args: list, kwargs: dict, serializer: str
) -> None:
    client, session = crosstie.client(names.client()), wamp(serializer)
    session.subscribe(f"{names.root}.topic")
    client.publish(names.topic(), payload, 1)
    found, keywords, _ = event(session)
    if serializer == "json":
        args = ["\0/wA=" if each == b"\xff\0" else each for each in args]
    assert (found, keywords) == (args, kwargs)


@pytest.mark.parametrize("version", [V31, V311, V5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_comes_to_each_kind_of_subscription(
    crosstie: Broker, wamp, names, version: int, qos: int
) -> None:
    client, session = crosstie.client(names.client(), version), wamp()
    wanted = {
        session.subscribe(f"{names.root}.a.b"),
        session.subscribe(f"{names.root}.a", match="prefix"),
        session.subscribe(f"{names.root}..b", match="wildcard"),
    }
    session.subscribe(f"{names.root}..c", match="wildcard")
    client.publish(names.topic("a/b"), b"heard", qos)
    heard = [session.hear(EVENT) for _ in wanted]
    assert {each[1] for each in heard} == wanted
    assert [each[4] for each in heard] == [["heard"]] * 3
    client.publish(names.topic("a/b"), b"end", qos)
    assert session.hear(EVENT)[4] == ["end"]


def test_each_hears_once(crosstie: Broker, wamp, names) -> None:
    """The realm's subscriptions for filters that overlap do not multiply events."""
    client, session = crosstie.client(names.client(), V311), wamp()
    publisher = wamp()
    other = crosstie.client(names.client("b"), V311)
    for filter_ in ("a/b", "a/#", "a/+", "+/+/b"):
        client.subscribe(names.topic(filter_), qos=1)
    other.subscribe(names.topic("a/b"), qos=1)
    session.subscribe(names.root, match="prefix")
    publish(publisher, f"{names.root}.a.b", "of wamp")
    client.publish(names.topic("a/b"), b"of mqtt", 1)
    publish(publisher, f"{names.root}.a.b", "end")
    for each in (client, other):
        # Messages of different publishers may overtake each other.
        heard = {message.payload for message in each.messages(3)}
        assert heard == {b"of wamp", b"of mqtt", b"end"}
        each.round_trip()
        assert each.kept == []
    assert {event(session)[0][0] for _ in range(3)} == {"of wamp", "of mqtt", "end"}


@pytest.mark.parametrize("topic", ["a//b", "/a", "a/", "a.b/c", "a b", "a/%b"])
def test_topics_that_wamp_cannot_say(crosstie: Broker, wamp, names, topic: str) -> None:
    """They stay among MQTT clients; those that are URIs do not."""
    client, session = crosstie.client(names.client()), wamp()
    session.subscribe(names.root, match="prefix")
    client.subscribe(names.topic("#"))
    client.publish(names.topic(topic), b"", 1)
    client.publish(names.topic("end"), b"", 1)
    assert [each.topic for each in client.messages(2)] == [names.topic(topic), names.topic("end")]
    details = event(session)[2]
    if "%" in topic:
        assert details["topic"] == f"{names.root}.a.%b"
        details = event(session)[2]
    assert details["topic"] == f"{names.root}.end"


def test_own_topics_of_the_router(crosstie: Broker, wamp, names) -> None:
    """Meta events are WAMP's alone, and nobody publishes them."""
    client = crosstie.client(names.client())
    for topic in ("wamp/session/on_join", "crossbar/a", "crossbar/a b", "crosstie//a"):
        assert client.publish(topic, b"", 1) == 0x87
    with crosstie.peer() as other:
        answer = other.ask_to_connect(names.client("will"), will=Will("crosstie/a", b"gone"))
        assert answer.code == 0x87
    client.subscribe("#")
    session = wamp()
    publish(session, f"{names.root}.end", "end")
    while (message := client.message()).topic != names.topic("end"):
        assert not message.topic.startswith("wamp/")


def test_an_event_for_some_is_for_no_client_of_mqtt(crosstie: Broker, wamp, names) -> None:
    """Lists of receivers name sessions of WAMP; whom they would admit here nobody can tell."""
    client, session = crosstie.client(names.client()), wamp()
    client.subscribe(names.topic("#"))
    for lists in ({"exclude_authrole": ["nobody"]}, {"eligible": [1]}, {"eligible_authid": ["me"]}):
        publish(session, f"{names.root}.some", "secret", **lists)
    publish(session, f"{names.root}.all", "all", exclude=[1])
    assert client.message().payload == b"all"


def test_json_as_deep_as_a_message_may_be(crosstie: Broker, names) -> None:
    client = crosstie.client(names.client())
    client.subscribe(names.topic("#"))
    for depth in range(58, 68):
        deep = b"[" * depth + b"]" * depth
        assert client.publish(names.topic("deep"), deep, 1) == 0
        assert client.message().payload == deep


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_autobahn(crosstie: Broker, shared_node, new_session, place_of, names, link) -> None:
    """Clients of Autobahn publish to MQTT clients, and hear them."""
    client = crosstie.client(names.client())
    client.subscribe(names.topic("#"))
    session = new_session(link.client).open(place_of(link, of=shared_node), "realm1")
    session.subscribe(f"{names.root}.to.wamp")
    session.publish(f"{names.root}.to.mqtt", "ä", 1, key=None)
    message = client.message()
    assert message.topic == names.topic("to/mqtt")
    assert json.loads(message.payload) == {"args": ["ä", 1], "kwargs": {"key": None}}
    client.publish(names.topic("to/wamp"), message.payload, 2)
    told = session.next("published")
    assert (told["args"], told["kwargs"]) == (["ä", 1], {"key": None})


def test_an_event_for_a_client_that_is_away(crosstie: Broker, wamp, names) -> None:
    client = crosstie.client(names.client(), V311, clean=False)
    client.subscribe(names.topic("#"), qos=1)
    client.leave()
    publish(wamp(), f"{names.root}.a", "kept")
    client = crosstie.client(names.client(), V311, clean=False)
    assert plain(client.message()) == Publish(names.topic("a"), b"kept", 1)


def test_retained_by_either(crosstie: Broker, wamp, names) -> None:
    client, session = crosstie.client(names.client()), wamp()
    publish(session, f"{names.root}.of.wamp", "kept", retain=True)
    client.publish(names.topic("of/mqtt"), b"kept", 1, retain=True)
    client.subscribe(names.topic("of/#"))
    heard = sorted((each.topic, each.payload, each.retain) for each in client.messages(2))
    assert heard == [(names.topic(f"of/{who}"), b"kept", True) for who in ("mqtt", "wamp")]
    session.ask(SUBSCRIBE, {"get_retained": True}, f"{names.root}.of.mqtt")
    session.hear(33)
    args, _, details = event(session)
    assert (args, details["retained"]) == (["kept"], True)
    for who in ("mqtt", "wamp"):
        client.publish(names.topic(f"of/{who}"), b"", 1, retain=True)
    late = crosstie.client(names.client("late"))
    late.subscribe(names.topic("of/#"), names.topic("end"))
    client.publish(names.topic("end"), b"end", 1)
    assert late.message().payload == b"end"


def test_a_will_comes_to_wamp(crosstie: Broker, wamp, names) -> None:
    session = wamp()
    session.subscribe(f"{names.root}.will")
    will = Will(names.topic("will"), b'{"gone": true}', 1)
    crosstie.client(names.client(), will=will).leave()
    crosstie.client(names.client(), will=will).reset()
    assert event(session)[:2] == ([], {"gone": True})
    publish(wamp(), f"{names.root}.will", "end")
    assert event(session)[0] == ["end"]


def test_a_client_is_a_session(crosstie: Broker, wamp, names) -> None:
    """The meta API shows it, with its client id, and can end it."""
    watcher, killer = wamp(), wamp()
    watcher.subscribe("wamp.session.on_join")
    client = crosstie.client(names.client(), will=Will(names.topic("will"), b"gone"))
    heir = crosstie.client(names.client("heir"))
    heir.subscribe(names.topic("will"))
    joined = [event(watcher)[0][0] for _ in range(2)]
    (details,) = (
        each for each in joined if each["authextra"]["mqtt"]["client_id"] == names.client()
    )
    assert details["authrole"] == "anonymous"
    told = call(killer, "wamp.session.get", details["session"])
    assert told["authextra"]["mqtt"]["client_id"] == names.client()
    assert details["session"] in call(killer, "wamp.session.list")
    watcher.subscribe("wamp.session.on_leave")
    assert call(killer, "wamp.session.kill", details["session"]) is None
    client.expect_disconnect(0x98)
    assert event(watcher)[0][0] == details["session"]
    assert heir.message().payload == b"gone"
    assert details["session"] not in call(killer, "wamp.session.list")


def test_a_client_that_takes_the_place_of_another(crosstie: Broker, wamp, names) -> None:
    """One session goes, another one comes."""
    session = wamp()
    before = set(call(session, "wamp.session.list"))
    first = crosstie.client(names.client())
    (one,) = set(call(session, "wamp.session.list")) - before
    crosstie.client(names.client())
    first.receive_all()
    gone = "the first one has left"
    await_true(gone, lambda: one not in call(session, "wamp.session.list"))
    assert len(set(call(session, "wamp.session.list")) - before) == 1


TICKETS = {
    "ticket": {
        "type": "static",
        "principals": {
            "joe": {"ticket": "secret", "role": "sensor"},
            "ann": {"ticket": "ä€", "role": "reader"},
        },
    },
}
ROLES = [
    config.role("sensor", config.permission("home.*", publish=True, subscribe=False)),
    config.role("reader", config.permission("home.*", publish=False, subscribe=True)),
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Router]:
    """A node whose clients log in by name and password, or are told apart by a procedure."""
    dynamic = {"type": "dynamic", "authenticator": "com.authenticate"}
    asks = {"name": "asked", "authorizer": "com.authorize"}
    settings = mqtt_broker.configuration(
        mqtt_broker.transport(auth=TICKETS),
        mqtt_broker.transport("both", auth={**TICKETS, **config.static("anonymous")}),
        mqtt_broker.transport("asked", auth={"ticket": dynamic, "anonymous": dynamic}),
        of=mqtt_broker.realm(*ROLES, asks),
    )
    running = Router(tmp_path_factory.mktemp("guarded"), config=settings)
    yield running
    running.stop()


@pytest.fixture
def at(guarded: Router) -> Iterator[Callable[[str], Broker]]:
    """Connect to one of its transports."""
    places = []

    def at(name: str) -> Broker:
        places.append(Broker("crosstie", lambda: guarded.address(name)))
        return places[-1]

    yield at
    for each in places:
        each.close()


def test_a_name_and_a_password(at, guarded: Router, names, version: int) -> None:
    """The role of the principal decides, and the meta API tells who it is."""
    sensor = at("mqtt").client(names.client("a"), version, user="joe", password=b"secret")
    reader = at("mqtt").client(names.client("b"), V5, user="ann", password="ä€".encode())
    refused = 0x87 if version == V5 else 0x80
    assert sensor.subscribe("home/#") == [refused]
    assert reader.subscribe("home/#") == [2]
    assert sensor.publish("home/kitchen", b"21", 1) in (0, 0x10)
    assert reader.message().payload == b"21"
    assert reader.publish("home/kitchen", b"22", 1) == 0x87
    with RawSocket.tcp(guarded.address("tcp")).shake_hands().join() as session:
        found = [
            call(session, "wamp.session.get", each) for each in call(session, "wamp.session.list")
        ]
        known = {
            each["authextra"]["mqtt"]["client_id"]: (each["authid"], each["authrole"])
            for each in found
            if "mqtt" in (each.get("authextra") or {})
        }
    assert known[names.client("a")] == ("joe", "sensor")
    assert known[names.client("b")] == ("ann", "reader")


@pytest.mark.parametrize(
    ("user", "password"), [("joe", b"wrong"), ("stranger", b"secret"), (None, None)]
)
def test_a_login_that_fails(at, names, version: int, user, password) -> None:
    peer = at("mqtt").peer(version)
    answer = peer.ask_to_connect(names.client(), user=user, password=password)
    assert answer.code in ((0x86, 0x87) if version == V5 else (4, 5)), answer
    assert not answer.present
    peer.expect_end()


def test_anonymous_where_there_are_passwords(at, names) -> None:
    """A client without a name is anonymous; one with a wrong password is not."""
    at("both").client(names.client("a")).round_trip()
    at("both").client(names.client("b"), user="joe", password=b"secret").round_trip()
    answer = at("both").peer().ask_to_connect(names.client(), user="joe", password=b"no")
    assert answer.code in (0x86, 0x87)


def test_a_procedure_that_logs_in_and_one_that_authorizes(at, guarded: Router, names) -> None:
    """Requests wait for its answers, in their order."""
    with RawSocket.tcp(guarded.address("tcp")).shake_hands().join() as backend:
        backend.register("com.authenticate")
        backend.register("com.authorize")
        peer = at("asked").peer(V5)
        peer.say(wire.Connect(names.client(), user="eve", password=b"pass"))
        asked = backend.hear(INVOCATION)
        realm, authid, details = asked[4]
        assert (realm, authid, details["ticket"]) == ("realm1", "eve", "pass")
        assert details["authextra"]["mqtt"]["client_id"] == names.client()
        backend.say(YIELD, asked[1], {}, [{"role": "asked", "authid": "eve"}])
        assert peer.hear().code == 0
        peer.say(wire.Subscribe(1, [wire.Filter("no/#", 1), wire.Filter("yes/#", 1)]))
        peer.say(Publish("yes/a", b"1", 1, id=2), Publish("no/a", b"2", 1, id=3))
        expected = [
            ("no.", "subscribe", False),
            ("yes.", "subscribe", True),
            ("yes.a", "publish", True),
            ("no.a", "publish", False),
        ]
        for uri, action, allow in expected:
            question = backend.hear(INVOCATION)
            session, about, does = question[4][:3]
            assert (session["authid"], about, does) == ("eve", uri, action)
            backend.say(YIELD, question[1], {}, [{"allow": allow, "cache": False}])
        assert peer.codes(wire.SUBACK, 1, 2) == [0x87, 1]
        assert peer.message().payload == b"1"
        assert peer.ack(wire.PUBACK, 2).code in (0, 0x10)
        assert peer.ack(wire.PUBACK, 3).code == 0x87


def test_a_login_that_a_procedure_refuses(at, guarded: Router, names) -> None:
    with RawSocket.tcp(guarded.address("tcp")).shake_hands().join() as backend:
        backend.register("com.authenticate")
        peer = at("asked").peer(V311)
        peer.say(wire.Connect(names.client(), user="eve", password=b"pass"))
        asked = backend.hear(INVOCATION)
        backend.say(ERROR, INVOCATION, asked[1], {}, "com.example.no")
        try:
            answer = peer.hear()
        except ClosedError:
            return
        assert answer.code in (4, 5)
        peer.expect_end()
