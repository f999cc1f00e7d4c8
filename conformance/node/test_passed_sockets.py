"""Listening sockets that the service manager passes to a node, by name."""

from __future__ import annotations

import json

import pytest
from rig import certificates, config
from rig.amqp_peer import Peer
from rig.container import RefusedError
from rig.node import management
from rig.rawsocket import RawSocket
from rig.router import Router
from rig.service_manager import passing, start
from rig.websocket import WebSocket


def of_systemd(name: str, **more: object) -> dict:
    """Return an endpoint that the manager opened."""
    return {"type": "systemd", "name": name, **more}


def passed(tmp_path, configuration: dict, **sockets: object) -> Router:
    """Start a router that is passed sockets of these names."""
    directory = tmp_path / "passed"
    directory.mkdir()
    return Router(directory, config=configuration, within=passing(**sockets))


def test_passed_sockets_are_served(tmp_path):
    certificates.write(tmp_path)
    tls = {"key": f"{tmp_path}/server.key", "certificate": f"{tmp_path}/server.pem"}
    amqp = {"id": "amqp", "type": "amqp", "endpoint": of_systemd("amqp")}
    router = passed(
        tmp_path,
        config.plain(
            config.universal("tcp", of_systemd("web")),
            config.universal("unix", of_systemd("local")),
            config.universal("secure", of_systemd("secure", tls=tls)),
            amqp,
        ),
        web="tcp",
        local=tmp_path / "local.sock",
        secure="tcp",
        amqp="tcp",
        spare="tcp",
    )
    try:
        assert router.health()[0] == 200
        for each in (
            RawSocket.tcp(router.address("tcp")).shake_hands(),
            RawSocket.unix(tmp_path / "local.sock").shake_hands(),
            WebSocket.tcp(router.address("tcp")).open(),
        ):
            each.join().close()
        assert f"rs+unix://{tmp_path}/local.sock" in router.urls("unix")
        assert all(url.startswith(("wss://", "rss://")) for url in router.urls("secure"))
        peer = Peer.tcp(router.address("amqp"))
        peer.open("guest", "guest")
        peer.leave()
        router.await_log(lambda line: "the socket 'spare'" in line.text)
    finally:
        router.stop()
    # The manager's socket is no file of the node's.
    assert (tmp_path / "local.sock").is_socket()


def test_a_transport_on_a_passed_socket_starts_again(tmp_path):
    configuration = config.plain(config.universal("tcp", of_systemd("web")))
    (tmp_path / "config.json").write_text(json.dumps(configuration))
    router = Router(tmp_path, "--cbdir", str(tmp_path), within=passing(web="tcp"))
    address = router.address("tcp")
    try:
        with management(tmp_path) as controller:
            [worker] = controller.call("crossbar.get_workers")
            begin = f"crossbar.worker.{worker}"
            again = config.universal("again", of_systemd("web"))
            with pytest.raises(RefusedError, match="another listener uses"):
                controller.call(f"{begin}.start_router_transport", "again", again)
            controller.call(f"{begin}.stop_router_transport", "tcp")
            # The socket stays open: a client waits until a transport accepts it.
            early = RawSocket.tcp(address)
            controller.call(f"{begin}.start_router_transport", "again", again)
            early.shake_hands().join().close()
    finally:
        router.stop()


@pytest.mark.parametrize(
    ("sockets", "expected"),
    [
        ({"amqp": "tcp"}, "no socket named 'web' (LISTEN_FDNAMES): it passed 'amqp'"),
        ({}, "no socket named 'web' (LISTEN_FDNAMES): it passed none"),
        ({"web1": "tcp", "web2": "tcp"}, "passed 2 sockets named 'web'"),
        ({"web": "datagram"}, "socket 'web': expected one that listens for streams"),
    ],
)
def test_a_socket_that_cannot_be_served_is_refused_by_name(tmp_path, sockets, expected):
    configuration = config.plain(config.universal("tcp", of_systemd("web")))
    done = start(tmp_path, configuration, within=passing(**sockets))
    assert done.returncode == 1, done.stderr
    assert expected in done.stderr


def test_sockets_of_another_process_are_left_alone(tmp_path):
    configuration = config.plain(config.universal("tcp", of_systemd("web")))
    environment = {"LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "web"}
    done = start(tmp_path, configuration, environment=environment)
    assert done.returncode == 1, done.stderr
    assert "it passed none" in done.stderr


def test_announced_sockets_that_are_not_there_are_an_error(tmp_path):
    within = ("sh", "-c", 'LISTEN_FDS=9 LISTEN_PID=$$ exec "$@"', "sh")
    done = start(tmp_path, config.plain(), within=within)
    assert done.returncode == 2, done.stderr
    assert "LISTEN_FDS announces a socket 'unknown' as descriptor 3, which is none" in done.stderr
