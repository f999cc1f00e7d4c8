"""Clients of AMQP as documented: which answer a message that is sent after the broker's restart."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import pika
from rig.router import ROOT
from rig.waiting import await_true

from strangers.returning.place import Broker
from strangers.returning.program import PATIENCE_S, Program, Run, mark

PROGRAMS = Path(__file__).parent
JS = PROGRAMS.parent / "js/returning.js"
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
FRAMEWORKS = TARGET / "frameworks/venv/bin/python"
OSLO = TARGET / "oslo-messaging/venv/bin/python"
GO = TARGET / "amqp-go-client/client"
JAVA = TARGET / "amqp-spring-client"

ANSWERS = "returning.answers"
# The queue of the tasks that Celery publishes; the test reads them.
TASKS = "returning.tasks"
PUBLISHER, WORKER = "Celery, publisher", "Celery, worker"
# It tries three times within 0.1 s; a faster start must not decide whether it is back.
HASTY = "foo-foo-mq"
JAVASCRIPT = [
    "amqp-connection-manager",
    "@golevelup/nestjs-rabbitmq",
    "@nestjs/microservices",
    "rascal",
    HASTY,
    "foo-foo-mq, `retryLimit: 1000`",
    "rabbitmq-client",
    "Node-RED",
]

Ping = Callable[[pika.channel.Channel, str], None]


class Client:
    """One of AMQP's clients: it answers what it is sent, by its own connection or to the test."""

    def __init__(self, program: Program, ping: Ping):
        self.program, self.ping = program, ping
        self.name = program.name


def to_queue(queue: str) -> Ping:
    """Send a message by the broker, which a client may find when it is there again."""

    def ping(channel: pika.channel.Channel, token: str) -> None:
        body = json.dumps({"pattern": "ping", "data": token})
        properties = pika.BasicProperties(delivery_mode=2, content_type="application/json")
        channel.basic_publish("", queue, body, properties)

    return ping


def task(channel: pika.channel.Channel, token: str) -> None:
    """Send a task as Celery does."""
    properties = pika.BasicProperties(
        delivery_mode=2,
        content_type="application/json",
        content_encoding="utf-8",
        correlation_id=str(uuid.uuid4()),
        headers={"lang": "py", "task": "ping", "id": str(uuid.uuid4())},
    )
    channel.basic_publish("", "returning.worker", json.dumps([[token], {}, {}]), properties)


def by_itself(program: Program) -> Client:
    """Return a client that sends each text that the test writes to its standard input."""
    return Client(program, lambda _channel, token: program.tell(token))


def celery(url: str) -> dict[str, str]:
    """Return the environment of the application."""
    return {"BROKER": url, "PYTHONPATH": str(PROGRAMS), "PYTHONUNBUFFERED": "1"}


