"""Scenarios for Crossbar.io and Crosstie. None says what is right: Crossbar.io does.

If Crosstie differs by intention, `DIFFERENT` has the reason, and its own answers are kept beside
the others.
"""

from __future__ import annotations

from collections.abc import Callable

from rig import config
from rig.session import (
    CALL,
    ERROR,
    INVOCATION,
    PUBLISH,
    REGISTER,
    SUBSCRIBE,
    UNREGISTER,
    UNSUBSCRIBE,
    YIELD,
)

from crossbar import meta
from crossbar.stage import Actor, Stage

FORBIDDEN = "com.forbidden."

NOTHING = {"call": False, "register": False, "publish": False, "subscribe": False}

REVOCATION = {"callee": ["registration_revocation"]}
ACKNOWLEDGED = {"acknowledge": True}

DIFFERENT = {
    "retained_by_pattern": "Crossbar.io sends retained events to exact subscriptions only; the "
    "specification makes no such exception.",
    "retained_for_a_role": "Crossbar.io does not apply lists of authids and authroles to retained "
    "events, so that anybody gets what is not meant for them.",
    "concurrency_first": "On Crossbar.io a busy first callee is an error, although the second is "
    "free.",
    "reregistration_shared": "Crossbar.io fails on the way: it tells the first callee alone, "
    "and does not answer.",
    "unknown_ids": "Crosstie says which id it is; Crossbar.io says nothing.",
}


def realm() -> dict:
    """Return the realm that the scenarios are played in."""
    permissions = [config.permission("*"), config.permission(f"{FORBIDDEN}*", **NOTHING)]
    return {"name": "realm1", "roles": [config.role("anonymous", *permissions)]}


def retained(stage: Stage) -> None:
    """The last event of a topic comes right after SUBSCRIBED, also to its publisher."""
    a, b = stage.join("A"), stage.join("B")
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.retained", [1])
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.retained", [2], {"two": 2})
    a.ask(PUBLISH, ACKNOWLEDGED, "com.retained", [3])
    b.ask(SUBSCRIBE, {"get_retained": True}, "com.retained")
    b.settle()
    b.ask(SUBSCRIBE, {"get_retained": True}, "com.retained")
    b.settle()
    a.ask(SUBSCRIBE, {"get_retained": True}, "com.retained")
    a.settle()
    a.ask(SUBSCRIBE, {}, "com.retained")
    a.settle()
    a.ask(SUBSCRIBE, {"get_retained": True}, "com.retained.not")
    a.settle()


def retained_for_some(stage: Stage) -> None:
    """An event with lists is kept beside the last one without, for whom it may reach."""
    a, b, c = stage.join("A"), stage.join("B"), stage.join("C")
    lists = {"eligible": [b.peer.id], "exclude": [c.peer.id]}
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.listed", ["all"])
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True, **lists}, "com.listed", ["B"])
    for actor in (b, c):
        actor.ask(SUBSCRIBE, {"get_retained": True}, "com.listed")
        actor.settle()
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.listed", ["all again"])
    b.settle()
    b.ask(SUBSCRIBE, {"get_retained": True}, "com.listed")
    b.settle()


def retained_for_a_role(stage: Stage) -> None:
    """An event for a role that the subscriber does not have."""
    a, b = stage.join("A"), stage.join("B")
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True, "eligible_authrole": ["x"]}, "com.role", [1])
    b.ask(SUBSCRIBE, {"get_retained": True}, "com.role")
    b.settle()


def retained_by_pattern(stage: Stage) -> None:
    """Subscriptions to patterns."""
    a, b = stage.join("A"), stage.join("B")
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.pattern.one", [1])
    a.ask(PUBLISH, {**ACKNOWLEDGED, "retain": True}, "com.pattern.two", [2])
    b.ask(SUBSCRIBE, {"get_retained": True, "match": "prefix"}, "com.pattern")
    b.settle()
    b.ask(SUBSCRIBE, {"get_retained": True, "match": "wildcard"}, "com.pattern.")
    b.settle()


def concurrency(stage: Stage) -> None:
    """One callee that serves two calls at a time."""
    a, b = stage.join("A"), stage.join("B")
    a.ask(REGISTER, {"concurrency": 2}, "com.concurrency")
    first, _ = called(b, a, "com.concurrency"), called(b, a, "com.concurrency")
    b.ask(CALL, {}, "com.concurrency")
    a.say(YIELD, first, {})
    b.hear()
    second = called(b, a, "com.concurrency")
    a.say(ERROR, INVOCATION, second, {}, "com.failed")
    b.hear()
    called(b, a, "com.concurrency")


def concurrency_roundrobin(stage: Stage) -> None:
    """A busy callee is passed over."""
    a, b, c = stage.join("A"), stage.join("B"), stage.join("C")
    a.ask(REGISTER, {"concurrency": 1, "invoke": "roundrobin"}, "com.robin")
    b.ask(REGISTER, {"concurrency": 1, "invoke": "roundrobin"}, "com.robin")
    called(c, a, "com.robin")
    invocation = called(c, b, "com.robin")
    c.ask(CALL, {}, "com.robin")
    b.say(YIELD, invocation, {})
    c.hear()
    called(c, b, "com.robin")


def concurrency_first(stage: Stage) -> None:
    """The second callee of the policy `first`, when the first is busy."""
    a, b, c = stage.join("A"), stage.join("B"), stage.join("C")
    a.ask(REGISTER, {"concurrency": 1, "invoke": "first"}, "com.first")
    b.ask(REGISTER, {"concurrency": 1, "invoke": "first"}, "com.first")
    called(c, a, "com.first")
    c.send(CALL, {}, "com.first")
    c.settle()
    b.settle()


