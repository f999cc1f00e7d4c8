"""Scenarios: what a client does with a broker, and the transcript of what it observed.

A scenario is a function of a `Script`. Everything it does through the script is written down, with
the broker's answers, so that two brokers are compared by comparing two transcripts. It says
itself what it awaits (`deliveries(2)`, `closed()`), so nothing depends on time.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable
from datetime import datetime
from itertools import zip_longest

from rig.amqp_drivers import open_driver
from rig.amqp_drivers.base import ClosedError, Driver, Event, NeverCameError
from rig.amqp_peer import Peer
from rig.amqp_wire import Method
from rig.broker import USERS, Broker

# Values that a broker generates, new each time.
MADE_UP = [
    (re.compile(r"amq\.gen-[\w-]{22}"), "amq.gen-*"),
    (re.compile(r"amq\.ctag-[\w-]{22}"), "amq.ctag-*"),
    (re.compile(r"amq\.rabbitmq\.reply-to\.[^' ]+"), "amq.rabbitmq.reply-to.*"),
]


class Script:
    """One scenario, played by one client on one broker."""

    def __init__(self, broker: Broker, driver: str, name: str):
        self.broker = broker
        self.driver = driver
        self.name = name
        self.transcript: list[str] = []
        self.links: list[Link] = []
        self._declared: set[tuple[str, str]] = set()

    def of(self, name: str) -> str:
        """Return the name of a queue or an exchange that no other script has."""
        return f"{self.name}.{self.driver}.{name}"

    def connect(self, user: str = "test", password: str | None = None, vhost: str = "/") -> Link:
        """Open a connection; a refusal is a line of the transcript."""
        link = Link(self, len(self.links) + 1)
        link.who = {"user": user, "vhost": vhost}
        self.links.append(link)
        secret = USERS.get(user, "") if password is None else password
        with Told(link, ("connect", user, vhost)):
            link.driver = open_driver(self.driver, self.broker.address, user, secret, vhost)
        return link

    def channel(self, **who: str) -> Channel:
        """Open a connection with one channel."""
        return self.connect(**who).channel()

    def tell(self, *line: object) -> None:
        """Write a line of the transcript."""
        text = stable(line)
        self.transcript.append(text.replace(f"{self.name}.{self.driver}.", ""))

    def declared(self, kind: str, name: str) -> None:
        """Remember what has to be deleted."""
        if name and not name.startswith("amq."):
            self._declared.add((kind, name))

    def clean(self) -> None:
        """Close the connections and delete what is left."""
        for link in self.links:
            link.end()
        with Peer.tcp(self.broker.address) as peer:
            peer.open()
            for number, (kind, name) in enumerate(sorted(self._declared), 1):
                peer.channel(number)
                peer.call(f"{kind}.delete", number, **{kind: name})
                if peer.hear(number).name == "channel.close":
                    peer.call("channel.close-ok", number)
            peer.leave()


class Told:
    """Writes down what the block ended with: an answer, or how the broker closed."""

    def __init__(self, link: Link, line: tuple):
        self.link = link
        self.line = line
        self.answer: object = None

    def __enter__(self) -> Told:
        return self

    def __exit__(self, _, error, __) -> bool:
        prefix = () if self.link.number == 1 else (f"connection {self.link.number}",)
        tell = self.link.script.tell
        if isinstance(error, ClosedError):
            tell(*prefix, *self.line, f"{error.scope} closed", *error.args[1:])
            self.link.is_closed |= error.scope == "connection"
            self.link.is_channel_closed = True
            return True
        if self.link.is_closed and isinstance(error, Exception):
            tell(*prefix, *self.line, "there is no connection")
            return True
        if isinstance(error, NeverCameError):
            tell(*prefix, *self.line, "never came")
            return True
        if error is None and self.answer is not None:
            tell(*prefix, *self.line, self.answer)
        return False


class Link:
    """A connection of a script."""

    driver: Driver

    def __init__(self, script: Script, number: int):
        self.script = script
        self.number = number
        self.is_closed = False
        # Whether the broker has closed one that was not opened again.
        self.is_channel_closed = False
        self.who: dict[str, str] = {}

    def channel(self, number: int = 1) -> Channel:
        """Open a channel."""
        with Told(self, ("channel.open", number)):
            self.driver.open_channel(number)
        return Channel(self, number)

    def close(self) -> None:
        """Close it in good order."""
        if not self.is_closed:
            self.is_closed = True
            self.driver.close()

    def drop(self) -> None:
        """Cut it."""
        self.is_closed = True
        self.driver.drop()

    def end(self) -> None:
        """Close it, whatever has become of it."""
        if self.is_closed or not hasattr(self, "driver"):
            return
        try:
            self.close()
        except Exception as error:
            self.script.tell("the connection did not end in good order", type(error).__name__)


class Channel:
    """A channel of a script. Each method writes what it did, and what came of it."""

    def __init__(self, link: Link, number: int):
        self.link = link
        self.number = number
        self.script = link.script
        self._confirmed: set[int] = set()

    def __call__(self, method: str, **arguments: object) -> dict:
        """Say any method by AMQP's name; return the answer."""
        shown = {name: value for name, value in arguments.items() if value not in (False, "", {})}
        answer: dict = {}
        with self._told(method, shown) as told:
            answer = self.link.driver.call(self.number, method, **arguments)
            event = answer.get("event")
            told.answer = event.told() if isinstance(event, Event) else answer
        for kind in ("queue", "exchange"):
            if method == f"{kind}.declare" and not arguments.get("passive"):
                self.script.declared(kind, str(arguments.get(kind, "")))
        return answer

    def queue(self, name: str = "", **more: object) -> str:
        """Declare a queue with a name of the script's own, or of the broker's; return the name."""
        queue = self.script.of(name) if name else ""
        answer = self("queue.declare", queue=queue, **more)
        return queue or answer.get("queue", "")

    def exchange(self, name: str, type: str = "direct", **more: object) -> str:
        """Declare an exchange with a name of the script's own; return the name."""
        exchange = self.script.of(name)
        self("exchange.declare", exchange=exchange, type=type, **more)
        return exchange

    def bind(self, queue: str, exchange: str, routing_key: str = "", **arguments: object) -> None:
        """Bind a queue."""
        self(
            "queue.bind",
            queue=queue,
            exchange=exchange,
            routing_key=routing_key,
            **({"arguments": arguments} if arguments else {}),
        )

    def count(self, queue: str) -> dict:
        """Ask for a queue's messages and consumers: what was sent to us before has come by then.

        RabbitMQ answers this before what it was told earlier and has not done yet, so there it is
        asked until its answer stays the same.
        """
        if self.script.broker.is_rabbitmq:
            self._await_rest(queue)
        return self("queue.declare", queue=queue, passive=True)

    def send(
        self,
        routing_key: str,
        *bodies: str,
        exchange: str = "",
        mandatory: bool = False,
        immediate: bool = False,
        **properties: object,
    ) -> None:
        """Publish messages; that is no line of the transcript, what comes of it is."""
        more = {"mandatory": True} if mandatory else {}
        if immediate:
            more["immediate"] = True
        with self._told("basic.publish"):
            for body in bodies or ("",):
                self.link.driver.publish(
                    self.number, exchange, routing_key, body.encode(), properties, **more
                )

    def consume(self, queue: str, tag: str = "c", **more: object) -> str:
        """Consume; return the tag."""
        return self("basic.consume", queue=queue, tag=tag, **more).get("tag", "")

    def get(self, queue: str, **more: object) -> dict:
        """Get one message; the answer is empty where there is none."""
        return self("basic.get", queue=queue, **more)

    def tell_all(self, queue: str) -> None:
        """Take everything out of a queue; write down the bodies only."""
        bodies = []
        with self._told("take all", queue) as told:
            while event := self.link.driver.call(
                self.number, "basic.get", queue=queue, no_ack=True
            ).get("event"):
                bodies.append(event.body.decode())
            told.answer = bodies

    def events(self, count: int, *kinds: str) -> list[Event]:
        """Await and write down so many of these: deliver, return, ack, nack, cancel."""
        waiting = self.link.driver.events[self.number]

        def found() -> list[Event]:
            return [event for event in waiting if not kinds or event.kind in kinds]

        with self._told(f"await {count}", kinds):
            self.link.driver.await_true(lambda: len(found()) >= count)
        taken = self.link.driver.in_order(found())[:count]
        for event in taken:
            waiting.remove(event)
            self.script.tell(*self._prefix(), *event.told())
        return taken

    def deliveries(self, count: int = 1) -> list[Event]:
        """Await so many deliveries."""
        return self.events(count, "deliver")

    def confirms(self, count: int = 1) -> None:
        """Await confirms for so many messages, in whatever groups they come."""
        waiting = self.link.driver.events[self.number]
        told: dict[int, str] = {}

        def confirmed() -> int:
            for event in [event for event in waiting if event.kind in ("ack", "nack")]:
                waiting.remove(event)
                upto = event.arguments["delivery"]
                first = upto
                if event.arguments["multiple"]:
                    first = min(set(range(1, upto + 1)) - self._confirmed, default=upto)
                for tag in range(first, upto + 1):
                    if tag not in self._confirmed:
                        told[tag] = event.kind
                        self._confirmed.add(tag)
            return len(told)

        with self._told(f"await {count} confirms"):
            self.link.driver.await_true(lambda: confirmed() >= count)
        self.script.tell(*self._prefix(), "confirmed", sorted(told.items()))

    def nothing_more(self, queue: str) -> None:
        """Hold the broker to having sent nothing else; `queue` is one that answers us."""
        self.count(queue)
        for event in self.link.driver.events[self.number]:
            self.script.tell(*self._prefix(), "and", *event.told())
        self.link.driver.events[self.number].clear()

    def closed(self) -> None:
        """Await that the broker closes this channel or the connection."""
        with self._told("await the end"):
            self.link.driver.await_true(lambda: False)

    def again(self) -> Channel:
        """Open the channel again after the broker has closed it, or even the connection."""
        if self.link.is_closed:
            return self.script.connect(**self.link.who).channel(self.number)
        if not self.link.is_channel_closed:
            self.script.tell(*self._prefix(), "is open")
            return self
        self.link.is_channel_closed = False
        self.link.driver.events[self.number].clear()
        return self.link.channel(self.number)

    def opened_again(self) -> Channel:
        """Return an open channel, whether or not the broker has closed this one."""
        if self.link.is_closed or self.link.is_channel_closed:
            return self.again()
        return self

    def _await_rest(self, queue: str) -> None:
        """Wait until a queue of the judge has done what it was told."""
        with Peer.tcp(self.script.broker.address) as peer:
            peer.open(vhost=self.link.who["vhost"])
            peer.channel()
            seen: list[Method] = []
            while len(seen) < 3 or any(each != seen[-1] for each in seen[-3:]):
                peer.call("queue.declare", queue=queue, passive=True)
                seen.append(peer.hear())
                if seen[-1].name == "channel.close":
                    return
                time.sleep(0.01)

    def _prefix(self) -> tuple:
        connection = () if self.link.number == 1 else (f"connection {self.link.number}",)
        return connection if self.number == 1 else (*connection, f"channel {self.number}")

    def _told(self, *line: object) -> Told:
        numbered = line if self.number == 1 else (f"channel {self.number}", *line)
        return Told(self.link, numbered)


