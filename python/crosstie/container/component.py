"""One hosted component: a session that is connected, and connected again, until it is done.

Inputs: `await_others`, `start`, `stop`. Outputs: the calls to its `Listener`, the last of which is
`ended`.

    start ─► connecting ◄──── waiting, ever longer
                 │  ▲            ▲
                 ▼  └── lost ────┘
               joined ─► ready       ended: stopped here, left by itself, or failed

A component that leaves or disconnects by itself is done. One that raises where it connects or joins
has failed. One that lost its router, or was sent away by it, is connected again, in a new session.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import txaio
from autobahn.wamp.types import CloseDetails, ComponentConfig
from twisted.internet.defer import Deferred, ensureDeferred
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.python.failure import Failure

from crosstie.container.loading import Loaded
from crosstie.container.transport import Way

# The first wait is short because a router that is just starting is there in milliseconds.
WAIT_LEAST_S, WAIT_MOST_S, WAIT_GROWTH = 0.05, 10.0, 1.5
# A session that ended sooner was none: the wait before the next goes on growing.
LASTED_S = 10.0
# How long a router may take to welcome a session, authentication included.
WELCOME_TIMEOUT_S = 60.0
# How long a session may take to say goodbye.
LEAVE_TIMEOUT_S = 2.0
# An exception in these of the component's own functions is no more than told; in all others the
# component has failed, unless the session ended before they did.
AFTER_JOINING = ("leave", "disconnect")
BEFORE_JOINING = ("connect", "onConnect")


@dataclass
class Listener:
    """Receiver of a component's changes of state."""

    joined: Callable[[Component], None]
    ready: Callable[[Component], None]
    # The connection, and a session with it that will not be used again; another is to come.
    lost: Callable[[Component], None]
    # With the reason why it has no session; it tries again. Called for each attempt until the
    # component has joined once, and then once for each reason.
    waiting: Callable[[Component, str], None]
    # With the reason of a failure, or None where it was stopped or left by itself.
    ended: Callable[[Component, str | None], None]


