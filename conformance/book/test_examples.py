"""Every example of the book and of README.md works as its page says."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from rig import certificates
from rig.router import ROOT, binary

from book import fragments
from book.blocks import CONFIGURATION, DISPLAYS, OTHERS, SHELL, Block, all_blocks, blocks_of, pages
from book.shell import Shell, commands, is_shown, without_remark

# Blocks that no test runs, and blocks of commands that are parsed here; no other suite runs them.
# Both only fall.
NOT_RUN, PARSED = 7, 22
NODE = ["crosstie start"]
BRIDGE = """cat >config.yaml <<'END'
version: 2
workers:
- type: router
  realms:
  - name: realm1
    roles:
    - {name: api, permissions: [{uri: "*", allow: {call: true}}]}
    - {name: anonymous, permissions: [{uri: "*", allow: {register: true}}]}
  transports:
  - type: universal
    endpoint: {type: tcp, port: 8080}
    websocket: {ws: {type: websocket}}
    web: {paths: {call: {type: caller, realm: realm1, role: api}}}
END"""
# What must be there before the first example of a page.
BESIDE = {
    "README.md": NODE,
    "docs/management.md": NODE,
    "docs/meta-api.md": NODE,
    "docs/metrics.md": NODE,
    "docs/operating.md": NODE,
    "docs/start.md": NODE,
    "docs/tasks/upgrade.md": ["cp -L $(command -v crosstie) crosstie-new"],
    "docs/web/bridge.md": [
        BRIDGE,
        "crosstie start --cbdir .",
        "crosstie register com.add2 --answer 5",
    ],
}
# What stands for the words that a reader replaces.
PLACEHOLDERS = {
    r"(?i)\bhost:port\b": "127.0.0.1:9000",
    r"\bhost\b": "127.0.0.1",
    r"\bPID\b": "1",
}


def chosen(languages: tuple[str, ...], *markers: str | None) -> list[Block]:
    """Return the blocks of these languages with one of these markers, or without any."""
    markers = markers or (None,)
    return [
        block for block in all_blocks() if block.language in languages and block.marker in markers
    ]


def test_every_block_has_a_language_that_is_known():
    for block in all_blocks():
        known = (*SHELL, *CONFIGURATION, *OTHERS, *DISPLAYS)
        assert block.language in known, f"{block}: {block.language}"


def test_markers_are_counted():
    counted = Counter(
        block.marker for block in all_blocks() if block.marker and "suite" not in block.reason
    )
    assert (counted["not run"], counted["parsed"]) == (NOT_RUN, PARSED)


def with_commands() -> list[str]:
    """Return the pages with commands to run."""
    return sorted({block.page for block in chosen(SHELL)})


@pytest.mark.parametrize("page", with_commands())
def test_commands_of_a_page(page, tmp_path):
    files(tmp_path)
    shell = Shell(tmp_path)
    try:
        for command in BESIDE.get(page, []):
            shell.follow(command, "")
        for block in blocks_of(page):
            if block.marker == "file":
                file = tmp_path / block.reason
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            if block.marker is None and block.language in SHELL:
                for command, shown in commands(block.text):
                    shell.follow(command, shown)
    except AssertionError:
        print(shell.told())
        raise
    finally:
        shell.close()


@pytest.mark.parametrize("block", chosen(SHELL, "parsed"), ids=str)
def test_options_of_a_command_exist(block):
    for command, _ in commands(block.text):
        words = without_remark(command).replace(" …", "").split(" > ")[0]
        for placeholder, stands_for in PLACEHOLDERS.items():
            words = re.sub(placeholder, stands_for, words)
        words = re.sub(r"^.*?\bcrosstie ", "", words)
        if not re.search(r"(?:^| )crosstie ", command):
            continue
        line = f"{binary()} {words} --help"
        done = subprocess.run(["bash", "-c", line], text=True, capture_output=True, timeout=30)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def files(directory: Path) -> None:
    """Make the files that configurations name."""
    certificates.write(directory)
    shutil.copy(directory / "server.pem", directory / "server.crt")
    for name in ("authority.pem", "nodes-ca.pem"):
        shutil.copy(directory / "ca.pem", directory / name)
    (directory / "tls").mkdir()
    for name in ("server.key", "server.crt"):
        shutil.copy(directory / name, directory / "tls" / name)


@pytest.mark.parametrize("block", chosen(CONFIGURATION, None, "file"), ids=str)
def test_a_configuration_is_valid(block, tmp_path):
    files(tmp_path)
    (tmp_path / "users.yaml").write_text("{}")
    part = fragments.read(block.language, block.text, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(fragments.whole(part), indent=1))
    environment = {**os.environ, **dict.fromkeys(fragments.variables(block.text), "0" * 64)}
    done = subprocess.run(
        [str(binary()), "check", "--cbdir", str(tmp_path)],
        text=True,
        capture_output=True,
        timeout=30,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", chosen(("python",)), ids=str)
def test_python_compiles_and_runs(block):
    modules = {"base64": base64, "hashlib": hashlib}
    exec(compile(block.text, str(block), "exec"), modules)


def judged(*command: object) -> None:
    """Have another program judge a file of its own form."""
    if not shutil.which(str(command[0]), path=f"{os.environ['PATH']}:/usr/sbin"):
        pytest.skip(f"there is no {command[0]}")
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    command = [str(word) for word in command]
    done = subprocess.run(command, text=True, capture_output=True, timeout=30, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", chosen(("nginx",)), ids=str)
def test_nginx_accepts_its_configuration(block, tmp_path):
    files(tmp_path)
    file = tmp_path / "nginx.conf"
    text = block.text.replace("/etc/ssl", str(tmp_path))
    server = text if "server {" in text else f"server {{ listen 127.0.0.1:1; {text} }}"
    head = f"pid {tmp_path}/pid; error_log stderr; events {{}}"
    file.write_text(f"{head} http {{ access_log off; {server} }}")
    judged("nginx", "-t", "-e", "stderr", "-p", tmp_path, "-c", file)


@pytest.mark.parametrize("block", chosen(("haproxy",)), ids=str)
def test_haproxy_accepts_its_configuration(block, tmp_path):
    text = block.text
    if not text.startswith("defaults"):
        times = "".join(f" timeout {of} 5s\n" for of in ("connect", "client", "server"))
        text = f"defaults\n mode http\n{times}backend other\n{text}"
    file = tmp_path / "haproxy.cfg"
    # HAProxy demands a listener.
    file.write_text(f"{text}\nfrontend any\n    bind 127.0.0.1:1\n")
    judged("haproxy", "-c", "-f", file)


@pytest.mark.parametrize("block", chosen(("js",)), ids=str)
def test_javascript_is_read(block, tmp_path):
    (tmp_path / "example.js").write_text(block.text)
    judged("node", "--check", tmp_path / "example.js")


@pytest.mark.parametrize("block", chosen(("ini",)), ids=str)
def test_systemd_accepts_a_socket_unit(block, tmp_path):
    command = [str(binary()), "service", "print", "--program", "/bin/true"]
    service = subprocess.run(command, text=True, capture_output=True, check=True).stdout
    (tmp_path / "crosstie.service").write_text(service)
    (tmp_path / "crosstie-web.socket").write_text(block.text)
    judged("systemd-analyze", "verify", *tmp_path.iterdir())


@pytest.mark.parametrize("block", chosen(("toml",)), ids=str)
def test_a_manifest_names_crates_that_are_there(block):
    read = tomllib.loads(block.text)
    tables = [table for kind, table in read.items() if kind.endswith("dependencies")]
    paths = [each["path"] for table in tables for each in table.values() if "path" in each]
    assert paths
    assert all((ROOT / path.removeprefix("../crosstie/") / "Cargo.toml").exists() for path in paths)


@pytest.mark.parametrize("page", sorted({b.page for b in chosen(("rust",), "not run", None)}))
def test_rust_is_run_by_the_tests_of_a_crate(page):
    assert f"../../../{page}" in (ROOT / "crates/node/src/lib.rs").read_text()


def test_pages_are_found():
    assert "README.md" in pages()
    assert len(pages()) > 20
    assert chosen(SHELL)
    assert chosen(CONFIGURATION)


@pytest.mark.parametrize(
    ("shown", "output", "agrees"),
    [
        ("ok", "ok", True),
        ("ok", "no", False),
        ("8437760 bytes", "12 bytes", True),
        ("a   b\n────", "a  b\n─────────", True),
        ("first\n…\nlast", "first\n1\n2\nlast", True),
        ("first\n…", "first", True),
        ('"Sun Nov 22 22:43:52 UTC 2026"', '"Mon Dec 1 01:02:03 UTC 2027"', True),
        ("id …", "id 5\nmore", False),
    ],
)
def test_outputs_are_compared_but_for_what_varies(shown, output, agrees):
    assert is_shown(shown, output) == agrees


def test_root_has_a_book():
    assert (ROOT / "docs/SUMMARY.md").is_file()
