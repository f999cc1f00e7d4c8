"""The meta API: what sessions are told of one another, and what they may do to one another."""

from __future__ import annotations

import re

import pytest
from rig import config
from rig.links import only
from rig.puppet import WampError
from rig.rawsocket import RawSocket
from rig.session import (
    CALL,
    ERROR,
    EVENT,
    GOODBYE,
    HELLO,
    REGISTERED,
    RESULT,
    ROLES,
    SUBSCRIBED,
    UNREGISTERED,
    UNSUBSCRIBED,
    WELCOME,
)

# One way for each serializer is enough: what differs between them is how payloads are written.
BY_SERIALIZER = only(
    lambda link: (
        link.over == "tcp"
        and "batched" not in link.serializer
        and (link.client, link.kind) in (("asyncio", "ws"), ("twisted", "rs"), ("javascript", "ws"))
    )
)
FEATURES = ("session_meta_api", "x_meta_api_paging")


@pytest.fixture
def router(start_router):
    """A router with a realm of its own."""
    return start_router(config.plain())


@pytest.fixture
def open_(router, new_session, place_of):
    """Open sessions over a link to that router."""
    return lambda link: new_session(link.client).open(place_of(link, of=router))


def joined(router, serializer="json", **details) -> RawSocket:
    """Join by hand."""
    peer = RawSocket.tcp(router.address("tcp")).shake_hands(serializer)
    return peer.join(**details)


def ask(peer, procedure, *args, **kwargs):
    """Call by hand; return the one result."""
    request = peer.ask(CALL, {}, procedure, list(args), kwargs)
    answer = peer.hear(RESULT)
    assert answer[1] == request
    return answer[3][0]


def refused(peer, procedure, *args, **kwargs) -> str:
    """Call by hand; return the error."""
    peer.ask(CALL, {}, procedure, list(args), kwargs)
    return peer.hear(ERROR)[4]


@BY_SERIALIZER
def test_sessions(link, open_):
    session, other = open_(link), open_(link)
    assert session.call("wamp.session.count").args == [2]
    assert session.call("wamp.session.count", ["nobody"]).args == [0]
    assert sorted(session.call("wamp.session.list").args[0]) == sorted([session.id, other.id])
    listed = session.call("wamp.session.list", offset=1, limit=5).args[0]
    assert len(listed) == 1
    details = session.call("wamp.session.get", other.id).args[0]
    assert details["session"] == other.id
    assert details["realm"] == "realm1"
    assert details["authid"] == other.details["authid"]
    assert details["authrole"] == details["authmethod"] == "anonymous"
    assert details["authprovider"] == "static"
    assert details["serializer"] == link.serializer
    assert details["transport"]["channel_serializer"] == link.serializer
    assert details["transport"]["channel_framing"] in ("websocket", "rawsocket")
    assert details["transport"]["peer"].startswith("tcp4:127.0.0.1:")
    with pytest.raises(WampError) as raised:
        session.call("wamp.session.get", 123)
    assert raised.value.uri == "wamp.error.no_such_session"
    assert raised.value.arguments == ["no session with ID 123 exists on this router"]


@BY_SERIALIZER
def test_registrations(link, open_):
    session, other = open_(link), open_(link)
    shared = {"invoke": "roundrobin", "match": "prefix"}
    exact = session.register("com.exact", {"do": "echo"})
    prefix = session.register("com.prefix.", {"do": "echo"}, **shared)
    assert other.register("com.prefix.", {"do": "echo"}, **shared) == prefix
    wildcard = session.register("com..wild", {"do": "echo"}, match="wildcard")
    call = lambda verb, *args: (other.call(f"wamp.registration.{verb}", *args).args or [None])[0]  # noqa: E731
    assert call("list") == {"exact": [exact], "prefix": [prefix], "wildcard": [wildcard]}
    assert call("list", other.id) == {"exact": [], "prefix": [prefix], "wildcard": []}
    assert call("lookup", "com.exact") == exact
    assert call("lookup", "com.prefix.", {"match": "prefix"}) == prefix
    assert call("lookup", "com.prefix.") is None
    assert call("match", "com.x.wild") == wildcard
    assert call("match", "org.none") is None
    details = call("get", prefix)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", details.pop("created"))
    assert details == {"id": prefix, "uri": "com.prefix.", **shared}
    assert sorted(call("list_callees", prefix)) == sorted([session.id, other.id])
    assert call("count_callees", prefix) == 2
    with pytest.raises(WampError) as raised:
        call("get", 99)
    assert raised.value.uri == "wamp.error.no_such_registration"


