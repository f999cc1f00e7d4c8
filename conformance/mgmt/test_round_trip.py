"""Definitions go from RabbitMQ 3.10 to Crosstie and back, and are equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from rig import config, rabbitmq
from rig.http import Http
from rig.router import Router

from mgmt import references
from mgmt.cases import Api
from mgmt.record import Managed

# Keys that each broker has of its own.
OF_BROKER = ("rabbit_version", "rabbitmq_version", "product_name", "product_version", "left_out")
OWN_USERS = ("guest", "test")
OWN_PARAMETERS = ("cluster_name", "internal_cluster_id")


@pytest.fixture(scope="module")
def judge(tmp_path_factory) -> Iterator[Api]:
    """Return the management API of RabbitMQ."""
    if not rabbitmq.is_installed():
        pytest.skip("rabbitmq-server is not installed")
    running = Managed(tmp_path_factory.mktemp("rabbitmq"))
    yield Api(Http(("127.0.0.1", running.management)), running.address)
    running.stop()


@pytest.fixture
def crosstie(tmp_path) -> Iterator[Api]:
    """Return the management API of a node whose configuration names no users."""
    node = config.plain(
        {"type": "amqp", "id": "amqp", "endpoint": config.tcp()},
        {"type": "amqp.management", "id": "management", "endpoint": config.tcp()},
    )
    router = Router(tmp_path, config=node)
    yield Api(Http(router.address("management")), router.address("amqp"))
    router.stop()


def exported(api: Api) -> dict:
    """Return what belongs to the references."""
    found = api.json("definitions")
    for key in OF_BROKER:
        found.pop(key, None)
    own = [row["name"] for row in found["vhosts"] if row["name"] == "/"]

    def is_kept(key: str, row: dict) -> bool:
        return not (
            row.get("vhost") in own
            or (key == "vhosts" and row["name"] in own)
            or (key == "users" and row["name"] in OWN_USERS)
            or (key == "global_parameters" and row["name"] in OWN_PARAMETERS)
        )

    return {
        key: sorted(json.dumps(row, sort_keys=True) for row in rows if is_kept(key, row))
        for key, rows in found.items()
    }


def take(api: Api, definitions: dict) -> list[dict]:
    """Import; return what is left out."""
    answer = api.ask("POST", "definitions", definitions)
    assert answer.status in (200, 204), answer.body
    return json.loads(answer.body)["skipped"] if answer.status == 200 else []


def forget(api: Api, definitions: dict) -> None:
    """Delete the users, vhosts and global parameters of definitions."""
    for key, path in (
        *[("users", "users"), ("vhosts", "vhosts"), ("global_parameters", "global-parameters")],
    ):
        for row in definitions.get(key, []):
            name = row["name"]
            answer = api.ask("DELETE", f"{path}/{quote(name, safe='')}")
            assert answer.status == 204, (name, answer.body)


@pytest.mark.parametrize("reference", ["many", "several"])
def test_definitions_come_back_equal(judge, crosstie, reference):
    made = getattr(references, reference)()
    take(judge, made)
    first = exported(judge)
    assert len(first["queues"]) == len(made["queues"])
    skipped = take(crosstie, judge.json("definitions"))
    # Each broker keeps its own, and `test` is as RabbitMQ's own definitions have it.
    kept = {f"global parameter '{name}'" for name in OWN_PARAMETERS}
    assert {row["what"] for row in skipped} <= kept
    assert exported(crosstie) == first
    forget(judge, made)
    assert exported(judge) != first
    take(judge, crosstie.json("definitions"))
    assert exported(judge) == first
    forget(judge, made)
