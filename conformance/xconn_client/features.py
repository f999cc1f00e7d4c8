"""Has xconn's client for Python use the features of WAMP that it passes on; says what is not so.

    features.py SERIALIZER URL

It runs in the environment of that client alone.
"""

from __future__ import annotations

import os
import queue
import sys
import traceback

from puppet import SERIALIZERS
from wampproto import auth
from xconn.client import Client
from xconn.exception import ApplicationError
from xconn.types import Result, TransportConfig

# Far beyond what anything takes on a loaded machine.
PATIENCE_S = 90


class Peer:
    """A session, and the events that it was sent."""

    def __init__(self, serializer: str, url: str):
        # A frame's head and its message are two writes to this client.
        own = TransportConfig(tcp_nodelay=True)
        client = Client(auth.AnonymousAuthenticator(""), SERIALIZERS[serializer](), own)
        self.session = client.connect(url, "realm1")
        self.id = self.session._base_session.id

    def subscribe(self, topic: str, **options: object) -> queue.Queue:
        """Subscribe; the events come in a queue."""
        events: queue.Queue = queue.Queue()
        self.session.subscribe(topic, events.put, options)
        return events

    def publish(self, topic: str, *args: object, **options: object) -> None:
        """Publish, and wait until that is done."""
        self.session.publish(topic, list(args), {}, {"acknowledge": True, **options})

    def answer(self, procedure: str, value: object, **options: object) -> None:
        """Answer calls with that."""
        self.session.register(procedure, lambda _: Result([value]), options)

    def call(self, procedure: str, *args: object, **options: object) -> object:
        """Call, and return the first result."""
        result = self.session.call(procedure, list(args), {}, options)
        return result.args[0] if result.args else None

    def refusal(self, procedure: str, *args: object, **options: object) -> str:
        """Call in vain, and return the error."""
        try:
            result = self.call(procedure, *args, **options)
        except ApplicationError as error:
            return error.message
        raise AssertionError(f"{procedure} is answered with {result}")


def heard(events: queue.Queue) -> list:
    """Return the arguments of the next event."""
    return events.get(timeout=PATIENCE_S).args


def patterns(join) -> None:
    one, two = join(), join()
    prefix = one.subscribe("com.pre", match="prefix")
    wildcard = two.subscribe("com..wild", match="wildcard")
    two.publish("com.prefix", 1)
    one.publish("com.a.wild", 2)
    assert prefix.get(timeout=PATIENCE_S).details["topic"] == "com.prefix"
    assert wildcard.get(timeout=PATIENCE_S).details["topic"] == "com.a.wild"
    one.session.register(
        "com.call", lambda call: Result([call.details["procedure"]]), {"match": "prefix"}
    )
    assert two.call("com.called") == "com.called"
    one.answer("com.called", "exact")
    assert two.call("com.called") == "exact"


def shared(join) -> None:
    caller = join()
    expected = {"roundrobin": "abab", "first": "aaaa", "last": "bbbb", "x_least_busy": "aaaa"}
    for invoke, names in expected.items():
        for name in "ab":
            join().answer(f"com.shared.{invoke}", name, invoke=invoke)
        assert [caller.call(f"com.shared.{invoke}") for _ in range(4)] == list(names), invoke
    sticky = join()
    for name in "abc":
        join().answer("com.sticky", name, invoke="x_sticky")
    assert len({sticky.call("com.sticky") for _ in range(5)}) == 1


def sharded_calls(join) -> None:
    caller = join()
    for name in "abc":
        join().answer("com.sharded", name, invoke="roundrobin", nkey=name)
    of = [[caller.call("com.sharded", runmode="partition", rkey=f"r{n}") for n in range(20)]]
    of += [[caller.call("com.sharded", runmode="partition", rkey=f"r{n}") for n in range(20)]]
    assert of[0] == of[1]
    assert set(of[0]) == set("abc")
    assert caller.refusal("com.sharded", runmode="partition") == "wamp.error.invalid_argument"
    assert caller.refusal("com.sharded", runmode="all", rkey="r") == "wamp.error.option_not_allowed"


def sharded_events(join) -> None:
    publisher = join()
    one, two = join().subscribe("com.t", nkey="a"), join().subscribe("com.t", nkey="b")
    everybody = join().subscribe("com.t")
    for number in range(20):
        publisher.publish("com.t", number, rkey=f"r{number}")
    publisher.publish("com.t", "end")
    came = {}
    for name, events in (("one", one), ("two", two), ("all", everybody)):
        came[name] = list(iter(lambda events=events: heard(events)[0], "end"))
    assert came["all"] == list(range(20))
    assert came["one"]
    assert came["two"]
    assert sorted(came["one"] + came["two"]) == came["all"]