@BY_SERIALIZER
def test_subscriptions(link, open_):
    session, other = open_(link), open_(link)
    exact = session.subscribe("com.exact")
    prefix = session.subscribe("com.", match="prefix")
    assert other.subscribe("com.", match="prefix") == prefix
    wildcard = session.subscribe(".exact", match="wildcard")
    hidden = session.subscribe("wamp.session.on_join")
    call = lambda verb, *args: (other.call(f"wamp.subscription.{verb}", *args).args or [None])[0]  # noqa: E731
    assert call("list") == {"exact": [exact], "prefix": [prefix], "wildcard": [wildcard]}
    assert call("lookup", "com.exact") == exact
    assert call("lookup", "com.", {"match": "prefix"}) == prefix
    assert call("lookup", "wamp.session.on_join") is None
    assert sorted(call("match", "com.exact")) == sorted([exact, prefix, wildcard])
    assert call("match", "org.none") is None
    details = call("get", exact)
    assert (details["id"], details["uri"], details["match"]) == (exact, "com.exact", "exact")
    assert sorted(call("list_subscribers", prefix)) == sorted([session.id, other.id])
    assert call("count_subscribers", prefix) == 2
    for id_, error in (
        (99, "wamp.error.no_such_subscription"),
        (hidden, "wamp.error.not_authorized"),
    ):
        with pytest.raises(WampError) as raised:
            call("get", id_)
        assert raised.value.uri == error


@BY_SERIALIZER
def test_joins_and_leaves(link, open_):
    session = open_(link)
    session.subscribe("wamp.session.on_join")
    other = open_(link)
    details = session.next("published")["args"][0]
    assert (details["session"], details["authid"]) == (other.id, other.details["authid"])
    assert details["serializer"] == link.serializer
    session.subscribe("wamp.session.on_leave")
    other.leave()
    assert session.next("published")["args"] == [other.id]


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_events_and_their_order(router, serializer):
    watcher = joined(router, serializer)
    watched = watcher.subscribe("wamp.", match="prefix")

    def told() -> tuple:
        event = watcher.hear(EVENT)
        assert event[1] == watched
        return event[3]["topic"], event[4]

    with joined(router) as peer:
        assert told()[0] == "wamp.session.on_join"
        subscription = peer.subscribe("com.topic")
        topic, (who, details) = told()
        assert (topic, who) == ("wamp.subscription.on_create", peer.id)
        assert (details["id"], details["uri"], details["match"]) == (
            subscription,
            "com.topic",
            "exact",
        )
        assert told() == ("wamp.subscription.on_subscribe", [peer.id, subscription])
        registration = peer.register("com.procedure", invoke="first")
        topic, (who, details) = told()
        assert (topic, who) == ("wamp.registration.on_create", peer.id)
        assert (details["id"], details["uri"]) == (registration, "com.procedure")
        assert (details["match"], details["invoke"]) == ("exact", "first")
        assert told() == ("wamp.registration.on_register", [peer.id, registration])
        # Nothing is said of the router's own topics.
        peer.subscribe("wamp.session.on_leave")
        peer.say(GOODBYE, {}, "wamp.close.normal")
        peer.hear(GOODBYE)
    for what, verb, id_ in (
        ("registration", "unregister", registration),
        ("subscription", "unsubscribe", subscription),
    ):
        assert told() == (f"wamp.{what}.on_{verb}", [peer.id, id_])
        assert told() == (f"wamp.{what}.on_delete", [peer.id, id_])
    assert told() == ("wamp.session.on_leave", [peer.id])


