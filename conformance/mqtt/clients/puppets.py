"""Clients in other languages: MQTT.js, and two for Go, in processes that are told what to do."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path

from rig.mqtt_wire import V5, V31, V311
from rig.process import Process
from rig.router import ROOT

from mqtt.clients.client import Client, Login, Message

JAVASCRIPT = Path(__file__).resolve().parents[1] / "js"
# scripts/needs.py builds it there.
GO = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "mqtt-go-client/client"


class Puppet(Client):
    """A client that is asked by lines of JSON, and answers each."""

    command: tuple[object, ...] = ()

    def __init__(self) -> None:
        self._process = Process(*self.command)

    @classmethod
    def is_installed(cls) -> bool:
        """Whether it is there."""
        raise NotImplementedError

    def ask(self, **request: object) -> dict:
        """Have it do something, and hold it to success."""
        answer = self._process.ask(**request)
        assert "error" not in answer, f"{self.name}: {answer} to {request}"
        return answer

    def connect(self, login: Login) -> None:
        """Connect, and wait for that."""
        host, port = login.address
        self.ask(do="connect", **{**asdict(login), "host": host, "port": port, "address": ""})

    def subscribe(self, filter_: str, qos: int) -> None:
        """Subscribe, and wait for that."""
        self.ask(do="subscribe", filter=filter_, qos=qos)

    def publish(self, message: Message) -> None:
        """Publish, and wait until that is acknowledged."""
        self.ask(do="publish", message=asdict(message))

    def message(self) -> Message:
        """Return the next message."""
        return Message(**self.ask(do="message"))

    def await_connections(self, count: int) -> None:
        """Wait until it has been let in so often."""
        self.ask(do="await", count=count)

    def leave(self) -> None:
        """Disconnect in good order."""
        self.ask(do="leave")

    def close(self) -> None:
        """End what is left of it."""
        self._process.end()


class MqttJs(Puppet):
    """MQTT.js."""

    name = "MQTT.js"
    versions = (V31, V311, V5)
    command = ("node", JAVASCRIPT / "puppet.js")

    @classmethod
    def is_installed(cls) -> bool:
        """Whether it is there."""
        return shutil.which("node") is not None and (JAVASCRIPT / "node_modules/mqtt").exists()


class PahoGo(Puppet):
    """paho.mqtt.golang."""

    name = "paho.mqtt.golang"
    versions = (V31, V311)
    command = (GO, "paho")

    @classmethod
    def is_installed(cls) -> bool:
        """Whether it is there."""
        return GO.exists()


class Autopaho(Puppet):
    """paho.golang with its automatic connections."""

    name = "autopaho"
    versions = (V5,)
    command = (GO, "autopaho")

    @classmethod
    def is_installed(cls) -> bool:
        """Whether it is there."""
        return GO.exists()
