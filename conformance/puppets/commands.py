"""Carries out the commands of `rig.puppet` with autobahn-python, on either event loop."""

from __future__ import annotations

import itertools

import txaio
from autobahn.wamp import auth, message
from autobahn.wamp.cryptobox import KeyRing
from autobahn.wamp.exception import ApplicationError, TransportLost
from autobahn.wamp.types import (
    CallOptions,
    CallResult,
    ComponentConfig,
    PublishOptions,
    RegisterOptions,
    SubscribeOptions,
)

from puppets import behaviour
from puppets.speech import read, say


class Commands:
    """All sessions of the process."""

    def __init__(self, loop):
        self._loop = loop
        self._sessions: dict[str, object] = {}
        self._session_class = session_class(loop.ApplicationSession)

    def __call__(self, line: str) -> None:
        """Carry out one line of the input."""
        command = read(line)
        number = command["id"]
        try:
            if command["do"] == "open":
                self._open(number, command)
            else:
                session = self._sessions[command["session"]]
                getattr(session, f"do_{command['do']}")(number, command)
        except Exception as error:
            fail(number, error)

    def _open(self, number: int, command: dict) -> None:
        session = self._session_class(command["session"], command["realm"], self._loop.later)
        session.joining = number
        session.auth = command.get("auth")
        self._sessions[command["session"]] = session
        self._loop.connect(command["place"], lambda: session, session.could_not_connect)


def fail(number: int, error: object) -> None:
    """Answer a command with an error."""
    error = getattr(error, "value", error)
    if isinstance(error, ApplicationError):
        what = {"uri": error.error, "args": list(error.args), "kwargs": error.kwargs or {}}
    elif isinstance(error, TransportLost):
        what = {"uri": "transport lost", "args": [], "kwargs": {}}
    else:
        what = {"uri": "client", "args": [f"{type(error).__name__}: {error}"], "kwargs": {}}
    say(id=number, error=what)


