#!/usr/bin/env python3
"""Runs every test suite and sums up what became of each: passed, failed, or skipped and why.

Python's own library is enough to run this; it installs what the suites need (see needs.py), while
the program is compiled. A few suites run at a time, one that compiles beside some that mostly
wait; what each says is printed whole when it ends. Suites that measure run alone, at last.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import needs
import second_tries
import suite_times
from suite_times import Times
from suites import Suite, suites

LOGS = needs.TARGET / "test-logs"
# The programs that the black-box suites run: copies, for builds beside them replace cargo's own.
TESTED = needs.TARGET / "tested"
PROGRAMS = ["crosstie", "crosstie-lab"]
# Most suites wait for most of their time: each keeps a third of a core busy.
AT_ONCE = 5
# Minutes that all of it may take from a cold clone on two cores that do nothing else.
BUDGET_MIN = 35
CORES = 2
# What a run from a cold clone leaves on the disk, and some more; in bytes.
ROOM = 16_000_000_000


@dataclass
class Outcome:
    """The result of a suite."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # Processor time of all its processes that ended before it did.
    cpu_seconds: float = 0.0
    # Why it failed or was skipped; empty when it passed.
    reason: str = ""
    leaves_out: str = ""
    # Tests that failed, and passed when they were run by themselves.
    unsteady: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Return passed, failed or skipped."""
        if self.failed:
            return "failed"
        return "passed" if self.passed else "skipped"


def may_begin(suite: Suite, waiting: list[Suite], running: list[Suite]) -> bool:
    """Whether a suite may run beside those that do."""
    if any(each.is_alone for each in running):
        return False
    if suite.is_alone:
        return not running and all(each.is_alone for each in waiting)
    if suite.compiles and any(each.compiles for each in running):
        return False
    ahead = [*waiting, *running]
    return not suite.is_black_box or all(each.name != "build" for each in ahead)


def longest_first(chosen: list[Suite], times: dict[str, Times]) -> list[Suite]:
    """Order suites: the program that most run, those that run one by one, then the longest."""
    unknown = Times(wall_s=0, processor_s=0)
    wall_s = {suite.name: times.get(suite.name, unknown).wall_s for suite in chosen}

    def order(suite: Suite) -> tuple[bool, bool, float]:
        return suite.name != "build", not suite.compiles, -wall_s[suite.name]

    return sorted(chosen, key=order)


def foreseen_s(chosen: list[Suite], times: dict[str, Times]) -> float:
    """Return how long a run takes whose suites take what is recorded, and share two cores."""
    waiting, left, now = longest_first(chosen, times), {}, 0.0
    by_name = {suite.name: suite for suite in chosen}
    while waiting or left:
        beside = [by_name[name] for name in left]
        found = next((suite for suite in waiting if may_begin(suite, waiting, beside)), None)
        if found and len(left) < AT_ONCE:
            waiting.remove(found)
            left[found.name] = times[found.name].wall_s
            continue
        load = sum(times[name].processor_s / max(times[name].wall_s, 1) for name in left)
        step = min(left.values())
        now += step * max(1, load / CORES)
        left = {name: rest - step for name, rest in left.items() if rest > step}
    return now


class Run:
    """One run of some suites: which are done, and which may begin."""

    def __init__(self, chosen: list[Suite], is_whole: bool):
        self.waiting = longest_first(chosen, suite_times.read())
        self.running: list[Suite] = []
        self.outcomes: dict[str, Outcome] = {}
        self.is_whole = is_whole
        self._second_tries = second_tries.Allowance(second_tries.read())
        # One suite says what it does while it does it.
        self.is_echoing = len(chosen) == 1
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        if "CI" in os.environ:
            # Nobody compiles again there: what cargo keeps for that is a third of the files.
            self.environment.setdefault("CARGO_INCREMENTAL", "0")
        if "CROSSTIE" not in os.environ and any(suite.is_black_box for suite in chosen):
            self.environment["CROSSTIE"] = str(TESTED / "crosstie")
        self._changed = threading.Condition()
        # One thing is installed at a time, whichever suite needs it.
        self._installing = threading.Lock()

    def all(self) -> Iterable[Outcome]:
        """Run every suite; return what became of each."""
        order = [suite.name for suite in self.waiting]
        ahead = threading.Thread(target=self._install_ahead, args=[list(self.waiting)], daemon=True)
        workers = [threading.Thread(target=self._work) for _ in range(AT_ONCE)]
        for thread in (ahead, *workers):
            thread.start()
        for worker in workers:
            worker.join()
        # A client that is missing comes after what it would have been part of.
        rest = [name for name in self.outcomes if name not in order]
        return [self.outcomes[name] for name in (*order, *rest)]

    def _work(self) -> None:
        while suite := self._next():
            try:
                outcome = self._run(suite)
            except OSError as error:
                # A full disk, for one. The suites that wait for this one go on.
                outcome = Outcome(suite.name, failed=1, reason=f"could not be run: {error}")
            with self._changed:
                self.outcomes[suite.name] = outcome
                self.running.remove(suite)
                self._changed.notify_all()

    def _next(self) -> Suite | None:
        """Return the first suite that may begin, once there is one."""
        with self._changed:
            while self.waiting:
                found = next(filter(self._may_begin, self.waiting), None)
                if found:
                    self.waiting.remove(found)
                    self.running.append(found)
                    print(f"--- {found.name} begins", flush=True)
                    return found
                self._changed.wait()
            return None

    def _may_begin(self, suite: Suite) -> bool:
        return may_begin(suite, self.waiting, self.running)

    def _install_ahead(self, chosen: list[Suite]) -> None:
        for need in (need for suite in chosen for need in self._needed(suite)):
            self._unmet(need)

    def _commands(self, suite: Suite) -> list[list[str]]:
        return (self.is_whole and suite.whole) or suite.commands

    def _needed(self, suite: Suite) -> list[Callable[[], str | None]]:
        """Return what a suite requires, unless all of it is left out."""
        return suite.requires if self._commands(suite) else []

    def _unmet(self, need) -> str | None:
        with self._installing:
            return need()

    def _run(self, suite: Suite) -> Outcome:
        """Run a suite, or find out why it cannot be."""
        outcome = Outcome(suite.name)
        build = self.outcomes.get("build")
        if suite.is_black_box and build and build.failed:
            outcome.reason = "the program was not built"
            return outcome
        for need in self._needed(suite):
            if reason := self._unmet(need):
                outcome.reason = reason
                return outcome
        environment = dict(self.environment)
        if suite.name == "conformance" and (reason := self._unmet(needs.node)):
            # The other clients still judge; that these do not is said by name.
            environment["CROSSTIE_WITHOUT"] = "javascript"
            self.outcomes["autobahn-js"] = Outcome("autobahn-js", reason=reason)
        if self.is_whole:
            environment["CROSSTIE_WHOLE"] = "1"
        else:
            outcome.leaves_out = suite.leaves_out
        log = LOGS / f"{suite.name}.log"
        began = time.monotonic()
        with log.open("w", encoding="utf-8") as kept:
            for command in self._commands(suite):
                code, said = self._command(command, suite.folder, environment, kept, outcome)
                count(said, outcome)
                if code and suite.is_black_box:
                    code = self._again(command, suite, environment, kept, outcome, failures(said))
                if code:
                    outcome.failed = max(outcome.failed, 1)
                    outcome.reason = f"{shlex.join(command)} ended with {code}; see {log}"
                    break
        outcome.seconds = time.monotonic() - began
        if not outcome.failed and not outcome.passed:
            # It counts nothing by itself, but every command succeeded.
            outcome.passed = 1
        if suite.name == "build" and not outcome.failed:
            TESTED.mkdir(parents=True, exist_ok=True)
            for program in PROGRAMS:
                shutil.copy2(needs.TARGET / "debug" / program, TESTED)
        self._print(suite, log)
        return outcome

    def _again(
        self,
        command: list[str],
        suite: Suite,
        environment: dict[str, str],
        kept,
        outcome: Outcome,
        tests: list[str],
    ) -> int:
        """Run the tests that failed once more; return 0 if none of them fails again.

        Kills, cuts and deadlines of whole processes depend on when a busy machine runs which. A
        test that fails twice is broken. One that fails once is counted, named at the end and
        listed: a listed test has no second try (see second_tries.py).
        """
        if not 0 < len(tests) == outcome.failed:
            return 1
        if refusal := self._second_tries.refusal(tests):
            kept.write(f"{refusal}\n")
            return 1
        options = command[: command.index("-q") + 1]
        code, said = self._command([*options, *tests], suite.folder, environment, kept, outcome)
        again = Outcome(suite.name)
        count(said, again)
        if code or again.passed != len(tests):
            return 1
        outcome.failed -= again.passed
        outcome.passed += again.passed
        outcome.unsteady += tests
        return 0

    def _print(self, suite: Suite, log: Path) -> None:
        if not self.is_echoing:
            text = log.read_text(encoding="utf-8", errors="replace")
            with self._changed:
                print(f"\n=== {suite.name}: {suite.what}\n{text}", flush=True)

    def _command(
        self, command: list[str], folder: Path, environment: dict[str, str], kept, outcome: Outcome
    ) -> tuple[int, list[str]]:
        """Run a command and keep what it says; return its exit code and that."""
        said: list[str] = []

        def say(line: str) -> None:
            kept.write(line)
            if self.is_echoing:
                print(line, end="", flush=True)

        say(f"+ {shlex.join(command)}\n")
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        except OSError as error:
            say(f"{error}\n")
            return 127, []
        assert process.stdout is not None
        for line in process.stdout:
            say(line)
            said.append(line)
        # Not `process.wait()`: this tells the processor time too.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        outcome.cpu_seconds += used.ru_utime + used.ru_stime
        return process.returncode, said


# The closing lines of cargo test (one for each of its programs) and of pytest.
CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
PYTEST = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")


def count(said: list[str], outcome: Outcome) -> None:
    """Add up what the runners' closing lines say."""
    for line in said:
        if found := CARGO.match(line):
            passed, failed, ignored = map(int, found.groups())
            outcome.passed += passed
            outcome.failed += failed
            outcome.skipped += ignored
    last = said[-1] if said else ""
    if re.search(r" in [\d.]+s", last):
        for number, word in PYTEST.findall(last):
            if word == "passed":
                outcome.passed += int(number)
            elif word == "skipped":
                outcome.skipped += int(number)
            else:
                outcome.failed += int(number)


