"""Scenarios of the meta API. Values that a router chooses freely are read by their meaning."""

from __future__ import annotations

import json
from collections.abc import Callable

from rig.session import CALL, ERROR, EVENT, REGISTER, RESULT, SUBSCRIBE, UNREGISTER, UNSUBSCRIBE

from crossbar.stage import Actor, Stage

GOODBYE = 6
# Of what tells a session, the fields that both have, and do not choose. (Crossbar.io's `serializer`
# is a number of RawSocket's here, and a name over WebSocket.)
TOLD = ("authid", "authrole", "authmethod", "authprovider", "realm")
RESUMED = ("resumed", "resumable", "resume_token")
# Events that the meta API publishes of registrations and subscriptions.
OF_REGISTRATIONS = ("on_create", "on_register", "on_unregister", "on_delete")
OF_SUBSCRIPTIONS = ("on_create", "on_subscribe", "on_unsubscribe", "on_delete")


def sessions(stage: Stage) -> None:
    """Sessions are listed, found and described."""
    a, b = stage.join("A"), stage.join("B")
    known = {each.peer.id: each.name for each in (a, b)}

    def names(ids: list[int]) -> list[str]:
        return sorted(known[each] for each in ids if each in known)

    ask(a, "wamp.session.count", read=lambda count: count >= len(known))
    ask(a, "wamp.session.count", [["nobody"]])
    ask(a, "wamp.session.list", read=names)
    ask(a, "wamp.session.list", [["anonymous"]], read=names)
    ask(a, "wamp.session.list", kwargs={"filter_authroles": ["nobody"]}, read=names)
    ask(a, "wamp.session.get", [b.peer.id], read=lambda told: only(told, *TOLD, *RESUMED))
    ask(a, "wamp.session.get", [123])


def killed(stage: Stage) -> None:
    """A session is sent away, with a reason and a message."""
    a, b = stage.join("A"), stage.join("B")
    ask(a, "wamp.session.kill", [b.peer.id], {"reason": "com.why", "message": "so"})
    b.hear()
    b.say(GOODBYE, {}, "wamp.close.goodbye_and_out")
    ask(a, "wamp.session.kill", [123])


def registrations(stage: Stage) -> None:
    """A registration is looked up, matched, described, and its callee found."""
    a, b = stage.join("A"), stage.join("B")
    registration = a.ask(REGISTER, {}, "com.meta.exact")[2]
    pattern = a.ask(REGISTER, {"match": "prefix", "invoke": "roundrobin"}, "com.meta.p")[2]
    of(b, "registration", "procedure", registration, pattern)
    ask(b, "wamp.registration.list_callees", [registration])
    ask(b, "wamp.registration.count_callees", [registration])
    for procedure in ("get", "list_callees", "count_callees"):
        ask(b, f"wamp.registration.{procedure}", [1])


def subscriptions(stage: Stage) -> None:
    """The same of subscriptions."""
    a, b = stage.join("A"), stage.join("B")
    subscription = a.ask(SUBSCRIBE, {}, "com.meta.exact")[2]
    pattern = a.ask(SUBSCRIBE, {"match": "prefix"}, "com.meta.p")[2]
    of(b, "subscription", "topic", subscription, pattern)
    ask(b, "wamp.subscription.list_subscribers", [subscription])
    ask(b, "wamp.subscription.count_subscribers", [subscription])
    for procedure in ("get", "list_subscribers", "count_subscribers"):
        ask(b, f"wamp.subscription.{procedure}", [1])


def events_of_registrations(stage: Stage) -> None:
    """Registering and unregistering sessions are announced, in this order."""
    watcher, topics = watch(stage, "registration", OF_REGISTRATIONS)
    a = stage.join("A")
    registration = a.ask(REGISTER, {}, "com.meta.told")[2]
    a.ask(UNREGISTER, registration)
    hear(watcher, topics, len(topics))


