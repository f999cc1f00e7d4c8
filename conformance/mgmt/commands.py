"""RabbitMQ's commands, as `commands.txt` lists them: read, run, and compared."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pika

from mgmt.cases import shape

SCRIPT = Path(__file__).parent / "commands.txt"
PROGRAMS = {"ctl": "rabbitmqctl", "diag": "rabbitmq-diagnostics", "admin": "rabbitmqadmin"}
# Lines that are no commands: the objects are made, once more where they are gone; the statistics
# are awaited.
OBJECTS = "objects"
SETTLED = "settled"
# The end of an error's own text.
USAGE = re.compile(r"\n(?:Arguments given:|Usage)|(?<=suggestions below\.)\n")
# What is no text of a command: colours, lines of a log, processes.
NOISE = re.compile(r"\x1b\[\d*m|(?m:^\d\d:\d\d:\d\d\.\d+ \[\w+\].*\n)")
PROCESS = re.compile(r"<\{node\}[\d.]+>")


@dataclass(frozen=True)
class Command:
    """A line of the script."""

    line: str
    form: str = ""
    program: str = ""
    words: tuple[str, ...] = ()
    given: str = ""


def commands(script: Path = SCRIPT) -> Iterator[Command]:
    """Read a script."""
    for line in script.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line in (OBJECTS, SETTLED):
            yield Command(line)
            continue
        form, program, rest = line.split(" ", 2) if line.count(" ") > 1 else (*line.split(), "")
        rest, _, given = rest.partition(" < ")
        yield Command(line, form, PROGRAMS[program], tuple(shlex.split(rest)), given)


Run = Callable[[str, tuple[str, ...], str], subprocess.CompletedProcess]


@dataclass
class Broker:
    """A broker, and how its programs are run."""

    address: tuple[str, int]
    management: int
    node: str
    run: Run
    settle: Callable[[], None] = lambda: None
    # A file that commands may write.
    file: str = ""
    connections: list[pika.BlockingConnection] = field(default_factory=list)

    def play(self, outcomes: dict[str, dict], script: Path = SCRIPT) -> None:
        """Run a whole script; add what came of each line."""
        for command in commands(script):
            if command.line in (OBJECTS, SETTLED):
                (self.make_objects if command.line == OBJECTS else self.settle)()
                continue
            # A line that comes again has a number.
            name, count = command.line, 1
            while name in outcomes:
                count += 1
                name = f"{command.line} ({count})"
            outcomes[name] = self.outcome(command)
        self.disconnect()

    def outcome(self, command: Command) -> dict:
        """Run a line; return what is compared."""
        words = tuple(self.named(word) for word in command.words)
        done = self.run(command.program, words, command.given)
        outcome: dict = {"exit": done.returncode}
        if command.form in "=~":
            outcome["output"] = self.unnamed(done.stdout)
        elif command.form == ":" and done.returncode == 0:
            outcome["shape"] = shape(json.loads(done.stdout.replace(self.node, "{node}")))
        if command.form == "!" or (command.form in "=~:" and done.returncode != 0):
            error = NOISE.sub("", self.unnamed(done.stderr))
            outcome["error"] = USAGE.split(error, maxsplit=1)[0].strip()
        if command.form == "~":
            outcome["output"] = rows(outcome["output"])
        return outcome

    def named(self, word: str) -> str:
        """Put the broker's own names into a word."""
        if word == "{pid}":
            words = ("-q", "-s", "list_connections", "pid")
            return self.run("rabbitmqctl", words, "").stdout.strip().splitlines()[-1]
        if "{connection}" in word:
            names = self.run("rabbitmqadmin", ("-f", "bash", "list", "connections"), "").stdout
            word = word.replace("{connection}", names.strip())
        word = word.replace("{port}", str(self.address[1])).replace("{file}", self.file)
        return word.replace("{management}", str(self.management))

    def unnamed(self, text: str) -> str:
        """Replace the broker's own names."""
        text = text.replace(self.node, "{node}")
        if self.file:
            text = text.replace(self.file, "{file}").replace(str(Path(self.file).parent), "{home}")
        for name, port in (("port", self.address[1]), ("management", self.management)):
            text = re.sub(rf"\b{port}\b", f"{{{name}}}", text)
        return PROCESS.sub("<{pid}>", text)

    def make_objects(self) -> None:
        """Make the queues, the exchange, and the clients that the script lists."""
        self.disconnect()
        host, port = self.address
        for vhost in ("v1", "/"):
            parameters = pika.ConnectionParameters(
                host, port, vhost, client_properties={"connection_name": "the client"}
            )
            self.connections.append(pika.BlockingConnection(parameters))
        other, connection = self.connections
        channel = other.channel()
        channel.queue_declare("qv", durable=True)
        channel.basic_publish("", "qv", b"x")
        channel.queue_purge("qv")
        channel.basic_publish("", "qv", b"x")
        other.close()
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q1", durable=True, arguments={"x-max-length": 10})
        channel.queue_purge("q1")
        channel.queue_declare("used", auto_delete=False)
        channel.queue_declare("full", durable=True)
        channel.queue_purge("full")
        channel.exchange_declare("e1", "topic", durable=True)
        channel.queue_bind("q1", "e1", "a.#")
        channel.queue_bind("q1", "e1", "b", arguments={"x": 1})
        for queue in ("q1", "q1", "full"):
            channel.basic_publish("", queue, b"hello")
        channel.basic_qos(prefetch_count=5)
        channel.basic_consume("used", lambda *_: None, consumer_tag="tag")

    def disconnect(self) -> None:
        """Close the clients; some are closed already."""
        for connection in self.connections:
            # The broker has closed it already, or it was closed by this.
            with contextlib.suppress(pika.exceptions.AMQPError, ValueError):
                connection.process_data_events(0)
                connection.close()
        self.connections.clear()


def rows(text: str) -> list:
    """Return the lines of an output in an order of their own, or the elements of JSON."""
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, list):
            return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))

    return sorted(text.splitlines())
