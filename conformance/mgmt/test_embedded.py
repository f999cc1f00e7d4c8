"""RabbitMQ's tools and a node on its embedded default, or from the template for AMQP."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator

import pytest
from rig.http import Http
from rig.router import Router, binary

from mgmt.cases import Api

PORTS = {"management": 15672, "prometheus": 15692}


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> Iterator[Router]:
    """Return a node on its embedded default."""
    arguments = ("--listen", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
    router = Router(tmp_path_factory.mktemp("first"), *arguments)
    yield router
    router.stop()


def api_of(router: Router) -> Api:
    """Return its management API."""
    return Api(Http(router.address("management")), router.address("amqp"))


def test_guest_uses_the_management_api(started):
    api = api_of(started)
    assert api.json("whoami")["name"] == "guest"
    assert api.ask("PUT", "queues/%2F/embedded", {"durable": False}).status == 201
    with api.connect() as connection:
        connection.channel().queue_declare("embedded", passive=True)
    ports = {row["protocol"]: row["port"] for row in api.json("overview")["listeners"]}
    assert ports["http"] == api.http.address[1]
    assert ports["http/prometheus"] == started.address("prometheus")[1]
    assert api.ask("GET", "overview", user="nobody").status == 401
    assert api.ask("GET", "overview", user=None).status == 401


def test_prometheus_reads_the_metrics(started):
    answer = Http(started.address("prometheus")).get("/metrics")
    assert answer.status == 200
    assert b"\nrabbitmq_connections " in answer.body


@pytest.mark.parametrize("transport", PORTS)
def test_a_page_whose_name_resolves_to_this_machine_is_refused(started, transport):
    host, port = started.address(transport)
    login = "Basic Z3Vlc3Q6Z3Vlc3Q="
    for name, status in (
        (f"{host}:{port}", 200),
        (f"localhost:{port}", 200),
        (f"evil.example:{port}", 403),
    ):
        path = "/metrics" if transport == "prometheus" else "/api/whoami"
        headers = {"Host": name, "Authorization": login, "Origin": f"http://{name}"}
        assert Http((host, port)).get(path, headers).status == status, name


def test_another_node_takes_other_ports(started, tmp_path):
    with contextlib.ExitStack() as stack:
        # Nodes of other tests may have the ports, and leave them at any time.
        taken = [name for name in PORTS if is_held(stack, started, name)]
        other = Router(tmp_path, "--listen", "127.0.0.1:0", "--amqp", "127.0.0.1:0")
        try:
            for transport in taken:
                port = PORTS[transport]
                assert other.address(transport)[1] not in (port, started.address(transport)[1])
                said = f"Transport '{transport}' takes another port than {port}"
                other.await_log(lambda line, said=said: said in line.text)
            assert api_of(other).json("queues") == []
        finally:
            other.stop()


def is_held(stack: contextlib.ExitStack, started: Router, transport: str) -> bool:
    """Whether the default port of a transport is in use until the test ends."""
    if started.address(transport)[1] == PORTS[transport]:
        return True
    holder = stack.enter_context(socket.socket())
    try:
        holder.bind(("127.0.0.1", PORTS[transport]))
        holder.listen()
    except OSError:
        return False
    return True


def test_a_broker_of_the_template_has_them(tmp_path, monkeypatch):
    def crosstie(*words: str) -> str:
        command = [str(binary()), *words]
        done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True)
        return done.stdout

    crosstie("init", "--template", "amqp")
    configuration = json.loads(crosstie("convert", ".crossbar/config.yaml", "--output", "-"))
    transports = configuration["workers"][0]["transports"]
    found = {transport["type"]: transport["endpoint"] for transport in transports}
    for transport, port in PORTS.items():
        endpoint = found[f"amqp.{transport}"]
        assert (endpoint["interface"], endpoint["port"]) == ("127.0.0.1", port)
    # Its own ports may be taken on this machine.
    for number, transport in enumerate(transports):
        transport["endpoint"]["port"] = 0
        transport["id"] = ("amqp", "management", "prometheus")[number]
    configuration["admin"]["endpoint"]["port"] = 0
    monkeypatch.setenv("AMQP_PASSWORD", "openstack")
    router = Router(tmp_path, config=configuration)
    try:
        api = api_of(router)
        tags = api.json("whoami", user="openstack")["tags"]
        assert tags == ["administrator"]
        assert Http(router.address("prometheus")).get("/metrics").status == 200
    finally:
        router.stop()
