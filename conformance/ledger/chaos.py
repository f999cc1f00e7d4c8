"""Loses nodes, servers, links and whole machines, and moves a vhost, under numbered messages.

`make chaos` runs it for minutes, `make test` for seconds; `SECONDS=3600 make chaos` for an hour.
Each fault is ended, and waited for until messages are confirmed again, before the next one begins.
With namespaces a machine is lost with its link: no connection of it ends. `--only lose_machine
--count 100` measures one kind of fault.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.network import Network, obstacle
from rig.waiting import await_true

from ledger.machines import Machine, await_settled, started
from ledger.monitors import LIES, NO_SYNC, SILENCE, TRUTH
from ledger.stage import (
    WATCHFUL,
    Consumer,
    Publisher,
    at_owner,
    await_owner,
    check,
    crosstie,
    declare,
    take_all,
)

PATIENCE_S = 90.0
# Between two messages of a publisher: what is measured is not the machine that all of it shares.
PAUSE_S = 0.01


@dataclass
class Times:
    """What one kind of fault took, each time it was brought about."""

    # Until a message was confirmed that was published after the fault, by any publisher.
    first: list[float] = field(default_factory=list)
    # The longest time without a confirm that a publisher had, while the fault lasted.
    longest: list[float] = field(default_factory=list)


class Chaos:
    """Three machines with a node and a server each, publishers, and the faults."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        network: Network | None,
        closing: contextlib.ExitStack,
    ):
        self.chance = random.Random(seed)
        self.network = network
        self.machines = started(directory, network, closing)
        self.times: dict[str, Times] = {}
        at_owner(self.nodes, declare, PATIENCE_S)
        options: dict = {"is_told": network is None, **(WATCHFUL if network else {})}
        self.publishers = [
            Publisher(self.machines, name, pause_s=PAUSE_S, **options) for name in range(1, 4)
        ]
        self.consumer = Consumer(self.machines, **options)
        self.begun = time.monotonic()

    @property
    def nodes(self) -> list:
        """Return the nodes that run now."""
        return [machine.node for machine in self.machines]

    def owner(self) -> Machine:
        """Return the machine whose node owns the vhost."""
        return self.machines[self.nodes.index(await_owner(self.nodes, PATIENCE_S))]

    def leader(self) -> Machine:
        """Return the machine whose server leads the stream, once all servers have all of it."""
        name = await_settled(self.machines, PATIENCE_S).leader
        return next(machine for machine in self.machines if machine.server.name == name)

    def follower(self) -> Machine:
        """Return another one."""
        first = self.leader()
        return self.chance.choice([each for each in self.machines if each is not first])

    def kill_owner(self) -> None:
        """Kill the owner, and start it again when another one is."""
        machine = self.owner()
        self.suffer("kill_owner", machine.node.kill)
        machine.start_node()

    def lose_machine(self) -> None:
        """Lose a machine, with its link if it has one, and have it back."""
        machine = self.chance.choice(self.machines)
        self.suffer(f"lose_machine, {self.case(machine)}", machine.lose, self.while_s())
        machine.restore()

    def cut_machine(self) -> None:
        """Lose a machine's link until another one has the vhost."""
        machine = self.chance.choice(self.machines)
        self.suffer(f"cut_machine, {self.case(machine)}", machine.cut, self.while_s())
        machine.mend()

    def cut_one_way(self) -> None:
        """Lose what a machine sends, or what it should receive."""
        machine, way = self.chance.choice(self.machines), self.chance.choice(["out", "in"])
        cut, mend = machine.cut_way(way)
        self.suffer(f"cut_one_way ({way}), {self.case(machine)}", cut, self.while_s())
        mend()

    def lose_server(self) -> None:
        """Lose a server with its disk; an empty one of its name comes in its place."""
        machine = self.chance.choice(self.machines)
        fault = "lose_server for good" + self.of_leader(machine)

        def lose() -> None:
            machine.server.kill()
            machine.empty_server()

        self.suffer(fault, lose, self.while_s())
        machine.server.start()

    def go_on_without_a_server(self) -> None:
        """Lose a server with its disk, which never comes back, and then the owner; move it."""
        machine = self.chance.choice(self.machines)
        self.suffer("lose_server for ever" + self.of_leader(machine), machine.server.kill)
        machine.empty_server()
        self.kill_owner()
        self.move()

    def case(self, machine: Machine) -> str:
        """Return what is lost with a machine: NATS may have to elect a leader of the stream."""
        whose = "the owner's" if machine is self.owner() else "another"
        return whose + self.of_leader(machine)

    def of_leader(self, machine: Machine) -> str:
        """Return what to add if its server leads the stream."""
        return ", with the stream's leader" if machine is self.leader() else ""

    def stop_owner(self) -> None:
        """Have the owner sleep for 12 seconds."""
        node = self.owner().node

        def sleep() -> None:
            node.signal(signal.SIGSTOP)
            time.sleep(12)
            node.signal(signal.SIGCONT)

        self.suffer("stop_owner", sleep)

    def move(self) -> None:
        """Have another node own the vhost, once one is ready: it may just have been started."""

        def is_moved() -> bool:
            return crosstie(self.owner().node, "amqp", "move", "/").returncode == 0

        await_true("the vhost is moved", is_moved, PATIENCE_S)
        self.suffer("move", lambda: None)

    def kill_leader(self) -> None:
        """Kill the server that leads the stream, and start it again."""
        server = self.leader().server
        self.suffer("kill_leader", server.kill)
        server.start()

    def kill_follower(self) -> None:
        """Kill another one."""
        server = self.follower().server
        self.suffer("kill_follower", server.kill)
        server.start()

    def stop_leader(self) -> None:
        """Have the server sleep that leads the stream."""
        process = self.leader().server.process
        assert process is not None
        self.suffer("stop_leader", lambda: process.send_signal(signal.SIGSTOP))
        process.send_signal(signal.SIGCONT)

    def lie(self) -> None:
        """Kill the owner while monitors lie, fail or hang.

        At most one denies that its server syncs: if most do, no node opens the vhost.
        """
        lies = [SILENCE, *sorted(LIES)]
        for machine in self.machines:
            machine.monitor.saying = self.chance.choice(lies)
        liars = [each for each in self.machines if each.monitor.saying == NO_SYNC]
        for machine in liars[1:]:
            machine.monitor.saying = TRUTH
        if liars:
            next(each for each in self.machines if each not in liars).monitor.saying = TRUTH
        machine = self.owner()
        self.suffer("kill_owner, while monitors lie", machine.node.kill)
        for each in self.machines:
            each.monitor.saying = TRUTH
        machine.start_node()

    def suffer(self, fault: str, strike: Callable[[], None], lasts_s: float = 0) -> None:
        """Bring a fault about, and wait until every publisher has more confirmed.

        It lasts for so long, or longer: some of its consequences come late.
        """
        self.await_more()
        begun, wall = time.monotonic(), datetime.now(UTC).time().isoformat("milliseconds")
        strike()
        for publisher in self.publishers:
            publisher.mark()
        self.await_more()
        time.sleep(max(0.0, begun + lasts_s - time.monotonic()))
        self.await_more()
        times = self.times.setdefault(fault, Times())
        firsts = [publisher.first for publisher in self.publishers if publisher.first]
        times.first.append(min(firsts) - begun)
        times.longest.append(max(publisher.longest_s for publisher in self.publishers))
        taken = f"first after {times.first[-1]:.2f} s, longest {times.longest[-1]:.2f} s"
        print(f"{wall}, load {os.getloadavg()[0]:.1f}: {fault}: {taken}", flush=True)

    def while_s(self) -> float:
        """Return how long a machine or a server is gone, at least."""
        return self.chance.uniform(0, 10)

    def await_more(self) -> None:
        """Wait until every publisher has more confirmed."""
        for publisher in self.publishers:
            publisher.await_more(5, PATIENCE_S)

    def faults(self) -> list[Callable[[], None]]:
        """Return those that can be brought about here."""
        of_links = [self.cut_machine, self.cut_one_way] if self.network else []
        return [
            *[self.kill_owner, self.stop_leader, self.kill_leader, self.kill_follower],
            *[self.stop_owner, self.move, self.lose_machine, self.lose_server, self.lie],
            *of_links,
        ]

    def run(self, seconds: float, only: list[str], count: int) -> None:
        """Go on for so long, or for so many faults; then look whether all is there."""
        faults = [each for each in self.faults() if not only or each.__name__ in only]
        done = 0
        while time.monotonic() - self.begun < seconds and (not count or done < count):
            self.chance.shuffle(faults)
            for fault in faults:
                fault()
                await_settled(self.machines, PATIENCE_S)
                # Timers of nodes and servers are anywhere when the next one comes.
                time.sleep(self.chance.uniform(0, 2))
                done += 1
                if time.monotonic() - self.begun >= seconds or done == count:
                    break
        if not only:
            self.go_on_without_a_server()
        for publisher in self.publishers:
            publisher.stop()
        taken = self.consumer.stop() + take_all(self.nodes)
        check(taken, self.publishers)
        confirmed = sum(publisher.confirmed for publisher in self.publishers)
        twice = len(taken) - len(set(taken))
        print(
            f"{done} faults, {confirmed} confirmed, {len(taken)} received, "
            f"{twice} twice, none lost, in order"
        )
        for fault, times in sorted(self.times.items()):
            print(f"  {fault}: {len(times.first)} times")
            print(f"    first confirm again: {spread(times.first)}")
            print(f"    longest time without: {spread(times.longest)}")