def retained(join) -> None:
    publisher, late = join(), join()
    publisher.publish("com.retained", "kept", retain=True)
    event = late.subscribe("com.retained", get_retained=True).get(timeout=PATIENCE_S)
    assert (event.args, event.details["retained"]) == (["kept"], True)
    publisher.publish("com.passing", "gone", retain=True, retain_ms=0)
    events = late.subscribe("com.passing", get_retained=True)
    publisher.publish("com.passing", "new")
    assert heard(events) == ["new"]


def history(join) -> None:
    publisher, reader = join(), join()
    for number in range(3):
        publisher.publish("com.history.topic", number)
    subscription = reader.call("wamp.subscription.lookup", "com.history.topic")
    which = {"limit": 2, "reverse": True}
    result = reader.session.call("wamp.subscription.get_events", [subscription], which)
    found = result.args[0] if isinstance(result.args[0], list) else result.args
    assert [event["args"] for event in found] == [[2], [1]]


def meta(join) -> None:
    watcher = join()
    joined = watcher.subscribe("wamp.session.on_join")
    left = watcher.subscribe("wamp.session.on_leave")
    other = join()
    assert heard(joined)[0]["session"] == other.id
    assert other.id in watcher.call("wamp.session.list")
    assert watcher.call("wamp.session.get", other.id)["authrole"] == "anonymous"
    assert watcher.call("wamp.session.kill", other.id, "com.reason") is None
    assert heard(left)[0] == other.id
    assert watcher.refusal("wamp.session.get", other.id) == "wamp.error.no_such_session"


def testaments(join) -> None:
    heir, mortal = join(), join()
    events = heir.subscribe("com.testament")
    mortal.call("wamp.session.add_testament", "com.testament", ["gone"], {})
    mortal.publish("com.testament", "here")
    mortal.session.leave()
    assert [heard(events), heard(events)] == [["here"], ["gone"]]


def timeouts(join) -> None:
    callee, caller = join(), join()
    ended: queue.Queue = queue.Queue()

    def slow(_: object) -> Result:
        ended.get(timeout=PATIENCE_S)
        return Result(["late"])

    callee.session.register("com.slow", slow)
    # From this thread and no other: two at once would mix their frames.
    callee.answer("com.quick", "quick")
    assert caller.refusal("com.slow", timeout=50) == "wamp.error.timeout"
    # Its late answer is dropped.
    ended.put(None)
    assert caller.call("com.quick", timeout=20_000) == "quick"


def lists(join) -> None:
    publisher, one, two = join(), join(), join()
    first, second = one.subscribe("com.listed"), two.subscribe("com.listed")
    publisher.publish("com.listed", 1, eligible=[one.id])
    publisher.publish("com.listed", 2, exclude=[one.id])
    publisher.publish("com.listed", 3, disclose_me=True, _own="x")
    assert heard(first) == [1]
    assert heard(second) == [2]
    for events in (first, second):
        event = events.get(timeout=PATIENCE_S)
        assert (event.args, event.details["publisher"]) == ([3], publisher.id)
        assert event.details["_own"] == "x"


def unavailable(join) -> None:
    """Say that a call cannot be served, as one that has not announced that it goes on."""
    callee, caller = join(), join()

    def away(_: object) -> Result:
        raise ApplicationError("wamp.error.unavailable")

    callee.session.register("com.away", away)
    assert caller.refusal("com.away") == "wamp.error.unavailable"


def reflection(join) -> None:
    one, two = join(), join()
    assert one.call("wamp.reflect.define", "com.defined", {"args": 2}) is True
    assert two.call("wamp.reflection.procedure.describe", "com.defined") == {"args": 2}
    undefined = two.subscribe("wamp.reflect.on_undefine")
    one.session.leave()
    assert heard(undefined)[2] == "com.defined"


CHECKS = (
    *(patterns, shared, sharded_calls, sharded_events, retained, history, meta, testaments),
    *(timeouts, lists, unavailable, reflection),
)


def main() -> int:
    """Check all; what fails is told."""
    serializer, url = sys.argv[1:]
    failed = 0
    for check in CHECKS:
        try:
            check(lambda: Peer(serializer, url))
        except BaseException:
            failed += 1
            print(check.__name__, traceback.format_exc(), sep="\n", flush=True)
    return failed


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Sessions end with the process; their threads would wait for ever.
    os._exit(code)