def start(run: Run, url: str) -> list[Client]:
    """Start all clients that are installed, and wait until each is there."""

    def consumer(name: str, *command: object) -> Client:
        queue = "returning." + "".join(letter for letter in name if letter.isalnum())
        return Client(run(name, *command, url, queue), to_queue(queue))

    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        for queue in (ANSWERS, TASKS):
            connection.channel().queue_declare(queue, durable=True)
    clients = [consumer(name, "node", JS, name) for name in JAVASCRIPT]
    clients.append(consumer("bunny", "ruby", PROGRAMS / "bunny.rb"))
    clients.append(consumer("aio-pika", FRAMEWORKS, PROGRAMS / "aiopika.py"))
    if (JAVA / "classpath").exists():
        classes = f"{JAVA}/classes:{(JAVA / 'classpath').read_text().strip()}"
        java = ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "client.Returning"]
        clients.append(consumer("Java's amqp-client", *java))
    go = run("amqp091-go", GO, "returning", url)
    clients.append(Client(go, to_queue("returning.go")))
    clients.append(by_itself(run("moleculer", "node", JS, "moleculer", url, "-")))
    oslo = run("oslo.messaging", OSLO, PROGRAMS / "oslo_rpc.py", url.replace("amqp:", "rabbit:"))
    clients.append(by_itself(oslo))
    worker = ["-m", "celery", "-A", "tasks", "worker", "-P", "solo", "--loglevel", "WARNING"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    working = run(WORKER, FRAMEWORKS, *worker, **celery(url), QUEUE="returning.worker")
    clients.append(Client(working, task))
    script = [PROGRAMS / "tasks.py", "lines"]
    clients.append(by_itself(run(PUBLISHER, FRAMEWORKS, *script, **celery(url), QUEUE=TASKS)))
    for client in clients:
        client.program.await_there()
    return clients


def answers(channel: pika.channel.Channel) -> Iterable[str]:
    """Return what has come by the broker."""
    while (found := channel.basic_get(ANSWERS, auto_ack=True))[0]:
        yield found[2].decode()
    while (found := channel.basic_get(TASKS, auto_ack=True))[0]:
        yield f"{PUBLISHER} {json.loads(found[2])[0][0]}"


def ping_all(url: str, clients: list[Client], token: str) -> set[str]:
    """Send each a message, wait until each answers or stays away; return those that answered."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        present = [client for client in clients if not client.program.is_away()]
        for client in present:
            client.ping(channel, token)
        heard: set[str] = set()
        answered: set[str] = set()
        deadline = time.monotonic() + PATIENCE_S
        while len(answered) < len(present) and time.monotonic() < deadline:
            heard |= set(answers(channel))
            for client in present:
                said = f"{client.name} {token}"
                # Some clients wrap what they send.
                wrapped = any(said in answer for answer in heard)
                if wrapped or client.program.says(f"answer {said}"):
                    answered.add(client.name)
            present = [client for client in present if not client.program.is_away()]
            connection.process_data_events(0.05)
        return answered


def play(broker: Broker, run: Run) -> tuple[dict[str, dict[str, bool]], dict[str, dict[str, str]]]:
    """Return the clients that are back after each end, and the errors that the others report."""
    clients = start(run, broker.amqp_url)
    everybody = {client.name for client in clients}
    silent = everybody - ping_all(broker.amqp_url, clients, "first")
    assert not silent, f"these do not even answer before the end: {silent}"
    hasty = next(client.program for client in clients if client.name == HASTY)
    outcomes: dict[str, dict[str, bool]] = {name: {} for name in everybody}
    told: dict[str, dict[str, str]] = {}
    for way, end in {"stop": broker.stop, "kill -9": broker.kill}.items():
        mark([client.program for client in clients])
        end(lambda: await_true(f"{HASTY} gives up", hasty.is_away, PATIENCE_S))
        answered = ping_all(broker.amqp_url, clients, f"after-{way.split()[0]}")
        for client in clients:
            outcomes[client.name][way] = client.name in answered
            if ended := client.program.told_of_the_end():
                told.setdefault(client.name, {})[way] = ended
    return outcomes, told


def lost_tasks(broker: Broker, run: Run, **options: str) -> set[str]:
    """Have Celery publish one task after the other over a stop; return what was lost."""
    with pika.BlockingConnection(pika.URLParameters(broker.amqp_url)) as connection:
        connection.channel().queue_declare(TASKS, durable=True)
    script = [PROGRAMS / "tasks.py", "stream"]
    environment = {**celery(broker.amqp_url), "QUEUE": TASKS, **options}
    publisher = run("stream", FRAMEWORKS, *script, **environment)

    def published() -> list[str]:
        return [said.split()[1] for said in list(publisher.lines) if said.startswith("published ")]

    def await_more(count: int) -> None:
        wanted = len(published()) + count
        deadline = time.monotonic() + PATIENCE_S
        while len(published()) < wanted:
            assert not publisher.is_away(), publisher.log.read_text()
            assert time.monotonic() < deadline, "the publisher does not go on"
            time.sleep(0.01)

    await_more(200)
    broker.stop()
    await_more(200)
    publisher.tell("enough")
    publisher.process.wait(PATIENCE_S)
    came: set[str] = set()
    with pika.BlockingConnection(pika.URLParameters(broker.amqp_url)) as connection:
        channel = connection.channel()
        while (found := channel.basic_get(TASKS, auto_ack=True))[0]:
            came.add(json.loads(found[2])[0][0])
    return set(published()) - came
