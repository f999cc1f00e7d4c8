"""Flower with its page of queues, whose numbers come from the management API."""

from __future__ import annotations

import contextlib
import json
import subprocess

import pika
from rig.http import Http
from rig.ports import free_ports
from rig.router import Router
from rig.waiting import await_true

from rabbitmq_tools.place import PYTHON


def test_its_queues_have_their_messages(router: Router, tmp_path):
    host, amqp = router.address("amqp")
    (port,) = free_ports(1)
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, amqp))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("celery", durable=True)
    for _ in range(3):
        channel.basic_publish("", "celery", b"task")
    management = ":".join(map(str, router.address("management")))
    command = [
        *(PYTHON, "-m", "celery", f"--broker=amqp://guest:guest@{host}:{amqp}//", "flower"),
        *(f"--address={host}", f"--port={port}"),
        f"--broker-api=http://guest:guest@{management}/api/",
    ]
    environment = {"FLOWER_UNAUTHENTICATED_API": "true"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    try:
        flower = Http((host, port))

        def is_up() -> bool:
            with contextlib.suppress(OSError):
                return flower.get("/healthcheck").status == 200
            return False

        await_true("Flower serves", is_up)
        answer = flower.get("/api/queues/length")
        assert answer.status == 200, answer.body
        lengths = {row["name"]: row["messages"] for row in json.loads(answer.body)["active_queues"]}
        assert lengths["celery"] == 3
        page = flower.get("/broker").body.decode()
        assert "celery" in page
    finally:
        process.kill()
        process.wait()
        connection.close()
