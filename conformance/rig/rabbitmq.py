"""A RabbitMQ of the tests' own: ports, names and directories that no other one has."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from rig.amqp_peer import Peer
from rig.broker import Broker, definitions
from rig.plain import ClosedError
from rig.ports import free_ports

# Debian's own script in /usr/sbin changes the user first; this one does not.
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# Erlang starts slowly on a loaded machine.
START_S = 90
STOP_S = 90
# Types of exchanges that Crosstie has, too.
PLUGINS = (
    "rabbitmq_consistent_hash_exchange",
    "rabbitmq_random_exchange",
    "rabbitmq_recent_history_exchange",
    "rabbitmq_sharding",
)


def is_installed() -> bool:
    """Whether the judge is there."""
    return SERVER.exists()


class RabbitMq(Broker):
    """A running `rabbitmq-server`."""

    def __init__(self, directory: Path, advanced: str | None = None) -> None:
        """Start it; `advanced` is Erlang terms for what the other form cannot say."""
        port, distribution, self.epmd_port = free_ports(3)
        super().__init__("rabbitmq", "127.0.0.1", port)
        self.directory = directory
        (directory / "definitions.json").write_text(json.dumps(definitions()))
        plugins, lines = self.configuration()
        (directory / "enabled_plugins").write_text(f"[{','.join(plugins)}].\n")
        (directory / "rabbitmq.conf").write_text(lines)
        terms = advanced or "[{kernel, [{inet_dist_use_interface, {127,0,0,1}}]}]."
        (directory / "advanced.config").write_text(terms)
        self.environment = {
            **os.environ,
            # The cookie is kept at home.
            "HOME": str(directory),
            "RABBITMQ_NODENAME": f"conformance{port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_CONFIG_FILE": str(directory / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "enabled_plugins"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.epmd_port),
        }
        self.output = (directory / "output").open("wb")
        self.start()

    def configuration(self) -> tuple[list[str], str]:
        """Return its plugins, and the lines of its configuration."""
        return list(PLUGINS), (
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"load_definitions = {self.directory}/definitions.json\n"
            "disk_free_limit.absolute = 1MB\n"
            "log.console = false\n"
        )

    def start(self) -> None:
        """Start the server, for the first time or again, and wait until it serves."""
        self.process = subprocess.Popen(
            [SERVER],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            # A group of its own, so that all of it can be ended.
            start_new_session=True,
        )
        try:
            self._await_start()
        except BaseException:
            self.stop()
            raise

    def control(self, *words: str) -> str:
        """Run `rabbitmqctl`; it takes a second or two."""
        command = [SERVER.parent / "rabbitmqctl", "-q", *words]
        return subprocess.run(
            command, env=self.environment, text=True, check=True, capture_output=True
        ).stdout

    def kill(self) -> None:
        """Kill the server as a machine that fails does; `start` starts it again."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End the server and its port mapper, whatever state they are in."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_S)
        # The rest of its group, if any.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if epmd := shutil.which("epmd"):
            command = [epmd, "-port", str(self.epmd_port), "-kill"]
            subprocess.run(command, env=self.environment, capture_output=True, check=False)
        self.output.close()

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_S
        while not self._is_serving():
            ended = self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                said = (self.directory / "output").read_text(errors="replace")
                raise AssertionError(f"rabbitmq-server did not start; it said:\n{said[-2000:]}")
            time.sleep(0.1)

    def _is_serving(self) -> bool:
        """Whether it answers, and lets in whom the definitions name: they are read last."""
        try:
            with Peer.tcp(self.address) as peer:
                peer.open("test", "test")
        except (OSError, ClosedError, AssertionError):
            return False
        return True