def events_of_subscriptions(stage: Stage) -> None:
    """The same of subscriptions."""
    watcher, topics = watch(stage, "subscription", OF_SUBSCRIPTIONS)
    a = stage.join("A")
    subscription = a.ask(SUBSCRIBE, {}, "com.meta.told")[2]
    a.ask(UNSUBSCRIBE, subscription)
    hear(watcher, topics, len(topics))


def events_of_sessions(stage: Stage) -> None:
    """Joining sessions are announced."""
    watcher, topics = watch(stage, "session", ("on_join",))
    stage.join("A")
    hear(watcher, topics, 1)


SCENARIOS: list[Callable[[Stage], None]] = [
    sessions,
    killed,
    registrations,
    subscriptions,
    events_of_registrations,
    events_of_subscriptions,
    events_of_sessions,
]


def ask(
    actor: Actor,
    procedure: str,
    arguments: list | None = None,
    kwargs: dict | None = None,
    read: Callable = lambda value: value,
) -> None:
    """Call; write down what the result stands for, or the error."""
    actor.peer.ask(CALL, {}, procedure, arguments or [], kwargs or {})
    message = actor.peer.hear_any()
    if message[0] == RESULT:
        told = read(message[3][0] if len(message) > 3 and message[3] else None)
    else:
        assert message[0] == ERROR, message
        told = message[4:6]
    write(actor, procedure, told)


def of(actor: Actor, kind: str, name: str, exact: int, pattern: int) -> None:
    """Ask for an exact and a prefix registration or subscription in all ways there are."""
    known = {exact: "exact", pattern: "pattern", None: None}

    def named(found: int | list | None) -> object:
        if isinstance(found, list):
            return sorted(known.get(each, "another") for each in found)
        return known.get(found, "another")

    for uri in ("com.meta.exact", "com.meta.patterns.x", "com.other"):
        ask(actor, f"wamp.{kind}.lookup", [uri], read=named)
        ask(actor, f"wamp.{kind}.match", [uri], read=named)
    ask(actor, f"wamp.{kind}.lookup", ["com.meta.p", {"match": "prefix"}], read=named)
    ask(actor, f"wamp.{kind}.lookup", kwargs={name: "com.meta.exact"}, read=named)
    for each in (exact, pattern):
        told = ("uri", "match", "invoke") if kind == "registration" else ("uri", "match")
        ask(actor, f"wamp.{kind}.get", [each], read=lambda got, told=told: only(got, *told))


def watch(stage: Stage, kind: str, events: tuple[str, ...]) -> tuple[Actor, dict[int, str]]:
    """Join and subscribe to what is told; return what the subscriptions are to."""
    watcher = stage.join("W")
    names = [f"wamp.{kind}.{event}" for event in events]
    return watcher, {watcher.peer.subscribe(name): name for name in names}


def hear(watcher: Actor, topics: dict[int, str], count: int) -> None:
    """Write down so many events: who, and of a description what both have."""
    while count:
        message = watcher.peer.hear_any()
        assert message[0] == EVENT, message
        first, *others = message[4]
        session = first["session"] if isinstance(first, dict) else first
        # Sessions of an earlier scenario may not be gone yet.
        if session not in [actor.peer.id for actor in watcher.stage.actors]:
            continue
        count -= 1
        # Ids of registrations and subscriptions say nothing.
        others = [each if isinstance(each, dict) else "*" for each in others]
        told = [only(each, "uri", "match", "invoke", *TOLD) for each in (first, *others)]
        write(watcher, topics[message[1]], told)


def only(told: object, *keys: str) -> object:
    """Return those fields of a description that are there."""
    return {key: told[key] for key in keys if key in told} if isinstance(told, dict) else told


def write(actor: Actor, what: str, told: object) -> None:
    """Write a line."""
    named = actor.stage.named(told)
    actor.stage.transcript.append(f"{actor.name} {what} {json.dumps(named, sort_keys=True)}")