def test_a_subscriber_is_answered_before_its_own_event(router):
    with joined(router) as peer:
        everything = peer.subscribe("", match="prefix")
        for topic in ("on_create", "on_subscribe"):
            event = peer.hear(EVENT)
            assert (event[1], event[3]["topic"]) == (everything, f"wamp.subscription.{topic}")
        request = peer.ask(32, {}, "com.topic")
        assert peer.hear(SUBSCRIBED)[1] == request
        peer.hear(EVENT), peer.hear(EVENT)
        request = peer.ask(64, {}, "com.procedure")
        registration = peer.hear(REGISTERED)[2]
        peer.hear(EVENT), peer.hear(EVENT)
        request = peer.ask(66, registration)
        assert peer.hear(UNREGISTERED)[1] == request
        peer.hear(EVENT), peer.hear(EVENT)
        request = peer.ask(34, everything)
        assert peer.hear(UNSUBSCRIBED)[1] == request


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_authextra_of_a_session(router, serializer):
    watcher = joined(router, serializer)
    watcher.subscribe("wamp.session.on_join")
    extra = {"team": ["red", 1, 2.5, None], "nested": {"k": True}}
    long = {"x": "y" * 5_000}
    with joined(router, authextra=extra), joined(router), joined(router, authextra=long):
        told = [watcher.hear(EVENT)[4][0] for _ in range(3)]
        assert [details["authextra"] for details in told] == [extra, None, None]
        for details in told:
            assert ask(watcher, "wamp.session.get", details["session"]) == details


def test_kill(router):
    killer = joined(router)
    with joined(router, "cbor") as victim:
        assert ask(killer, "wamp.session.kill", victim.id, reason="com.why", message="so") is None
        assert victim.hear(GOODBYE)[1:] == [{"message": "so"}, "com.why"]
        assert refused(killer, "wamp.session.kill", victim.id) == "wamp.error.no_such_session"
        # The connection is good for another session.
        first = victim.id
        victim.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
        victim.join()
        assert victim.id != first
        ask(killer, "wamp.session.kill", victim.id)
        assert victim.hear(GOODBYE)[1:] == [{}, "wamp.close.killed"]
        assert refused(killer, "wamp.session.kill", killer.id) == "wamp.error.no_such_session"
    assert refused(killer, "wamp.session.kill", 1, reason="no uri") == "wamp.error.invalid_uri"
    assert refused(killer, "wamp.session.kill", "one") == "wamp.error.invalid_argument"
    assert router.metric("session_ends_total", reason="killed") == 2


def test_kill_many(router):
    killer = joined(router)
    victims = [joined(router) for _ in range(3)]
    authid = victims[0].authid
    assert ask(killer, "wamp.session.kill_by_authid", authid) == [victims[0].id]
    victims[0].hear(GOODBYE)
    assert ask(killer, "wamp.session.kill_by_authrole", "nobody") == 0
    assert ask(killer, "wamp.session.kill_by_authrole", "anonymous", message="x") == 2
    assert victims[1].hear(GOODBYE)[1] == victims[2].hear(GOODBYE)[1] == {"message": "x"}
    victims += [joined(router) for _ in range(2)]
    assert ask(killer, "wamp.session.kill_all") == 2
    for victim in victims[3:]:
        victim.hear(GOODBYE)
    assert ask(killer, "wamp.session.list") == [killer.id]


def test_a_killed_session_that_does_not_answer_is_closed(start_router):
    limits = {"handshake_timeout_ms": 200}
    router = start_router(config.plain(limits=limits))
    killer, victim = joined(router), joined(router)
    ask(killer, "wamp.session.kill", victim.id)
    victim.hear(GOODBYE)
    victim.expect_end()
    killer.round_trip()