def stable(line: object) -> str:
    """Return a line as text in which nothing is by chance."""
    text = repr(plain(line))
    for pattern, instead in MADE_UP:
        text = pattern.sub(instead, text)
    return text


def plain(value):
    """Return a value with its tables in order, and times as what they are."""
    match value:
        case dict():
            return {name: plain(value[name]) for name in sorted(value)}
        case tuple():
            return tuple(plain(each) for each in value)
        case list():
            return [plain(each) for each in value]
        case datetime():
            return "a time"
    return value


def play(scenario: Callable[[Script], None], broker: Broker, driver: str, name: str) -> list[str]:
    """Play a scenario; return the transcript, and leave nothing behind."""
    script = Script(broker, driver, name)
    try:
        scenario(script)
    finally:
        script.clean()
    return script.transcript


def expected(right: list[str], observed: list[str], crosstie: list[str] | None) -> list[str]:
    """Return what is to be observed: the judge's transcript, or an intended other one.

    An intended one may leave wording open with `*`.
    """
    if crosstie is None:
        return right
    return [
        theirs if fnmatch.fnmatchcase(theirs, pattern_of(line)) else line
        for line, theirs in zip_longest(crosstie, observed, fillvalue="")
    ]


def pattern_of(line: str) -> str:
    """Return a pattern in which only `*` has a meaning."""
    return line.replace("[", "[[]").replace("?", "[?]")
