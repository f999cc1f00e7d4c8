"""Every test suite: what it judges, what it needs, and beside what it may run.

Black-box suites are folders of `conformance/`; `conformance/scripts/test_suites.py` holds that each
test there belongs to exactly one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import needs

# The AMQP client in Rust is no part of the workspace.
RUST_CLIENT = "conformance/rust_client/Cargo.toml"


@dataclass
class Suite:
    """One suite: commands to run one after the other, and what has to be there first."""

    name: str
    what: str
    commands: list[list[str]]
    requires: list[Callable[[], str | None]] = field(default_factory=list)
    folder: Path = needs.ROOT
    # Folders of tests that run against the program which the suite `build` has made.
    tests: list[str] = field(default_factory=list)
    # Whether it keeps a core busy for most of its time; two such suites do not run at once.
    compiles: bool = False
    # Whether it runs while nothing else does: it measures, or holds peers to a deadline.
    is_alone: bool = False
    # The part that the default run leaves out, and the commands of `--all`; these are empty if only
    # the environment differs (CROSSTIE_WHOLE).
    leaves_out: str = ""
    whole: list[list[str]] = field(default_factory=list)

    @property
    def is_black_box(self) -> bool:
        """Whether it runs against the built program."""
        return bool(self.tests)


def black_box(
    name: str,
    what: str,
    folders: list[str],
    *requires: Callable[[], str | None],
    python: Path = needs.PYTHON,
    is_alone: bool = False,
    leaves_out: str = "",
) -> Suite:
    """Return a suite that is all tests of these folders of `conformance/`."""
    tests = [f"conformance/{folder}" for folder in folders]
    command = [str(python), "-m", "pytest", "-q", *tests]
    requirements = [needs.python, *requires]
    return Suite(
        name, what, [command], requirements, tests=tests, is_alone=is_alone, leaves_out=leaves_out
    )


def suites() -> list[Suite]:
    """Return every suite: the quickest to fail first, then the longest."""
    return [*of_text(), *of_rust(), *of_wamp(), *of_amqp(), *of_python(), *of_hostility()]


def of_text() -> list[Suite]:
    """Return the suites that read sources."""
    sources = ["conformance", "scripts", "packaging", "python", "examples"]
    ruff = [str(needs.PYTHON), "-m", "ruff"]
    configured = ["--config", "conformance/pyproject.toml"]
    return [
        Suite(
            "format",
            "rustfmt on every crate",
            [
                ["cargo", "fmt", "--all", "--check"],
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
            [needs.compiler],
        ),
    ]


def of_rust() -> list[Suite]:
    """Return the suites of cargo."""
    # One build of each package for the programs and the tests (`crates/features`).
    unified = ["--features", "crosstie/unified,crosstie-lab/unified"]
    tests = ["cargo", "test", "--workspace", "--no-fail-fast", *unified]
    outside = ["cargo", "test", "-p", "crosstie-node", "--test", "outside", "--features", "outside"]
    return [
        Suite(
            "build",
            "the programs that the black-box suites run",
            [["cargo", "build", "-p", "crosstie", "-p", "crosstie-lab", *unified]],
            [needs.compiler],
            compiles=True,
        ),
        Suite(
            "rust",
            "unit, property, simulation and house-rule tests; a short run of every fuzz target",
            [tests],
            [needs.compiler],
            compiles=True,
            leaves_out="a program outside of the workspace with a node inside, which compiles",
            whole=[tests, outside],
        ),
        Suite(
            "jetstream",
            "streams of a real server of NATS",
            [
                [
                    *["cargo", "test", "--workspace", "--test", "jetstream_server"],
                    *["--features", "crosstie-jetstream/server"],
                ]
            ],
            [needs.compiler, needs.nats],
            compiles=True,
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
            [needs.compiler, lambda: needs.component("clippy")],
            compiles=True,
        ),
    ]


def of_wamp() -> list[Suite]:
    """Return the suites of WAMP, the node and the program around them."""
    judge = [
        *[str(needs.PYTHON), str(needs.TESTSUITE / "judge.py")],
        *["--wstest", str(needs.WSTEST)],
        *["--reports", str(needs.TESTSUITE_VENV.parent / "reports")],
    ]
    return [
        black_box(
            "conformance",
            "other people's clients, and peers that break the rules, against the router",
            ["wamp", "crossbar", "node", "scripts"],
            leaves_out="links whose client, kind, transport and serializer others have in pairs",
        ),
        black_box(
            "xconn",
            "xconn's client: every method of authentication, every feature that it passes on",
            ["xconn_client"],
            needs.xconn_client,
        ),
        black_box(
            "nexus",
            "nexus' client for Go: what it speaks of the advanced profile, or passes on",
            ["nexus_client"],
            needs.nexus_client,
        ),
        Suite(
            "websocket-testsuite",
            "the Autobahn TestSuite against a WebSocket testee, judged strictly",
            [[*judge, "--sample"]],
            [needs.python, needs.testsuite],
            tests=["conformance/websocket_testsuite"],
            leaves_out="nine of twelve groups of compression: 12.2 to 12.5, 13.2 to 13.6",
            whole=[judge],
        ),
        black_box(
            "web",
            "web services: requests as browsers and attackers write them",
            ["web", "bridge"],
            *[needs.curl, needs.h2spec, needs.nginx, needs.node, needs.browser],
        ),
        black_box(
            "fabric",
            "a realm of several nodes, on one server of NATS and on three that fail",
            ["fabric"],
            *[needs.namespaces, needs.nats],
        ),
        black_box(
            "ledger",
            "vhosts of several nodes, whose journal NATS keeps: kills, cuts, moves, lost logs",
            ["ledger"],
            *[needs.namespaces, needs.nats],
        ),
        black_box(
            "versions",
            "NATS servers of two minor versions beside each other, upgraded under load",
            ["versions"],
            *[needs.nats, needs.nats_before],
            leaves_out="the way back to the earlier servers",
        ),
        black_box(
            "strangers",
            "faults that real programs of users meet, with the programs themselves",
            ["strangers"],
            *[needs.node, needs.strangers, needs.strangers_in_javascript, needs.frameworks],
            *[needs.rabbitmq, needs.old_amqp_clients, needs.namespaces],
            *[needs.go_client, needs.nexus_client, needs.xconn_client],
            *[needs.oslo_messaging, needs.spring_client_if_there],
            *[needs.nginx, needs.haproxy, needs.curl],
            *[needs.bunny, needs.browser],
        ),
        black_box("command-line", "each command as a user would type it", ["cli"], needs.systemd),
        black_box(
            "book",
            "every example of the book and of README.md",
            ["book"],
            *[needs.namespaces, needs.curl, needs.nginx, needs.haproxy, needs.node],
        ),
        black_box(
            "report",
            "the page of all results, in a browser without a display",
            ["report"],
            needs.browser,
        ),
    ]


def of_amqp() -> list[Suite]:
    """Return the suites that other brokers judge."""
    return [
        black_box(
            "amqp",
            "AMQP by four clients, judged by RabbitMQ; peers that break the rules; crashes, users",
            ["amqp"],
            *[needs.rabbitmq, needs.rust_client, needs.strace],
        ),
        black_box(
            "mqtt",
            "MQTT by hand, judged by mosquitto; other people's clients; beside WAMP",
            ["mqtt"],
            *[needs.mosquitto, needs.mqtt_clients],
            leaves_out="scenarios of silent clients on mosquitto, whose clock is slow",
        ),
        black_box(
            "fleet",
            "MQTT in AMQP vhosts, judged by RabbitMQ's MQTT plugin",
            ["fleet"],
            needs.rabbitmq,
        ),
        black_box(
            "mgmt",
            "RabbitMQ's management API: its answers, its tools, requests that break the rules",
            ["mgmt"],
            needs.rabbitmq,
            leaves_out="a Prometheus that answers the expressions of RabbitMQ's boards",
        ),
        black_box(
            "rabbitmq-tools",
            "tools of RabbitMQ's management API: Flower, Rascal, suites of AMQPStorm and in Go",
            ["rabbitmq_tools"],
            *[needs.rabbitmq_tools, needs.namespaces],
            leaves_out="amqp091-go's tests of recovery, which take two minutes",
        ),
        black_box(
            "oslo",
            "oslo.messaging's own functional tests over Crosstie; our instruments and it",
            ["oslo_messaging"],
            *[needs.rabbitmq, needs.oslo_messaging, needs.nats, needs.namespaces],
        ),
        black_box(
            "rlinks",
            "links between realms of several nodes: lines, rings, failures, hostile routers",
            ["rlinks"],
        ),
        Suite(
            "crossbar-links",
            "links with Crossbar.io at the other end",
            [],
            [needs.python, needs.crossbar],
            tests=["conformance/crossbar_links"],
            leaves_out="all of it: Crossbar.io takes two minutes to install, and 400 MB",
            whole=[[str(needs.PYTHON), "-m", "pytest", "-q", "conformance/crossbar_links"]],
        ),
        black_box(
            "joined",
            "WAMP and AMQP joined: Autobahn, oslo.messaging, Celery and pika with each other",
            ["joined"],
            *[needs.oslo_messaging, needs.frameworks],
        ),
        black_box(
            "frameworks",
            "Celery, kombu and Dramatiq with real workers, on RabbitMQ and on Crosstie",
            ["frameworks"],
            *[needs.rabbitmq, needs.frameworks],
            python=needs.FRAMEWORKS_VENV / "bin/python",
        ),
        black_box(
            "amqp-go",
            "RabbitMQ's client for Go: how connections end, transactions; judged by RabbitMQ",
            ["go_client"],
            *[needs.rabbitmq, needs.go_client],
        ),
        black_box(
            "amqp-spring",
            "Spring AMQP's transactions, Spring Cloud Stream's topologies; judged by RabbitMQ",
            ["spring_client", "spring_stream_client"],
            *[needs.rabbitmq, needs.spring_client, needs.spring_stream_client],
        ),
    ]


def of_python() -> list[Suite]:
    """Return the suites of Python components and of the package that brings them."""
    return [
        black_box(
            "containers",
            "Python components: their host alone, and nodes that have some",
            ["containers"],
        ),
        black_box("wheel", "the Python package, installed where nothing else is", ["wheel"]),
        black_box(
            "packages",
            "a release's files: packages in bare roots, the image, the chart, completions",
            ["packages"],
            *[needs.compiler, needs.packagers],
        ),
    ]


def of_hostility() -> list[Suite]:
    """Return the suites that run alone."""
    return [
        black_box(
            "bench",
            "the instruments: forms of output, what they must not count, servers that misbehave",
            ["bench"],
            *[needs.namespaces, needs.nginx, needs.nats, needs.mosquitto],
            is_alone=True,
        ),
        black_box(
            "hostile",
            "peers that would stop everybody else, beside a witness of well-behaved sessions",
            ["hostile"],
            is_alone=True,
        ),
    ]
