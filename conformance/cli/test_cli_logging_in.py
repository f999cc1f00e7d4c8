"""The command line's clients log in, with a secret that stands in no option."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli.test_cli import crosstie
from rig import config
from rig.router import Router
from wamp.test_scram import PRINCIPALS

PRIVATE_KEY = "4d57d97a68f555696620a6d849c0ce582568518d729eb753dc7c732de2804510"
PUBLIC_KEY = "1adfc8bfe1d35616e64dffbd900096f23b066f914c8c2ffbb66f6075b96e116d"


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
        "scram": {"type": "static", "principals": {"joe": PRINCIPALS["joe"]}},
        "cryptosign": {
            "type": "static",
            "principals": {"joe": {"authorized_keys": [PUBLIC_KEY], "role": "user"}},
        },
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
    [
        ("ticket", "joe", "hunter2"),
        ("wampcra", "joe", "secret1"),
        ("wampcra", "ann", "secret2"),
        ("scram", "joe", "p4ssw0rd"),
        ("cryptosign", "joe", PRIVATE_KEY),
    ],
)
def test_a_secret_in_a_file_and_in_the_environment(
    url, tmp_path, monkeypatch, method, authid, secret
):
    (tmp_path / "secret").write_text(f"{secret}\nnot of it\n")
    as_who = ("--authmethod", method, "--authid", authid)
    assert count(url, *as_who, "--secret-file", str(tmp_path / "secret")).stdout == "1\n"
    monkeypatch.setenv("SECRET_OF_A_TEST", secret)
    assert count(url, *as_who, "--secret-env", "SECRET_OF_A_TEST").stdout == "1\n"
    monkeypatch.setenv("SECRET_OF_A_TEST", "0" * 64)
    done = count(url, *as_who, "--secret-env", "SECRET_OF_A_TEST")
    assert done.returncode == 1
    assert "wamp.error.not_authorized" in done.stderr


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--authmethod ticket --authid joe", "--authmethod ticket needs --secret-file or"),
        ("--authmethod scram --secret-file FILE", "--authmethod scram needs --authid"),
        ("--authmethod cryptosign --secret-file FILE", "expected 64 hexadecimal digits"),
        ("--secret-file x", "a secret requires an --authmethod that uses one"),
        ("--authmethod ticket --authid joe --secret-file /none", "--secret-file /none"),
        ("--authmethod ticket --authid joe --secret-file /dev/null", "its first line is empty"),
        ("--authmethod ticket --authid joe --secret-env NO_SUCH_ONE", "--secret-env NO_SUCH_ONE"),
    ],
)
def test_options_that_go_wrong(url, options, expected):
    done = count(url, *options.replace("FILE", __file__).split())
    assert done.returncode == 2
    assert expected in done.stderr
