"""Clients under which a node is upgraded, each with a ledger: pika, and Autobahn in a process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pika
import pika.exceptions

from rig.plain import ClosedError
from rig.rawsocket import RawSocket
from rig.waiting import DEADLINE_S, await_true

QUEUE = "ledger"
CLIENTS = Path(__file__).with_name("upgrade_clients.py")


def was_refused(error: BaseException) -> bool:
    """Whether nobody listened; pika wraps what it was told."""
    return "refused" in repr(error).lower() or "ConnectionRefused" in repr(error.__cause__)


class Publisher(threading.Thread):
    """Publishes confirmed messages; what is not confirmed is published again."""

    def __init__(self, address: tuple[str, int]):
        """Begin at once."""
        super().__init__(daemon=True)
        self.parameters = pika.ConnectionParameters(
            address[0], address[1], socket_timeout=DEADLINE_S, stack_timeout=DEADLINE_S
        )
        self.confirmed: list[int] = []
        self.refused: list[str] = []
        self.connected = 0
        self._is_over = threading.Event()
        self.start()

    def run(self) -> None:
        """Publish until the end."""
        while not self._is_over.is_set():
            try:
                self._publish()
            except (pika.exceptions.AMQPError, OSError) as error:
                if was_refused(error):
                    self.refused.append(repr(error))

    def _publish(self) -> None:
        connection = pika.BlockingConnection(self.parameters)
        self.connected += 1
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        channel.confirm_delivery()
        durable = pika.BasicProperties(delivery_mode=2)
        while not self._is_over.is_set():
            number = len(self.confirmed)
            channel.basic_publish("", QUEUE, b"%d" % number, durable, mandatory=True)
            self.confirmed.append(number)
        connection.close()

    def end(self) -> list[int]:
        """End it, and return the confirmed numbers that the queue lacks."""
        self._is_over.set()
        self.join(DEADLINE_S)
        assert not self.is_alive()
        connection = pika.BlockingConnection(self.parameters)
        channel = connection.channel()
        there = set()
        while True:
            method, _, body = channel.basic_get(QUEUE, auto_ack=True)
            if method is None:
                break
            there.add(int(body))
        connection.close()
        return sorted(set(self.confirmed) - there)


class Callers:
    """Autobahn clients in a process of their own."""

    def __init__(self, url: str):
        """Start them, and wait until they have met."""
        self.process = subprocess.Popen(
            [sys.executable, str(CLIENTS), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Autobahn prints a trace for each lost session.
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout.readline() == "met\n"

    def end(self) -> dict:
        """End them; return their ledger."""
        said, _ = self.process.communicate(timeout=2 * DEADLINE_S)
        return json.loads(said)

    def kill(self) -> None:
        """End them at once."""
        self.process.kill()
        self.process.wait()


class Knocker(threading.Thread):
    """Joins again and again, and notes how long each session took, from the first try on."""

    def __init__(self, address: tuple[str, int]):
        """Begin at once."""
        super().__init__(daemon=True)
        self.address = address
        self.took_s: list[float] = []
        self.refused: list[str] = []
        self.tried_again = 0
        self._is_over = threading.Event()
        self.start()

    def run(self) -> None:
        """Join until the end."""
        while not self._is_over.is_set():
            begun = time.perf_counter()
            while not self._joined():
                self.tried_again += 1
            self.took_s.append(time.perf_counter() - begun)

    def _joined(self) -> bool:
        try:
            with contextlib.closing(RawSocket.tcp(self.address)) as peer:
                peer.shake_hands().join()
        except ConnectionRefusedError as error:
            self.refused.append(str(error))
        except (ClosedError, OSError):
            # Accepted by the former process while it closed: the client tries again.
            pass
        else:
            return True
        return False

    def end(self) -> list[float]:
        """End it after another session."""
        before = len(self.took_s)
        await_true("it joins", lambda: len(self.took_s) > before)
        self._is_over.set()
        self.join(DEADLINE_S)
        return self.took_s
