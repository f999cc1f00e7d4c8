"""Kills and stops nodes, servers and whole machines, and moves a vhost, under numbered messages.

`make chaos` runs it for minutes, `make test` for seconds; `SECONDS=3600 make chaos` for an hour.
Each fault is ended, and waited for until messages are confirmed again, before the next one begins.
"""

from __future__ import annotations

import argparse
import logging
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.nats import NatsServer, cluster, free_ports, jetstream
from rig.router import Router
from rig.waiting import await_true

from ledger.stage import (
    Publisher,
    at_owner,
    await_owner,
    check,
    crosstie,
    declare,
    leader,
    node_config,
    take_all,
)

PATIENCE_S = 90.0


class Chaos:
    """Three machines with a node and a server each, publishers, and the faults."""

    def __init__(self, directory: Path, seed: int):
        self.chance = random.Random(seed)
        self.directory = directory
        self.monitors = free_ports(3)
        monitors = {f"nats{place}": port for place, port in enumerate(self.monitors, 1)}
        self.servers = cluster(
            directory, 3, each=lambda name: jetstream(name, monitor=monitors[name])
        )
        self.nodes = [self.node(f"node_{letter}") for letter in "abc"]
        self.faults: dict[str, int] = {}
        self.times: dict[str, list[float]] = {}
        at_owner(self.nodes, declare, PATIENCE_S)
        self.publishers = [Publisher(self.nodes, name) for name in range(1, 4)]

    def node(self, name: str) -> Router:
        """Start a node in the directory that it had before, if it had one."""
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        monitors = [f"http://127.0.0.1:{port}" for port in self.monitors]
        settings = node_config(self.servers, monitor=monitors)
        settings["controller"] = {"id": name}
        return Router(directory, config=settings)

    def owner(self) -> int:
        """Return which of the nodes owns the vhost."""
        return self.nodes.index(await_owner(self.nodes, PATIENCE_S))

    def kill_owner(self) -> None:
        """Kill the owner, and start it again when another one is."""
        place = self.owner()
        self.nodes[place].kill()
        self.await_all("kill_owner")
        self.nodes[place] = self.node(self.nodes[place].directory.name)

    def lose_machine(self) -> None:
        """Kill the owner and the server on its machine at once, and start both again."""
        self.lose(self.owner(), "lose_machine")

    def lose_other_machine(self) -> None:
        """Kill a standby and the server on its machine at once, and start both again."""
        owner = self.owner()
        others = [place for place in range(len(self.nodes)) if place != owner]
        self.lose(self.chance.choice(others), "lose_other_machine")

    def lose(self, place: int, fault: str) -> None:
        """Lose a machine; name the case in which NATS has to elect a leader of the stream."""
        if leader(self.servers) is self.servers[place]:
            fault += ", with the leader"
        begun = time.monotonic()
        self.servers[place].kill()
        self.nodes[place].kill()
        self.await_all(fault, begun)
        self.servers[place].start()
        self.nodes[place] = self.node(self.nodes[place].directory.name)

    def stop_owner(self) -> None:
        """Have the owner sleep for 12 seconds."""
        place = self.owner()
        self.nodes[place].signal(signal.SIGSTOP)
        begun = time.monotonic()
        time.sleep(12)
        self.nodes[place].signal(signal.SIGCONT)
        self.await_all("stop_owner", begun)

    def move(self) -> None:
        """Have another node own the vhost, once one is ready: it may just have been started."""

        def is_moved() -> bool:
            return crosstie(self.nodes[self.owner()], "amqp", "move", "/").returncode == 0

        await_true("the vhost is moved", is_moved, PATIENCE_S)
        self.await_all("move")

    def kill_leader(self) -> None:
        """Kill the server that leads the stream, and start it again."""
        server = leader(self.servers)
        server.kill()
        self.await_all("kill_leader")
        server.start()

    def kill_follower(self) -> None:
        """Kill another one."""
        first = leader(self.servers)
        server = self.chance.choice([each for each in self.servers if each is not first])
        server.kill()
        self.await_all("kill_follower")
        server.start()

    def stop_leader(self) -> None:
        """Have the server sleep that leads the stream."""
        server = leader(self.servers)
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        self.await_all("stop_leader")
        server.process.send_signal(signal.SIGCONT)

    def await_all(self, fault: str, begun: float | None = None) -> None:
        """Wait until every publisher has more confirmed."""
        begun = time.monotonic() if begun is None else begun
        for publisher in self.publishers:
            publisher.await_more(5, PATIENCE_S)
        self.times.setdefault(fault, []).append(time.monotonic() - begun)

    def run(self, seconds: float) -> None:
        """Go on for so long, each fault once at least; then look whether all is there."""
        faults: list[Callable[[], None]] = [
            *[self.kill_owner, self.stop_leader, self.kill_leader, self.kill_follower],
            *[self.stop_owner, self.move, self.lose_machine, self.lose_other_machine],
        ]
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            self.chance.shuffle(faults)
            for fault in faults:
                self.await_all("nothing")
                fault()
                if time.monotonic() - begun >= seconds:
                    break
        for publisher in self.publishers:
            publisher.stop()
        taken = take_all(self.nodes)
        check(taken, self.publishers)
        confirmed = sum(publisher.confirmed for publisher in self.publishers)
        twice = len(taken) - len(set(taken))
        print(f"{confirmed} confirmed, {len(taken)} there, {twice} twice, none lost, in order")
        for fault, times in self.times.items():
            half, longest = statistics.median(times), max(times)
            print(f"  {fault}: {len(times)}, half within {half:.1f} s, all within {longest:.1f} s")

    def close(self) -> None:
        """End everything."""
        for node in self.nodes:
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.kill()
        for server in self.servers:
            end(server)


def end(server: NatsServer) -> None:
    """End a server, asleep or not."""
    if server.process is not None and server.process.poll() is None:
        server.process.send_signal(signal.SIGCONT)
    server.close()


def run(directory: Path, seconds: float, seed: int) -> None:
    """Run it once."""
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    chaos = Chaos(directory, seed)
    try:
        chaos.run(seconds)
    finally:
        chaos.close()


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.seconds:.0f} s")
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory), arguments.seconds, arguments.seed)


if __name__ == "__main__":
    main()
