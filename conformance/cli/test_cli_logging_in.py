"""The command line's clients log in, with a secret that stands in no option."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.test_cli import crosstie
from rig import config
from rig.router import Router


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    principals = {"joe": {"ticket": "hunter2", "role": "user"}}
    users = {
        "joe": {"secret": "secret1", "role": "user"},
        "ann": {"secret": "secret2", "role": "user", "salt": "salt123", "iterations": 100},
    }
    auth = {
        "ticket": {"type": "static", "principals": principals},
        "wampcra": {"type": "static", "users": users},
    }
    transport = config.universal("tcp", config.tcp(), websocket={"ws": {"auth": auth}})
    realms = [{"name": "realm1", "roles": [config.role("user")]}]
    directory = tmp_path_factory.mktemp("guarded")
    node = config.node(realms, [transport], limits={"login_delay_ms_max": 0})
    running = Router(directory, config=node)
    yield running.urls("tcp")[0]
    running.stop()


def count(url: str, *options: str, **more):
    return crosstie("call", "wamp.session.count", "--url", url, *options, **more)


@pytest.mark.parametrize(
    ("method", "authid", "secret"),
    [("ticket", "joe", "hunter2"), ("wampcra", "joe", "secret1"), ("wampcra", "ann", "secret2")],
)
def test_a_secret_in_a_file_and_in_the_environment(
    url, tmp_path, monkeypatch, method, authid, secret
):
    (tmp_path / "secret").write_text(f"{secret}\nnot of it\n")
    as_who = ("--authmethod", method, "--authid", authid)
    assert count(url, *as_who, "--secret-file", str(tmp_path / "secret")).stdout == "1\n"
    monkeypatch.setenv("SECRET_OF_A_TEST", secret)
    assert count(url, *as_who, "--secret-env", "SECRET_OF_A_TEST").stdout == "1\n"
    monkeypatch.setenv("SECRET_OF_A_TEST", "wrong")
    done = count(url, *as_who, "--secret-env", "SECRET_OF_A_TEST")
    assert done.returncode == 2
    assert "wamp.error.not_authorized" in done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--authmethod ticket", "--authmethod ticket needs --authid, and --secret-file or"),
        ("--authmethod wampcra --authid joe", "--authmethod wampcra needs --authid, and"),
        ("--secret-file x", "a secret goes with an --authmethod that needs one"),
        ("--authmethod ticket --authid joe --secret-file /none", "--secret-file /none"),
        ("--authmethod ticket --authid joe --secret-file /dev/null", "its first line is empty"),
        ("--authmethod ticket --authid joe --secret-env NO_SUCH_ONE", "--secret-env NO_SUCH_ONE"),
    ],
)
def test_options_that_go_wrong(url, options, expected):
    done = count(url, *options.split())
    assert done.returncode == 2
    assert expected in done.stderr
