"""The image: its layout, and its configuration as a broker in the place of RabbitMQ's image."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import subprocess
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import contents
import pika
import pytest
from rig.ports import free_ports
from rig.router import binary
from rig.waiting import DEADLINE_S, await_true

# The release is made in the first test.
GIVEN = {"USER": "nova", "PASS": "s3cret", "VHOST": "/openstack"}


def blobs_of(image: bytes) -> dict[str, bytes]:
    """Return the files of a layout."""
    with tarfile.open(fileobj=io.BytesIO(image)) as archive:
        return {
            member.name: archive.extractfile(member).read() for member in archive if member.isfile()
        }


def blob(blobs: dict[str, bytes], described: dict) -> bytes:
    """Return what a description names, of its size and digest."""
    kind, _, digest = described["digest"].partition(":")
    data = blobs[f"blobs/{kind}/{digest}"]
    assert (len(data), hashlib.sha256(data).hexdigest()) == (described["size"], digest)
    return data


def opened(image: bytes) -> tuple[dict, bytes]:
    """Return an image's configuration and its layer."""
    blobs = blobs_of(image)
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    [described] = json.loads(blobs["index.json"])["manifests"]
    manifest = json.loads(blob(blobs, described))
    configuration = json.loads(blob(blobs, manifest["config"]))
    [layer] = manifest["layers"]
    assert layer["mediaType"].endswith("+zstd")
    command = ["zstd", "--decompress", "--stdout", "--quiet"]
    packed = blob(blobs, layer)
    unpacked = subprocess.run(command, input=packed, stdout=subprocess.PIPE, check=True).stdout
    digest = f"sha256:{hashlib.sha256(unpacked).hexdigest()}"
    assert configuration["rootfs"]["diff_ids"] == [digest]
    return configuration, unpacked


def test_an_image_has_its_program_and_no_root(made):
    configuration, layer = opened(made.one("image.tar"))
    assert configuration["config"]["User"] == "65532:65532"
    assert configuration["config"]["Entrypoint"] == ["/usr/bin/crosstie"]
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        found = {member.name: member for member in archive}
    assert found["usr/bin/crosstie"].mode == 0o755
    assert (found["var/lib/crosstie"].uid, found["var/lib/crosstie"].mode) == (65_532, 0o750)
    assert found["tmp"].mode == 0o1777
    files = {name for name, member in found.items() if member.isfile()}
    assert files == {"usr/bin/crosstie", "etc/crosstie/config.yaml", "etc/passwd", "etc/group"}


def confined(root: Path, data: Path) -> list[str]:
    """Return the words that run a program as the image's user on its root, which is read-only.

    No words if the machine has no such namespaces: the program then runs on the machine's root.
    """
    words = [
        *["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"],
        *["--uid", "65532", "--gid", "65532", "--die-with-parent"],
        *["--ro-bind", root, "/", "--bind", data, contents.HOME],
        *["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"],
    ]
    words = list(map(str, words))
    try:
        tried = subprocess.run([*words, "/usr/bin/crosstie", "version"], capture_output=True)
    except FileNotFoundError:
        return []
    return words if tried.returncode == 0 else []


@pytest.fixture
def served(made, tmp_path) -> Iterator[tuple[int, int]]:
    """Run the image's command with its environment and variables; return its ports."""
    configuration, layer = opened(made.one("image.tar"))
    root, data = tmp_path / "root", tmp_path / "data"
    data.mkdir()
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        archive.extractall(root, filter="tar")
    ports = free_ports(2)
    config = root / "etc/crosstie/config.yaml"
    text = config.read_text()
    for default, port in zip((5672, 9100), ports, strict=True):
        assert text.count(f"port: {default}}}") == 1
        text = text.replace(f"port: {default}}}", f"port: {port}}}")
    config.write_text(text)
    # The tested program has a loader, which the image's own does not need.
    for library in set(re.findall(r"/\S+", said("ldd", binary()))):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(library).read_bytes())
        place.chmod(0o755)
    (root / "usr/bin/crosstie").unlink()
    (root / "usr/bin/crosstie").hardlink_to(linked(tmp_path))
    for folder in ("proc", "dev"):
        (root / folder).mkdir()
    settings = configuration["config"]
    command = [*settings["Entrypoint"], *settings["Cmd"]]
    prefix = confined(root, data)
    if not prefix:
        places = {"/usr/bin/crosstie": binary(), contents.HOME: data}
        places["/etc/crosstie/config.yaml"] = config
        command = [str(places.get(word, word)) for word in command]
    environment = dict(each.split("=", 1) for each in settings["Env"])
    environment |= {f"RABBITMQ_DEFAULT_{name}": value for name, value in GIVEN.items()}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*prefix, *command], env=environment, stdout=log, stderr=log)
    try:
        await_true("the node is healthy", lambda: is_healthy(ports[1], process, tmp_path / "log"))
        yield ports[0], ports[1]
        process.terminate()
        process.wait(DEADLINE_S)
    finally:
        process.kill()
        process.wait()


def linked(folder: Path) -> Path:
    """Return the tested program on the file system of the root."""
    path = folder / "program"
    with contextlib.suppress(OSError):
        path.hardlink_to(binary())
        return path
    path.write_bytes(binary().read_bytes())
    path.chmod(0o755)
    return path


def said(*command: object) -> str:
    """Return the output of a command."""
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, check=True)
    return done.stdout


def is_healthy(port: int, process: subprocess.Popen, log: Path) -> bool:
    """Ask as a probe does, by the address of a pod."""
    assert process.poll() is None, log.read_text()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/health", headers={"Host": "10.1.2.3:9100"}
    )
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
            return response.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def connected(port: int, user: str, password: str, vhost: str) -> pika.BlockingConnection:
    """Connect as a client of RabbitMQ."""
    login = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, vhost, credentials=login)
    )


def test_the_image_takes_user_and_vhost_from_rabbitmqs_variables(served):
    port, _ = served
    with contextlib.closing(
        connected(port, GIVEN["USER"], GIVEN["PASS"], GIVEN["VHOST"])
    ) as client:
        channel = client.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"message", pika.BasicProperties(delivery_mode=2))
        _, _, body = channel.basic_get("kept", auto_ack=True)
        assert body == b"message"
    for user, password, vhost in (
        ("guest", "guest", GIVEN["VHOST"]),
        (GIVEN["USER"], "wrong", GIVEN["VHOST"]),
        (GIVEN["USER"], GIVEN["PASS"], "/"),
    ):
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            connected(port, user, password, vhost)