# pytest's line for each failed test.
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py::[^\[ ]+(?:\[.*?\](?= - |$))?)")


def failures(said: list[str]) -> list[str]:
    """Return the names of the tests that failed."""
    found = (FAILED.match(line.rstrip("\n")) for line in said)
    return list(dict.fromkeys(each[1] for each in found if each))


def main() -> int:
    """Run the suites named in the arguments, or all."""
    known = suites()
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(suite.name for suite in known)
    arguments.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of: {names}; or all")
    arguments.add_argument("--all", action="store_true", help="leave out nothing of any suite")
    arguments.add_argument(
        "--record",
        action="store_true",
        help="keep what each suite takes in scripts/suite_times.tsv",
    )
    asked = arguments.parse_args()
    if unknown := set(asked.suites) - {suite.name for suite in known}:
        print(f"no such suite: {', '.join(sorted(unknown))}", file=sys.stderr)
        print(f"suites: {names}", file=sys.stderr)
        return 2
    chosen = [suite for suite in known if not asked.suites or suite.name in asked.suites]
    if "CROSSTIE" not in os.environ and any(suite.is_black_box for suite in chosen):
        # What they run.
        chosen = [suite for suite in known if suite in chosen or suite.name == "build"]
    is_cold = not (needs.TARGET / "debug/deps").is_dir()
    LOGS.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(LOGS).free
    if is_cold and free < ROOM:
        print(f"{free / 1e9:.0f} GB are free; a cold run takes {ROOM / 1e9:.0f}", file=sys.stderr)
        return 2
    began = time.monotonic()
    run = Run(chosen, asked.all)
    outcomes = list(run.all())
    recorded = suite_times.read()
    took = {each.name: Times(each.seconds, each.cpu_seconds) for each in outcomes if each.passed}
    code = sum_up(outcomes, time.monotonic() - began, suite_times.grown(took, recorded))
    second_tries.add(test for outcome in outcomes for test in outcome.unsteady)
    if asked.record and not code:
        suite_times.write(recorded | took)
    return code


