"""Clients for Python, in this process: paho-mqtt, aiomqtt and gmqtt."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Coroutine

import aiomqtt
import gmqtt
from gmqtt.mqtt.constants import MQTTv50, MQTTv311
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from rig.mqtt_wire import V5, V31, V311
from rig.waiting import DEADLINE_S, await_true

from mqtt.clients.client import KEPT_S, Client, Login, Message


def paho_properties(message: Message) -> Properties | None:
    """Return properties as paho takes them."""
    if not message.properties:
        return None
    found = Properties(PacketTypes.PUBLISH)
    for name, value in message.properties.items():
        match name:
            case "user":
                found.UserProperty = [tuple(pair) for pair in value]
            case "response":
                found.ResponseTopic = value
            case "correlation":
                found.CorrelationData = value.encode()
    return found


def of_paho(topic: str, message: paho.MQTTMessage | aiomqtt.Message) -> Message:
    """Return a message that paho, or aiomqtt above it, has received."""
    given = message.properties
    found = {}
    if given is not None:
        if pairs := getattr(given, "UserProperty", None):
            found["user"] = [list(pair) for pair in pairs]
        if response := getattr(given, "ResponseTopic", None):
            found["response"] = response
        if correlation := getattr(given, "CorrelationData", None):
            found["correlation"] = correlation.decode()
    return Message(topic, message.payload.decode(), message.qos, bool(message.retain), found)


def kept(login: Login) -> Properties | None:
    """Return the properties of a session that stays."""
    if login.clean or login.version < V5:
        return None
    found = Properties(PacketTypes.CONNECT)
    found.SessionExpiryInterval = KEPT_S
    return found


class Paho(Client):
    """Eclipse Paho's client, with its thread."""

    name = "paho-mqtt"
    versions = (V31, V311, V5)

    def __init__(self) -> None:
        self._messages: queue.Queue[Message] = queue.Queue()
        self._answers: queue.Queue = queue.Queue()
        self._connections = 0
        self._client: paho.Client | None = None

    def connect(self, login: Login) -> None:
        """Connect, and wait for that."""
        clean = {} if login.version == V5 else {"clean_session": login.clean}
        client = self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, login.client_id, protocol=login.version, **clean
        )

        def on_connect(_client, _data, _flags, code, _properties) -> None:
            assert not code.is_failure, code
            if login.handler:
                client.subscribe(login.handler, 1)
            self._connections += 1

        client.on_connect = on_connect
        client.on_message = lambda _client, _data, each: self._messages.put(
            of_paho(each.topic, each)
        )
        client.on_subscribe = lambda _client, _data, mid, *_: self._answers.put(mid)
        if login.will:
            will = login.will
            client.will_set(will.topic, will.payload, will.qos, will.retain)
        options = {}
        if login.version == V5:
            options = {"clean_start": login.clean, "properties": kept(login)}
        client.connect(*login.address, **options)
        client.loop_start()
        self.await_connections(1)

    def subscribe(self, filter_: str, qos: int) -> None:
        """Subscribe, and wait for that."""
        _, mid = self._client.subscribe(filter_, qos)
        while self._answers.get(timeout=DEADLINE_S) != mid:
            pass

    def publish(self, message: Message) -> None:
        """Publish, and wait until that is acknowledged."""
        sent = self._client.publish(
            message.topic, message.payload, message.qos, message.retain, paho_properties(message)
        )
        sent.wait_for_publish(DEADLINE_S)
        assert sent.is_published()

    def message(self) -> Message:
        """Return the next message."""
        return self._messages.get(timeout=DEADLINE_S)

    def await_connections(self, count: int) -> None:
        """Wait until it has been let in so often."""
        await_true(f"{self.name} is let in", lambda: self._connections >= count)

    def leave(self) -> None:
        """Disconnect in good order."""
        self._client.disconnect()
        self._client.loop_stop()

    def close(self) -> None:
        """End what is left of it."""
        if self._client:
            self.leave()


