"""Drives sessions of a published client library, which run in a process of their own.

Each client library has one small program that takes commands on its standard input, one JSON
object per line, and says what happens on its standard output: a *puppet*. So one set of tests
judges the router through all of them, in any mixture, and two event loops that cannot share a
process do not have to.

    -> {"id": 7, "session": "s1", "do": "call", "procedure": "com.x", "args": [1]}
    <- {"id": 7, "ok": {"args": [2], "kwargs": {}, "progress": []}}
    <- {"id": 8, "error": {"uri": "com.x.failed", "args": [], "kwargs": {}}}
    <- {"session": "s1", "event": "published", "subscription": 1, "args": ["news"], ...}

Byte strings, which JSON lacks, are written as `{"$bytes": BASE64}`.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from rig.waiting import DEADLINE_S

HERE = Path(__file__).resolve().parents[1]

COMMANDS = {
    "asyncio": [sys.executable, "-m", "puppets.main", "asyncio"],
    "twisted": [sys.executable, "-m", "puppets.main", "twisted"],
    "javascript": ["node", "js/puppet.js"],
}


class WampError(Exception):
    """The error by which the router, or a callee, refused a request."""

    def __init__(self, uri: str, args: list, kwargs: dict):
        super().__init__(f"{uri} {args} {kwargs}")
        self.uri = uri
        self.arguments = args
        self.kwargs = kwargs


@dataclass
class Reply:
    """The result of a call."""

    args: list
    kwargs: dict
    progress: list = field(default_factory=list)


class Puppet:
    """One process with any number of sessions."""

    def __init__(self, client: str, authority: Path):
        environment = {**os.environ, "NODE_EXTRA_CA_CERTS": str(authority)}
        self.process = subprocess.Popen(
            COMMANDS[client],
            cwd=HERE,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._ids = itertools.count(1)
        self._pending: dict[int, Future] = {}
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def session(self) -> Session:
        """Return a session that is not open yet."""
        name = f"s{next(self._ids)}"
        session = Session(self, name)
        self._sessions[name] = session
        return session

    def start(self, command: dict) -> Future:
        """Send a command; its future holds what the answer says."""
        future: Future = Future()
        with self._lock:
            number = next(self._ids)
            self._pending[number] = future
            future.number = number  # type: ignore[attr-defined]
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({"id": number, **command}, default=_octets) + "\n")
            self.process.stdin.flush()
        return future

    @property
    def has_ended(self) -> bool:
        """Whether the process is no more."""
        return self.process.poll() is not None

    def close(self) -> None:
        """End the process; it ends with its input."""
        assert self.process.stdin is not None
        # Messages not sent before its end do not matter.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def forget(self, session: Session) -> None:
        """Drop what is still said about a session."""
        self._sessions.pop(session.name, None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line, object_hook=_from_octets)
            if "event" in said:
                session = self._sessions.get(said["session"])
                if session:
                    session.events.put(said)
                continue
            future = self._pending.pop(said["id"])
            if "ok" in said:
                future.set_result(said["ok"])
            else:
                error = said["error"]
                future.set_exception(WampError(error["uri"], error["args"], error["kwargs"]))
        for future in self._pending.values():
            future.set_exception(RuntimeError("the client's process has ended"))


class Session:
    """One WAMP session; what it is told meanwhile collects in `events`."""

    def __init__(self, puppet: Puppet, name: str):
        self.puppet = puppet
        self.name = name
        self.events: queue.Queue[dict] = queue.Queue()
        self.details: dict = {}

    @property
    def id(self) -> int:
        """The session's id, as WELCOME said it."""
        return self.details["session"]

    def open(self, place: dict, realm: str = "realm1", auth: dict | None = None) -> Session:
        """Connect and join; `auth` has a method, a secret, and an authid or none."""
        self.details = self._do("open", place=place, realm=realm, auth=auth)
        return self

    def join(self, realm: str = "realm1") -> None:
        """Join again on the connection that `leave(keep=True)` left open."""
        self.details = self._do("join", realm=realm)

    def leave(self, keep: bool = False) -> str:
        """Say goodbye; return the reason that the router answered with."""
        return self._do("leave", keep=keep)["reason"]

    def drop(self) -> None:
        """Cut the connection without a word."""
        self._do("drop")

    def use_key(self, key: str) -> None:
        """Encrypt and decrypt all arguments with a cryptobox key (autobahn-python only)."""
        self._do("keyring", key=key)

    def call(self, procedure: str, *args: object, **kwargs: object) -> Reply:
        """Call and wait for the result."""
        return result(self.start_call(procedure, *args, **kwargs))

    def start_call(
        self, procedure: str, *args: object, options: dict | None = None, **kwargs: object
    ) -> Future:
        """Call; the future is for `result` and `cancel`."""
        return self._start(
            "call", procedure=procedure, args=args, kwargs=kwargs, options=options or {}
        )

    def cancel(self, call: Future, mode: str) -> None:
        """Cancel a call in the given mode."""
        self._do("cancel", call=call.number, mode=mode)  # type: ignore[attr-defined]

    def register(self, procedure: str, behave: dict, **options: object) -> int:
        """Register a procedure that does what `behave` says; return the registration."""
        return self._do("register", procedure=procedure, behave=behave, options=options)[
            "registration"
        ]

    def unregister(self, registration: int) -> None:
        """Take a registration back."""
        self._do("unregister", registration=registration)

    def subscribe(self, topic: str, **options: object) -> int:
        """Subscribe; return the subscription."""
        return self._do("subscribe", topic=topic, options=options)["subscription"]

    def unsubscribe(self, subscription: int) -> None:
        """Take a subscription back."""
        self._do("unsubscribe", subscription=subscription)

    def publish(
        self, topic: str, *args: object, options: dict | None = None, **kwargs: object
    ) -> int | None:
        """Publish, acknowledged unless `options` say otherwise; return the publication."""
        options = {"acknowledge": True, **(options or {})}
        return self._do("publish", topic=topic, args=args, kwargs=kwargs, options=options)[
            "publication"
        ]

    def release(self, invocation: int, *args: object) -> None:
        """Let a held invocation answer with `args`."""
        self._do("release", invocation=invocation, args=args)

    def next(self, kind: str) -> dict:
        """Return the next thing the session is told, which must be of this kind."""
        try:
            said = self.events.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise AssertionError(f"{self.name} was never told: {kind}") from None
        assert said["event"] == kind, said
        return said

    def told_nothing(self) -> bool:
        """Whether nothing waits to be looked at; conclusive only after some later round trip."""
        return self.events.empty()

    def round_trip(self) -> None:
        """Return once everything the router sent to this session so far has been received.

        The router answers in order on one connection, so an answered request is a fence.
        """
        self.unsubscribe(self.subscribe(f"com.fence.{self.name}"))

    def _start(self, command: str, **more: object) -> Future:
        return self.puppet.start({"session": self.name, "do": command, **more})

    def _do(self, command: str, **more: object) -> dict:
        return self._start(command, **more).result(DEADLINE_S)


def result(call: Future) -> Reply:
    """Wait for a started call."""
    return Reply(**call.result(DEADLINE_S))


def failure(call: Future) -> WampError:
    """Wait for a started call to fail."""
    error = call.exception(DEADLINE_S)
    assert isinstance(error, WampError), error or call.result()
    return error


def _octets(value: object) -> object:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"cannot be said in JSON: {value!r}")


def _from_octets(value: dict) -> object:
    return base64.b64decode(value["$bytes"]) if value.keys() == {"$bytes"} else value
