"""Drain a node of many clients that come back at another one; print how evenly they do.

export CROSSTIE=PROGRAM PYTHONPATH=conformance
target/venv/bin/python conformance/scripts/drain_figures.py

Half of the clients speak WAMP over RawSocket, half AMQP. Each tries again at once, then after 0.5,
1, 2 and more seconds, first at the node that it was at.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import tempfile
import time
from pathlib import Path

from rig import amqp_wire, config
from rig.router import Router, binary
from rig.waiting import DEADLINE_S

HELLO = json.dumps([1, "realm1", {"roles": {"caller": {}}}]).encode()
RAW_SOCKET_JSON = bytes([0x7F, 0xF1, 0, 0])
WAITS_S = (0, 0.5, 1, 2, 4, 8)


class Client:
    """A client that wants to be at one of two nodes."""

    def __init__(self, transport: str, nodes: list[Router]):
        self.transport = transport
        self.addresses = [node.address(transport) for node in nodes]
        # When it came to the second node.
        self.moved_at: float | None = None
        self.refused = 0
        self.is_there = asyncio.Event()

    async def live(self) -> None:
        """Be at a node, and come back when that ends."""
        while self.moved_at is None:
            for wait_s in WAITS_S:
                await asyncio.sleep(wait_s)
                if await self._once():
                    break

    async def _once(self) -> bool:
        for number, address in enumerate(self.addresses):
            try:
                reader, writer = await asyncio.open_connection(*address)
                join = self._join_wamp if self.transport == "tcp" else self._join_amqp
                await join(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                self.refused += 1
                continue
            self.is_there.set()
            if number == 1:
                self.moved_at = time.monotonic()
            with contextlib.suppress(OSError):
                await self._until_closed(reader, writer)
            writer.close()
            return True
        return False

    async def _until_closed(self, reader: asyncio.StreamReader, writer) -> None:
        if self.transport == "tcp":
            while await reader.read(65536):
                pass
            return
        with contextlib.suppress(asyncio.IncompleteReadError):
            while await amqp_method(reader) != "connection.close":
                pass
            writer.write(amqp_frame("connection.close-ok"))

    async def _join_wamp(self, reader: asyncio.StreamReader, writer) -> None:
        writer.write(RAW_SOCKET_JSON)
        await reader.readexactly(4)
        writer.write(len(HELLO).to_bytes(4, "big") + HELLO)
        welcome = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        if json.loads(welcome)[0] != 2:
            raise ConnectionRefusedError(welcome)

    async def _join_amqp(self, reader: asyncio.StreamReader, writer) -> None:
        writer.write(amqp_wire.HEADER)
        await amqp_expect(reader, "connection.start")
        login = {"mechanism": "PLAIN", "response": b"\0guest\0guest", "locale": "en_US"}
        writer.write(amqp_frame("connection.start-ok", **login))
        await amqp_expect(reader, "connection.tune")
        writer.write(amqp_frame("connection.tune-ok", channel_max=16, frame_max=131072))
        writer.write(amqp_frame("connection.open", vhost="/"))
        await amqp_expect(reader, "connection.open-ok")


def amqp_frame(method: str, **arguments: object) -> bytes:
    """Return a method's frame on channel 0."""
    return amqp_wire.frame(amqp_wire.METHOD, 0, amqp_wire.method_payload(method, **arguments))


async def amqp_method(reader: asyncio.StreamReader) -> str | None:
    """Return the name of the next frame's method."""
    header = await reader.readexactly(7)
    payload = await reader.readexactly(int.from_bytes(header[3:], "big") + 1)
    numbers = int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
    return amqp_wire.BY_NUMBER.get(numbers) if header[0] == amqp_wire.METHOD else None


async def amqp_expect(reader: asyncio.StreamReader, wanted: str) -> None:
    """Await a method; another one is a refusal."""
    found = await amqp_method(reader)
    if found != wanted:
        raise ConnectionRefusedError(f"{found} in place of {wanted}")


async def play(given: argparse.Namespace, nodes: list[Router]) -> None:
    """Let the clients in, drain the first node, and print."""
    transports = ["tcp", "amqp"] * (given.clients // 2)
    clients = [Client(transport, nodes) for transport in transports]
    lives = [asyncio.create_task(client.live()) for client in clients]
    await asyncio.gather(*(client.is_there.wait() for client in clients))
    assert all(client.moved_at is None for client in clients)
    refused = sum(client.refused for client in clients)
    command = [binary(), "drain", "--cbdir", nodes[0].directory, "--grace", "1s"]
    begun = time.monotonic()
    drain = await asyncio.create_subprocess_exec(
        *map(str, command), "--over", f"{given.over}s", stdout=subprocess.PIPE
    )
    said, _ = await drain.communicate()
    took_s = time.monotonic() - begun

    async def all_moved() -> None:
        while any(client.moved_at is None for client in clients):
            await asyncio.sleep(0.05)

    await asyncio.wait_for(all_moved(), 4 * DEADLINE_S)
    times = sorted(client.moved_at - begun for client in clients)
    first = times[0]
    by_second: dict[int, int] = {}
    for moved in times:
        by_second[int(moved - first)] = by_second.get(int(moved - first), 0) + 1
    mean = len(clients) / given.over
    most = max(by_second.values())
    print(f"clients {len(clients)}, back {len(times)}, over {times[-1] - first:.1f} s", end="; ")
    print(f"a second: mean {mean:.1f}, most {most} ({most / mean:.2f} x)", end="; ")
    print(f"refused before the drain {refused}; drain {took_s:.1f} s: {said.decode().strip()}")
    for life in lives:
        life.cancel()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--over", type=int, default=20)
    given = parser.parse_args()
    with contextlib.ExitStack() as left:
        nodes = []
        for _ in range(2):
            folder = left.enter_context(tempfile.TemporaryDirectory())
            amqp = {"type": "amqp", "id": "amqp", "endpoint": config.tcp()}
            transports = [config.universal("tcp", config.tcp()), amqp]
            (Path(folder) / "config.json").write_text(json.dumps(config.plain(*transports)))
            nodes.append(Router(Path(folder), "--cbdir", folder))
            left.callback(nodes[-1].stop)
        asyncio.run(play(given, nodes))


if __name__ == "__main__":
    main()