class Loop:
    """An event loop in a thread of its own, for all that need one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, coroutine: Coroutine):
        """Run it there, and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(DEADLINE_S)

    def close(self) -> None:
        """End it."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Aiomqtt(Client):
    """aiomqtt, with the loop around it that its documentation has for lost connections."""

    name = "aiomqtt"
    versions = (V311, V5)

    def __init__(self) -> None:
        self._loop = Loop()
        self._messages: queue.Queue[Message] = queue.Queue()
        self._connections = 0
        self._task: asyncio.Task | None = None

    def connect(self, login: Login) -> None:
        """Connect, and wait for that."""

        async def begin() -> None:
            self._task = asyncio.ensure_future(self._play(login))

        self._loop.run(begin())
        self.await_connections(1)

    async def _play(self, login: Login) -> None:
        will = login.will
        options = {"clean_session": login.clean} if login.version < V5 else {}
        if login.version == V5:
            options = {"clean_start": login.clean, "properties": kept(login)}
        client = aiomqtt.Client(
            *login.address,
            identifier=login.client_id,
            protocol=aiomqtt.ProtocolVersion(login.version),
            will=will and aiomqtt.Will(will.topic, will.payload, will.qos, will.retain),
            **options,
        )
        while True:
            try:
                async with client:
                    self._client = client
                    if login.handler:
                        await client.subscribe(login.handler, 1)
                    self._connections += 1
                    async for each in client.messages:
                        self._messages.put(of_paho(each.topic.value, each))
            except aiomqtt.MqttError:
                await asyncio.sleep(0.5)

    def subscribe(self, filter_: str, qos: int) -> None:
        """Subscribe, and wait for that."""
        self._loop.run(self._client.subscribe(filter_, qos))

    def publish(self, message: Message) -> None:
        """Publish, and wait until that is acknowledged."""
        sending = self._client.publish(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            properties=paho_properties(message),
        )
        self._loop.run(sending)

    def message(self) -> Message:
        """Return the next message."""
        return self._messages.get(timeout=DEADLINE_S)

    def await_connections(self, count: int) -> None:
        """Wait until it has been let in so often."""
        await_true(f"{self.name} is let in", lambda: self._connections >= count)

    def leave(self) -> None:
        """Disconnect in good order."""

        async def end() -> None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

        self._loop.run(end())
        self._task = None

    def close(self) -> None:
        """End what is left of it."""
        if self._task:
            self.leave()
        self._loop.close()


class Gmqtt(Client):
    """gmqtt; it waits six seconds before it comes back, unless it is told a shorter time."""

    name = "gmqtt"
    versions = (V311, V5)

    def __init__(self) -> None:
        self._loop = Loop()
        self._messages: queue.Queue[Message] = queue.Queue()
        self._answers: queue.Queue = queue.Queue()
        self._connections = 0
        self._client: gmqtt.Client | None = None

    def connect(self, login: Login) -> None:
        """Connect, and wait for that."""
        self._loop.run(self._connect(login))
        self.await_connections(1)

    async def _connect(self, login: Login) -> None:
        will = login.will
        properties = {}
        if login.version == V5 and not login.clean:
            properties["session_expiry_interval"] = KEPT_S
        client = self._client = gmqtt.Client(
            login.client_id,
            clean_session=login.clean,
            will_message=will and gmqtt.Message(will.topic, will.payload, will.qos, will.retain),
            **properties,
        )
        client.set_config({"reconnect_retries": -1, "reconnect_delay": 1})

        def on_connect(*_: object) -> None:
            if login.handler:
                client.subscribe(login.handler, 1)
            self._connections += 1

        client.on_connect = on_connect
        client.on_message = self._on_message
        client.on_subscribe = lambda _client, mid, *_: self._answers.put(mid)
        version = MQTTv50 if login.version == V5 else MQTTv311
        await client.connect(*login.address, version=version)

    def _on_message(self, _client, topic: str, payload: bytes, qos: int, given: dict) -> int:
        found = {}
        if "user_property" in given:
            found["user"] = [list(pair) for pair in given["user_property"]]
        if "response_topic" in given:
            found["response"] = given["response_topic"][0]
        if "correlation_data" in given:
            found["correlation"] = given["correlation_data"][0].decode()
        self._messages.put(Message(topic, payload.decode(), qos, bool(given["retain"]), found))
        return 0

    def subscribe(self, filter_: str, qos: int) -> None:
        """Subscribe, and wait for that."""

        async def subscribe() -> int:
            return self._client.subscribe(filter_, qos)

        mid = self._loop.run(subscribe())
        while self._answers.get(timeout=DEADLINE_S) != mid:
            pass

    def publish(self, message: Message) -> None:
        """Publish; the client does not tell when that is acknowledged."""
        properties = {}
        for name, value in message.properties.items():
            match name:
                case "user":
                    properties["user_property"] = [tuple(pair) for pair in value]
                case "response":
                    properties["response_topic"] = value
                case "correlation":
                    properties["correlation_data"] = value.encode()

        async def publish() -> None:
            self._client.publish(
                message.topic, message.payload, message.qos, message.retain, **properties
            )

        self._loop.run(publish())

    def message(self) -> Message:
        """Return the next message."""
        return self._messages.get(timeout=DEADLINE_S)

    def await_connections(self, count: int) -> None:
        """Wait until it has been let in so often."""
        await_true(f"{self.name} is let in", lambda: self._connections >= count)

    def leave(self) -> None:
        """Disconnect in good order."""
        self._loop.run(self._client.disconnect())
        self._client = None

    def close(self) -> None:
        """End what is left of it."""
        if self._client:
            with contextlib.suppress(Exception):
                self.leave()
        self._loop.close()
