"""Programs on each machine that call, serve, publish and subscribe, and note what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rig.session import (
    CALL,
    ERROR,
    EVENT,
    GOODBYE,
    HELLO,
    INVOCATION,
    PUBLISH,
    PUBLISHED,
    REGISTER,
    REGISTERED,
    RESULT,
    SUBSCRIBE,
    SUBSCRIBED,
    UNREGISTERED,
    WELCOME,
    YIELD,
)

from fabric.stage import ABLE

if TYPE_CHECKING:
    from fabric.machines import Machine

# One callee, which moves; callees on all machines; one whose results take a while.
ONE, SHARED, SLOW = "com.one", "com.shared", "com.slow"
TOPIC = "com.news"
EACH_S = 0.2
# Every so many rounds a call is made whose results take so many rounds.
SLOW_ROUNDS = 5
# A node that does not answer a HELLO is tried again.
JOIN_S = 2.0
SHAKE = b"\x7f\xf1\0\0"
REVOKED = {"registration_revocation": True}
ROLES = ABLE | {"callee": {"features": ABLE["callee"]["features"] | REVOKED}}


def own(index: int) -> str:
    """Return the procedure that only this machine serves."""
    return f"com.own{index}"


@dataclass(slots=True)
class Call:
    """A call, and its end."""

    realm: str
    machine: int
    procedure: str
    begun: float
    ended: float | None = None
    error: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether it has a result."""
        return self.ended is not None and self.error is None


@dataclass(slots=True)
class News:
    """An event: when it was published, acknowledged, and heard at each machine."""

    realm: str
    machine: int
    begun: float
    ended: float | None = None
    error: str | None = None
    heard: dict[int, float] = field(default_factory=dict)


class Wire:
    """A session by RawSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    @classmethod
    async def joined(cls, machine: Machine, realm: str) -> Wire:
        """Join the realm on the machine's node."""
        connected = await asyncio.wrap_future(machine.connect())
        made = cls(*await asyncio.open_connection(sock=connected))
        try:
            async with asyncio.timeout(JOIN_S):
                made.writer.write(SHAKE)
                assert (await made.reader.readexactly(4))[0] == SHAKE[0]
                made.say(HELLO, realm, {"roles": ROLES})
                assert (await made.hear())[0] == WELCOME
        except BaseException:
            made.close()
            raise
        return made

    def say(self, *message: object) -> None:
        """Send a message."""
        if self.writer.is_closing():
            return
        octets = json.dumps(message).encode()
        self.writer.write(struct.pack("!I", len(octets)) + octets)

    async def hear(self) -> list:
        """Return the next message; pings are answered."""
        while True:
            (prefix,) = struct.unpack("!I", await self.reader.readexactly(4))
            octets = await self.reader.readexactly(prefix & 0xFFFFFF)
            if prefix >> 24 == 0:
                return json.loads(octets)
            if prefix >> 24 == 1:
                self.writer.write(struct.pack("!I", 2 << 24 | len(octets)) + octets)

    def close(self) -> None:
        """End it."""
        self.writer.close()


class Agents:
    """All of them, on a thread of their own."""

    def __init__(self, machines: list[Machine], realms: tuple[str, ...]):
        self.machines, self.realms = machines, realms
        self.calls: list[Call] = []
        self.news: list[News] = []
        # Which machines have a callee for one procedure, by realm, in the order of their grants;
        # and which were called after another one had been granted it.
        self.serving: dict[str, list[int]] = {realm: [] for realm in realms}
        self.doubles: list[tuple[str, list[int]]] = []
        # Grants of that procedure: realm, machine, when.
        self.grants: list[tuple[str, int, float]] = []
        self.wrong: list[object] = []
        self.loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def now(self) -> float:
        """Return the time of what is noted."""
        return self.loop.time()

    def forget(self) -> None:
        """Forget calls that have ended."""

        def forget() -> None:
            self.calls = [call for call in self.calls if call.ended is None and not call.error]

        self.loop.call_soon_threadsafe(forget)

    def close(self) -> None:
        """End all."""
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._all())

    async def _all(self) -> None:
        parts: list[Callable] = [_Callee, _Contender, _Caller, _Publisher, _Subscriber]
        agents = [
            part(self, machine, realm)
            for machine in self.machines
            for realm in self.realms
            for part in parts
        ]
        tasks = [asyncio.create_task(agent.keep()) for agent in agents]
        await self._over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Agent:
    """A program that joins again when its session has ended."""

    def __init__(self, agents: Agents, machine: Machine, realm: str):
        self.agents, self.machine, self.realm = agents, machine, realm
        # Held, so that they are not collected before they end.
        self._answering: set[asyncio.Task[None]] = set()

    async def keep(self) -> None:
        while True:
            with contextlib.suppress(
                OSError, TimeoutError, asyncio.IncompleteReadError, EndedError
            ):
                wire = await Wire.joined(self.machine, self.realm)
                try:
                    await self.serve(wire)
                finally:
                    wire.close()
                    self.lose()
            await asyncio.sleep(EACH_S)

    async def serve(self, wire: Wire) -> None:
        raise NotImplementedError

    def lose(self) -> None:
        """Note that the session has ended."""


class EndedError(Exception):
    """The node has ended the session."""