def reregistration(stage: Stage) -> None:
    """force_reregister takes the procedure; only clients with revocation are notified."""
    a, b, c = stage.join("A", REVOCATION), stage.join("B"), stage.join("C")
    a.ask(REGISTER, {}, "com.forced")
    b.ask(REGISTER, {}, "com.forced")
    b.ask(REGISTER, {"force_reregister": True}, "com.forced")
    a.hear()
    called(c, b, "com.forced")


def reregistration_shared(stage: Stage) -> None:
    """All who shared a procedure lose it, its policy too."""
    a, b = stage.join("A", REVOCATION), stage.join("B", REVOCATION)
    c = stage.join("C", REVOCATION)
    a.ask(REGISTER, {"invoke": "roundrobin"}, "com.forced.shared")
    b.ask(REGISTER, {"invoke": "roundrobin"}, "com.forced.shared")
    c.send(REGISTER, {"force_reregister": True}, "com.forced.shared")
    for actor in (c, a, b):
        actor.settle()


def registered_again(stage: Stage) -> None:
    """A session that registers a shared procedure twice."""
    a, b = stage.join("A"), stage.join("B")
    registration = a.ask(REGISTER, {"invoke": "roundrobin"}, "com.again")[2]
    a.ask(REGISTER, {"invoke": "roundrobin"}, "com.again")
    b.ask(REGISTER, {"invoke": "roundrobin"}, "com.again")
    a.ask(REGISTER, {"invoke": "first"}, "com.again")
    b.ask(REGISTER, {}, "com.again")
    called(b, a, "com.again")
    a.ask(UNREGISTER, registration)
    called(a, b, "com.again")


def empty_lists(stage: Stage) -> None:
    """Empty lists of receivers."""
    a, b = stage.join("A"), stage.join("B")
    b.ask(SUBSCRIBE, {}, "com.empty")
    for number, name in enumerate(("eligible", "eligible_authid", "eligible_authrole", "exclude")):
        a.ask(PUBLISH, {**ACKNOWLEDGED, name: []}, "com.empty", [number])
    b.settle()


def callee_disclosed(stage: Stage) -> None:
    """RESULT names the callee, also a progressive one."""
    a = stage.join("A", {"callee": ["progressive_call_results"]})
    b = stage.join("B", {"caller": ["progressive_call_results"]})
    a.ask(REGISTER, {}, "com.who")
    b.send(CALL, {"receive_progress": True}, "com.who")
    invocation = a.hear()[1]
    a.say(YIELD, invocation, {"progress": True}, ["some"])
    b.hear()
    a.say(YIELD, invocation, {}, ["all"])
    b.hear()


def taken_and_missing(stage: Stage) -> None:
    """The errors that programs meet most."""
    a, b = stage.join("A"), stage.join("B")
    a.ask(REGISTER, {}, "com.taken")
    b.ask(REGISTER, {}, "com.taken")
    b.ask(CALL, {}, "com.missing")
    b.ask(PUBLISH, ACKNOWLEDGED, "wamp.mine")
    b.ask(REGISTER, {}, "wamp.mine")
    b.send(CALL, {}, "com.taken")
    a.hear()
    a.peer.close()
    b.hear()


def forbidden(stage: Stage) -> None:
    """Actions that the role forbids."""
    a = stage.join("A")
    a.ask(CALL, {}, f"{FORBIDDEN}x")
    a.ask(REGISTER, {}, f"{FORBIDDEN}x")
    a.ask(SUBSCRIBE, {}, f"{FORBIDDEN}x")
    a.ask(PUBLISH, ACKNOWLEDGED, f"{FORBIDDEN}x")
    a.send(PUBLISH, {}, f"{FORBIDDEN}x")
    a.settle()


def unknown_ids(stage: Stage) -> None:
    """Subscriptions and registrations that are not the session's."""
    a = stage.join("A")
    a.ask(UNSUBSCRIBE, 123456)
    a.ask(UNREGISTER, 123456)


def encoded(stage: Stage) -> None:
    """Bytes in place of arguments, as a keyring makes them."""
    a = stage.join("A", {"callee": ["progressive_call_results"]})
    b = stage.join("B", {"caller": ["progressive_call_results"]})
    how = {"enc_algo": "cryptobox", "enc_key": "key", "enc_serializer": "json"}
    secret = "\0AAECAw=="
    a.ask(SUBSCRIBE, {}, "com.encoded")
    b.ask(PUBLISH, {**ACKNOWLEDGED, **how}, "com.encoded", secret)
    a.hear()
    a.ask(REGISTER, {}, "com.encoded")
    b.send(CALL, {**how, "receive_progress": True}, "com.encoded", secret)
    invocation = a.hear()[1]
    a.say(YIELD, invocation, {**how, "progress": True}, secret)
    b.hear()
    a.say(YIELD, invocation, how, secret)
    b.hear()
    b.send(CALL, how, "com.encoded", secret)
    a.say(ERROR, INVOCATION, a.hear()[1], how, "com.failed", secret)
    b.hear()


def called(caller: Actor, callee: Actor, procedure: str) -> int:
    """Call a procedure and have the callee invoked; return the invocation."""
    caller.send(CALL, {}, procedure)
    return callee.hear()[1]


SCENARIOS: list[Callable[[Stage], None]] = [
    retained,
    retained_for_some,
    retained_for_a_role,
    retained_by_pattern,
    concurrency,
    concurrency_roundrobin,
    concurrency_first,
    reregistration,
    reregistration_shared,
    registered_again,
    empty_lists,
    callee_disclosed,
    taken_and_missing,
    forbidden,
    unknown_ids,
    encoded,
    *meta.SCENARIOS,
]
