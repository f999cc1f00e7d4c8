"""The files of each package, and of the image."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass, replace
from pathlib import Path

import image
import manual
from archives import Entry, directory, gzipped
from completions import completions
from deb import MAINTAINER, Package
from grammar import Command

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = "Message router for WAMP and broker for AMQP 0-9-1"
HOME = "/var/lib/crosstie"


@dataclass(frozen=True)
class Printed:
    """What the programs print of themselves."""

    unit: str
    configuration: str
    # The grammar of each program's command line.
    commands: dict[str, Command]


def server(program: bytes, printed: Printed, version: str, time: int) -> list[Entry]:
    """Return the files of the server's package."""
    return [
        Entry("/usr/bin/crosstie", program, 0o755),
        Entry("/usr/lib/systemd/system/crosstie.service", printed.unit.encode()),
        directory("/etc/crosstie"),
        Entry("/etc/crosstie/config.json", printed.configuration.encode(), is_configuration=True),
        *_documents("crosstie", printed, version, time),
    ]


def laboratory(program: bytes, printed: Printed, version: str, time: int) -> list[Entry]:
    """Return the files of the laboratory's package."""
    documents = _documents("crosstie-lab", printed, version, time)
    return [Entry("/usr/bin/crosstie-lab", program, 0o755), *documents]


def shell(name: str, printed: Printed, version: str, time: int) -> list[Entry]:
    """Return a program's manual pages and completions."""
    grammar = printed.commands[name]
    return [*manual.pages(name, grammar, version, time), *completions(name, grammar)]


def _documents(name: str, printed: Printed, version: str, time: int) -> list[Entry]:
    folder = f"/usr/share/doc/{name}"
    date = email.utils.formatdate(time)
    debian = f"""{name} ({version}-1) unstable; urgency=medium

  * The changes of this version are in changelog.gz.

 -- {MAINTAINER}  {date}
"""
    return [
        *shell(name, printed, version, time),
        Entry(f"{folder}/copyright", COPYRIGHT.encode()),
        Entry(f"{folder}/changelog.gz", gzipped((ROOT / "CHANGELOG.md").read_bytes())),
        Entry(f"{folder}/changelog.Debian.gz", gzipped(debian.encode())),
        Entry(f"/usr/share/lintian/overrides/{name}", OVERRIDES.format(name).encode()),
    ]


def without_debian(entries: list[Entry]) -> list[Entry]:
    """Return the files that packages of other systems have, where those look for them."""
    kept = []
    for entry in entries:
        if "/lintian/" in entry.path or entry.path.endswith("changelog.Debian.gz"):
            continue
        path = entry.path.replace("/zsh/vendor-completions/", "/zsh/site-functions/")
        kept.append(replace(entry, path=path))
    return kept


COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
Copyright: 2026 The Crosstie project
License: Apache-2.0
 Debian has the text of the licence in /usr/share/common-licenses/Apache-2.0.
"""
OVERRIDES = """# A static program at a random address has a dynamic section, and needs no library.
{0}: shared-library-lacks-prerequisites [usr/bin/{0}]
{0}: statically-linked-binary [usr/bin/{0}]
# The package is no part of Debian.
{0}: initial-upload-closes-no-bugs *
"""
MAKE_USER = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if ! getent passwd crosstie >/dev/null; then
        adduser --quiet --system --group --home /var/lib/crosstie --no-create-home crosstie
    fi
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
    fi
fi
"""
STOP = """#!/bin/sh
set -e
# An upgrade leaves the node running: its operator decides when it starts anew.
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop crosstie.service >/dev/null || true
fi
"""
REMOVED = """#!/bin/sh
set -e
# The messages in /var/lib/crosstie stay, also when the package is purged.
if [ "$1" = purge ] && command -v deb-systemd-helper >/dev/null; then
    deb-systemd-helper purge crosstie.service >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
"""
# The same for rpm, whose scriptlets get the number of versions that stay.
SCRIPTLETS = {
    "pre": """
getent group crosstie >/dev/null || groupadd --system crosstie
getent passwd crosstie >/dev/null || useradd --system --gid crosstie --home-dir /var/lib/crosstie \\
    --no-create-home --shell /sbin/nologin crosstie
""",
    "post": """
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
""",
    "preun": """
if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now crosstie.service || true
fi
""",
    "postun": """
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
""",
}


def packages(version: str, architecture: str) -> tuple[Package, Package]:
    """Return the descriptions of both packages. A static program depends on no library."""
    crosstie = Package(
        "crosstie",
        version,
        architecture,
        SUMMARY,
        [
            "Routes WAMP messages, brokers AMQP 0-9-1 for the clients of RabbitMQ,",
            "and joins both.",
        ],
        depends=["adduser"],
        scripts={"postinst": MAKE_USER, "prerm": STOP, "postrm": REMOVED},
        requires=["shadow-utils"],
        scriptlets=SCRIPTLETS,
    )
    laboratory = Package(
        "crosstie-lab",
        version,
        architecture,
        "Instruments that measure Crosstie and other message routers",
        ["`crosstie bench` and its like run this program."],
    )
    return crosstie, laboratory


def image_files(program: bytes) -> list[Entry]:
    """Return the image's files: nothing but the program, its configuration, and its user."""
    number = image.USER
    return [
        Entry("/usr/bin/crosstie", program, 0o755),
        Entry("/etc/crosstie/config.yaml", (ROOT / "packaging/image.yaml").read_bytes()),
        Entry("/etc/passwd", f"crosstie:x:{number}:{number}::{HOME}:/\n".encode()),
        Entry("/etc/group", f"crosstie:x:{number}:\n".encode()),
        # Mount points have to be there if the root is read-only.
        directory(HOME, 0o750, number),
        directory("/tmp", 0o1777),
    ]


def image_settings() -> dict:
    """Return how the image runs."""
    return {
        "Env": [
            "PATH=/usr/bin",
            "RABBITMQ_DEFAULT_USER=guest",
            "RABBITMQ_DEFAULT_PASS=guest",
            "RABBITMQ_DEFAULT_VHOST=/",
        ],
        "Entrypoint": ["/usr/bin/crosstie"],
        "Cmd": ["start", "--cbdir", HOME, "--config", "/etc/crosstie/config.yaml"],
        "WorkingDir": HOME,
        "Volumes": {HOME: {}},
        "ExposedPorts": {"5672/tcp": {}, "9100/tcp": {}},
        "StopSignal": "SIGTERM",
    }


def image_labels(version: str, revision: str) -> dict[str, str]:
    """Return what the image says of itself."""
    return {
        "org.opencontainers.image.title": "Crosstie",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
    }
