"""Loses machines, links, nodes and servers of a realm in turn, under calls and events.

`make chaos-realm LOSSES=100` runs it. Each loss is waited for until the machines that are left
serve each other again, and then until all do.
"""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rig.waiting import await_true

from fabric.agents import ONE, SHARED, SLOW, Agents, Call, own
from fabric.machines import FAST, STRICT, Cluster, Machine

PATIENCE_S = 90.0
# All is well when nothing has failed for so long.
QUIET_S = 1.5
# Losses last so long, and at least until the others are well again.
LASTS_S = (1.0, 20.0)
BOUND_S = 6.0


@dataclass
class Figures:
    """Times in seconds by what they are of."""

    times: dict[str, list[float]] = field(default_factory=dict)

    def note(self, what: str, times: Iterable[float]) -> float:
        """Note the longest of them, and return it."""
        longest = max(times, default=0.0)
        self.times.setdefault(what, []).append(longest)
        return longest

    def print(self) -> None:
        """Print a line for each."""
        for what, times in sorted(self.times.items()):
            half, most = statistics.median(times), percentile(times, 95)
            last = max(times)
            print(f"  {what}: {len(times)}, half {half:.1f} s, 95 % {most:.1f} s, all {last:.1f} s")


def percentile(times: list[float], part: int) -> float:
    """Return what so many percent of the times are within."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, len(ordered) * part // 100)]


class Chaos:
    """The machines, what runs on them, and the losses."""

    def __init__(self, directory: Path, seed: int):
        self.chance = random.Random(seed)
        self.cluster = Cluster(directory)
        self.machines = self.cluster.machines
        self.agents = Agents(self.machines, (STRICT, FAST))
        self.figures = Figures()
        self.late: list[str] = []
        self.calls = 0

    # Each returns what ends the loss, and whether the programs on the machine lived on.

    def lose_machine(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Lose its power: link, node and server at once."""
        lost.power_off()
        return lambda: restart(lost), False

    def lose_link(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Lose its link, both ways."""
        lost.cut_off()
        return lost.plug, True

    def lose_what_it_sends(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Lose its link, one way."""
        lost.be_mute()
        return lost.lose_none, True

    def lose_what_it_hears(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Lose its link, the other way."""
        lost.be_deaf()
        return lost.lose_none, True

    def kill_node(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Kill its node."""
        lost.kill_node()
        return lost.start_node, False

    def kill_server(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Kill its server."""
        lost.kill_server()
        return lost.start_server, True

    def stop_node(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Have its node sleep."""
        node = lost.node
        assert node is not None
        node.signal(signal.SIGSTOP)
        return lambda: node.signal(signal.SIGCONT), False

    def stop_server(self, lost: Machine) -> tuple[Callable[[], None], bool]:
        """Have its server sleep."""
        assert lost.server is not None
        process = lost.server.process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        return lambda: process.send_signal(signal.SIGCONT), True

    def suffer(self, fault: str, lost: Machine) -> None:
        """Bring one loss about, wait for the others, end it, and wait for all."""
        others = [machine for machine in self.machines if machine is not lost]
        leads = self.cluster.leader() == lost.index
        begun = self.agents.now()
        end, lives = getattr(self, fault)(lost)
        until = begun + self.chance.uniform(*LASTS_S)
        self.await_well(others, begun, f"{fault}: the others")
        left = self.judge(f"{fault}{', leader' if leads else ''}, the others", others, begun)
        while self.agents.now() < until:
            time.sleep(0.1)
        ended = self.agents.now()
        end()
        up = self.agents.now()
        self.await_well(self.machines, up, f"{fault}: all")
        if lives:
            self.judge(f"{fault}, the lost one's programs", [lost], begun)
        after = self.judge(f"{fault}, afterwards", self.machines, up)
        leading = " (leader)" if leads else ""
        lasted = f"{fault}{leading} of {lost.index + 1} for {ended - begun:.0f} s"
        print(f"{lasted}: {left}; then {after}", flush=True)
        self.calls += len(self.agents.calls)
        self.agents.forget()

    def judge(self, what: str, machines: list[Machine], since: float) -> str:
        """Note how long answers took on these machines, and until nothing failed any more."""
        here = {machine.index for machine in machines}
        now = self.agents.now()
        calls = [call for call in list(self.agents.calls) if call.machine in here]
        calls = [call for call in calls if (call.ended or now) >= since]
        slow = SLOW_S
        # A session that ended with its node is answered by that.
        waits = [
            (call.ended or now) - max(call.begun, since) - (slow if call.procedure == SLOW else 0.0)
            for call in calls
            if call.ended is not None or call.error is None
        ]
        longest = self.figures.note(f"answer: {what}", waits)
        if longest > BOUND_S:
            worst = max(
                (call for call in calls if call.ended is not None or call.error is None),
                key=lambda call: (call.ended or now) - max(call.begun, since),
            )
            self.late.append(f"{what}: {longest:.1f} s, {worst}")
        told = [f"answers {longest:.1f} s"]
        for realm in (STRICT, FAST):
            single = [call for call in calls if call.realm == realm and call.procedure == ONE]
            rest = [call for call in calls if call.realm == realm and call.procedure != ONE]
            name = "strict" if realm == STRICT else "fast"
            served = self.figures.note(
                f"served: {what}, one callee, {name}", [settled(single, since)]
            )
            told.append(f"{name} {served:.1f} s")
            if realm == FAST:
                wanted = {own(machine.index) for machine in machines} | {SHARED, SLOW}
                rest = [call for call in rest if call.procedure in wanted]
                served = self.figures.note(f"served: {what}, others", [settled(rest, since)])
                told.append(f"others {served:.1f} s")
        heard = self.figures.note(f"events: {what}", self.gaps(here, since))
        return ", ".join([*told, f"events {heard:.1f} s"])

    def gaps(self, here: set[int], since: float) -> Iterable[float]:
        """Return how long after that the first events came that nothing was lost behind."""
        until = self.agents.now() - QUIET_S
        news = [each for each in list(self.agents.news) if since <= each.begun <= until]
        for realm in (STRICT, FAST):
            for publisher in here:
                sent = [each for each in news if (each.realm, each.machine) == (realm, publisher)]
                for subscriber in here - {publisher}:
                    reached = since
                    for each in sent:
                        if subscriber not in each.heard:
                            reached = None
                        elif reached is None:
                            reached = each.heard[subscriber]
                    yield (reached or self.agents.now()) - since

    def await_well(self, machines: list[Machine], since: float, what: str) -> None:
        """Wait until calls and events between these machines succeed, and go on to."""
        here = {machine.index for machine in machines}
        wanted = {own(place) for place in here} | {ONE, SHARED, SLOW}

        def is_well() -> bool:
            now = self.agents.now()
            if now < since + 2 * QUIET_S:
                return False
            recent = [call for call in list(self.agents.calls) if call.machine in here]
            recent = [call for call in recent if call.procedure in wanted]
            recent = [call for call in recent if call.begun >= now - 2 * QUIET_S - SLOW_S]
            if any(call.error is not None for call in recent):
                return False
            recent = [call for call in recent if call.begun <= now - QUIET_S]
            done = {(call.realm, call.machine, call.procedure) for call in recent}
            routes = sum(2 * len(wanted - {own(place)}) for place in here)
            news = [each for each in list(self.agents.news) if each.machine in here]
            news = [each for each in news if now - 2 * QUIET_S <= each.begun <= now - QUIET_S]
            return (
                len(done) >= routes
                and all(call.is_good for call in recent)
                and {(each.realm, each.machine) for each in news}
                == {(realm, place) for realm in (STRICT, FAST) for place in here}
                and all(here <= set(each.heard) | {each.machine} for each in news)
            )

        try:
            await_true(f"{what} are well", is_well, PATIENCE_S)
        except AssertionError:
            self.tell(what)
            raise

    def tell(self, what: str) -> None:
        """Print what does not work, and what the nodes said."""
        now = self.agents.now()
        recent = [call for call in list(self.agents.calls) if call.begun >= now - 2 * QUIET_S]
        failed = {(call.realm, call.machine, call.procedure, call.error) for call in recent}
        print(f"{what}:", *sorted(each for each in failed if each[3]), sep="\n  ")
        unheard = [
            (each.realm, each.machine, sorted(each.heard))
            for each in list(self.agents.news)
            if now - 2 * QUIET_S <= each.begun <= now - QUIET_S
        ]
        print(*sorted(set(map(str, unheard))), sep="\n  ")
        for machine in self.machines:
            if machine.node is not None:
                print("\n".join(machine.node.told().splitlines()[-60:]))

    def run(self, seconds: float, losses: int, only: list[str]) -> None:
        """Go on for so long or for so many losses; then judge."""
        faults = only or [
            *["lose_machine"] * 3,
            *["lose_link", "lose_what_it_sends", "lose_what_it_hears"],
            *["kill_node", "kill_server", "stop_node", "stop_server"],
        ]
        self.await_well(self.machines, self.agents.now(), "all at first")
        self.agents.forget()
        begun, count = time.monotonic(), 0
        while count < losses if losses else time.monotonic() - begun < seconds:
            self.chance.shuffle(faults)
            for fault in faults:
                self.suffer(fault, self.chance.choice(self.machines))
                count += 1
                if count == losses or (not losses and time.monotonic() - begun >= seconds):
                    break
        print(f"{count} losses, {self.calls} calls")
        self.figures.print()
        assert not self.agents.wrong, self.agents.wrong[:5]
        strictly = [double for double in self.agents.doubles if double[0] == STRICT]
        assert not strictly, strictly[:5]
        assert not self.late, "\n".join(self.late)

    def close(self) -> None:
        """End everything."""
        self.agents.close()
        self.cluster.close()


SLOW_S = 1.2


def settled(calls: list[Call], since: float) -> float:
    """Return how long after that the first call ended behind which none failed."""
    reached: float | None = since
    for call in sorted(calls, key=lambda call: call.begun):
        if call.begun < since:
            continue
        if call.error is not None:
            reached = None
        elif reached is None and call.ended is not None:
            reached = call.ended
    return (reached or since + PATIENCE_S) - since


def restart(machine: Machine) -> None:
    """Have a machine's power again."""
    machine.plug()
    machine.start_server()
    machine.start_node()


def run(
    directory: Path, seconds: float, seed: int, losses: int = 0, only: list[str] | None = None
) -> None:
    """Run it once."""
    chaos = Chaos(directory, seed)
    try:
        chaos.run(seconds, losses, only or [])
    finally:
        chaos.close()


def main() -> None:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--losses", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], help="only this kind of loss")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        run(where, arguments.seconds, arguments.seed, arguments.losses, arguments.only)


if __name__ == "__main__":
    main()
