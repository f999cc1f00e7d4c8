"""amqprs, a Rust client: `rust_client/` does with it what this says in lines of JSON."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from pathlib import Path

from typing_extensions import override

from rig.amqp_drivers.base import PATIENCE_S, ClosedError, Driver, Event, NeverCameError
from rig.router import ROOT


def binary() -> Path:
    """Return the client: `$AMQP_RUST_CLIENT`, or where `cargo build` in its folder puts it."""
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    built = target / "amqp-rust-client/debug/crosstie-conformance-amqp-client"
    return Path(os.environ.get("AMQP_RUST_CLIENT", built))


class Rust(Driver):
    """A process with one connection."""

    def __init__(self, address: tuple[str, int], user: str, password: str, vhost: str):
        super().__init__()
        self.process = subprocess.Popen(
            [binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lines: queue.Queue[dict] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.closed: ClosedError | None = None
        host, port = address
        place = {"host": host, "port": port, "vhost": vhost}
        try:
            self._ask(0, "connect", **place, user=user, password=password)
        except ClosedError:
            self.drop()
            raise

    @override
    def open_channel(self, number: int) -> None:
        self.closed = None
        self._ask(number, "open")

    @override
    def call(self, channel: int, method: str, **arguments: object) -> dict:
        answer = self._ask(channel, method, **arguments)
        if "message" in answer:
            body = bytes.fromhex(answer["body"])
            return {"event": Event("got", answer["message"], answer["properties"], body)}
        return answer

    @override
    def publish(self, channel, exchange, routing_key, body, properties, **more) -> None:
        self._ask(
            channel,
            "basic.publish",
            exchange=exchange,
            routing_key=routing_key,
            body=body.hex(),
            properties=properties,
            **more,
        )

    @override
    def drain(self, seconds: float) -> None:
        self._take(seconds)
        if self.closed:
            closed, self.closed = self.closed, None
            raise closed

    @override
    def close(self) -> None:
        try:
            self._ask(0, "close")
        except ClosedError as error:
            # Sometimes it complains about itself, when it still tidies up a closed channel.
            if error.code:
                raise
        finally:
            self.drop()

    @override
    def drop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    @override
    def in_order(self, events: list[Event]) -> list[Event]:
        """It has a task for each consumer, so that only the tags tell what came first."""
        if all(event.kind == "deliver" for event in events):
            return sorted(events, key=lambda event: event.arguments["delivery"])
        return events

    def _ask(self, channel: int, do: str, **arguments: object) -> dict:
        """Say a command and await its answer; why it failed is told in an event."""
        assert self.process.stdin
        command = {"do": do, "channel": channel, "arguments": arguments}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        while True:
            line = self._take(2 * PATIENCE_S)
            if line and "answer" in line:
                return line["answer"]
            if line and "error" in line:
                break
        while not self.closed:
            try:
                self._take(PATIENCE_S if do != "connect" else 0.01)
            except NeverCameError:
                raise ClosedError("connection", 0, line["error"]) from None
        closed, self.closed = self.closed, None
        raise closed

    def _take(self, seconds: float) -> dict | None:
        """Handle one line; return it if it is an answer."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise NeverCameError from None
        match line.get("event"):
            case None:
                return line
            case "channel closed" | "connection closed" as what:
                told = line["arguments"]
                self.closed = ClosedError(what.partition(" ")[0], told["code"], told["text"])
            case kind:
                body = bytes.fromhex(line.get("body", ""))
                event = Event(kind, line["arguments"], line.get("properties"), body)
                self.events[line["channel"]].append(event)
        return None

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