class _Callee(_Agent):
    """Serves the procedures that have a callee on each machine."""

    async def serve(self, wire: Wire) -> None:
        own_name, shared = own(self.machine.index), {"invoke": "roundrobin"}
        names = ((own_name, {}), (SHARED, shared), (SLOW, shared))
        requests = dict(enumerate(names, 1))
        registrations: dict[int, str] = {}
        for request, (name, options) in requests.items():
            wire.say(REGISTER, request, options, name)
        while True:
            message = await wire.hear()
            match message:
                case [kind, request, registration] if kind == REGISTERED:
                    registrations[registration] = requests[request][0]
                case [kind, _, request, *_] if kind == ERROR:
                    # What the node had before may still be known elsewhere.
                    await asyncio.sleep(EACH_S)
                    wire.say(REGISTER, request, requests[request][1], requests[request][0])
                case [kind, request, registration, *_] if kind == INVOCATION:
                    if registrations[registration] == SLOW:
                        answering = asyncio.create_task(self._answer_slowly(wire, request))
                        self._answering.add(answering)
                        answering.add_done_callback(self._answering.discard)
                    else:
                        wire.say(YIELD, request, {}, [self.machine.index])
                case [kind, *_] if kind in (UNREGISTERED, GOODBYE):
                    raise EndedError

    async def _answer_slowly(self, wire: Wire, request: int) -> None:
        for _ in range(SLOW_ROUNDS):
            wire.say(YIELD, request, {"progress": True}, [self.machine.index])
            await asyncio.sleep(EACH_S)
        wire.say(YIELD, request, {}, [self.machine.index])


class _Contender(_Agent):
    """Serves the procedure for one callee whenever it can have it."""

    async def serve(self, wire: Wire) -> None:
        request, here, serving = 1, self.machine.index, self.agents.serving[self.realm]
        wire.say(REGISTER, request, {}, ONE)
        while True:
            message = await wire.hear()
            match message[0]:
                case kind if kind == REGISTERED:
                    serving.append(here)
                    self.agents.grants.append((self.realm, here, self.agents.now()))
                case kind if kind == ERROR:
                    await asyncio.sleep(EACH_S)
                    request += 1
                    wire.say(REGISTER, request, {}, ONE)
                case kind if kind == INVOCATION:
                    if serving[-1] != here:
                        self.agents.doubles.append((self.realm, serving.copy()))
                    wire.say(YIELD, message[1], {}, [here])
                case kind if kind in (UNREGISTERED, GOODBYE):
                    raise EndedError

    def lose(self) -> None:
        serving = self.agents.serving[self.realm]
        if self.machine.index in serving:
            serving.remove(self.machine.index)


class _Caller(_Agent):
    """Calls each procedure, round after round, and notes each answer."""

    async def serve(self, wire: Wire) -> None:
        opened: dict[int, Call] = {}
        calling = asyncio.create_task(self._call_on(wire, opened))
        try:
            while True:
                message = await wire.hear()
                match message[0]:
                    case kind if kind == RESULT:
                        if not message[2].get("progress"):
                            opened.pop(message[1]).ended = self.agents.now()
                    case kind if kind == ERROR:
                        call = opened.pop(message[2])
                        call.ended, call.error = self.agents.now(), message[4]
                    case _:
                        raise EndedError
        except KeyError:
            self.agents.wrong.append(message)
            raise EndedError from None
        finally:
            calling.cancel()
            for call in opened.values():
                call.error = "the session has ended"

    async def _call_on(self, wire: Wire, opened: dict[int, Call]) -> None:
        here, request, rounds = self.machine.index, 0, 0
        others = [own(each.index) for each in self.agents.machines if each.index != here]
        while True:
            rounds += 1
            slow = [SLOW] if rounds % SLOW_ROUNDS == 0 else []
            for name in (ONE, SHARED, *others, *slow):
                request += 1
                call = Call(self.realm, here, name, self.agents.now())
                opened[request] = call
                self.agents.calls.append(call)
                options = {"receive_progress": True} if name == SLOW else {}
                wire.say(CALL, request, options, name)
            await asyncio.sleep(EACH_S)


class _Publisher(_Agent):
    """Publishes one event after another, and notes when each is acknowledged."""

    async def serve(self, wire: Wire) -> None:
        opened: dict[int, News] = {}
        publishing = asyncio.create_task(self._publish_on(wire, opened))
        try:
            while True:
                message = await wire.hear()
                match message[0]:
                    case kind if kind == PUBLISHED:
                        opened.pop(message[1]).ended = self.agents.now()
                    case kind if kind == ERROR:
                        news = opened.pop(message[2])
                        news.ended, news.error = self.agents.now(), message[4]
                    case _:
                        raise EndedError
        finally:
            publishing.cancel()
            for news in opened.values():
                news.error = "the session has ended"

    async def _publish_on(self, wire: Wire, opened: dict[int, News]) -> None:
        request = 0
        while True:
            request += 1
            news = News(self.realm, self.machine.index, self.agents.now())
            opened[request] = news
            self.agents.news.append(news)
            number = len(self.agents.news) - 1
            wire.say(PUBLISH, request, {"acknowledge": True}, TOPIC, [number])
            await asyncio.sleep(EACH_S)


class _Subscriber(_Agent):
    """Notes when it hears each event."""

    async def serve(self, wire: Wire) -> None:
        wire.say(SUBSCRIBE, 1, {}, TOPIC)
        while True:
            message = await wire.hear()
            match message[0]:
                case kind if kind == EVENT:
                    heard = self.agents.news[message[4][0]].heard
                    if self.machine.index in heard:
                        self.agents.wrong.append(message)
                    heard[self.machine.index] = self.agents.now()
                case kind if kind != SUBSCRIBED:
                    raise EndedError