def sum_up(outcomes: list[Outcome], seconds: float, grown: Iterable[str] = ()) -> int:
    """Print what became of every suite, and which have grown; return the exit code."""
    print(f"\n=== summary{'wall':>57} {'processor':>11}")
    for outcome in outcomes:
        counts = f"{outcome.passed} passed, {outcome.failed} failed"
        if outcome.skipped:
            counts += f", {outcome.skipped} skipped"
        took = f"{outcome.seconds:5.0f} s {outcome.cpu_seconds:9.0f} s"
        if outcome.verdict == "skipped":
            counts, took = "", ""
        line = f"{outcome.verdict:<8} {outcome.name:<19} {counts:<34} {took}"
        print(f"{line}  {outcome.reason}".rstrip())
        for test in outcome.unsteady:
            print(f"{'':<8} failed, and passed when it was run again: {test}")
        if outcome.leaves_out and outcome.passed:
            print(f"{'':<8} without {outcome.leaves_out} (`make test-all` has them)")
    for line in grown:
        print(line)
    minutes, rest = divmod(round(seconds), 60)
    print(f"took {minutes} min {rest} s; on two quiet cores at most {BUDGET_MIN} min are meant")
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(outcome.skipped or outcome.verdict == "skipped" for outcome in outcomes)
    unsteady = sum(len(outcome.unsteady) for outcome in outcomes)
    rest = [f"{skipped} skipped"] if skipped else []
    rest += [f"{unsteady} at the second attempt"] if unsteady else []
    print(", ".join([f"crosstie: {passed} passed, {failed} failed", *rest]))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