@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_removed_session_loses_its_part(router, serializer):
    taker, watcher = joined(router), joined(router)
    features = {"subscriber": {"subscription_revocation": True}}
    features["callee"] = {"registration_revocation": True}
    roles = {role: {"features": features.get(role, {})} for role in ROLES}
    with joined(router, serializer, roles=roles) as knowing, joined(router) as other:
        for peer in (knowing, other):
            subscription = peer.subscribe("com.topic")
            registration = peer.register("com.procedure", invoke="roundrobin")
        for prefix in ("wamp.subscription.", "wamp.registration."):
            watched = watcher.subscribe(prefix, match="prefix")
        for peer in (knowing, other):
            remove = ("wamp.subscription.remove_subscriber", subscription, peer.id)
            assert ask(taker, *remove, reason="com.why") is None
            assert refused(taker, *remove) == "wamp.error.no_such_subscription"
            remove = ("wamp.registration.remove_callee", registration, peer.id)
            assert ask(taker, *remove) is None
            assert refused(taker, *remove) == "wamp.error.no_such_registration"
            told = [watcher.hear(EVENT)[3]["topic"] for _ in range(4 if peer is other else 2)]
            names = ("subscription.on_unsubscribe", "registration.on_unregister")
            if peer is other:
                names = (names[0], "subscription.on_delete", names[1], "registration.on_delete")
            assert told == [f"wamp.{name}" for name in names]
        details = {"subscription": subscription, "reason": "com.why"}
        assert knowing.hear(UNSUBSCRIBED)[1:] == [0, details]
        assert knowing.hear(UNREGISTERED)[1:] == [0, {"registration": registration}]
        assert watched
        taker.publish("com.topic")
        # Neither of them is sent anything else.
        knowing.round_trip(), other.round_trip()
        gone = ("wamp.subscription.remove_subscriber", subscription, 1)
        assert refused(taker, *gone) == "wamp.error.no_such_session"


@BY_SERIALIZER
def test_autobahn_is_told_what_it_has_lost(link, open_):
    session, other = open_(link), open_(link)
    registration = session.register("com.procedure", {"do": "echo"})
    session.call("wamp.registration.remove_callee", registration, session.id, reason="com.why")
    with pytest.raises(WampError) as raised:
        other.call("com.procedure")
    assert raised.value.uri == "wamp.error.no_such_procedure"
    if not link.is_javascript:
        # Autobahn|Python announces that it understands the other message, and drops its connection.
        session.round_trip()
        return
    subscription = session.subscribe("com.topic")
    session.call("wamp.subscription.remove_subscriber", subscription, session.id)
    assert session.call("wamp.subscription.match", "com.topic").args in ([None], [])
    session.round_trip()


def test_permissions_hold(start_router):
    role = config.role("anonymous", config.permission("wamp.session.count", call=True))
    realm = {"name": "realm1", "roles": [role]}
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with joined(router) as peer:
        assert ask(peer, "wamp.session.count") == 1
        for procedure in ("wamp.session.list", "wamp.session.kill_all", "wamp.subscription.list"):
            assert refused(peer, procedure) == "wamp.error.not_authorized"
        peer.ask(32, {}, "wamp.session.on_join")
        assert peer.hear(ERROR)[4] == "wamp.error.not_authorized"


@pytest.mark.parametrize("is_on", [True, False])
def test_it_is_announced_where_it_is(start_router, is_on):
    options = {} if is_on else {"enable_meta_api": False}
    realm = {"name": "realm1", "options": options, "roles": [config.role("anonymous")]}
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with RawSocket.tcp(router.address("tcp")).shake_hands() as peer:
        peer.say(HELLO, "realm1", {"roles": ROLES})
        roles = peer.hear(WELCOME)[2]["roles"]
        for role, own in (("broker", "subscription_meta_api"), ("dealer", "registration_meta_api")):
            features = roles[role]["features"]
            assert all(features.get(name, False) is is_on for name in (*FEATURES, own))
        peer.say(CALL, 1, {}, "wamp.session.count")
        if is_on:
            assert peer.hear(RESULT)[3] == [1]
        else:
            assert peer.hear(ERROR)[4] == "wamp.error.no_such_procedure"


def test_leaves_are_published_as_specified_if_configured(start_router):
    realm = {
        "name": "realm1",
        "options": {"on_leave": "specified"},
        "roles": [config.role("anonymous", config.permission("*", subscribe=True))],
    }
    router = start_router(config.node([realm], [config.universal("tcp", config.tcp())]))
    with joined(router) as watcher:
        watcher.subscribe("wamp.session.on_leave")
        with joined(router) as peer:
            peer.say(GOODBYE, {}, "wamp.close.normal")
            peer.hear(GOODBYE)
        assert watcher.hear(EVENT)[4] == [peer.id, peer.authid, "anonymous"]


def test_arguments_that_are_too_long_are_not_read(router):
    with joined(router) as peer:
        error = refused(peer, "wamp.session.count", ["x" * 70_000])
        assert error == "wamp.error.invalid_argument"
        peer.round_trip()