class Component:
    """One component by its definition."""

    log = txaio.make_logger()

    def __init__(
        self,
        name: str,
        definition: dict,
        loaded: Loaded,
        way: Way,
        config: ComponentConfig,
        listener: Listener,
        reactor,
    ):
        self.name = name
        self.definition = definition
        self.state = "connecting"
        self.started = now()
        self._loaded = loaded
        self._way = way
        self._config = config
        self._listener = listener
        self._reactor = reactor
        self._wait_s = WAIT_LEAST_S
        self._complaint = ""
        self._session = None
        self._protocol = None
        self._connecting: Deferred | None = None
        self._again = None
        self._welcome = None
        self._stopping: Deferred | None = None
        # Set once a goodbye is under way, to be had for so long.
        self._leaving = None
        self._joined_s: float | None = None
        self._has_joined = False
        self._has_left = False
        # Why the router ended the session, if it did.
        self._sent_away = ""
        self._has_ended = False
        self._failure: str | None = None
        # Made before anything else, so that what its constructor raises is known to who starts it.
        self._next_session = self._new_session()

    def await_others(self) -> None:
        """Be there without a connection, until `start`."""
        self.state = "waiting"

    def start(self) -> None:
        """Connect, and go on doing so."""
        self._again = None
        self.state = "connecting"
        factory = self._way.new_factory(self._open_session, self._handle_lost)
        connecting = self._connecting = self._way.endpoint.connect(factory)
        connecting.addCallbacks(self._handle_connected, self._handle_unreachable)
        connecting.addErrback(lambda failure: self._fail("connecting", failure))

    def stop(self) -> Deferred:
        """Leave; the result comes when the component has ended, at the latest after a while."""
        done = Deferred()
        if self._has_ended:
            done.callback(None)
            return done
        if self._stopping is not None:
            self._stopping.addCallback(lambda _: done.callback(None))
            return done
        self._stopping = done
        if self._again is not None:
            self._again.cancel()
            self._end()
        elif self._protocol is None:
            # One that awaits others has not begun to connect.
            if self._connecting is not None:
                self._connecting.cancel()
            self._end()
        else:
            self._say_goodbye()
        return done

    def describe(self) -> dict:
        """Return what the management realm shows."""
        session = self._session
        return {
            "id": self.name,
            "type": self.definition.get("type"),
            "name": self.definition.get("classname"),
            "realm": self._config.realm,
            "transport": self._way.text,
            "state": self.state,
            "started": self.started,
            "session": session.session_id if session and session.is_attached() else None,
        }

    def _new_session(self):
        session = self._loaded.make_session(self._config)
        # A component that ends its session by these is finished.
        session.leave = self._and_done(session, session.leave)
        session.disconnect = self._and_done(session, session.disconnect)
        session.onConnect = self._guard(session, "onConnect", session.onConnect)
        session.onJoin = self._guard(session, "onJoin", session.onJoin)
        session.on("join", lambda session, _details: self._handle_joined(session))
        for event, listener in self._loaded.listeners:
            session.on(event, self._guard(session, event, listener))
        session.on("ready", self._handle_ready)
        session.on("leave", self._handle_left)
        return session

    def _and_done(self, session, function):
        def call(*args, **kwargs):
            # Autobahn disconnects by itself after a session was closed: that is no wish to end.
            if session.is_attached():
                self._has_left = True
            return function(*args, **kwargs)

        return call

    def _guard(self, session, what, function):
        def call(*args, **kwargs):
            result = txaio.as_future(function, *args, **kwargs)
            return result.addErrback(lambda failure: self._handle_raised(session, what, failure))

        return call

    def _open_session(self):
        """Give a new connection its session; Autobahn calls this when the handshake is done."""
        session, self._next_session = self._next_session, None
        try:
            self._session = session or self._new_session()
        except Exception:
            self._fail("making a session", Failure())
            raise
        return self._session

    def _handle_connected(self, protocol):
        self._connecting = None
        self._protocol = protocol
        self._welcome = self._reactor.callLater(WELCOME_TIMEOUT_S, self._handle_no_welcome)
        # A router's machine that is gone says nothing: the kernel finds out.
        protocol.transport.setTcpKeepAlive(1)
        if self._stopping is not None:
            self._say_goodbye()

    def _handle_no_welcome(self):
        self._sent_away = f"no welcome within {WELCOME_TIMEOUT_S:.0f} s"
        self._protocol.transport.abortConnection()

    def _handle_unreachable(self, failure):
        self._connecting = None
        if self._stopping is None:
            self._try_again(failure.getErrorMessage())

    def _handle_joined(self, session):
        self.state = "joined"
        self._has_joined = True
        cancel(self._welcome)
        self._joined_s = self._reactor.seconds()
        if self._complaint:
            self.log.info("Component '{name}' is connected again", name=self.name)
            self._complaint = ""
        self._listener.joined(self)
        if self._loaded.main is not None:
            main = self._guard(session, "main", self._loaded.main)
            # Not from within the join, which would block its other observers.
            self._reactor.callLater(0, lambda: ensureDeferred(self._run_main(main, session)))

    async def _run_main(self, main, session):
        await main(self._reactor, session)
        if session.is_attached() and self._failure is None:
            session.leave()

    def _handle_ready(self, session):
        if session is self._session and session.is_attached() and self._failure is None:
            self.state = "ready"
            self._listener.ready(self)

    def _handle_left(self, session, details):
        """The session is closed, the connection may not be."""
        if not self._has_left and details.reason != CloseDetails.REASON_TRANSPORT_LOST:
            self._sent_away = f"{details.reason}: {details.message or 'no message'}"
        if session.is_connected():
            session.disconnect()

    def _handle_raised(self, session, what, failure):
        """Something of the component's own raised."""
        if what in AFTER_JOINING:
            self.log.failure(
                "Component '{name}' raised in its '{what}': {log_failure.value}",
                failure=failure,
                name=self.name,
                what=what,
            )
        elif what in BEFORE_JOINING or (session is self._session and session.is_attached()):
            self._fail(what, failure)
        else:
            # Most often a call that was cut off with the connection.
            self.log.debug("{what} ended with its session: {failure}", what=what, failure=failure)

    def _fail(self, what, failure):
        if self._failure is None:
            self._failure = f"{what}: {failure.type.__name__}: {failure.getErrorMessage()}"
            self.log.failure(
                "Component '{name}' failed in {what}: {log_failure.value}",
                failure=failure,
                name=self.name,
                what=what,
            )
        if self._protocol is not None:
            self._say_goodbye()
        elif self._connecting is None:
            self._end()

    def _handle_lost(self, reason):
        """The connection has ended, from either side."""
        protocol, self._protocol, self._session = self._protocol, None, None
        if self._welcome is not None:
            cancel(self._welcome)
        if self._has_lasted():
            self._wait_s = WAIT_LEAST_S
        self._joined_s = None
        if self._has_ended:
            return
        if self._stopping is not None or self._has_left or self._failure is not None:
            self._end()
        else:
            unclean = getattr(protocol, "wasNotCleanReason", None)
            text = self._sent_away or unclean or reason.getErrorMessage()
            self._sent_away = ""
            self._listener.lost(self)
            self._try_again(f"connection ended: {text}")

    def _has_lasted(self) -> bool:
        joined_s = self._joined_s
        return joined_s is not None and self._reactor.seconds() - joined_s >= LASTED_S

    def _try_again(self, complaint):
        self.state = "waiting"
        is_news = complaint != self._complaint
        if is_news:
            self._complaint = complaint
            self.log.warn(
                "Component '{name}', {way}: {complaint}; trying again",
                name=self.name,
                way=self._way.text,
                complaint=complaint,
            )
        if is_news or not self._has_joined:
            self._listener.waiting(self, complaint)
        # A tenth more or less, so that not all that lost one router come back at once.
        wait_s = self._wait_s * random.uniform(0.9, 1.1)
        self._wait_s = min(self._wait_s * WAIT_GROWTH, WAIT_MOST_S)
        self._again = self._reactor.callLater(wait_s, self.start)

    def _say_goodbye(self):
        if self._leaving is not None:
            return
        session, protocol = self._session, self._protocol
        self._leaving = self._reactor.callLater(LEAVE_TIMEOUT_S, self._cut_off, protocol)
        try:
            if session is not None and session.is_attached():
                session.leave()
            else:
                protocol.transport.loseConnection()
        except Exception:
            self.log.failure("Component '{name}' raised when leaving", name=self.name)
            protocol.transport.loseConnection()

    def _cut_off(self, protocol):
        self.log.warn("Component '{name}' does not leave: cut off", name=self.name)
        protocol.transport.abortConnection()
        self._end()

    def _end(self):
        if self._has_ended:
            return
        self._has_ended = True
        if self._leaving is not None:
            cancel(self._leaving)
        self.state = "stopped" if self._failure is None else "failed"
        self._listener.ended(self, self._failure)
        if self._stopping is not None:
            self._stopping.callback(None)


def now() -> str:
    """Return the time as Crossbar.io writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def cancel(call) -> None:
    """Cancel a delayed call, whatever became of it."""
    with contextlib.suppress(AlreadyCalled, AlreadyCancelled):
        call.cancel()