def spread(times: list[float]) -> str:
    """Return the median, the 95th percentile and the maximum."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    half, longest = statistics.median(ordered), ordered[-1]
    return f"median {half:.2f} s, p95 {p95:.2f} s, maximum {longest:.2f} s"


def run(
    directory: Path,
    seconds: float,
    seed: int,
    *,
    is_networked: bool = True,
    only: list[str] | None = None,
    count: int = 0,
) -> None:
    """Run it once; machines have links where namespaces are allowed."""
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    why = obstacle() if is_networked else "not asked for"
    with contextlib.ExitStack() as closing:
        network = None
        if why:
            print(f"machines without links ({why})")
        else:
            network = Network(3)
            closing.callback(network.close)
        chaos = Chaos(directory, seed, network, closing)
        chaos.run(seconds, only or [], count)


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", action="append", help="kind of fault; may be repeated")
    parser.add_argument("--count", type=int, default=0, help="number of faults (default: any)")
    parser.add_argument("--without-links", action="store_true", help="use no namespaces")
    parser.add_argument("--directory", type=Path, help="keep all files there")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.seconds:.0f} s", flush=True)
    with contextlib.ExitStack() as closing:
        directory = arguments.directory
        if directory is None:
            directory = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        run(
            directory,
            arguments.seconds,
            arguments.seed,
            is_networked=not arguments.without_links,
            only=arguments.only,
            count=arguments.count,
        )


if __name__ == "__main__":
    main()
