"""rabbitmqadmin against Crosstie: RabbitMQ's own script, and the program under that name.

Both are held to what RabbitMQ's script prints against RabbitMQ 3.10.8.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import certificates, config
from rig.router import Router, binary

from mgmt import commands
from mgmt.admin import ORIGINAL, SCRIPT, Admin
from mgmt.different_admin import OF_BROKER, OF_PROGRAM

RECORDED = json.loads((Path(__file__).parent / "admin.json").read_text())


@pytest.fixture
def router(tmp_path_factory) -> Iterator[Router]:
    """Return a node with the management API."""
    transports = [
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
    ]
    configuration = config.plain(*transports)
    configuration["workers"][0]["amqp"] = {"identity": {"version": "3.10.8"}}
    router = Router(tmp_path_factory.mktemp("node"), config=configuration)
    yield router
    router.stop()


def outcomes(router: Router, home: Path, *command: str | Path) -> dict[str, dict]:
    """Return what comes of the script."""
    port = router.address("management")[1]
    admin = Admin(home, port, *command)
    listed = admin.run("rabbitmqadmin", ("-f", "bash", "list", "nodes"))
    node = listed.stdout.strip()
    found: dict[str, dict] = {}
    broker = commands.Broker(router.address("amqp"), port, node, admin.run, file=admin.file)
    broker.play(found, SCRIPT)
    return found


def check(found: dict[str, dict], differences: dict[str, str]) -> None:
    """Compare the outcomes with RabbitMQ's."""
    assert found.keys() == RECORDED.keys()
    differing = {
        name: (RECORDED[name], came) for name, came in found.items() if came != RECORDED[name]
    }
    unlisted = {name: both for name, both in differing.items() if name not in differences}
    lines = [f"{name}: {recorded} became {came}" for name, (recorded, came) in unlisted.items()]
    assert not unlisted, "\n".join(lines)
    # The list has nothing that is not so any more.
    assert differences.keys() - differing.keys() == set()


# Python starts some two hundred times.
@pytest.mark.skipif(not ORIGINAL, reason="rabbitmq-server is not installed")
def test_the_script_of_rabbitmq_works(router, tmp_path):
    check(outcomes(router, tmp_path, sys.executable, ORIGINAL[0]), OF_BROKER)


def test_the_program_under_that_name_is_as_the_script(router, tmp_path):
    program = tmp_path / "rabbitmqadmin"
    program.symlink_to(binary().resolve())
    check(outcomes(router, tmp_path, program), OF_BROKER | OF_PROGRAM)


def test_the_program_needs_no_link(router, tmp_path):
    port = router.address("management")[1]
    admin = Admin(tmp_path, port, binary().resolve(), "rabbitmqadmin")
    assert admin.run("rabbitmqadmin", ("-qf", "tsv", "list", "vhosts", "name")).stdout == "/\n"


def test_unhonoured_options_are_refused_by_name(router, tmp_path):
    admin = Admin(tmp_path, router.address("management")[1], binary().resolve(), "rabbitmqadmin")
    for words in (
        ("--bash-completion",),
        ("--ssl", "--ssl-disable-hostname-verification", "list", "vhosts"),
    ):
        done = admin.run("rabbitmqadmin", words)
        assert (done.returncode, done.stdout) == (1, "")
        assert words[-3 if "list" in words else 0] in done.stderr


@pytest.mark.parametrize("name", ["the script", "the program"])
def test_it_asks_over_tls(tmp_path, name):
    if name == "the script" and not ORIGINAL:
        pytest.skip("rabbitmq-server is not installed")
    authority = certificates.write(tmp_path)
    files = {"key": str(tmp_path / "server.key"), "certificate": str(tmp_path / "server.pem")}
    transports = [
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp(tls=files)},
    ]
    router = Router(tmp_path, config=config.plain(*transports))
    port = router.address("management")[1]
    command = [sys.executable, ORIGINAL[0]] if name == "the script" else [binary().resolve()]
    words = ("rabbitmqadmin",) if name == "the program" else ()
    admin = Admin(tmp_path, port, *command, *words)

    def listed(*options: str) -> tuple[int, str]:
        command = ("-qf", "tsv", *options, "list", "vhosts", "name")
        done = admin.run("rabbitmqadmin", command)
        return done.returncode, done.stdout

    assert listed("--ssl", "--ssl-ca-cert-file", str(authority)) == (0, "/\n")
    assert listed("--ssl", "--ssl-insecure") == (0, "/\n")
    # An unknown authority, and no TLS.
    assert listed("--ssl") == (1, "")
    assert listed() == (1, "")
    router.stop()
