"""WAMP over HTTP long-poll, by hand."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
import threading
from concurrent.futures import Future

from rig.http import Answer
from rig.session import DECODE, ENCODE, Wamp
from rig.waiting import DEADLINE_S

RECORD_SEPARATOR = b"\x1e"
AUTOBAHN_SEPARATOR = b"\x18"


class Requests:
    """Requests that a client makes one after the other, on a connection that it keeps."""

    def __init__(
        self,
        address: tuple[str, int],
        base: str = "/lp",
        patience_s: float = DEADLINE_S,
        tls: ssl.SSLContext | None = None,
    ):
        self.base = base
        self.connection = http.client.HTTPConnection(*address, timeout=patience_s)
        if tls:
            self.connection = http.client.HTTPSConnection(
                "localhost", address[1], timeout=patience_s, context=tls
            )

    def post(self, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Post a body to a path below the service's."""
        return self.ask("POST", path, body, **headers)

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Ask for a path below the service's."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, f"{self.base}{path}", body, given)
        response = self.connection.getresponse()
        found = [(name.lower(), value) for name, value in response.getheaders()]
        return Answer(response.status, found, response.read())

    def begin(self, path: str, body: bytes = b"") -> None:
        """Post, and do not wait for the answer, which `finish` returns."""
        self.connection.request("POST", f"{self.base}{path}", body)

    def finish(self) -> Answer:
        """Return the answer to what was begun."""
        response = self.connection.getresponse()
        found = [(name.lower(), value) for name, value in response.getheaders()]
        return Answer(response.status, found, response.read())

    def close(self) -> None:
        """End the connection."""
        self.connection.close()


class LongPoll(Wamp):
    """A transport that is open; one connection to send by and one to receive by."""

    def __init__(
        self,
        address: tuple[str, int],
        protocol: str = "wamp.2.json",
        base: str = "/lp",
        patience_s: float = DEADLINE_S,
        tls: ssl.SSLContext | None = None,
    ):
        self.address, self.base = address, base
        self.sending = Requests(address, base, patience_s, tls)
        self.receiving = Requests(address, base, patience_s, tls)
        self.separator = RECORD_SEPARATOR
        self._kept: list[bytes] = []
        opened = self.sending.post("/open", json.dumps({"protocols": [protocol]}).encode())
        assert opened.status == 200, opened
        said = json.loads(opened.body)
        assert said.keys() == {"transport", "protocol"}, said
        assert said["protocol"] == protocol
        self.transport = said["transport"]
        _, _, self.serializer, *batched = protocol.split(".")
        self.is_batched = batched == ["batched"]

    def __enter__(self) -> LongPoll:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    def drop(self) -> None:
        """Be gone without a word."""
        self.sending.close()
        self.receiving.close()

    def path(self, operation: str) -> str:
        """Return where something is asked of this transport."""
        return f"/{self.transport}/{operation}"

    def post(self, operation: str, body: bytes = b"") -> Answer:
        """Ask something of this transport."""
        return self.sending.post(self.path(operation), body)

    def body(self, *messages: bytes) -> bytes:
        """Return messages as a body has them."""
        if not self.is_batched:
            (message,) = messages
            return message
        if self.serializer == "json":
            return b"".join(message + self.separator for message in messages)
        return b"".join(struct.pack("!I", len(message)) + message for message in messages)

    def messages(self, body: bytes) -> list[bytes]:
        """Return the messages of a body."""
        if not self.is_batched:
            return [body] if body else []
        if self.serializer == "json":
            *messages, rest = body.split(self.separator)
            assert rest == b"", body
            return messages
        found = []
        while body:
            (length,) = struct.unpack("!I", body[:4])
            found.append(body[4 : 4 + length])
            assert len(found[-1]) == length, body
            body = body[4 + length :]
        return found

    def send_octets(self, octets: bytes) -> None:
        """Send the bytes of one message, which must be taken."""
        sent = self.post("send", self.body(octets))
        assert (sent.status, sent.body) == (204, b""), sent

    def receive(self) -> Answer:
        """Ask for what there is."""
        return self.receiving.post(self.path("receive"))

    def receive_octets(self) -> bytes:
        """Return the next message, however often it takes to ask."""
        while not self._kept:
            answer = self.receive()
            assert answer.status == 200, answer
            self._kept = self.messages(answer.body)
        return self._kept.pop(0)

    def say_all(self, *messages: list) -> Answer:
        """Send a batch; return the answer."""
        return self.post("send", self.body(*map(ENCODE[self.serializer], messages)))

    def expect_gone(self) -> None:
        """The transport has ended: nothing more can be asked of it, but it can be closed."""
        while (answer := self.receive()).status == 200:
            assert answer.body == b"", answer
        assert answer.status == 410, answer
        assert self.post("send", self.body(b"[]")).status == 410
        assert self.post("close").status == 204


class Waiting:
    """A request for messages that waits, beside everything else."""

    def __init__(self, session: LongPoll):
        self.requests = Requests(session.address, session.base)
        self.requests.begin(session.path("receive"))
        self.answer: Future[Answer] = Future()
        self.session = session
        threading.Thread(target=self._finish, daemon=True).start()

    def result(self) -> Answer:
        """Return the answer."""
        return self.answer.result(DEADLINE_S)

    def message(self) -> list:
        """Return the one message of the answer."""
        answer = self.result()
        assert answer.status == 200, answer
        (octets,) = self.session.messages(answer.body)
        return DECODE[self.session.serializer](octets)

    def abandon(self) -> None:
        """End the connection that waits, and wait until the router has ended it too."""
        self.requests.connection.sock.shutdown(socket.SHUT_WR)
        assert self.answer.exception(DEADLINE_S), "a message came"

    def _finish(self) -> None:
        try:
            self.answer.set_result(self.requests.finish())
        except (OSError, http.client.HTTPException) as error:
            self.answer.set_exception(error)
