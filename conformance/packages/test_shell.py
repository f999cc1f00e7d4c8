"""Completions as the shells themselves complete, and manual pages of every command."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from contents import shell
from packages.made import TIME
from rig.waiting import DEADLINE_S

# The release is made in the first test.
# Words before the cursor, and some of what each shell offers there.
CASES = [
    (["st"], {"start", "status", "stop", "store"}),
    (["queues", "p"], {"purge"}),
    (["call", "--serializer", ""], {"json", "msgpack", "cbor"}),
    (["cluster", "init", "--single", "s"], {"strict"}),
    (["call", "--seri"], {"--serializer"}),
]
BASH = """
. "$1"; shift
COMP_WORDS=(crosstie "$@"); COMP_CWORD=$#
_crosstie
printf '%s\\n' "${COMPREPLY[@]}"
"""
# The functions of zsh's completion, which its line editor alone has.
ZSH = """
file=$1; shift
words=(crosstie "$@"); CURRENT=$#words; PREFIX=$words[CURRENT]
_describe() { [[ $1 == -o ]] && shift; shift 2; print -l -- "${(@P)2}"; }
compadd() { shift; print -l -- "$@"; }
_files() { }
source $file
"""


@pytest.fixture(scope="module")
def files(made, tmp_path_factory) -> Path:
    """Write the files of both programs' completions and manuals."""
    root = tmp_path_factory.mktemp("shell")
    for name in made.programs:
        for entry in shell(name, made.printed, "1.2.3", TIME):
            path = root / entry.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)
    return root


def output(*command: object) -> list[str]:
    """Run a shell; return the lines that it prints."""
    done = subprocess.run(
        list(map(str, command)), text=True, capture_output=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_completes(files, words, expected):
    script = files / "usr/share/bash-completion/completions/crosstie"
    assert set(output("bash", "-c", BASH, "bash", script, *words)) == expected


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_zsh_completes(files, words, expected):
    script = files / "usr/share/zsh/vendor-completions/_crosstie"
    offered = {line.split(":")[0] for line in output("zsh", "-f", "-c", ZSH, "zsh", script, *words)}
    # The line editor drops those that do not begin as the word does.
    assert {each for each in offered if each.startswith(words[-1])} == expected


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_fish_completes(files, words, expected):
    script = files / "usr/share/fish/vendor_completions.d/crosstie.fish"
    line = " ".join(["crosstie", *words])
    told = output("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
    assert {each.split("\t")[0] for each in told} == expected


def test_completions_of_the_laboratory_are_read(files):
    for shell_name, path in (
        ("bash", "bash-completion/completions/crosstie-lab"),
        ("zsh", "zsh/vendor-completions/_crosstie-lab"),
        ("fish", "fish/vendor_completions.d/crosstie-lab.fish"),
    ):
        output(shell_name, "-n", files / "usr/share" / path)


def test_every_command_has_its_manual(made, files):
    for program, root in made.printed.commands.items():
        commands = list(root.all())
        assert len(commands) > 20
        for command in commands:
            first = command.path[:1]
            name = "-".join((program, *first))
            with gzip.open(files / f"usr/share/man/man1/{name}.1.gz", "rt") as opened:
                text = opened.read()
            title = " ".join((program, *command.path)).upper().replace("-", "\\-")
            assert len(command.path) < 2 or f".SH {title}\n" in text, command.path
            for option in command.options:
                for flag in option.flags if first else []:
                    assert flag.replace("-", "\\-") in text, (command.path, flag)


def test_the_servers_manual_leaves_the_laboratory_out(made):
    names = {command.path[0] for command in made.printed.commands["crosstie"].commands}
    assert {"start", "check", "call", "queues"} <= names
    assert not names & {"bench", "oslo", "conformance", "help"}
