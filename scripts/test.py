#!/usr/bin/env python3
"""Runs every test suite and sums up what became of each: passed, failed, or skipped and why.

Python's own library is enough to run this; it installs what the suites need (see needs.py).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import needs

LOGS = needs.TARGET / "test-logs"
# The AMQP client in Rust is no part of the workspace.
RUST_CLIENT = "conformance/rust_client/Cargo.toml"
GO = "conformance/test_amqp_go.py"
SPRING = "conformance/test_amqp_spring.py"


@dataclass
class Suite:
    """One suite: commands to run one after the other, and what has to be there first."""

    name: str
    what: str
    commands: list[list[str]]
    requires: list[Callable[[], str | None]] = field(default_factory=list)
    folder: Path = needs.ROOT


@dataclass
class Outcome:
    """What became of a suite."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    # Why it failed or was skipped; empty when it passed.
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Return passed, failed or skipped."""
        if self.failed:
            return "failed"
        return "passed" if self.passed else "skipped"


def pytest(*arguments: str) -> list[str]:
    """Return a pytest command in the tests' own environment."""
    return [str(needs.PYTHON), "-m", "pytest", "-q", *arguments]


def suites() -> list[Suite]:
    """Return every suite, the quickest to fail first."""
    cargo = [needs.compiler]
    sources = ["conformance", "scripts", "python", "examples"]
    ruff = [str(needs.PYTHON), "-m", "ruff"]
    configured = ["--config", "conformance/pyproject.toml"]
    # All that RabbitMQ judges, but what has a suite of its own.
    apart = {GO, SPRING, "conformance/test_amqp_oslo.py"}
    found = (f"conformance/{file.name}" for file in needs.CONFORMANCE.glob("test_amqp_*.py"))
    judged = sorted(set(found) - apart)
    oslo = [
        f"conformance/test_{which}.py"
        for which in ("amqp_oslo", "oslo_cli", "outliving_oslo", "bench_oslo")
    ]
    hostile = [f"conformance/test_hostile_{which}.py" for which in ("amqp", "wamp", "node")]
    containers = [f"conformance/test_container{which}.py" for which in ("_host", "_wire", "")]
    containers.append("conformance/test_outliving_node.py")
    return [
        Suite(
            "format",
            "rustfmt on every crate",
            [
                ["cargo", "fmt", "--all", "--check"],
                ["cargo", "fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
                ["cargo", "fmt", "--manifest-path", RUST_CLIENT, "--check"],
            ],
            [lambda: needs.component("fmt")],
        ),
        Suite(
            "python-style",
            "ruff on what is Python",
            [
                [*ruff, "check", *configured, *sources],
                [*ruff, "format", "--check", *configured, *sources],
            ],
            [needs.python],
        ),
        Suite(
            "supply",
            "licences, sources, copies and advisories of every package that is used",
            [[sys.executable, str(needs.ROOT / "scripts/supply.py")]],
            cargo,
        ),
        Suite(
            "lints",
            "clippy on every crate, warnings are errors",
            [
                ["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
                [
                    *["cargo", "clippy", "--manifest-path", RUST_CLIENT],
                    *["--target-dir", str(needs.RUST_CLIENT), "--", "-D", "warnings"],
                ],
            ],
            [*cargo, lambda: needs.component("clippy")],
        ),
        Suite(
            "rust",
            "unit, property, simulation and house-rule tests of the workspace",
            [["cargo", "test", "--workspace", "--no-fail-fast"]],
            cargo,
        ),
        Suite(
            "fuzz",
            "a short run of every fuzz target",
            [["cargo", "test"]],
            cargo,
            needs.ROOT / "fuzz",
        ),
        Suite(
            "conformance",
            "other people's clients, and peers that break the rules, against the router",
            [
                ["cargo", "build", "-p", "crosstie"],
                pytest(
                    "conformance",
                    "--ignore=conformance/test_cli.py",
                    "--ignore=conformance/test_report.py",
                    *[f"--ignore={file}" for file in (*containers, *hostile, *judged, *oslo)],
                    *[f"--ignore={file}" for file in (GO, SPRING)],
                    "--ignore=conformance/test_wheel.py",
                ),
            ],
            [*cargo, needs.python, needs.namespaces],
        ),
        Suite(
            "hostile",
            "peers that would stop everybody else, beside a witness of well-behaved sessions",
            [["cargo", "build", "-p", "crosstie"], pytest(*hostile)],
            [*cargo, needs.python],
        ),
        Suite(
            "amqp",
            "AMQP by four clients, judged by RabbitMQ; peers that break the rules; crashes, users",
            [["cargo", "build", "-p", "crosstie"], pytest(*judged)],
            [*cargo, needs.python, needs.rabbitmq, needs.rust_client, needs.strace],
        ),
        Suite(
            "amqp-go",
            "RabbitMQ's client for Go: how connections end, transactions; judged by RabbitMQ",
            [["cargo", "build", "-p", "crosstie"], pytest(GO)],
            [*cargo, needs.python, needs.rabbitmq, needs.go_client],
        ),
        Suite(
            "amqp-spring",
            "Spring AMQP's transactions; judged by RabbitMQ",
            [["cargo", "build", "-p", "crosstie"], pytest(SPRING)],
            [*cargo, needs.python, needs.rabbitmq, needs.spring_client],
        ),
        Suite(
            "oslo",
            "oslo.messaging's own functional tests over Crosstie; our instruments and it",
            [["cargo", "build", "-p", "crosstie"], pytest(*oslo)],
            [*cargo, needs.python, needs.rabbitmq, needs.oslo_messaging],
        ),
        Suite(
            "frameworks",
            "Celery, kombu and Dramatiq with real workers, on RabbitMQ and on Crosstie",
            [
                ["cargo", "build", "-p", "crosstie"],
                [
                    *[str(needs.FRAMEWORKS_VENV / "bin/python"), "-m", "pytest", "-q"],
                    "conformance/frameworks",
                ],
            ],
            [*cargo, needs.python, needs.rabbitmq, needs.frameworks],
        ),
        Suite(
            "containers",
            "Python components: their host alone, and nodes that have some",
            [
                ["cargo", "build", "-p", "crosstie"],
                pytest(*containers),
            ],
            [*cargo, needs.python],
        ),
        Suite(
            "wheel",
            "the Python package, installed where nothing else is",
            [["cargo", "build", "-p", "crosstie"], pytest("conformance/test_wheel.py")],
            [*cargo, needs.python],
        ),
        Suite(
            "command-line",
            "each command as a user would type it",
            [["cargo", "build", "-p", "crosstie"], pytest("conformance/test_cli.py")],
            [*cargo, needs.python],
        ),
        Suite(
            "report",
            "the page of all results, in a browser without a display",
            [["cargo", "build", "-p", "crosstie"], pytest("conformance/test_report.py")],
            [*cargo, needs.python, needs.browser],
        ),
        Suite(
            "websocket-testsuite",
            "the Autobahn TestSuite against a WebSocket testee, judged strictly",
            [
                ["cargo", "build", "-p", "crosstie"],
                [
                    *[str(needs.PYTHON), str(needs.TESTSUITE / "judge.py")],
                    *["--wstest", str(needs.WSTEST)],
                    *["--reports", str(needs.TESTSUITE_VENV.parent / "reports")],
                ],
            ],
            [*cargo, needs.python, needs.testsuite],
        ),
    ]


def run(suite: Suite, environment: dict[str, str]) -> Outcome:
    """Run a suite, or find out why it cannot be."""
    outcome = Outcome(suite.name)
    print(f"\n=== {suite.name}: {suite.what}", flush=True)
    for need in suite.requires:
        if reason := need():
            outcome.reason = reason
            return outcome
    began = time.monotonic()
    log = LOGS / f"{suite.name}.log"
    with log.open("w", encoding="utf-8") as kept:
        for command in suite.commands:
            code, said = show(command, suite.folder, environment, kept)
            count(said, outcome)
            if code:
                outcome.failed = max(outcome.failed, 1)
                outcome.reason = f"{shlex.join(command)} ended with {code}; see {log}"
                break
    outcome.seconds = time.monotonic() - began
    if not outcome.failed and not outcome.passed:
        # It counts nothing by itself, but every command succeeded.
        outcome.passed = 1
    return outcome


def show(
    command: list[str], folder: Path, environment: dict[str, str], kept
) -> tuple[int, list[str]]:
    """Run a command, pass on and keep what it says; return its exit code and that."""
    print("+", shlex.join(command), flush=True)
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
        print(error)
        return 127, []
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        kept.write(line)
        said.append(line)
    return process.wait(), said


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


def main() -> int:
    """Run the suites named in the arguments, or all."""
    chosen = sys.argv[1:]
    known = suites()
    if unknown := set(chosen) - {suite.name for suite in known}:
        print(f"no such suite: {', '.join(sorted(unknown))}", file=sys.stderr)
        print(f"suites: {', '.join(suite.name for suite in known)}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    outcomes = []
    for suite in known:
        if chosen and suite.name not in chosen:
            continue
        if suite.name == "conformance" and (reason := needs.node()):
            # The other clients still judge; that these do not is said by name.
            environment["CROSSTIE_WITHOUT"] = "javascript"
            outcomes.append(Outcome("autobahn-js", reason=reason))
        outcomes.append(run(suite, environment))
    return sum_up(outcomes)


def sum_up(outcomes: list[Outcome]) -> int:
    """Print what became of every suite; return the exit code."""
    print("\n=== summary")
    for outcome in outcomes:
        counts = f"{outcome.passed} passed, {outcome.failed} failed"
        if outcome.skipped:
            counts += f", {outcome.skipped} skipped"
        if outcome.verdict == "skipped":
            counts = ""
        line = f"{outcome.verdict:<8} {outcome.name:<19} {counts} {outcome.seconds:5.0f} s"
        print(f"{line}  {outcome.reason}".rstrip())
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(outcome.failed for outcome in outcomes)
    skipped = sum(outcome.skipped or outcome.verdict == "skipped" for outcome in outcomes)
    print(
        f"crosstie: {passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    )
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