def session_class(base: type) -> type:
    """Return the session class for one event loop's `ApplicationSession`."""

    class Session(base):
        """One session: autobahn's call-backs turned into lines, and commands into its calls."""

        def __init__(self, name: str, realm: str, later):
            super().__init__(ComponentConfig(realm=realm))
            self.name = name
            self.later = later
            # The command that waits to be joined, or to have left.
            self.joining: int | None = None
            self.leaving: int | None = None
            self.keep = False
            # How it says who it is: a method, an authid or none, and what it proves that with.
            self.auth: dict | None = None
            self.authenticator: auth.AuthScram | auth.AuthCryptoSign | None = None
            self.left_with: str | None = None
            self.calls: dict[int, object] = {}
            self.objects: dict[int, object] = {}
            self.held: dict[int, object] = {}
            self.numbers = itertools.count(1)

        def onConnect(self) -> None:
            if self.auth is None:
                return super().onConnect()
            method, authid = self.auth["method"], self.auth.get("authid")
            extra = None
            if method == "scram":
                password = self.auth["secret"]
                self.authenticator = auth.AuthScram(password=password, authid=authid)
            if method == "cryptosign":
                key = self.auth["secret"]
                self.authenticator = auth.create_authenticator(method, privkey=key, authid=authid)
            if self.authenticator is not None:
                extra = self.authenticator.authextra
            self.join(self.config.realm, authmethods=[method], authid=authid, authextra=extra)
            return None

        def onChallenge(self, challenge) -> str:
            secret = self.auth["secret"]
            if self.authenticator is not None:
                return self.authenticator.on_challenge(self, challenge)
            # A token is sent as it is, as a ticket.
            if challenge.method in ("ticket", "jwt"):
                return secret
            extra = challenge.extra
            if "salt" in extra:
                secret = auth.derive_key(
                    secret, extra["salt"], extra["iterations"], extra["keylen"]
                )
            return auth.compute_wcs(secret, extra["challenge"])

        def onWelcome(self, welcome) -> str | None:
            if self.authenticator is None:
                return None
            return self.authenticator.on_welcome(self, welcome.authextra)

        def could_not_connect(self, reason: str) -> None:
            self.answer_join(error={"uri": "connect", "args": [reason], "kwargs": {}})

        def answer_join(self, **answer: object) -> bool:
            number, self.joining = self.joining, None
            if number is not None:
                say(id=number, **answer)
            return number is not None

        def onJoin(self, details) -> None:
            # autobahn keeps every feature it does not know under `roles` out of our sight,
            # so only what tests compare is passed on.
            said = ("session", "realm", "authid", "authrole", "authmethod", "authprovider")
            compressed = getattr(self._transport, "_perMessageCompress", None) is not None
            self.answer_join(
                ok={"compressed": compressed, **{key: getattr(details, key) for key in said}}
            )

        def onLeave(self, details) -> None:
            self.left_with = details.reason
            aborted = {"uri": details.reason, "args": [details.message], "kwargs": {}}
            if not self.answer_join(error=aborted) and self.leaving is None:
                say(session=self.name, event="left", reason=details.reason)
            if self.leaving is not None and self.keep:
                self.answer_leave()
                return None
            return super().onLeave(details)

        def onDisconnect(self) -> None:
            super().onDisconnect()
            lost = {"uri": "transport lost", "args": [], "kwargs": {}}
            self.answer_join(error=lost)
            self.answer_leave()
            say(session=self.name, event="disconnected")

        def answer_leave(self) -> None:
            number, self.leaving = self.leaving, None
            if number is not None:
                say(id=number, ok={"reason": self.left_with})

        def onUserError(self, fail, msg) -> None:
            """Procedures fail on purpose here; the caller is told anyway."""

        def do_join(self, number: int, command: dict) -> None:
            self.joining = number
            # In a later turn: autobahn forgets the old session only after its call-backs.
            self.later(lambda: self.join(command["realm"]))

        def do_leave(self, number: int, command: dict) -> None:
            self.leaving, self.keep = number, command["keep"]
            self.leave()

        def do_drop(self, number: int, command: dict) -> None:
            self._transport.abort()
            say(id=number, ok={})

        def do_keyring(self, number: int, command: dict) -> None:
            self.set_payload_codec(KeyRing(default_key=command["key"]))
            say(id=number, ok={})

        def do_call(self, number: int, command: dict) -> None:
            options, progress = dict(command["options"]), []
            if options.pop("receive_progress", False):

                def on_progress(*args, **kwargs) -> None:
                    progress.append({"args": list(args), "kwargs": kwargs})
                    say(session=self.name, event="progress", call=number, args=list(args))

                options["on_progress"] = on_progress
            called = self.call(
                command["procedure"],
                *command["args"],
                **command["kwargs"],
                options=CallOptions(**options),
            )
            self.calls[number] = called

            def returned(value: object) -> None:
                if isinstance(value, CallResult):
                    args, kwargs = list(value.results), value.kwresults
                else:
                    args, kwargs = [] if value is None else [value], {}
                say(id=number, ok={"args": args, "kwargs": kwargs, "progress": progress})

            txaio.add_callbacks(called, returned, lambda failure: fail(number, failure))

        def do_cancel(self, number: int, command: dict) -> None:
            # autobahn cannot say a mode itself: cancelling its future sends none.
            called = self.calls[command["call"]]
            requests = self._call_reqs.items()
            request = next(id for id, open_call in requests if open_call.on_reply is called)
            self._transport.send(message.Cancel(request, mode=command["mode"]))
            say(id=number, ok={})

        def do_register(self, number: int, command: dict) -> None:
            endpoint = behaviour.procedure(command["behave"], self.describe, self.hold)
            registering = self.register(
                endpoint,
                command["procedure"],
                options=RegisterOptions(details=True, **command["options"]),
            )

            def registered(registration) -> None:
                self.objects[registration.id] = registration
                say(id=number, ok={"registration": registration.id})

            txaio.add_callbacks(registering, registered, lambda failure: fail(number, failure))

        def do_unregister(self, number: int, command: dict) -> None:
            gone = self.objects.pop(command["registration"]).unregister()
            self.answer(number, gone)

        def do_subscribe(self, number: int, command: dict) -> None:
            def published(*args, details, **kwargs) -> None:
                say(
                    session=self.name,
                    event="published",
                    subscription=details.subscription.id,
                    publication=details.publication,
                    args=list(args),
                    kwargs=kwargs,
                    topic=details.topic,
                    publisher=details.publisher,
                    publisher_authid=details.publisher_authid,
                    publisher_authrole=details.publisher_authrole,
                    retained=bool(details.retained),
                )

            subscribing = self.subscribe(
                published,
                command["topic"],
                options=SubscribeOptions(details=True, **command["options"]),
            )

            def subscribed(subscription) -> None:
                self.objects[subscription.id] = subscription
                say(id=number, ok={"subscription": subscription.id})

            txaio.add_callbacks(subscribing, subscribed, lambda failure: fail(number, failure))

        def do_unsubscribe(self, number: int, command: dict) -> None:
            self.answer(number, self.objects.pop(command["subscription"]).unsubscribe())

        def do_publish(self, number: int, command: dict) -> None:
            publishing = self.publish(
                command["topic"],
                *command["args"],
                **command["kwargs"],
                options=PublishOptions(**command["options"]),
            )
            if publishing is None:
                say(id=number, ok={"publication": None})
                return
            txaio.add_callbacks(
                publishing,
                lambda publication: say(id=number, ok={"publication": publication.id}),
                lambda failure: fail(number, failure),
            )

        def do_release(self, number: int, command: dict) -> None:
            future = self.held.pop(command["invocation"])
            txaio.resolve(future, CallResult(*command["args"]))
            say(id=number, ok={})

        def answer(self, number: int, future: object) -> None:
            txaio.add_callbacks(
                future,
                lambda _: say(id=number, ok={}),
                lambda failure: fail(number, failure),
            )

        def describe(self, details) -> dict:
            return {
                "procedure": details.procedure,
                "caller": details.caller,
                "caller_authid": details.caller_authid,
                "caller_authrole": details.caller_authrole,
                "progress": details.progress is not None,
            }

        def hold(self, details, arguments: dict) -> object:
            invocation = next(self.numbers)
            future = behaviour.held()
            self.held[invocation] = future
            say(session=self.name, event="invoked", invocation=invocation, **arguments)
            txaio.add_callbacks(
                future, lambda value: value, lambda failure: self.interrupted(invocation, failure)
            )
            return future

        def interrupted(self, invocation: int, failure: object) -> object:
            say(session=self.name, event="interrupted", invocation=invocation)
            return failure

    return Session
